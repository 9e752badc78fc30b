#include "api/rate.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"

static int rate_seconds_of(apr_interval_time_t interval)
{
    return (int)((interval + APR_USEC_PER_SEC - 1) / APR_USEC_PER_SEC);
}

static void rate_set_header(mdl_request_t *request, const char *name, const char *value)
{
    apr_table_setn(request->r->err_headers_out, name, value);
}

static void rate_take(mdl_request_t *request, int cost, mdl_rate_state_t *state)
{
    const mdl_settings_t *settings = request->service->settings;
    apr_pool_t *p = request->r->pool;

    mdl_rate_limit_take(request->service->rate_limit, request->caller.key_id, cost,
                        mdl_clock_monotonic(), state);
    rate_set_header(request, "X-RateLimit-Limit", apr_itoa(p, settings->rate_burst));
    rate_set_header(request, "X-RateLimit-Remaining", apr_itoa(p, state->remaining));
    rate_set_header(request, "X-RateLimit-Reset",
                    mdl_clock_rfc3339(apr_time_now() + state->full_in, p));
    rate_set_header(request, "RateLimit-Policy",
                    apr_psprintf(p, "\"key\";q=%d;w=%d", settings->rate_burst,
                                 (settings->rate_burst * 60 + settings->rate_refill - 1) /
                                     settings->rate_refill));
    rate_set_header(
        request, "RateLimit",
        apr_psprintf(p, "\"key\";r=%d;t=%d", state->remaining, rate_seconds_of(state->more_in)));
}

apr_status_t mdl_rate_charge(mdl_request_t *request, int writes)
{
    const mdl_settings_t *settings = request->service->settings;
    mdl_rate_state_t state;

    if (!settings->rate_limit) {
        return APR_SUCCESS;
    }
    rate_take(request, writes ? settings->rate_write_cost : settings->rate_read_cost, &state);
    if (state.allowed) {
        return APR_SUCCESS;
    }
    request->retry_after = rate_seconds_of(state.more_in);
    return mdl_problem_set(&request->problem, 429, "rate_limited",
                           "This key has sent too many requests; try again after Retry-After.");
}

void mdl_rate_show(mdl_request_t *request)
{
    mdl_rate_state_t state;

    if (request->service->settings->rate_limit) {
        rate_take(request, 0, &state);
    }
}
