/*
 * httpd's own report on its configuration: `httpd -t` finds faults in any module that would prevent
 * a start, without touching a running server.
 */
#ifndef MDL_CTL_HTTPD_H
#define MDL_CTL_HTTPD_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct {
    int reads_file;               /* the configuration includes the file */
    int would_start;              /* as far as it can tell */
    int as_root;                  /* it ran as root */
    const char *pid_file;         /* NULL: unknown, or the file is not included */
    int is_stopped;               /* no process has the pid in that file */
    const char *output;           /* its messages, in one line */
    apr_array_header_t *warnings; /* const char *: warnings of mod_downloads */
} mdl_httpd_report_t;

/** The command of the httpd for which this program was built: apachectl, or else httpd. */
const char *mdl_httpd_command(void);

/**
 * Gets the report by a command such as "apachectl" or "httpd -f FILE", which a shell runs.  Call it
 * before giving up root: other users can't read all files that a configuration names.
 */
void mdl_httpd_ask(mdl_httpd_report_t *report, const char *command, const char *file,
                   apr_pool_t *p);

/** The user that httpd runs as, or NULL if its configuration does not say. */
const char *mdl_httpd_user(const char *command, apr_pool_t *p);

#endif
