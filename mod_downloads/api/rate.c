#include "api/rate.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "core/shop/forgery.h"

static int rate_seconds_of(apr_interval_time_t interval)
{
    return (int)((interval + APR_USEC_PER_SEC - 1) / APR_USEC_PER_SEC);
}

static void rate_set_header(mdl_request_t *request, const char *name, const char *value)
{
    apr_table_setn(request->r->err_headers_out, name, value);
}

static const char *const rate_names[] = {[MDL_RATE_KEY] = "key", [MDL_RATE_SHOP] = "shop"};

static void rate_show(mdl_request_t *request, mdl_rate_kind_t kind, const mdl_rate_state_t *state)
{
    const mdl_settings_t *settings = request->service->settings;
    apr_pool_t *p = request->r->pool;

    rate_set_header(request, "X-RateLimit-Limit", apr_itoa(p, state->size));
    rate_set_header(request, "X-RateLimit-Remaining", apr_itoa(p, state->remaining));
    rate_set_header(request, "X-RateLimit-Reset",
                    mdl_clock_rfc3339(apr_time_now() + state->full_in, p));
    rate_set_header(request, "RateLimit-Policy",
                    apr_psprintf(p, "\"%s\";q=%d;w=%d", rate_names[kind], state->size,
                                 (settings->rate_burst * 60 + settings->rate_refill - 1) /
                                     settings->rate_refill));
    rate_set_header(request, "RateLimit",
                    apr_psprintf(p, "\"%s\";r=%d;t=%d", rate_names[kind], state->remaining,
                                 rate_seconds_of(state->more_in)));
}

static const char *rate_shop(const mdl_request_t *request)
{
    return apr_psprintf(request->r->pool, "%" APR_INT64_T_FMT, request->caller.shop_id);
}

/* Takes cost tokens from both the key and its shop, or from neither; false when there are too few.
   Shows the limit that has less left, by which kind and state are set. */
static int rate_take(mdl_request_t *request, int cost, mdl_rate_kind_t *kind,
                     mdl_rate_state_t *state)
{
    mdl_rate_limit_t *limit = request->service->rate_limit;
    const char *key_id = request->caller.key_id;
    const char *shop = rate_shop(request);
    apr_time_t now = mdl_clock_monotonic();
    mdl_rate_state_t of_shop;

    *kind = MDL_RATE_KEY;
    mdl_rate_limit_take(limit, MDL_RATE_KEY, key_id, cost, now, state);
    if (state->allowed && request->caller.shop_id != 0) {
        mdl_rate_limit_take(limit, MDL_RATE_SHOP, shop, cost, now, &of_shop);
        if (!of_shop.allowed) {
            mdl_rate_limit_return(limit, MDL_RATE_KEY, key_id, cost);
        }
        if (!of_shop.allowed || of_shop.remaining < state->remaining) {
            *kind = MDL_RATE_SHOP;
            *state = of_shop;
        }
    }
    rate_show(request, *kind, state);
    return state->allowed;
}

static apr_status_t rate_refuse(mdl_request_t *request, const mdl_rate_state_t *state,
                                const char *message)
{
    request->retry_after = rate_seconds_of(state->more_in);
    return mdl_problem_set(&request->problem, 429, "rate_limited", message);
}

apr_status_t mdl_rate_charge(mdl_request_t *request, int writes)
{
    const mdl_settings_t *settings = request->service->settings;
    mdl_rate_state_t state;
    mdl_rate_kind_t kind;

    if (!settings->rate_limit ||
        rate_take(request, writes ? settings->rate_write_cost : settings->rate_read_cost, &kind,
                  &state)) {
        return APR_SUCCESS;
    }
    return rate_refuse(
        request, &state,
        kind == MDL_RATE_KEY
            ? "This key has sent too many requests; try again after Retry-After."
            : "The shop's keys have sent too many requests together; try again after Retry-After.");
}

void mdl_rate_charge_rows(mdl_request_t *request)
{
    mdl_rate_limit_t *limit = request->service->rate_limit;
    apr_time_t now = mdl_clock_monotonic();

    if (request->service->settings->rate_limit && request->caller.shop_id != 0 &&
        request->rows >= MDL_RATE_ROWS) {
        mdl_rate_limit_charge_rows(limit, MDL_RATE_KEY, request->caller.key_id, request->rows, now);
        mdl_rate_limit_charge_rows(limit, MDL_RATE_SHOP, rate_shop(request), request->rows, now);
        mdl_rate_show(request);
    }
}

apr_status_t mdl_rate_charge_open(mdl_request_t *request)
{
    request_rec *r = request->r;
    mdl_rate_state_t state;

    mdl_rate_limit_take(request->service->rate_limit, MDL_RATE_OPEN,
                        mdl_rate_limit_network(r->useragent_ip, r->pool), 1, mdl_clock_monotonic(),
                        &state);
    return state.allowed ? APR_SUCCESS
                         : rate_refuse(request, &state,
                                       "Too many requests come from your network; try again after "
                                       "Retry-After.");
}

apr_status_t mdl_rate_charge_forged(mdl_request_t *request)
{
    const mdl_settings_t *settings = request->service->settings;
    request_rec *r = request->r;
    mdl_rate_state_t state;

    return mdl_forgery_note(request->service->rate_limit, "key", r->useragent_ip, &state,
                            r->pool) ||
                   !settings->rate_limit || settings->rate_network == 0
               ? APR_SUCCESS
               : rate_refuse(request, &state,
                             "Too many keys that are not valid come from your network; try again "
                             "with a valid one, or after Retry-After.");
}

void mdl_rate_show(mdl_request_t *request)
{
    mdl_rate_state_t state;
    mdl_rate_kind_t kind;

    if (request->service->settings->rate_limit) {
        rate_take(request, 0, &kind, &state);
    }
}
