#include "core/order/event.h"

#include "core/version.h"

apr_status_t mdl_event_touch(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(ORDER_TOUCH, .now = apr_time_now(), .id = order_id));
}

apr_status_t mdl_event_add(mdl_db_t *db, apr_int64_t order_id, mdl_event_t *event, apr_pool_t *p)
{
    apr_status_t rv;

    if (!event->order_is_new && (rv = mdl_event_touch(db, order_id, p)) != APR_SUCCESS) {
        return rv;
    }
    event->created_at = apr_time_now();
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENT_INSERT, .order_id = order_id, .action = event->action,
                             .assignment_ids = event->assignment_ids, .key_id = event->key_id,
                             .user_name = event->user, .reason = event->reason,
                             .details = event->details, .created_at = event->created_at));
}

apr_status_t mdl_event_ask_list(mdl_db_t *db, apr_int64_t order_id, apr_int64_t before, int limit,
                                mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(
        db, rows, p,
        MDL_Q(EVENTS_OF_ORDER, .order_id = order_id, .before = before, .limit = limit));
}

apr_array_header_t *mdl_event_read_all(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *events = apr_array_make(p, 8, sizeof(mdl_event_t *));

    while (mdl_rows_next(rows)) {
        mdl_event_t *event = apr_pcalloc(p, sizeof *event);

        MDL_READ(rows, events_of_order, event, id, action, assignment_ids, key_id);
        event->user = MDL_TEXT(rows, events_of_order, user_name);
        MDL_READ(rows, events_of_order, event, reason, details, created_at);
        APR_ARRAY_PUSH(events, mdl_event_t *) = event;
    }
    return events;
}

apr_status_t mdl_event_count(mdl_db_t *db, apr_int64_t order_id, const char *action,
                             apr_time_t since, int *count, apr_time_t *oldest, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(EVENT_COUNT, .order_id = order_id, .action = action, .since = since));

    if (rv == APR_SUCCESS) {
        *count = (int)MDL_INT(row, event_count, count);
        *oldest = MDL_INT(row, event_count, oldest);
    }
    return rv;
}

apr_status_t mdl_event_check_seen(mdl_db_t *db, const mdl_event_seen_t *seen,
                                  mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    if (seen->event_id == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(ORDER_LOCK, .shop_id = seen->shop_id,
                                 .storefront_order_id = seen->storefront_order_id));
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(EVENTS_OF_ORDER, .order_id = mdl_rows_int(row, 0),
                                 .before = APR_INT64_MAX, .limit = 1));
    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return rv;
    }
    return rv == APR_SUCCESS && mdl_rows_int(row, 0) == seen->event_id
               ? APR_SUCCESS
               : mdl_version_refuse(problem);
}
