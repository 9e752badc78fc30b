#include "delivery/link.h"

#include <apr_strings.h>
#include <apr_time.h>
#include <http_log.h>

#include "core/download/signed_url.h"
#include "core/order/offer.h"
#include "delivery/customer.h"
#include "delivery/view.h"

APLOG_USE_MODULE(downloads);

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    apr_int64_t link_id;
    mdl_order_t *order;
} visit_t;

/* One line for each request. */
static void log_visit(const visit_t *visit, const char *what)
{
    ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, visit->r,
                  "MDL0450: link %" APR_INT64_T_FMT " of order %s of shop %" APR_INT64_T_FMT ": %s",
                  visit->link_id, visit->order->storefront_order_id, visit->order->shop_id, what);
}

static int link_refuse(const visit_t *visit, int status, const char *state)
{
    mdl_view_customer_t customer = mdl_customer_view(visit->service, visit->order, visit->r->pool);

    log_visit(visit, apr_psprintf(visit->r->pool, "not opened, %d: %s", status, state));
    return mdl_view_message(visit->r, status, state, &customer);
}

static int link_leave(const visit_t *visit, const mdl_order_link_t *link)
{
    mdl_view_customer_t customer = mdl_customer_view(visit->service, visit->order, visit->r->pool);

    log_visit(visit, visit->r->header_only               ? "HEAD, no visit"
                     : mdl_customer_prefetches(visit->r) ? "prefetch, no visit"
                                                         : "visited");
    apr_table_setn(visit->r->headers_out, "Location", link->url);
    return mdl_view_message(visit->r, HTTP_SEE_OTHER, "link_opens", &customer);
}

MDL_EFFECT(mdl_order_find, mdl_order_find_t *)

/* Fills the order; APR_ENOENT for an unknown token, APR_EAGAIN after too many requests. */
static apr_status_t link_find(visit_t *visit, const char *token)
{
    request_rec *r = visit->r;
    const char *page_id;
    apr_status_t rv;

    if (mdl_signed_url_link_read(visit->service->secret, token, &page_id, &visit->link_id,
                                 r->pool) != APR_SUCCESS) {
        mdl_customer_forged(r, visit->service);
        return APR_ENOENT;
    }
    if ((rv = mdl_customer_charge(r, visit->service, page_id)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_customer_order(r, visit->service, page_id, NULL, mdl_order_find_effect,
                              &visit->order);
}

int mdl_link_serve(request_rec *r, const mdl_service_t *service, const char *token)
{
    visit_t visit = {.r = r, .service = service};
    const mdl_order_link_t *link;
    mdl_entitlement_t entitlement;
    apr_status_t rv = link_find(&visit, token);

    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "link_not_found");
    }
    entitlement = mdl_entitlement_of_order(visit.order->state.access, visit.order->undeclared);
    if (entitlement == MDL_ENTITLEMENT_OK) {
        entitlement = mdl_offer_choose_link(visit.order, visit.link_id, apr_time_now(), &link);
    }
    switch (entitlement) {
    case MDL_ENTITLEMENT_OK:
        return link_leave(&visit, link);
    case MDL_ENTITLEMENT_GONE:
        return link_refuse(&visit, HTTP_NOT_FOUND, "link_gone");
    default:
        return link_refuse(&visit, HTTP_FORBIDDEN, mdl_entitlement_names[entitlement]);
    }
}

int mdl_link_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    visit_t visit = {.r = r, .service = service};
    apr_status_t rv = link_find(&visit, token);

    return rv == APR_SUCCESS ? link_refuse(&visit, HTTP_METHOD_NOT_ALLOWED, "wrong_method")
                             : mdl_view_failure(r, rv, "link_not_found");
}
