#include "delivery/output.h"

#include <stdio.h>
#include <strings.h>

#include <http_ssl.h>
#include <util_filter.h>

#define STREAM_PIECE 131072 /* bytes of a body handed to an HTTP/2 connection at a time */
#define TLS_PIECE    262144 /* and to a TLS connection */

static ap_filter_rec_t *filter;

/* A response's state over all calls of the filter. */
typedef struct {
    ap_filter_t *f;
    mdl_transfer_t *transfer;
    mdl_body_t *body;
    apr_bucket_brigade *out;   /* waits to be passed */
    apr_bucket_brigade *taken; /* from the body */
    apr_int64_t piece; /* bytes of the body that are passed at a time; 0: as many as it gives */
    int is_last;       /* the part that is expanded is the body's last */
    /* Another filter's bytes are counted as the body's bytes from next to before end. */
    int counting;
    apr_int64_t next;
    apr_int64_t end;
    int in_parts; /* several ranges: which bytes they hold is not known */
} output_t;

/* APR_ECONNABORTED once the transfer is cut. */
static apr_status_t output_check(const output_t *output)
{
    if (output->transfer != NULL && mdl_transfer_is_cut(output->transfer)) {
        output->f->c->aborted = 1;
        return APR_ECONNABORTED;
    }
    return APR_SUCCESS;
}

static apr_status_t output_pass(output_t *output, int flush)
{
    apr_status_t rv = output_check(output);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (APR_BRIGADE_EMPTY(output->out)) {
        return APR_SUCCESS;
    }
    if (flush) {
        APR_BRIGADE_INSERT_TAIL(output->out, apr_bucket_flush_create(output->out->bucket_alloc));
    }
    rv = ap_pass_brigade(output->f->next, output->out);
    apr_brigade_cleanup(output->out);
    return rv != APR_SUCCESS || !output->f->c->aborted ? rv : APR_ECONNABORTED;
}

/* Reads a stream's files into memory: another thread may still send them after they are closed
   here.  Mapping each piece would cost more. */
static apr_status_t output_read(output_t *output)
{
    for (apr_bucket *bucket = APR_BRIGADE_FIRST(output->taken);
         bucket != APR_BRIGADE_SENTINEL(output->taken); bucket = APR_BUCKET_NEXT(bucket)) {
        const char *bytes;
        apr_size_t length;
        apr_status_t rv;

        if (APR_BUCKET_IS_FILE(bucket)) {
            apr_bucket_file_enable_mmap(bucket, 0);
            apr_bucket_file_set_buf_size(bucket, STREAM_PIECE);
        }
        if ((rv = apr_bucket_read(bucket, &bytes, &length, APR_BLOCK_READ)) != APR_SUCCESS) {
            apr_brigade_cleanup(output->taken);
            return rv;
        }
    }
    APR_BRIGADE_CONCAT(output->out, output->taken);
    return APR_SUCCESS;
}

/* Appends the next bytes of the body, of which left remain, and passes them on unless they may wait
   for more. */
static apr_status_t output_expand_piece(output_t *output, apr_int64_t offset, apr_int64_t left,
                                        apr_int64_t *taken)
{
    mdl_body_t *body = output->body;
    int is_stream = output->f->c->master != NULL;
    apr_int64_t wanted = output->piece > 0 && left > output->piece ? output->piece : left;
    apr_status_t rv = body->take(body, offset, wanted, output->taken, taken);

    if (rv != APR_SUCCESS) {
        return output_check(output) != APR_SUCCESS ? APR_ECONNABORTED : rv;
    }
    if (output->transfer != NULL) {
        if (output->piece > 0) {
            mdl_transfer_mark(output->transfer);
        }
        mdl_transfer_add_part(output->transfer, offset, *taken);
        output->next = offset + *taken;
    }
    if (output->is_last && *taken == left && body->end != NULL) {
        body->end(body->owner);
    }
    if (is_stream) {
        rv = output_read(output);
        return rv == APR_SUCCESS ? output_pass(output, 0) : rv;
    }
    APR_BRIGADE_CONCAT(output->out, output->taken);
    return body->lasting && output->piece == 0 ? APR_SUCCESS : output_pass(output, 1);
}

static apr_status_t output_expand(output_t *output, apr_int64_t offset, apr_int64_t length)
{
    apr_status_t rv = APR_SUCCESS;

    output->body->until = offset + length;
    while (length > 0 && rv == APR_SUCCESS) {
        apr_int64_t taken;

        rv = output_expand_piece(output, offset, length, &taken);
        if (rv == APR_SUCCESS) {
            offset += taken;
            length -= taken;
        }
    }
    return rv;
}

/* Whether the response ends after this part of the body. */
static int is_last_part(const apr_bucket_brigade *in, const apr_bucket *part)
{
    for (const apr_bucket *bucket = APR_BUCKET_NEXT(part); bucket != APR_BRIGADE_SENTINEL(in);
         bucket = APR_BUCKET_NEXT(bucket)) {
        if (mdl_body_of(bucket) != NULL || APR_BUCKET_IS_EOS(bucket)) {
            return APR_BUCKET_IS_EOS(bucket);
        }
    }
    return 0;
}

/* Finds the bytes of the body for which the bytes of another filter stand. */
static void output_begin_counting(output_t *output)
{
    const request_rec *r = output->f->r;
    const char *range = apr_table_get(r->headers_out, "Content-Range");
    apr_int64_t first, last;

    output->counting = 1;
    output->end = output->body->size;
    output->in_parts = r->content_type != NULL &&
                       strncasecmp(r->content_type, "multipart/byteranges", 20) == 0;
    if (range != NULL &&
        sscanf(range, "bytes %" APR_INT64_T_FMT "-%" APR_INT64_T_FMT "/", &first, &last) == 2) {
        output->next = first;
        output->end = last < output->end ? last + 1 : output->end;
    }
}

/* Counts another filter's bytes as that many of the body's, and its end as the rest of the body;
   after several ranges there is no rest that was asked for. */
static void output_add_foreign(output_t *output, apr_int64_t length, int is_last)
{
    apr_int64_t left, part;

    if (!output->counting) {
        output_begin_counting(output);
    }
    left = output->end - output->next;
    part = length < left ? length : left;
    if (part > 0) {
        mdl_transfer_add_part(output->transfer, output->next, part);
    }
    mdl_transfer_add_other(output->transfer, (apr_uint64_t)(length - part));
    output->next += part;
    if (is_last && part < left && !output->in_parts) {
        mdl_transfer_add_rest(output->transfer, output->next, left - part);
        output->next = output->end;
    }
}

static void output_keep(output_t *output, apr_bucket *bucket)
{
    int has_bytes = !APR_BUCKET_IS_METADATA(bucket) && bucket->length != (apr_size_t)-1;

    APR_BUCKET_REMOVE(bucket);
    APR_BRIGADE_INSERT_TAIL(output->out, bucket);
    if (output->transfer == NULL) {
        return;
    }
    if (output->body->is_read && output->f->r->sent_bodyct &&
        (has_bytes || APR_BUCKET_IS_EOS(bucket))) {
        output_add_foreign(output, has_bytes ? (apr_int64_t)bucket->length : 0, !has_bytes);
    } else if (has_bytes) {
        mdl_transfer_add_other(output->transfer, bucket->length);
    }
}

static apr_status_t write_body(ap_filter_t *f, apr_bucket_brigade *in)
{
    output_t *output = f->ctx;
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(in)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(in);

        if (mdl_body_of(bucket) != NULL) {
            output->is_last = is_last_part(in, bucket);
            rv = output_expand(output, bucket->start, (apr_int64_t)bucket->length);
            apr_bucket_delete(bucket);
        } else {
            output_keep(output, bucket);
        }
    }
    if (rv == APR_SUCCESS) {
        rv = output_pass(output, 0);
    }
    if (rv != APR_SUCCESS) {
        /* A client that knows the length would take the next response for the rest of this one. */
        f->c->keepalive = AP_CONN_CLOSE;
    }
    apr_brigade_cleanup(output->taken);
    apr_brigade_cleanup(output->out);
    return rv;
}

void mdl_output_register(void)
{
    filter = ap_register_output_filter("DOWNLOADS_BODY", write_body, NULL, AP_FTYPE_TRANSCODE);
}

apr_status_t mdl_output_send(request_rec *r, mdl_body_t *body, mdl_transfer_t *transfer)
{
    conn_rec *c = r->connection;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, c->bucket_alloc);
    output_t *output = apr_pcalloc(r->pool, sizeof *output);

    *output = (output_t){.f = ap_add_output_filter_handle(filter, output, r, c),
                         .transfer = transfer,
                         .body = body,
                         .out = apr_brigade_create(r->pool, c->bucket_alloc),
                         .taken = apr_brigade_create(r->pool, c->bucket_alloc)};
    if (c->master != NULL) {
        output->piece = STREAM_PIECE;
    } else if (ap_ssl_conn_is_ssl(c)) {
        output->piece = TLS_PIECE;
    }
    if (transfer != NULL && body->size == 0) {
        mdl_transfer_add_part(transfer, 0, 0); /* no other part will come */
    }
    APR_BRIGADE_INSERT_TAIL(brigade, mdl_body_bucket(body, c->bucket_alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(c->bucket_alloc));
    return ap_pass_brigade(r->output_filters, brigade);
}
