/*
 * A list of mail domains in a file of the operator's: one domain a line, "#" begins a comment.
 *
 * The list belongs to a process, which reads the file again when it has changed; it looks once a
 * second at most.  A line that is no domain is passed over, with a warning that names file and
 * line. A file that is gone or can't be read any more leaves the list as it was last read.
 *
 * Any thread may ask.  A list that was opened before a fork serves both processes.
 */
#ifndef MDL_CORE_SETTINGS_DOMAINS_H
#define MDL_CORE_SETTINGS_DOMAINS_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct mdl_domains_t mdl_domains_t;

/** Reads the file at path, which is kept; the list lives as long as p. */
apr_status_t mdl_domains_open(mdl_domains_t **domains, const char *path, apr_pool_t *p);

/** Whether a domain, or one above it, is in the list; without regard to case. */
int mdl_domains_has(mdl_domains_t *domains, const char *domain);

#endif
