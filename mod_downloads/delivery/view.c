#include "delivery/view.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>

#include "base/http/accept_language.h"
#include "base/crypto.h"
#include "base/text/templates.h"
#include "core/download/signed_url.h"
#include "db/db.h"
#include "request_body.h"

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

/* One hash for each style element: the policy allows no other style. */
static const char *style_sources(const char *html, apr_pool_t *p)
{
    const char *sources = "";

    while ((html = strstr(html, "<style>")) != NULL) {
        const char *end = strstr(html += strlen("<style>"), "</style>");
        unsigned char digest[MDL_SHA256_LENGTH];

        if (end == NULL) {
            break;
        }
        mdl_sha256(html, (apr_size_t)(end - html), digest);
        sources = apr_pstrcat(p, sources, " 'sha256-", mdl_base64(digest, sizeof digest, p), "'",
                              NULL);
    }
    return *sources != '\0' ? sources : " 'none'";
}

/* form-action names the public origin too, since it also covers the redirect that follows the
   page's button. */
static const char *content_security_policy(const char *html, apr_pool_t *p)
{
    return apr_pstrcat(p, "default-src 'none'; style-src", style_sources(html, p),
                       "; form-action 'self'", view.public_origin,
                       "; base-uri 'none'; frame-ancestors 'none'", NULL);
}

static int view_send(request_rec *r, int status, const char *type, const char *text)
{
    apr_size_t length = strlen(text);
    apr_table_t *headers = r->headers_out;

    mdl_request_body_discard(r);
    r->status = status;
    apr_table_setn(headers, "Cache-Control", "private, no-store");
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "X-Frame-Options", "DENY");
    apr_table_setn(headers, "X-Robots-Tag", "noindex");
    apr_table_setn(headers, "Content-Security-Policy", content_security_policy(text, r->pool));
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)length);
    ap_rwrite(text, (int)length, r);
    return OK;
}

/* Sets Vary and Content-Language according to the choice. */
static const mdl_template_t *view_choose(request_rec *r, const char *name,
                                         const mdl_view_customer_t *customer)
{
    apr_array_header_t *languages = apr_array_make(r->pool, 1, sizeof(const char *));
    apr_int64_t shop_id = customer != NULL ? customer->shop_id : 0;
    const mdl_template_t *template = NULL;
    const char *language;

    if (customer != NULL && customer->locale != NULL) {
        APR_ARRAY_PUSH(languages, const char *) = customer->locale;
        template = mdl_templates_match(view.templates, name, shop_id, languages, &language,
                                       r->pool);
    }
    if (template == NULL) {
        apr_table_mergen(r->headers_out, "Vary", "Accept-Language");
        languages = mdl_accept_language(apr_table_get(r->headers_in, "Accept-Language"), r->pool);
        template = mdl_templates_get(view.templates, name, shop_id, languages, &language, r->pool);
    }
    if (*language != '\0') {
        apr_table_setn(r->headers_out, "Content-Language", language);
    }
    return template;
}

static int view_render(request_rec *r, int status, const char *name,
                       const mdl_view_customer_t *customer, mdl_json_t *data)
{
    const mdl_template_t *template = view_choose(r, name, customer);
    mdl_json_t *shop;

    if (template == NULL) {
        return view_send(r, status == HTTP_OK ? HTTP_INTERNAL_SERVER_ERROR : status,
                         "text/plain; charset=utf-8", PLAIN_TEXT);
    }
    if (customer != NULL) {
        shop = mdl_json_add_object(data, "shop");
        mdl_json_add_string(shop, "name", customer->shop_name);
        mdl_json_add_string(shop, "support_email", customer->shop_email);
        mdl_json_add_string(data, "order_id", customer->order_id);
    }
    return view_send(r, status, "text/html; charset=utf-8",
                     mdl_template_render(template, data, r->pool));
}

int mdl_view_page(request_rec *r, int status, const mdl_view_customer_t *customer, mdl_json_t *data)
{
    return view_render(r, status, "page.html", customer, data);
}

int mdl_view_message(request_rec *r, int status, const char *state,
                     const mdl_view_customer_t *customer)
{
    mdl_json_t *data = mdl_json_object(r->pool);

    mdl_json_add_bool(data, state, 1);
    mdl_json_add_int(data, "status", status);
    if (customer != NULL) {
        mdl_json_add_string(data, "page_url", customer->page_url);
        mdl_json_add_string(data, "reason", customer->reason);
    }
    return view_render(r, status, "message.html", customer, data);
}

int mdl_view_text(request_rec *r, int status, const char *text)
{
    return view_send(r, status, "text/plain; charset=utf-8", text);
}

int mdl_view_failure(request_rec *r, apr_status_t rv)
{
    if (rv == APR_EAGAIN) {
        return mdl_view_message(r, HTTP_TOO_MANY_REQUESTS, "too_often", NULL);
    }
    if (rv == APR_EACCES) {
        return mdl_view_message(r, HTTP_FORBIDDEN, "shop_blocked", NULL);
    }
    if (mdl_db_unavailable(rv)) {
        apr_table_setn(r->headers_out, "Retry-After", RETRY_AFTER);
        return mdl_view_message(r, HTTP_SERVICE_UNAVAILABLE, "try_again", NULL);
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, r, "MDL0403: a customer's request failed");
    return mdl_view_message(r, HTTP_INTERNAL_SERVER_ERROR, "error", NULL);
}
