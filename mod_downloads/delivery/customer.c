#include "delivery/customer.h"

#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "connection.h"
#include "core/shop/forgery.h"
#include "request_notes.h"

apr_status_t mdl_customer_order(request_rec *r, const mdl_service_t *service, const char *page_id,
                                const char *network, mdl_effect_fn *effect, mdl_order_t **order)
{
    mdl_order_find_t find = {.page_id = page_id,
                             .network = network,
                             .default_download_limit = service->settings->download_limit,
                             .with_notes = 1};
    mdl_connection_t *connection = mdl_connection_open(r);
    apr_status_t rv;

    if (connection == NULL) {
        return MDL_DB_EGONE;
    }
    rv = mdl_db_snapshot(mdl_connection_db(connection), effect, &find, r->pool);
    mdl_rate_limit_charge_rows(service->rate_limit, MDL_RATE_PAGE, page_id,
                               mdl_connection_rows(connection), mdl_clock_monotonic());
    mdl_connection_close(connection);
    *order = find.order;
    if (rv == APR_SUCCESS) {
        mdl_note_id(r, MDL_NOTE_SHOP, find.order->shop_id);
        mdl_note(r, MDL_NOTE_ORDER, find.order->storefront_order_id);
    }
    return rv == APR_SUCCESS && find.order->shop_blocked ? APR_EACCES : rv;
}

apr_status_t mdl_customer_charge(request_rec *r, const mdl_service_t *service, const char *page_id)
{
    mdl_rate_state_t state;

    mdl_rate_limit_take(service->rate_limit, MDL_RATE_PAGE, page_id, 1, mdl_clock_monotonic(),
                        &state);
    if (state.allowed) {
        return APR_SUCCESS;
    }
    mdl_customer_wait(r, state.more_in);
    return APR_EAGAIN;
}

void mdl_customer_wait(request_rec *r, apr_interval_time_t wait)
{
    apr_table_setn(r->headers_out, "Retry-After",
                   apr_itoa(r->pool, (int)apr_time_sec(wait + APR_USEC_PER_SEC - 1)));
}

void mdl_customer_forged(request_rec *r, const mdl_service_t *service)
{
    mdl_rate_state_t state;

    mdl_forgery_note(service->rate_limit, "link", r->useragent_ip, &state, r->pool);
}

/* Fetch's Sec-Purpose, and what browsers sent before: Chrome and Safari Purpose, Safari X-Purpose
   for the previews of its start page, Firefox X-Moz. */
int mdl_customer_prefetches(request_rec *r)
{
    static const char *const headers[] = {"Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"};
    static const char *const purposes[] = {"prefetch", "prerender", "preview"};

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const char *value = apr_table_get(r->headers_in, headers[i]);

        for (size_t j = 0; value != NULL && j < sizeof purposes / sizeof *purposes; j++) {
            if (ap_strcasestr(value, purposes[j]) != NULL) {
                return 1;
            }
        }
    }
    return 0;
}

/* By what their browsers add to User-Agent: those of Facebook and Messenger, Instagram, Threads,
   LINE, WeChat, TikTok, Snapchat, Pinterest and LinkedIn. */
int mdl_customer_is_in_app(request_rec *r)
{
    static const char *const apps[] = {
        "FBAN/",    "FBAV/",       "FB_IAB/",         "Instagram ",       "Barcelona ",
        " Line/",   "WeChat/",     "MicroMessenger/", "BytedanceWebview", "musical_ly",
        "Snapchat", "[Pinterest/", "LinkedInApp"};
    const char *agent = apr_table_get(r->headers_in, "User-Agent");

    for (size_t i = 0; agent != NULL && i < sizeof apps / sizeof *apps; i++) {
        if (strstr(agent, apps[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

static int shows_reason(const mdl_order_t *order)
{
    return order->state.access == MDL_ORDER_REVOKED || order->state.access == MDL_ORDER_REJECTED;
}

mdl_view_customer_t mdl_customer_view(const mdl_service_t *service, const mdl_order_t *order,
                                      apr_pool_t *p)
{
    return (mdl_view_customer_t){.shop_id = order->shop_id,
                                 .shop_name = order->shop_name,
                                 .shop_domain = order->shop_domain,
                                 .shop_email = order->shop_email,
                                 .helps = order->shop_help != MDL_SHOP_HELP_OFF,
                                 .brand = &order->brand,
                                 .locale = order->customer.locale,
                                 .order_id = mdl_order_called(order),
                                 .page_url = mdl_view_page_url(service, order->page_id, p),
                                 .reason = shows_reason(order) ? order->access_reason : NULL};
}
