#include "delivery/view.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>

#include "base/http/accept_language.h"
#include "base/text/templates.h"
#include "core/download/signed_url.h"
#include "core/closed.h"
#include "core/order/find_request.h"
#include "db/db.h"
#include "html.h"

APLOG_USE_MODULE(downloads);

#define RETRY_AFTER "5" /* seconds */

/* Shown where there is no template. */
#define PLAIN_TEXT                                                                                 \
    "This page can't be shown as it should be. Please try again later, or write to the shop that " \
    "you bought from.\n"

/* Set before a child has threads and read by all of them. */
static struct {
    const mdl_templates_t *templates;
    const char *public_path;
    const char *public_origin;
    const char *public_url;
    const char *logos; /* where logos are */
} view;

void mdl_view_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    apr_array_header_t *problems = apr_array_make(p, 2, sizeof(const char *));
    apr_uri_t uri;

    view.templates = mdl_templates_read(settings->templates, mdl_settings_template_names, problems,
                                        p);
    for (int i = 0; i < problems->nelts; i++) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf,
                     "MDL0402: %s Customers see another template or plain text until it is "
                     "mended and httpd has been restarted; `downloadsctl check` tells when it is "
                     "good.",
                     APR_ARRAY_IDX(problems, i, const char *));
    }
    view.public_path = "";
    view.public_origin = "";
    view.public_url = settings->public_url;
    view.logos = apr_pstrcat(p, " ", settings->public_url, "/logo/", NULL);
    if (apr_uri_parse(p, settings->public_url, &uri) == APR_SUCCESS) {
        view.public_path = uri.path != NULL ? uri.path : "";
        view.public_origin = apr_pstrcat(p, " ", uri.scheme, "://", uri.hostinfo, NULL);
    }
}

const char *mdl_view_public_path(void)
{
    return view.public_path;
}

const char *mdl_view_page_url(const mdl_service_t *service, const char *page_id, apr_pool_t *p)
{
    return mdl_signed_url_page(service->secret, service->settings->public_url, page_id, p);
}

/* Forms may lead to the public origin, since the redirect after the page's button does. */
static mdl_html_policy_t view_policy(void)
{
    return (mdl_html_policy_t){.form_action = view.public_origin, .referrer_policy = "no-referrer"};
}

static int view_text(request_rec *r, int status, const char *text)
{
    mdl_html_policy_t policy = view_policy();

    mdl_html_send_text(r, status, text, &policy);
    return OK;
}

/* Sets Vary and Content-Language according to the choice; *chosen gets the language, or NULL. */
static const mdl_template_t *view_choose(request_rec *r, const char *name,
                                         const mdl_view_customer_t *customer, const char **chosen)
{
    apr_array_header_t *languages = apr_array_make(r->pool, 1, sizeof(const char *));
    apr_int64_t shop_id = customer != NULL ? customer->shop_id : 0;
    const char *offers = customer != NULL ? customer->brand->languages : NULL;
    const mdl_template_t *template = NULL;
    const char *language;

    if (customer != NULL && customer->locale != NULL &&
        mdl_language_offers(offers, customer->locale)) {
        APR_ARRAY_PUSH(languages, const char *) = customer->locale;
        template = mdl_templates_match(view.templates, name, shop_id, languages, &language,
                                       r->pool);
    }
    if (template == NULL) {
        apr_table_mergen(r->headers_out, "Vary", "Accept-Language");
        languages = mdl_accept_language(apr_table_get(r->headers_in, "Accept-Language"), r->pool);
        languages = mdl_language_offered(offers, languages, r->pool);
        template = mdl_templates_get(view.templates, name, shop_id, languages, &language, r->pool);
    }
    *chosen = *language != '\0' ? language : NULL;
    if (*chosen != NULL) {
        apr_table_setn(r->headers_out, "Content-Language", language);
    }
    return template;
}

/* Lets the page show the logo, and a style element with the accent. */
static void view_add_brand(mdl_json_t *shop, mdl_html_policy_t *policy, const mdl_brand_t *brand,
                           apr_pool_t *p)
{
    const char *style = mdl_brand_style(brand, p);

    mdl_brand_json(shop, brand, view.public_url, p);
    if (brand->logo_sha256 != NULL) {
        policy->img = view.logos;
    }
    if (style != NULL) {
        mdl_json_add_string(shop, "style", apr_pstrcat(p, "<style>", style, "</style>", NULL));
        policy->style = mdl_html_hash(style, p);
    }
}

static int view_render(request_rec *r, int status, const char *name,
                       const mdl_view_customer_t *customer, mdl_json_t *data,
                       const mdl_template_list_t *lists)
{
    const char *language;
    const mdl_template_t *template = view_choose(r, name, customer, &language);
    mdl_html_policy_t policy = view_policy();
    mdl_json_t *shop;

    if (template == NULL) {
        return view_text(r, status == HTTP_OK ? HTTP_INTERNAL_SERVER_ERROR : status, PLAIN_TEXT);
    }
    if (customer != NULL) {
        shop = mdl_json_add_object(data, "shop");
        mdl_json_add_string(shop, "name", customer->shop_name);
        mdl_json_add_string(shop, "support_email", customer->shop_email);
        mdl_json_add_string(shop, "find_url",
                            mdl_find_url(view.public_url, customer->shop_domain, r->pool));
        view_add_brand(shop, &policy, customer->brand, r->pool);
        mdl_json_add_string(data, "order_id", customer->order_id);
    }
    mdl_html_send(r, status, template, data, lists, &policy);
    return OK;
}

int mdl_view_page(request_rec *r, int status, const mdl_view_customer_t *customer, mdl_json_t *data,
                  const mdl_template_list_t *lists)
{
    return view_render(r, status, "page.html", customer, data, lists);
}

/* Whether the shop can help a customer who gets this message. */
static int view_helps(const char *state)
{
    static const char *const states[] = {"held",   "revoked",   "rejected",    "expired",
                                         "failed", "exhausted", "file_missing"};

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(states[i], state) == 0) {
            return 1;
        }
    }
    return 0;
}

int mdl_view_message(request_rec *r, int status, const char *state,
                     const mdl_view_customer_t *customer)
{
    mdl_json_t *data = mdl_json_object(r->pool);

    mdl_json_add_bool(data, state, 1);
    mdl_json_add_string(data, "state", state);
    mdl_json_add_int(data, "status", status);
    if (customer != NULL) {
        mdl_json_add_string(data, "page_url", customer->page_url);
        mdl_json_add_string(data, "reason", customer->reason);
        if (customer->helps && view_helps(state)) {
            mdl_json_add_string(mdl_json_add_object(data, "help"), "action", customer->page_url);
        }
    }
    return view_render(r, status, "message.html", customer, data, NULL);
}

const char *mdl_view_text(request_rec *r, const char *name, const mdl_view_customer_t *customer,
                          const char **language)
{
    const mdl_template_t *template = view_choose(r, name, customer, language);

    return template != NULL ? mdl_template_render(template, mdl_json_object(r->pool), r->pool)
                            : NULL;
}

int mdl_view_confirm(request_rec *r, int status, mdl_json_t *data)
{
    return view_render(r, status, "confirm_page.html", NULL, data, NULL);
}

int mdl_view_unsubscribe(request_rec *r, int status, const mdl_view_customer_t *customer,
                         mdl_json_t *data)
{
    return view_render(r, status, "unsubscribe_page.html", customer, data, NULL);
}

int mdl_view_help(request_rec *r, int status, mdl_json_t *data)
{
    return view_render(r, status, "help_page.html", NULL, data, NULL);
}

int mdl_view_find(request_rec *r, int status, const mdl_view_customer_t *customer, mdl_json_t *data)
{
    return view_render(r, status, "find_page.html", customer, data, NULL);
}

int mdl_view_failure(request_rec *r, apr_status_t rv, const char *not_found)
{
    if (rv == APR_ENOENT) {
        return mdl_view_message(r, HTTP_NOT_FOUND, not_found, NULL);
    }
    if (rv == APR_EAGAIN) {
        return mdl_view_message(r, HTTP_TOO_MANY_REQUESTS, "too_often", NULL);
    }
    if (rv == APR_EACCES) {
        return mdl_view_message(r, HTTP_FORBIDDEN, "shop_blocked", NULL);
    }
    if (rv == MDL_DB_ECLOSED) {
        apr_table_setn(r->headers_out, "Retry-After", APR_STRINGIFY(MDL_CLOSED_WAIT));
        return mdl_view_message(r, HTTP_SERVICE_UNAVAILABLE, "maintenance", NULL);
    }
    if (mdl_db_unavailable(rv)) {
        apr_table_setn(r->headers_out, "Retry-After", RETRY_AFTER);
        return mdl_view_message(r, HTTP_SERVICE_UNAVAILABLE, "try_again", NULL);
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, r, "MDL0403: a customer's request failed");
    return mdl_view_message(r, HTTP_INTERNAL_SERVER_ERROR, "error", NULL);
}
