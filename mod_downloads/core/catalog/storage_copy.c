#include "core/catalog/storage_copy.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_thread_mutex.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/http/object_reader.h"
#include "base/ulid.h"
#include "core/catalog/stray_object.h"
#include "storage/object_writer.h"

#define BATCH    500
#define PIECE    65536
#define PARALLEL 3                      /* parts of an object that are sent at once */
#define PATIENCE apr_time_from_sec(60)  /* with a store that does not answer */
#define POSTPONE apr_time_from_sec(600) /* a key is removed an hour after it was postponed */

struct mdl_storage_copy_t {
    mdl_storage_copying_t of;
    apr_thread_mutex_t *mutex; /* for what follows */
    apr_pool_t *pool;          /* of batch */
    apr_array_header_t *batch; /* mdl_blob_t */
    int next;                  /* in batch */
    /* Digests are evenly distributed.  Several processes begin at random ones, go on to the last
       and then from the first, so that they meet late. */
    char start[MDL_SHA256_HEX_LENGTH + 1];
    char after[MDL_SHA256_HEX_LENGTH + 1];
    int wrapped;
    int over;
    apr_time_t free_at; /* when the next bytes may be read, by mdl_clock_monotonic */
};

/* A blob being copied by a thread. */
typedef struct {
    mdl_storage_copy_t *copy;
    mdl_storage_t *storage;
    mdl_db_t *db;
    mdl_blob_t blob;
    const char *key;        /* of the new object */
    apr_time_t postpone_at; /* by mdl_clock_monotonic */
    int faulty;             /* whether its bytes can't be copied: then fault and rv say why */
    mdl_blob_fault_t fault;
    const char *why; /* for people, why nothing can be copied */
    apr_pool_t *p;
} copier_t;

apr_status_t mdl_storage_copy_create(mdl_storage_copy_t **copy,
                                     const mdl_storage_copying_t *copying, apr_pool_t *p)
{
    mdl_storage_copy_t *made = apr_pcalloc(p, sizeof *made);
    unsigned char start[8];

    mdl_random(start, sizeof start);
    made->of = *copying;
    apr_cpystrn(made->start, mdl_hex(start, sizeof start, p), sizeof made->start);
    apr_cpystrn(made->after, made->start, sizeof made->after);
    apr_pool_create(&made->pool, p);
    apr_pool_tag(made->pool, "mdl_storage_copy");
    made->batch = apr_array_make(made->pool, 0, sizeof(mdl_blob_t));
    *copy = made;
    return apr_thread_mutex_create(&made->mutex, APR_THREAD_MUTEX_DEFAULT, p);
}

/* --- which blob is next --- */

static apr_status_t batch_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_storage_copy_t *copy = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(BLOBS_AFTER, .after = copy->after, .limit = BATCH));

    copy->batch = apr_array_make(p, BATCH, sizeof(mdl_blob_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(copy->batch,
                       mdl_blob_t) = (mdl_blob_t){.sha256 = MDL_TEXT(rows, blobs_after, sha256),
                                                  .size = MDL_INT(rows, blobs_after, size),
                                                  .object = MDL_TEXT(rows, blobs_after, object)};
    }
    return rv;
}

/* Goes on behind a batch, and ends with the blob before the first. */
static void batch_take(mdl_storage_copy_t *copy)
{
    apr_array_header_t *batch = copy->batch;
    int is_last = batch->nelts < BATCH;

    while (copy->wrapped && batch->nelts > 0 &&
           strcmp(APR_ARRAY_IDX(batch, batch->nelts - 1, mdl_blob_t).sha256, copy->start) > 0) {
        batch->nelts--;
        is_last = 1;
    }
    copy->over = copy->wrapped && is_last;
    copy->wrapped |= is_last;
    if (is_last) {
        *copy->after = '\0';
    } else {
        apr_cpystrn(copy->after, APR_ARRAY_IDX(batch, batch->nelts - 1, mdl_blob_t).sha256,
                    sizeof copy->after);
    }
}

static apr_status_t batch_read(mdl_storage_copy_t *copy, mdl_db_t *db)
{
    apr_status_t rv;

    apr_pool_clear(copy->pool);
    copy->next = 0;
    rv = mdl_db_read(db, batch_read_effect, copy, copy->pool);
    if (rv == APR_SUCCESS) {
        batch_take(copy);
    } else {
        copy->batch = apr_array_make(copy->pool, 0, sizeof(mdl_blob_t));
    }
    return rv;
}

/* Gets the next blob that is not at its new place, in p.  APR_EOF: there is none. */
static apr_status_t copy_next(mdl_storage_copy_t *copy, mdl_db_t *db, mdl_blob_t *blob,
                              apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;
    int found = 0;

    apr_thread_mutex_lock(copy->mutex);
    while (rv == APR_SUCCESS && !found) {
        if (copy->next < copy->batch->nelts) {
            *blob = APR_ARRAY_IDX(copy->batch, copy->next++, mdl_blob_t);
            found = (blob->object == NULL) == (copy->of.way == MDL_COPY_INTO_OBJECTS);
        } else {
            rv = copy->over ? APR_EOF : batch_read(copy, db);
        }
    }
    blob->sha256 = found ? apr_pstrdup(p, blob->sha256) : NULL;
    blob->object = found ? apr_pstrdup(p, blob->object) : NULL;
    apr_thread_mutex_unlock(copy->mutex);
    return rv;
}

/* Waits until these bytes may be read. */
static void copy_pace(mdl_storage_copy_t *copy, apr_size_t length)
{
    apr_time_t now = mdl_clock_monotonic();
    apr_interval_time_t wait;

    if (copy->of.rate == 0) {
        return;
    }
    apr_thread_mutex_lock(copy->mutex);
    copy->free_at = copy->free_at < now ? now : copy->free_at;
    wait = copy->free_at - now;
    copy->free_at += (apr_interval_time_t)length * APR_USEC_PER_SEC / copy->of.rate;
    apr_thread_mutex_unlock(copy->mutex);
    apr_sleep(wait);
}

/* --- one blob --- */

static apr_status_t source_failed(copier_t *copier, apr_status_t rv)
{
    copier->faulty = 1;
    copier->fault = APR_STATUS_IS_ENOENT(rv)       ? MDL_BLOB_MISSING
                    : APR_STATUS_IS_INCOMPLETE(rv) ? MDL_BLOB_WRONG_SIZE
                                                   : MDL_BLOB_UNREADABLE;
    return rv;
}

/* Compares the digest of what was read. */
static apr_status_t source_compare(copier_t *copier, const mdl_blob_t *read)
{
    if (strcmp(read->sha256, copier->blob.sha256) == 0) {
        return APR_SUCCESS;
    }
    copier->faulty = 1;
    copier->fault = read->size == copier->blob.size ? MDL_BLOB_CHANGED : MDL_BLOB_WRONG_SIZE;
    return APR_EMISMATCH;
}

/* Whether the blob is still where its row was when it was read: APR_ENOENT if not. */
static apr_status_t blob_stays(mdl_db_t *db, const mdl_blob_t *blob, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_PLACE, blob->sha256));
    const char *object = rv == APR_SUCCESS ? mdl_rows_text(row, 0) : NULL;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return blob->object == NULL
               ? (object == NULL ? APR_SUCCESS : APR_ENOENT)
               : (object != NULL && strcmp(object, blob->object) == 0 ? APR_SUCCESS : APR_ENOENT);
}

static apr_status_t blob_stays_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return blob_stays(db, &((copier_t *)arg)->blob, p);
}

/* --- into an object --- */

static apr_status_t object_begin_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    copier_t *copier = arg;
    apr_status_t rv = blob_stays(db, &copier->blob, p);

    return rv == APR_SUCCESS ? mdl_stray_begin(db, NULL, &copier->key, p) : rv;
}

static apr_status_t object_postpone_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_stray_postpone(db, ((copier_t *)arg)->key, p);
}

static apr_status_t object_move_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    copier_t *copier = arg;
    apr_int64_t moved = 0;
    apr_status_t rv = mdl_db_exec(
        db, &moved, p,
        MDL_Q(BLOB_INTO_OBJECT, .object = copier->key, .sha256 = copier->blob.sha256));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return moved > 0 ? mdl_stray_adopt(db, copier->key, p) : APR_ENOENT;
}

static apr_status_t object_take(copier_t *copier, mdl_object_writer_t *writer, const char *bytes,
                                apr_size_t length)
{
    apr_status_t rv;

    copy_pace(copier->copy, length);
    rv = mdl_object_writer_append(writer, bytes, length);
    if (rv != APR_SUCCESS) {
        copier->why = mdl_object_writer_why(writer);
    } else if (mdl_clock_monotonic() >= copier->postpone_at) {
        copier->postpone_at = mdl_clock_monotonic() + POSTPONE;
        rv = mdl_db_write(copier->db, object_postpone_effect, copier, copier->p);
    }
    return rv;
}

static apr_status_t object_fill(copier_t *copier, mdl_object_writer_t *writer)
{
    char *piece = apr_palloc(copier->p, PIECE);
    apr_size_t length = PIECE;
    apr_file_t *file;
    apr_status_t rv = mdl_storage_file(&file, copier->storage, &copier->blob, 0, copier->p);

    if (rv != APR_SUCCESS) {
        return source_failed(copier, rv);
    }
    while (rv == APR_SUCCESS) {
        length = PIECE;
        rv = apr_file_read(file, piece, &length);
        if (rv == APR_SUCCESS) {
            rv = object_take(copier, writer, piece, length);
        } else if (!APR_STATUS_IS_EOF(rv)) {
            rv = source_failed(copier, rv);
        }
    }
    apr_file_close(file);
    return APR_STATUS_IS_EOF(rv) ? APR_SUCCESS : rv;
}

/* The file is dated anew, so that it is kept a day longer (core/catalog/storage_clean.h). */
static apr_status_t object_finish(copier_t *copier, mdl_object_writer_t *writer)
{
    mdl_blob_t made;
    apr_status_t rv = mdl_object_writer_digest(writer, &made, copier->p);

    if (rv == APR_SUCCESS && (rv = source_compare(copier, &made)) == APR_SUCCESS) {
        rv = mdl_object_writer_complete(writer);
    }
    if (rv != APR_SUCCESS) {
        copier->why = copier->faulty ? NULL : mdl_object_writer_why(writer);
        return rv;
    }
    rv = mdl_storage_touch(copier->storage, &copier->blob, copier->p);
    if (rv != APR_SUCCESS) {
        return source_failed(copier, rv);
    }
    return mdl_db_write(copier->db, object_move_effect, copier, copier->p);
}

static apr_status_t blob_into_object(copier_t *copier)
{
    mdl_object_writing_t writing = {.store = mdl_storage_objects(copier->storage),
                                    .parallel = PARALLEL,
                                    .call = {.patience = PATIENCE}};
    mdl_object_writer_t *writer;
    apr_status_t rv = mdl_db_write(copier->db, object_begin_effect, copier, copier->p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    writing.key = copier->key;
    copier->postpone_at = mdl_clock_monotonic() + POSTPONE;
    if ((rv = mdl_object_writer_open(&writer, &writing, copier->p)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_object_writer_expect(writer, copier->blob.size)) != APR_SUCCESS) {
        copier->why = mdl_object_writer_why(writer);
    } else if ((rv = object_fill(copier, writer)) == APR_SUCCESS) {
        rv = object_finish(copier, writer);
    }
    copier->why = apr_pstrdup(copier->p, copier->why);
    mdl_object_writer_close(writer, copier->p);
    return rv;
}

/* --- into the folder --- */

/* The file is looked for with the row locked, since a clean-up that took it for a copy may have
   removed it. */
static apr_status_t folder_move_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    copier_t *copier = arg;
    const mdl_blob_t file = {.sha256 = copier->blob.sha256};
    apr_int64_t moved = 0;
    apr_status_t rv = mdl_db_exec(
        db, &moved, p,
        MDL_Q(BLOB_INTO_FOLDER, .sha256 = file.sha256, .object = copier->blob.object));

    if (rv != APR_SUCCESS || moved == 0) {
        return rv == APR_SUCCESS ? APR_ENOENT : rv;
    }
    rv = mdl_storage_find(copier->storage, &file, p);
    return rv == APR_SUCCESS ? mdl_stray_leave(db, copier->blob.object, p) : rv;
}

/* Whether the folder has the bytes already, as after a copy into objects.  What is damaged makes
   way. */
static int folder_has_copy(copier_t *copier)
{
    const mdl_blob_t file = {.sha256 = copier->blob.sha256};
    const char *digest;

    if (mdl_storage_find(copier->storage, &file, copier->p) != APR_SUCCESS) {
        return 0;
    }
    if (mdl_storage_digest(copier->storage, &file, &digest, copier->p) == APR_SUCCESS &&
        strcmp(digest, file.sha256) == 0) {
        return 1;
    }
    mdl_storage_set_aside(copier->storage, &file, copier->p);
    return 0;
}

static apr_status_t folder_failed(copier_t *copier, apr_status_t rv)
{
    char text[120];

    copier->why = apr_psprintf(copier->p, "The storage folder can't be written to: %s.",
                               apr_strerror(rv, text, sizeof text));
    return rv;
}

static apr_status_t object_failed(copier_t *copier, const mdl_object_call_t *call, apr_status_t rv)
{
    if (rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED) {
        copier->why = call->why;
        return rv;
    }
    return source_failed(copier, rv);
}

static apr_status_t folder_fill(copier_t *copier, mdl_partial_t *partial)
{
    const mdl_blob_t *blob = &copier->blob;
    mdl_object_call_t call = {.patience = PATIENCE};
    mdl_object_reader_t *reader;
    const char *bytes;
    apr_size_t length = 1;
    apr_status_t rv = mdl_object_reader_open(&reader, mdl_storage_objects(copier->storage),
                                             blob->object, blob->size, 0, blob->size, &call,
                                             copier->p);

    if (rv != APR_SUCCESS) {
        return object_failed(copier, &call, rv);
    }
    while (rv == APR_SUCCESS && length > 0) {
        rv = mdl_object_reader_take(reader, &bytes, &length);
        if (rv != APR_SUCCESS) {
            rv = object_failed(copier, &call, rv);
        } else {
            copy_pace(copier->copy, length);
            rv = mdl_partial_write(partial, bytes, length);
            rv = rv != APR_SUCCESS ? folder_failed(copier, rv) : rv;
        }
    }
    mdl_object_reader_close(reader);
    return rv;
}

static apr_status_t folder_write(copier_t *copier)
{
    mdl_partial_t *partial;
    mdl_blob_t made;
    mdl_partial_commit_t commit = {.blob = &made};
    apr_status_t rv = mdl_partial_open(&partial, copier->storage,
                                       mdl_ulid(MDL_STORAGE_COPY_PREFIX, copier->p), NULL, NULL,
                                       copier->p);

    if (rv != APR_SUCCESS) {
        return folder_failed(copier, rv);
    }
    rv = folder_fill(copier, partial);
    if (rv == APR_SUCCESS && (rv = mdl_partial_digest(partial, &made, copier->p)) != APR_SUCCESS) {
        folder_failed(copier, rv);
    }
    if (rv != APR_SUCCESS || (rv = source_compare(copier, &made)) != APR_SUCCESS) {
        mdl_partial_discard(partial);
        return rv;
    }
    commit.partial = partial;
    mdl_partial_commit_all(&commit, 1);
    return commit.rv == APR_SUCCESS ? APR_SUCCESS : folder_failed(copier, commit.rv);
}

static apr_status_t blob_into_folder(copier_t *copier)
{
    apr_status_t rv = folder_has_copy(copier) ? APR_SUCCESS : folder_write(copier);

    return rv == APR_SUCCESS ? mdl_db_write(copier->db, folder_move_effect, copier, copier->p) : rv;
}

/* --- all --- */

static void copier_note(copier_t *copier, apr_status_t rv)
{
    mdl_storage_copy_t *copy = copier->copy;
    const mdl_copied_t copied = {
        .blob = &copier->blob, .copied = !copier->faulty, .fault = copier->fault, .rv = rv};

    apr_thread_mutex_lock(copy->mutex);
    copy->of.done(copy->of.baton, &copied);
    apr_thread_mutex_unlock(copy->mutex);
}

/* A blob that was removed or got another place meanwhile needs no copy. */
static apr_status_t copier_run(copier_t *copier)
{
    apr_status_t rv = copier->copy->of.way == MDL_COPY_INTO_OBJECTS ? blob_into_object(copier)
                                                                    : blob_into_folder(copier);

    if (copier->faulty) {
        apr_status_t stays = mdl_db_read(copier->db, blob_stays_effect, copier, copier->p);

        if (stays == APR_SUCCESS) {
            copier_note(copier, rv);
        }
        return stays == APR_ENOENT ? APR_SUCCESS : stays;
    }
    if (rv == APR_SUCCESS) {
        copier_note(copier, rv);
    }
    return (rv == APR_ENOENT || rv == APR_EINCOMPLETE) && copier->why == NULL ? APR_SUCCESS : rv;
}

apr_status_t mdl_storage_copy_run(mdl_storage_copy_t *copy, mdl_db_t *db, const char **why,
                                  apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;
    apr_pool_t *each;

    *why = NULL;
    apr_pool_create(&each, p);
    apr_pool_tag(each, "mdl_storage_copy_blob");
    while (rv == APR_SUCCESS && !copy->of.stopped(copy->of.baton)) {
        copier_t copier = {.copy = copy, .storage = copy->of.storage, .db = db, .p = each};

        rv = copy_next(copy, db, &copier.blob, each);
        if (rv == APR_SUCCESS) {
            rv = copier_run(&copier);
            *why = apr_pstrdup(p, copier.why);
        }
        apr_pool_clear(each);
    }
    apr_pool_destroy(each);
    return APR_STATUS_IS_EOF(rv) ? APR_SUCCESS : rv;
}
