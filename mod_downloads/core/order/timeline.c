#include "core/order/timeline.h"

#include "core/version.h"

apr_status_t mdl_timeline_touch(mdl_db_t *db, apr_int64_t order_id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(ORDER_TOUCH, .now = apr_time_now(), .id = order_id));
}

apr_status_t mdl_timeline_add(mdl_db_t *db, apr_int64_t order_id, mdl_timeline_entry_t *entry,
                              apr_pool_t *p)
{
    apr_status_t rv;

    if (!entry->order_is_new && (rv = mdl_timeline_touch(db, order_id, p)) != APR_SUCCESS) {
        return rv;
    }
    entry->created_at = apr_time_now();
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(TIMELINE_INSERT, .order_id = order_id, .action = entry->action,
                             .assignment_ids = entry->assignment_ids, .key_id = entry->key_id,
                             .user_name = entry->user, .reason = entry->reason,
                             .details = entry->details, .created_at = entry->created_at));
}

apr_status_t mdl_timeline_ask_list(mdl_db_t *db, apr_int64_t order_id, apr_int64_t before,
                                   int limit, mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(
        db, rows, p,
        MDL_Q(TIMELINE_OF_ORDER, .order_id = order_id, .before = before, .limit = limit));
}

apr_array_header_t *mdl_timeline_read_all(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *entries = apr_array_make(p, 8, sizeof(mdl_timeline_entry_t *));

    while (mdl_rows_next(rows)) {
        mdl_timeline_entry_t *entry = apr_pcalloc(p, sizeof *entry);

        MDL_READ(rows, timeline_of_order, entry, id, action, assignment_ids, key_id, key_name,
                 reason, details, created_at);
        entry->user = MDL_TEXT(rows, timeline_of_order, user_name);
        APR_ARRAY_PUSH(entries, mdl_timeline_entry_t *) = entry;
    }
    return entries;
}

apr_status_t mdl_timeline_count(mdl_db_t *db, apr_int64_t order_id, const char *action,
                                apr_time_t since, int *count, apr_time_t *oldest, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(TIMELINE_COUNT, .order_id = order_id, .action = action, .since = since));

    if (rv == APR_SUCCESS) {
        *count = (int)MDL_INT(row, timeline_count, count);
        *oldest = MDL_INT(row, timeline_count, oldest);
    }
    return rv;
}

apr_status_t mdl_timeline_check_seen(mdl_db_t *db, const mdl_timeline_seen_t *seen,
                                     mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    if (seen->entry_id == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(ORDER_LOCK, .shop_id = seen->shop_id,
                                 .storefront_order_id = seen->storefront_order_id));
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(TIMELINE_OF_ORDER, .order_id = mdl_rows_int(row, 0),
                                 .before = APR_INT64_MAX, .limit = 1));
    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return rv;
    }
    return rv == APR_SUCCESS && mdl_rows_int(row, 0) == seen->entry_id
               ? APR_SUCCESS
               : mdl_version_refuse(problem);
}
