/*
 * The fraud check of an order (contract, section 6).  What it sees are signals, each with a level:
 * none, low, medium or high.  The highest is the order's level, and a shop holds its orders at
 * medium or at high.
 *
 *   storefront_risk    the storefront rates the order: its level
 *   customer_orders    other orders of the customer within the window: medium at the number that is
 *   address_orders     set, high at twice that; likewise those with the same email address, and
 *   ip_orders          those from the same IP address (IPv6: the same network of 64 bits)
 *   revoked_orders     other orders of the customer that were revoked or rejected, at any time:
 *                      medium, from the second on high
 *   disposable_domain  the address's domain is in a file of the operator's: medium
 *   blocked_domain     likewise: high
 *   risk_pending       the storefront will be asked: none, but the order is held until then
 *   risk_unknown       it was asked in vain: low
 *
 * Only orders of the same shop are counted, and never the order itself.
 *
 * Who has approved an order has decided: it is not checked again.  Otherwise a check may come again
 * and again and hold an order that passed before; but what is held is released by
 * mdl_access_approve alone, or by mdl_fraud_recheck when nothing but the storefront's answer was
 * waited for.
 */
#ifndef MDL_CORE_ORDER_FRAUD_H
#define MDL_CORE_ORDER_FRAUD_H

#include "core/settings/domains.h"
#include "core/settings/settings.h"
#include "db/db.h"

/** What a check goes by; serves every thread, and processes that are forked later. */
typedef struct {
    const mdl_settings_t *settings;
    mdl_domains_t *disposable; /* NULL: none, as for the next */
    mdl_domains_t *blocked;
} mdl_fraud_rules_t;

/** Reads the files of domains that the settings name; on an error *why is a sentence. */
apr_status_t mdl_fraud_rules_open(const mdl_fraud_rules_t **rules, const mdl_settings_t *settings,
                                  const char **why, apr_pool_t *p);

typedef struct mdl_fraud_news_t mdl_fraud_news_t;

typedef struct {
    const mdl_fraud_rules_t *rules;
    apr_int64_t order_id;
    const char *key_id; /* the API key that asks for it */
    int held;           /* out: whether the order is held now */
    int pending;        /* out: whether mdl_fraud_recheck is to follow the storefront's answer */
    mdl_fraud_news_t *news; /* out: for mdl_fraud_tell; NULL: none */
} mdl_fraud_check_t;

/**
 * Checks an order in the transaction that assigns, which has locked its customer and then the
 * order; before its license keys are claimed and its email is queued.
 */
apr_status_t mdl_fraud_check(mdl_db_t *db, mdl_fraud_check_t *check, apr_pool_t *p);

/**
 * Adds the entry fraud_held or fraud_passed of a check whose result is another one than before, and
 * the event of a hold; later in that transaction, behind what tells of the assignment.
 */
apr_status_t mdl_fraud_tell(mdl_db_t *db, const mdl_fraud_check_t *check, apr_pool_t *p);

/**
 * Goes on with a check that waits for the storefront, in the transaction that has stored what it
 * said: orders.storefront_risk, still NULL when it could not be had for good, and what is new of
 * the customer.  Then the order is released, with its emails and license keys, or stays held, and
 * an entry tells which.  An order that was approved or rejected meanwhile stays so, and one that
 * waits for nothing as it is.
 */
apr_status_t mdl_fraud_recheck(mdl_db_t *db, const mdl_fraud_rules_t *rules, apr_int64_t order_id,
                               apr_pool_t *p);

#endif
