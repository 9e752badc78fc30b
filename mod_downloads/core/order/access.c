#include "core/order/access.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "core/download/signed_url.h"
#include "core/order/assignment.h"
#include "core/order/help.h"
#include "core/order/timeline.h"
#include "core/order/quantity.h"
#include "core/ids.h"
#include "core/catalog/license.h"
#include "core/shop/event.h"

#define DAY apr_time_from_sec(86400)

static mdl_order_find_t access_find(const mdl_access_t *access)
{
    return (mdl_order_find_t){.shop_id = access->shop_id,
                              .storefront_order_id = access->storefront_order_id,
                              .versions = access->versions,
                              .default_download_limit = access->default_download_limit};
}

const mdl_assignment_t *mdl_access_assignment(const mdl_access_t *access, apr_int64_t id)
{
    const apr_array_header_t *assignments = access->order->assignments;

    for (int i = 0; i < assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(assignments, i, const mdl_assignment_t *);

        if (each->id == id) {
            return each;
        }
    }
    return NULL;
}

static apr_status_t access_check_assignments(const mdl_access_t *access, apr_pool_t *p)
{
    int unknown = 0;

    for (int i = 0; access->assignment_ids != NULL && i < access->assignment_ids->nelts; i++) {
        if (mdl_access_assignment(access, APR_ARRAY_IDX(access->assignment_ids, i, apr_int64_t)) ==
            NULL) {
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

/* Locks and reads the order, and checks that the named assignments belong to it. */
static apr_status_t access_begin(mdl_db_t *db, mdl_access_t *access, apr_pool_t *p)
{
    mdl_order_find_t find = access_find(access);
    apr_status_t rv = mdl_order_lock(db, &find, access->problem, p);

    access->order = find.order;
    return rv == APR_SUCCESS ? access_check_assignments(access, p) : rv;
}

static apr_status_t access_end(mdl_db_t *db, mdl_access_t *access, apr_pool_t *p)
{
    mdl_order_find_t find = access_find(access);
    apr_status_t rv = mdl_order_find(db, p, &find);

    access->order = find.order;
    return rv;
}

static int access_covers(const mdl_access_t *access, const mdl_assignment_t *assignment)
{
    return access->assignment_ids == NULL || mdl_ids_has(access->assignment_ids, assignment->id);
}

/* A decision of the shop, and the state of the order after it. */
typedef struct {
    mdl_order_event_t event;
    mdl_order_state_t state;
    const char *reason; /* why access is closed; NULL: it is open, or no reason was given */
} decision_t;

static int same_text(const char *text, const char *other)
{
    return text == NULL || other == NULL ? text == other : strcmp(text, other) == 0;
}

static apr_status_t access_set_order(mdl_db_t *db, const mdl_order_t *order,
                                     const decision_t *decision, int *changed, apr_pool_t *p)
{
    *changed = decision->state.access != order->state.access ||
               decision->state.decision != order->state.decision ||
               !same_text(decision->reason, order->access_reason);
    if (!*changed) {
        return APR_SUCCESS;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(ORDER_SET_ACCESS,
                             .access_status = mdl_order_access_names[decision->state.access],
                             .access_reason = decision->reason,
                             .fraud_decision = mdl_fraud_decision_names[decision->state.decision],
                             .id = order->id));
}

/* *changed gets the ids of the assignments whose status changes. */
static apr_status_t access_set_assignments(mdl_db_t *db, const mdl_access_t *access,
                                           const decision_t *decision, apr_array_header_t **changed,
                                           apr_pool_t *p)
{
    const apr_array_header_t *assignments = access->order->assignments;
    mdl_assignment_status_t status = decision->event == MDL_ORDER_REVOKE ? MDL_ASSIGNMENT_REVOKED
                                                                         : MDL_ASSIGNMENT_ACTIVE;

    *changed = apr_array_make(p, 4, sizeof(apr_int64_t));
    if (decision->event != MDL_ORDER_REVOKE && decision->event != MDL_ORDER_RESTORE) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(assignments, i, mdl_assignment_t *);

        if (access_covers(access, each) && each->status != status) {
            APR_ARRAY_PUSH(*changed, apr_int64_t) = each->id;
        }
    }
    return (*changed)->nelts > 0
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(ASSIGNMENTS_SET_STATUS,
                                   .status = mdl_assignment_status_names[status], .ids = *changed))
               : APR_SUCCESS;
}

/* Takes back the license keys of assignments that a decision closes.  *details gets how many went
   back to the stock; NULL: none. */
static apr_status_t access_reclaim(mdl_db_t *db, const mdl_access_t *access,
                                   const decision_t *decision, const apr_array_header_t *revoked,
                                   const char **details, apr_pool_t *p)
{
    const apr_array_header_t *assignments = access->order->assignments;
    apr_array_header_t *closed = apr_array_make(p, 4, sizeof(apr_int64_t));
    mdl_json_t *object = mdl_json_object(p);
    apr_int64_t reclaimed = 0;
    apr_status_t rv;

    for (int i = 0; i < assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(assignments, i, const mdl_assignment_t *);

        if (each->license_keys->nelts > 0 &&
            (decision->state.access == MDL_ORDER_REJECTED || mdl_ids_has(revoked, each->id))) {
            APR_ARRAY_PUSH(closed, apr_int64_t) = each->id;
        }
    }
    rv = closed->nelts > 0 ? mdl_license_reclaim(db, closed, access->key_id, &reclaimed, p)
                           : APR_SUCCESS;
    *details = NULL;
    if (reclaimed > 0) {
        mdl_json_add_int(object, "license_keys_reclaimed", reclaimed);
        *details = mdl_json_text(object, NULL, p);
    }
    return rv;
}

/* Queues the held emails and hands out the license keys that waited for an active order.  *details
   gets the number of keys; NULL: none. */
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

/* assignment_ids are the changed assignments; NULL: the event concerns the whole order. */
static apr_status_t access_notify(mdl_db_t *db, const mdl_order_t *order,
                                  const decision_t *decision,
                                  const apr_array_header_t *assignment_ids, apr_pool_t *p)
{
    static const mdl_event_type_t types[] = {[MDL_ORDER_REVOKE] = MDL_EVENT_ORDER_REVOKED,
                                             [MDL_ORDER_RESTORE] = MDL_EVENT_ORDER_RESTORED,
                                             [MDL_ORDER_APPROVE] = MDL_EVENT_ORDER_APPROVED,
                                             [MDL_ORDER_REJECT] = MDL_EVENT_ORDER_REJECTED};
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {
        .shop_id = order->shop_id, .type = types[decision->event], .order_id = order->id};

    mdl_json_add_string(data, "access_status", mdl_order_access_names[decision->state.access]);
    if (assignment_ids != NULL) {
        mdl_ids_add(data, "assignment_ids", assignment_ids);
    }
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

/* Stores a decision, and adds its entry and event if it changes anything. */
static apr_status_t access_store(mdl_db_t *db, mdl_access_t *access, const decision_t *decision,
                                 apr_pool_t *p)
{
    static const char *const actions[] = {[MDL_ORDER_REVOKE] = "revoked",
                                          [MDL_ORDER_RESTORE] = "restored",
                                          [MDL_ORDER_APPROVE] = "approved",
                                          [MDL_ORDER_REJECT] = "rejected"};
    mdl_timeline_entry_t entry = {.action = actions[decision->event],
                                  .key_id = access->key_id,
                                  .user = access->user,
                                  .reason = access->reason};
    apr_array_header_t *assignments;
    int order_changed;
    apr_status_t rv;

    if ((rv = access_set_order(db, access->order, decision, &order_changed, p)) != APR_SUCCESS ||
        (rv = access_set_assignments(db, access, decision, &assignments, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!order_changed && assignments->nelts == 0) {
        return APR_SUCCESS;
    }
    if (decision->event == MDL_ORDER_REVOKE || decision->event == MDL_ORDER_REJECT) {
        rv = access_reclaim(db, access, decision, assignments, &entry.details, p);
    } else if (decision->state.access == MDL_ORDER_ACTIVE &&
               (rv = mdl_help_grant(db, access->order->id, access->user, p)) == APR_SUCCESS) {
        rv = access_release(db, access->order, &entry.details, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (access->assignment_ids != NULL) {
        entry.assignment_ids = mdl_ids_json(assignments, p);
    }
    if ((rv = mdl_timeline_add(db, access->order->id, &entry, p)) != APR_SUCCESS ||
        (rv = access_notify(db, access->order, decision,
                            access->assignment_ids != NULL ? assignments : NULL, p)) !=
            APR_SUCCESS) {
        return rv;
    }
    return access_end(db, access, p);
}

/* A reason is kept until access opens, or closes again for another reason. */
static const char *access_reason(const mdl_access_t *access, mdl_order_event_t event,
                                 mdl_order_access_t after)
{
    const mdl_order_t *order = access->order;
    int closes = event == MDL_ORDER_REVOKE ||
                 (event == MDL_ORDER_REJECT && after == MDL_ORDER_REJECTED);

    if (after == order->state.access && !(closes && access->reason != NULL)) {
        return order->access_reason;
    }
    return closes ? access->reason : NULL;
}

/* Applies a decision to an order that access_begin has read. */
static apr_status_t access_apply(mdl_db_t *db, mdl_access_t *access, mdl_order_event_t event,
                                 apr_pool_t *p)
{
    int of_assignments = event == MDL_ORDER_REVOKE && access->assignment_ids != NULL;
    decision_t decision = {
        .event = event, .state = access->order->state, .reason = access->order->access_reason};
    apr_status_t rv;

    if (!of_assignments) {
        if ((rv = mdl_order_step(&decision.state, event, access->problem)) != APR_SUCCESS) {
            return rv;
        }
        decision.reason = access_reason(access, event, decision.state.access);
    }
    return access_store(db, access, &decision, p);
}

static apr_status_t access_decide(mdl_db_t *db, mdl_access_t *access, mdl_order_event_t event,
                                  apr_pool_t *p)
{
    apr_status_t rv = access_begin(db, access, p);

    return rv == APR_SUCCESS ? access_apply(db, access, event, p) : rv;
}

apr_status_t mdl_access_revoke(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    return access_decide(db, access, MDL_ORDER_REVOKE, p);
}

apr_status_t mdl_access_restore(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    return access_decide(db, access, MDL_ORDER_RESTORE, p);
}

apr_status_t mdl_access_approve(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    return access_decide(db, access, MDL_ORDER_APPROVE, p);
}

apr_status_t mdl_access_reject(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    return access_decide(db, access, MDL_ORDER_REJECT, p);
}

apr_status_t mdl_access_rotate_link(mdl_db_t *db, apr_pool_t *p, mdl_access_t *access)
{
    mdl_timeline_entry_t entry = {.action = "link_rotated",
                                  .key_id = access->key_id,
                                  .user = access->user,
                                  .reason = access->reason};
    apr_status_t rv;

    if ((rv = access_begin(db, access, p)) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(ORDER_REPLACE_PAGE, .page_id = mdl_signed_url_new_page_id(p),
                                .now = apr_time_now(), .id = access->order->id))) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_timeline_add(db, access->order->id, &entry, p);
    return rv == APR_SUCCESS ? access_end(db, access, p) : rv;
}

/* The assignments and files that a grant applies to. */
typedef struct {
    apr_array_header_t *assignments; /* apr_int64_t */
    mdl_json_t *pairs;               /* [assignment, file] each */
} grant_t;

static void grant_choose_files(const mdl_access_grant_t *grant, const mdl_assignment_t *assignment,
                               grant_t *chosen)
{
    apr_size_t before = mdl_json_length(chosen->pairs);

    for (int i = 0; i < assignment->files->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *)->asset_id;
        mdl_json_t *pair;

        if (grant->file_ids != NULL && !mdl_ids_has(grant->file_ids, id)) {
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

static apr_status_t grant_check_files(const mdl_access_grant_t *grant, const grant_t *chosen,
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

/* *changed tells whether anything changed; unlimited access, for one, can't be extended.  Locks
   assignments before their allowances, as downloads do. */
static apr_status_t grant_store(mdl_db_t *db, const mdl_access_grant_t *grant,
                                const grant_t *chosen, int *changed, apr_pool_t *p)
{
    apr_int64_t rows = 0;
    apr_status_t rv = APR_SUCCESS;

    *changed = 0;
    if (grant->extend_days > 0) {
        rv = mdl_db_exec(db, &rows, p,
                         MDL_Q(ASSIGNMENTS_EXTEND, .now = apr_time_now(),
                               .extension = grant->extend_days * DAY, .ids = chosen->assignments));
        *changed = rows > 0;
    }
    if (rv == APR_SUCCESS && grant->downloads > 0 && mdl_json_length(chosen->pairs) > 0) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(ALLOWANCE_GRANT, .downloads_extra = grant->downloads,
                               .pairs = mdl_json_text(chosen->pairs, NULL, p)));
        *changed = 1;
    }
    return rv;
}

static const char *grant_details(const mdl_access_grant_t *grant, apr_pool_t *p)
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
    mdl_timeline_entry_t entry = {.action = "downloads_granted",
                                  .key_id = access->key_id,
                                  .user = access->user,
                                  .reason = access->reason};
    int changed;
    apr_status_t rv;

    if ((rv = access_begin(db, access, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < access->order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(access->order->assignments, i,
                                                     mdl_assignment_t *);

        if (access_covers(access, each)) {
            grant_choose_files(grant, each, &chosen);
        }
    }
    if ((rv = grant_check_files(grant, &chosen, p)) != APR_SUCCESS ||
        (rv = grant_store(db, grant, &chosen, &changed, p)) != APR_SUCCESS || !changed) {
        return rv;
    }
    if (access->assignment_ids != NULL) {
        entry.assignment_ids = mdl_ids_json(access->assignment_ids, p);
    }
    entry.details = grant_details(grant, p);
    rv = mdl_timeline_add(db, access->order->id, &entry, p);
    if (rv == APR_SUCCESS) {
        rv = mdl_help_grant(db, access->order->id, access->user, p);
    }
    return rv == APR_SUCCESS ? access_end(db, access, p) : rv;
}

static apr_status_t quantity_check(const mdl_access_t *access, const mdl_assignment_t *assignment)
{
    if (assignment == NULL) {
        return mdl_problem_set(access->problem, 404, "assignment_not_found",
                               "There is no such assignment.");
    }
    if (access->order->state.access != MDL_ORDER_HELD) {
        apr_status_t rv = mdl_order_check_active(access->order, access->problem);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return assignment->status == MDL_ASSIGNMENT_ACTIVE
               ? APR_SUCCESS
               : mdl_problem_set(access->problem, 409, "access_revoked",
                                 "This assignment was revoked; restore it first.");
}

static apr_status_t quantity_store(mdl_db_t *db, mdl_access_quantity_t *change, int before,
                                   apr_pool_t *p)
{
    mdl_access_t *access = &change->access;
    mdl_quantity_t quantity = {.order_id = access->order->id,
                               .assignment_id = change->assignment_id,
                               .before = before,
                               .quantity = change->quantity,
                               .key_id = access->key_id,
                               .user = access->user,
                               .reason = access->reason};
    apr_status_t rv = mdl_quantity_set(db, &quantity, p);

    if (rv != APR_SUCCESS || (rv = access_end(db, access, p)) != APR_SUCCESS) {
        return rv;
    }
    return change->quantity > before ? mdl_order_check_size(access->order, access->problem, p)
                                     : APR_SUCCESS;
}

apr_status_t mdl_access_set_quantity(mdl_db_t *db, apr_pool_t *p, mdl_access_quantity_t *change)
{
    mdl_access_t *access = &change->access;
    const mdl_assignment_t *assignment;
    apr_status_t rv;

    if ((rv = access_begin(db, access, p)) != APR_SUCCESS) {
        return rv;
    }
    assignment = mdl_access_assignment(access, change->assignment_id);
    if (assignment != NULL && change->quantity == 0) {
        access->assignment_ids = mdl_ids_of(change->assignment_id, p);
        return access_apply(db, access, MDL_ORDER_REVOKE, p);
    }
    if ((rv = quantity_check(access, assignment)) != APR_SUCCESS ||
        assignment->quantity == change->quantity) {
        return rv;
    }
    return quantity_store(db, change, assignment->quantity, p);
}
