#include "base/http/object_parts.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/object_attempts.h"
#include "base/http/object_xml.h"

#define LIST_MOST       (4 * 1024 * 1024) /* bytes of a list's XML */
#define PUT_WAIT_S      60                /* a store may need a while to keep what it got */
#define COMPLETE_WAIT_S 300               /* and long to join thousands of parts */
#define XMLNS           "http://s3.amazonaws.com/doc/2006-03-01/"

/* A query of one upload; more parameters can be added. */
static apr_table_t *upload_query(const char *upload, apr_pool_t *p)
{
    apr_table_t *query = apr_table_make(p, 4);

    apr_table_setn(query, "uploadId", upload);
    return query;
}

static apr_status_t parts_incomplete(mdl_object_store_t *store, const char *what,
                                     mdl_object_call_t *call, apr_pool_t *p)
{
    call->why = apr_psprintf(p, "%s answered without %s.", mdl_object_store_host(store), what);
    return MDL_OBJECT_EBROKEN;
}

apr_status_t mdl_object_parts_create(mdl_object_store_t *store, const char *key,
                                     const char **upload, mdl_object_call_t *call, apr_pool_t *p)
{
    static const mdl_object_body_t nothing = {.bytes = "", .sha256 = MDL_SIGN_NO_BODY};
    apr_table_t *query = apr_table_make(p, 1);
    const mdl_object_request_t request = {.method = "POST",
                                          .key = key,
                                          .query = query,
                                          .body = &nothing,
                                          .root = "InitiateMultipartUploadResult",
                                          .wait_s = PUT_WAIT_S};
    mdl_object_answer_t answer;
    apr_status_t rv;

    apr_table_setn(query, "uploads", "");
    rv = mdl_object_perform(store, &request, &answer, call, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *upload = mdl_object_xml_text(answer.xml, "UploadId", p);
    return **upload != '\0' ? APR_SUCCESS : parts_incomplete(store, "an UploadId", call, p);
}

apr_status_t mdl_object_parts_put(mdl_object_store_t *store, const char *key, const char *upload,
                                  int number, const mdl_object_body_t *body, const char **etag,
                                  mdl_object_call_t *call, apr_pool_t *p)
{
    apr_table_t *query = upload_query(upload, p);
    const mdl_object_request_t request = {
        .method = "PUT", .key = key, .query = query, .body = body, .wait_s = PUT_WAIT_S};
    mdl_object_answer_t answer;
    apr_status_t rv;

    apr_table_setn(query, "partNumber", apr_itoa(p, number));
    rv = mdl_object_perform(store, &request, &answer, call, p);
    *etag = answer.etag;
    if (rv == APR_SUCCESS && *etag == NULL) {
        return parts_incomplete(store, "an ETag", call, p);
    }
    return rv;
}

static mdl_object_body_t complete_body(const apr_array_header_t *parts, apr_pool_t *p)
{
    mdl_text_buffer_t *xml = mdl_text_buffer_make(p);
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_object_body_t body = {0};
    apr_size_t length;

    mdl_text_buffer_put(xml, "<CompleteMultipartUpload xmlns=\"" XMLNS "\">");
    for (int i = 0; i < parts->nelts; i++) {
        const mdl_object_part_t *part = &APR_ARRAY_IDX(parts, i, mdl_object_part_t);

        mdl_text_buffer_put(xml, "<Part><PartNumber>");
        mdl_text_buffer_put(xml, apr_itoa(p, part->number));
        mdl_text_buffer_put(xml, "</PartNumber><ETag>");
        mdl_text_buffer_put(xml, apr_xml_quote_string(p, part->etag, 1));
        mdl_text_buffer_put(xml, "</ETag></Part>");
    }
    mdl_text_buffer_put(xml, "</CompleteMultipartUpload>");
    body.bytes = mdl_text_buffer_text(xml, &length);
    body.length = (apr_int64_t)length;
    mdl_sha256(body.bytes, length, digest);
    body.sha256 = mdl_hex(digest, sizeof digest, p);
    return body;
}

/* Whether the object is there in its full size, whatever became of the answer to Complete: the key
   is written by this upload alone. */
static apr_status_t complete_verify(mdl_object_store_t *store, const char *key, apr_int64_t size,
                                    apr_status_t rv, mdl_object_call_t *call, apr_pool_t *p)
{
    mdl_object_call_t heading = *call;
    apr_int64_t found;
    apr_status_t head_rv;

    if (rv == MDL_OBJECT_EAWAY) {
        heading.patience = 0; /* Complete has used it up */
    }
    head_rv = mdl_object_head(store, key, &found, &heading, p);
    if (head_rv == APR_SUCCESS && found == size) {
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (head_rv != APR_SUCCESS && head_rv != APR_ENOENT) {
        call->why = heading.why;
        return head_rv;
    }
    call->why = apr_psprintf(p, "%s completed an upload, but its object has another size.",
                             mdl_object_store_host(store));
    return MDL_OBJECT_EBROKEN;
}

apr_status_t mdl_object_parts_complete(mdl_object_store_t *store, const char *key,
                                       const char *upload, const apr_array_header_t *parts,
                                       apr_int64_t size, mdl_object_call_t *call, apr_pool_t *p)
{
    const mdl_object_body_t body = complete_body(parts, p);
    const mdl_object_request_t request = {.method = "POST",
                                          .key = key,
                                          .query = upload_query(upload, p),
                                          .body = &body,
                                          .root = "CompleteMultipartUploadResult",
                                          .wait_s = COMPLETE_WAIT_S};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    if (rv == APR_SUCCESS || rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EBROKEN) {
        return complete_verify(store, key, size, rv, call, p);
    }
    return rv;
}

apr_status_t mdl_object_parts_abort(mdl_object_store_t *store, const char *key, const char *upload,
                                    mdl_object_call_t *call, apr_pool_t *p)
{
    const mdl_object_request_t request = {
        .method = "DELETE", .key = key, .query = upload_query(upload, p)};
    mdl_object_answer_t answer;
    apr_status_t rv = mdl_object_perform(store, &request, &answer, call, p);

    /* Swift says NoSuchKey of an upload that was completed. */
    return rv == APR_ENOENT || rv == MDL_OBJECT_EBROKEN ? APR_SUCCESS : rv;
}

/* Adds one page of a list of parts; *last gets the number of its last. */
static void parts_add(const mdl_object_answer_t *answer, apr_array_header_t *parts, int *last,
                      apr_pool_t *p)
{
    for (const apr_xml_elem *item = mdl_object_xml_child(answer->xml, "Part"); item != NULL;
         item = mdl_object_xml_next(item)) {
        mdl_object_part_t part = {.number = atoi(mdl_object_xml_text(item, "PartNumber", p)),
                                  .size = apr_atoi64(mdl_object_xml_text(item, "Size", p)),
                                  .etag = mdl_object_xml_text(item, "ETag", p)};

        if (part.number > *last) {
            APR_ARRAY_PUSH(parts, mdl_object_part_t) = part;
            *last = part.number;
        }
    }
}

apr_status_t mdl_object_parts_list(mdl_object_store_t *store, const char *key, const char *upload,
                                   apr_array_header_t **parts, mdl_object_call_t *call,
                                   apr_pool_t *p)
{
    apr_table_t *query = upload_query(upload, p);
    const mdl_object_request_t request = {
        .method = "GET", .key = key, .query = query, .root = "ListPartsResult", .most = LIST_MOST};
    int more = 1, last = 0;

    *parts = apr_array_make(p, 0, sizeof(mdl_object_part_t));
    while (more) {
        mdl_object_answer_t answer;
        apr_status_t rv;
        int before = last;

        apr_table_set(query, "part-number-marker", apr_itoa(p, last));
        rv = mdl_object_perform(store, &request, &answer, call, p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        parts_add(&answer, *parts, &last, p);
        more = last > before &&
               strcmp(mdl_object_xml_text(answer.xml, "IsTruncated", p), "true") == 0;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_object_uploads_list(mdl_object_store_t *store, const char *prefix,
                                     const char **cursor, apr_array_header_t **uploads,
                                     mdl_object_call_t *call, apr_pool_t *p)
{
    const char *ours = mdl_object_store_place(store)->prefix;
    apr_table_t *query = apr_table_make(p, 4);
    const mdl_object_request_t request = {
        .method = "GET", .query = query, .root = "ListMultipartUploadsResult", .most = LIST_MOST};
    mdl_object_answer_t answer;
    apr_status_t rv;

    apr_table_setn(query, "uploads", "");
    apr_table_setn(query, "prefix", apr_pstrcat(p, ours, prefix, NULL));
    /* A cursor is a key and, behind a newline, an upload. */
    if (*cursor != NULL) {
        const char *end = strchr(*cursor, '\n');

        apr_table_setn(query, "key-marker",
                       apr_pstrmemdup(p, *cursor, (apr_size_t)(end - *cursor)));
        apr_table_setn(query, "upload-id-marker", end + 1);
    }
    *uploads = apr_array_make(p, 0, sizeof(mdl_object_upload_t));
    rv = mdl_object_perform(store, &request, &answer, call, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (const apr_xml_elem *item = mdl_object_xml_child(answer.xml, "Upload"); item != NULL;
         item = mdl_object_xml_next(item)) {
        const char *key = mdl_object_xml_text(item, "Key", p);

        if (strncmp(key, ours, strlen(ours)) == 0) {
            APR_ARRAY_PUSH(*uploads, mdl_object_upload_t) = (mdl_object_upload_t){
                .key = key + strlen(ours),
                .upload = mdl_object_xml_text(item, "UploadId", p),
                .age = mdl_object_answer_age(&answer, mdl_object_xml_text(item, "Initiated", p))};
        }
    }
    *cursor = NULL;
    if (strcmp(mdl_object_xml_text(answer.xml, "IsTruncated", p), "true") == 0) {
        *cursor = apr_pstrcat(p, mdl_object_xml_text(answer.xml, "NextKeyMarker", p), "\n",
                              mdl_object_xml_text(answer.xml, "NextUploadIdMarker", p), NULL);
    }
    return APR_SUCCESS;
}

apr_status_t mdl_object_uploads_expire(mdl_object_store_t *store, int *expire,
                                       mdl_object_call_t *call, apr_pool_t *p)
{
    apr_table_t *query = apr_table_make(p, 1);
    const mdl_object_request_t request = {.method = "GET", .query = query, .optional = 1};
    mdl_object_answer_t answer;
    apr_status_t rv;

    apr_table_setn(query, "lifecycle", "");
    rv = mdl_object_perform(store, &request, &answer, call, p);
    *expire = rv == APR_SUCCESS && strstr(answer.body, "<AbortIncompleteMultipartUpload") != NULL;
    if (strcmp(answer.code, "NoSuchLifecycleConfiguration") == 0) {
        return APR_SUCCESS;
    }
    /* A store that does not know the question lists the bucket. */
    return rv == APR_SUCCESS && strstr(answer.body, "<LifecycleConfiguration") == NULL
               ? MDL_OBJECT_EBROKEN
               : rv;
}
