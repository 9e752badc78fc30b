/*
 * What httpd itself says of its configuration.  `httpd -t` finds what keeps a server from starting,
 * whichever module's it is, without touching a server that runs.
 */
#ifndef MDL_CTL_HTTPD_H
#define MDL_CTL_HTTPD_H

#include <apr_pools.h>
#include <apr_tables.h>

typedef struct {
    int reads_file;     /* whether its configuration includes the file that was asked for */
    int would_start;    /* whether httpd would start, for all that it can tell */
    int as_root;        /* whether it was asked as root */
    const char *output; /* what it said, in one line */
    apr_array_header_t *warnings; /* const char *: sentences of mod_downloads */
} mdl_httpd_report_t;

/** The command of the httpd that this program was built for: apachectl, or httpd where there is
 * none. */
const char *mdl_httpd_command(void);

/**
 * Asks an httpd, by its command in the shell's syntax, such as "apachectl" or "httpd -f FILE".  To
 * be called before root is given up: another user can't read all that a configuration names.
 */
void mdl_httpd_ask(mdl_httpd_report_t *report, const char *command, const char *file,
                   apr_pool_t *p);

#endif
