/*
 * The data key, with which license keys are sealed.  It lies in the database, sealed with the
 * server's secret, so that replacing the secret seals nothing else anew.
 */
#ifndef MDL_CORE_SHOP_DATA_KEY_H
#define MDL_CORE_SHOP_DATA_KEY_H

#include "base/crypto.h"
#include "db/db.h"

/** Opens the data key as it lies in the database.  APR_EINVAL when none of the secrets has sealed
   it, which is logged. */
apr_status_t mdl_data_key_open(const mdl_secret_t *secret, const char *sealed, mdl_secret_t **key,
                               apr_pool_t *p);

/** Reads the data key, and makes it where there is none yet; for the use in a transaction.
   APR_EINVAL as above. */
apr_status_t mdl_data_key_get(mdl_db_t *db, const mdl_secret_t *secret, mdl_secret_t **key,
                              apr_pool_t *p);

/** Effect: seals the data key anew if an older secret has sealed it. */
typedef struct {
    const mdl_secret_t *secret;
    int only_count;      /* and changes nothing */
    apr_int64_t renewed; /* out: 0 or 1 */
    apr_int64_t lost;    /* out: 1 if none of the secrets opens it */
} mdl_data_key_renew_t;
apr_status_t mdl_data_key_renew(mdl_db_t *db, apr_pool_t *p, mdl_data_key_renew_t *renew);

#endif
