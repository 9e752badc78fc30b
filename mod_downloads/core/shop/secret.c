#include "core/shop/secret.h"

#include <apr_time.h>

#include "core/shop/data_key.h"
#include "core/shop/storefront.h"

#define RECENT apr_time_from_sec(30 * 86400)

apr_status_t mdl_secret_note(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_SECRET_NOTE, NULL, p,
                       MDL_ARGS(mdl_text(mdl_secret_id(secret)), mdl_int(apr_time_now())));
}

/* The first column of the only row; 0 for none. */
static apr_status_t secret_count(mdl_db_t *db, mdl_statement_t statement, apr_int64_t *count,
                                 apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, statement, &row, p, args, nargs);

    *count = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_secret_status(mdl_db_t *db, apr_pool_t *p, mdl_secret_status_t *status)
{
    mdl_arg_t id = mdl_text(mdl_secret_id(status->secret));
    apr_time_t now = apr_time_now();
    mdl_storefront_renew_t tokens = {.secret = status->secret, .only_count = 1};
    mdl_data_key_renew_t data_key = {.secret = status->secret, .only_count = 1};
    apr_status_t rv;

    if ((rv = secret_count(db, MDL_Q_SECRET_SINCE, &status->since, p, MDL_ARGS(id))) !=
            APR_SUCCESS ||
        (rv = secret_count(db, MDL_Q_API_KEYS_UNSIGNED, &status->keys, p,
                           MDL_ARGS(mdl_int(now), id))) != APR_SUCCESS ||
        (rv = secret_count(db, MDL_Q_PAGES_SENT, &status->pages, p,
                           MDL_ARGS(mdl_int(0), mdl_int(status->since)))) != APR_SUCCESS ||
        (rv = secret_count(db, MDL_Q_PAGES_SENT, &status->recent, p,
                           MDL_ARGS(mdl_int(now - RECENT), mdl_int(status->since)))) !=
            APR_SUCCESS ||
        (rv = mdl_storefront_renew(db, p, &tokens)) != APR_SUCCESS ||
        (rv = mdl_data_key_renew(db, p, &data_key)) != APR_SUCCESS) {
        return rv;
    }
    status->tokens = tokens.renewed + tokens.lost;
    status->data_keys = data_key.renewed + data_key.lost;
    return APR_SUCCESS;
}

apr_status_t mdl_secret_retire(mdl_db_t *db, apr_pool_t *p, mdl_secret_retire_t *retire)
{
    mdl_storefront_renew_t tokens = {.secret = retire->secret};
    mdl_data_key_renew_t data_key = {.secret = retire->secret};
    mdl_arg_t now = mdl_int(apr_time_now());
    apr_status_t rv = mdl_db_exec(db, MDL_Q_API_KEYS_REVOKE_UNSIGNED, &retire->keys, p,
                                  MDL_ARGS(now, now, mdl_text(mdl_secret_id(retire->secret))));

    if (rv == APR_SUCCESS && retire->keys > 0) {
        rv = mdl_db_exec(db, MDL_Q_EPOCH_BUMP, NULL, p, MDL_NO_ARGS);
    }
    if (rv == APR_SUCCESS && (rv = mdl_storefront_renew(db, p, &tokens)) == APR_SUCCESS) {
        rv = mdl_data_key_renew(db, p, &data_key);
    }
    retire->tokens = tokens.renewed;
    retire->lost = tokens.lost;
    retire->data_keys = data_key.renewed;
    retire->lost_data_keys = data_key.lost;
    return rv;
}
