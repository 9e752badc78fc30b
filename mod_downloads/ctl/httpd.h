/*
 * What httpd itself reports on its configuration.  `httpd -t` finds what keeps a server from
 * starting, in any module, without touching a running server.
 */
#ifndef MDL_CTL_HTTPD_H
#define MDL_CTL_HTTPD_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct {
    int reads_file;               /* whether its configuration includes the file */
    int would_start;              /* as far as it can tell */
    int as_root;                  /* whether it was asked as root */
    const char *pid_file;         /* NULL: not known, or the file is not read */
    int is_stopped;               /* whether no process has the pid in that file */
    const char *output;           /* its messages, in one line */
    apr_array_header_t *warnings; /* const char *: warnings of mod_downloads */
} mdl_httpd_report_t;

/** The command of the httpd that this program was built for: apachectl, or httpd where there is
    no apachectl. */
const char *mdl_httpd_command(void);

/**
 * Asks an httpd by its command, such as "apachectl" or "httpd -f FILE", which a shell runs.  Call
 * it before giving up root: other users can't read all files that a configuration names.
 */
void mdl_httpd_ask(mdl_httpd_report_t *report, const char *command, const char *file,
                   apr_pool_t *p);

#endif
