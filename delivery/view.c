#include "delivery/view.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>

#include "base/crypto.h"
#include "base/template.h"
#include "core/link.h"
#include "db/db.h"
#include "request.h"

APLOG_USE_MODULE(downloads);

#define RETRY_AFTER "5" /* seconds */

/* Set before a child has threads and read by all of them. */
static struct {
    const mdl_template_t *page;
    const mdl_template_t *message;
    const char *public_path;
    const char *public_origin;
} view;

static const mdl_template_t *read_template(apr_pool_t *p, const char *folder, const char *name)
{
    mdl_template_t *template;
    const char *why;

    if (mdl_template_read(&template, MDL_TEMPLATE_HTML, apr_pstrcat(p, folder, "/", name, NULL),
                          &why, p) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf, "MDL0402: %s", why);
        return NULL;
    }
    return template;
}

void mdl_view_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    apr_uri_t uri;

    view.page = read_template(p, settings->templates, "page.html");
    view.message = read_template(p, settings->templates, "message.html");
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
    return mdl_link_page_url(service->secret, service->settings->public_url, page_id, p);
}

/* A source for each style element: a policy by hash allows these very bytes and no others. */
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

/* form-action names the public origin too, for it also holds for where the button redirects to. */
static const char *content_security_policy(const char *html, apr_pool_t *p)
{
    return apr_pstrcat(p, "default-src 'none'; style-src", style_sources(html, p),
                       "; form-action 'self'", view.public_origin,
                       "; base-uri 'none'; frame-ancestors 'none'", NULL);
}

static int send_text(request_rec *r, int status, const char *type, const char *text)
{
    apr_size_t length = strlen(text);
    apr_table_t *headers = r->headers_out;

    mdl_request_leave_body(r);
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

static int render(request_rec *r, int status, const mdl_template_t *template,
                  const mdl_json_t *data)
{
    return send_text(r, status, "text/html; charset=utf-8",
                     mdl_template_render(template, data, r->pool));
}

int mdl_view_page(request_rec *r, int status, const mdl_json_t *data)
{
    if (view.page == NULL) {
        return mdl_view_message(r, HTTP_INTERNAL_SERVER_ERROR, "This page can't be shown",
                                "Something went wrong on our side. Please try again later.", NULL);
    }
    return render(r, status, view.page, data);
}

int mdl_view_message(request_rec *r, int status, const char *title, const char *text,
                     const char *page_url)
{
    return mdl_view_shop_message(r, status, title, text, page_url, NULL, NULL);
}

int mdl_view_shop_message(request_rec *r, int status, const char *title, const char *text,
                          const char *page_url, const char *shop_name, const char *shop_email)
{
    mdl_json_t *data;

    if (view.message == NULL) {
        return send_text(r, status, "text/plain; charset=utf-8",
                         apr_pstrcat(r->pool, title, "\n\n", text, "\n",
                                     page_url != NULL ? "\n" : "", page_url != NULL ? page_url : "",
                                     page_url != NULL ? "\n" : "", NULL));
    }
    data = mdl_json_object(r->pool);
    mdl_json_add_string(data, "title", title);
    mdl_json_add_string(data, "text", text);
    mdl_json_add_string(data, "page_url", page_url);
    mdl_json_add_int(data, "status", status);
    if (shop_name != NULL) {
        mdl_json_t *shop = mdl_json_add_object(data, "shop");

        mdl_json_add_string(shop, "name", shop_name);
        mdl_json_add_string(shop, "support_email", shop_email);
    }
    return render(r, status, view.message, data);
}

int mdl_view_failure(request_rec *r, apr_status_t rv)
{
    if (rv == MDL_DB_EGONE || rv == MDL_DB_EBUSY) {
        apr_table_setn(r->headers_out, "Retry-After", RETRY_AFTER);
        return mdl_view_message(r, HTTP_SERVICE_UNAVAILABLE, "Please try again in a moment",
                                "Your downloads can't be reached right now. Nothing is lost: load "
                                "this page again in a few seconds.",
                                NULL);
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, r, "MDL0403: a customer's request failed");
    return mdl_view_message(r, HTTP_INTERNAL_SERVER_ERROR, "Something went wrong on our side",
                            "Please load this page again later.", NULL);
}
