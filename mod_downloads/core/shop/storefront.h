/*
 * A shop's connection to its storefront, which knows an order's customer and risk
 * (platform/platform.h).
 */
#ifndef MDL_CORE_SHOP_STOREFRONT_H
#define MDL_CORE_SHOP_STOREFRONT_H

#include "base/crypto.h"
#include "base/http/post.h"
#include "core/problem.h"
#include "core/settings/settings.h"
#include "db/db.h"

/** A change of a shop's connection. */
typedef struct {
    const char *url;   /* the base, "https://shop.example"; NULL keeps it, "" ends the connection */
    const char *token; /* NULL keeps it; a new URL needs one */
    const mdl_secret_t *secret; /* seals the token */
    const mdl_settings_t *settings;
} mdl_storefront_set_t;

/**
 * Changes the connection of a shop, in the caller's transaction; *url gets the base URL after that,
 * or NULL.  Refused: 400 when the URL or the token is invalid.
 */
apr_status_t mdl_storefront_set(mdl_db_t *db, apr_int64_t shop_id, const mdl_storefront_set_t *set,
                                const char **url, mdl_problem_t *problem, apr_pool_t *p);

/**
 * Opens a sealed token.  APR_EINVAL when it belongs to another shop or URL, or was sealed with
 * another secret.
 */
apr_status_t mdl_storefront_token(const mdl_secret_t *secret, apr_int64_t shop_id, const char *url,
                                  const char *sealed, const char **token, apr_pool_t *p);

/** Where requests may go: only to the host of url, by https at a public address, or as
    settings->storefront allows besides. */
const mdl_http_policy_t *mdl_storefront_policy(const mdl_settings_t *settings, const char *url,
                                               apr_pool_t *p);

/** Effect: seals the tokens again that an older secret has sealed. */
typedef struct {
    const mdl_secret_t *secret;
    int only_count;      /* changes nothing */
    apr_int64_t renewed; /* out */
    apr_int64_t lost;    /* out: tokens that none of the secrets opens */
} mdl_storefront_renew_t;
apr_status_t mdl_storefront_renew(mdl_db_t *db, apr_pool_t *p, mdl_storefront_renew_t *renew);

#endif
