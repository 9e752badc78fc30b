#include "core/shop/storefront.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/url.h"
#include "base/seal.h"

#define PURPOSE         "storefront-token"
#define MAX_URL         400
#define MAX_TOKEN       512
#define CONNECT_LIMIT_S 10
#define TOTAL_LIMIT_S   20
#define MAX_ANSWER      (1024 * 1024)

const mdl_http_policy_t *mdl_storefront_policy(const mdl_settings_t *settings, const char *url,
                                               apr_pool_t *p)
{
    mdl_http_policy_t *policy = mdl_http_policy_for(&settings->storefront, url, p);

    policy->connect_timeout_s = CONNECT_LIMIT_S;
    policy->total_timeout_s = TOTAL_LIMIT_S;
    policy->max_size = MAX_ANSWER;
    return policy;
}

/* The base URL without trailing slashes; NULL: invalid. */
static const char *storefront_base(const mdl_settings_t *settings, const char *url, apr_pool_t *p)
{
    char *base = apr_pstrdup(p, url);
    apr_size_t length = strlen(base);

    while (length > 0 && base[length - 1] == '/') {
        base[--length] = '\0';
    }
    return length <= MAX_URL && strpbrk(base, "?#") == NULL &&
                   mdl_http_url_check(mdl_storefront_policy(settings, base, p), base, NULL, NULL,
                                      p) == MDL_HTTP_OK
               ? base
               : NULL;
}

/* A token becomes a header's value: only visible ASCII. */
static int storefront_token_valid(const char *token)
{
    apr_size_t length = strlen(token);

    for (const char *c = token; *c != '\0'; c++) {
        if (*c <= ' ' || *c >= 0x7f) {
            return 0;
        }
    }
    return length > 0 && length <= MAX_TOKEN;
}

/* Has the URL, so that a changed row can't send the token to another host. */
static const char *storefront_token_owner(apr_int64_t shop_id, const char *url, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT " %s", shop_id, url);
}

apr_status_t mdl_storefront_token(const mdl_secret_t *secret, apr_int64_t shop_id, const char *url,
                                  const char *sealed, const char **token, apr_pool_t *p)
{
    apr_size_t length;

    return mdl_unseal(secret, PURPOSE, storefront_token_owner(shop_id, url, p), sealed, token,
                      &length, p);
}

static apr_status_t storefront_refuse(mdl_problem_t *problem, const char *message)
{
    return mdl_problem_set(problem, 400, "invalid_request", message);
}

static apr_status_t storefront_write(mdl_db_t *db, apr_int64_t shop_id, const char *url,
                                     const char *sealed, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(STOREFRONT_SET, .storefront_url = url, .storefront_token = sealed,
                             .now = apr_time_now(), .id = shop_id));
}

apr_status_t mdl_storefront_set(mdl_db_t *db, apr_int64_t shop_id, const mdl_storefront_set_t *set,
                                const char **url, mdl_problem_t *problem, apr_pool_t *p)
{
    const char *now;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STOREFRONT_OF_SHOP, shop_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    now = mdl_rows_text(row, 0);
    *url = set->url == NULL    ? now
           : *set->url == '\0' ? NULL
                               : storefront_base(set->settings, set->url, p);
    if (set->url != NULL && *set->url == '\0') {
        return set->token == NULL
                   ? storefront_write(db, shop_id, NULL, NULL, p)
                   : storefront_refuse(problem, "A connection that is ended has no token.");
    }
    if (set->url != NULL && *url == NULL) {
        return storefront_refuse(
            problem, "The storefront's URL is the base of its Admin API, such as "
                     "https://shop.example: a host name without user, query or fragment, over "
                     "https on port 443, unless DownloadsStorefrontAllowHTTP or "
                     "DownloadsStorefrontAllowPort opens more.");
    }
    if (set->token == NULL) {
        return *url == NULL || (now != NULL && strcmp(now, *url) == 0)
                   ? APR_SUCCESS
                   : storefront_refuse(problem, "A new storefront needs its access token too.");
    }
    if (*url == NULL) {
        return storefront_refuse(problem,
                                 "The shop has no storefront yet: give its URL with the token.");
    }
    if (!storefront_token_valid(set->token)) {
        return storefront_refuse(problem, "An access token is one line of up to 512 visible ASCII "
                                          "characters.");
    }
    return storefront_write(db, shop_id, *url,
                            mdl_seal(set->secret, PURPOSE, storefront_token_owner(shop_id, *url, p),
                                     set->token, strlen(set->token), p),
                            p);
}

apr_status_t mdl_storefront_renew(mdl_db_t *db, apr_pool_t *p, mdl_storefront_renew_t *renew)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(STOREFRONT_TOKENS));

    renew->renewed = renew->lost = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t shop_id = MDL_INT(rows, storefront_tokens, id);
        const char *url = MDL_TEXT(rows, storefront_tokens, storefront_url), *renewed;

        if (mdl_seal_renew(renew->secret, PURPOSE, storefront_token_owner(shop_id, url, p),
                           MDL_TEXT(rows, storefront_tokens, storefront_token), &renewed,
                           p) != APR_SUCCESS) {
            renew->lost++;
        } else if (renewed != NULL) {
            renew->renewed++;
            rv = renew->only_count ? APR_SUCCESS : storefront_write(db, shop_id, url, renewed, p);
        }
    }
    return rv;
}
