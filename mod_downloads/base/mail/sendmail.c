#include "base/mail/sendmail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

#define TIMEOUT        apr_time_from_sec(600)
#define TICK_MS        250
#define EXITED_TICK_MS 10
#define OUTPUT_LENGTH  400

/* A running program. */
typedef struct {
    pid_t pid;
    int output; /* the pipe of its standard output and error, -1 once closed */
    char last[OUTPUT_LENGTH + 1];
    apr_size_t last_length;
} program_t;

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

/*
 * Starts the program in its own process group.  Not by APR, whose fork runs every pool's clean-ups
 * in the copy of a threaded process and inherits our blocked signals.
 */
static int program_start(program_t *program, const char *const *arguments, int input, int output)
{
    static const char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                              NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    int error;

    sigemptyset(&none);
    sigfillset(&standard);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    error = posix_spawn(&program->pid, arguments[0], &actions, &attributes,
                        (char *const *)arguments, (char *const *)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Keeps the last line that is not empty. */
static void output_keep_last_line(program_t *program, const char *data, apr_size_t length)
{
    for (apr_size_t i = 0; i < length; i++) {
        apr_size_t end = program->last_length;

        if (data[i] != '\n' && end > 0 && program->last[end - 1] == '\n') {
            end = 0;
        }
        if (end < OUTPUT_LENGTH &&
            (data[i] != '\n' || (end > 0 && program->last[end - 1] != '\n'))) {
            program->last[end++] = data[i];
        }
        program->last_length = end;
    }
}

static void output_read(program_t *program, int timeout_ms)
{
    struct pollfd ready = {program->output, POLLIN, 0};
    char data[1024];
    ssize_t length;

    if (poll(&ready, 1, timeout_ms) <= 0) {
        return;
    }
    length = read(program->output, data, sizeof data);
    if (length > 0) {
        output_keep_last_line(program, data, (apr_size_t)length);
    } else if (length == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(program->output);
        program->output = -1;
    }
}

/* Waits for the program; 0 if it had to be killed, else 1 and its wait status in *status. */
static int program_wait(program_t *program, int *status)
{
    const apr_time_t deadline = mdl_clock_monotonic() + TIMEOUT;

    while (1) {
        pid_t ended;

        output_read(program, program->output == -1 ? EXITED_TICK_MS : TICK_MS);
        ended = waitpid(program->pid, status, WNOHANG);
        if (ended == program->pid) {
            return 1;
        }
        if (ended == -1 && errno != EINTR) {
            return 0;
        }
        if (mdl_clock_monotonic() > deadline) {
            kill(-program->pid, SIGKILL);
            waitpid(program->pid, status, 0);
            return 0;
        }
    }
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

static mdl_mail_outcome_t program_finish(program_t *program, const char **detail, apr_pool_t *p)
{
    mdl_mail_outcome_t outcome;
    int status = 0;
    int ended = program_wait(program, &status);

    while (ended && program->output != -1) {
        struct pollfd ready = {program->output, POLLIN, 0};

        if (poll(&ready, 1, 0) <= 0) {
            break;
        }
        output_read(program, 0);
    }
    if (program->output != -1) {
        close(program->output);
    }
    if (!ended) {
        *detail = "The sendmail program was ended before it had finished.";
        return MDL_MAIL_UNKNOWN;
    }
    if (!WIFEXITED(status)) {
        *detail = apr_psprintf(p, "The sendmail program was ended by signal %d.", WTERMSIG(status));
        return MDL_MAIL_LATER;
    }
    outcome = outcome_of_exit(WEXITSTATUS(status));
    if (outcome != MDL_MAIL_SENT) {
        *detail = apr_psprintf(p, "The sendmail program ended with code %d%s%s",
                               WEXITSTATUS(status), program->last_length ? ": " : ".",
                               apr_pstrmemdup(p, program->last, program->last_length));
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
    program_t running = {.output = -1};
    FILE *input;
    int ends[2];
    int error;

    if (mdl_sendmail_check(program, detail, p) != APR_SUCCESS) {
        return MDL_MAIL_LATER;
    }
    input = message_file(message, length);
    if (input == NULL) {
        *detail = sendmail_failure("The message can't be put into a temporary file", errno, p);
        return MDL_MAIL_LATER;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        *detail = sendmail_failure("No pipe can be made for the sendmail program", errno, p);
        fclose(input);
        return MDL_MAIL_LATER;
    }
    error = program_start(&running, arguments, fileno(input), ends[1]);
    fclose(input);
    close(ends[1]);
    running.output = ends[0];
    if (error != 0) {
        close(ends[0]);
        *detail = sendmail_failure("The sendmail program can't be run", error, p);
        return MDL_MAIL_LATER;
    }
    return program_finish(&running, detail, p);
}
