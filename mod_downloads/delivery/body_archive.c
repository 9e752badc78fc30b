#include "delivery/body_archive.h"

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <http_core.h>

/* Limits of one call of take. */
#define FILES        16
#define FILE_BYTES   (8 * 1024 * 1024)
#define HEADER_BYTES (32 * 1024)

#define COPIED_MIN (1024 * 1024) /* bytes of a file from which copying is faster than sendfile */

typedef struct {
    mdl_body_t body; /* first: it is a body */
    request_rec *r;
    const mdl_storage_t *storage;
    const mdl_archive_t *archive;
    apr_pool_t *open; /* of the files that the last call opened */
} archive_t;

static const mdl_archive_file_t *archive_file_at(const mdl_archive_t *archive, int i)
{
    return &APR_ARRAY_IDX(archive->files, i, mdl_archive_file_t);
}

static mdl_blob_t blob_of(const archive_t *archive, int i, apr_pool_t *p)
{
    const mdl_archive_file_t *file = archive_file_at(archive->archive, i);

    return (mdl_blob_t){.sha256 = mdl_hex(file->sha256, MDL_SHA256_LENGTH, p), .size = file->size};
}

/* Each bucket has its own apr_file_t, since a call takes at most one piece of each file. */
static apr_status_t append_file(archive_t *archive, const mdl_zip_piece_t *piece,
                                apr_bucket_brigade *to)
{
    const core_dir_config *core = ap_get_core_module_config(archive->r->per_dir_config);
    const mdl_blob_t blob = blob_of(archive, piece->entry, archive->open);
    apr_int32_t flags = 0;
    apr_file_t *file;
    apr_bucket *bucket;
    apr_status_t rv;

    /* A thread waits for the client with or without sendfile. */
    if (core->enable_sendfile != ENABLE_SENDFILE_OFF &&
        (piece->length < COPIED_MIN || core->enable_mmap == ENABLE_MMAP_OFF)) {
        flags = APR_FOPEN_SENDFILE_ENABLED;
    }
    rv = mdl_storage_file(&file, archive->storage, &blob, flags, archive->open);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    bucket = apr_brigade_insert_file(to, file, piece->offset, piece->length, archive->open);
    if (core->enable_mmap == ENABLE_MMAP_OFF) {
        apr_bucket_file_enable_mmap(bucket, 0);
    }
    if (core->read_buf_size != 0) {
        apr_bucket_file_set_buf_size(bucket, core->read_buf_size);
    }
    return APR_SUCCESS;
}

static apr_int64_t least(apr_int64_t a, apr_int64_t b)
{
    return a < b ? a : b;
}

/* Closes the files of the last call first: reading a file takes memory from its pool. */
static apr_status_t archive_body_take(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                                      apr_bucket_brigade *to, apr_int64_t *taken)
{
    archive_t *archive = (archive_t *)body;
    apr_int64_t file_bytes = 0, header_bytes = 0;
    mdl_zip_piece_t piece;
    int files = 0;
    apr_status_t rv = APR_SUCCESS;

    apr_pool_clear(archive->open);
    *taken = 0;
    while (rv == APR_SUCCESS && *taken < length && file_bytes < FILE_BYTES &&
           header_bytes < HEADER_BYTES) {
        mdl_zip_piece(archive->archive->zip, offset + *taken, &piece);
        piece.length = least(piece.length, length - *taken);
        if (piece.entry < 0) {
            rv = apr_brigade_write(to, NULL, NULL, (const char *)piece.header,
                                   (apr_size_t)piece.length);
            header_bytes += piece.length;
        } else if (files++ < FILES) {
            piece.length = least(piece.length, FILE_BYTES - file_bytes);
            rv = append_file(archive, &piece, to);
            file_bytes += piece.length;
        } else {
            break;
        }
        *taken += piece.length;
    }
    return rv;
}

static apr_status_t archive_body_check(const archive_t *archive, int i, apr_pool_t *p)
{
    const mdl_blob_t blob = blob_of(archive, i, p);
    apr_int64_t size;
    apr_status_t rv = mdl_storage_size(archive->storage, &blob, &size, p);

    return rv == APR_SUCCESS && size != blob.size ? APR_EINCOMPLETE : rv;
}

apr_status_t mdl_body_archive_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                   const mdl_archive_t *archive, int *missing)
{
    archive_t *made = apr_pcalloc(r->pool, sizeof *made);
    apr_pool_t *scratch;
    apr_status_t rv = storage != NULL ? APR_SUCCESS : APR_ENOENT;

    *made = (archive_t){.body = {.size = mdl_zip_size(archive->zip), .take = archive_body_take},
                        .r = r,
                        .storage = storage,
                        .archive = archive};
    apr_pool_create(&made->open, r->pool);
    apr_pool_tag(made->open, "mdl_archive_open");
    *body = &made->body;
    *missing = 0;
    apr_pool_create(&scratch, r->pool);
    apr_pool_tag(scratch, "mdl_body_archive_open");
    for (int i = 0; rv == APR_SUCCESS && i < archive->files->nelts; i++) {
        *missing = i;
        rv = archive_body_check(made, i, scratch);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return rv;
}
