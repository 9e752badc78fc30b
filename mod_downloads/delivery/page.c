#include "delivery/page.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <http_protocol.h>

#include "base/http/address.h"
#include "base/text/json.h"
#include "base/text/present.h"
#include "core/download/archive.h"
#include "core/download/signed_url.h"
#include "core/order/declaration.h"
#include "core/order/help.h"
#include "core/order/offer_json.h"
#include "core/order/visit.h"
#include "delivery/customer.h"
#include "delivery/help.h"
#include "delivery/view.h"
#include "connection.h"
#include "metering/settler.h"
#include "request_body.h"

#define FORM_MAX_LENGTH 4096
#define FORM_MAX_FIELDS 16
#define REFRESH_AFTER   "10" /* seconds */
#define VISITS_OWED     1000 /* that wait for the database; later ones are not recorded */

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *token;
    const char *network; /* of a visit */
    mdl_order_t *order;
    const mdl_offer_t *offer;
    mdl_entitlement_t access;
    int ticks_missing; /* whether the declaration was sent without both of them */
    apr_time_t now;
} page_t;

/* Returns the lists of the page. */
static const mdl_template_list_t *add_content(mdl_json_t *data, const page_t *page)
{
    const mdl_service_t *service = page->service;
    const mdl_template_list_t *lists = mdl_offer_json(data, page->offer, page->order,
                                                      service->secret,
                                                      service->settings->public_url, page->r->pool);
    int preparing;

    mdl_offer_json_archives(data, page->offer);
    mdl_present_date(data, "ended", page->offer->expired_at);
    mdl_json_add_bool(data, "empty", mdl_offer_is_empty(page->offer));
    preparing = mdl_json_type(mdl_json_member(data, "in_preparation")) == MDL_JSON_OBJECT;
    mdl_json_add_bool(data, "refreshes", preparing);
    if (preparing) {
        apr_table_setn(page->r->headers_out, "Refresh", REFRESH_AFTER);
    }
    return lists;
}

/* Adds the button that asks the shop for help, or that it was asked, or its answer. */
static void add_help(mdl_json_t *data, const page_t *page)
{
    const mdl_help_t *help = &page->order->help;
    int needed = page->order->shop_help != MDL_SHOP_HELP_OFF &&
                 mdl_help_needed(page->order, page->now);
    int waits = mdl_help_waits(help);
    mdl_json_t *to = needed || waits ? mdl_json_add_object(data, "help") : NULL;

    if (waits) {
        mdl_present_date(to, "asked", help->asked_at);
    } else if (to != NULL) {
        mdl_json_add_bool(to, "asks", 1);
        mdl_json_add_bool(to, "refused", help->asked_at != 0 && help->state == MDL_HELP_REFUSED);
        mdl_json_add_string(to, "answer", help->answer);
    }
}

static int page_show(const page_t *page, int status)
{
    request_rec *r = page->r;
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, page->r->pool);
    mdl_json_t *data = mdl_json_object(r->pool);
    const mdl_template_list_t *lists = NULL;

    mdl_json_add_bool(data, "active", page->access == MDL_ENTITLEMENT_OK);
    for (mdl_entitlement_t access = MDL_ENTITLEMENT_HELD; access <= MDL_ENTITLEMENT_EXPIRED;
         access++) {
        mdl_json_add_bool(data, mdl_entitlement_names[access], page->access == access);
    }
    mdl_json_add_bool(data, "ticks_missing", page->ticks_missing);
    mdl_json_add_string(data, "reason", customer.reason);
    add_help(data, page);
    if (mdl_customer_is_in_app(r)) {
        mdl_json_add_string(mdl_json_add_object(data, "in_app"), "url", customer.page_url);
    }
    mdl_json_add_string(data, "action",
                        apr_pstrcat(r->pool, mdl_view_public_path(), "/o/", page->token, NULL));
    if (page->access == MDL_ENTITLEMENT_OK) {
        lists = add_content(data, page);
    } else {
        mdl_present_date(data, "expires", page->offer->expired_at);
    }
    mdl_json_add_string(data, "withdrawal_url", mdl_order_withdrawal(page->order, apr_time_now()));
    return mdl_view_page(r, status, &customer, data, lists);
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
    rv = mdl_customer_order(page->r, page->service, page_id, page->network, mdl_order_find_effect,
                            &page->order);
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

/* During maintenance the settler keeps the visit. */
static apr_status_t page_visit_effect(mdl_db_t *db, apr_pool_t *p, void *visit)
{
    return mdl_db_is_closed(db) ? MDL_DB_ECLOSED : mdl_order_visit_add(db, p, visit);
}

static apr_status_t visit_is_written(void *owed)
{
    atomic_fetch_sub((atomic_int *)owed, 1);
    return APR_SUCCESS;
}

/* The settler's thread writes the visit down, so the page neither waits for that nor needs a
   database that can be written to. */
static void page_visited(const page_t *page)
{
    static atomic_int owed;
    apr_pool_t *pool;
    mdl_order_visit_t *visit;

    if (atomic_fetch_add(&owed, 1) >= VISITS_OWED) {
        atomic_fetch_sub(&owed, 1);
        return;
    }
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_page_visit");
    apr_pool_cleanup_register(pool, &owed, visit_is_written, apr_pool_cleanup_null);
    visit = apr_palloc(pool, sizeof *visit);
    *visit = (mdl_order_visit_t){.order_id = page->order->id,
                                 .network = apr_pstrdup(pool, page->network),
                                 .visited_at = page->now};
    mdl_settler_owe(page_visit_effect, visit, pool);
}

int mdl_page_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv;

    if (!r->header_only && !mdl_customer_prefetches(r)) {
        page.network = mdl_address_network(r->useragent_ip, r->pool);
    }
    if ((rv = page_find(&page)) != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    /* The settings lead there with this query: what staff see is no visit of the customer's. */
    if (!page.order->visit_known && (r->args == NULL || strcmp(r->args, "staff") != 0)) {
        page_visited(&page);
    }
    return page_show(&page, HTTP_OK);
}

int mdl_page_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_find(&page);

    return rv == APR_SUCCESS ? page_say(&page, HTTP_METHOD_NOT_ALLOWED, "wrong_method")
                             : mdl_view_failure(r, rv, "page_not_found");
}

typedef enum { PRESSED_FILE, PRESSED_ARCHIVE, PRESSED_HELP } pressed_t;

/* Reads the field "file", "zip" or "help"; returns OK, or the status of the response. */
static int read_button(const apr_table_t *fields, pressed_t *pressed, const char **id)
{
    if (apr_table_get(fields, "help") != NULL) {
        *pressed = PRESSED_HELP;
        return OK;
    }
    *id = apr_table_get(fields, "zip");
    *pressed = *id != NULL ? PRESSED_ARCHIVE : PRESSED_FILE;
    if (*id == NULL) {
        *id = apr_table_get(fields, "file");
    }
    return *id != NULL ? OK : HTTP_BAD_REQUEST;
}

static int page_redirect(const page_t *page, const char *url, const char *state)
{
    request_rec *r = page->r;

    apr_table_setn(r->headers_out, "Location", url);
    return page_say(page, HTTP_SEE_OTHER, state);
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
    return page_redirect(page,
                         mdl_signed_url_file(page->service->secret,
                                             page->service->settings->public_url, &link,
                                             file->filename, page->r->pool),
                         "download_begins");
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
        page,
        mdl_signed_url_file(page->service->secret, page->service->settings->public_url, &link,
                            mdl_archive_filename(page->order->storefront_order_id, p), p),
        "download_begins");
}

MDL_EFFECT(mdl_order_declare, mdl_declaration_t *)

/* A press of the button for the declaration: leads back to the page, which has everything then. */
static int press_declare(page_t *page, const apr_table_t *fields)
{
    request_rec *r = page->r;
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, r->pool);
    mdl_connection_t *connection = NULL;
    mdl_declaration_t declaration = {
        .page_id = page->order->page_id,
        .mail_host = mdl_settings_public_host(page->service->settings, r->pool)};
    apr_status_t rv;

    if (page->access != MDL_ENTITLEMENT_UNDECLARED) {
        return page_redirect(page, customer.page_url, "link_opens");
    }
    if (apr_table_get(fields, "begin") == NULL || apr_table_get(fields, "lose") == NULL) {
        page->ticks_missing = 1;
        return page_show(page, HTTP_BAD_REQUEST);
    }
    declaration.text = mdl_view_text(r, "declaration.txt", &customer, &declaration.language);
    rv = declaration.text != NULL ? mdl_connection_run(&connection, r, mdl_db_write,
                                                       mdl_order_declare_effect, &declaration)
                                  : APR_EGENERAL;
    mdl_connection_close(connection);
    return rv == APR_SUCCESS ? page_redirect(page, customer.page_url, "link_opens")
                             : mdl_view_failure(r, rv, "page_not_found");
}

/* The page says then that the shop was asked. */
static int press_help(const page_t *page)
{
    request_rec *r = page->r;
    mdl_help_outcome_t outcome;
    apr_status_t rv = mdl_help_press(r, page->service, page->order, &outcome);

    if (rv != APR_SUCCESS || outcome == MDL_HELP_NO_ORDER) {
        return mdl_view_failure(r, rv != APR_SUCCESS ? rv : APR_ENOENT, "page_not_found");
    }
    if (outcome == MDL_HELP_IS_OFF) {
        return page_show(page, HTTP_FORBIDDEN); /* its foot says where to write */
    }
    if (outcome == MDL_HELP_TOO_OFTEN) {
        return page_say(page, HTTP_TOO_MANY_REQUESTS, "help_too_often");
    }
    apr_table_setn(r->headers_out, "Location",
                   mdl_view_page_url(page->service, page->order->page_id, r->pool));
    return page_say(page, HTTP_SEE_OTHER, "help_asked");
}

int mdl_page_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    const char *id;
    apr_table_t *fields;
    apr_status_t rv = page_find(&page);
    pressed_t pressed;
    int status;

    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    status = mdl_request_body_form(r, page.order->page_id, FORM_MAX_LENGTH, FORM_MAX_FIELDS,
                                   &fields);
    if (status == OK && apr_table_get(fields, "declare") != NULL) {
        return press_declare(&page, fields);
    }
    if (status != OK || (status = read_button(fields, &pressed, &id)) != OK) {
        return page_say(&page, status, "no_button");
    }
    if (pressed == PRESSED_HELP) {
        return press_help(&page);
    }
    if (page.access != MDL_ENTITLEMENT_OK) {
        return page_show(&page, HTTP_FORBIDDEN);
    }
    return pressed == PRESSED_ARCHIVE ? press_archive(&page, id) : press_file(&page, id);
}
