/*
 * The state of an order: whether access to it is open, what the fraud check or its review decided,
 * and every event that changes either.
 *
 * A shop may revoke an order whatever was decided; the decision is kept, and counts again once the
 * order is restored.  What the fraud check holds is released only by the shop's approval, or by the
 * check itself if the order was held only until the storefront answers.
 */
#ifndef MDL_CORE_ORDER_STATE_H
#define MDL_CORE_ORDER_STATE_H

#include "core/download/entitlement.h"
#include "core/problem.h"

typedef enum {
    MDL_FRAUD_NOT_CHECKED,
    MDL_FRAUD_PASSED,
    MDL_FRAUD_HELD,     /* by the check: to be reviewed, or to be checked again with the
                           storefront's answer */
    MDL_FRAUD_APPROVED, /* by the shop, like the next */
    MDL_FRAUD_REJECTED
} mdl_fraud_decision_t;
extern const char *const mdl_fraud_decision_names[];

typedef struct {
    mdl_order_access_t access;
    mdl_fraud_decision_t decision;
} mdl_order_state_t;

typedef enum {
    MDL_ORDER_REVOKE, /* this and the next three: the shop decides */
    MDL_ORDER_RESTORE,
    MDL_ORDER_APPROVE,
    MDL_ORDER_REJECT,
    MDL_ORDER_CHECK_HOLDS, /* this and the next: the fraud check of an assignment */
    MDL_ORDER_CHECK_PASSES,
    MDL_ORDER_ANSWER_PASSES /* the check, repeated with the storefront's answer, finds no reason to
                               hold */
} mdl_order_event_t;

/**
 * Brings the state to what it is after the event, which may be the same.  Refused, of the shop's
 * decisions alone: 409 order_held and access_revoked (RESTORE), 409 order_not_held (APPROVE,
 * REJECT); problem may be NULL for the others.
 */
apr_status_t mdl_order_step(mdl_order_state_t *state, mdl_order_event_t event,
                            mdl_problem_t *problem);

#endif
