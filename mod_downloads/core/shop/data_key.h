/*
 * The data key, which seals license keys.  The database has it, sealed with the server's secret: so
 * a new secret only requires the data key to be sealed again.
 */
#ifndef MDL_CORE_SHOP_DATA_KEY_H
#define MDL_CORE_SHOP_DATA_KEY_H

#include "base/crypto.h"
#include "db/db.h"

/** Opens the sealed data key.  APR_EINVAL, and a line in the log, when none of the secrets has
    sealed it. */
apr_status_t mdl_data_key_open(const mdl_secret_t *secret, const char *sealed, mdl_secret_t **key,
                               apr_pool_t *p);

/** Reads the data key.  APR_ENOENT when there is none yet, APR_EINVAL as above. */
apr_status_t mdl_data_key_find(mdl_db_t *db, const mdl_secret_t *secret, mdl_secret_t **key,
                               apr_pool_t *p);

/** Reads the data key, or makes it if there is none yet, in the caller's transaction.  APR_EINVAL
    as above. */
apr_status_t mdl_data_key_get(mdl_db_t *db, const mdl_secret_t *secret, mdl_secret_t **key,
                              apr_pool_t *p);

/** Effect: seals the data key again if an older secret has sealed it. */
typedef struct {
    const mdl_secret_t *secret;
    int only_count;      /* changes nothing */
    apr_int64_t renewed; /* out: 0 or 1 */
    apr_int64_t lost;    /* out: 1 if none of the secrets opens it */
} mdl_data_key_renew_t;
apr_status_t mdl_data_key_renew(mdl_db_t *db, apr_pool_t *p, mdl_data_key_renew_t *renew);

#endif
