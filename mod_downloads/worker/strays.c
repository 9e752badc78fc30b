#include "worker/strays.h"

#include <stdatomic.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_thread_proc.h>

#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "base/log.h"

#define BATCH    50
#define PATIENCE apr_time_from_sec(5)

struct mdl_strays_t {
    mdl_object_store_t *store;
    mdl_reconnect_t *database;
    apr_pool_t *batch;        /* of the keys that the thread has */
    apr_array_header_t *keys; /* mdl_stray_t */

    int *removed;         /* of keys: whether it was */
    apr_thread_t *thread; /* NULL: none */
    atomic_int ended;
    atomic_int stopping;
};

static int strays_are_stopping(void *baton)
{
    return atomic_load(&((mdl_strays_t *)baton)->stopping);
}

/* An import leaves no more than the object. */
static apr_status_t stray_remove(mdl_strays_t *strays, const mdl_stray_t *stray,
                                 mdl_object_call_t *call, apr_pool_t *p)
{
    const char *cursor = NULL;
    apr_array_header_t *entries;
    apr_status_t rv = APR_SUCCESS;

    if (stray->owner != NULL && strncmp(stray->owner, "job_", 4) == 0) {
        return mdl_object_delete(strays->store, stray->key, call, p);
    }
    do {
        rv = mdl_object_list(strays->store, stray->key, &cursor, &entries, call, p);
        for (int i = 0; rv == APR_SUCCESS && i < entries->nelts; i++) {
            rv = mdl_object_delete(strays->store, APR_ARRAY_IDX(entries, i, mdl_object_entry_t).key,
                                   call, p);
        }
    } while (rv == APR_SUCCESS && cursor != NULL);
    return rv;
}

/* Aborts the uploads of all keys, among all that are not finished, which are few.  Before the
   objects are removed: completing one would make another object. */
static apr_status_t strays_abort_uploads(mdl_strays_t *strays, apr_hash_t *keys,
                                         mdl_object_call_t *call, apr_pool_t *p)
{
    const char *cursor = NULL;
    apr_array_header_t *uploads;
    apr_status_t rv = APR_SUCCESS;

    do {
        rv = mdl_object_uploads_list(strays->store, MDL_STRAY_PREFIX, &cursor, &uploads, call, p);
        for (int i = 0; rv == APR_SUCCESS && i < uploads->nelts; i++) {
            const mdl_object_upload_t *upload = &APR_ARRAY_IDX(uploads, i, mdl_object_upload_t);

            if (apr_hash_get(keys, upload->key, APR_HASH_KEY_STRING) != NULL) {
                rv = mdl_object_parts_abort(strays->store, upload->key, upload->upload, call, p);
            }
        }
    } while (rv == APR_SUCCESS && cursor != NULL);
    return rv;
}

static void strays_log(apr_status_t rv, const char *key, const mdl_object_call_t *call)
{
    if (rv != APR_SUCCESS && rv != MDL_OBJECT_EAWAY && !APR_STATUS_IS_EINTR(rv)) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0606: can't remove the object %s, which nothing refers to; it is tried again: "
                "%s",
                key, call->why);
    }
}

static void strays_remove(mdl_strays_t *strays, apr_pool_t *p)
{
    mdl_object_call_t call = {
        .patience = PATIENCE, .stopped = strays_are_stopping, .baton = strays};
    apr_hash_t *keys = apr_hash_make(p);
    apr_pool_t *each;
    apr_status_t rv;

    for (int i = 0; i < strays->keys->nelts; i++) {
        const mdl_stray_t *stray = &APR_ARRAY_IDX(strays->keys, i, mdl_stray_t);

        apr_hash_set(keys, stray->key, APR_HASH_KEY_STRING, stray);
    }
    rv = strays_abort_uploads(strays, keys, &call, p);
    strays_log(rv, APR_ARRAY_IDX(strays->keys, 0, mdl_stray_t).key, &call);
    apr_pool_create(&each, p);
    apr_pool_tag(each, "mdl_stray");
    for (int i = 0; rv == APR_SUCCESS && i < strays->keys->nelts; i++) {
        const mdl_stray_t *stray = &APR_ARRAY_IDX(strays->keys, i, mdl_stray_t);

        rv = stray_remove(strays, stray, &call, each);
        strays->removed[i] = rv == APR_SUCCESS;
        strays_log(rv, stray->key, &call);
        apr_pool_clear(each);
    }
}

static void *APR_THREAD_FUNC strays_thread(apr_thread_t *thread, void *data)
{
    mdl_strays_t *strays = data;
    apr_pool_t *pool;

    (void)thread;
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_strays");
    strays_remove(strays, pool);
    apr_pool_destroy(pool);
    atomic_store(&strays->ended, 1);
    return NULL;
}

static void strays_join(mdl_strays_t *strays)
{
    apr_status_t ignored;

    if (strays->thread != NULL) {
        apr_thread_join(&ignored, strays->thread);
        strays->thread = NULL;
    }
}

static apr_status_t strays_cleanup(void *data)
{
    mdl_strays_t *strays = data;

    atomic_store(&strays->stopping, 1);
    strays_join(strays);
    return APR_SUCCESS;
}

mdl_strays_t *mdl_strays_create(mdl_storage_t *storage, mdl_reconnect_t *database, apr_pool_t *p)
{
    mdl_strays_t *strays;
    apr_pool_t *pool;

    if (mdl_storage_objects(storage) == NULL) {
        return NULL;
    }
    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_strays");
    strays = apr_pcalloc(pool, sizeof *strays);
    strays->store = mdl_storage_objects(storage);
    strays->database = database;
    apr_pool_create(&strays->batch, pool);
    apr_pool_cleanup_register(pool, strays, strays_cleanup, apr_pool_cleanup_null);
    return strays;
}

MDL_EFFECT(mdl_stray_take, mdl_stray_take_t *)

typedef struct {
    const mdl_strays_t *strays;
    apr_time_t now;
} results_t;

static apr_status_t strays_removed_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const results_t *results = arg;
    const mdl_strays_t *strays = results->strays;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < strays->keys->nelts; i++) {
        mdl_stray_removed_t removed = {.stray = APR_ARRAY_IDX(strays->keys, i, mdl_stray_t),
                                       .now = results->now};

        rv = strays->removed[i] ? mdl_stray_removed(db, p, &removed) : APR_SUCCESS;
    }
    return rv;
}

/* If this fails, the keys are taken again after an hour. */
static void strays_take_results(mdl_strays_t *strays, apr_time_t now, apr_pool_t *p)
{
    results_t results = {strays, now};

    strays_join(strays);
    mdl_reconnect_write(strays->database, strays_removed_effect, &results, p);
}

static void strays_begin(mdl_strays_t *strays, apr_time_t now)
{
    /* One key asks a store that is away. */
    int limit = mdl_object_store_is_away(strays->store) ? 1 : BATCH;
    mdl_stray_take_t take = {.now = now, .limit = limit};

    apr_pool_clear(strays->batch);
    if (mdl_reconnect_write(strays->database, mdl_stray_take_effect, &take, strays->batch) !=
            APR_SUCCESS ||
        take.strays->nelts == 0) {
        return;
    }
    strays->keys = take.strays;
    strays->removed = apr_pcalloc(strays->batch,
                                  (apr_size_t)take.strays->nelts * sizeof *strays->removed);
    atomic_store(&strays->ended, 0);
    if (apr_thread_create(&strays->thread, NULL, strays_thread, strays, strays->batch) !=
        APR_SUCCESS) {
        strays->thread = NULL;
    }
}

int mdl_strays_run(mdl_strays_t *strays, apr_time_t now, apr_pool_t *p)
{
    if (strays->thread != NULL && !atomic_load(&strays->ended)) {
        return 1;
    }
    if (strays->thread != NULL) {
        strays_take_results(strays, now, p);
    }
    strays_begin(strays, now);
    return strays->thread != NULL;
}
