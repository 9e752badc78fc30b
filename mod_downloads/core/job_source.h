/*
 * The source of an import.  Its query may be a credential, as that of a pre-signed URL is: it is
 * kept sealed, for the job alone, until that has succeeded, and shown to nobody.
 */
#ifndef MDL_CORE_JOB_SOURCE_H
#define MDL_CORE_JOB_SOURCE_H

#include "base/crypto.h"
#include "db/db.h"

/** How a URL is shown: its query, if it has one, as "***". */
const char *mdl_source_shown(const char *url, apr_pool_t *p);

/** Whether a URL that is shown is all of it. */
int mdl_source_is_whole(const char *shown);

/** A URL with its query sealed, as mdl_job_t.source_url has it. */
const char *mdl_source_seal(const mdl_secret_t *secret, const char *job_id, const char *url,
                            apr_pool_t *p);

/** The URL that mdl_source_seal was given; APR_EINVAL when another secret has sealed its query. */
apr_status_t mdl_source_open(const mdl_secret_t *secret, const char *job_id, const char *source_url,
                             const char **url, apr_pool_t *p);

/** Effect: seals anew what an older secret has sealed, some hundred jobs at a time. */
typedef struct {
    const mdl_secret_t *secret;
    char after[32]; /* in, out: the job that was looked at last; "" at first */
    int done;       /* out: there are no more */
} mdl_source_renew_t;
apr_status_t mdl_source_renew(mdl_db_t *db, apr_pool_t *p, mdl_source_renew_t *renew);

#endif
