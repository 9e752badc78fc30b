#include "core/catalog/upload_object.h"

#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "core/catalog/stray_object.h"

#define PATIENCE  apr_time_from_sec(20) /* with a store that does not answer */
#define ID_LENGTH 22

/* How far the object has come, for the upload's row. */
typedef struct {
    const char *id;
    const char *write_id;
    const char *written;
    apr_int64_t arrived;
    const char *dropped; /* the key of an object that is to be removed; or NULL */
} progress_t;

static apr_status_t object_record(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const progress_t *progress = arg;
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(db, &changed, p,
                                  MDL_Q(UPLOAD_RECORD, .written = progress->written,
                                        .arrived = progress->arrived, .id = progress->id,
                                        .write_id = progress->write_id));

    return rv == APR_SUCCESS && changed == 0 ? APR_ENOENT : rv;
}

static apr_status_t object_release(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const progress_t *progress = arg;
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(db, &changed, p,
                                  MDL_Q(UPLOAD_RELEASE, .written = progress->written,
                                        .arrived = progress->arrived, .id = progress->id,
                                        .write_id = progress->write_id));

    if (rv == APR_SUCCESS && changed == 0) {
        return APR_ENOENT;
    }
    return rv == APR_SUCCESS && progress->dropped != NULL ? mdl_stray_drop(db, progress->dropped, p)
                                                          : rv;
}

/* APR_ENOENT once another write has begun. */
static apr_status_t object_find_held(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_upload_object_t *object = arg;
    mdl_upload_t *upload;
    apr_status_t rv = mdl_upload_find(db, object->id, &upload, p);

    return rv == APR_SUCCESS && strcmp(upload->write_id, object->write_id) != 0 ? APR_ENOENT : rv;
}

MDL_EFFECT(mdl_upload_finish, mdl_upload_finish_t *)

/* --- what the database could not be told --- */

static void object_owe_release(const mdl_upload_object_t *object, const progress_t *progress)
{
    progress_t *copy;
    apr_pool_t *pool;

    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_upload_release");
    copy = apr_palloc(pool, sizeof *copy);
    *copy = (progress_t){.id = apr_pstrdup(pool, progress->id),
                         .write_id = apr_pstrdup(pool, progress->write_id),
                         .written = apr_pstrdup(pool, progress->written),
                         .arrived = progress->arrived,
                         .dropped = apr_pstrdup(pool, progress->dropped)};
    object->owe(object_release, copy, pool);
}

static void object_owe_finish(const mdl_upload_object_t *object, const mdl_upload_finish_t *finish)
{
    mdl_upload_finish_t *copy;
    apr_pool_t *pool;

    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_upload_finish");
    copy = apr_pmemdup(pool, finish, sizeof *finish);
    copy->id = apr_pstrdup(pool, finish->id);
    copy->write_id = apr_pstrdup(pool, finish->write_id);
    copy->blob.sha256 = apr_pstrdup(pool, finish->blob.sha256);
    copy->blob.object = apr_pstrdup(pool, finish->blob.object);
    object->owe(mdl_upload_finish_effect, copy, pool);
}

/* --- beginning --- */

/* The key of a new object is known to the database before its first byte.  One that was given, but
   not used, serves again. */
static apr_status_t object_choose_key(mdl_db_t *db, mdl_upload_object_t *object,
                                      const char *written, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    object->state = NULL;
    object->key = written != NULL ? mdl_object_writer_unused_key(written, p) : NULL;
    if (object->key != NULL) {
        return APR_SUCCESS;
    }
    if (written != NULL && object->offset > 0) {
        object->key = mdl_object_writer_key(written, p);
        object->state = written;
        return APR_SUCCESS;
    }
    if (written != NULL) {
        rv = mdl_stray_drop(db, mdl_object_writer_key(written, p), p);
    }
    return rv == APR_SUCCESS ? mdl_stray_begin(db, object->id, &object->key, p) : rv;
}

void mdl_upload_object_init(mdl_upload_object_t *object, apr_pool_t *p)
{
    object->pool = p;
    object->write_id = mdl_random_base62(ID_LENGTH, p);
}

/* If the answer to COMMIT was lost, the repeated transaction finds its own write. */
int mdl_upload_object_is_locked(const mdl_upload_object_t *object, const mdl_upload_t *upload)
{
    return upload->is_written && strcmp(upload->write_id, object->write_id) != 0;
}

apr_status_t mdl_upload_object_take(mdl_db_t *db, mdl_upload_object_t *object,
                                    const mdl_upload_t *upload, apr_int64_t offset, apr_pool_t *p)
{
    apr_status_t rv;

    object->offset = offset;
    rv = object_choose_key(db, object, upload->written, p);
    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(UPLOAD_TAKE, .writer = object->writer,
                                   .write_id = object->write_id, .written = object->state,
                                   .arrived = object->offset, .id = object->id))
               : rv;
}

void mdl_upload_object_owe(const mdl_upload_object_t *object)
{
    const progress_t progress = {.id = object->id,
                                 .write_id = object->write_id,
                                 .written = object->state,
                                 .arrived = object->offset,
                                 .dropped = object->state == NULL ? object->key : NULL};

    object_owe_release(object, &progress);
}

/* Keeps the first error. */
static apr_status_t object_failed(mdl_upload_object_t *object, apr_status_t rv)
{
    object->failed = rv;
    if (rv != APR_SUCCESS) {
        object->why = object->bytes != NULL
                          ? apr_pstrdup(object->pool, mdl_object_writer_why(object->bytes))
                          : "the database does not say how far it has come";
    }
    return rv;
}

apr_status_t mdl_upload_object_open(mdl_upload_object_t *object, apr_int64_t size)
{
    const mdl_object_writing_t writing = {.store = mdl_storage_objects(object->storage),
                                          .key = object->key,
                                          .state = object->state,
                                          .spool = object->spool,
                                          .call = {.patience = PATIENCE}};
    apr_status_t rv = mdl_object_writer_open(&object->bytes, &writing, object->pool);

    object->is_taken = 1;
    if (rv == APR_SUCCESS) {
        rv = mdl_object_writer_expect(object->bytes, size);
    }
    return object_failed(object, rv);
}

/* --- the bytes --- */

apr_status_t mdl_upload_object_append(mdl_upload_object_t *object, const char *data,
                                      apr_size_t length, int records)
{
    apr_int64_t lasting = mdl_object_writer_lasting(object->bytes);
    progress_t progress = {.id = object->id, .write_id = object->write_id};
    apr_status_t rv = mdl_object_writer_append(object->bytes, data, length);

    if (rv != APR_SUCCESS) {
        return object_failed(object, rv);
    }
    progress.arrived = mdl_object_writer_lasting(object->bytes);
    if (!records || progress.arrived == lasting) {
        return APR_SUCCESS;
    }
    progress.written = mdl_object_writer_state(object->bytes, object->pool);
    rv = object->run(object->baton, mdl_db_write, object_record, &progress);
    /* What the database has not been told now, it is told with the next part. */
    return mdl_db_unavailable(rv) || rv == APR_SUCCESS ? APR_SUCCESS : object_failed(object, rv);
}

/* --- ending --- */

static void object_leave(mdl_upload_object_t *object)
{
    object->is_taken = 0;
    if (object->bytes != NULL) {
        mdl_object_writer_close(object->bytes, object->pool);
        object->bytes = NULL;
    }
}

apr_status_t mdl_upload_object_finish(mdl_upload_object_t *object)
{
    mdl_upload_finish_t finish = {.id = object->id,
                                  .write_id = object->write_id,
                                  .storage = object->storage,
                                  .has_tails = object->state != NULL};
    apr_status_t rv = object->run(object->baton, mdl_db_read, object_find_held, object);

    /* A write that has taken over goes on with the same parts, which a store joins once. */
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? object_failed(object, rv) : rv;
    }
    rv = mdl_object_writer_digest(object->bytes, &finish.blob, object->pool);
    if (rv == APR_SUCCESS) {
        rv = mdl_object_writer_complete(object->bytes);
    }
    if (rv != APR_SUCCESS) {
        return object_failed(object, rv);
    }
    rv = object->run(object->baton, mdl_db_settle, mdl_upload_finish_effect, &finish);
    if (rv == APR_EINCOMPLETE) {
        return object_failed(object, MDL_OBJECT_EBROKEN);
    }
    if (rv != APR_SUCCESS) {
        object_owe_finish(object, &finish);
    }
    object_leave(object);
    return rv == APR_SUCCESS && finish.late ? APR_ENOENT : rv;
}

/* The state that a write leaves.  Without one, the next write begins under another key. */
static const char *object_state(const mdl_upload_object_t *object, int keeps)
{
    const char *state;

    if (object->bytes == NULL || object->failed == MDL_OBJECT_EBROKEN) {
        return NULL;
    }
    if (!keeps && object->state != NULL) {
        return object->state;
    }
    state = mdl_object_writer_state(object->bytes, object->pool);
    return keeps || (state != NULL && mdl_object_writer_unused_key(state, object->pool) != NULL)
               ? state
               : NULL;
}

apr_status_t mdl_upload_object_close(mdl_upload_object_t *object, int keeps)
{
    progress_t progress = {.id = object->id, .write_id = object->write_id};
    apr_status_t rv;

    if (!object->is_taken) {
        return APR_SUCCESS;
    }
    if (keeps && object->failed == APR_SUCCESS) {
        object_failed(object, mdl_object_writer_save(object->bytes));
    }
    progress.written = object_state(object, keeps);
    progress.dropped = progress.written == NULL ? object->key : NULL;
    if (progress.written != NULL) {
        progress.arrived = keeps ? mdl_object_writer_lasting(object->bytes) : object->offset;
    }
    rv = object->run(object->baton, mdl_db_settle, object_release, &progress);
    if (rv == APR_SUCCESS && keeps && object->bytes != NULL) {
        mdl_object_writer_clean(object->bytes);
    } else if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        object_owe_release(object, &progress);
    }
    if (object->failed != APR_SUCCESS && rv != APR_ENOENT) {
        object->arrived = progress.arrived;
    }
    object_leave(object);
    return object->failed != APR_SUCCESS ? object->failed : rv;
}
