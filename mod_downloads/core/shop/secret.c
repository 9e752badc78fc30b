#include "core/shop/secret.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "core/shop/data_key.h"
#include "core/shop/storefront.h"

#define RECENT apr_time_from_sec(30 * 86400)

apr_status_t mdl_secret_note(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(SECRET_NOTE, .id = mdl_secret_id(secret), .now = apr_time_now()));
}

static int secret_has_id(const mdl_secret_t *secret, const char *id)
{
    for (int i = 0; i < mdl_secret_count(secret); i++) {
        if (strcmp(mdl_secret_id(mdl_secret_at(secret, i)), id) == 0) {
            return 1;
        }
    }
    return 0;
}

static apr_status_t keys_count(mdl_db_t *db, mdl_secret_signed_t *of, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(API_KEYS_BY_SECRET, apr_time_now()));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        *(secret_has_id(of->secret, MDL_TEXT(rows, api_keys_by_secret, secret_id))
              ? &of->keys
              : &of->strange) += MDL_INT(rows, api_keys_by_secret, keys);
    }
    return rv;
}

/* Whether secrets are on record for this database, but none of ours. */
static apr_status_t secrets_are_strange(mdl_db_t *db, const mdl_secret_t *secret, int *strange,
                                        apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(SECRETS));
    int known = 0, any = 0;

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        known |= secret_has_id(secret, mdl_rows_text(rows, 0));
        any = 1;
    }
    *strange = any && !known;
    return rv;
}

apr_status_t mdl_secret_signed(mdl_db_t *db, apr_pool_t *p, mdl_secret_signed_t *of)
{
    mdl_storefront_renew_t tokens = {.secret = of->secret, .only_count = 1};
    mdl_data_key_renew_t data_key = {.secret = of->secret, .only_count = 1};
    apr_status_t rv, has_orders;
    mdl_rows_t *row;
    int strange;

    of->keys = of->strange = 0;
    if ((rv = keys_count(db, of, p)) != APR_SUCCESS ||
        (rv = secrets_are_strange(db, of->secret, &strange, p)) != APR_SUCCESS ||
        (rv = mdl_storefront_renew(db, p, &tokens)) != APR_SUCCESS ||
        (rv = mdl_data_key_renew(db, p, &data_key)) != APR_SUCCESS) {
        return rv;
    }
    has_orders = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_EXISTS));
    of->is_other = of->keys == 0 && (of->strange > 0 || (strange && has_orders == APR_SUCCESS));
    of->lost_tokens = tokens.lost;
    of->lost_data_key = data_key.lost > 0;
    return has_orders == APR_ENOENT ? APR_SUCCESS : has_orders;
}

const char *mdl_secret_trouble(const mdl_secret_signed_t *of, apr_pool_t *p)
{
    if (of->is_other) {
        return apr_psprintf(p,
                            "DownloadsSecretFile names another secret than the one that has signed "
                            "this database's keys and pages: every link that was emailed gets 404, "
                            "and of the live API keys get 401: %" APR_INT64_T_FMT
                            "; put the right file back, or the database that belongs to this one; "
                            "if the right one is lost for good, a new key of \"downloadsctl key "
                            "create\" makes this one the database's",
                            of->strange);
    }
    if (of->strange > 0) {
        return apr_psprintf(p,
                            "live API keys that another secret has signed, and that get "
                            "401: %" APR_INT64_T_FMT
                            "; name its file behind the new one in DownloadsSecretFile, or revoke "
                            "them by \"downloadsctl key revoke\"",
                            of->strange);
    }
    if (of->lost_data_key) {
        return "license keys can't be opened, nor added: another secret has sealed their data key; "
               "name its file behind the new one in DownloadsSecretFile";
    }
    return of->lost_tokens > 0
               ? apr_psprintf(p,
                              "storefronts' tokens that another secret has sealed, and that can't "
                              "be opened: %" APR_INT64_T_FMT
                              "; name its file behind the new one in DownloadsSecretFile, or set "
                              "them again by \"downloadsctl shop set\"",
                              of->lost_tokens)
               : NULL;
}

/* The first column of the only row; 0: no row. */
static apr_status_t secret_count(mdl_db_t *db, apr_int64_t *count, apr_pool_t *p, mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    *count = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_secret_status(mdl_db_t *db, apr_pool_t *p, mdl_secret_status_t *status)
{
    const char *id = mdl_secret_id(status->secret);
    apr_time_t now = apr_time_now();
    mdl_storefront_renew_t tokens = {.secret = status->secret, .only_count = 1};
    mdl_data_key_renew_t data_key = {.secret = status->secret, .only_count = 1};
    apr_status_t rv;

    if ((rv = secret_count(db, &status->since, p, MDL_Q(SECRET_SINCE, id))) != APR_SUCCESS ||
        (rv = secret_count(db, &status->keys, p, MDL_Q(API_KEYS_UNSIGNED, .now = now, .id = id))) !=
            APR_SUCCESS ||
        (rv = secret_count(db, &status->pages, p,
                           MDL_Q(PAGES_SENT, .since = 0, .until = status->since))) != APR_SUCCESS ||
        (rv = secret_count(db, &status->recent, p,
                           MDL_Q(PAGES_SENT, .since = now - RECENT, .until = status->since))) !=
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
    apr_status_t rv = mdl_db_exec(db, &retire->keys, p,
                                  MDL_Q(API_KEYS_REVOKE_UNSIGNED, .now = apr_time_now(),
                                        .secret_id = mdl_secret_id(retire->secret)));

    if (rv == APR_SUCCESS && retire->keys > 0) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP));
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
