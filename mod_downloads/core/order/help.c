#include "core/order/help.h"

#include "core/order/timeline.h"
#include "core/shop/event.h"
#include "core/shop/notice.h"

const char *mdl_help_finding(const mdl_diagnosis_t *diagnosis)
{
    const char *finding = "none";

    for (int i = MDL_CHECK_PAGE; i < MDL_CHECKS; i++) {
        const mdl_check_t *check = &diagnosis->checks[i];

        if (check->status == MDL_CHECK_FAIL) {
            return check->finding;
        }
        if (check->status == MDL_CHECK_WARN) {
            finding = check->finding;
        }
    }
    return finding;
}

int mdl_help_waits(const mdl_help_t *help)
{
    return help->asked_at != 0 && help->state == MDL_HELP_ASKED;
}

static int file_needs_help(const mdl_order_file_t *file)
{
    mdl_entitlement_t entitlement = mdl_entitlement_of_file(file->status, file->downloads,
                                                            file->download_limit);

    return entitlement == MDL_ENTITLEMENT_EXHAUSTED || entitlement == MDL_ENTITLEMENT_FAILED;
}

int mdl_help_needed(const mdl_order_t *order, apr_time_t now)
{
    mdl_entitlement_t entitlement = mdl_order_entitlement(order, now);

    if (entitlement != MDL_ENTITLEMENT_OK) {
        return entitlement != MDL_ENTITLEMENT_UNDECLARED; /* the customer's own turn */
    }
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i,
                                                     const mdl_assignment_t *);

        if (!mdl_assignment_open(each, now)) {
            return 1;
        }
        for (int j = 0; j < each->files->nelts; j++) {
            if (file_needs_help(APR_ARRAY_IDX(each->files, j, const mdl_order_file_t *))) {
                return 1;
            }
        }
    }
    return 0;
}

int mdl_help_only_ended(const mdl_order_t *order, apr_time_t now)
{
    int ended = 0;

    if (order->state.access != MDL_ORDER_ACTIVE || order->undeclared) {
        return 0;
    }
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i,
                                                     const mdl_assignment_t *);

        if (each->status != MDL_ASSIGNMENT_ACTIVE) {
            return 0;
        }
        ended |= !mdl_assignment_open(each, now);
        for (int j = 0; j < each->files->nelts; j++) {
            const mdl_order_file_t *file = APR_ARRAY_IDX(each->files, j, const mdl_order_file_t *);
            mdl_entitlement_t entitlement = mdl_entitlement_of_file(file->status, file->downloads,
                                                                    file->download_limit);

            if (entitlement == MDL_ENTITLEMENT_FAILED) {
                return 0;
            }
            ended |= entitlement == MDL_ENTITLEMENT_EXHAUSTED;
        }
    }
    return ended;
}

static apr_status_t help_count(mdl_db_t *db, apr_int64_t order_id, mdl_help_ask_t *ask,
                               int *is_asked, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(HELP_LAPSE, order_id));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(db, &row, p,
                               MDL_Q(HELP_COUNTS, .order_id = order_id, .shop_id = ask->shop_id,
                                     .limit = MDL_HELP_SHOP_MAX));
    }
    if (rv == APR_SUCCESS) {
        mdl_shop_help_t help = MDL_ENUM(row, help_counts, shop_help, mdl_shop_help_names);

        *is_asked = MDL_INT(row, help_counts, asked) > 0 ||
                    (!ask->needed && MDL_INT(row, help_counts, just_granted) > 0);
        ask->by_itself = help == MDL_SHOP_HELP_FIRST && MDL_INT(row, help_counts, ever) == 0 &&
                         ask->only_ended;
        if (help == MDL_SHOP_HELP_OFF) {
            ask->outcome = MDL_HELP_IS_OFF;
        } else if (!*is_asked && (MDL_INT(row, help_counts, lately) >= MDL_HELP_MONTH_MAX ||
                                  MDL_INT(row, help_counts, shop_asked) >= MDL_HELP_SHOP_MAX)) {
            ask->outcome = MDL_HELP_TOO_OFTEN;
        }
    }
    return rv;
}

/* Tells the order's timeline, the shop's systems and its members. */
static apr_status_t help_tell(mdl_db_t *db, apr_int64_t order_id, const mdl_help_ask_t *ask,
                              apr_pool_t *p)
{
    mdl_timeline_entry_t entry = {.action = "help_asked"};
    mdl_json_t *data = mdl_json_object(p);
    apr_status_t rv = mdl_timeline_add(db, order_id, &entry, p);

    mdl_json_add_string(data, "finding", ask->finding);
    if (rv == APR_SUCCESS) {
        rv = mdl_event_add_of_order(db, MDL_EVENT_HELP_REQUESTED, order_id, data, p);
    }
    return rv == APR_SUCCESS && !ask->by_itself
               ? mdl_notice_add_by_default(db, MDL_NOTICE_HELP, ask->shop_id, p)
               : rv;
}

apr_status_t mdl_help_ask(mdl_db_t *db, apr_pool_t *p, mdl_help_ask_t *ask)
{
    int is_asked = 0;
    apr_int64_t id;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ORDER_LOCK, .shop_id = ask->shop_id,
                                              .storefront_order_id = ask->storefront_order_id));

    ask->outcome = rv == APR_ENOENT ? MDL_HELP_NO_ORDER : MDL_HELP_IS_ASKED;
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    id = mdl_rows_int(row, 0);
    rv = help_count(db, id, ask, &is_asked, p);
    if (rv != APR_SUCCESS || is_asked || ask->outcome != MDL_HELP_IS_ASKED) {
        return rv;
    }
    rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(HELP_INSERT, .shop_id = ask->shop_id, .order_id = id, .finding = ask->finding));
    return rv == APR_SUCCESS ? help_tell(db, id, ask, p) : rv;
}

void mdl_help_of_row(mdl_help_request_t *request, const mdl_rows_t *row)
{
    MDL_READ(row, help_waiting, request, id, finding, answer, decided_by, asked_at, decided_at,
             storefront_order_id, order_name);
    request->state = MDL_ENUM(row, help_waiting, state, mdl_help_state_names);
}

apr_status_t mdl_help_find(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id,
                           mdl_help_request_t *request, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(HELP_BY_ID, .id = id, .shop_id = shop_id));

    if (rv == APR_SUCCESS) {
        mdl_help_of_row(request, row);
    }
    return rv;
}

apr_status_t mdl_help_refuse_unknown(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "help_request_not_found",
                           "There is no such request for help.");
}

apr_status_t mdl_help_get(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    mdl_help_request_t *request = ref->entity = apr_pcalloc(p, sizeof *request);
    apr_status_t rv = mdl_help_find(db, ref->shop_id, ref->id, request, p);

    return rv == APR_ENOENT ? mdl_help_refuse_unknown(ref->problem) : rv;
}

apr_status_t mdl_help_list(mdl_db_t *db, apr_pool_t *p, mdl_help_list_t *list)
{
    mdl_list_page_t *page = &list->page;
    mdl_rows_t *rows;
    apr_status_t rv = list->waiting
                          ? mdl_db_select(db, &rows, p,
                                          MDL_Q(HELP_WAITING, .shop_id = page->shop_id,
                                                .before = page->before, .limit = page->limit))
                          : mdl_db_select(db, &rows, p,
                                          MDL_Q(HELP_PAGE, .shop_id = page->shop_id,
                                                .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_help_request_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_help_request_t *request = apr_pcalloc(p, sizeof *request);

        mdl_help_of_row(request, rows);
        APR_ARRAY_PUSH(page->found, mdl_help_request_t *) = request;
    }
    return rv;
}

apr_status_t mdl_help_find_newest(mdl_db_t *db, apr_int64_t order_id, mdl_help_request_t *request,
                                  apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(HELP_OF_ORDER, order_id));

    if (rv == APR_SUCCESS) {
        mdl_help_of_row(request, row);
    }
    return rv;
}

apr_status_t mdl_help_find_waiting(mdl_db_t *db, apr_int64_t shop_id, int limit,
                                   apr_array_header_t **requests, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(HELP_WAITING, .shop_id = shop_id, .before = APR_INT64_MAX, .limit = limit));

    *requests = apr_array_make(p, limit, sizeof(mdl_help_request_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_help_of_row(&APR_ARRAY_PUSH(*requests, mdl_help_request_t), rows);
    }
    return rv;
}

apr_status_t mdl_help_read(mdl_db_t *db, apr_int64_t order_id, mdl_help_t *help, apr_pool_t *p)
{
    mdl_help_request_t request = {0};
    apr_status_t rv = mdl_help_find_newest(db, order_id, &request, p);

    *help = (mdl_help_t){
        .state = request.state, .asked_at = request.asked_at, .answer = request.answer};
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t help_settle(mdl_db_t *db, apr_int64_t order_id, mdl_help_state_t state,
                                const char *answer, const char *user, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(HELP_SETTLE, .state = mdl_help_state_names[state], .answer = answer,
                             .decided_by = user, .order_id = order_id));
}

apr_status_t mdl_help_grant(mdl_db_t *db, apr_int64_t order_id, const char *user, apr_pool_t *p)
{
    return help_settle(db, order_id, MDL_HELP_GRANTED, NULL, user, p);
}

apr_status_t mdl_help_refuse(mdl_db_t *db, apr_int64_t order_id, const char *answer,
                             const char *user, apr_pool_t *p)
{
    return help_settle(db, order_id, MDL_HELP_REFUSED, answer, user, p);
}
