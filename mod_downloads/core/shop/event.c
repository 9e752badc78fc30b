#include "core/shop/event.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/ulid.h"

#define BATCH  1000 /* events numbered in a transaction */
#define LOOKED 1000 /* events, if only some may fit */

const char *const mdl_event_type_names[] = {
    [MDL_EVENT_ASSET_READY] = "asset.ready",
    [MDL_EVENT_ASSET_VERSION_ADDED] = "asset.version_added",
    [MDL_EVENT_CUSTOMER_ADDRESS_CHANGED] = "customer.address_changed",
    [MDL_EVENT_CUSTOMER_MERGED] = "customer.merged",
    [MDL_EVENT_DOWNLOAD_COMPLETED] = "download.completed",
    [MDL_EVENT_DOWNLOAD_LIMIT_REACHED] = "download.limit_reached",
    [MDL_EVENT_EMAIL_BOUNCED] = "email.bounced",
    [MDL_EVENT_EMAIL_FAILED] = "email.failed",
    [MDL_EVENT_EMAIL_SENT] = "email.sent",
    [MDL_EVENT_HELP_REQUESTED] = "help.requested",
    [MDL_EVENT_IMPORT_FAILED] = "import.failed",
    [MDL_EVENT_LICENSE_KEY_DELIVERED] = "license_key.delivered",
    [MDL_EVENT_LICENSE_KEY_LOW] = "license_key.low",
    [MDL_EVENT_ORDER_ADDRESS_CHANGED] = "order.address_changed",
    [MDL_EVENT_ORDER_APPROVED] = "order.approved",
    [MDL_EVENT_ORDER_ASSIGNED] = "order.assigned",
    [MDL_EVENT_ORDER_HELD] = "order.held",
    [MDL_EVENT_ORDER_REJECTED] = "order.rejected",
    [MDL_EVENT_ORDER_RESTORED] = "order.restored",
    [MDL_EVENT_ORDER_REVOKED] = "order.revoked",
    [MDL_EVENT_SHOP_BLOCKED] = "shop.blocked",
    [MDL_EVENT_WEBHOOK_DISABLED] = "webhook.disabled",
    [MDL_EVENT_WEBHOOK_TEST] = "webhook.test",
    NULL,
};

/* --- adding --- */

static apr_time_t event_now(mdl_db_t *db)
{
    mdl_db_note_event(db);
    return apr_time_now();
}

apr_status_t mdl_event_add(mdl_db_t *db, const mdl_event_t *event, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENT_INSERT, .shop_id = event->shop_id,
                             .type = mdl_event_type_names[event->type], .order_id = event->order_id,
                             .data = event->data, .request_id = mdl_db_request(db),
                             .created_at = event_now(db)));
}

apr_status_t mdl_event_add_of_order(mdl_db_t *db, mdl_event_type_t type, apr_int64_t order_id,
                                    const mdl_json_t *data, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENT_INSERT_OF_ORDER, .type = mdl_event_type_names[type],
                             .data = mdl_json_text(data, NULL, p), .request_id = mdl_db_request(db),
                             .created_at = event_now(db), .id = order_id));
}

apr_status_t mdl_event_add_of_email(mdl_db_t *db, mdl_event_type_t type, apr_int64_t email_id,
                                    apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);

    mdl_json_add_int(data, "email_id", email_id);
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENT_INSERT_OF_EMAIL, .type = mdl_event_type_names[type],
                             .data = mdl_json_text(data, NULL, p), .created_at = event_now(db),
                             .id = email_id));
}

apr_status_t mdl_event_add_of_tag(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENT_INSERT_OF_TAG, .request_id = mdl_db_request(db),
                             .created_at = event_now(db), .id = tag_id));
}

apr_status_t mdl_event_add_given(mdl_db_t *db, const char *pairs, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENTS_INSERT_GIVEN, .created_at = event_now(db), .pairs = pairs));
}

apr_status_t mdl_event_add_downloads(mdl_db_t *db, const apr_array_header_t *downloads,
                                     int default_download_limit, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_array(p);

    for (int i = 0; i < downloads->nelts; i++) {
        const mdl_event_download_t *download = &APR_ARRAY_IDX(downloads, i, mdl_event_download_t);
        mdl_json_t *each = mdl_json_add_object(list, NULL);

        mdl_json_add_int(each, "assignment_id", download->assignment_id);
        mdl_json_add_int_if(each, "asset_id", download->asset_id, download->asset_id != 0);
        mdl_json_add_int(each, "bytes", download->bytes);
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(EVENTS_INSERT_DOWNLOADS, .created_at = event_now(db),
                             .downloads = mdl_json_text(list, NULL, p),
                             .limit = default_download_limit));
}

apr_status_t mdl_event_add_for_endpoint(mdl_db_t *db, mdl_event_t *event, apr_int64_t endpoint_id,
                                        apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    mdl_db_note_event(db);
    event->created_at = apr_time_now();
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(EVENT_INSERT_FOR_ENDPOINT, .shop_id = event->shop_id,
                                 .type = mdl_event_type_names[event->type], .data = event->data,
                                 .created_at = event->created_at, .endpoint_id = endpoint_id));
    if (rv == APR_SUCCESS) {
        event->id = mdl_rows_int(row, 0);
    }
    return rv;
}

/* --- numbering --- */

apr_status_t mdl_event_first_waiting(mdl_db_t *db, apr_pool_t *p, apr_int64_t *id)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EVENT_FIRST_WAITING));

    *id = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static void pair_add(mdl_json_t *list, apr_int64_t id, apr_int64_t number)
{
    mdl_json_t *pair = mdl_json_add_object(list, NULL);

    mdl_json_add_int(pair, "id", id);
    mdl_json_add_int(pair, "number", number);
}

/* Numbers the events: returns pairs of id and number.  *counts gets the last number of each shop in
   the same form. */
static mdl_json_t *events_count(mdl_rows_t *rows, mdl_event_number_t *number, mdl_json_t **counts,
                                apr_pool_t *p)
{
    mdl_json_t *numbers = mdl_json_array(p);
    apr_hash_t *last = apr_hash_make(p);

    *counts = mdl_json_array(p);
    while (mdl_rows_next(rows)) {
        apr_int64_t shop[2] = {MDL_INT(rows, events_waiting, shop_id),
                               MDL_INT(rows, events_waiting, last)};
        apr_int64_t *count = apr_hash_get(last, shop, sizeof *shop);

        if (count == NULL) {
            count = apr_pmemdup(p, shop, sizeof shop);
            apr_hash_set(last, count, sizeof *shop, count);
        }
        pair_add(numbers, MDL_INT(rows, events_waiting, id), ++count[1]);
        APR_ARRAY_PUSH(number->ids, apr_int64_t) = MDL_INT(rows, events_waiting, id);
        APR_ARRAY_PUSH(number->events, mdl_event_t) = (mdl_event_t){
            .id = MDL_INT(rows, events_waiting, id),
            .shop_id = shop[0],
            .type = MDL_ENUM(rows, events_waiting, type, mdl_event_type_names),
            .data = MDL_TEXT(rows, events_waiting, data),
            .created_at = MDL_INT(rows, events_waiting, created_at)};
    }
    for (apr_hash_index_t *i = apr_hash_first(p, last); i != NULL; i = apr_hash_next(i)) {
        const apr_int64_t *count = apr_hash_this_val(i);

        pair_add(*counts, count[0], count[1]);
    }
    return numbers;
}

apr_status_t mdl_event_number(mdl_db_t *db, apr_pool_t *p, mdl_event_number_t *number)
{
    mdl_json_t *numbers, *counts;
    mdl_rows_t *lock, *rows;
    apr_status_t rv = mdl_db_select(db, &lock, p, MDL_Q(EVENTS_LOCK));

    number->ids = apr_array_make(p, 16, sizeof(apr_int64_t));
    number->events = apr_array_make(p, 16, sizeof(mdl_event_t));
    number->more = 0;
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(EVENTS_WAITING, .from = number->from, .limit = BATCH));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    numbers = events_count(rows, number, &counts, p);
    number->more = number->ids->nelts == BATCH;
    if (number->ids->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(EVENTS_NUMBER, mdl_json_text(numbers, NULL, p)));
    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p, MDL_Q(EVENT_COUNTS_SET, mdl_json_text(counts, NULL, p)))
               : rv;
}

/* --- reading --- */

void mdl_event_read(mdl_event_t *event, const mdl_rows_t *row, int first)
{
    *event = (mdl_event_t){
        .id = mdl_rows_int(row, first + mdl_c_event_id),
        .number = mdl_rows_int(row, first + mdl_c_event_number),
        .type = mdl_rows_enum(row, first + mdl_c_event_type, mdl_event_type_names),
        .data = mdl_rows_text(row, first + mdl_c_event_data),
        .created_at = mdl_rows_int(row, first + mdl_c_event_created_at),
        .storefront_order_id = mdl_rows_text(row, first + mdl_c_event_storefront_order_id)};
}

/* Reads the row after the events: the feed and its last number. */
static apr_status_t event_list_end(mdl_event_list_t *list, const mdl_rows_t *row, apr_pool_t *p)
{
    apr_int64_t last = MDL_INT(row, event, number);

    list->feed = apr_pstrdup(p, MDL_TEXT(row, event, type));
    if (list->known_feed != NULL && strcmp(list->known_feed, list->feed) != 0) {
        return mdl_problem_set(list->problem, 409, "feed_changed",
                               "The events are of another feed now, for a backup was restored; ask "
                               "with after=latest and without feed, read orders and assets anew, "
                               "and go on from there.");
    }
    if (list->at_end || last < list->last) {
        list->last = last;
    }
    return APR_SUCCESS;
}

static void event_list_add(mdl_event_list_t *list, const mdl_rows_t *row, apr_pool_t *p)
{
    list->last = MDL_INT(row, event, number);
    if (list->type == NULL || strcmp(MDL_TEXT(row, event, type), list->type) == 0) {
        mdl_event_t *event = apr_palloc(p, sizeof *event);

        mdl_event_read(event, row, 0);
        APR_ARRAY_PUSH(list->found, mdl_event_t *) = event;
    }
}

apr_status_t mdl_event_list(mdl_db_t *db, apr_pool_t *p, mdl_event_list_t *list)
{
    int look = list->at_end ? 0 : list->type != NULL ? LOOKED : list->limit + 1;
    mdl_rows_t *rows;
    int looked = 0;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(EVENT_PAGE, .shop_id = list->shop_id, .after = list->after, .limit = look));

    list->found = apr_array_make(p, list->limit, sizeof(mdl_event_t *));
    list->last = list->after;
    list->more = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        if (mdl_rows_null(rows, 0)) {
            rv = event_list_end(list, rows, p);
        } else if (list->found->nelts == list->limit) {
            list->more = 1;
        } else {
            looked++;
            event_list_add(list, rows, p);
        }
    }
    list->more |= look > 0 && looked == look;
    return rv;
}

apr_status_t mdl_event_feed(mdl_db_t *db, apr_pool_t *p, const char **feed)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EVENT_FEED));

    if (rv == APR_SUCCESS) {
        *feed = mdl_rows_text(row, 0);
    }
    return rv;
}

apr_status_t mdl_event_renew_feed(mdl_db_t *db, apr_pool_t *p, const char **feed)
{
    apr_status_t rv;

    *feed = mdl_ulid("feed_", p);
    rv = mdl_db_exec(db, NULL, p, MDL_Q(EVENT_FEED_RENEW, *feed));
    /* Nodes must not trust keys that they have cached from before, either. */
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP)) : rv;
}

static void data_add(void *baton, const char *name, mdl_json_t *value)
{
    mdl_json_add_copy(baton, name, value);
}

const char *mdl_event_id_text(apr_int64_t id, apr_pool_t *p)
{
    return apr_psprintf(p, "evt_%" APR_INT64_T_FMT, id);
}

void mdl_event_write(mdl_json_t *to, const mdl_event_t *event, apr_pool_t *p)
{
    mdl_json_t *data, *shown;
    const char *why;

    mdl_json_add_string(to, "id", mdl_event_id_text(event->id, p));
    mdl_json_add_int_if(to, "number", event->number, event->number != 0);
    mdl_json_add_string(to, "type", mdl_event_type_names[event->type]);
    mdl_json_add_time(to, "created_at", event->created_at);
    shown = mdl_json_add_object(to, "data");
    if (event->storefront_order_id != NULL) {
        mdl_json_add_string(shown, "storefront_order_id", event->storefront_order_id);
    }
    if (mdl_json_parse(&data, event->data, strlen(event->data), MDL_JSON_MAX_VALUES, &why, p) ==
        APR_SUCCESS) {
        mdl_json_each(data, data_add, shown);
    }
}
