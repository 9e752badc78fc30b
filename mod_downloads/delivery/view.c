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
#define STYLE_BEGIN "<style>"
#define STYLE_END   "</style>"

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

/* What the headers say of a page, which is known once it was rendered. */
typedef struct {
    apr_pool_t *pool;
    const char *styles; /* a hash of each style element: the policy allows no other style */
    const char *whole;  /* the page, unless it came in pieces */
    apr_size_t length;
} measure_t;

/* Takes a piece of a page, up to a style element that has not ended. */
static apr_size_t measure_take(void *baton, const char *html, apr_size_t length, int last)
{
    measure_t *measure = baton;
    apr_pool_t *p = measure->pool;
    const char *style, *end = html;

    while ((style = strstr(end, STYLE_BEGIN)) != NULL && (end = strstr(style, STYLE_END)) != NULL) {
        unsigned char digest[MDL_SHA256_LENGTH];

        style += strlen(STYLE_BEGIN);
        mdl_sha256(style, (apr_size_t)(end - style), digest);
        measure->styles = apr_pstrcat(p, measure->styles, " 'sha256-",
                                      mdl_base64(digest, sizeof digest, p), "'", NULL);
    }
    if (last) {
        measure->whole = measure->length == 0 ? html : NULL;
    } else {
        length = style != NULL ? (apr_size_t)(style - html) : length - strlen(STYLE_BEGIN);
    }
    measure->length += length;
    return length;
}

/* form-action names the public origin too, since it also covers the redirect that follows the
   page's button. */
static const char *content_security_policy(const char *styles, apr_pool_t *p)
{
    return apr_pstrcat(p, "default-src 'none'; style-src", *styles != '\0' ? styles : " 'none'",
                       "; form-action 'self'", view.public_origin,
                       "; base-uri 'none'; frame-ancestors 'none'", NULL);
}

static void view_head(request_rec *r, int status, const char *type, const char *styles,
                      apr_size_t length)
{
    apr_table_t *headers = r->headers_out;

    mdl_request_body_discard(r);
    r->status = status;
    apr_table_setn(headers, "Cache-Control", "private, no-store");
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "X-Frame-Options", "DENY");
    apr_table_setn(headers, "X-Robots-Tag", "noindex");
    apr_table_setn(headers, "Content-Security-Policy", content_security_policy(styles, r->pool));
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)length);
}

static apr_size_t view_write(void *baton, const char *bytes, apr_size_t length, int last)
{
    request_rec *r = baton;

    (void)last;
    if (!r->connection->aborted) {
        ap_rwrite(bytes, (int)length, r);
    }
    return length;
}

int mdl_view_text(request_rec *r, int status, const char *text)
{
    apr_size_t length = strlen(text);

    view_head(r, status, "text/plain; charset=utf-8", "", length);
    view_write(r, text, length, 1);
    return OK;
}

/* A page that doesn't fit into a piece is rendered twice, for its headers and for its bytes: kept
   meanwhile, the largest would take 30 MB. */
static void view_send(request_rec *r, int status, const mdl_template_t *template,
                      const mdl_json_t *data, const mdl_template_list_t *files)
{
    measure_t measure = {.pool = r->pool, .styles = ""};
    mdl_text_buffer_t *out = mdl_text_buffer_make_passing(measure_take, &measure, r->pool);

    mdl_template_write(template, data, files, out, r->pool);
    mdl_text_buffer_end(out);
    view_head(r, status, "text/html; charset=utf-8", measure.styles, measure.length);
    if (measure.whole != NULL) {
        view_write(r, measure.whole, measure.length, 1);
        return;
    }
    out = mdl_text_buffer_make_passing(view_write, r, r->pool);
    mdl_template_write(template, data, files, out, r->pool);
    mdl_text_buffer_end(out);
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
                       const mdl_view_customer_t *customer, mdl_json_t *data,
                       const mdl_template_list_t *files)
{
    const mdl_template_t *template = view_choose(r, name, customer);
    mdl_json_t *shop;

    if (template == NULL) {
        return mdl_view_text(r, status == HTTP_OK ? HTTP_INTERNAL_SERVER_ERROR : status,
                             PLAIN_TEXT);
    }
    if (customer != NULL) {
        shop = mdl_json_add_object(data, "shop");
        mdl_json_add_string(shop, "name", customer->shop_name);
        mdl_json_add_string(shop, "support_email", customer->shop_email);
        mdl_json_add_string(data, "order_id", customer->order_id);
    }
    view_send(r, status, template, data, files);
    return OK;
}

int mdl_view_page(request_rec *r, int status, const mdl_view_customer_t *customer, mdl_json_t *data,
                  const mdl_template_list_t *files)
{
    return view_render(r, status, "page.html", customer, data, files);
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
    return view_render(r, status, "message.html", customer, data, NULL);
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
