#include "db/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <libpq-fe.h>

#define NAP apr_time_from_msec(100)

/* --- the programs of PostgreSQL --- */

/* The environment that has libpq connect as DBDParams says.  A password must not be an argument,
   which everybody on the machine can read. */
static const char *const *libpq_environment(const char *params, apr_pool_t *p)
{
    apr_array_header_t *environment = apr_array_make(p, 64, sizeof(const char *));
    PQconninfoOption *options = PQconninfoParse(params, NULL);

    for (char **variable = environ; *variable != NULL; variable++) {
        APR_ARRAY_PUSH(environment, const char *) = *variable;
    }
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++) {
        if (option->envvar != NULL && option->val != NULL) {
            APR_ARRAY_PUSH(environment, const char *) = apr_pstrcat(p, option->envvar, "=",
                                                                    option->val, NULL);
        }
    }
    PQconninfoFree(options);
    APR_ARRAY_PUSH(environment, const char *) = NULL;
    return (const char *const *)environment->elts;
}

/* In the child, which does not outlive its parent. */
static void program_exec(const char *const *arguments, const char *const *environment)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const char *const *variable = environment; *variable != NULL; variable++) {
        putenv((char *)*variable);
    }
    execvp(arguments[0], (char *const *)arguments);
    _exit(errno == ENOENT ? 127 : 126);
}

static apr_status_t program_run(mdl_db_dump_t *dump, const char *const *arguments, apr_pool_t *p)
{
    const char *const *environment = libpq_environment(dump->params, p);
    pid_t pid = fork();
    pid_t ended = 0;
    int status = 0;

    if (pid == 0) {
        program_exec(arguments, environment);
    }
    while (pid > 0 && (ended = waitpid(pid, &status, WNOHANG)) == 0) {
        apr_sleep(NAP);
        if (dump->waiting != NULL) {
            dump->waiting(dump->baton);
        }
    }
    if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return APR_SUCCESS;
    }
    dump->why = ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127
                    ? apr_psprintf(p,
                                   "The program %s is not in the PATH (Debian: apt-get install "
                                   "postgresql-client).",
                                   arguments[0])
                    : apr_psprintf(p, "%s has failed, see above.", arguments[0]);
    return APR_EGENERAL;
}

/* --- PostgreSQL --- */

static apr_status_t dump_within_snapshot(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_db_dump_t *dump = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(SNAPSHOT_EXPORT));

    if (rv == APR_SUCCESS) {
        const char *snapshot = apr_pstrcat(p, "--snapshot=", mdl_rows_text(row, 0), NULL);
        const char *arguments[] = {"pg_dump",    "--format=custom", "--no-password",
                                   "--no-owner", "--no-privileges", snapshot,
                                   "--file",     dump->path,        NULL};

        rv = program_run(dump, arguments, p);
    }
    return rv == APR_SUCCESS ? dump->within(db, p, dump->arg) : rv;
}

apr_status_t mdl_db_load(mdl_db_dump_t *dump, apr_pool_t *p)
{
    /* A connection string without a word on the database: that is in the environment. */
    const char *arguments[] = {"pg_restore",
                               "--single-transaction",
                               "--exit-on-error",
                               "--no-password",
                               "--no-owner",
                               "--no-privileges",
                               "--dbname=fallback_application_name=downloadsctl",
                               dump->path,
                               NULL};

    dump->why = NULL;
    return program_run(dump, arguments, p);
}

/* --- SQLite --- */

/* In one step: the backup interface begins anew with each write of others. */
static apr_status_t sqlite_copy(mdl_db_t *db, const char *path, apr_pool_t *p)
{
    const char *quoted = "";

    for (const char *rest = path; *rest != '\0'; rest++) {
        quoted = apr_psprintf(p, "%s%c%s", quoted, *rest, *rest == '\'' ? "'" : "");
    }
    return mdl_db_command(db, apr_pstrcat(p, "VACUUM INTO '", quoted, "'", NULL));
}

static apr_status_t sqlite_read_copy(const mdl_db_dump_t *dump, const char **why, apr_pool_t *p)
{
    mdl_db_t *copy;
    apr_pool_t *pool;
    apr_status_t rv;

    apr_pool_create(&pool, p); /* its end closes the copy */
    apr_pool_tag(pool, "mdl_db_dump");
    rv = mdl_db_open(&copy, "sqlite3", dump->path, why, pool);
    if (rv == APR_SUCCESS) {
        rv = mdl_db_read(copy, dump->within, dump->arg, pool);
    }
    *why = rv == APR_SUCCESS ? NULL : apr_pstrdup(p, *why);
    apr_pool_destroy(pool);
    return rv;
}

static apr_status_t file_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    apr_status_t rv = fd >= 0 && fsync(fd) == 0 ? APR_SUCCESS : APR_FROM_OS_ERROR(errno);

    if (fd >= 0) {
        close(fd);
    }
    return rv;
}

apr_status_t mdl_db_dump(mdl_db_t *db, mdl_db_dump_t *dump, apr_pool_t *p)
{
    apr_status_t rv;

    dump->why = NULL;
    mdl_db_limit_waits(db, 0);
    if (mdl_db_dialect(db) == MDL_SQLITE3) {
        rv = sqlite_copy(db, dump->path, p);
        rv = rv == APR_SUCCESS ? sqlite_read_copy(dump, &dump->why, p) : rv;
    } else {
        rv = mdl_db_snapshot(db, dump_within_snapshot, dump, p);
    }
    return rv == APR_SUCCESS ? file_sync(dump->path) : rv;
}
