#include "core/shop/data_key.h"

#include "base/log.h"
#include "base/seal.h"

#define PURPOSE "data-key"
#define OWNER   ""
#define LENGTH  32 /* bytes */

apr_status_t mdl_data_key_open(const mdl_secret_t *secret, const char *sealed, mdl_secret_t **key,
                               apr_pool_t *p)
{
    const char *bytes;
    apr_size_t length;

    if (mdl_unseal(secret, PURPOSE, OWNER, sealed, &bytes, &length, p) != APR_SUCCESS ||
        length != LENGTH) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0130: license keys can't be opened, nor added: their data key was sealed with "
                "another secret than those of DownloadsSecretFile; put that file back behind the "
                "new one");
        return APR_EINVAL;
    }
    *key = mdl_secret_make(bytes, length, p);
    return APR_SUCCESS;
}

/* *sealed is NULL if there is none. */
static apr_status_t data_key_read(mdl_db_t *db, const char **sealed, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(DATA_KEY));

    *sealed = rv == APR_SUCCESS ? mdl_rows_text(row, 0) : NULL;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_data_key_find(mdl_db_t *db, const mdl_secret_t *secret, mdl_secret_t **key,
                               apr_pool_t *p)
{
    const char *sealed;
    apr_status_t rv = data_key_read(db, &sealed, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return sealed != NULL ? mdl_data_key_open(secret, sealed, key, p) : APR_ENOENT;
}

static apr_status_t data_key_make(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p)
{
    unsigned char bytes[LENGTH];

    mdl_random(bytes, sizeof bytes);
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(DATA_KEY_INSERT, mdl_seal(secret, PURPOSE, OWNER, bytes, sizeof bytes, p)));
}

apr_status_t mdl_data_key_get(mdl_db_t *db, const mdl_secret_t *secret, mdl_secret_t **key,
                              apr_pool_t *p)
{
    const char *sealed;
    apr_status_t rv = data_key_read(db, &sealed, p);

    /* If two transactions make it at once, the second finds what the first has committed. */
    if (rv == APR_SUCCESS && sealed == NULL && (rv = data_key_make(db, secret, p)) == APR_SUCCESS) {
        rv = data_key_read(db, &sealed, p);
    }
    return rv == APR_SUCCESS ? mdl_data_key_open(secret, sealed, key, p) : rv;
}

apr_status_t mdl_data_key_renew(mdl_db_t *db, apr_pool_t *p, mdl_data_key_renew_t *renew)
{
    const char *sealed, *renewed;
    apr_status_t rv = data_key_read(db, &sealed, p);

    renew->renewed = renew->lost = 0;
    if (rv != APR_SUCCESS || sealed == NULL) {
        return rv;
    }
    if (mdl_seal_renew(renew->secret, PURPOSE, OWNER, sealed, &renewed, p) != APR_SUCCESS) {
        renew->lost = 1;
    } else if (renewed != NULL) {
        renew->renewed = 1;
        if (!renew->only_count) {
            rv = mdl_db_exec(db, NULL, p, MDL_Q(DATA_KEY_SET, renewed));
        }
    }
    return rv;
}
