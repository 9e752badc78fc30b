#include "core/order/access.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "core/order/event.h"
#include "core/ids.h"
#include "core/catalog/license.h"

#define DAY apr_time_from_sec(86400)

static int is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

static int is_among(const apr_array_header_t *ids, apr_int64_t id)
{
    for (int i = 0; i < ids->nelts; i++) {
        if (APR_ARRAY_IDX(ids, i, apr_int64_t) == id) {
            return 1;
        }
    }
    return 0;
}

static mdl_order_find_t find_of(const mdl_access_t *access)
{
    return (mdl_order_find_t){.shop_id = access->shop_id,
                              .storefront_order_id = access->storefront_order_id,
                              .default_download_limit = access->default_download_limit};
}

static apr_status_t check_assignments(const mdl_access_t *access, apr_pool_t *p)
{
    int unknown = 0;

    for (int i = 0; access->assignment_ids != NULL && i < access->assignment_ids->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(access->assignment_ids, i, apr_int64_t);
        int known = 0;

        for (int j = 0; j < access->order->assignments->nelts && !known; j++) {
            known = APR_ARRAY_IDX(access->order->assignments, j, mdl_assignment_t *)->id == id;
        }
        if (!known) {
            unknown++;
            mdl_problem_add_detail(access->problem, apr_psprintf(p, "/assignment_ids/%d", i),
                                   "unknown_reference", "The order has no such assignment.", p);
        }
    }
    return unknown == 0 ? APR_SUCCESS
                        : mdl_problem_set(access->problem, 422, "unknown_reference",
                                          "The request names assignments that this order does not "
                                          "have.");
}

/* Locks and reads the order, and sees to it that the assignments named are its own. */
static apr_status_t access_begin(mdl_db_t *db, mdl_access_t *access, apr_pool_t *p)
{
    mdl_order_find_t find = find_of(access);
    apr_status_t rv = mdl_order_lock(db, &find, access->problem, p);

    access->order = find.order;
    return rv == APR_SUCCESS ? check_assignments(access, p) : rv;
}

static apr_status_t access_end(mdl_db_t *db, mdl_access_t *access, apr_pool_t *p)
{
    mdl_order_find_t find = find_of(access);
    apr_status_t rv = mdl_order_find(db, p, &find);

    access->order = find.order;
    return rv;
}

static int is_chosen(const mdl_access_t *access, const mdl_assignment_t *assignment)
{
    return access->assignment_ids == NULL || is_among(access->assignment_ids, assignment->id);
}

/* How an order is to be; what is the same as now is not written. */
typedef struct {
    const char *action;
    const char *access_status;
    const char *access_reason;
    const char *fraud_decision;
    const char *assignment_status; /* of those chosen; NULL: as they are */
} state_t;

static state_t state_of(const mdl_order_t *order, const char *action)
{
    return (state_t){.action = action,
                     .access_status = order->access_status,
                     .access_reason = order->access_reason,
                     .fraud_decision = order->fraud_decision};
}

static int access_same(const char *text, const char *other)
{
    return text == NULL || other == NULL ? text == other : strcmp(text, other) == 0;
}

static apr_status_t set_order(mdl_db_t *db, const mdl_order_t *order, const state_t *state,
                              int *changed, apr_pool_t *p)
{
    *changed = !is(state->access_status, order->access_status) ||
               !access_same(state->access_reason, order->access_reason) ||
               !is(state->fraud_decision, order->fraud_decision);
    if (!*changed) {
        return APR_SUCCESS;
    }
    return mdl_db_exec(db, MDL_Q_ORDER_SET_ACCESS, NULL, p,
                       MDL_ARGS(mdl_text(state->access_status), mdl_text(state->access_reason),
                                mdl_text(state->fraud_decision), mdl_int(apr_time_now()),
                                mdl_int(order->id)));
}

/* *changed gets the ids of the assignments whose status is another one now. */
static apr_status_t set_assignments(mdl_db_t *db, const mdl_access_t *access, const state_t *state,
                                    apr_array_header_t **changed, apr_pool_t *p)
{
    const apr_array_header_t *assignments = access->order->assignments;

    *changed = apr_array_make(p, 4, sizeof(apr_int64_t));
    for (int i = 0; state->assignment_status != NULL && i < assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(assignments, i, mdl_assignment_t *);

        if (is_chosen(access, each) && !is(each->status, state->assignment_status)) {
            APR_ARRAY_PUSH(*changed, apr_int64_t) = each->id;
        }
    }
    if ((*changed)->nelts == 0) {
        return APR_SUCCESS;
    }
    return mdl_db_exec(
        db, MDL_Q_ASSIGNMENTS_SET_STATUS, NULL, p,
        MDL_ARGS(mdl_text(state->assignment_status), mdl_text(mdl_ids_json(*changed, p))));
}

/* What waited for the order to be active goes on.  *details tells of keys that were given. */
static apr_status_t access_release(mdl_db_t *db, const mdl_order_t *order, const char **details,
                                   apr_pool_t *p)
{
    mdl_json_t *object = mdl_json_object(p);
    apr_int64_t given = 0;
    apr_status_t rv;

    *details = NULL;
    if ((rv = mdl_email_release(db, order->shop_id, order->id, p)) != APR_SUCCESS ||
        (rv = mdl_license_fill_order(db, order->id, &given, p)) != APR_SUCCESS) {
        return rv;
    }
    if (given > 0) {
        mdl_json_add_int(object, "license_keys", given);
        *details = mdl_json_text(object, NULL, p);
    }
    return APR_SUCCESS;
}

/* Brings the order into a state and notes the event, when there was anything to do. */
static apr_status_t access_bring(mdl_db_t *db, mdl_access_t *access, const state_t *state,
                                 apr_pool_t *p)
{
    mdl_event_t event = {
        .action = state->action, .key_id = access->key_id, .reason = access->reason};
    apr_array_header_t *assignments;
    int order_changed;
    apr_status_t rv;

    if ((rv = set_order(db, access->order, state, &order_changed, p)) != APR_SUCCESS ||
        (rv = set_assignments(db, access, state, &assignments, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!order_changed && assignments->nelts == 0) {
        return APR_SUCCESS;
    }
    if (is(state->access_status, "active") && !access_same(state->assignment_status, "revoked") &&
        (rv = access_release(db, access->order, &event.details, p)) != APR_SUCCESS) {
        return rv;
    }
    if (access->assignment_ids != NULL) {
        event.assignment_ids = mdl_ids_json(assignments, p);
    }
    rv = mdl_event_add(db, access->order->id, &event, p);
    return rv == APR_SUCCESS ? access_end(db, access, p) : rv;
}

apr_status_t mdl_access_revoke(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    apr_status_t rv = access_begin(db, access, p);
    state_t state;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    state = state_of(access->order, "revoked");
    state.assignment_status = "revoked";
    if (access->assignment_ids == NULL) {
        int again = is(state.access_status, "revoked");

        state.access_status = "revoked";
        state.access_reason = again && access->reason == NULL ? state.access_reason
                                                              : access->reason;
    }
    return access_bring(db, access, &state, p);
}

apr_status_t mdl_access_restore(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    apr_status_t rv = access_begin(db, access, p);
    state_t state;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    state = state_of(access->order, "restored");
    if (is(state.access_status, "held")) {
        return mdl_problem_set(access->problem, 409, "order_held",
                               "This order is under review; approve it instead.");
    }
    if (is(state.fraud_decision, "rejected")) {
        return mdl_problem_set(access->problem, 409, "access_revoked",
                               "This order was rejected; approve it first.");
    }
    state.assignment_status = "active";
    if (is(state.access_status, "revoked")) {
        state.access_status = is(state.fraud_decision, "held") ? "held" : "active";
        state.access_reason = NULL;
    }
    return access_bring(db, access, &state, p);
}

static apr_status_t refuse_not_held(mdl_access_t *access)
{
    return mdl_problem_set(access->problem, 409, "order_not_held",
                           "This order is not under review, so there is nothing to decide.");
}

apr_status_t mdl_access_approve(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    apr_status_t rv = access_begin(db, access, p);
    state_t state;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    state = state_of(access->order, "approved");
    if (is(state.fraud_decision, "held") || is(state.fraud_decision, "rejected")) {
        state.fraud_decision = "approved";
        if (!is(state.access_status, "revoked")) {
            state.access_status = "active";
            state.access_reason = NULL;
        }
    } else if (!is(state.fraud_decision, "approved")) {
        return refuse_not_held(access);
    }
    return access_bring(db, access, &state, p);
}

apr_status_t mdl_access_reject(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    apr_status_t rv = access_begin(db, access, p);
    int again;
    state_t state;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    state = state_of(access->order, "rejected");
    again = is(state.fraud_decision, "rejected");
    if (!again && !is(state.fraud_decision, "held")) {
        return refuse_not_held(access);
    }
    state.fraud_decision = "rejected";
    if (!is(state.access_status, "revoked")) {
        state.access_status = "rejected";
        state.access_reason = again && access->reason == NULL ? state.access_reason
                                                              : access->reason;
    }
    return access_bring(db, access, &state, p);
}

/* What a grant comes to. */
typedef struct {
    apr_array_header_t *assignments; /* apr_int64_t */
    mdl_json_t *pairs;               /* [assignment, file] each */
} grant_t;

static void choose_files(const mdl_access_grant_t *grant, const mdl_assignment_t *assignment,
                         grant_t *chosen)
{
    apr_size_t before = mdl_json_length(chosen->pairs);

    for (int i = 0; i < assignment->files->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *)->asset_id;
        mdl_json_t *pair;

        if (grant->file_ids != NULL && !is_among(grant->file_ids, id)) {
            continue;
        }
        pair = mdl_json_add_array(chosen->pairs, NULL);
        mdl_json_add_int(pair, NULL, assignment->id);
        mdl_json_add_int(pair, NULL, id);
    }
    if (grant->file_ids == NULL || mdl_json_length(chosen->pairs) > before) {
        APR_ARRAY_PUSH(chosen->assignments, apr_int64_t) = assignment->id;
    }
}

static apr_status_t check_files(const mdl_access_grant_t *grant, const grant_t *chosen,
                                apr_pool_t *p)
{
    int unknown = 0;

    for (int i = 0; grant->file_ids != NULL && i < grant->file_ids->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(grant->file_ids, i, apr_int64_t);
        int known = 0;

        for (apr_size_t j = 0; j < mdl_json_length(chosen->pairs) && !known; j++) {
            known = mdl_json_int(mdl_json_element(mdl_json_element(chosen->pairs, j), 1)) == id;
        }
        if (!known) {
            unknown++;
            mdl_problem_add_detail(grant->access.problem, apr_psprintf(p, "/file_ids/%d", i),
                                   "unknown_reference", "None of the assignments gives this file.",
                                   p);
        }
    }
    return unknown == 0 ? APR_SUCCESS
                        : mdl_problem_set(grant->access.problem, 422, "unknown_reference",
                                          "The request names files that are not in this order.");
}

/* *changed tells whether anything did: access for ever is not extended.  Assignments are locked
   before their allowances, as by downloads. */
static apr_status_t access_write_grant(mdl_db_t *db, const mdl_access_grant_t *grant,
                                       const grant_t *chosen, int *changed, apr_pool_t *p)
{
    apr_int64_t rows = 0;
    apr_status_t rv = APR_SUCCESS;

    *changed = 0;
    if (grant->extend_days > 0) {
        rv = mdl_db_exec(db, MDL_Q_ASSIGNMENTS_EXTEND, &rows, p,
                         MDL_ARGS(mdl_int(apr_time_now()), mdl_int(grant->extend_days * DAY),
                                  mdl_text(mdl_ids_json(chosen->assignments, p))));
        *changed = rows > 0;
    }
    if (rv == APR_SUCCESS && grant->downloads > 0 && mdl_json_length(chosen->pairs) > 0) {
        rv = mdl_db_exec(
            db, MDL_Q_ALLOWANCE_GRANT, NULL, p,
            MDL_ARGS(mdl_int(grant->downloads), mdl_text(mdl_json_text(chosen->pairs, NULL, p))));
        *changed = 1;
    }
    return rv;
}

static const char *details_of(const mdl_access_grant_t *grant, apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);

    if (grant->downloads > 0) {
        mdl_json_add_int(details, "downloads", grant->downloads);
    }
    if (grant->extend_days > 0) {
        mdl_json_add_int(details, "extend_days", grant->extend_days);
    }
    if (grant->file_ids != NULL) {
        mdl_ids_add(details, "file_ids", grant->file_ids);
    }
    return mdl_json_text(details, NULL, p);
}

apr_status_t mdl_access_grant(mdl_db_t *db, apr_pool_t *p, mdl_access_grant_t *grant)
{
    mdl_access_t *access = &grant->access;
    grant_t chosen = {apr_array_make(p, 4, sizeof(apr_int64_t)), mdl_json_array(p)};
    mdl_event_t event = {
        .action = "downloads_granted", .key_id = access->key_id, .reason = access->reason};
    int changed;
    apr_status_t rv;

    if ((rv = access_begin(db, access, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < access->order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(access->order->assignments, i,
                                                     mdl_assignment_t *);

        if (is_chosen(access, each)) {
            choose_files(grant, each, &chosen);
        }
    }
    if ((rv = check_files(grant, &chosen, p)) != APR_SUCCESS ||
        (rv = access_write_grant(db, grant, &chosen, &changed, p)) != APR_SUCCESS || !changed) {
        return rv;
    }
    if (access->assignment_ids != NULL) {
        event.assignment_ids = mdl_ids_json(access->assignment_ids, p);
    }
    event.details = details_of(grant, p);
    rv = mdl_event_add(db, access->order->id, &event, p);
    return rv == APR_SUCCESS ? access_end(db, access, p) : rv;
}
