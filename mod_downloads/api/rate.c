#include "api/rate.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

static int seconds_of(apr_interval_time_t interval)
{
    return (int)((interval + APR_USEC_PER_SEC - 1) / APR_USEC_PER_SEC);
}

static void set_header(mdl_call_t *call, const char *name, const char *value)
{
    apr_table_setn(call->r->err_headers_out, name, value);
}

static void take(mdl_call_t *call, int cost, mdl_rate_state_t *state)
{
    const mdl_settings_t *settings = call->service->settings;
    apr_pool_t *p = call->r->pool;

    mdl_rate_limit_take(call->service->rate_limit, call->caller.key_id, cost, mdl_clock_monotonic(),
                        state);
    set_header(call, "X-RateLimit-Limit", apr_itoa(p, settings->rate_burst));
    set_header(call, "X-RateLimit-Remaining", apr_itoa(p, state->remaining));
    set_header(call, "X-RateLimit-Reset", mdl_clock_rfc3339(apr_time_now() + state->full_in, p));
    set_header(call, "RateLimit-Policy",
               apr_psprintf(p, "\"key\";q=%d;w=%d", settings->rate_burst,
                            (settings->rate_burst * 60 + settings->rate_refill - 1) /
                                settings->rate_refill));
    set_header(call, "RateLimit",
               apr_psprintf(p, "\"key\";r=%d;t=%d", state->remaining, seconds_of(state->more_in)));
}

apr_status_t mdl_rate_charge(mdl_call_t *call, int writes)
{
    const mdl_settings_t *settings = call->service->settings;
    mdl_rate_state_t state;

    if (!settings->rate_limit) {
        return APR_SUCCESS;
    }
    take(call, writes ? settings->rate_write_cost : settings->rate_read_cost, &state);
    if (state.allowed) {
        return APR_SUCCESS;
    }
    call->retry_after = seconds_of(state.more_in);
    return mdl_refuse(&call->refusal, 429, "rate_limited",
                      "This key has sent too many requests; try again after Retry-After.");
}

void mdl_rate_show(mdl_call_t *call)
{
    mdl_rate_state_t state;

    if (call->service->settings->rate_limit) {
        take(call, 0, &state);
    }
}
