#include "upload/upload_body.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "api/body.h"
#include "api/upload_bytes.h"
#include "base/clock.h"
#include "base/http/media_type.h"
#include "core/metrics.h"
#include "metering/takedown.h"
#include "request_body.h"

#define READ_SIZE  65536
#define MAX_DIGITS 18

void mdl_upload_body_show(request_rec *r, const mdl_upload_t *upload, apr_int64_t offset)
{
    char date[APR_RFC822_DATE_LEN];

    apr_table_setn(r->headers_out, "Upload-Offset",
                   apr_psprintf(r->pool, "%" APR_INT64_T_FMT, offset));
    if (upload->status == MDL_UPLOAD_OPEN &&
        apr_rfc822_date(date, upload->expires_at) == APR_SUCCESS) {
        apr_table_set(r->headers_out, "Upload-Expires", date);
    }
}

/* --- the headers --- */

static apr_status_t upload_body_invalid(mdl_request_t *request, const char *message)
{
    return mdl_problem_set(&request->problem, 400, "invalid_request", message);
}

/* The number in a header; -1 when the header is absent, -2 when it is malformed. */
static apr_int64_t upload_body_number(request_rec *r, const char *name)
{
    const char *text = apr_table_get(r->headers_in, name);
    apr_size_t length = text != NULL ? strlen(text) : 0;

    if (text == NULL) {
        return -1;
    }
    if (length == 0 || length > MAX_DIGITS || strspn(text, "0123456789") != length) {
        return -2;
    }
    return apr_atoi64(text);
}

/* Upload-Checksum: "<algorithm> <base64>". */
static apr_status_t upload_body_parse_checksum(mdl_request_t *request, mdl_upload_write_t *write)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    const char *header = apr_table_get(request->r->headers_in, "Upload-Checksum");
    const char *space = header != NULL ? strchr(header, ' ') : NULL;
    apr_pool_t *p = request->r->pool;
    apr_size_t length = 0;

    if (header == NULL) {
        return APR_SUCCESS;
    }
    if (space != NULL) {
        const char *name = apr_pstrmemdup(p, header, (apr_size_t)(space - header));

        write->digest = mdl_digest_begin(name, p);
        length = write->digest != NULL ? strlen(mdl_digest_end(mdl_digest_begin(name, p), p)) : 0;
        write->checksum = space + 1;
    }
    if (write->digest == NULL || strlen(write->checksum) != length ||
        write->checksum[strspn(write->checksum, alphabet)] != '\0') {
        return upload_body_invalid(request, "Upload-Checksum must be \"sha1 \" or \"sha256 \" and "
                                            "the digest in base64.");
    }
    return APR_SUCCESS;
}

/* An encoded body would be stored, and sold, encoded. */
static apr_status_t upload_body_check_encoding(mdl_request_t *request)
{
    return mdl_request_body_is_encoded(request->r)
               ? mdl_problem_set(&request->problem, 415, "unsupported_media_type",
                                 "Send the bytes of the file as they are, without a "
                                 "Content-Encoding.")
               : APR_SUCCESS;
}

static apr_status_t upload_body_parse_patch(mdl_request_t *request, mdl_upload_write_t *write)
{
    const char *type = apr_table_get(request->r->headers_in, "Content-Type");

    if (type == NULL || !mdl_media_type_is(type, "application/offset+octet-stream")) {
        return mdl_problem_set(&request->problem, 415, "unsupported_media_type",
                               "Send a piece as Content-Type: application/offset+octet-stream.");
    }
    write->offset = upload_body_number(request->r, "Upload-Offset");
    if (write->offset < 0) {
        return upload_body_invalid(request, "Upload-Offset must be a number of bytes.");
    }
    write->size = upload_body_number(request->r, "Upload-Length");
    if (write->size < -1) {
        return upload_body_invalid(request, "Upload-Length must be a number of bytes.");
    }
    return upload_body_parse_checksum(request, write);
}

static apr_status_t upload_body_parse_put(mdl_request_t *request)
{
    const char *type = apr_table_get(request->r->headers_in, "Content-Type");

    if (type != NULL && strncasecmp(type, "multipart/", 10) == 0) {
        return mdl_problem_set(&request->problem, 415, "unsupported_media_type",
                               "PUT takes the bytes of the file alone, without a multipart body "
                               "around them (with curl: -T file, not -F).");
    }
    return apr_table_get(request->r->headers_in, "Content-Range") == NULL
               ? APR_SUCCESS
               : upload_body_invalid(request,
                                     "PUT takes the whole file; a part of it can't be put.");
}

/* --- the bytes --- */

static apr_status_t upload_body_append(mdl_request_t *request, const mdl_upload_sink_t *sink,
                                       apr_bucket_brigade *brigade, int *ended)
{
    for (apr_bucket *b = APR_BRIGADE_FIRST(brigade); b != APR_BRIGADE_SENTINEL(brigade);
         b = APR_BUCKET_NEXT(b)) {
        const char *data;
        apr_size_t length;
        apr_status_t rv;

        *ended = *ended || APR_BUCKET_IS_EOS(b);
        if (APR_BUCKET_IS_METADATA(b)) {
            continue;
        }
        if ((rv = apr_bucket_read(b, &data, &length, APR_BLOCK_READ)) != APR_SUCCESS) {
            return mdl_body_not_received(request, rv);
        }
        mdl_metric_add(&mdl_metrics->uploaded_bytes, (long long)length);
        if ((rv = sink->take(sink->baton, data, length)) != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_upload_body_receive(mdl_request_t *request, apr_int64_t shop_id,
                                     const mdl_upload_sink_t *sink)
{
    request_rec *r = request->r;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_time_t began_at = mdl_clock_monotonic();
    apr_status_t rv = APR_SUCCESS;
    int ended = 0;

    while (!ended && rv == APR_SUCCESS) {
        rv = ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_BLOCK_READ,
                            READ_SIZE);
        rv = rv == APR_SUCCESS ? upload_body_append(request, sink, brigade, &ended)
                               : mdl_body_not_received(request, rv);
        apr_brigade_cleanup(brigade);
        if (rv == APR_SUCCESS && mdl_takedown_covers(shop_id, began_at)) {
            rv = mdl_upload_blocked(&request->problem);
        }
    }
    return rv;
}

static apr_status_t upload_body_take(void *baton, const char *bytes, apr_size_t length)
{
    return mdl_upload_write_append(baton, bytes, length);
}

static apr_status_t upload_body_failed(mdl_request_t *request, const mdl_upload_write_t *write,
                                       apr_status_t rv)
{
    if (rv == MDL_EPROBLEM && (request->problem.status == HTTP_REQUEST_ENTITY_TOO_LARGE ||
                               request->problem.status == HTTP_FORBIDDEN)) {
        request->r->connection->keepalive = AP_CONN_CLOSE;
    }
    return mdl_upload_bytes_failed(write, request, rv);
}

apr_status_t mdl_upload_body_write(mdl_request_t *request, const char *id, int whole)
{
    mdl_upload_write_t write;
    const mdl_upload_sink_t sink = {.take = upload_body_take, .baton = &write};
    apr_status_t rv = upload_body_check_encoding(request);

    mdl_upload_bytes_prepare(&write, request, id);
    write.whole = whole;
    write.length = mdl_request_body_length(request->r);
    if (rv == APR_SUCCESS) {
        rv = whole ? upload_body_parse_put(request) : upload_body_parse_patch(request, &write);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_upload_bytes_begin(&write, request)) == APR_SUCCESS) {
        rv = mdl_upload_body_receive(request, write.upload->shop_id, &sink);
        if (rv == APR_SUCCESS) {
            rv = mdl_upload_bytes_end(&write);
        } else {
            mdl_upload_bytes_cut(&write);
        }
    }
    if (write.arrived >= 0) {
        mdl_upload_body_show(request->r, write.upload, write.arrived);
    }
    return rv == APR_SUCCESS ? rv : upload_body_failed(request, &write, rv);
}
