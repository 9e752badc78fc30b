/*
 * What a shop's staff must look after: orders to review, customers who ask for help, failed
 * imports, emails that did not arrive, addresses that were mistyped, license keys that run out or
 * that customers wait for, and webhook endpoints that fail.
 */
#ifndef MDL_CORE_ORDER_ATTENTION_H
#define MDL_CORE_ORDER_ATTENTION_H

#include "core/order/email.h"
#include "core/shop/webhook.h"
#include "db/db.h"

#define MDL_WAITING_MAX 20 /* the most purchases that are counted */

/** An import, or the hashing of an upload, that failed and can be tried again. */
typedef struct {
    const char *job_id;
    apr_int64_t asset_id;
    const char *filename;
    const char *error_code;
    const char *error_message;
    apr_time_t finished_at;
    apr_int64_t waiting; /* purchases that wait for its bytes, up to MDL_WAITING_MAX */
} mdl_failed_import_t;

/** An order whose newest email did not arrive. */
typedef struct {
    const char *storefront_order_id;
    mdl_email_status_t status; /* FAILED, NO_RECIPIENT or BOUNCED */
    const char *to;            /* or NULL, like last_error */
    const char *last_error;
    apr_time_t at; /* when it bounced, or else when it was queued */
} mdl_undelivered_t;

/** An order whose address was probably mistyped, and whose page nobody has opened. */
typedef struct {
    const char *storefront_order_id;
    const char *address;
    const char *meant; /* the address that was probably meant */
    apr_time_t created_at;
} mdl_doubted_t;

/** A license-key tag whose stock is at its threshold, or below. */
typedef struct {
    apr_int64_t id;
    const char *name;
    apr_int64_t available;
    apr_int64_t threshold;
} mdl_low_tag_t;

/** A license-key tag of which purchases wait for keys. */
typedef struct {
    apr_int64_t id;
    const char *name;
    apr_int64_t waiting; /* up to MDL_WAITING_MAX */
} mdl_owed_tag_t;

/** Entries of one kind, the newest first. */
typedef struct {
    apr_array_header_t *found; /* of pointers */
    int more;                  /* whether there are more */
} mdl_attention_list_t;

/**
 * Effect: reads each kind up to a limit.  Failures older than since are left out, and only the
 * newest few hundred failures and tags are looked at.
 */
typedef struct {
    apr_int64_t shop_id;
    apr_time_t since;
    int limit;
    mdl_attention_list_t held;    /* out: mdl_order_line_t * (core/order/search.h) */
    mdl_attention_list_t help;    /* out: mdl_help_request_t * */
    mdl_attention_list_t imports; /* out: mdl_failed_import_t * */
    mdl_attention_list_t emails;  /* out: mdl_undelivered_t * */
    mdl_attention_list_t typos;   /* out: mdl_doubted_t * */
    mdl_attention_list_t tags;    /* out: mdl_low_tag_t * */
    mdl_attention_list_t owed;    /* out: mdl_owed_tag_t * */
    apr_array_header_t *webhooks; /* out: mdl_webhook_t *, that fail or were switched off for it */
} mdl_attention_t;
apr_status_t mdl_attention_read(mdl_db_t *db, apr_pool_t *p, mdl_attention_t *attention);

#endif
