/*
 * Assigning downloads to an order.
 */
#ifndef MDL_CORE_ORDER_ASSIGNMENT_H
#define MDL_CORE_ORDER_ASSIGNMENT_H

#include "core/order/fraud.h"
#include "core/order/order.h"

typedef struct {
    const char *storefront_product_id;
    const char *storefront_variant_id; /* "" for none */
    int quantity;
} mdl_order_item_t;

/**
 * Effect: assigns downloads to an order, all or nothing, making customer and order as needed, and
 * claims the license keys that belong to them.  What is there already stays.  The delivery email is
 * queued when send_email is set and something was created, or none was queued yet; while the order
 * is held, by its fraud check now or before, it and the keys wait for the approval.  Adds the event
 * "assigned" when anything was made or queued.
 * Refused: 422 product_not_mapped with each item, 400 when the order is another customer's,
 * 409 access_revoked.  What the request does not tell is looked up at the shop's storefront, where
 * it has one: the customer for an email, unless the request tells of the customer, and the order's
 * risk for the fraud check.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    mdl_customer_t customer;         /* without id */
    int customer_given;              /* whether the request tells of the customer */
    const apr_array_header_t *items; /* mdl_order_item_t */
    int send_email;
    int fraud_check;
    const mdl_fraud_rules_t *fraud_rules;
    const char *client_ip; /* whose order it is, as mdl_address_text writes it; NULL keeps it */
    int default_download_limit;
    const char *mail_host; /* right side of a Message-ID */
    const char *key_id;    /* the API key that asks */
    int created;           /* out: number of assignments made */
    mdl_order_t *order;    /* out */
    mdl_problem_t *problem;
} mdl_order_assign_t;
apr_status_t mdl_order_assign(mdl_db_t *db, apr_pool_t *p, mdl_order_assign_t *assign);

#endif
