/*
 * A shop: what every key, asset, mapping and order belongs to.
 */
#ifndef MDL_CORE_SHOP_SHOP_H
#define MDL_CORE_SHOP_SHOP_H

#include "core/problem.h"
#include "platform/risk.h"
#include "core/shop/staff_address.h"
#include "core/shop/storefront.h"
#include "db/db.h"

typedef enum {
    MDL_SHOP_PENDING, /* not approved yet */
    MDL_SHOP_APPROVED,
    MDL_SHOP_SUSPENDED
} mdl_shop_status_t;
extern const char *const mdl_shop_status_names[];

typedef struct {
    apr_int64_t id;
    const char *name;
    const char *domain;
    const char *email; /* what customers may write to; gets what owners would, if none of them is
                          confirmed and it is; NULL */
    mdl_shop_status_t status;
    apr_time_t created_at;
    const char *sender_name;    /* of its emails; NULL: name */
    const char *reply_to;       /* in them and on the page, in place of email; NULL: email */
    int mail_delay;             /* minutes between an order and its email */
    mdl_risk_t hold_at;         /* the level at which the fraud check holds: medium or high */
    const char *storefront_url; /* NULL: there is no connection */
    apr_time_t blocked_at;      /* 0: it is not blocked */
    const char *block_reason;
    mdl_address_state_t email_state;
} mdl_shop_t;

/** Effect: adds a pending shop, and asks its address to be confirmed.  Refused with 409 when the
 * domain is taken, 400 when faulty. */
typedef struct {
    mdl_shop_t shop; /* in: name, domain, email; out: all */
    mdl_problem_t *problem;
} mdl_shop_add_t;
apr_status_t mdl_shop_add(mdl_db_t *db, apr_pool_t *p, mdl_shop_add_t *add);

/** Effect: sets the status and moves the epoch.  Refused with 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    mdl_shop_status_t status;
    mdl_shop_t *shop; /* out */
    mdl_problem_t *problem;
} mdl_shop_set_status_t;
apr_status_t mdl_shop_set_status(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_status_t *set);

/** Effect: blocks a shop, whatever its status, or ends that, and moves the epoch.  Nothing of a
    blocked shop is served or worked on; all of it stays as it is.  Refused with 400 when the reason
    is faulty, 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    const char *reason; /* NULL: the shop is not blocked any more */
    mdl_shop_t *shop;   /* out */
    mdl_problem_t *problem;
} mdl_shop_block_t;
apr_status_t mdl_shop_block(mdl_db_t *db, apr_pool_t *p, mdl_shop_block_t *block);

/** Effect that reads the ids (apr_int64_t) of the shops that are blocked. */
apr_status_t mdl_shop_list_blocked(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **ids);

/** Effect: changes what a shop's staff decide; another address is asked to be confirmed.  Refused
   with 400 when faulty, 404 when there is no such shop. */
typedef struct {
    apr_int64_t id;
    const char *name;  /* NULL keeps the value, as for all texts below */
    const char *email; /* "" clears it, as for the next two */
    const char *sender_name;
    const char *reply_to;
    int mail_delay;     /* 0 to MDL_SHOP_MAIL_DELAY_MAX; -1 keeps it */
    mdl_risk_t hold_at; /* MDL_RISK_NONE keeps it */
    mdl_storefront_set_t storefront;
    mdl_shop_t *shop; /* out */
    mdl_problem_t *problem;
} mdl_shop_set_t;
apr_status_t mdl_shop_set(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_t *set);

#define MDL_SHOP_NAME_MAX       200 /* bytes */
#define MDL_SHOP_MAIL_DELAY_MAX 60

/** APR_ENOENT when there is none. */
apr_status_t mdl_shop_find(mdl_db_t *db, apr_int64_t id, mdl_shop_t **shop, apr_pool_t *p);

/** Locks a shop until the end of the transaction: changes that must not miss each other. */
apr_status_t mdl_shop_lock(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Adds to the bytes that a shop's assets take, or takes from them.  APR_ENOSPC when they would
   grow beyond what the quota (0: none) leaves. */
apr_status_t mdl_shop_store(mdl_db_t *db, apr_int64_t id, apr_int64_t bytes, apr_int64_t quota,
                            apr_pool_t *p);

/** Reads how many bytes a quota leaves to a shop beside its assets and its open uploads, but for
   the upload except (NULL: none); 0 also when they take more.  Holds until the end of the
   transaction if the shop is locked. */
apr_status_t mdl_shop_room(mdl_db_t *db, apr_int64_t id, const char *except, apr_int64_t quota,
                           apr_int64_t *room, apr_pool_t *p);

/** Effect that reads: every shop (mdl_shop_t *), oldest first, into *(apr_array_header_t **)arg. */
apr_status_t mdl_shop_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **shops);

#endif
