#include "worker/maintenance.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/catalog/asset.h"
#include "core/catalog/blob.h"
#include "core/catalog/license.h"
#include "core/catalog/storage_hold.h"
#include "core/catalog/upload.h"
#include "core/download/meter.h"
#include "core/node.h"
#include "core/prune.h"
#include "core/shop/notice.h"
#include "worker/bounces.h"
#include "worker/strays.h"

#define SOON           apr_time_from_msec(100) /* the loop renews leases first */
#define MINUTE         apr_time_from_sec(60)
#define HOUR           apr_time_from_sec(3600)
#define DAY            (24 * HOUR)
#define DOWNLOADS      apr_time_from_sec(5)
#define STRAYS         apr_time_from_sec(2)
#define TURN           apr_time_from_sec(1) /* then a routine leaves the rest to the next turn */
#define UPLOAD_BATCH   100
#define FILE_BATCH     500
#define BLOB_BATCH     500
#define BLOB_REST      apr_time_from_sec(3600) /* for transfers that are still running */
#define ORPHAN_REST    (7 * DAY)               /* for noticing a restored, older database */
#define TRANSFER_BATCH 100
#define MEMBER_BATCH   100
#define SESSION_BATCH  10 /* few: every file of an archive is read under SQLite's one lock */

enum {
    BEAT,
    REPORT_KEYS,
    SWEEP_UPLOADS,
    SWEEP_BLOBS,
    SWEEP_ORPHANS,
    SWEEP_STRAYS,
    SWEEP_DOWNLOADS,
    PRUNE,
    READ_BOUNCES,
    PRUNE_BOUNCES,
    TELL_MEMBERS,
    ROUTINES
};

/* One pass that prunes a table.  Times are by mdl_clock_monotonic. */
typedef struct {
    mdl_prune_mark_t mark;
    apr_time_t next;
    apr_time_t whole_at; /* when the pass restarts at the table's beginning */
} pass_t;

struct mdl_maintenance_t {
    const mdl_service_t *service;
    mdl_storage_t *storage;
    mdl_reconnect_t *database;
    mdl_bounces_t *bounces; /* NULL: no mailbox */
    mdl_strays_t *strays;   /* NULL: no object store */
    mdl_beats_t *meters;    /* of delivering processes */
    pid_t parent;
    pass_t passes[MDL_PRUNE_TABLES];
    apr_time_t hold_told;      /* when a hold may be reported again, by mdl_clock_monotonic */
    int shard;                 /* of storage, to be scanned next */
    int connections;           /* to the database, as last seen; 0 while it is unreachable */
    int counted;               /* live nodes, by the last heartbeat; 0 before the first */
    int live;                  /* the most of the last two */
    apr_time_t next[ROUTINES]; /* by mdl_clock_monotonic */
};

static int turn_is_over(apr_time_t began)
{
    return mdl_clock_monotonic() - began >= TURN;
}

/* The routines.  Each returns the time until it is due again. */

MDL_EFFECT(mdl_node_beat, mdl_node_beat_t *)

static apr_status_t leave_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_service_t *service = arg;

    return mdl_node_leave(db, p, service->pid_file);
}

/* Fails if the schema is too old to have nodes, which has been logged. */
static apr_interval_time_t beat(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    const mdl_service_t *service = maintenance->service;
    mdl_node_beat_t node = {.pid_file = service->pid_file,
                            .connections = service->settings->db_connections};
    apr_status_t rv = mdl_reconnect_write(maintenance->database, mdl_node_beat_effect, &node, p);

    if (rv == APR_SUCCESS) {
        /* After an outage the others still look silent to the first that beats again. */
        maintenance->live = node.live > maintenance->counted ? node.live : maintenance->counted;
        maintenance->counted = node.live;
    } else if (rv == MDL_DB_EOTHER && maintenance->live == 0) {
        maintenance->live = 1;
    }
    return rv == MDL_DB_EOTHER ? MINUTE : maintenance->live > 0 ? MDL_NODE_BEAT : TURN;
}

static apr_status_t touch_all(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t *used = arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < used->nelts && rv == APR_SUCCESS; i++) {
        rv = mdl_key_touch(db, p, &APR_ARRAY_IDX(used, i, mdl_key_touch_t));
    }
    return rv;
}

/* Records when keys were last used. */
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

static void remove_over(mdl_maintenance_t *maintenance, const apr_array_header_t *ids,
                        apr_pool_t *p)
{
    mdl_upload_over_t over = {.ids = ids};

    if (mdl_reconnect_read(maintenance->database, mdl_upload_over_effect, &over, p) !=
        APR_SUCCESS) {
        return;
    }
    for (int i = 0; i < over.over->nelts; i++) {
        const char *id = APR_ARRAY_IDX(over.over, i, const char *);
        apr_status_t rv = remove_partial(maintenance->storage, id, p);

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

/* Aborts expired uploads, and removes the partial files of ended uploads and jobs. */
static apr_interval_time_t sweep_uploads(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_upload_expire_t expire = {.limit = UPLOAD_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    apr_array_header_t *ids;
    apr_status_t rv;

    do {
        rv = mdl_reconnect_write(maintenance->database, mdl_upload_expire_effect, &expire, p);
    } while (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH && !turn_is_over(began));
    if (rv == APR_SUCCESS && expire.aborted == UPLOAD_BATCH) {
        return SOON;
    }
    if (rv != APR_SUCCESS || mdl_partial_list(maintenance->storage, &ids, p) != APR_SUCCESS) {
        return MINUTE;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = batch_of(ids, at);

        remove_over(maintenance, &batch, p);
    }
    return MINUTE;
}

MDL_EFFECT(mdl_node_time, apr_time_t *)

/* The time on which all nodes agree: a node whose clock is ahead must not remove others' new
   rows. */
static apr_status_t time_of_all(mdl_maintenance_t *maintenance, apr_time_t *now, apr_pool_t *p)
{
    return mdl_reconnect_read(maintenance->database, mdl_node_time_effect, now, p);
}

MDL_EFFECT(mdl_blob_released, mdl_blob_released_t *)
MDL_EFFECT(mdl_blob_sweep, const mdl_blob_sweep_t *)

static apr_status_t storage_held_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_storage_held(db, arg, p);
}

/* Reports an old hold: while it is forgotten, the storage grows. */
static void report_hold(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_storage_hold_t hold;

    if (maintenance->hold_told > mdl_clock_monotonic() ||
        mdl_reconnect_read(maintenance->database, storage_held_effect, &hold, p) != APR_SUCCESS ||
        hold.since > apr_time_now() - DAY) {
        return;
    }
    maintenance->hold_told = mdl_clock_monotonic() + DAY;
    mdl_log(MDL_LOG_WARNING, 0,
            "MDL0357: no file is removed from DownloadsStorage: %s has held it since %s; if no "
            "copy is being made: downloadsctl storage release %s",
            hold.user, mdl_clock_rfc3339(hold.since, p), hold.id);
}

MDL_EFFECT(mdl_asset_to_forget, mdl_asset_to_forget_t *)
MDL_EFFECT(mdl_asset_forget, mdl_asset_forget_t *)

/* Former versions that are no longer kept release their blobs. */
static void forget_formers(mdl_maintenance_t *maintenance, apr_time_t now, apr_pool_t *p)
{
    mdl_asset_to_forget_t find = {.now = now, .limit = BLOB_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    apr_status_t rv = mdl_reconnect_read(maintenance->database, mdl_asset_to_forget_effect, &find,
                                         p);

    for (int i = 0; rv == APR_SUCCESS && i < find.found->nelts && !turn_is_over(began); i++) {
        mdl_asset_forget_t forget = {.id = APR_ARRAY_IDX(find.found, i, apr_int64_t), .now = now};

        rv = mdl_reconnect_write(maintenance->database, mdl_asset_forget_effect, &forget, p);
    }
}

/* Removes blobs from storage an hour after their last reference. */
static apr_interval_time_t sweep_blobs(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_blob_released_t find = {.limit = BLOB_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    int failed = 0;

    if (time_of_all(maintenance, &find.before, p) != APR_SUCCESS) {
        return MINUTE;
    }
    forget_formers(maintenance, find.before, p);
    find.before -= BLOB_REST;
    if (mdl_reconnect_read(maintenance->database, mdl_blob_released_effect, &find, p) !=
        APR_SUCCESS) {
        return MINUTE;
    }
    for (int i = 0; i < find.released->nelts; i++) {
        mdl_blob_sweep_t sweep = {.storage = maintenance->storage,
                                  .sha256 = APR_ARRAY_IDX(find.released, i, const char *)};
        apr_status_t rv = mdl_reconnect_write(maintenance->database, mdl_blob_sweep_effect, &sweep,
                                              p);

        if (APR_STATUS_IS_EAGAIN(rv)) {
            report_hold(maintenance, p);
            return MINUTE;
        }
        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            mdl_log(MDL_LOG_ERR, rv,
                    "MDL0306: can't remove the file %s, which nothing refers to, from "
                    "DownloadsStorage; it is tried again",
                    sweep.sha256);
            failed = 1;
        }
        if (turn_is_over(began)) {
            return failed ? MINUTE : SOON;
        }
    }
    return MINUTE;
}

MDL_EFFECT(mdl_blob_orphans, mdl_blob_orphans_t *)
MDL_EFFECT(mdl_blob_sweep_orphan, const mdl_blob_sweep_t *)

static void remove_orphan(mdl_maintenance_t *maintenance, const char *sha256, apr_pool_t *p)
{
    mdl_blob_sweep_t sweep = {.storage = maintenance->storage, .sha256 = sha256};
    apr_time_t written_at = 0;
    apr_status_t rv = mdl_storage_written_at(maintenance->storage, &(mdl_blob_t){.sha256 = sha256},
                                             &written_at, p);

    if (rv != APR_SUCCESS || written_at > apr_time_now() - ORPHAN_REST) {
        return;
    }
    rv = mdl_reconnect_write(maintenance->database, mdl_blob_sweep_orphan_effect, &sweep, p);
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

/* Scans one shard of storage for files unknown to the database, left by a kill. */
static apr_interval_time_t sweep_orphans(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_blob_orphans_t find;
    apr_array_header_t *ids;

    mdl_storage_clean(maintenance->storage, apr_time_now() - DAY, p);
    if (mdl_storage_list(maintenance->storage, maintenance->shard, &ids, p) != APR_SUCCESS) {
        return HOUR;
    }
    for (int at = 0; at < ids->nelts; at += FILE_BATCH) {
        apr_array_header_t batch = batch_of(ids, at);

        find.ids = &batch;
        if (mdl_reconnect_read(maintenance->database, mdl_blob_orphans_effect, &find, p) !=
            APR_SUCCESS) {
            return MINUTE;
        }
        for (int i = 0; i < find.orphans->nelts; i++) {
            remove_orphan(maintenance, APR_ARRAY_IDX(find.orphans, i, const char *), p);
        }
    }
    maintenance->shard = (maintenance->shard + 1) % MDL_STORAGE_SHARDS;
    return maintenance->shard > 0 ? SOON : DAY;
}

/* Removes objects that no blob has. */
static apr_interval_time_t sweep_strays(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_time_t now;

    if (maintenance->strays == NULL) {
        return DAY;
    }
    return time_of_all(maintenance, &now, p) == APR_SUCCESS &&
                   mdl_strays_run(maintenance->strays, now, p)
               ? STRAYS
               : MINUTE;
}

static apr_interval_time_t downloads_interval(const mdl_maintenance_t *maintenance)
{
    apr_interval_time_t idle = maintenance->service->settings->session_idle;

    return idle < DOWNLOADS ? idle : DOWNLOADS;
}

MDL_EFFECT(mdl_meter_beats, apr_array_header_t **)
MDL_EFFECT(mdl_meter_sweep, mdl_meter_sweep_t *)
MDL_EFFECT(mdl_session_sweep, mdl_session_sweep_t *)

/* The meters of dead processes. */
static apr_array_header_t *lost_leases(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_array_header_t *meters;
    apr_status_t rv = mdl_reconnect_read(maintenance->database, mdl_meter_beats_effect, &meters, p);

    return mdl_beats_look(maintenance->meters, rv == APR_SUCCESS ? meters : NULL, p);
}

/* Settles the transfers of dead processes. */
static void sweep_leases(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    const apr_array_header_t *lost = lost_leases(maintenance, p);
    const mdl_settings_t *settings = maintenance->service->settings;
    mdl_meter_sweep_t sweep = {.idle = settings->session_idle,
                               .default_download_limit = settings->download_limit,
                               .limit = TRANSFER_BATCH};
    apr_time_t began = mdl_clock_monotonic();

    for (int i = 0; i < lost->nelts; i++) {
        sweep.meter = APR_ARRAY_IDX(lost, i, mdl_beat_t);
        do {
            if (turn_is_over(began) ||
                mdl_reconnect_write(maintenance->database, mdl_meter_sweep_effect, &sweep, p) !=
                    APR_SUCCESS) {
                return;
            }
        } while (sweep.more);
    }
}

/* Settles the transfers of dead processes first: only then do their sessions become idle. */
static apr_interval_time_t sweep_downloads(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_session_sweep_t idle = {
        .limit = SESSION_BATCH,
        .default_download_limit = maintenance->service->settings->download_limit};
    apr_time_t began;

    sweep_leases(maintenance, p);
    began = mdl_clock_monotonic();
    do {
        if (mdl_reconnect_write(maintenance->database, mdl_session_sweep_effect, &idle, p) !=
                APR_SUCCESS ||
            idle.settled < SESSION_BATCH) {
            return downloads_interval(maintenance);
        }
    } while (!turn_is_over(began));
    return SOON;
}

MDL_EFFECT(mdl_prune, mdl_prune_t *)

/* The retention time of a table's rows. */
static apr_interval_time_t table_kept(const mdl_settings_t *settings, mdl_prune_table_t table)
{
    const apr_interval_time_t kept[MDL_PRUNE_TABLES] = {
        [MDL_PRUNE_JOBS] = settings->keep.jobs,
        [MDL_PRUNE_UPLOADS] = settings->keep.uploads,
        [MDL_PRUNE_EMAILS] = settings->keep.emails,
        [MDL_PRUNE_EVENTS] = settings->keep.events,
        [MDL_PRUNE_WEBHOOKS] = settings->keep.events,
        [MDL_PRUNE_DOWNLOADS] = settings->keep.downloads,
        [MDL_PRUNE_AUDIT] = settings->keep.audit,
        [MDL_PRUNE_ANSWERS] = settings->idempotency_retention,
        [MDL_PRUNE_ADDRESSES] = settings->fraud_window,
    };

    return kept[table];
}

/* Prunes the next batch of a table.  Once a day the pass restarts at the table's beginning: rows
   that it kept before may have expired by now. */
static void table_prune(mdl_maintenance_t *maintenance, mdl_prune_table_t table, apr_pool_t *p)
{
    pass_t *pass = &maintenance->passes[table];
    apr_interval_time_t kept = table_kept(maintenance->service->settings, table);
    mdl_prune_t prune = {.table = table};
    apr_time_t now = mdl_clock_monotonic();

    pass->next = now + HOUR;
    if (kept == MDL_KEEP_FOREVER) {
        return;
    }
    if (pass->whole_at <= now) {
        pass->mark = (mdl_prune_mark_t){0};
        pass->whole_at = now + DAY;
    }
    prune.after = pass->mark;
    if (time_of_all(maintenance, &prune.before, p) != APR_SUCCESS) {
        pass->next = now + MINUTE;
        return;
    }
    prune.before -= kept;
    if (mdl_reconnect_write(maintenance->database, mdl_prune_effect, &prune, p) != APR_SUCCESS) {
        pass->next = now + MINUTE;
        return;
    }
    pass->mark = prune.next;
    if (prune.more) {
        pass->next = now;
    }
}

/* Deletes expired rows, a batch of each table at a time, so that other writers get their turn. */
static apr_interval_time_t prune_tables(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_interval_time_t again = MINUTE;

    for (mdl_prune_table_t i = 0; i < MDL_PRUNE_TABLES; i++) {
        if (maintenance->passes[i].next <= mdl_clock_monotonic()) {
            table_prune(maintenance, i, p);
        }
        again = maintenance->passes[i].next <= mdl_clock_monotonic() ? SOON : again;
    }
    return again;
}

static apr_interval_time_t read_bounces(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    if (maintenance->bounces == NULL) {
        return DAY;
    }
    if (maintenance->connections == 0) {
        return 0;
    }
    return mdl_bounces_read(maintenance->bounces, p)
               ? SOON
               : maintenance->service->settings->poll_interval;
}

static apr_interval_time_t prune_bounces(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_interval_time_t kept = maintenance->service->settings->keep.bounces;

    if (maintenance->bounces == NULL || kept == MDL_KEEP_FOREVER) {
        return DAY;
    }
    return mdl_bounces_prune(maintenance->bounces, apr_time_now() - kept, p) ? SOON : DAY;
}

MDL_EFFECT(mdl_notices_due, mdl_notices_due_t *)
MDL_EFFECT(mdl_notice_send, mdl_notice_to_t *)

/* Each member in a transaction of its own: one that can't be told holds up nobody else. */
static apr_interval_time_t tell_members(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_notices_due_t due = {.limit = MEMBER_BATCH};
    apr_time_t began = mdl_clock_monotonic();
    int i = 0;

    if (mdl_reconnect_read(maintenance->database, mdl_notices_due_effect, &due, p) != APR_SUCCESS) {
        return TURN;
    }
    for (; i < due.members->nelts && !turn_is_over(began); i++) {
        mdl_reconnect_write(maintenance->database, mdl_notice_send_effect,
                            &APR_ARRAY_IDX(due.members, i, mdl_notice_to_t), p);
    }
    return i == MEMBER_BATCH || i < due.members->nelts
               ? SOON
               : maintenance->service->settings->poll_interval;
}

static apr_interval_time_t (*const routines[ROUTINES])(mdl_maintenance_t *maintenance,
                                                       apr_pool_t *p) = {
    [BEAT] = beat,
    [REPORT_KEYS] = report_keys,
    [SWEEP_UPLOADS] = sweep_uploads,
    [SWEEP_BLOBS] = sweep_blobs,
    [SWEEP_ORPHANS] = sweep_orphans,
    [SWEEP_STRAYS] = sweep_strays,
    [SWEEP_DOWNLOADS] = sweep_downloads,
    [PRUNE] = prune_tables,
    [READ_BOUNCES] = read_bounces,
    [PRUNE_BOUNCES] = prune_bounces,
    [TELL_MEMBERS] = tell_members,
};

mdl_maintenance_t *mdl_maintenance_create(const mdl_service_t *service, mdl_storage_t *storage,
                                          mdl_reconnect_t *database, apr_pool_t *p)
{
    mdl_maintenance_t *maintenance = apr_pcalloc(p, sizeof *maintenance);

    maintenance->service = service;
    maintenance->storage = storage;
    maintenance->database = database;
    maintenance->parent = getppid();
    maintenance->bounces = mdl_bounces_create(service, database, p);
    maintenance->strays = mdl_strays_create(storage, database, p);
    maintenance->meters = mdl_beats_watch(MDL_METER_TIME, p);
    maintenance->next[REPORT_KEYS] = mdl_clock_monotonic() + MINUTE;
    return maintenance;
}

void mdl_maintenance_run(mdl_maintenance_t *maintenance, int connections, apr_pool_t *p)
{
    apr_time_t now = mdl_clock_monotonic();

    /* After an outage, wait until delivering processes have reported their transfers: the sessions
       only look idle. */
    if (connections != 0 && connections != maintenance->connections) {
        maintenance->next[SWEEP_DOWNLOADS] = now + downloads_interval(maintenance);
    }
    maintenance->connections = connections;
    mdl_readiness_beat(maintenance->service->readiness);
    for (int i = 0; i < ROUTINES; i++) {
        if (maintenance->next[i] <= now) {
            maintenance->next[i] = now + routines[i](maintenance, p);
        }
    }
}

int mdl_maintenance_live_nodes(const mdl_maintenance_t *maintenance)
{
    return maintenance->live;
}

apr_time_t mdl_maintenance_due(const mdl_maintenance_t *maintenance)
{
    apr_time_t due = APR_INT64_MAX;

    for (int i = 0; i < ROUTINES; i++) {
        due = maintenance->next[i] < due ? maintenance->next[i] : due;
    }
    return due;
}

void mdl_maintenance_rest(mdl_maintenance_t *maintenance)
{
    maintenance->next[SWEEP_BLOBS] = mdl_clock_monotonic() + BLOB_REST;
}

void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    report_keys(maintenance, p);
    /* Not if the parent died, because that was no regular stop: other nodes must miss this one. */
    if (getppid() == maintenance->parent) {
        mdl_reconnect_write(maintenance->database, leave_effect, (void *)maintenance->service, p);
    }
}
