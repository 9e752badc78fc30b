#include "html.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/crypto.h"
#include "request_body.h"

static const char *html_sources(const char *directive, const char *sources, apr_pool_t *p)
{
    return sources != NULL && *sources != '\0' ? apr_pstrcat(p, "; ", directive, sources, NULL)
                                               : "";
}

/* template: NULL for plain text */
static const char *html_policy(const mdl_template_t *template, const mdl_html_policy_t *policy,
                               apr_pool_t *p)
{
    const char *style = template != NULL ? mdl_template_hashes(template, MDL_TEMPLATE_STYLE) : "";
    const char *script = template != NULL ? mdl_template_hashes(template, MDL_TEMPLATE_SCRIPT) : "";

    if (policy->is_framed) {
        return apr_pstrcat(p, "sandbox; default-src 'none'; style-src 'unsafe-inline'",
                           html_sources("img-src", policy->img, p),
                           "; form-action 'none'; base-uri 'none'; frame-ancestors 'self'", NULL);
    }
    return apr_pstrcat(
        p, "default-src 'none'",
        html_sources("style-src", apr_pstrcat(p, style, policy->style, NULL), p),
        html_sources("script-src", script, p), html_sources("connect-src", policy->connect, p),
        html_sources("img-src", policy->img, p), html_sources("frame-src", policy->frame, p),
        "; form-action 'self'", policy->form_action != NULL ? policy->form_action : "",
        "; base-uri 'none'; frame-ancestors 'none'", NULL);
}

/* length: -1 if it is not known */
static void html_head(request_rec *r, int status, const char *type, apr_off_t length,
                      const mdl_template_t *template, const mdl_html_policy_t *policy)
{
    apr_table_t *headers = r->headers_out;

    mdl_request_body_discard(r);
    apr_table_unset(r->headers_in, "Range"); /* or the byterange filter would cut the page */
    r->status = status;
    apr_table_setn(headers, "Cache-Control", "private, no-store");
    apr_table_setn(headers, "Referrer-Policy", policy->referrer_policy);
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "X-Frame-Options", policy->is_framed ? "SAMEORIGIN" : "DENY");
    apr_table_setn(headers, "X-Robots-Tag", "noindex");
    apr_table_setn(headers, "Content-Security-Policy", html_policy(template, policy, r->pool));
    ap_set_content_type(r, type);
    if (length >= 0) {
        ap_set_content_length(r, length);
    }
}

static void html_write(request_rec *r, const char *bytes, apr_size_t length)
{
    if (!r->connection->aborted) {
        ap_rwrite(bytes, (int)length, r);
    }
}

/* A page on its way out. */
typedef struct {
    request_rec *r;
    int status;
    const mdl_template_t *template;
    const mdl_html_policy_t *policy;
    int has_begun;
} page_t;

/* A page that is not whole by the first piece has no length: its first bytes leave at once. */
static apr_size_t page_take(void *baton, const char *html, apr_size_t length, int last)
{
    page_t *page = baton;

    if (!page->has_begun) {
        page->has_begun = 1;
        html_head(page->r, page->status, "text/html; charset=utf-8", last ? (apr_off_t)length : -1,
                  page->template, page->policy);
    }
    html_write(page->r, html, length);
    return length;
}

const char *mdl_html_hash(const char *text, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(text, strlen(text), digest);
    return apr_pstrcat(p, " 'sha256-", mdl_base64(digest, sizeof digest, p), "'", NULL);
}

void mdl_html_send_text(request_rec *r, int status, const char *text,
                        const mdl_html_policy_t *policy)
{
    apr_size_t length = strlen(text);

    html_head(r, status, "text/plain; charset=utf-8", (apr_off_t)length, NULL, policy);
    html_write(r, text, length);
}

void mdl_html_send_json(request_rec *r, int status, const mdl_json_t *data,
                        const mdl_html_policy_t *policy)
{
    apr_size_t length;
    const char *text = mdl_json_text(data, &length, r->pool);

    html_head(r, status, "application/json", (apr_off_t)length, NULL, policy);
    html_write(r, text, length);
}

void mdl_html_send(request_rec *r, int status, const mdl_template_t *template,
                   const mdl_json_t *data, const mdl_template_list_t *list,
                   const mdl_html_policy_t *policy)
{
    page_t page = {.r = r, .status = status, .template = template, .policy = policy};
    mdl_text_buffer_t *out = mdl_text_buffer_make_passing(page_take, &page, r->pool);

    mdl_template_write(template, data, list, out, r->pool);
    mdl_text_buffer_end(out);
}
