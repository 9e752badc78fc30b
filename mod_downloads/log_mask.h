/*
 * Masks the tokens of pages, files, links and uploads in what httpd logs and shows about requests,
 * and what is searched for.  A token is the right that it stands for, a search may be for a license
 * key, and logs are read by many.
 *
 * In a request's line, which mod_status shows and logs write, each character of a token becomes "*"
 * before anybody sees it.  Its URI and all headers, notes and variables follow before the request
 * is logged; modules that redirect or rewrite need them until then.  HTTP/2 writes the path of a
 * stream into the scoreboard by itself, so mod_status's page passes through a filter.
 */
#ifndef MDL_LOG_MASK_H
#define MDL_LOG_MASK_H

#include <httpd.h>

#include "core/settings/settings.h"

/** Registers the hooks. */
void mdl_log_mask_register(void);

/** Where tokens are; for each httpd child, before its threads. */
void mdl_log_mask_child_init(apr_pool_t *p, const mdl_settings_t *settings);

#endif
