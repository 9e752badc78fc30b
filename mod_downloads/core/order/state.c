#include "core/order/state.h"

const char *const mdl_fraud_decision_names[] = {[MDL_FRAUD_NOT_CHECKED] = "not_checked",
                                                [MDL_FRAUD_PASSED] = "passed",
                                                [MDL_FRAUD_HELD] = "held",
                                                [MDL_FRAUD_APPROVED] = "approved",
                                                [MDL_FRAUD_REJECTED] = "rejected",
                                                NULL};

static apr_status_t state_restore(mdl_order_state_t *state, mdl_problem_t *problem)
{
    if (state->access == MDL_ORDER_HELD) {
        return mdl_problem_set(problem, 409, "order_held",
                               "This order is under review; approve it instead.");
    }
    if (state->decision == MDL_FRAUD_REJECTED) {
        return mdl_problem_set(problem, 409, "access_revoked",
                               "This order was rejected; approve it first.");
    }
    if (state->access == MDL_ORDER_REVOKED) {
        state->access = state->decision == MDL_FRAUD_HELD ? MDL_ORDER_HELD : MDL_ORDER_ACTIVE;
    }
    return APR_SUCCESS;
}

/* Decides a review, without opening an order that was revoked in the meantime.  The decision may be
   repeated, and a rejected order may still be approved. */
static apr_status_t state_review(mdl_order_state_t *state, mdl_fraud_decision_t decision,
                                 mdl_order_access_t access, mdl_problem_t *problem)
{
    if (state->decision == MDL_FRAUD_HELD || state->decision == MDL_FRAUD_REJECTED) {
        state->decision = decision;
        if (state->access != MDL_ORDER_REVOKED) {
            state->access = access;
        }
    }
    return state->decision == decision
               ? APR_SUCCESS
               : mdl_problem_set(problem, 409, "order_not_held",
                                 "This order is not under review, so there is nothing to decide.");
}

/* A check does not override the shop's decisions. */
static void state_check(mdl_order_state_t *state, int holds)
{
    if (state->decision == MDL_FRAUD_APPROVED || state->access == MDL_ORDER_REVOKED ||
        state->access == MDL_ORDER_REJECTED) {
        return;
    }
    if (holds) {
        *state = (mdl_order_state_t){MDL_ORDER_HELD, MDL_FRAUD_HELD};
    } else if (state->access != MDL_ORDER_HELD) {
        state->decision = MDL_FRAUD_PASSED;
    }
}

static void state_answer_passes(mdl_order_state_t *state)
{
    if (state->decision == MDL_FRAUD_HELD) {
        state->decision = MDL_FRAUD_PASSED;
        if (state->access == MDL_ORDER_HELD) {
            state->access = MDL_ORDER_ACTIVE;
        }
    }
}

apr_status_t mdl_order_step(mdl_order_state_t *state, mdl_order_event_t event,
                            mdl_problem_t *problem)
{
    switch (event) {
    case MDL_ORDER_REVOKE:
        state->access = MDL_ORDER_REVOKED;
        break;
    case MDL_ORDER_RESTORE:
        return state_restore(state, problem);
    case MDL_ORDER_APPROVE:
        return state_review(state, MDL_FRAUD_APPROVED, MDL_ORDER_ACTIVE, problem);
    case MDL_ORDER_REJECT:
        return state_review(state, MDL_FRAUD_REJECTED, MDL_ORDER_REJECTED, problem);
    case MDL_ORDER_CHECK_HOLDS:
    case MDL_ORDER_CHECK_PASSES:
        state_check(state, event == MDL_ORDER_CHECK_HOLDS);
        break;
    case MDL_ORDER_ANSWER_PASSES:
        state_answer_passes(state);
        break;
    }
    return APR_SUCCESS;
}
