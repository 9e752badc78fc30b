#include "worker/sweep.h"

#include <string.h>

#include "base/log.h"
#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/upload.h"
#include "worker/turn.h"

#define UPLOAD_BATCH 100
#define FILE_BATCH   500
#define BLOB_BATCH   500
#define ORPHAN_REST  (7 * MDL_DAY) /* for noticing a restored, older database */

struct mdl_sweep_t {
    mdl_storage_t *storage;
    mdl_reconnect_t *database;
    apr_time_t hold_told; /* when a hold may be reported again, by mdl_clock_monotonic */
    int shard;            /* of storage, to be scanned next */
};

mdl_sweep_t *mdl_sweep_create(mdl_storage_t *storage, mdl_reconnect_t *database, apr_pool_t *p)
{
    mdl_sweep_t *sweep = apr_pcalloc(p, sizeof *sweep);

    sweep->storage = storage;
    sweep->database = database;
    return sweep;
}

/* Removes what no row knows.  A copy that downloadsctl makes has no row, but a lock. */
static apr_status_t remove_partial(mdl_storage_t *storage, const char *id, apr_pool_t *p)
{
    mdl_partial_t *partial;
    apr_status_t rv;

    if (strncmp(id, MDL_STORAGE_COPY_PREFIX, strlen(MDL_STORAGE_COPY_PREFIX)) != 0) {
        return mdl_partial_remove(storage, id, p);
    }
    rv = mdl_partial_append(&partial, storage, id, p);
    if (rv == APR_SUCCESS) {
        mdl_partial_discard(partial);
    }
    return APR_STATUS_IS_EAGAIN(rv) ? APR_SUCCESS : rv;
}

MDL_EFFECT(mdl_upload_over, mdl_upload_over_t *)

static void remove_over(mdl_sweep_t *sweep, const apr_array_header_t *ids, apr_pool_t *p)
{
    mdl_upload_over_t over = {.ids = ids};

    if (mdl_reconnect_read(sweep->database, mdl_upload_over_effect, &over, p) != APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < over.over->nelts; i++) {
        const char *id = APR_ARRAY_IDX(over.over, i, const char *);
        apr_status_t rv = remove_partial(sweep->storage, id, p);

        if (rv != APR_SUCCESS) {
            mdl_log(MDL_LOG_ERR, rv, "MDL0305: can't remove the partial file %s", id);
        }
    }
}

MDL_EFFECT(mdl_upload_expire, mdl_upload_expire_t *)

/* Up to FILE_BATCH of ids, from index at. */
static apr_array_header_t batch_of(const apr_array_header_t *ids, int at)
{
    apr_array_header_t batch = *ids;

    batch.elts += (apr_size_t)at * sizeof(const char *);
    batch.nelts = ids->nelts - at < FILE_BATCH ? ids->nelts - at : FILE_BATCH;
    return batch;
}

apr_interval_time_t mdl_sweep_uploads(mdl_sweep_t *sweep, apr_pool_t *p)
{
    mdl_upload_expire_t expire = {.limit = UPLOAD_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    apr_array_header_t *ids;
    apr_status_t rv;

    do {
        rv = mdl_reconnect_write(sweep->database, mdl_upload_expire_effect, &expire, p);
    } while (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH && !mdl_turn_is_over(began));
    if (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH) {
        return MDL_SOON;
    }
    if (rv != APR_SUCCESS || mdl_partial_list(sweep->storage, &ids, p) != APR_SUCCESS) {
        return MDL_MINUTE;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = batch_of(ids, at);

        remove_over(sweep, &batch, p);
    }
    return MDL_MINUTE;
}

MDL_EFFECT(mdl_blob_released, mdl_blob_released_t *)
MDL_EFFECT(mdl_blob_sweep, const mdl_blob_sweep_t *)

static apr_status_t storage_held_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_storage_held(db, arg, p);
}

/* Reports an old hold: while it is forgotten, the storage grows. */
static void report_hold(mdl_sweep_t *sweep, apr_pool_t *p)
{
    mdl_storage_hold_t hold;

    if (sweep->hold_told > mdl_clock_monotonic() ||
        mdl_reconnect_read(sweep->database, storage_held_effect, &hold, p) != APR_SUCCESS ||
        hold.since > apr_time_now() - MDL_DAY) {
        return;
    }
    sweep->hold_told = mdl_clock_monotonic() + MDL_DAY;
    mdl_log(MDL_LOG_WARNING, 0,
            "MDL0357: no file is removed from DownloadsStorage: %s has held it since %s; if no "
            "copy is being made: downloadsctl storage release %s",
            hold.user, mdl_clock_rfc3339(hold.since, p), hold.id);
}

MDL_EFFECT(mdl_asset_to_forget, mdl_asset_to_forget_t *)
MDL_EFFECT(mdl_asset_forget, mdl_asset_forget_t *)

/* Former versions that are no longer kept release their blobs. */
static void forget_formers(mdl_sweep_t *sweep, apr_time_t now, apr_pool_t *p)
{
    mdl_asset_to_forget_t find = {.now = now, .limit = BLOB_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    apr_status_t rv = mdl_reconnect_read(sweep->database, mdl_asset_to_forget_effect, &find, p);

    for (int i = 0; rv == APR_SUCCESS && i < find.found->nelts && !mdl_turn_is_over(began); i++) {
        mdl_asset_forget_t forget = {.id = APR_ARRAY_IDX(find.found, i, apr_int64_t), .now = now};

        rv = mdl_reconnect_write(sweep->database, mdl_asset_forget_effect, &forget, p);
        if (rv != APR_SUCCESS && !mdl_db_unavailable(rv)) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0358: can't forget the former version of the asset %" APR_INT64_T_FMT
                    "; it is tried again",
                    forget.id);
            rv = APR_SUCCESS; /* others of the batch need not wait for it */
        }
    }
}

apr_interval_time_t mdl_sweep_blobs(mdl_sweep_t *sweep, apr_pool_t *p)
{
    mdl_blob_released_t find = {.limit = BLOB_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    int failed = 0;

    if (mdl_turn_now(sweep->database, &find.before, p) != APR_SUCCESS) {
        return MDL_MINUTE;
    }
    forget_formers(sweep, find.before, p);
    find.before -= MDL_SWEEP_REST;
    if (mdl_reconnect_read(sweep->database, mdl_blob_released_effect, &find, p) != APR_SUCCESS) {
        return MDL_MINUTE;
    }
    for (int i = 0; i < find.released->nelts; i++) {
        mdl_blob_sweep_t removal = {.storage = sweep->storage,
                                    .sha256 = APR_ARRAY_IDX(find.released, i, const char *)};
        apr_status_t rv = mdl_reconnect_write(sweep->database, mdl_blob_sweep_effect, &removal, p);

        if (APR_STATUS_IS_EAGAIN(rv)) {
            report_hold(sweep, p);
            return MDL_MINUTE;
        }
        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0306: can't remove the file %s, which nothing refers to, from "
                    "DownloadsStorage; it is tried again",
                    removal.sha256);
            failed = 1;
        }
        if (mdl_turn_is_over(began)) {
            return failed ? MDL_MINUTE : MDL_SOON;
        }
    }
    return MDL_MINUTE;
}

MDL_EFFECT(mdl_blob_orphans, mdl_blob_orphans_t *)
MDL_EFFECT(mdl_blob_sweep_orphan, const mdl_blob_sweep_t *)

static void remove_orphan(mdl_sweep_t *sweep, const char *sha256, apr_pool_t *p)
{
    mdl_blob_sweep_t removal = {.storage = sweep->storage, .sha256 = sha256};
    apr_time_t written_at = 0;
    apr_status_t rv = mdl_storage_written_at(sweep->storage, &(mdl_blob_t){.sha256 = sha256},
                                             &written_at, p);

    if (rv != APR_SUCCESS || written_at > apr_time_now() - ORPHAN_REST) {
        return;
    }
    rv = mdl_reconnect_write(sweep->database, mdl_blob_sweep_orphan_effect, &removal, p);
    if (rv == APR_SUCCESS) {
        mdl_log(MDL_LOG_NOTICE, 0,
                "MDL0352: removed the file %s from DownloadsStorage, of which the database knows "
                "nothing",
                sha256);
    } else if (!APR_STATUS_IS_EAGAIN(rv)) {
        mdl_log(MDL_LOG_ERR, rv,
                "MDL0306: can't remove the file %s, which nothing refers to, from "
                "DownloadsStorage; it is tried again",
                sha256);
    }
}

apr_interval_time_t mdl_sweep_orphans(mdl_sweep_t *sweep, apr_pool_t *p)
{
    mdl_blob_orphans_t find;
    apr_array_header_t *ids;

    mdl_storage_clean(sweep->storage, apr_time_now() - MDL_DAY, p);
    if (mdl_storage_list(sweep->storage, sweep->shard, &ids, p) != APR_SUCCESS) {
        return MDL_HOUR;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = batch_of(ids, at);

        find.ids = &batch;
        if (mdl_reconnect_read(sweep->database, mdl_blob_orphans_effect, &find, p) != APR_SUCCESS) {
            return MDL_MINUTE;
        }
        for (int i = 0; i < find.orphans->nelts; i++) {
            remove_orphan(sweep, APR_ARRAY_IDX(find.orphans, i, const char *), p);
        }
    }
    sweep->shard = (sweep->shard + 1) % MDL_STORAGE_SHARDS;
    return sweep->shard > 0 ? MDL_SOON : MDL_DAY;
}
