#include "delivery/page.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <http_protocol.h>

#include "base/text/json.h"
#include "base/text/present.h"
#include "core/download/archive.h"
#include "core/download/signed_url.h"
#include "core/order/offer_json.h"
#include "delivery/customer.h"
#include "delivery/view.h"
#include "request_body.h"

#define FORM_MAX_LENGTH 4096
#define FORM_MAX_FIELDS 16
#define REFRESH_AFTER   "10" /* seconds */

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *token;
    mdl_order_t *order;
    const mdl_offer_t *offer;
    mdl_entitlement_t access;
    apr_time_t now;
} page_t;

static void add_content(mdl_json_t *data, const page_t *page)
{
    const mdl_service_t *service = page->service;
    int preparing;

    mdl_offer_json(data, page->offer, page->order, service->secret, service->settings->public_url,
                   page->r->pool);
    mdl_offer_json_archives(data, page->offer);
    mdl_present_date(data, "ended", page->offer->expired_at);
    mdl_json_add_bool(data, "empty", mdl_offer_is_empty(page->offer));
    preparing = mdl_json_type(mdl_json_member(data, "in_preparation")) == MDL_JSON_OBJECT;
    mdl_json_add_bool(data, "refreshes", preparing);
    if (preparing) {
        apr_table_setn(page->r->headers_out, "Refresh", REFRESH_AFTER);
    }
}

static int page_show(const page_t *page, int status)
{
    request_rec *r = page->r;
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, page->r->pool);
    mdl_json_t *data = mdl_json_object(r->pool);
    mdl_template_list_t files = mdl_offer_json_files(page->offer);

    mdl_json_add_bool(data, "active", page->access == MDL_ENTITLEMENT_OK);
    for (mdl_entitlement_t access = MDL_ENTITLEMENT_HELD; access <= MDL_ENTITLEMENT_EXPIRED;
         access++) {
        mdl_json_add_bool(data, mdl_entitlement_names[access], page->access == access);
    }
    mdl_json_add_string(data, "reason", customer.reason);
    mdl_json_add_string(data, "action",
                        apr_pstrcat(r->pool, mdl_view_public_path(), "/o/", page->token, NULL));
    if (page->access == MDL_ENTITLEMENT_OK) {
        add_content(data, page);
    } else {
        mdl_present_date(data, "expires", page->offer->expired_at);
    }
    return mdl_view_page(r, status, &customer, data, &files);
}

MDL_EFFECT(mdl_order_find, mdl_order_find_t *)

/* Fills the page's order; APR_ENOENT for an unknown token, APR_EAGAIN after too many requests. */
static apr_status_t page_find(page_t *page)
{
    const char *page_id = mdl_signed_url_page_id(page->service->secret, page->token, page->r->pool);
    apr_status_t rv;

    if (page_id == NULL) {
        mdl_customer_forged(page->r, page->service);
        return APR_ENOENT;
    }
    if ((rv = mdl_customer_charge(page->r, page->service, page_id)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_customer_order(page->r, page->service, page_id, mdl_order_find_effect, &page->order);
    if (rv == APR_SUCCESS) {
        page->now = apr_time_now();
        page->access = mdl_order_entitlement(page->order, page->now);
        page->offer = mdl_offer_make(page->order, page->now, page->r->pool);
    }
    return rv;
}

static int page_say(const page_t *page, int status, const char *state)
{
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, page->r->pool);

    return mdl_view_message(page->r, status, state, &customer);
}

int mdl_page_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_find(&page);

    return rv == APR_SUCCESS ? page_show(&page, HTTP_OK)
                             : mdl_view_failure(r, rv, "page_not_found");
}

int mdl_page_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_find(&page);

    return rv == APR_SUCCESS ? page_say(&page, HTTP_METHOD_NOT_ALLOWED, "wrong_method")
                             : mdl_view_failure(r, rv, "page_not_found");
}

/* Reads the field "file" or "zip"; returns OK, or the status of the response. */
static int read_form(const page_t *page, int *is_archive, const char **id)
{
    apr_table_t *fields;
    int status = mdl_request_body_form(page->r, page->order->page_id, FORM_MAX_LENGTH,
                                       FORM_MAX_FIELDS, &fields);

    if (status != OK) {
        return status;
    }
    *id = apr_table_get(fields, "zip");
    *is_archive = *id != NULL;
    if (!*is_archive) {
        *id = apr_table_get(fields, "file");
    }
    return *id != NULL ? OK : HTTP_BAD_REQUEST;
}

static int page_redirect(const page_t *page, const char *url)
{
    request_rec *r = page->r;

    apr_table_setn(r->headers_out, "Location", url);
    return page_say(page, HTTP_SEE_OTHER, "download_begins");
}

static mdl_signed_file_t link_to(const page_t *page, apr_int64_t assignment_id,
                                 apr_int64_t asset_id)
{
    apr_time_t lifetime = apr_time_sec(page->service->settings->link_lifetime);

    return (mdl_signed_file_t){.page_id = page->order->page_id,
                               .assignment_id = assignment_id,
                               .asset_id = asset_id,
                               .expires_at = apr_time_from_sec(apr_time_sec(page->now) + lifetime)};
}

/* Answers a button that is no longer valid. */
static int page_refuse(const page_t *page, mdl_entitlement_t entitlement)
{
    switch (entitlement) {
    case MDL_ENTITLEMENT_GONE:
        return page_say(page, HTTP_NOT_FOUND, "not_in_order");
    case MDL_ENTITLEMENT_NOT_READY:
    case MDL_ENTITLEMENT_FAILED:
        return page_show(page, HTTP_CONFLICT);
    default:
        return page_show(page, HTTP_FORBIDDEN);
    }
}

static int press_file(const page_t *page, const char *id)
{
    const mdl_order_file_t *file;
    mdl_entitlement_t entitlement = mdl_offer_choose_file(page->order, id, page->now, &file,
                                                          page->r->pool);
    mdl_signed_file_t link;

    if (entitlement != MDL_ENTITLEMENT_OK) {
        return page_refuse(page, entitlement);
    }
    link = link_to(page, file->assignment_id, file->asset_id);
    return page_redirect(page, mdl_signed_url_file(page->service->secret,
                                                   page->service->settings->public_url, &link,
                                                   file->filename, page->r->pool));
}

static int press_archive(const page_t *page, const char *id)
{
    apr_pool_t *p = page->r->pool;
    const mdl_assignment_t *assignment;
    mdl_entitlement_t entitlement = mdl_offer_choose_archive(page->order, id, page->now,
                                                             &assignment, p);
    mdl_signed_file_t link;

    if (entitlement != MDL_ENTITLEMENT_OK) {
        return page_refuse(page, entitlement);
    }
    link = link_to(page, assignment->id, 0);
    return page_redirect(
        page, mdl_signed_url_file(page->service->secret, page->service->settings->public_url, &link,
                                  mdl_archive_filename(page->order->storefront_order_id, p), p));
}

int mdl_page_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    const char *id;
    apr_status_t rv = page_find(&page);
    int status, is_archive;

    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    if ((status = read_form(&page, &is_archive, &id)) != OK) {
        return page_say(&page, status, "no_button");
    }
    if (page.access != MDL_ENTITLEMENT_OK) {
        return page_show(&page, HTTP_FORBIDDEN);
    }
    return is_archive ? press_archive(&page, id) : press_file(&page, id);
}
