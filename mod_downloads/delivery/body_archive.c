#include "delivery/body_archive.h"

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <http_core.h>

#include "delivery/body_object.h"

/* Limits of one call of take. */
#define FILES        16
#define FILE_BYTES   (8 * 1024 * 1024)
#define HEADER_BYTES (32 * 1024)

#define COPIED_MIN (1024 * 1024) /* bytes of a file from which copying is faster than sendfile */

#define AHEAD       8            /* objects that are asked for at a time */
#define AHEAD_BYTES (256 * 1024) /* of the largest that is asked for before its turn */

/* An object that was asked for. */
typedef struct {
    apr_pool_t *pool; /* of body; NULL: not used yet */
    int entry;
    mdl_body_t *body;
} object_t;

typedef struct {
    mdl_body_t body; /* first: it is a body */
    request_rec *r;
    const mdl_storage_t *storage;
    const mdl_archive_t *archive;
    mdl_object_call_t *call;
    apr_pool_t *open;        /* of the files that the last call opened */
    object_t objects[AHEAD]; /* that of an entry is at its index modulo AHEAD */
    int faulty;              /* the entry that could not be read; -1: none */
} archive_t;

static const mdl_archive_file_t *archive_file_at(const mdl_archive_t *archive, int i)
{
    return &APR_ARRAY_IDX(archive->files, i, mdl_archive_file_t);
}

static apr_int64_t least(apr_int64_t a, apr_int64_t b)
{
    return a < b ? a : b;
}

static mdl_blob_t blob_of(const archive_t *archive, int i, apr_pool_t *p)
{
    const mdl_archive_file_t *file = archive_file_at(archive->archive, i);

    return (mdl_blob_t){.sha256 = mdl_hex(file->sha256, MDL_SHA256_LENGTH, p),
                        .size = file->size,
                        .object = file->object};
}

/* The object of an entry, which gets the place of an earlier one unless it has one. */
static mdl_body_t *archive_object(archive_t *archive, int entry)
{
    object_t *object = &archive->objects[entry % AHEAD];
    const mdl_archive_file_t *file = archive_file_at(archive->archive, entry);
    mdl_blob_t blob = {.size = file->size, .object = file->object};
    apr_int64_t left = archive->body.until - mdl_zip_data(archive->archive->zip, entry);

    if (object->pool == NULL) {
        apr_pool_create(&object->pool, archive->r->pool);
        apr_pool_tag(object->pool, "mdl_archive_object");
        object->entry = -1;
    }
    if (object->entry != entry) {
        apr_pool_clear(object->pool);
        object->entry = entry;
        object->body = mdl_body_object_make(mdl_storage_objects(archive->storage), &blob,
                                            archive->call, object->pool);
    }
    object->body->until = least(file->size, left);
    return object->body;
}

/* Asks for the objects behind an entry.  A large one would take so long that the store gives the
   next ones up; and if one can't be asked for, its turn will tell why. */
static void archive_ask_ahead(archive_t *archive, int entry)
{
    const mdl_archive_t *of = archive->archive;
    int end = entry + AHEAD < of->files->nelts ? entry + AHEAD : of->files->nelts;

    for (int i = entry; i < end && mdl_zip_data(of->zip, i) < archive->body.until; i++) {
        const mdl_archive_file_t *file = archive_file_at(of, i);

        if (file->object == NULL || file->size > AHEAD_BYTES) {
            return;
        }
        if (i > entry && file->size > 0) {
            mdl_body_object_ask(archive_object(archive, i), 0);
        }
    }
}

static apr_status_t append_object(archive_t *archive, mdl_zip_piece_t *piece,
                                  apr_bucket_brigade *to)
{
    mdl_body_t *object = archive_object(archive, piece->entry);
    apr_status_t rv = mdl_body_object_ask(object, piece->offset);

    if (rv == APR_SUCCESS) {
        archive_ask_ahead(archive, piece->entry);
        rv = object->take(object, piece->offset, piece->length, to, &piece->length);
    }
    return rv;
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

/* Closes the files of the last call first: reading a file takes memory from its pool.  Ends with
   the bytes of an object, for which the client would have to wait with all before it. */
static apr_status_t archive_body_take(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                                      apr_bucket_brigade *to, apr_int64_t *taken)
{
    archive_t *archive = (archive_t *)body;
    apr_int64_t file_bytes = 0, header_bytes = 0;
    mdl_zip_piece_t piece;
    int files = 0, is_object = 0;
    apr_status_t rv = APR_SUCCESS;

    apr_pool_clear(archive->open);
    archive->faulty = -1;
    *taken = 0;
    while (rv == APR_SUCCESS && !is_object && *taken < length && file_bytes < FILE_BYTES &&
           header_bytes < HEADER_BYTES) {
        mdl_zip_piece(archive->archive->zip, offset + *taken, &piece);
        piece.length = least(piece.length, length - *taken);
        if (piece.entry < 0) {
            rv = apr_brigade_write(to, NULL, NULL, (const char *)piece.header,
                                   (apr_size_t)piece.length);
            header_bytes += piece.length;
        } else if (archive_file_at(archive->archive, piece.entry)->object != NULL) {
            is_object = 1;
            rv = append_object(archive, &piece, to);
        } else if (files++ < FILES) {
            piece.length = least(piece.length, FILE_BYTES - file_bytes);
            rv = append_file(archive, &piece, to);
            file_bytes += piece.length;
        } else {
            break;
        }
        archive->faulty = rv != APR_SUCCESS ? piece.entry : -1;
        *taken += piece.length;
    }
    return rv;
}

apr_status_t mdl_body_archive_ready(mdl_body_t *body, apr_int64_t offset)
{
    archive_t *archive = (archive_t *)body;
    mdl_zip_piece_t piece = {.entry = -1};
    apr_status_t rv = APR_SUCCESS;

    archive->faulty = -1;
    for (; offset < body->until && piece.entry < 0; offset += piece.length) {
        mdl_zip_piece(archive->archive->zip, offset, &piece);
    }
    if (piece.entry >= 0 && archive_file_at(archive->archive, piece.entry)->object != NULL) {
        rv = mdl_body_object_ready(archive_object(archive, piece.entry), piece.offset);
        archive->faulty = rv != APR_SUCCESS ? piece.entry : -1;
    }
    return rv;
}

int mdl_body_archive_faulty(const mdl_body_t *body)
{
    return ((const archive_t *)body)->faulty;
}

void mdl_body_archive_close(mdl_body_t *body)
{
    archive_t *archive = (archive_t *)body;

    for (int i = 0; i < AHEAD; i++) {
        if (archive->objects[i].pool != NULL) {
            apr_pool_destroy(archive->objects[i].pool);
            archive->objects[i].pool = NULL;
        }
    }
}

static apr_status_t archive_body_check(const archive_t *archive, int i, apr_pool_t *p)
{
    const mdl_blob_t blob = blob_of(archive, i, p);
    apr_int64_t size;
    apr_status_t rv;

    if (blob.object != NULL) {
        return i == archive->archive->missing                  ? APR_ENOENT
               : mdl_storage_objects(archive->storage) == NULL ? MDL_OBJECT_EDENIED
                                                               : APR_SUCCESS;
    }
    rv = mdl_storage_size(archive->storage, &blob, &size, p);
    return rv == APR_SUCCESS && size != blob.size ? APR_EINCOMPLETE : rv;
}

apr_status_t mdl_body_archive_open(mdl_body_t **body, request_rec *r, const mdl_storage_t *storage,
                                   const mdl_archive_t *archive, mdl_object_call_t *call,
                                   int *faulty)
{
    archive_t *made = apr_pcalloc(r->pool, sizeof *made);
    apr_pool_t *scratch;
    apr_status_t rv = storage != NULL ? APR_SUCCESS : APR_ENOENT;

    *made = (archive_t){.body = {.size = mdl_zip_size(archive->zip), .take = archive_body_take},
                        .r = r,
                        .storage = storage,
                        .archive = archive,
                        .call = call,
                        .faulty = -1};
    apr_pool_create(&made->open, r->pool);
    apr_pool_tag(made->open, "mdl_archive_open");
    *body = &made->body;
    *faulty = 0;
    apr_pool_create(&scratch, r->pool);
    apr_pool_tag(scratch, "mdl_body_archive_open");
    for (int i = 0; rv == APR_SUCCESS && i < archive->files->nelts; i++) {
        *faulty = i;
        rv = archive_body_check(made, i, scratch);
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return rv;
}
