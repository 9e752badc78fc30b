#include "html.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/crypto.h"
#include "request_body.h"

/* What a policy allows by its hash. */
static const struct {
    const char *directive, *begin, *end;
} elements[] = {
    {"style-src", "<style>", "</style>"},
    {"script-src", "<script>", "</script>"},
};
#define ELEMENTS (sizeof elements / sizeof *elements)

/* The longest of the tags that begin an element. */
#define TAG_MAX (sizeof "<script>" - 1)

/* What the headers say of a page, which is known once it was rendered. */
typedef struct {
    apr_pool_t *pool;
    const char *hashes[ELEMENTS];
    const char *whole; /* the page, unless it came in pieces */
    apr_size_t length;
} measure_t;

/* Adds the hashes of one kind of element.  Returns where one begins that has not ended, or NULL. */
static const char *measure_elements(measure_t *measure, apr_size_t kind, const char *html)
{
    apr_pool_t *p = measure->pool;
    const char *text, *end = html;

    while ((text = strstr(end, elements[kind].begin)) != NULL) {
        unsigned char digest[MDL_SHA256_LENGTH];

        text += strlen(elements[kind].begin);
        if ((end = strstr(text, elements[kind].end)) == NULL) {
            return text - strlen(elements[kind].begin);
        }
        mdl_sha256(text, (apr_size_t)(end - text), digest);
        measure->hashes[kind] = apr_pstrcat(p, measure->hashes[kind], " 'sha256-",
                                            mdl_base64(digest, sizeof digest, p), "'", NULL);
    }
    return NULL;
}

/* Takes a piece of a page, up to an element that has not ended. */
static apr_size_t measure_take(void *baton, const char *html, apr_size_t length, int last)
{
    measure_t *measure = baton;
    const char *end = html + length - (last ? 0 : TAG_MAX);

    for (apr_size_t kind = 0; kind < ELEMENTS; kind++) {
        const char *open = measure_elements(measure, kind, html);

        if (!last && open != NULL && open < end) {
            end = open;
        }
    }
    if (last) {
        measure->whole = measure->length == 0 ? html : NULL;
    }
    measure->length += (apr_size_t)(end - html);
    return (apr_size_t)(end - html);
}

static const char *html_policy(const measure_t *measure, const mdl_html_policy_t *policy)
{
    const char *text = "default-src 'none'";

    for (apr_size_t kind = 0; kind < ELEMENTS; kind++) {
        if (*measure->hashes[kind] != '\0') {
            text = apr_pstrcat(measure->pool, text, "; ", elements[kind].directive,
                               measure->hashes[kind], NULL);
        }
    }
    return apr_pstrcat(measure->pool, text, "; form-action 'self'", policy->form_action,
                       "; base-uri 'none'; frame-ancestors 'none'", NULL);
}

static void html_head(request_rec *r, int status, const char *type, const measure_t *measure,
                      const mdl_html_policy_t *policy)
{
    apr_table_t *headers = r->headers_out;

    mdl_request_body_discard(r);
    apr_table_unset(r->headers_in, "Range"); /* or the byterange filter would cut the page */
    r->status = status;
    apr_table_setn(headers, "Cache-Control", "private, no-store");
    apr_table_setn(headers, "Referrer-Policy", policy->referrer_policy);
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "X-Frame-Options", "DENY");
    apr_table_setn(headers, "X-Robots-Tag", "noindex");
    apr_table_setn(headers, "Content-Security-Policy", html_policy(measure, policy));
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)measure->length);
}

static apr_size_t html_write(void *baton, const char *bytes, apr_size_t length, int last)
{
    request_rec *r = baton;

    (void)last;
    if (!r->connection->aborted) {
        ap_rwrite(bytes, (int)length, r);
    }
    return length;
}

void mdl_html_send_text(request_rec *r, int status, const char *text,
                        const mdl_html_policy_t *policy)
{
    measure_t measure = {.pool = r->pool, .hashes = {"", ""}, .length = strlen(text)};

    html_head(r, status, "text/plain; charset=utf-8", &measure, policy);
    html_write(r, text, measure.length, 1);
}

/* A page that doesn't fit into a piece is rendered twice: kept meanwhile, the largest would take
   30 MB. */
void mdl_html_send(request_rec *r, int status, const mdl_template_t *template,
                   const mdl_json_t *data, const mdl_template_list_t *list,
                   const mdl_html_policy_t *policy)
{
    measure_t measure = {.pool = r->pool, .hashes = {"", ""}};
    mdl_text_buffer_t *out = mdl_text_buffer_make_passing(measure_take, &measure, r->pool);

    mdl_template_write(template, data, list, out, r->pool);
    mdl_text_buffer_end(out);
    html_head(r, status, "text/html; charset=utf-8", &measure, policy);
    if (measure.whole != NULL) {
        html_write(r, measure.whole, measure.length, 1);
        return;
    }
    out = mdl_text_buffer_make_passing(html_write, r, r->pool);
    mdl_template_write(template, data, list, out, r->pool);
    mdl_text_buffer_end(out);
}
