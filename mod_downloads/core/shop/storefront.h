/*
 * A shop's connection to its storefront, whose Admin GraphQL API (Shopify's shape) knows the
 * customer of an order and how risky the order looks.
 */
#ifndef MDL_CORE_SHOP_STOREFRONT_H
#define MDL_CORE_SHOP_STOREFRONT_H

#include "base/crypto.h"
#include "base/http/post.h"
#include "core/problem.h"
#include "core/settings/settings.h"
#include "core/shop/risk.h"
#include "db/db.h"

/* A version is served for a year; from then on the oldest that is served answers for it. */
#define MDL_STOREFRONT_API "2026-10"

/** A change of a shop's connection. */
typedef struct {
    const char *url;   /* the base, "https://shop.example"; NULL keeps it, "" ends the connection */
    const char *token; /* NULL keeps it; a new URL needs one */
    const mdl_secret_t *secret; /* seals the token */
    const mdl_settings_t *settings;
} mdl_storefront_set_t;

/**
 * Changes the connection of a shop, in the transaction of its caller; *url gets the base URL that
 * stands then, or NULL.  Refused with 400 when URL or token can't be used.
 */
apr_status_t mdl_storefront_set(mdl_db_t *db, apr_int64_t shop_id, const mdl_storefront_set_t *set,
                                const char **url, mdl_problem_t *problem, apr_pool_t *p);

/**
 * Opens a sealed token.  APR_EINVAL when it belongs to another shop or URL, or was sealed with
 * another secret.
 */
apr_status_t mdl_storefront_token(const mdl_secret_t *secret, apr_int64_t shop_id, const char *url,
                                  const char *sealed, const char **token, apr_pool_t *p);

/** Where a call may go: the host of url alone, by https at a public address, or as
    settings->storefront allows besides. */
const mdl_http_policy_t *mdl_storefront_policy(const mdl_settings_t *settings, const char *url,
                                               apr_pool_t *p);

/** Makes the request that asks for a customer and, with_order, for an order; both ids are digits.
 */
void mdl_storefront_ask(mdl_http_post_request_t *request, const char *url, const char *token,
                        const char *customer_id, const char *order_id, int with_order,
                        apr_pool_t *p);

/** What a storefront knows; NULL for what it does not, and for what can't be used. */
typedef struct {
    const char *email; /* one that can be written to */
    const char *first_name;
    const char *last_name;
    const char *locale;
    const char *client_ip; /* as mdl_address_text writes it */
    int rated;             /* whether it knows the order's risk */
    mdl_risk_t risk;
} mdl_storefront_found_t;

typedef enum {
    MDL_STOREFRONT_ANSWERED,
    MDL_STOREFRONT_LATER, /* to be asked again */
    MDL_STOREFRONT_REFUSED
} mdl_storefront_outcome_t;

typedef struct {
    mdl_storefront_outcome_t outcome;
    const char *code;                /* NULL when ANSWERED, like the message */
    const char *message;             /* a sentence that contains nothing of the response */
    apr_interval_time_t retry_after; /* 0: not given */
    mdl_storefront_found_t found;    /* in part also when it was not ANSWERED */
} mdl_storefront_response_t;

/** Reads a response, none of which is trusted. */
void mdl_storefront_read(mdl_storefront_response_t *response, const mdl_http_response_t *http,
                         int with_order, apr_pool_t *p);

/** Effect: seals the tokens anew that an older secret has sealed. */
typedef struct {
    const mdl_secret_t *secret;
    int only_count;      /* and changes nothing */
    apr_int64_t renewed; /* out */
    apr_int64_t lost;    /* out: those that none of the secrets opens */
} mdl_storefront_renew_t;
apr_status_t mdl_storefront_renew(mdl_db_t *db, apr_pool_t *p, mdl_storefront_renew_t *renew);

#endif
