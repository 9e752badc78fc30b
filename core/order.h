/*
 * An order with what was assigned to it: the customer's right to files.
 */
#ifndef MDL_CORE_ORDER_H
#define MDL_CORE_ORDER_H

#include "core/email.h"
#include "core/refusal.h"
#include "db/db.h"

typedef struct {
    apr_int64_t id;
    const char *storefront_customer_id;
    const char *email; /* these four may be NULL */
    const char *first_name;
    const char *last_name;
    const char *locale;
} mdl_customer_t;

/** A file that an assignment gives. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id;
    const char *filename;
    const char *title;
    const char *content_type; /* NULL, as size and sha256, until ready */
    const char *status;       /* of the asset */
    const char *sha256;
    apr_int64_t size;
    int downloads_used;
    int download_limit; /* with what was granted extra; 0: unlimited */
    apr_time_t updated_at;
} mdl_order_file_t;

typedef struct {
    apr_int64_t id;
    const char *storefront_product_id;
    const char *storefront_variant_id; /* "" for none */
    int quantity;
    const char *status; /* "active", "revoked" */
    apr_int64_t mapping_id;
    const char *download_type;
    apr_time_t expires_at; /* 0: never */
    apr_time_t created_at;
    apr_array_header_t *files; /* mdl_order_file_t * */
} mdl_assignment_t;

typedef struct {
    apr_int64_t id;
    const char *storefront_order_id;
    const char *page_id;
    const char *access_status; /* "active", "held", "revoked", "rejected" */
    const char *access_reason; /* or NULL */
    const char *fraud_decision;
    apr_time_t created_at;
    apr_time_t expires_at; /* when the last assignment's access ends; 0: never */
    mdl_customer_t customer;
    apr_int64_t shop_id;
    const char *shop_name;
    const char *shop_email; /* or NULL */
    mdl_email_state_t email;
    apr_array_header_t *assignments; /* mdl_assignment_t * */
} mdl_order_t;

/** Which order a reading effect is about; exactly one way to name it. */
typedef struct {
    apr_int64_t shop_id; /* with storefront_order_id */
    const char *storefront_order_id;
    const char *page_id;
    apr_int64_t id;
    int default_download_limit;
    mdl_order_t *order; /* out */
} mdl_order_find_t;

/** Effect that reads an order with everything in it: APR_ENOENT when there is none. */
apr_status_t mdl_order_find(mdl_db_t *db, apr_pool_t *p, void *arg);

typedef struct {
    const char *storefront_product_id;
    const char *storefront_variant_id; /* "" for none */
    int quantity;
} mdl_order_item_t;

/**
 * Effect: assigns downloads to an order, all or nothing, making customer and order as needed.
 * What is there already stays.  The delivery email is queued when send_email is set and something
 * was created, or none was queued yet.
 * Refused: 422 product_not_mapped with each item, 400 when the order is another customer's,
 * 409 access_revoked.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    mdl_customer_t customer;         /* without id */
    const apr_array_header_t *items; /* mdl_order_item_t */
    int send_email;
    int fraud_check;
    int default_download_limit;
    const char *mail_host; /* right side of a Message-ID */
    int created;           /* out: number of assignments made */
    mdl_order_t *order;    /* out */
    mdl_refusal_t *refusal;
} mdl_order_assign_t;
apr_status_t mdl_order_assign(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
