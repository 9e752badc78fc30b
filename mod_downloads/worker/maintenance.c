#include "worker/maintenance.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/audit.h"
#include "core/catalog/blob.h"
#include "core/catalog/license.h"
#include "core/catalog/upload.h"
#include "core/download/lease.h"
#include "core/idempotency.h"
#include "core/shop/notice.h"
#include "worker/bounces.h"

#define SOON            apr_time_from_msec(100) /* the loop renews leases first */
#define MINUTE          apr_time_from_sec(60)
#define HOUR            apr_time_from_sec(3600)
#define DOWNLOADS       apr_time_from_sec(5)
#define PRUNE_BATCHES   20
#define UPLOAD_BATCH    100
#define FILE_BATCH      500
#define BLOB_BATCH      500
#define BLOB_REST       apr_time_from_sec(3600) /* for transfers that began before */
#define TRANSFER_BATCH  100
#define SESSION_BATCH   10 /* an archive's every file is looked at, under SQLite's one lock */
#define DOWNLOAD_ROUNDS 20

enum {
    REPORT_KEYS,
    SWEEP_UPLOADS,
    SWEEP_BLOBS,
    SWEEP_DOWNLOADS,
    PRUNE,
    PRUNE_AUDIT,
    PRUNE_NOTICES,
    SEAL_LICENSE_KEYS,
    READ_BOUNCES,
    ROUTINES
};

struct mdl_maintenance_t {
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_reconnect_t *database;
    mdl_bounces_t *bounces;    /* NULL: none are read */
    mdl_beats_t *leases;       /* of processes that deliver */
    int connections;           /* of database, as last seen; 0 while it is away */
    apr_time_t next[ROUTINES]; /* by mdl_clock_monotonic */
};

/* The routines.  Each returns after what time it is due again. */

static apr_status_t touch_all(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t *used = arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < used->nelts && rv == APR_SUCCESS; i++) {
        rv = mdl_key_touch(db, p, &APR_ARRAY_IDX(used, i, mdl_key_touch_t));
    }
    return rv;
}

/* Writes down when keys were used last. */
static apr_interval_time_t report_keys(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_array_header_t *used = apr_array_make(p, 16, sizeof(mdl_key_touch_t));
    char id[MDL_KEY_ID_LENGTH + 1];
    apr_time_t used_at;
    int index = 0;

    while (mdl_key_cache_next_used(maintenance->service->key_cache, &index, id, &used_at)) {
        APR_ARRAY_PUSH(used, mdl_key_touch_t) = (mdl_key_touch_t){.id = apr_pstrdup(p, id),
                                                                  .used_at = used_at};
    }
    if (used->nelts > 0) {
        mdl_reconnect_write(maintenance->database, touch_all, used, p);
    }
    return MINUTE;
}

static apr_status_t upload_over_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_upload_over(db, p, arg);
}

static void remove_over(mdl_maintenance_t *maintenance, const apr_array_header_t *ids,
                        apr_pool_t *p)
{
    mdl_upload_over_t over = {.ids = ids};

    if (mdl_reconnect_read(maintenance->database, upload_over_effect, &over, p) != APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < over.over->nelts; i++) {
        const char *id = APR_ARRAY_IDX(over.over, i, const char *);
        apr_status_t rv = mdl_partial_remove(maintenance->storage, id, p);

        if (rv != APR_SUCCESS) {
            mdl_log(MDL_LOG_ERR, rv, "MDL0305: can't remove the partial file %s", id);
        }
    }
}

static apr_status_t upload_expire_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_upload_expire(db, p, arg);
}

/* Aborts uploads that have expired, and removes the partial files of uploads and jobs that are
   over. */
static apr_interval_time_t sweep_uploads(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_upload_expire_t expire = {.limit = UPLOAD_BATCH};
    apr_array_header_t *ids;
    apr_status_t rv;

    do {
        rv = mdl_reconnect_write(maintenance->database, upload_expire_effect, &expire, p);
    } while (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH);
    if (rv != APR_SUCCESS || mdl_partial_list(maintenance->storage, &ids, p) != APR_SUCCESS) {
        return MINUTE;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = *ids;

        batch.elts += (apr_size_t)at * sizeof(const char *);
        batch.nelts = ids->nelts - at < FILE_BATCH ? ids->nelts - at : FILE_BATCH;
        remove_over(maintenance, &batch, p);
    }
    return MINUTE;
}

static apr_status_t blob_released_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_blob_released(db, p, arg);
}

static apr_status_t blob_sweep_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_blob_sweep(db, p, arg);
}

/* Removes blobs from storage an hour after the last reference to them went. */
static apr_interval_time_t sweep_blobs(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_blob_released_t find = {.before = apr_time_now() - BLOB_REST, .limit = BLOB_BATCH};

    if (mdl_reconnect_read(maintenance->database, blob_released_effect, &find, p) != APR_SUCCESS) {
        return MINUTE;
    }
    for (int i = 0; i < find.released->nelts; i++) {
        mdl_blob_sweep_t sweep = {.storage = maintenance->storage,
                                  .sha256 = APR_ARRAY_IDX(find.released, i, const char *)};
        apr_status_t rv = mdl_reconnect_write(maintenance->database, blob_sweep_effect, &sweep, p);

        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0306: can't remove the file %s, which nothing refers to, from "
                    "DownloadsStorage; it is tried again",
                    sweep.sha256);
        }
    }
    return MINUTE;
}

static apr_interval_time_t downloads_interval(const mdl_maintenance_t *maintenance)
{
    apr_interval_time_t idle = maintenance->service->settings->session_idle;

    return idle < DOWNLOADS ? idle : DOWNLOADS;
}

static apr_status_t lease_beats_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_lease_beats(db, p, arg);
}

static apr_status_t lease_sweep_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_lease_sweep(db, p, arg);
}

static apr_status_t session_sweep_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_session_sweep(db, p, arg);
}

/* The leases that have run out. */
static apr_array_header_t *lost_leases(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_array_header_t *leases;
    apr_status_t rv = mdl_reconnect_read(maintenance->database, lease_beats_effect, &leases, p);

    return mdl_beats_look(maintenance->leases, rv == APR_SUCCESS ? leases : NULL, p);
}

/* Settles the transfers of processes that are gone. */
static void sweep_leases(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    const apr_array_header_t *lost = lost_leases(maintenance, p);
    const mdl_settings_t *settings = maintenance->service->settings;
    mdl_lease_sweep_t sweep = {.idle = settings->session_idle,
                               .default_download_limit = settings->download_limit,
                               .limit = TRANSFER_BATCH};
    int rounds = 0;

    for (int i = 0; i < lost->nelts; i++) {
        sweep.lease = APR_ARRAY_IDX(lost, i, mdl_beat_t);
        do {
            if (rounds++ == DOWNLOAD_ROUNDS ||
                mdl_reconnect_write(maintenance->database, lease_sweep_effect, &sweep, p) !=
                    APR_SUCCESS) {
                return;
            }
        } while (sweep.more);
    }
}

/* The sessions of transfers whose processes are gone become idle only once these are settled. */
static apr_interval_time_t sweep_downloads(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_session_sweep_t idle = {
        .limit = SESSION_BATCH,
        .default_download_limit = maintenance->service->settings->download_limit};

    sweep_leases(maintenance, p);
    for (int i = 0; i < DOWNLOAD_ROUNDS; i++) {
        if (mdl_reconnect_write(maintenance->database, session_sweep_effect, &idle, p) !=
                APR_SUCCESS ||
            idle.settled < SESSION_BATCH) {
            return downloads_interval(maintenance);
        }
    }
    return SOON;
}

static apr_status_t idempotency_prune_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_idempotency_prune(db, p, arg);
}

/* Deletes answers past their retention. */
static apr_interval_time_t prune_answers(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_idempotency_prune_t prune = {
        .before = apr_time_now() - maintenance->service->settings->idempotency_retention};

    for (int i = 0; i < PRUNE_BATCHES; i++) {
        if (mdl_reconnect_write(maintenance->database, idempotency_prune_effect, &prune, p) !=
                APR_SUCCESS ||
            prune.removed == 0) {
            return MINUTE;
        }
    }
    return SOON;
}

static apr_status_t audit_prune_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_audit_prune(db, p, arg);
}

/* Deletes what the audit does not keep any longer. */
static apr_interval_time_t prune_audit(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_audit_prune_t prune = {.before = apr_time_now() - MDL_AUDIT_KEPT};

    for (int i = 0; i < PRUNE_BATCHES; i++) {
        if (mdl_reconnect_write(maintenance->database, audit_prune_effect, &prune, p) !=
                APR_SUCCESS ||
            prune.removed == 0) {
            return HOUR;
        }
    }
    return SOON;
}

static apr_status_t notice_prune_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_notice_prune(db, p, arg);
}

/* Deletes events that are over. */
static apr_interval_time_t prune_notices(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_notice_prune_t prune = {.before = apr_time_now() - MDL_NOTICES_KEPT};

    for (int i = 0; i < PRUNE_BATCHES; i++) {
        if (mdl_reconnect_write(maintenance->database, notice_prune_effect, &prune, p) !=
                APR_SUCCESS ||
            prune.removed == 0) {
            return MINUTE;
        }
    }
    return SOON;
}

static apr_status_t license_seal_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_license_seal(db, p, arg);
}

/* Seals the license keys of older versions. */
static apr_interval_time_t seal_license_keys(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_license_seal_t seal = {.secret = maintenance->service->secret};

    if (mdl_reconnect_write(maintenance->database, license_seal_effect, &seal, p) != APR_SUCCESS) {
        return MINUTE;
    }
    return seal.sealed > 0 ? SOON : HOUR;
}

static apr_interval_time_t read_bounces(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    if (maintenance->bounces == NULL || maintenance->connections == 0) {
        return 0;
    }
    return mdl_bounces_read(maintenance->bounces, p)
               ? SOON
               : maintenance->service->settings->poll_interval;
}

static apr_interval_time_t (*const routines[ROUTINES])(mdl_maintenance_t *maintenance,
                                                       apr_pool_t *p) = {
    [REPORT_KEYS] = report_keys,     [SWEEP_UPLOADS] = sweep_uploads,
    [SWEEP_BLOBS] = sweep_blobs,     [SWEEP_DOWNLOADS] = sweep_downloads,
    [PRUNE] = prune_answers,         [PRUNE_AUDIT] = prune_audit,
    [PRUNE_NOTICES] = prune_notices, [SEAL_LICENSE_KEYS] = seal_license_keys,
    [READ_BOUNCES] = read_bounces,
};

mdl_maintenance_t *mdl_maintenance_create(const mdl_service_t *service, mdl_storage_t *storage,
                                          mdl_reconnect_t *database, apr_pool_t *p)
{
    mdl_maintenance_t *maintenance = apr_pcalloc(p, sizeof *maintenance);

    maintenance->service = service;
    maintenance->storage = storage;
    maintenance->database = database;
    maintenance->bounces = mdl_bounces_create(service, database, p);
    maintenance->leases = mdl_beats_watch(MDL_LEASE_TIME, p);
    maintenance->next[REPORT_KEYS] = maintenance->next[PRUNE] = mdl_clock_monotonic() + MINUTE;
    return maintenance;
}

void mdl_maintenance_run(mdl_maintenance_t *maintenance, int connections, apr_pool_t *p)
{
    apr_time_t now = mdl_clock_monotonic();

    /* After an outage, processes that deliver first write down what is still under way: no session
       of theirs is idle. */
    if (connections != 0 && connections != maintenance->connections) {
        maintenance->next[SWEEP_DOWNLOADS] = now + downloads_interval(maintenance);
    }
    maintenance->connections = connections;
    for (int i = 0; i < ROUTINES; i++) {
        if (maintenance->next[i] <= now) {
            maintenance->next[i] = now + routines[i](maintenance, p);
        }
    }
}

apr_time_t mdl_maintenance_due(const mdl_maintenance_t *maintenance)
{
    return maintenance->bounces != NULL ? maintenance->next[READ_BOUNCES] : APR_INT64_MAX;
}

void mdl_maintenance_rest(mdl_maintenance_t *maintenance)
{
    maintenance->next[SWEEP_BLOBS] = mdl_clock_monotonic() + BLOB_REST;
}

void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    report_keys(maintenance, p);
}
