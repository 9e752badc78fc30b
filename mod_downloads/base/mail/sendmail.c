#include "base/mail/sendmail.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/program.h"

#define TIMEOUT apr_time_from_sec(600)

static const char *sendmail_failure(const char *what, int error, apr_pool_t *p)
{
    char text[120];

    return apr_psprintf(p, "%s: %s.", what, apr_strerror(error, text, sizeof text));
}

/*
 * The message in an unnamed file, positioned at its beginning.  A pipe would give the program half
 * a message if this process died.
 */
static FILE *message_file(const char *message, apr_size_t length)
{
    FILE *file = tmpfile();

    if (file == NULL) {
        return NULL;
    }
    for (apr_size_t i = 0; i < length; i++) {
        if (message[i] != '\r') {
            putc(message[i], file);
        }
    }
    if (fflush(file) != 0 || ferror(file) || fseek(file, 0, SEEK_SET) != 0) {
        int error = errno;

        fclose(file);
        errno = error;
        return NULL;
    }
    return file;
}

static mdl_mail_outcome_t outcome_of_exit(int code)
{
    switch (code) {
    case EX_OK:
        return MDL_MAIL_SENT;
    case EX_DATAERR:
    case EX_NOUSER:
    case EX_NOHOST:
    case EX_UNAVAILABLE:
        return MDL_MAIL_FAILED;
    default:
        return MDL_MAIL_LATER;
    }
}

static mdl_mail_outcome_t outcome_of_end(const mdl_program_end_t *end, const char **detail,
                                         apr_pool_t *p)
{
    mdl_mail_outcome_t outcome;

    if (end->killed) {
        *detail = "The sendmail program was ended before it had finished.";
        return MDL_MAIL_UNKNOWN;
    }
    if (!WIFEXITED(end->status)) {
        *detail = apr_psprintf(p, "The sendmail program was ended by signal %d.",
                               WTERMSIG(end->status));
        return MDL_MAIL_LATER;
    }
    outcome = outcome_of_exit(WEXITSTATUS(end->status));
    if (outcome != MDL_MAIL_SENT) {
        *detail = apr_psprintf(p, "The sendmail program ended with code %d%s%s",
                               WEXITSTATUS(end->status), *end->last != '\0' ? ": " : ".",
                               end->last);
    }
    return outcome;
}

apr_status_t mdl_sendmail_check(const char *program, const char **detail, apr_pool_t *p)
{
    if (access(program, X_OK) != 0) {
        *detail = sendmail_failure("The sendmail program can't be run", errno, p);
        return APR_EGENERAL;
    }
    return APR_SUCCESS;
}

mdl_mail_outcome_t mdl_sendmail_send(const char *program, const char *from, const char *to,
                                     const char *message, apr_size_t length, const char **detail,
                                     apr_pool_t *p)
{
    const char *const arguments[] = {program, "-i", "-f", from, "--", to, NULL};
    mdl_program_t running = {.arguments = arguments, .patience = TIMEOUT};
    mdl_program_end_t end;
    apr_status_t rv;
    FILE *input;

    if (mdl_sendmail_check(program, detail, p) != APR_SUCCESS) {
        return MDL_MAIL_LATER;
    }
    input = message_file(message, length);
    if (input == NULL) {
        *detail = sendmail_failure("The message can't be put into a temporary file", errno, p);
        return MDL_MAIL_LATER;
    }
    running.input = fileno(input);
    rv = mdl_program_run(&end, &running, p);
    fclose(input);
    if (rv != APR_SUCCESS) {
        *detail = sendmail_failure("The sendmail program can't be run", rv, p);
        return MDL_MAIL_LATER;
    }
    return outcome_of_end(&end, detail, p);
}
