#include "core/catalog/upload_object.h"

#include <apr_strings.h>

#include "base/log.h"
#include "core/catalog/stray_object.h"

#define PATIENCE apr_time_from_sec(20) /* with a store that does not answer */

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

MDL_EFFECT(mdl_upload_finish, mdl_upload_finish_t *)

/* --- what the database could not be told --- */

static void object_owe_release(const mdl_upload_write_t *write, const progress_t *progress)
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
    write->owe(object_release, copy, pool);
}

static void object_owe_finish(const mdl_upload_write_t *write, const mdl_upload_finish_t *finish)
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
    write->owe(mdl_upload_finish_effect, copy, pool);
}

/* --- beginning --- */

/* The key of a new object is known to the database before its first byte.  One that was given, but
   not used, serves again. */
static apr_status_t object_choose_key(mdl_db_t *db, mdl_upload_write_t *write, apr_pool_t *p)
{
    const char *written = write->upload->written;
    apr_status_t rv = APR_SUCCESS;

    write->state = NULL;
    write->key = written != NULL ? mdl_object_writer_unused_key(written, p) : NULL;
    if (write->key != NULL) {
        return APR_SUCCESS;
    }
    if (written != NULL && !write->whole) {
        write->key = mdl_object_writer_key(written, p);
        write->state = written;
        return APR_SUCCESS;
    }
    if (written != NULL) {
        rv = mdl_stray_drop(db, mdl_object_writer_key(written, p), p);
    }
    return rv == APR_SUCCESS ? mdl_stray_begin(db, write->id, &write->key, p) : rv;
}

apr_status_t mdl_upload_object_take(mdl_db_t *db, mdl_upload_write_t *write, apr_pool_t *p)
{
    apr_status_t rv = object_choose_key(db, write, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(UPLOAD_TAKE, .writer = write->writer,
                                   .write_id = write->write_id, .written = write->state,
                                   .arrived = write->offset, .id = write->id))
               : rv;
}

void mdl_upload_object_owe(const mdl_upload_write_t *write)
{
    const progress_t progress = {.id = write->id,
                                 .write_id = write->write_id,
                                 .written = write->state,
                                 .arrived = write->offset,
                                 .dropped = write->state == NULL ? write->key : NULL};

    object_owe_release(write, &progress);
}

/* Keeps the first error. */
static apr_status_t object_failed(mdl_upload_write_t *write, apr_status_t rv)
{
    write->failed = rv;
    if (rv != APR_SUCCESS) {
        write->why = write->object != NULL
                         ? apr_pstrdup(write->pool, mdl_object_writer_why(write->object))
                         : "the database does not say how far it has come";
    }
    return rv;
}

apr_status_t mdl_upload_object_open(mdl_upload_write_t *write)
{
    const mdl_object_writing_t writing = {.store = mdl_storage_objects(write->storage),
                                          .key = write->key,
                                          .state = write->state,
                                          .spool = write->spool,
                                          .call = {.patience = PATIENCE}};
    apr_status_t rv = mdl_object_writer_open(&write->object, &writing, write->pool);

    write->is_taken = 1;
    if (rv == APR_SUCCESS) {
        rv = mdl_object_writer_expect(write->object, write->upload->size);
    }
    return object_failed(write, rv);
}

/* --- the bytes --- */

apr_status_t mdl_upload_object_append(mdl_upload_write_t *write, const char *data,
                                      apr_size_t length, int records)
{
    apr_int64_t lasting = mdl_object_writer_lasting(write->object);
    progress_t progress = {.id = write->id, .write_id = write->write_id};
    apr_status_t rv = mdl_object_writer_append(write->object, data, length);

    if (rv != APR_SUCCESS) {
        return object_failed(write, rv);
    }
    progress.arrived = mdl_object_writer_lasting(write->object);
    if (!records || progress.arrived == lasting) {
        return APR_SUCCESS;
    }
    progress.written = mdl_object_writer_state(write->object, write->pool);
    rv = write->run(write->baton, mdl_db_write, object_record, &progress);
    /* What the database has not been told now, it is told with the next part. */
    return mdl_db_unavailable(rv) || rv == APR_SUCCESS ? APR_SUCCESS : object_failed(write, rv);
}

/* --- ending --- */

static void object_leave(mdl_upload_write_t *write)
{
    write->is_taken = 0;
    if (write->object != NULL) {
        mdl_object_writer_close(write->object, write->pool);
        write->object = NULL;
    }
}

apr_status_t mdl_upload_object_finish(mdl_upload_write_t *write)
{
    mdl_upload_finish_t finish = {.id = write->id,
                                  .write_id = write->write_id,
                                  .storage = write->storage,
                                  .has_tails = write->state != NULL};
    apr_status_t rv = mdl_object_writer_digest(write->object, &finish.blob, write->pool);

    if (rv == APR_SUCCESS) {
        rv = mdl_object_writer_complete(write->object);
    }
    if (rv != APR_SUCCESS) {
        return object_failed(write, rv);
    }
    rv = write->run(write->baton, mdl_db_write, mdl_upload_finish_effect, &finish);
    if (rv == APR_EINCOMPLETE) {
        return object_failed(write, MDL_OBJECT_EBROKEN);
    }
    if (rv != APR_SUCCESS) {
        object_owe_finish(write, &finish);
    }
    object_leave(write);
    return rv == APR_SUCCESS && finish.late ? APR_ENOENT : rv;
}

/* The state that a write leaves.  Without one, the next write begins under another key. */
static const char *object_state(const mdl_upload_write_t *write, int keeps)
{
    const char *state;

    if (write->object == NULL || write->failed == MDL_OBJECT_EBROKEN) {
        return NULL;
    }
    if (!keeps && write->state != NULL) {
        return write->state;
    }
    state = mdl_object_writer_state(write->object, write->pool);
    return keeps || (state != NULL && mdl_object_writer_unused_key(state, write->pool) != NULL)
               ? state
               : NULL;
}

apr_status_t mdl_upload_object_close(mdl_upload_write_t *write, int keeps)
{
    progress_t progress = {.id = write->id, .write_id = write->write_id};
    apr_status_t rv;

    if (!write->is_taken) {
        return APR_SUCCESS;
    }
    if (keeps && write->failed == APR_SUCCESS) {
        object_failed(write, mdl_object_writer_save(write->object));
    }
    progress.written = object_state(write, keeps);
    progress.dropped = progress.written == NULL ? write->key : NULL;
    if (progress.written != NULL) {
        progress.arrived = keeps ? mdl_object_writer_lasting(write->object) : write->offset;
    }
    rv = write->run(write->baton, mdl_db_write, object_release, &progress);
    if (rv == APR_SUCCESS && keeps && write->object != NULL) {
        mdl_object_writer_clean(write->object);
    } else if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        object_owe_release(write, &progress);
    }
    if (write->failed != APR_SUCCESS && rv != APR_ENOENT) {
        write->arrived = progress.arrived;
    }
    object_leave(write);
    return write->failed != APR_SUCCESS ? write->failed : rv;
}
