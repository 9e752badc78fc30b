#include "core/order/change.h"

#include <string.h>

#include <apr_time.h>

#include "base/text/json.h"
#include "core/download/signed_url.h"
#include "core/ids.h"
#include "core/order/order_words.h"
#include "core/order/resend.h"
#include "core/order/timeline.h"
#include "core/shop/event.h"

const char *mdl_order_address_details(const char *before, const char *after, int link_rotated,
                                      apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);

    mdl_json_add_string(details, "email_before", before);
    mdl_json_add_string(details, "email", after);
    mdl_json_add_bool(details, "link_rotated", link_rotated);
    return mdl_json_text(details, NULL, p);
}

static int change_moves(const mdl_order_change_t *change)
{
    const mdl_order_t *order = change->access.order;

    if (!change->email_given || change->email == NULL) {
        return change->email_given && order->own_address != NULL;
    }
    return order->address == NULL || strcmp(change->email, order->address) != 0;
}

/* Stores the address; *now gets the one that goes for the order. */
static apr_status_t change_store(mdl_db_t *db, const mdl_order_change_t *change, const char **now,
                                 apr_pool_t *p)
{
    const mdl_order_t *order = change->access.order;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(ORDER_SET_RECIPIENT, .recipient = change->email, .id = order->id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *now = mdl_rows_text(row, 0);
    if (change->rotate_link &&
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(ORDER_REPLACE_PAGE, .page_id = mdl_signed_url_new_page_id(p),
                                .now = apr_time_now(), .id = order->id))) != APR_SUCCESS) {
        return rv;
    }
    return *now != NULL ? mdl_email_redirect(db, order->shop_id, mdl_ids_of(order->id, p), *now, p)
                        : APR_SUCCESS;
}

static apr_status_t change_address(mdl_db_t *db, const mdl_order_change_t *change, apr_pool_t *p)
{
    const mdl_access_t *access = &change->access;
    mdl_timeline_entry_t entry = {.action = "address_changed",
                                  .key_id = access->key_id,
                                  .user = access->user,
                                  .reason = access->reason};
    const char *now;
    apr_status_t rv = change_store(db, change, &now, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    entry.details = mdl_order_address_details(access->order->address, now, change->rotate_link, p);
    rv = mdl_timeline_add(db, access->order->id, &entry, p);
    return rv == APR_SUCCESS ? mdl_event_add_of_order(db, MDL_EVENT_ORDER_ADDRESS_CHANGED,
                                                      access->order->id, mdl_json_object(p), p)
                             : rv;
}

static int change_renames(const mdl_order_change_t *change)
{
    const char *before = change->access.order->name;

    return change->name_given &&
           strcmp(change->name != NULL ? change->name : "", before != NULL ? before : "") != 0;
}

static apr_status_t change_name(mdl_db_t *db, const mdl_order_change_t *change, apr_pool_t *p)
{
    apr_int64_t id = change->access.order->id;
    apr_status_t rv = mdl_db_exec(db, NULL, p,
                                  MDL_Q(ORDER_SET_NAME, .name = change->name, .id = id));

    return rv == APR_SUCCESS ? mdl_timeline_touch(db, id, p) : rv;
}

/* Stores what differs. */
static apr_status_t change_apply(mdl_db_t *db, const mdl_order_change_t *change, apr_pool_t *p)
{
    apr_status_t rv = change_renames(change) ? change_name(db, change, p) : APR_SUCCESS;

    if (rv == APR_SUCCESS && change_moves(change)) {
        rv = change_address(db, change, p);
    }
    return rv == APR_SUCCESS && (change_renames(change) || change_moves(change))
               ? mdl_order_store_words(db, change->access.order->id, p)
               : rv;
}

static apr_status_t change_send(mdl_db_t *db, mdl_order_change_t *change, apr_pool_t *p)
{
    mdl_access_t *access = &change->access;
    mdl_order_resend_t resend = {.shop_id = access->shop_id,
                                 .storefront_order_id = access->storefront_order_id,
                                 .key_id = access->key_id,
                                 .user = access->user,
                                 .reason = access->reason,
                                 .mail_host = change->mail_host,
                                 .default_download_limit = access->default_download_limit,
                                 .problem = access->problem};
    apr_status_t rv;

    if (access->order->email.status == MDL_EMAIL_QUEUED ||
        access->order->email.status == MDL_EMAIL_HELD) {
        return APR_SUCCESS;
    }
    rv = mdl_order_resend(db, p, &resend);
    access->order = resend.order;
    change->retry_after = resend.retry_after;
    return rv;
}

apr_status_t mdl_order_change(mdl_db_t *db, apr_pool_t *p, mdl_order_change_t *change)
{
    mdl_access_t *access = &change->access;
    mdl_order_find_t find = {.shop_id = access->shop_id,
                             .storefront_order_id = access->storefront_order_id,
                             .versions = access->versions,
                             .default_download_limit = access->default_download_limit};
    apr_status_t rv = mdl_order_lock(db, &find, access->problem, p);

    change->retry_after = 0;
    access->order = find.order;
    if (rv == APR_SUCCESS && (rv = change_apply(db, change, p)) == APR_SUCCESS) {
        rv = mdl_order_find(db, p, &find);
        access->order = find.order;
    }
    return rv == APR_SUCCESS && change->send_email ? change_send(db, change, p) : rv;
}
