/*
 * Assigning downloads to an order.
 */
#ifndef MDL_CORE_ORDER_ASSIGNMENT_H
#define MDL_CORE_ORDER_ASSIGNMENT_H

#include "core/order/fraud.h"
#include "core/order/order.h"
#include "core/order/order_size.h"

/** The largest quantity of an item. */
#define MDL_ORDER_QUANTITY_MAX 1000

typedef struct {
    const char *storefront_product_id;
    const char *storefront_variant_id; /* "" for none */
    const char *title;                 /* of the product; NULL: the mapping's */
    int quantity;                      /* 1 or more */
    int quantity_given; /* whether the request gives it: it changes earlier assignments, too */
    int index;          /* in the request */
} mdl_order_item_t;

/** What becomes of an item that no active mapping serves: the request is refused, or the item is
    left out. */
typedef enum { MDL_UNMAPPED_REFUSE, MDL_UNMAPPED_SKIP } mdl_unmapped_t;
extern const char *const mdl_unmapped_names[];

/**
 * Effect: assigns downloads to an order, all or nothing.  Creates the customer and the order as
 * needed, and claims the license keys that belong to the downloads.  Existing assignments stay as
 * they are, unless the request gives a quantity.  The delivery email is queued if send_email is set
 * and either something was created or no email was queued before.  While a fraud check holds the
 * order, the email and the keys wait for approval.  Adds the timeline entry "assigned" when
 * anything was created or queued.
 *
 * A shop's storefront, if it has one, is asked for what the request lacks: the customer's address
 * for the email, unless the request has any customer data, and the order's risk for the fraud
 * check.
 *
 * An order moves to another customer with the same address, because storefronts merge customers.
 *
 * With MDL_UNMAPPED_SKIP items without a mapping are left out.  If that leaves none, the order and
 * the customer are stored all the same, but nothing is checked, looked up or sent.
 *
 * Refused: 422 product_not_mapped with a detail for each item; 409 other_customer when the order's
 * customer has another address, or none; 404 order_not_found, 409
 * order_exists; 412 precondition_failed; 409
 * access_revoked, also for a new quantity of a revoked assignment; 422 too_many_items,
 * too_many_files, too_many_links and too_many_license_keys when the order would exceed a limit.
 */
typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const apr_array_header_t *versions; /* of the order, as in mdl_entity_ref_t */
    int must_exist;                     /* whether a new order is refused */
    int must_be_new;                    /* whether an earlier one is */
    int name_given;                     /* whether the request has a name */
    const char *name;                   /* of the order; NULL: none */
    mdl_customer_t customer;            /* without id; without number: the order's, or a guest */
    int customer_given;                 /* whether the request has data of the customer */
    unsigned customer_cleared;          /* MDL_CUSTOMER_…: members that are null in it */
    const apr_array_header_t *items;    /* mdl_order_item_t */
    mdl_unmapped_t unmapped;
    int no_license_keys; /* the downloads come without their license keys, for good */
    int send_email;
    int fraud_check;
    const mdl_fraud_rules_t *fraud_rules;
    const char *client_ip; /* as mdl_address_text writes it; NULL keeps the stored one */
    int default_download_limit;
    const char *mail_host;       /* right side of a Message-ID */
    const char *key_id;          /* the API key that asks; NULL: user asks */
    const char *user;            /* the member */
    int created;                 /* out: number of assignments made */
    int is_new;                  /* out: whether the order was made */
    apr_array_header_t *skipped; /* out: const mdl_order_item_t *, the items left out */
    mdl_order_t *order;          /* out */
    mdl_problem_t *problem;
} mdl_order_assign_t;
apr_status_t mdl_order_assign(mdl_db_t *db, apr_pool_t *p, mdl_order_assign_t *assign);

#endif
