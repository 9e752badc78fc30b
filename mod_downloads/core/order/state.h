/*
 * The state of an order: whether access is open and what the fraud check or the review decided; and
 * the events that change it.
 *
 * A shop may revoke an order whatever was decided; the decision is kept, and counts again once the
 * order is restored.  An order held by the fraud check is released only by the shop's approval, or
 * by the check itself if it waited only for the storefront's answer.
 */
#ifndef MDL_CORE_ORDER_STATE_H
#define MDL_CORE_ORDER_STATE_H

#include "core/download/entitlement.h"
#include "core/problem.h"

typedef enum {
    MDL_FRAUD_NOT_CHECKED,
    MDL_FRAUD_PASSED,
    MDL_FRAUD_HELD,     /* by the check: awaits the review, or the storefront's answer */
    MDL_FRAUD_APPROVED, /* by the shop, like REJECTED */
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
    MDL_ORDER_CHECK_HOLDS, /* this and the next: the fraud check when downloads are assigned */
    MDL_ORDER_CHECK_PASSES,
    MDL_ORDER_ANSWER_PASSES /* the check, repeated with the storefront's answer, passes */
} mdl_order_event_t;

/**
 * Changes the state to that after the event, which may be the same.  Refuses only decisions of the
 * shop: 409 order_held and access_revoked (RESTORE), 409 order_not_held (APPROVE, REJECT).  For
 * other events, problem may be NULL.
 */
apr_status_t mdl_order_step(mdl_order_state_t *state, mdl_order_event_t event,
                            mdl_problem_t *problem);

#endif
