#include "base/http/object.h"

#include <string.h>

#include <apr_strings.h>

#include "base/http/object_attempts.h"
#include "base/http/object_xml.h"
#include "base/http/response.h"
#include "base/http/sign.h"

#define LIST_MOST  (4 * 1024 * 1024) /* bytes of a list's XML */
#define PUT_WAIT_S 60                /* a store may need a while to keep what it got */

static apr_status_t object_no_size(mdl_object_store_t *store, mdl_object_call_t *call,
                                   apr_pool_t *p)
{
    call->why = apr_psprintf(p, "%s does not say how large an object is.",
                             mdl_object_store_host(store));
    return MDL_OBJECT_EBROKEN;
}

apr_status_t mdl_object_put(mdl_object_store_t *store, const char *key,
                            const mdl_object_body_t *body, mdl_object_call_t *call, apr_pool_t *p)
{
    const mdl_object_request_t request = {
        .method = "PUT", .key = key, .body = body, .wait_s = PUT_WAIT_S};
    mdl_object_answer_t answer;

    return mdl_object_perform(store, &request, &answer, call, p);
}

/* Asks for the first byte of an object: unlike HEAD's, a refusal of GET says why. */
static apr_status_t object_ask_again(mdl_object_store_t *store, const char *key, apr_int64_t *size,
                                     mdl_object_call_t *call, apr_pool_t *p)
{
    const mdl_object_request_t request = {.method = "GET", .key = key, .range = "0-0"};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    *size = answer.total;
    if (answer.status == 416) {
        *size = 0;
        return APR_SUCCESS;
    }
    return rv;
}

apr_status_t mdl_object_head(mdl_object_store_t *store, const char *key, apr_int64_t *size,
                             mdl_object_call_t *call, apr_pool_t *p)
{
    const mdl_object_request_t request = {.method = "HEAD", .key = key};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    *size = answer.size;
    if (rv == MDL_OBJECT_EDENIED) {
        rv = object_ask_again(store, key, size, call, p);
    }
    return rv == APR_SUCCESS && *size < 0 ? object_no_size(store, call, p) : rv;
}

apr_status_t mdl_object_get(mdl_object_store_t *store, const char *key, apr_size_t most,
                            const char **bytes, apr_size_t *length, mdl_object_call_t *call,
                            apr_pool_t *p)
{
    const mdl_object_request_t request = {.method = "GET", .key = key, .most = most};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    *bytes = answer.body;
    *length = answer.length;
    /* Without a length, a body that is cut would look whole. */
    return rv == APR_SUCCESS && answer.size == MDL_HTTP_UNTIL_CLOSE ? object_no_size(store, call, p)
                                                                    : rv;
}

apr_status_t mdl_object_delete(mdl_object_store_t *store, const char *key, mdl_object_call_t *call,
                               apr_pool_t *p)
{
    const mdl_object_request_t request = {.method = "DELETE", .key = key};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_object_list(mdl_object_store_t *store, const char *prefix, const char **cursor,
                             apr_array_header_t **entries, mdl_object_call_t *call, apr_pool_t *p)
{
    const char *ours = mdl_object_store_place(store)->prefix;
    apr_table_t *query = apr_table_make(p, 4);
    const mdl_object_request_t request = {
        .method = "GET", .query = query, .root = "ListBucketResult", .most = LIST_MOST};
    mdl_object_answer_t answer;
    apr_status_t rv;

    apr_table_setn(query, "list-type", "2");
    apr_table_setn(query, "prefix", apr_pstrcat(p, ours, prefix, NULL));
    if (*cursor != NULL) {
        apr_table_setn(query, "continuation-token", *cursor);
    }
    *entries = apr_array_make(p, 0, sizeof(mdl_object_entry_t));
    rv = mdl_object_perform(store, &request, &answer, call, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (const apr_xml_elem *item = mdl_object_xml_child(answer.xml, "Contents"); item != NULL;
         item = mdl_object_xml_next(item)) {
        const char *key = mdl_object_xml_text(item, "Key", p);

        if (strncmp(key, ours, strlen(ours)) == 0) {
            APR_ARRAY_PUSH(*entries, mdl_object_entry_t) = (mdl_object_entry_t){
                .key = key + strlen(ours),
                .size = apr_atoi64(mdl_object_xml_text(item, "Size", p)),
                .age = mdl_object_answer_age(&answer,
                                             mdl_object_xml_text(item, "LastModified", p))};
        }
    }
    *cursor = strcmp(mdl_object_xml_text(answer.xml, "IsTruncated", p), "true") == 0
                  ? mdl_object_xml_text(answer.xml, "NextContinuationToken", p)
                  : NULL;
    return APR_SUCCESS;
}

const char *mdl_object_url(const mdl_object_store_t *store, const char *key, int seconds,
                           const char *disposition, const char *type, apr_pool_t *p)
{
    const mdl_object_place_t *place = mdl_object_store_public_place(store);
    const char *path = apr_pstrcat(p, place->path, "/", place->prefix, key, NULL);
    apr_table_t *query = apr_table_make(p, 2);

    apr_table_setn(query, "response-content-disposition", disposition);
    apr_table_setn(query, "response-content-type", type);
    return apr_pstrcat(p, place->origin, mdl_sign_encode_path(path, p), "?",
                       mdl_sign_query(mdl_object_store_credentials(store), place->host, path, query,
                                      mdl_object_store_now(store), seconds, p),
                       NULL);
}
