#include "delivery/output.h"

#include <util_filter.h>

#define STREAM_PIECE 65536 /* bytes of a body handed to an HTTP/2 connection at a time */

static ap_filter_rec_t *filter;

/* What is done at one go: taken from a body and put behind what waits in out. */
typedef struct {
    ap_filter_t *f;
    apr_bucket_brigade *out;
    apr_bucket_brigade *piece;
} output_t;

static apr_status_t pass(output_t *output, int flush)
{
    apr_status_t rv;

    if (flush) {
        APR_BRIGADE_INSERT_TAIL(output->out, apr_bucket_flush_create(output->out->bucket_alloc));
    }
    rv = ap_pass_brigade(output->f->next, output->out);
    apr_brigade_cleanup(output->out);
    return rv != APR_SUCCESS || !output->f->c->aborted ? rv : APR_ECONNABORTED;
}

/* The bytes themselves, for a connection of which this is one stream of many: what only refers to
   them would have to live until the other threads are done with it. */
static apr_status_t copy_piece(output_t *output, apr_int64_t length)
{
    apr_bucket_alloc_t *alloc = output->out->bucket_alloc;
    apr_size_t copied = (apr_size_t)length;
    char *bytes = apr_bucket_alloc(copied, alloc);
    apr_status_t rv = apr_brigade_flatten(output->piece, bytes, &copied);

    apr_brigade_cleanup(output->piece);
    if (rv != APR_SUCCESS) {
        apr_bucket_free(bytes);
        return rv;
    }
    APR_BRIGADE_INSERT_TAIL(output->out,
                            apr_bucket_heap_create(bytes, copied, apr_bucket_free, alloc));
    return pass(output, 0);
}

static apr_status_t expand(output_t *output, mdl_body_t *body, apr_int64_t offset,
                           apr_int64_t length)
{
    int is_stream = output->f->c->master != NULL;

    while (length > 0) {
        apr_int64_t wanted = is_stream && length > STREAM_PIECE ? STREAM_PIECE : length;
        apr_int64_t taken;
        apr_status_t rv = body->take(body, offset, wanted, output->piece, &taken);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (is_stream) {
            rv = copy_piece(output, taken);
        } else {
            APR_BRIGADE_CONCAT(output->out, output->piece);
            rv = body->lasting ? APR_SUCCESS : pass(output, 1);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
        offset += taken;
        length -= taken;
    }
    return APR_SUCCESS;
}

static apr_status_t write_body(ap_filter_t *f, apr_bucket_brigade *in)
{
    output_t output = {.f = f,
                       .out = apr_brigade_create(f->r->pool, in->bucket_alloc),
                       .piece = apr_brigade_create(f->r->pool, in->bucket_alloc)};
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(in)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(in);
        mdl_body_t *body = mdl_body_of(bucket);

        if (body != NULL) {
            rv = expand(&output, body, bucket->start, (apr_int64_t)bucket->length);
            apr_bucket_delete(bucket);
        } else {
            APR_BUCKET_REMOVE(bucket);
            APR_BRIGADE_INSERT_TAIL(output.out, bucket);
        }
    }
    if (rv == APR_SUCCESS) {
        rv = pass(&output, 0);
    }
    apr_brigade_destroy(output.piece);
    apr_brigade_destroy(output.out);
    return rv;
}

void mdl_output_register(void)
{
    filter = ap_register_output_filter("DOWNLOADS_BODY", write_body, NULL, AP_FTYPE_TRANSCODE);
}

apr_status_t mdl_output_send(request_rec *r, mdl_body_t *body)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);

    ap_add_output_filter_handle(filter, NULL, r, r->connection);
    APR_BRIGADE_INSERT_TAIL(brigade, mdl_body_bucket(body, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    return ap_pass_brigade(r->output_filters, brigade);
}
