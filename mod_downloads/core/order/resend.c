#include "core/order/resend.h"

#include <apr_time.h>

#include "base/text/json.h"
#include "core/order/help.h"
#include "core/order/timeline.h"

#define ACTION "email_resent"
#define HOUR   apr_time_from_sec(3600)

static apr_status_t resend_check_access(const mdl_order_resend_t *resend)
{
    apr_status_t rv = mdl_order_check_active(resend->order, resend->problem);

    return rv == APR_SUCCESS && !mdl_order_has_open(resend->order, apr_time_now())
               ? mdl_problem_set(resend->problem, 409, "access_revoked",
                                 "Access to everything in this order was revoked or has expired; "
                                 "restore or extend it first.")
               : rv;
}

static apr_status_t resend_check_rate(mdl_db_t *db, mdl_order_resend_t *resend, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    apr_time_t oldest;
    int count;
    apr_status_t rv = mdl_timeline_count(db, resend->order->id, ACTION, now - HOUR, &count, &oldest,
                                         p);

    if (rv != APR_SUCCESS || count < MDL_RESENDS_AN_HOUR) {
        return rv;
    }
    resend->retry_after = (int)apr_time_sec(oldest + HOUR - now) + 1;
    return mdl_problem_set(resend->problem, 429, "rate_limited",
                           "The email of an order is sent again 3 times in an hour at most.");
}

static apr_status_t resend_queue(mdl_db_t *db, const mdl_order_resend_t *resend, const char *to,
                                 apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_email_new_t email = {.shop_id = resend->shop_id,
                             .order_id = resend->order->id,
                             .to = to,
                             .host = resend->mail_host,
                             .at_once = 1};
    mdl_timeline_entry_t entry = {
        .action = ACTION, .key_id = resend->key_id, .user = resend->user, .reason = resend->reason};
    apr_status_t rv = mdl_email_queue(db, &email, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    mdl_json_add_string(details, "to", to);
    entry.details = mdl_json_text(details, NULL, p);
    return mdl_timeline_add(db, resend->order->id, &entry, p);
}

apr_status_t mdl_order_resend(mdl_db_t *db, apr_pool_t *p, mdl_order_resend_t *resend)
{
    mdl_order_find_t find = {.shop_id = resend->shop_id,
                             .storefront_order_id = resend->storefront_order_id,
                             .versions = resend->versions,
                             .default_download_limit = resend->default_download_limit};
    const char *to;
    apr_status_t rv;

    resend->retry_after = 0;
    if ((rv = mdl_order_lock(db, &find, resend->problem, p)) != APR_SUCCESS) {
        return rv;
    }
    resend->order = find.order;
    if ((rv = resend_check_access(resend)) != APR_SUCCESS) {
        return rv;
    }
    to = resend->to != NULL ? resend->to : find.order->address;
    if (to == NULL) {
        return mdl_problem_set(resend->problem, 422, "no_recipient",
                               "The customer has no email address: say where the email should go.");
    }
    if ((rv = resend_check_rate(db, resend, p)) != APR_SUCCESS ||
        (rv = resend_queue(db, resend, to, p)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_help_grant(db, find.order->id, resend->user, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_order_find(db, p, &find);
    resend->order = find.order;
    return rv;
}
