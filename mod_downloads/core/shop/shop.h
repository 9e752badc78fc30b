/*
 * A shop, to which every key, asset, mapping and order belongs.
 */
#ifndef MDL_CORE_SHOP_SHOP_H
#define MDL_CORE_SHOP_SHOP_H

#include "core/problem.h"
#include "platform/risk.h"
#include "core/shop/brand.h"
#include "core/shop/email_texts.h"
#include "core/shop/logo.h"
#include "core/shop/staff_address.h"
#include "core/shop/storefront.h"
#include "db/db.h"

typedef enum {
    MDL_SHOP_PENDING, /* not approved yet */
    MDL_SHOP_APPROVED,
    MDL_SHOP_SUSPENDED
} mdl_shop_status_t;
extern const char *const mdl_shop_status_names[];

/** Whether a shop's customers may ask it for help (core/order/help.h). */
typedef enum {
    MDL_SHOP_HELP_OFF,
    MDL_SHOP_HELP_ON,
    MDL_SHOP_HELP_FIRST /* an order's first request may be granted without the shop */
} mdl_shop_help_t;
extern const char *const mdl_shop_help_names[];

typedef struct {
    apr_int64_t id;
    const char *name;
    const char *domain;
    const char *email; /* for customers to write to; or NULL.  If it is confirmed and no owner is,
                          it gets the owners' emails */
    mdl_shop_status_t status;
    apr_time_t created_at;
    const char *sender_name;    /* of emails to customers; NULL: name */
    const char *reply_to;       /* of these emails, and on the page instead of email; NULL: email */
    const char *withdrawal_url; /* where customers withdraw from their contract; or NULL */
    int mail_delay;             /* minutes between an order and its email */
    int download_limit;         /* of new purchases whose mapping has none, 0: unlimited; -1: the
                                   service's */
    int access_days;            /* likewise; -1: for ever */
    mdl_risk_t hold_at;         /* the level at which the fraud check holds: medium or high */
    int declaration; /* whether new orders wait for their customer's (core/order/declaration.h) */
    mdl_shop_help_t help;
    const char *storefront_url; /* NULL: no connection */
    apr_time_t blocked_at;      /* 0: not blocked */
    const char *block_reason;
    mdl_address_state_t email_state;
    mdl_brand_t brand;
    mdl_logo_t logo;
} mdl_shop_t;

/** Effect: adds a pending shop, and asks to confirm its address.  Refused: 409 when the domain is
    taken, 400 when a value is invalid. */
typedef struct {
    mdl_shop_t shop; /* in: name, domain, email; out: all */
    mdl_problem_t *problem;
} mdl_shop_add_t;
apr_status_t mdl_shop_add(mdl_db_t *db, apr_pool_t *p, mdl_shop_add_t *add);

/** Effect: sets the status and moves the epoch.  Refused: 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    mdl_shop_status_t status;
    mdl_shop_t *shop; /* out */
    mdl_problem_t *problem;
} mdl_shop_set_status_t;
apr_status_t mdl_shop_set_status(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_status_t *set);

/** Effect: blocks a shop, whatever its status, or unblocks it, and moves the epoch.  Nothing of a
    blocked shop is served, and none of its jobs run; its data stay.  Refused: 400 when the reason
    is invalid, 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    const char *reason; /* NULL: unblocks the shop */
    mdl_shop_t *shop;   /* out */
    mdl_problem_t *problem;
} mdl_shop_block_t;
apr_status_t mdl_shop_block(mdl_db_t *db, apr_pool_t *p, mdl_shop_block_t *block);

/** Effect: reads the ids (apr_int64_t) of the blocked shops. */
apr_status_t mdl_shop_list_blocked(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **ids);

/** Effect: changes a shop's settings; a new address is asked to be confirmed.  Refused: 400 when a
    value is invalid, 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    const char *name;  /* NULL keeps the value, like all texts below */
    const char *email; /* "" clears it, like the next five */
    const char *sender_name;
    const char *reply_to;
    const char *withdrawal_url;
    const char *accent;
    const char *languages;                /* tags, as mdl_language_list reads them */
    const mdl_email_texts_t *email_texts; /* NULL keeps all */
    int mail_delay;                       /* 0 to MDL_SHOP_MAIL_DELAY_MAX; -1 keeps it */
    mdl_risk_t hold_at;                   /* MDL_RISK_NONE keeps it */
    const int *download_limit; /* as in mdl_shop_t, up to MDL_SHOP_DOWNLOADS_MAX; NULL keeps it */
    const int *access_days;    /* up to MDL_SHOP_DAYS_MAX; NULL keeps it */
    const int *declaration;    /* NULL keeps it */
    const int *help;           /* mdl_shop_help_t; NULL keeps it */
    mdl_storefront_set_t storefront;
    mdl_shop_t *shop; /* out */
    mdl_problem_t *problem;
} mdl_shop_set_t;
apr_status_t mdl_shop_set(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_t *set);

#define MDL_SHOP_NAME_MAX       200 /* characters */
#define MDL_SHOP_URL_MAX        2048
#define MDL_SHOP_MAIL_DELAY_MAX 60
#define MDL_SHOP_DOWNLOADS_MAX  1000000
#define MDL_SHOP_DAYS_MAX       36500

#define MDL_SHOP_URL_RULE                                                                          \
    "Give the whole https address of a page, with at most 2,048 characters and no password."

/** Whether an address fits that rule. */
int mdl_shop_url_valid(const char *url);

/** Reads a shop; APR_ENOENT when there is no such shop. */
apr_status_t mdl_shop_find(mdl_db_t *db, apr_int64_t id, mdl_shop_t **shop, apr_pool_t *p);

/** Locks a shop until the end of the transaction, for changes that must see each other. */
apr_status_t mdl_shop_lock(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** What a shop stores more, or, if negative, less. */
typedef struct {
    int files;                /* assets that have bytes */
    apr_int64_t bytes;        /* of these */
    apr_int64_t former_bytes; /* of their former versions, which are kept where there is room */
} mdl_shop_stored_t;

/** Counts it.  APR_ENOSPC when the bytes of assets would exceed the quota (0: none), or, where
   those of former versions grow, all together would. */
apr_status_t mdl_shop_store(mdl_db_t *db, apr_int64_t id, const mdl_shop_stored_t *more,
                            apr_int64_t quota, apr_pool_t *p);

typedef struct {
    apr_int64_t files;        /* assets that have bytes */
    apr_int64_t bytes;        /* of these */
    apr_int64_t former_bytes; /* of their former versions */
    apr_int64_t taken;        /* bytes of the quota: those of assets, and what open uploads take */
} mdl_shop_storage_t;

/** Reads what a shop stores; of open uploads except is not counted (NULL: all are). */
apr_status_t mdl_shop_storage(mdl_db_t *db, apr_int64_t id, const char *except,
                              mdl_shop_storage_t *storage, apr_pool_t *p);

/** Reads how many bytes of a quota are left after a shop's assets and open uploads; the upload
    except is not counted (NULL: all are); 0 also when they exceed the quota.  With the shop locked,
    it does not shrink until the end of the transaction. */
apr_status_t mdl_shop_room(mdl_db_t *db, apr_int64_t id, const char *except, apr_int64_t quota,
                           apr_int64_t *room, apr_pool_t *p);

/** Effect: reads all shops (mdl_shop_t *), oldest first. */
apr_status_t mdl_shop_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **shops);

#endif
