/*
 * A list of mail domains in a file of the operator: one domain a line, "#" begins a comment.
 *
 * Each process has its own list and reads the file again when it has changed; it checks once a
 * second at most.  A line that is no domain is skipped with a warning that names file and line.  If
 * the file is gone or can't be read, the list stays as it was last read.
 *
 * Any thread may ask.  A list opened before a fork may be used by both processes.
 */
#ifndef MDL_CORE_SETTINGS_DOMAINS_H
#define MDL_CORE_SETTINGS_DOMAINS_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_domains_t mdl_domains_t;

/** Reads the file at path, which must live as long as p, like the list. */
apr_status_t mdl_domains_open(mdl_domains_t **domains, const char *path, apr_pool_t *p);

/** Whether a domain, or a parent domain, is in the list, in any case. */
int mdl_domains_has(mdl_domains_t *domains, const char *domain);

#endif
