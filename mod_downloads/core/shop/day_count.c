#include "core/shop/day_count.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/clock.h"

#define DAY apr_time_from_sec(86400)

const char *const mdl_day_kind_names[] = {[MDL_DAY_ORDERS] = "orders",
                                          [MDL_DAY_DOWNLOADS] = "downloads",
                                          [MDL_DAY_BYTES] = "bytes",
                                          [MDL_DAY_EMAILS] = "emails",
                                          NULL};

apr_int64_t mdl_day_of(apr_time_t when)
{
    return when / DAY;
}

const char *mdl_day_text(apr_int64_t day, apr_pool_t *p)
{
    return apr_pstrmemdup(p, mdl_clock_rfc3339(day * DAY, p), strlen("2026-01-31"));
}

/* --- adding --- */

/* A shop's day: the key of a count. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t day;
} shop_day_t;

typedef struct {
    shop_day_t key;
    apr_int64_t counts[MDL_DAY_KINDS];
} added_t;

static added_t *added_find(apr_hash_t *days, const mdl_event_t *event, apr_pool_t *p)
{
    const shop_day_t key = {event->shop_id, mdl_day_of(event->created_at)};
    added_t *added = apr_hash_get(days, &key, sizeof key);

    if (added == NULL) {
        added = apr_pcalloc(p, sizeof *added);
        added->key = key;
        apr_hash_set(days, &added->key, sizeof key, added);
    }
    return added;
}

static void event_count(apr_hash_t *days, const mdl_event_t *event, apr_pool_t *p)
{
    const mdl_json_t *data = mdl_json_stored(event->data, p);
    apr_int64_t *counts = added_find(days, event, p)->counts;

    if (event->type == MDL_EVENT_ORDER_ASSIGNED) {
        counts[MDL_DAY_ORDERS] += mdl_json_bool(mdl_json_member(data, "is_new"));
    } else if (event->type == MDL_EVENT_DOWNLOAD_COMPLETED) {
        counts[MDL_DAY_DOWNLOADS]++;
        counts[MDL_DAY_BYTES] += mdl_json_int(mdl_json_member(data, "bytes"));
    } else if (event->type == MDL_EVENT_EMAIL_SENT) {
        counts[MDL_DAY_EMAILS]++;
    }
}

static void added_write(mdl_json_t *list, const added_t *added)
{
    for (int i = 0; i < MDL_DAY_KINDS; i++) {
        if (added->counts[i] > 0) {
            mdl_json_t *each = mdl_json_add_object(list, NULL);

            mdl_json_add_int(each, "shop_id", added->key.shop_id);
            mdl_json_add_int(each, "day", added->key.day);
            mdl_json_add_int(each, "kind", i);
            mdl_json_add_int(each, "n", added->counts[i]);
        }
    }
}

apr_status_t mdl_day_count_add(mdl_db_t *db, const apr_array_header_t *events, apr_pool_t *p)
{
    apr_hash_t *days = apr_hash_make(p);
    mdl_json_t *list = mdl_json_array(p);

    for (int i = 0; i < events->nelts; i++) {
        event_count(days, &APR_ARRAY_IDX(events, i, mdl_event_t), p);
    }
    for (apr_hash_index_t *i = apr_hash_first(p, days); i != NULL; i = apr_hash_next(i)) {
        added_write(list, apr_hash_this_val(i));
    }
    return mdl_json_length(list) > 0
               ? mdl_db_exec(db, NULL, p, MDL_Q(DAY_COUNTS_ADD, mdl_json_text(list, NULL, p)))
               : APR_SUCCESS;
}

/* --- reading --- */

apr_status_t mdl_day_count_list(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_day_count_t *last = NULL;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(DAY_COUNTS, .shop_id = page->shop_id,
                                          .before = page->before,
                                          .limit = (apr_int64_t)page->limit * MDL_DAY_KINDS));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_day_count_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t day = MDL_INT(rows, day_counts, day), kind = MDL_INT(rows, day_counts, kind);

        if (last == NULL || last->day != day) {
            if (page->found->nelts == page->limit) {
                break;
            }
            last = apr_pcalloc(p, sizeof *last);
            last->day = day;
            APR_ARRAY_PUSH(page->found, mdl_day_count_t *) = last;
        }
        if (kind >= 0 && kind < MDL_DAY_KINDS) {
            last->counts[kind] = MDL_INT(rows, day_counts, n);
        }
    }
    return rv;
}
