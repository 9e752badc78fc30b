/*
 * Every event in every state of an order.
 */
#include "t/unit/tap.h"

#include <apr_strings.h>

#include "core/order/state.h"

#define EVENTS 7

static const char *const events[EVENTS] = {
    [MDL_ORDER_REVOKE] = "revoke",
    [MDL_ORDER_RESTORE] = "restore",
    [MDL_ORDER_APPROVE] = "approve",
    [MDL_ORDER_REJECT] = "reject",
    [MDL_ORDER_CHECK_HOLDS] = "a check that holds",
    [MDL_ORDER_CHECK_PASSES] = "a check that passes",
    [MDL_ORDER_ANSWER_PASSES] = "an answer that passes",
};

/* The access and the decision after each event, or why the event is refused. */
static const struct {
    mdl_order_state_t state;
    const char *after[EVENTS];
} rows[] = {
    {{MDL_ORDER_ACTIVE, MDL_FRAUD_NOT_CHECKED},
     {"revoked not_checked", "active not_checked", "order_not_held", "order_not_held", "held held",
      "active passed", "active not_checked"}},
    {{MDL_ORDER_ACTIVE, MDL_FRAUD_PASSED},
     {"revoked passed", "active passed", "order_not_held", "order_not_held", "held held",
      "active passed", "active passed"}},
    {{MDL_ORDER_ACTIVE, MDL_FRAUD_APPROVED},
     {"revoked approved", "active approved", "active approved", "order_not_held", "active approved",
      "active approved", "active approved"}},
    {{MDL_ORDER_HELD, MDL_FRAUD_HELD},
     {"revoked held", "order_held", "active approved", "rejected rejected", "held held",
      "held held", "active passed"}},
    {{MDL_ORDER_REJECTED, MDL_FRAUD_REJECTED},
     {"revoked rejected", "access_revoked", "active approved", "rejected rejected",
      "rejected rejected", "rejected rejected", "rejected rejected"}},
    {{MDL_ORDER_REVOKED, MDL_FRAUD_NOT_CHECKED},
     {"revoked not_checked", "active not_checked", "order_not_held", "order_not_held",
      "revoked not_checked", "revoked not_checked", "revoked not_checked"}},
    {{MDL_ORDER_REVOKED, MDL_FRAUD_PASSED},
     {"revoked passed", "active passed", "order_not_held", "order_not_held", "revoked passed",
      "revoked passed", "revoked passed"}},
    {{MDL_ORDER_REVOKED, MDL_FRAUD_HELD},
     {"revoked held", "held held", "revoked approved", "revoked rejected", "revoked held",
      "revoked held", "revoked passed"}},
    {{MDL_ORDER_REVOKED, MDL_FRAUD_APPROVED},
     {"revoked approved", "active approved", "revoked approved", "order_not_held",
      "revoked approved", "revoked approved", "revoked approved"}},
    {{MDL_ORDER_REVOKED, MDL_FRAUD_REJECTED},
     {"revoked rejected", "access_revoked", "revoked approved", "revoked rejected",
      "revoked rejected", "revoked rejected", "revoked rejected"}},
};

static const char *state_text(const mdl_order_state_t *state, apr_pool_t *p)
{
    return apr_pstrcat(p, mdl_order_access_names[state->access], " ",
                       mdl_fraud_decision_names[state->decision], NULL);
}

static void test_steps(apr_pool_t *p)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int event = 0; event < EVENTS; event++) {
            mdl_problem_t problem = {0};
            mdl_order_state_t state = rows[i].state;
            apr_status_t rv = mdl_order_step(&state, (mdl_order_event_t)event, &problem);

            is_str(rv == APR_SUCCESS ? state_text(&state, p) : problem.code, rows[i].after[event],
                   apr_pstrcat(p, state_text(&rows[i].state, p), ": ", events[event], NULL));
        }
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_steps(p);
    return tap_end(p);
}
