/*
 * Shared by the tests of mail: a temporary folder, programs to run, and a message.
 */
#ifndef MDL_T_UNIT_MAIL_H
#define MDL_T_UNIT_MAIL_H

#include "t/unit/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/mail/mailer.h"

#define FROM    "shop@example.test"
#define TO      "jane@example.test"
#define MESSAGE "Subject: dots\r\n\r\n.\r\n..\r\n.leading\r\nMAIL FROM:<x@y.test>\r\nend\r\n"

static char *folder;

/* --- processes and files --- */

static inline const char *in_folder(const char *name, apr_pool_t *p)
{
    return apr_pstrcat(p, folder, "/", name, NULL);
}

static inline const char *slurp(const char *path, apr_pool_t *p)
{
    char *bytes = apr_pcalloc(p, 65536);
    FILE *file = fopen(path, "rb");

    if (!file) {
        return "";
    }
    bytes[fread(bytes, 1, 65535, file)] = '\0';
    fclose(file);
    return bytes;
}

static inline pid_t spawn(const char *const *arguments, int input, int output)
{
    pid_t pid = fork();

    if (pid == 0) {
        dup2(input, 0);
        dup2(output, 1);
        dup2(output, 2);
        for (int i = 3; i < 64; i++) {
            close(i);
        }
        execv(arguments[0], (char *const *)arguments);
        _exit(127);
    }
    return pid;
}

static inline int run(const char *const *arguments)
{
    FILE *nothing = tmpfile();
    pid_t pid = spawn(arguments, fileno(nothing), fileno(nothing));
    int status = -1;

    waitpid(pid, &status, 0);
    fclose(nothing);
    return status;
}

static inline void remove_tree(const char *path)
{
    const char *const arguments[] = {"/bin/rm", "-rf", path, NULL};

    run(arguments);
}

static inline mdl_mail_config_t config_of(const char *transport, mdl_mail_tls_t tls)
{
    mdl_mail_config_t config = {.transport = transport, .tls = tls};

    return config;
}

static inline mdl_mailer_t *mailer_of(const mdl_mail_config_t *config, apr_pool_t *p)
{
    mdl_mailer_t *mailer = NULL;

    mdl_mailer_create(&mailer, config, p);
    return mailer;
}

static inline mdl_mail_outcome_t send_to(mdl_mailer_t *mailer, const char *to, const char **detail,
                                         apr_pool_t *p)
{
    return mdl_mailer_send(mailer, FROM, to, MESSAGE, strlen(MESSAGE), detail, p);
}

/** Makes the folder; a killed test leaves it behind. */
static inline int begin_folder(apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");

    signal(SIGPIPE, SIG_IGN);
    folder = apr_pstrcat(p, temp ? temp : "/tmp", "/mail-XXXXXX", NULL);
    return ok(mkdtemp(folder) != NULL, "a temporary folder can be made");
}

#endif
