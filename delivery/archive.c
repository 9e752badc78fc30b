#include "delivery/archive.h"

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <http_core.h>

/* What one call gives at most. */
#define FILES        16
#define FILE_BYTES   (8 * 1024 * 1024)
#define HEADER_BYTES (64 * 1024)

typedef struct {
    mdl_body_t body; /* first: it is a body */
    request_rec *r;
    mdl_storage_t *storage;
    const mdl_archive_t *archive;
    apr_pool_t *open;  /* of the files of the last call */
    int files;         /* that are open */
    int entry;         /* which of them was opened last; -1: none is open */
    apr_bucket *whole; /* of that file */
} archive_t;

static const mdl_archive_file_t *file_at(const mdl_archive_t *archive, int i)
{
    return &APR_ARRAY_IDX(archive->files, i, mdl_archive_file_t);
}

static const char *path_of(const archive_t *archive, int i, apr_pool_t *p)
{
    return mdl_storage_path(archive->storage,
                            mdl_hex(file_at(archive->archive, i)->sha256, MDL_SHA256_LENGTH, p), p);
}

/* Closes what the last call opened, but for a file that this one goes on with. */
static void begin(archive_t *archive, const mdl_zip_piece_t *first)
{
    if (archive->open == NULL) {
        apr_pool_create(&archive->open, archive->r->pool);
        apr_pool_tag(archive->open, "mdl_archive_open");
    } else if (first->entry < 0 || first->entry != archive->entry) {
        apr_pool_clear(archive->open);
        archive->files = 0;
        archive->entry = -1;
    }
}

/* One bucket of all of a file, of which parts are copies: of several that are made from one file
   all but one lose its descriptor when that is set aside. */
static apr_status_t open_entry(archive_t *archive, int entry, apr_bucket_alloc_t *alloc)
{
    const core_dir_config *core = ap_get_core_module_config(archive->r->per_dir_config);
    apr_bucket_brigade *kept = apr_brigade_create(archive->open, alloc);
    apr_int32_t flags = APR_FOPEN_READ | APR_FOPEN_BINARY;
    apr_file_t *file;
    apr_status_t rv;

    if (core->enable_sendfile == ENABLE_SENDFILE_ON) {
        flags |= APR_FOPEN_SENDFILE_ENABLED;
    }
    rv = apr_file_open(&file, path_of(archive, entry, archive->open), flags, APR_FPROT_OS_DEFAULT,
                       archive->open);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    archive->whole = apr_brigade_insert_file(kept, file, 0, file_at(archive->archive, entry)->size,
                                             archive->open);
    if (core->enable_mmap == ENABLE_MMAP_OFF) {
        apr_bucket_file_enable_mmap(archive->whole, 0);
    }
    if (core->read_buf_size != 0) {
        apr_bucket_file_set_buf_size(archive->whole, core->read_buf_size);
    }
    archive->entry = entry;
    archive->files++;
    return APR_SUCCESS;
}

static apr_status_t append_file(archive_t *archive, const mdl_zip_piece_t *piece,
                                apr_bucket_brigade *to)
{
    apr_bucket *part;
    apr_status_t rv = APR_SUCCESS;

    if (piece->entry != archive->entry) {
        rv = open_entry(archive, piece->entry, to->bucket_alloc);
    }
    if (rv != APR_SUCCESS || (rv = apr_bucket_copy(archive->whole, &part)) != APR_SUCCESS) {
        return rv;
    }
    part->start = piece->offset;
    part->length = (apr_size_t)piece->length;
    APR_BRIGADE_INSERT_TAIL(to, part);
    return APR_SUCCESS;
}

static apr_int64_t least(apr_int64_t a, apr_int64_t b)
{
    return a < b ? a : b;
}

static apr_status_t take(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                         apr_bucket_brigade *to, apr_int64_t *taken)
{
    archive_t *archive = (archive_t *)body;
    apr_int64_t file_bytes = 0, header_bytes = 0;
    mdl_zip_piece_t piece;
    apr_status_t rv = APR_SUCCESS;

    *taken = 0;
    mdl_zip_piece(archive->archive->zip, offset, &piece);
    begin(archive, &piece);
    while (rv == APR_SUCCESS) {
        piece.length = least(piece.length, length - *taken);
        if (piece.entry < 0) {
            rv = apr_brigade_write(to, NULL, NULL, (const char *)piece.header,
                                   (apr_size_t)piece.length);
            header_bytes += piece.length;
        } else {
            piece.length = least(piece.length, FILE_BYTES - file_bytes);
            rv = append_file(archive, &piece, to);
            file_bytes += piece.length;
        }
        *taken += piece.length;
        if (*taken == length || file_bytes == FILE_BYTES || header_bytes >= HEADER_BYTES) {
            break;
        }
        mdl_zip_piece(archive->archive->zip, offset + *taken, &piece);
        if (piece.entry >= 0 && piece.entry != archive->entry && archive->files == FILES) {
            break;
        }
    }
    return rv;
}

static apr_status_t look_for(const archive_t *archive, int i, apr_pool_t *p)
{
    const char *path = path_of(archive, i, p);
    apr_finfo_t info;
    apr_status_t rv = path != NULL ? apr_stat(&info, path, APR_FINFO_SIZE | APR_FINFO_TYPE, p)
                                   : APR_ENOENT;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return info.filetype == APR_REG && info.size == file_at(archive->archive, i)->size
               ? APR_SUCCESS
               : APR_EINCOMPLETE;
}

apr_status_t mdl_archive_body(mdl_body_t **body, request_rec *r, mdl_storage_t *storage,
                              const mdl_archive_t *archive, int *missing)
{
    archive_t *made = apr_pcalloc(r->pool, sizeof *made);
    apr_pool_t *scratch;
    apr_status_t rv = storage != NULL ? APR_SUCCESS : APR_ENOENT;

    *made = (archive_t){.body = {.size = mdl_zip_size(archive->zip), .take = take},
                        .r = r,
                        .storage = storage,
                        .archive = archive,
                        .entry = -1};
    *body = &made->body;
    *missing = 0;
    apr_pool_create(&scratch, r->pool);
    apr_pool_tag(scratch, "mdl_archive_body");
    for (int i = 0; rv == APR_SUCCESS && i < archive->files->nelts; i++) {
        *missing = i;
        rv = look_for(made, i, scratch);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return rv;
}
