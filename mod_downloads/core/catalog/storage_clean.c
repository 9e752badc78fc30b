#include "core/catalog/storage_clean.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "base/text/json.h"
#include "base/ulid.h"
#include "core/catalog/blob.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/stray_object.h"

#define DAY        apr_time_from_sec(86400)
#define FILE_REST  DAY
#define STORE_REST (7 * DAY)
#define FILE_BATCH 500
#define PATIENCE   apr_time_from_sec(60) /* with a store that does not answer */

/* --- the folder --- */

MDL_EFFECT(mdl_blob_copies, mdl_blob_copies_t *)
MDL_EFFECT(mdl_blob_sweep_copy, const mdl_blob_sweep_t *)

static apr_status_t file_clean(mdl_db_t *db, mdl_storage_clean_t *clean, const char *sha256,
                               apr_pool_t *p)
{
    const mdl_blob_t blob = {.sha256 = sha256};
    mdl_blob_sweep_t sweep = {.storage = clean->storage, .sha256 = sha256};
    const char *place = mdl_storage_place(clean->storage, &blob, p);
    apr_time_t written_at = 0;
    apr_int64_t size;
    char text[120];
    apr_status_t rv = mdl_storage_size(clean->storage, &blob, &size, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_storage_written_at(clean->storage, &blob, &written_at, p);
    }
    if (rv == APR_SUCCESS && written_at > apr_time_now() - FILE_REST) {
        clean->kept++;
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_write(db, mdl_blob_sweep_copy_effect, &sweep, p);
    }
    if (rv == APR_SUCCESS) {
        clean->removed(clean->baton, place, size);
    } else if (rv < APR_OS_START_ERROR && !APR_STATUS_IS_EAGAIN(rv) && !APR_STATUS_IS_ENOENT(rv)) {
        clean->why = apr_psprintf(p, "%s can't be removed: %s.", place,
                                  apr_strerror(rv, text, sizeof text));
    }
    return APR_STATUS_IS_ENOENT(rv) ? APR_SUCCESS : rv;
}

/* Up to FILE_BATCH of ids, from index at. */
static apr_status_t files_clean(mdl_db_t *db, mdl_storage_clean_t *clean,
                                const apr_array_header_t *ids, int at, apr_pool_t *p)
{
    apr_array_header_t batch = *ids;
    mdl_blob_copies_t find = {.ids = &batch};
    apr_status_t rv;

    batch.elts += (apr_size_t)at * sizeof(const char *);
    batch.nelts = ids->nelts - at < FILE_BATCH ? ids->nelts - at : FILE_BATCH;
    rv = mdl_db_read(db, mdl_blob_copies_effect, &find, p);
    for (int i = 0; rv == APR_SUCCESS && i < find.copies->nelts; i++) {
        rv = file_clean(db, clean, APR_ARRAY_IDX(find.copies, i, const char *), p);
    }
    return rv;
}

/* Clears the pool of a step, but not the sentence that it may have left. */
static void step_clear(mdl_storage_clean_t *clean, apr_pool_t *step, apr_pool_t *p)
{
    clean->why = apr_pstrdup(p, clean->why);
    apr_pool_clear(step);
}

apr_status_t mdl_storage_clean_folder(mdl_db_t *db, mdl_storage_clean_t *clean, apr_pool_t *p)
{
    apr_array_header_t *ids;
    apr_pool_t *shard, *step;
    apr_status_t rv = APR_SUCCESS;
    char text[120];

    apr_pool_create(&shard, p);
    apr_pool_create(&step, p);
    for (int i = 0; rv == APR_SUCCESS && i < MDL_STORAGE_SHARDS; i++) {
        rv = mdl_storage_list(clean->storage, i, &ids, shard);
        if (rv != APR_SUCCESS) {
            clean->why = apr_psprintf(p, "The storage folder can't be read: %s.",
                                      apr_strerror(rv, text, sizeof text));
        }
        for (int at = 0; rv == APR_SUCCESS && at < ids->nelts; at += FILE_BATCH) {
            rv = files_clean(db, clean, ids, at, step);
            step_clear(clean, step, p);
        }
        apr_pool_clear(shard);
    }
    return rv;
}

/* --- the store --- */

static apr_status_t storage_held_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_storage_held(db, arg, p);
}

static apr_status_t check_not_held(mdl_db_t *db, apr_pool_t *p)
{
    mdl_storage_hold_t hold;
    apr_status_t rv = mdl_db_read(db, storage_held_effect, &hold, p);

    return rv == APR_ENOENT ? APR_SUCCESS : rv == APR_SUCCESS ? APR_EAGAIN : rv;
}

/* An object, or an unfinished upload of one. */
typedef struct {
    const char *name;
    const char *upload; /* NULL: an object */
    apr_int64_t size;   /* -1 for an upload */
    apr_interval_time_t age;
} found_t;

typedef apr_status_t list_fn(mdl_object_store_t *store, const char **cursor,
                             apr_array_header_t *found, mdl_object_call_t *call, apr_pool_t *p);

static apr_status_t objects_list(mdl_object_store_t *store, const char **cursor,
                                 apr_array_header_t *found, mdl_object_call_t *call, apr_pool_t *p)
{
    apr_array_header_t *entries;
    apr_status_t rv = mdl_object_list(store, MDL_STRAY_PREFIX, cursor, &entries, call, p);

    for (int i = 0; rv == APR_SUCCESS && i < entries->nelts; i++) {
        const mdl_object_entry_t *entry = &APR_ARRAY_IDX(entries, i, mdl_object_entry_t);

        APR_ARRAY_PUSH(found, found_t) = (found_t){
            .name = entry->key, .size = entry->size, .age = entry->age};
    }
    return rv;
}

static apr_status_t uploads_list(mdl_object_store_t *store, const char **cursor,
                                 apr_array_header_t *found, mdl_object_call_t *call, apr_pool_t *p)
{
    apr_array_header_t *uploads;
    apr_status_t rv = mdl_object_uploads_list(store, MDL_STRAY_PREFIX, cursor, &uploads, call, p);

    for (int i = 0; rv == APR_SUCCESS && i < uploads->nelts; i++) {
        const mdl_object_upload_t *upload = &APR_ARRAY_IDX(uploads, i, mdl_object_upload_t);

        APR_ARRAY_PUSH(found, found_t) = (found_t){
            .name = upload->key, .upload = upload->upload, .size = -1, .age = upload->age};
    }
    return rv;
}

MDL_EFFECT(mdl_stray_unknown, mdl_stray_unknown_t *)

/* The key to which an object or a piece of one belongs; NULL for what is none of ours. */
static const char *key_of(const char *name, apr_pool_t *p)
{
    const char *key = apr_pstrndup(p, name, sizeof MDL_STRAY_PREFIX - 1 + MDL_ULID_LENGTH);

    return mdl_ulid_valid(MDL_STRAY_PREFIX, key) ? key : NULL;
}

/* The keys of what was found that nobody knows, as a set. */
static apr_status_t keys_unknown(mdl_db_t *db, const apr_array_header_t *found, apr_hash_t **set,
                                 apr_pool_t *p)
{
    apr_array_header_t *keys = apr_array_make(p, found->nelts, sizeof(const char *));
    mdl_stray_unknown_t find = {.keys = keys};
    apr_status_t rv;

    for (int i = 0; i < found->nelts; i++) {
        const char *key = key_of(APR_ARRAY_IDX(found, i, found_t).name, p);

        if (key != NULL) {
            APR_ARRAY_PUSH(keys, const char *) = key;
        }
    }
    rv = mdl_db_read(db, mdl_stray_unknown_effect, &find, p);
    *set = apr_hash_make(p);
    for (int i = 0; rv == APR_SUCCESS && i < find.unknown->nelts; i++) {
        apr_hash_set(*set, APR_ARRAY_IDX(find.unknown, i, const char *), APR_HASH_KEY_STRING, "");
    }
    return rv;
}

static apr_status_t found_clean(mdl_storage_clean_t *clean, const found_t *found,
                                mdl_object_call_t *call, apr_pool_t *p)
{
    mdl_object_store_t *store = mdl_storage_objects(clean->storage);
    apr_status_t rv;

    if (found->age < STORE_REST) {
        clean->kept++;
        return APR_SUCCESS;
    }
    rv = found->upload == NULL ? mdl_object_delete(store, found->name, call, p)
                               : mdl_object_parts_abort(store, found->name, found->upload, call, p);
    if (rv == APR_SUCCESS) {
        clean->removed(clean->baton,
                       apr_pstrcat(p, found->upload == NULL ? "object " : "unfinished upload of ",
                                   found->name, NULL),
                       found->size);
    }
    return rv;
}

/* Cleans what a page of a list has. */
static apr_status_t page_clean(mdl_db_t *db, mdl_storage_clean_t *clean, list_fn *list,
                               const char **cursor, apr_pool_t *p)
{
    mdl_object_call_t call = {.patience = PATIENCE};
    apr_array_header_t *found = apr_array_make(p, 1000, sizeof(found_t));
    apr_hash_t *unknown;
    apr_status_t rv = list(mdl_storage_objects(clean->storage), cursor, found, &call, p);

    if (rv != APR_SUCCESS) {
        clean->why = call.why;
        return rv;
    }
    if ((rv = check_not_held(db, p)) != APR_SUCCESS ||
        (rv = keys_unknown(db, found, &unknown, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; rv == APR_SUCCESS && i < found->nelts; i++) {
        const found_t *each = &APR_ARRAY_IDX(found, i, found_t);
        const char *key = key_of(each->name, p);

        if (key != NULL && apr_hash_get(unknown, key, APR_HASH_KEY_STRING) != NULL) {
            rv = found_clean(clean, each, &call, p);
            clean->why = rv == APR_SUCCESS ? NULL : call.why;
        }
    }
    return rv;
}

apr_status_t mdl_storage_clean_objects(mdl_db_t *db, mdl_storage_clean_t *clean, apr_pool_t *p)
{
    static list_fn *const lists[] = {uploads_list, objects_list};
    apr_status_t rv = APR_SUCCESS;
    apr_pool_t *page;

    apr_pool_create(&page, p);
    for (apr_size_t i = 0; rv == APR_SUCCESS && i < sizeof lists / sizeof *lists; i++) {
        const char *cursor = NULL;

        do {
            rv = page_clean(db, clean, lists[i], &cursor, page);
            cursor = apr_pstrdup(p, cursor);
            step_clear(clean, page, p);
        } while (rv == APR_SUCCESS && cursor != NULL);
    }
    return rv;
}
