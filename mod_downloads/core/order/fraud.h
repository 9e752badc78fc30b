/*
 * The fraud check of an order (contract, section 6).  It collects signals, each with a level: none,
 * low, medium or high.  The highest is the order's level; a shop chooses whether orders are held
 * from medium or from high on.
 *
 *   storefront_risk    the storefront's rating of the order: the same level
 *   customer_orders    other orders of the customer in the time window: medium from the configured
 *                      number on, high from twice that on
 *   address_orders     the same for orders with the same email address
 *   ip_orders          the same for orders from the same IP address (IPv6: the same /64 network)
 *   revoked_orders     other orders of the customer that were ever revoked or rejected: one is
 *                      medium, more are high
 *   disposable_domain  the email address's domain is in the file of disposable domains: medium
 *   blocked_domain     it is in the file of blocked domains: high
 *   risk_pending       the storefront has not answered yet: none, but the order is held until then
 *   risk_unknown       the storefront gave no rating: low
 *
 * Only orders of the same shop are counted, and never the order itself.
 *
 * An order that staff approved is not checked again.  Any other order may be checked again, and
 * held although it passed before.  A held order is released only by mdl_access_approve, or by
 * mdl_fraud_recheck when only the storefront's answer was missing.
 */
#ifndef MDL_CORE_ORDER_FRAUD_H
#define MDL_CORE_ORDER_FRAUD_H

#include "core/settings/domains.h"
#include "core/settings/settings.h"
#include "db/db.h"

/** The settings of the check.  All threads may share them, and processes forked later. */
typedef struct {
    const mdl_settings_t *settings;
    mdl_domains_t *disposable; /* NULL: none; the same for blocked */
    mdl_domains_t *blocked;
} mdl_fraud_rules_t;

/** Reads the files of domains that the settings name; on an error *why is a sentence. */
apr_status_t mdl_fraud_rules_open(const mdl_fraud_rules_t **rules, const mdl_settings_t *settings,
                                  const char **why, apr_pool_t *p);

typedef struct mdl_fraud_report_t mdl_fraud_report_t;

typedef struct {
    const mdl_fraud_rules_t *rules;
    apr_int64_t order_id;
    const char *key_id; /* the API key that asks for it */
    int held;           /* out: whether the order is held now */
    int pending;        /* out: whether mdl_fraud_recheck must follow the storefront's answer */
    mdl_fraud_report_t *report; /* out: for mdl_fraud_tell; NULL: nothing changed */
} mdl_fraud_check_t;

/**
 * Checks an order in the transaction that assigns downloads, before license keys are claimed and
 * the email is queued.  The transaction has locked the customer and then the order.
 */
apr_status_t mdl_fraud_check(mdl_db_t *db, mdl_fraud_check_t *check, apr_pool_t *p);

/**
 * If the check's result differs from the previous one, adds the timeline entry fraud_held or
 * fraud_passed, and the event of a new hold.  Called later in the same transaction, after the entry
 * and event of the assignment.
 */
apr_status_t mdl_fraud_tell(mdl_db_t *db, const mdl_fraud_check_t *check, apr_pool_t *p);

/**
 * Repeats a check that waits for the storefront, in the transaction that has stored the
 * storefront's answer: the customer's data and orders.storefront_risk, which is NULL if the
 * storefront gave none.  Releases the order with its emails and license keys, or keeps it held, and
 * adds the timeline entry.  Does not change an order that was approved or rejected in the meantime,
 * nor one that waits for no answer.
 */
apr_status_t mdl_fraud_recheck(mdl_db_t *db, const mdl_fraud_rules_t *rules, apr_int64_t order_id,
                               apr_pool_t *p);

#endif
