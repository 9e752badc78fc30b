/*
 * Grants: what the database said of a link, kept by this process for a second.  Until then small
 * parts of its session begin without a statement, so a revoke, a block and a new version of the
 * file take effect on them within that second.
 */
#ifndef MDL_CORE_DOWNLOAD_GRANT_H
#define MDL_CORE_DOWNLOAD_GRANT_H

#include "core/download/download.h"

typedef struct {
    apr_int64_t generation;   /* of the session that goes on */
    apr_int64_t part;         /* bytes that one request may ask for */
    apr_int64_t bytes;        /* and all together */
    apr_interval_time_t time; /* after the link was looked at */
    const char *why;          /* it is not counted; lasts as long as the process */
} mdl_grant_t;

/** Keeps a grant of a link that mdl_download_look has allowed, unless there is one already: what
   was delivered by that may not be settled. */
void mdl_grant_put(const mdl_download_t *download, const mdl_grant_t *grant);

/** Sets what mdl_download_look would set for the link of a file, but limit; false if there is no
    grant of it. */
int mdl_grant_find(mdl_download_t *download, apr_pool_t *p);

/** Takes so many bytes of the grant of a link; false if it does not cover them. */
int mdl_grant_take(const char *session, apr_int64_t bytes, mdl_grant_t *grant);

#endif
