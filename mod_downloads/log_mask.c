#include "log_mask.h"

#include <stdlib.h>
#include <string.h>

#include <apr_buckets.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_uri.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_filter.h>

/* Shorter text is not taken for a token, which the scoreboard may have cut. */
#define MIN_LENGTH 20
#define API_ROOT   "/api/v1"
#define SEARCH     "/search?"
#define CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_%"

/* const char *: what stands before a token in a path, without escapes.  Set before a child has
   threads; NULL: the module is not configured. */
static apr_array_header_t *prefixes;

/* The path of the settings; NULL: there are none. */
static const char *settings_path;

static void prefixes_add(const char *url, const char *const *ways, apr_pool_t *p)
{
    apr_uri_t uri;

    if (url == NULL || apr_uri_parse(p, url, &uri) != APR_SUCCESS) {
        return;
    }
    if (uri.path != NULL) {
        ap_unescape_url(uri.path);
    }
    for (; *ways != NULL; ways++) {
        APR_ARRAY_PUSH(prefixes, const char *) = apr_pstrcat(p, uri.path != NULL ? uri.path : "",
                                                             *ways, NULL);
    }
}

void mdl_log_mask_child_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    static const char *const public[] = {"/o/", "/f/", "/z/", "/l/", "/c/", "/u/", "/h/", NULL};
    static const char *const upload[] = {"/", NULL};

    apr_uri_t uri;

    prefixes = apr_array_make(p, 8, sizeof(const char *));
    prefixes_add(settings->public_url, public, p);
    prefixes_add(settings->upload_url, upload, p);
    if (settings->settings_url != NULL &&
        apr_uri_parse(p, settings->settings_url, &uri) == APR_SUCCESS) {
        settings_path = uri.path != NULL ? uri.path : "";
    }
}

/* The length of prefix at the beginning of text, escapes included; 0 if it is not there. */
static apr_size_t prefix_length(const char *text, const char *prefix)
{
    const char *at = text;

    for (; *prefix != '\0'; prefix++) {
        int escaped = at[0] == '%' && apr_isxdigit(at[1]) && apr_isxdigit(at[2]);

        if (escaped ? strtol((char[]){at[1], at[2], '\0'}, NULL, 16) != (unsigned char)*prefix
                    : *at != *prefix) {
            return 0;
        }
        at += escaped ? 3 : 1;
    }
    return (apr_size_t)(at - text);
}

static int mask_behind(char *text, const char *prefix)
{
    int found = 0;

    for (; *text != '\0'; text++) {
        apr_size_t before = prefix_length(text, prefix);
        apr_size_t length = before > 0 ? strspn(text + before, CHARACTERS) : 0;

        if (length >= MIN_LENGTH) {
            memset(text + before, '*', length);
            found = 1;
        }
    }
    return found;
}

static int ends_with(const char *text, const char *end, const char *suffix)
{
    apr_size_t length = strlen(suffix);

    return (apr_size_t)(end - text) >= length && memcmp(end - length, suffix, length) == 0;
}

/* Whether the path in text up to end is that of a shop in the settings, or the API's. */
static int has_search(const char *text, const char *end)
{
    const char *shop = end;

    if (ends_with(text, end, API_ROOT)) {
        return 1;
    }
    while (shop > text && apr_isdigit(shop[-1])) {
        shop--;
    }
    return settings_path != NULL && shop < end && shop > text && shop[-1] == '/' &&
           ends_with(text, shop - 1, settings_path);
}

/* Masks what a query searches for, which may be a license key; false if nothing is.  In the page of
   mod_status "&" is "&amp;". */
static int mask_query(char *query)
{
    int found = 0;

    while (*query != '\0') {
        apr_size_t length = strcspn(query, "& \"#\t\r\n");
        apr_size_t before = prefix_length(query, "q=");

        if (before > 0 && length > before) {
            memset(query + before, '*', length - before);
            found = 1;
        }
        query += length;
        if (*query != '&') {
            break;
        }
        query += strncmp(query, "&amp;", 5) == 0 ? 5 : 1;
    }
    return found;
}

static int mask_search(char *text)
{
    int found = 0;

    for (char *at = strstr(text, SEARCH); at != NULL; at = strstr(at + 1, SEARCH)) {
        if (has_search(text, at)) {
            found |= mask_query(at + strlen(SEARCH));
        }
    }
    return found;
}

/* Masks the tokens and searches in text; false if there are none. */
static int mask(char *text)
{
    int found = mask_search(text);

    for (int i = 0; i < prefixes->nelts; i++) {
        found |= mask_behind(text, APR_ARRAY_IDX(prefixes, i, const char *));
    }
    return found;
}

/* The same for shared text: *text becomes a masked copy. */
static int mask_copy(char **text, apr_pool_t *p)
{
    char *copy = *text != NULL ? apr_pstrdup(p, *text) : NULL;

    if (copy == NULL || !mask(copy)) {
        return 0;
    }
    *text = copy;
    return 1;
}

static void mask_table(apr_table_t *table, apr_pool_t *p)
{
    const apr_array_header_t *all = apr_table_elts(table);

    for (int i = 0; i < all->nelts; i++) {
        mask_copy(&APR_ARRAY_IDX(all, i, apr_table_entry_t).val, p);
    }
}

/* The URI stays as it is: other modules may redirect or rewrite it. */
static int mask_line(request_rec *r)
{
    char *referer;

    if (prefixes != NULL) {
        mask_copy(&r->the_request, r->pool);
        referer = (char *)apr_table_get(r->headers_in, "Referer");
        if (mask_copy(&referer, r->pool)) {
            apr_table_setn(r->headers_in, "Referer", referer);
        }
    }
    return DECLINED;
}

/* Whether a path without escapes is one of those that search. */
static int is_search(const char *path)
{
    const char *end = path != NULL ? path + strlen(path) : NULL;

    while (end != NULL && end > path && end[-1] == '/') {
        end--;
    }
    return end != NULL && ends_with(path, end, "/search") &&
           has_search(path, end - strlen("/search"));
}

/* Masks the query of a search, however its path was written. */
static void mask_query_of(char **text, const char *before, apr_pool_t *p)
{
    char *copy = *text != NULL ? apr_pstrdup(p, *text) : NULL;
    char *query = copy != NULL ? strstr(copy, before) : NULL;

    if (query != NULL && mask_query(query + strlen(before))) {
        *text = copy;
    }
}

static void mask_request(request_rec *r, int search)
{
    int found = mask_copy(&r->uri, r->pool);

    found |= mask_copy(&r->unparsed_uri, r->pool);
    found |= mask_copy(&r->the_request, r->pool);
    if (!found && !search && r->prev == NULL) {
        return;
    }
    mask_copy(&r->filename, r->pool);
    mask_copy(&r->path_info, r->pool);
    mask_copy(&r->args, r->pool);
    if (search) {
        mask_query_of(&r->args, "", r->pool);
        mask_query_of(&r->unparsed_uri, "?", r->pool);
        mask_query_of(&r->the_request, "?", r->pool);
    }
    mask_table(r->headers_in, r->pool);
    mask_table(r->headers_out, r->pool);
    mask_table(r->err_headers_out, r->pool);
    mask_table(r->subprocess_env, r->pool);
    mask_table(r->notes, r->pool);
}

/* An internal redirect, as to an error document, makes several of a request. */
static int mask_all(request_rec *r)
{
    int search = 0;

    for (; prefixes != NULL && r != NULL; r = r->next) {
        search |= is_search(r->uri);
        mask_request(r, search);
    }
    return DECLINED;
}

static ap_filter_rec_t *filter;

/* Keeps the page until its end, since a token may lie across two buckets. */
static apr_status_t mask_status(ap_filter_t *f, apr_bucket_brigade *bb)
{
    apr_bucket_brigade *page = f->ctx;
    apr_size_t length;
    apr_status_t rv;
    char *text;

    if (APR_BRIGADE_EMPTY(bb) || !APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(bb))) {
        return ap_save_brigade(f, (apr_bucket_brigade **)&f->ctx, &bb, f->r->pool);
    }
    if (page != NULL) {
        APR_BRIGADE_PREPEND(bb, page);
    }
    if ((rv = apr_brigade_pflatten(bb, &text, &length, f->r->pool)) != APR_SUCCESS) {
        return rv;
    }
    text = apr_pstrmemdup(f->r->pool, text, length);
    mask(text);
    apr_brigade_cleanup(bb);
    APR_BRIGADE_INSERT_TAIL(bb,
                            apr_bucket_pool_create(text, length, f->r->pool, f->c->bucket_alloc));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(f->c->bucket_alloc));
    ap_remove_output_filter(f);
    return ap_pass_brigade(f->next, bb);
}

static void status_filter_add(request_rec *r)
{
    if (prefixes != NULL && r->handler != NULL && strcmp(r->handler, "server-status") == 0) {
        ap_add_output_filter_handle(filter, NULL, r, r->connection);
    }
}

void mdl_log_mask_register(void)
{
    filter = ap_register_output_filter("DOWNLOADS_STATUS", mask_status, NULL, AP_FTYPE_RESOURCE);
    ap_hook_post_read_request(mask_line, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_log_transaction(mask_all, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_insert_filter(status_filter_add, NULL, NULL, APR_HOOK_MIDDLE);
}
