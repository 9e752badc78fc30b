/*
 * The source of an import.  Its query may be a credential, as in a pre-signed URL, so only the job
 * has it, sealed, until the job has succeeded; nobody is shown the query.
 */
#ifndef MDL_CORE_JOB_SOURCE_H
#define MDL_CORE_JOB_SOURCE_H

#include "base/crypto.h"
#include "db/db.h"

/** A URL as it is shown: with "***" for its query, if any. */
const char *mdl_source_shown(const char *url, apr_pool_t *p);

/** Whether a shown URL is complete. */
int mdl_source_is_whole(const char *shown);

/** A URL with its query sealed, for mdl_job_t.source_url. */
const char *mdl_source_seal(const mdl_secret_t *secret, const char *job_id, const char *url,
                            apr_pool_t *p);

/** Undoes mdl_source_seal; APR_EINVAL when none of the secrets has sealed the query. */
apr_status_t mdl_source_open(const mdl_secret_t *secret, const char *job_id, const char *source_url,
                             const char **url, apr_pool_t *p);

/** Effect: seals again what an older secret has sealed, a few hundred jobs at a time. */
typedef struct {
    const mdl_secret_t *secret;
    char after[32]; /* in and out: the last job so far; "" at first */
    int done;       /* out: whether there are no more */
} mdl_source_renew_t;
apr_status_t mdl_source_renew(mdl_db_t *db, apr_pool_t *p, mdl_source_renew_t *renew);

#endif
