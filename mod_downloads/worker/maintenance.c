#include "worker/maintenance.h"

#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/catalog/license.h"
#include "core/download/meter.h"
#include "core/node.h"
#include "core/order/find_request.h"
#include "core/order/news.h"
#include "core/prune.h"
#include "core/shop/notice.h"
#include "worker/bounces.h"
#include "worker/strays.h"
#include "worker/sweep.h"
#include "worker/turn.h"

#define DOWNLOADS      apr_time_from_sec(5)
#define STRAYS         apr_time_from_sec(2)
#define TRANSFER_BATCH 100
#define MEMBER_BATCH   100
#define NEWS_BATCH     50
#define FIND_BATCH     20 /* few: under SQLite's one lock, as the next */
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
    FIND_ORDERS,
    TELL_BUYERS,
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
    mdl_sweep_t *sweep;
    mdl_beats_t *meters; /* of delivering processes */
    pid_t parent;
    pass_t passes[MDL_PRUNE_TABLES];
    int connections;           /* to the database, as last seen; 0 while it is unreachable */
    int closed;                /* whether the service was closed, as last seen (core/closed.h) */
    int counted;               /* live nodes, by the last heartbeat; 0 before the first */
    int live;                  /* the most of the last two */
    apr_time_t next[ROUTINES]; /* by mdl_clock_monotonic */
};

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
    apr_status_t rv = mdl_reconnect_settle(maintenance->database, mdl_node_beat_effect, &node, p);

    if (rv == APR_SUCCESS) {
        /* After an outage the others still look silent to the first that beats again. */
        maintenance->live = node.live > maintenance->counted ? node.live : maintenance->counted;
        maintenance->counted = node.live;
    } else if (rv == MDL_DB_EOTHER && maintenance->live == 0) {
        maintenance->live = 1;
    }
    return rv == MDL_DB_EOTHER ? MDL_MINUTE : maintenance->live > 0 ? MDL_NODE_BEAT : MDL_TURN;
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
    return MDL_MINUTE;
}

static apr_interval_time_t sweep_uploads(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    return mdl_sweep_uploads(maintenance->sweep, p);
}

static apr_interval_time_t sweep_blobs(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    return mdl_sweep_blobs(maintenance->sweep, p);
}

static apr_interval_time_t sweep_orphans(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    return mdl_sweep_orphans(maintenance->sweep, p);
}

/* Removes objects that no blob has. */
static apr_interval_time_t sweep_strays(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_time_t now;

    if (maintenance->strays == NULL) {
        return MDL_DAY;
    }
    return mdl_turn_now(maintenance->database, &now, p) == APR_SUCCESS &&
                   mdl_strays_run(maintenance->strays, now, p)
               ? STRAYS
               : MDL_MINUTE;
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
            if (mdl_turn_is_over(began) ||
                mdl_reconnect_settle(maintenance->database, mdl_meter_sweep_effect, &sweep, p) !=
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
    } while (!mdl_turn_is_over(began));
    return MDL_SOON;
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
        [MDL_PRUNE_VISITS] = settings->keep.downloads,
        [MDL_PRUNE_AUDIT] = settings->keep.audit,
        [MDL_PRUNE_ANSWERS] = settings->idempotency_retention,
        [MDL_PRUNE_ADDRESSES] = settings->fraud_window,
        [MDL_PRUNE_FINDS] = MDL_DAY,
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

    pass->next = now + MDL_HOUR;
    if (kept == MDL_KEEP_FOREVER) {
        return;
    }
    if (pass->whole_at <= now) {
        pass->mark = (mdl_prune_mark_t){0};
        pass->whole_at = now + MDL_DAY;
    }
    prune.after = pass->mark;
    if (mdl_turn_now(maintenance->database, &prune.before, p) != APR_SUCCESS) {
        pass->next = now + MDL_MINUTE;
        return;
    }
    prune.before -= kept;
    if (mdl_reconnect_write(maintenance->database, mdl_prune_effect, &prune, p) != APR_SUCCESS) {
        pass->next = now + MDL_MINUTE;
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
    apr_interval_time_t again = MDL_MINUTE;

    for (mdl_prune_table_t i = 0; i < MDL_PRUNE_TABLES; i++) {
        if (maintenance->passes[i].next <= mdl_clock_monotonic()) {
            table_prune(maintenance, i, p);
        }
        again = maintenance->passes[i].next <= mdl_clock_monotonic() ? MDL_SOON : again;
    }
    return again;
}

static apr_interval_time_t read_bounces(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    if (maintenance->bounces == NULL) {
        return MDL_DAY;
    }
    if (maintenance->connections == 0) {
        return 0;
    }
    return mdl_bounces_read(maintenance->bounces, p)
               ? MDL_SOON
               : maintenance->service->settings->poll_interval;
}

static apr_interval_time_t prune_bounces(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    apr_interval_time_t kept = maintenance->service->settings->keep.bounces;

    if (maintenance->bounces == NULL || kept == MDL_KEEP_FOREVER) {
        return MDL_DAY;
    }
    return mdl_bounces_prune(maintenance->bounces, apr_time_now() - kept, p) ? MDL_SOON : MDL_DAY;
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
        return MDL_TURN;
    }
    for (; i < due.members->nelts && !mdl_turn_is_over(began); i++) {
        mdl_reconnect_write(maintenance->database, mdl_notice_send_effect,
                            &APR_ARRAY_IDX(due.members, i, mdl_notice_to_t), p);
    }
    return i == MEMBER_BATCH || i < due.members->nelts
               ? MDL_SOON
               : maintenance->service->settings->poll_interval;
}

/* Serves what waits, a batch in each transaction, until one is not full. */
static apr_interval_time_t serve(mdl_maintenance_t *maintenance, mdl_effect_fn *waits_effect,
                                 mdl_effect_fn *serve_effect, void *batch, const int *served,
                                 int full, apr_pool_t *p)
{
    apr_interval_time_t again = maintenance->service->settings->poll_interval;
    apr_time_t began = mdl_clock_monotonic();
    int waits;

    if (mdl_reconnect_read(maintenance->database, waits_effect, &waits, p) != APR_SUCCESS ||
        !waits) {
        return again;
    }
    do {
        if (mdl_reconnect_write(maintenance->database, serve_effect, batch, p) != APR_SUCCESS ||
            *served < full) {
            return again;
        }
    } while (!mdl_turn_is_over(began));
    return MDL_SOON;
}

MDL_EFFECT(mdl_find_request_waits, int *)
MDL_EFFECT(mdl_find_request_serve, mdl_find_serve_t *)

/* Looks up the orders that customers have asked for. */
static apr_interval_time_t find_orders(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_find_serve_t batch = {.secret = maintenance->service->secret, .limit = FIND_BATCH};

    return serve(maintenance, mdl_find_request_waits_effect, mdl_find_request_serve_effect, &batch,
                 &batch.served, FIND_BATCH, p);
}

MDL_EFFECT(mdl_news_waits, int *)
MDL_EFFECT(mdl_news_serve, mdl_news_serve_t *)

/* Queues emails about new versions, of a shop in each transaction. */
static apr_interval_time_t tell_buyers(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    mdl_news_serve_t batch = {.secret = maintenance->service->secret, .limit = NEWS_BATCH};

    return serve(maintenance, mdl_news_waits_effect, mdl_news_serve_effect, &batch, &batch.served,
                 1, p);
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
    [FIND_ORDERS] = find_orders,
    [TELL_BUYERS] = tell_buyers,
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
    maintenance->sweep = mdl_sweep_create(storage, database, p);
    maintenance->strays = mdl_strays_create(storage, database, p);
    maintenance->meters = mdl_beats_watch(MDL_METER_TIME, p);
    maintenance->next[REPORT_KEYS] = mdl_clock_monotonic() + MDL_MINUTE;
    return maintenance;
}

/* While the service is closed, only what ends what has begun. */
static int routine_may_run(const mdl_maintenance_t *maintenance, int routine)
{
    return !maintenance->closed || routine == BEAT || routine == SWEEP_DOWNLOADS;
}

static void look_closed(mdl_maintenance_t *maintenance)
{
    int closed = mdl_reconnect_is_closed(maintenance->database);

    if (closed && !maintenance->closed) {
        mdl_log(MDL_LOG_NOTICE, 0,
                "MDL0388: maintenance is on: changes and new downloads get 503, and jobs wait");
    } else if (!closed && maintenance->closed) {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0389: maintenance is over");
    }
    maintenance->closed = closed;
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
    if (connections != 0) {
        look_closed(maintenance);
    }
    mdl_readiness_beat(maintenance->service->readiness);
    for (int i = 0; i < ROUTINES; i++) {
        if (maintenance->next[i] <= now) {
            maintenance->next[i] = now + (routine_may_run(maintenance, i)
                                              ? routines[i](maintenance, p)
                                              : MDL_TURN);
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
    maintenance->next[SWEEP_BLOBS] = mdl_clock_monotonic() + MDL_SWEEP_REST;
}

void mdl_maintenance_finish(mdl_maintenance_t *maintenance, apr_pool_t *p)
{
    report_keys(maintenance, p);
    /* Not if the parent died, because that was no regular stop: other nodes must miss this one. */
    if (getppid() == maintenance->parent) {
        mdl_reconnect_settle(maintenance->database, leave_effect, (void *)maintenance->service, p);
    }
}
