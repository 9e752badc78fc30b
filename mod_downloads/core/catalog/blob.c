#include "core/catalog/blob.h"

#include <string.h>

#include <apr_time.h>

#include "base/text/json.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/stray_object.h"

apr_status_t mdl_blob_store(mdl_db_t *db, const mdl_blob_t *blob, mdl_rows_t **held, apr_pool_t *p)
{
    return mdl_db_select(db, held, p,
                         MDL_Q(BLOB_STORE, .sha256 = blob->sha256, .size = blob->size,
                               .crc32 = (apr_int64_t)blob->crc32, .object = blob->object,
                               .now = apr_time_now()));
}

static apr_status_t blob_move(mdl_db_t *db, const mdl_blob_t *blob, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p,
                                  MDL_Q(BLOB_MOVE, .object = blob->object, .sha256 = blob->sha256));

    return rv == APR_SUCCESS ? mdl_stray_adopt(db, blob->object, p) : rv;
}

apr_status_t mdl_blob_check(mdl_db_t *db, mdl_rows_t *held, const mdl_storage_t *storage,
                            const mdl_blob_t *blob, apr_pool_t *p)
{
    apr_status_t rv = mdl_rows_one(held);
    const char *object = rv == APR_SUCCESS ? mdl_rows_text(held, 0) : NULL;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (object != NULL) {
        return blob->object != NULL && strcmp(object, blob->object) == 0
                   ? mdl_stray_adopt(db, object, p)
                   : APR_SUCCESS;
    }
    rv = mdl_storage_find(storage, &(mdl_blob_t){.sha256 = blob->sha256}, p);
    if (APR_STATUS_IS_ENOENT(rv)) {
        return blob->object != NULL ? blob_move(db, blob, p) : APR_EINCOMPLETE;
    }
    return rv;
}

apr_status_t mdl_blob_release(mdl_db_t *db, const char *sha256, apr_pool_t *p)
{
    return sha256 == NULL
               ? APR_SUCCESS
               : mdl_db_exec(db, NULL, p,
                             MDL_Q(BLOB_RELEASE, .now = apr_time_now(), .sha256 = sha256));
}

apr_status_t mdl_blob_leave(mdl_db_t *db, const mdl_blob_t *blob, apr_pool_t *p)
{
    mdl_rows_t *held;
    int is_file = blob != NULL && blob->object == NULL;
    apr_status_t rv = is_file ? mdl_blob_store(db, blob, &held, p) : APR_SUCCESS;

    return rv == APR_SUCCESS && is_file ? mdl_blob_release(db, blob->sha256, p) : rv;
}

apr_status_t mdl_blob_released(mdl_db_t *db, apr_pool_t *p, mdl_blob_released_t *find)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(BLOB_RELEASED, .before = find->before, .limit = find->limit));

    find->released = apr_array_make(p, find->limit, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(find->released, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}

/* Only deleted assets and finished uploads still refer to the blob. */
static apr_status_t delete_row(mdl_db_t *db, const char *sha256, apr_pool_t *p)
{
    static const mdl_statement_t queries[] = {MDL_Q_BLOB_LEAVE_ASSETS, MDL_Q_BLOB_LEAVE_UPLOADS,
                                              MDL_Q_BLOB_DELETE};
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t i = 0; i < sizeof queries / sizeof *queries && rv == APR_SUCCESS; i++) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q_AS(queries[i], BLOB_LEAVE_ASSETS, sha256));
    }
    return rv;
}

/* Checked after the blob is locked: whoever holds the storage later has copied a database without a
   reference to the blob, or finds it stored again. */
static apr_status_t blob_check_not_held(mdl_db_t *db, apr_pool_t *p)
{
    mdl_storage_hold_t hold;
    apr_status_t rv = mdl_storage_held(db, &hold, p);

    return rv == APR_ENOENT ? APR_SUCCESS : rv == APR_SUCCESS ? APR_EAGAIN : rv;
}

apr_status_t mdl_blob_sweep(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep)
{
    const char *object;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_LOCK, sweep->sha256));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    object = mdl_rows_text(row, 0);
    rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_USED, sweep->sha256));
    if (rv == APR_SUCCESS) {
        return mdl_db_exec(db, NULL, p, MDL_Q(BLOB_KEEP, sweep->sha256));
    }
    if (rv != APR_ENOENT || (rv = blob_check_not_held(db, p)) != APR_SUCCESS ||
        (rv = delete_row(db, sweep->sha256, p)) != APR_SUCCESS) {
        return rv;
    }
    return object != NULL
               ? mdl_stray_leave(db, object, p)
               : mdl_storage_remove(sweep->storage, &(mdl_blob_t){.sha256 = sweep->sha256}, p);
}

static apr_array_header_t *ids_of(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(const char *));

    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(ids, const char *) = mdl_rows_text(rows, 0);
    }
    return ids;
}

apr_status_t mdl_blob_orphans(mdl_db_t *db, apr_pool_t *p, mdl_blob_orphans_t *find)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(BLOBS_WITHOUT_ROW, mdl_json_texts(find->ids, p)));

    find->orphans = rv == APR_SUCCESS ? ids_of(rows, p) : NULL;
    return rv;
}

/* Inserts a row, never committed, that makes others who store the same bytes wait. */
apr_status_t mdl_blob_sweep_orphan(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep)
{
    apr_int64_t inserted = 0;
    apr_status_t rv = mdl_db_exec(
        db, &inserted, p,
        MDL_Q(BLOB_INSERT, .sha256 = sweep->sha256, .size = 0, .crc32 = 0, .now = apr_time_now()));

    if (rv != APR_SUCCESS || inserted == 0 || (rv = blob_check_not_held(db, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(BLOB_DELETE, sweep->sha256));
    return rv == APR_SUCCESS
               ? mdl_storage_remove(sweep->storage, &(mdl_blob_t){.sha256 = sweep->sha256}, p)
               : rv;
}

apr_status_t mdl_blob_copies(mdl_db_t *db, apr_pool_t *p, mdl_blob_copies_t *find)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(BLOBS_IN_OBJECTS, mdl_json_texts(find->ids, p)));

    find->copies = rv == APR_SUCCESS ? ids_of(rows, p) : NULL;
    return rv;
}

apr_status_t mdl_blob_sweep_copy(mdl_db_t *db, apr_pool_t *p, const mdl_blob_sweep_t *sweep)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_LOCK, sweep->sha256));

    if (rv == APR_SUCCESS &&
        (MDL_NULL(row, blob_lock, object) || !MDL_NULL(row, blob_lock, missing_at))) {
        return APR_ENOENT;
    }
    if (rv == APR_SUCCESS) {
        rv = blob_check_not_held(db, p);
    }
    return rv == APR_SUCCESS
               ? mdl_storage_remove(sweep->storage, &(mdl_blob_t){.sha256 = sweep->sha256}, p)
               : rv;
}

apr_status_t mdl_blob_give_up(mdl_db_t *db, apr_pool_t *p, const mdl_blob_t *blob)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p, MDL_Q(BLOB_MISSED, .now = apr_time_now(), .object = blob->object));

    return rv == APR_SUCCESS ? mdl_stray_leave(db, blob->object, p) : rv;
}
