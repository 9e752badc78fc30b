/*
 * The attempts of one call to an object store: whether one may be made, and what helps after a
 * failure.  Private to base/http.
 */
#ifndef MDL_BASE_HTTP_OBJECT_ATTEMPTS_H
#define MDL_BASE_HTTP_OBJECT_ATTEMPTS_H

#include "base/http/object_exchange.h"

/** The attempts of one call. */
typedef struct {
    mdl_object_store_t *store;
    mdl_object_call_t *call;
    apr_time_t until; /* by mdl_clock_monotonic */
    apr_interval_time_t pause;
    int resends;
    int clock_was_set;
    int probe;
} mdl_object_attempts_t;

void mdl_object_attempts_begin(mdl_object_attempts_t *attempts, mdl_object_store_t *store,
                               mdl_object_call_t *call);

/** Gives the call this long from now on, as if it began. */
void mdl_object_attempts_extend(mdl_object_attempts_t *attempts, apr_interval_time_t patience);

/** Whether a request may be sent now; if not, call->why says so, and the attempt has failed with
    MDL_OBJECT_EAWAY. */
int mdl_object_attempts_may(mdl_object_attempts_t *attempts, apr_pool_t *p);

/** Notes how the attempt ended for the store's state, unless it was not sent. */
void mdl_object_attempts_note(mdl_object_attempts_t *attempts, apr_status_t rv);

/** Whether to try once more after this failure; has paused then.  *rv becomes APR_EINTR if the call
    was stopped. */
int mdl_object_attempts_again(mdl_object_attempts_t *attempts, const mdl_object_answer_t *answer,
                              apr_status_t *rv);

/** Makes a request until it succeeds, or trying again does not help.  The answer is in p. */
apr_status_t mdl_object_perform(mdl_object_store_t *store, const mdl_object_request_t *request,
                                mdl_object_answer_t *answer, mdl_object_call_t *call,
                                apr_pool_t *p);

#endif
