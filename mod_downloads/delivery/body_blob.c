#include "delivery/body_blob.h"

#include <http_core.h>

#define BUCKET_MAX 0x40000000 /* bytes, as httpd's own handler has it */

typedef struct {
    mdl_body_t body; /* first: it is a body */
    request_rec *r;
    apr_file_t *file;
    apr_bucket *whole;
} blob_t;

static apr_status_t close_file(void *data)
{
    return apr_file_close(data);
}

/* Makes one bucket of the whole file; each call of take copies a part of it.  A second bucket of
   the same apr_file_t would lose its descriptor when the first one is set aside. */
static void make_whole(blob_t *blob, apr_bucket_brigade *to)
{
    const core_dir_config *core = ap_get_core_module_config(blob->r->per_dir_config);
    apr_bucket_brigade *kept = apr_brigade_create(blob->r->pool, to->bucket_alloc);

    blob->whole = apr_bucket_file_create(blob->file, 0, (apr_size_t)blob->body.size, blob->r->pool,
                                         to->bucket_alloc);
    APR_BRIGADE_INSERT_TAIL(kept, blob->whole);
    if (core->enable_mmap == ENABLE_MMAP_OFF) {
        apr_bucket_file_enable_mmap(blob->whole, 0);
    }
    if (core->read_buf_size != 0) {
        apr_bucket_file_set_buf_size(blob->whole, core->read_buf_size);
    }
}

static apr_status_t blob_body_take(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                                   apr_bucket_brigade *to, apr_int64_t *taken)
{
    blob_t *blob = (blob_t *)body;
    apr_status_t rv;

    if (blob->whole == NULL) {
        make_whole(blob, to);
    }
    for (*taken = 0; *taken < length; *taken += (apr_int64_t)APR_BRIGADE_LAST(to)->length) {
        apr_bucket *part;

        if ((rv = apr_bucket_copy(blob->whole, &part)) != APR_SUCCESS) {
            return rv;
        }
        part->start = offset + *taken;
        part->length = (apr_size_t)(length - *taken < BUCKET_MAX ? length - *taken : BUCKET_MAX);
        APR_BRIGADE_INSERT_TAIL(to, part);
    }
    return APR_SUCCESS;
}

/*
 * Opens the file in the connection's pool: httpd's core duplicates a descriptor for each bucket
 * that it sets aside, unless the file's pool is an ancestor of its own.  The file is closed with
 * the request, for a connection may have many.
 */
static apr_status_t blob_body_open_file(blob_t *blob, const mdl_storage_t *storage,
                                        const mdl_blob_t *of)
{
    const core_dir_config *core = ap_get_core_module_config(blob->r->per_dir_config);
    /* Without sendfile httpd keeps a thread for as long as the client takes. */
    apr_int32_t flags = core->enable_sendfile != ENABLE_SENDFILE_OFF ? APR_FOPEN_SENDFILE_ENABLED
                                                                     : 0;
    apr_status_t rv = mdl_storage_file(&blob->file, storage, of, flags, blob->r->connection->pool);

    if (rv == APR_SUCCESS) {
        apr_pool_cleanup_register(blob->r->pool, blob->file, close_file, apr_pool_cleanup_null);
    }
    return rv;
}

apr_status_t mdl_body_blob_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                const mdl_blob_t *of)
{
    blob_t *blob = apr_pcalloc(r->pool, sizeof *blob);
    apr_finfo_t info;
    apr_status_t rv;

    if (storage == NULL) {
        return APR_ENOENT;
    }
    blob->body = (mdl_body_t){.size = of->size, .lasting = 1, .take = blob_body_take};
    blob->r = r;
    *body = &blob->body;
    if ((rv = blob_body_open_file(blob, storage, of)) != APR_SUCCESS) {
        return rv;
    }
    rv = apr_file_info_get(&info, APR_FINFO_SIZE, blob->file);
    return rv == APR_SUCCESS && info.size != of->size ? APR_EINCOMPLETE : rv;
}
