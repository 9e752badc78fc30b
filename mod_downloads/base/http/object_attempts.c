#include "base/http/object_attempts.h"

#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/http/object_class.h"

#define FIRST_PAUSE 200000 /* microseconds */
#define LONGEST     apr_time_from_sec(5)
#define RESENDS     2
#define SLICE_MS    250 /* how often a call looks whether it is stopped */

static int call_is_stopped(const mdl_object_call_t *call)
{
    return call->stopped != NULL && call->stopped(call->baton);
}

static apr_status_t call_end(mdl_object_call_t *call)
{
    call->why = "The request to the object store was stopped.";
    return APR_EINTR;
}

void mdl_object_attempts_begin(mdl_object_attempts_t *attempts, mdl_object_store_t *store,
                               mdl_object_call_t *call)
{
    memset(attempts, 0, sizeof *attempts);
    attempts->store = store;
    attempts->call = call;
    mdl_object_attempts_extend(attempts, call->patience);
}

void mdl_object_attempts_extend(mdl_object_attempts_t *attempts, apr_interval_time_t patience)
{
    attempts->until = mdl_clock_monotonic() + patience;
    attempts->pause = FIRST_PAUSE;
}

int mdl_object_attempts_may(mdl_object_attempts_t *attempts, apr_pool_t *p)
{
    if (mdl_object_store_approach(attempts->store, &attempts->probe)) {
        return 1;
    }
    attempts->call->why = apr_psprintf(p, "%s is away; another request asks it.",
                                       mdl_object_store_host(attempts->store));
    return 0;
}

void mdl_object_attempts_note(mdl_object_attempts_t *attempts, apr_status_t rv)
{
    if (rv == APR_EINTR) {
        mdl_object_store_leave(attempts->store, &attempts->probe);
    } else {
        mdl_object_store_note(attempts->store, &attempts->probe, rv != MDL_OBJECT_EAWAY,
                              attempts->call->why);
    }
}

/* Sleeps about so long; nonzero if the call was stopped meanwhile. */
static int attempts_pause(mdl_object_attempts_t *attempts)
{
    unsigned char random;
    apr_time_t end;

    /* Many callers must not come back at the same moment. */
    mdl_random(&random, sizeof random);
    end = mdl_clock_monotonic() + attempts->pause * (192 + random / 2) / 256;
    attempts->pause = 2 * attempts->pause < LONGEST ? 2 * attempts->pause : LONGEST;
    while (!call_is_stopped(attempts->call)) {
        apr_time_t left = end - mdl_clock_monotonic();

        if (left <= 0) {
            return 0;
        }
        apr_sleep(left < SLICE_MS * 1000 ? left : SLICE_MS * 1000);
    }
    return 1;
}

int mdl_object_attempts_again(mdl_object_attempts_t *attempts, const mdl_object_answer_t *answer,
                              apr_status_t *rv)
{
    if (mdl_object_code_is_clock(answer->code) && !attempts->clock_was_set && answer->date > 0) {
        attempts->clock_was_set = 1;
        mdl_object_store_set_clock(attempts->store, answer->date);
        return 1;
    }
    if (mdl_object_code_is_changed(answer->code)) {
        return attempts->resends++ < RESENDS;
    }
    if (*rv != MDL_OBJECT_EAWAY || mdl_clock_monotonic() + attempts->pause > attempts->until) {
        return 0;
    }
    if (attempts_pause(attempts)) {
        *rv = call_end(attempts->call);
        return 0;
    }
    return 1;
}

static apr_status_t exchange_run(mdl_object_exchange_t *exchange, mdl_object_answer_t *answer,
                                 mdl_object_call_t *call, apr_pool_t *p)
{
    mdl_object_exchange_begin(exchange);
    for (;;) {
        mdl_object_exchange_perform(exchange);
        if (exchange->done) {
            return mdl_object_exchange_result(exchange, answer, &call->why, p);
        }
        if (call_is_stopped(call)) {
            return call_end(call);
        }
        mdl_object_exchange_wait(exchange, SLICE_MS);
    }
}

apr_status_t mdl_object_perform(mdl_object_store_t *store, const mdl_object_request_t *request,
                                mdl_object_answer_t *answer, mdl_object_call_t *call, apr_pool_t *p)
{
    static const mdl_object_answer_t none = {.code = ""};
    mdl_object_attempts_t attempts;
    mdl_object_exchange_t exchange;
    apr_pool_t *pool;
    apr_status_t rv;
    int asked = 0;

    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_object");
    call->sent = 0;
    mdl_object_attempts_begin(&attempts, store, call);
    do {
        apr_pool_clear(pool);
        *answer = none;
        if (mdl_object_attempts_may(&attempts, p)) {
            mdl_object_exchange_init(&exchange, store, request, pool);
            rv = exchange_run(&exchange, answer, call, p);
            mdl_object_exchange_end(&exchange);
            call->sent += exchange.begun;
            mdl_object_attempts_note(&attempts, rv);
            asked = 1;
        } else {
            rv = MDL_OBJECT_EAWAY;
        }
    } while (asked && rv != APR_SUCCESS && mdl_object_attempts_again(&attempts, answer, &rv));
    call->date = answer->date;
    /* The answer to HEAD does not say why; a GET follows that is logged. */
    if (rv == MDL_OBJECT_EDENIED && !request->optional && strcmp(request->method, "HEAD") != 0) {
        mdl_object_store_log_denied(store, call->why);
    }
    return rv;
}
