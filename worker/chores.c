#include "worker/chores.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/log.h"
#include "core/blob.h"
#include "core/idempotency.h"
#include "core/meter.h"
#include "core/upload.h"

#define PRUNE_BATCHES   20
#define UPLOAD_BATCH    100
#define FILE_BATCH      500
#define BLOB_BATCH      500
#define BLOB_REST       apr_time_from_sec(3600) /* transfers that began before go on */
#define DOWNLOAD_BATCH  100
#define DOWNLOAD_ROUNDS 20

static apr_status_t touch_all(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t *used = arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < used->nelts && rv == APR_SUCCESS; i++) {
        rv = mdl_key_touch(db, p, &APR_ARRAY_IDX(used, i, mdl_key_touch_t));
    }
    return rv;
}

void mdl_chores_report_keys(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p)
{
    apr_array_header_t *used = apr_array_make(p, 16, sizeof(mdl_key_touch_t));
    char id[MDL_KEY_ID_LENGTH + 1];
    apr_time_t used_at;
    int index = 0;

    while (mdl_key_cache_next_used(service->key_cache, &index, id, &used_at)) {
        APR_ARRAY_PUSH(used, mdl_key_touch_t) = (mdl_key_touch_t){.id = apr_pstrdup(p, id),
                                                                  .used_at = used_at};
    }
    if (used->nelts > 0) {
        mdl_worker_db_write(database, touch_all, used, p);
    }
}

static void remove_over(mdl_storage_t *storage, mdl_worker_db_t *database,
                        const apr_array_header_t *ids, apr_pool_t *p)
{
    mdl_upload_over_t over = {.ids = ids};

    if (mdl_worker_db_read(database, mdl_upload_over, &over, p) != APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < over.over->nelts; i++) {
        const char *id = APR_ARRAY_IDX(over.over, i, const char *);
        apr_status_t rv = mdl_partial_remove(storage, id, p);

        if (rv != APR_SUCCESS) {
            mdl_log(MDL_LOG_ERR, rv, "MDL0305: can't remove the partial file %s", id);
        }
    }
}

void mdl_chores_sweep_uploads(mdl_storage_t *storage, mdl_worker_db_t *database, apr_pool_t *p)
{
    mdl_upload_expire_t expire = {.limit = UPLOAD_BATCH};
    apr_array_header_t *ids;
    apr_status_t rv;

    do {
        rv = mdl_worker_db_write(database, mdl_upload_expire, &expire, p);
    } while (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH);
    if (rv != APR_SUCCESS || mdl_partial_list(storage, &ids, p) != APR_SUCCESS) {
        return;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = *ids;

        batch.elts += (apr_size_t)at * sizeof(const char *);
        batch.nelts = ids->nelts - at < FILE_BATCH ? ids->nelts - at : FILE_BATCH;
        remove_over(storage, database, &batch, p);
    }
}

void mdl_chores_sweep_blobs(mdl_storage_t *storage, mdl_worker_db_t *database, apr_pool_t *p)
{
    mdl_blob_released_t find = {.before = apr_time_now() - BLOB_REST, .limit = BLOB_BATCH};

    if (mdl_worker_db_read(database, mdl_blob_released, &find, p) != APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < find.released->nelts; i++) {
        mdl_blob_sweep_t sweep = {.storage = storage,
                                  .sha256 = APR_ARRAY_IDX(find.released, i, const char *)};
        apr_status_t rv = mdl_worker_db_write(database, mdl_blob_sweep, &sweep, p);

        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0306: can't remove the file %s, which nothing refers to, from "
                    "DownloadsStorage; it is tried again",
                    sweep.sha256);
        }
    }
}

/* Lost transfers first: their sessions are not idle before. */
void mdl_chores_sweep_downloads(const mdl_service_t *service, mdl_worker_db_t *database,
                                apr_pool_t *p)
{
    mdl_meter_sweep_t lost = {.idle = service->settings->session_idle, .limit = DOWNLOAD_BATCH};
    mdl_session_sweep_t idle = {.limit = DOWNLOAD_BATCH};

    for (int i = 0; i < DOWNLOAD_ROUNDS; i++) {
        if (mdl_worker_db_write(database, mdl_meter_sweep, &lost, p) != APR_SUCCESS || !lost.more) {
            break;
        }
    }
    for (int i = 0; i < DOWNLOAD_ROUNDS; i++) {
        if (mdl_worker_db_write(database, mdl_session_sweep, &idle, p) != APR_SUCCESS ||
            idle.settled < DOWNLOAD_BATCH) {
            break;
        }
    }
}

int mdl_chores_prune(const mdl_service_t *service, mdl_worker_db_t *database, apr_pool_t *p)
{
    mdl_idempotency_prune_t prune = {.before = apr_time_now() -
                                               service->settings->idempotency_retention};

    for (int i = 0; i < PRUNE_BATCHES; i++) {
        if (mdl_worker_db_write(database, mdl_idempotency_prune, &prune, p) != APR_SUCCESS ||
            prune.removed == 0) {
            return 0;
        }
    }
    return 1;
}
