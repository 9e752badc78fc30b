#include "connection.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <ap_mpm.h>
#include <http_core.h>
#include <http_main.h>
#include <mod_dbd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ulid.h"
#include "config.h"
#include "core/metrics.h"
#include "db/migrate.h"

#define TURN_WAIT_S 5
#define SILENCE     apr_time_from_sec(1)

#define COST_NOTE    "downloads-db"
#define REQUEST_NOTE "downloads-request"

struct mdl_connection_t {
    request_rec *r;
    ap_dbd_t *dbd;
    mdl_db_t *db;
    mdl_db_cost_t before;
    apr_time_t opened_at; /* by mdl_clock_monotonic */
    int probe;            /* whether it probes the silent server for all threads */
};

static APR_OPTIONAL_FN_TYPE(ap_dbd_open) * dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) * dbd_close;

/* Whether a signal can end this process in the middle of a request, as it does prefork's children:
   the handler would destroy mod_dbd's pools below a statement that runs. */
static int single_threaded;

static void connection_hold_signals(int how)
{
    sigset_t signals;

    if (single_threaded) {
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGHUP);
        sigprocmask(how, &signals, NULL);
    }
}

/* mod_dbd would let a thread wait for ever, so threads wait here.  Each child has its own
   semaphore, which is not shared. */
static sem_t vacant;

static int connection_take_turn(void)
{
    struct timespec deadline;
    apr_time_t began;

    if (sem_trywait(&vacant) == 0) {
        return 1;
    }
    began = mdl_clock_monotonic();
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += TURN_WAIT_S;
    while (sem_clockwait(&vacant, CLOCK_MONOTONIC, &deadline) != 0) {
        if (errno != EINTR) {
            mdl_log(MDL_LOG_ERR, 0,
                    "MDL0121: all DBDMax connections were in use for %d s; raise DBDMax",
                    TURN_WAIT_S);
            return 0;
        }
    }
    mdl_histogram_add(&mdl_metrics->database_wait, mdl_clock_monotonic() - began);
    return 1;
}

/* While the database server does not answer, one thread at a time probes it; the others fail. */
static struct {
    pthread_mutex_t mutex;
    int silent;
    int probing;
} server = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Whether a thread may use the server; *probe gets whether it is the one that probes. */
static int server_approach(int *probe)
{
    int may;

    pthread_mutex_lock(&server.mutex);
    *probe = server.silent && !server.probing;
    server.probing |= *probe;
    may = !server.silent || *probe;
    pthread_mutex_unlock(&server.mutex);
    return may;
}

static int server_is_silent(void)
{
    int silent;

    pthread_mutex_lock(&server.mutex);
    silent = server.silent;
    pthread_mutex_unlock(&server.mutex);
    return silent;
}

/* Notes whether the server has answered a thread.  Only a probe's answer ends the silence: another
   thread's may be older. */
static void server_note(int *probe, int silent)
{
    pthread_mutex_lock(&server.mutex);
    if (silent && !server.silent) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0122: the database's server is silent: one request at a time asks it, the "
                "others get 503");
    } else if (*probe && !silent) {
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0123: the database's server is not silent any more");
    }
    if (silent || *probe) {
        server.silent = silent;
    }
    if (*probe) {
        server.probing = *probe = 0;
    }
    pthread_mutex_unlock(&server.mutex);
}

void mdl_connection_init(int max)
{
    int threaded;

    setenv("PGCONNECT_TIMEOUT", "2", 0); /* DBDParams may overrule it */
    sem_init(&vacant, 0, (unsigned)max);

    single_threaded = ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded) == APR_SUCCESS &&
                      threaded == AP_MPMQ_NOT_SUPPORTED;
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
}

/* apr_reslist connects with its lock held.  A thread that waited for that lock could not give up
   when the server turns out to be silent, so threads wait here. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static int refused; /* whether the last connection was refused */

static void connection_note_refused(const ap_dbd_t *dbd)
{
    if (dbd == NULL && !refused) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0124: mod_dbd can't connect to the database; requests get 503.  With LogLevel "
                "dbd:error it says why each time");
    }
    refused = dbd == NULL;
}

static ap_dbd_t *connection_take(request_rec *r, int *probe)
{
    ap_dbd_t *dbd = NULL;

    pthread_mutex_lock(&opening);
    if (*probe || !server_is_silent()) {
        apr_time_t began = mdl_clock_monotonic();

        if ((dbd = dbd_open(r->pool, ap_server_conf)) == NULL) {
            server_note(probe, mdl_clock_monotonic() - began >= SILENCE);
        }
        connection_note_refused(dbd);
    }
    pthread_mutex_unlock(&opening);
    return dbd;
}

const char *mdl_request_id(request_rec *r)
{
    const char *unique = apr_table_get(r->subprocess_env, "UNIQUE_ID");
    const char *id = apr_table_get(r->notes, REQUEST_NOTE);

    if (id == NULL) {
        id = unique != NULL ? apr_pstrcat(r->pool, "req_", unique, NULL)
                            : mdl_ulid("req_", r->pool);
        apr_table_setn(r->notes, REQUEST_NOTE, id);
    }
    return id;
}

static apr_status_t connection_attach(mdl_connection_t *connection)
{
    request_rec *r = connection->r;
    ap_dbd_t *dbd = connection->dbd;
    apr_status_t rv = mdl_db_attach(&connection->db, dbd->driver, dbd->handle,
                                    mdl_config(r->server)->db_params, dbd->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    mdl_db_set_check(connection->db, mdl_migrate_check);
    mdl_db_set_request(connection->db, mdl_request_id(r));
    connection->before = mdl_db_cost(connection->db);
    if (connection->probe) {
        rv = mdl_db_ask(connection->db, r->pool);
        server_note(&connection->probe, mdl_db_silent(connection->db));
    }
    return rv;
}

static mdl_connection_t *connection_open(request_rec *r)
{
    mdl_connection_t *connection = apr_pcalloc(r->pool, sizeof *connection);

    connection->r = r;
    if (!server_approach(&connection->probe)) {
        return NULL;
    }
    if (!connection_take_turn()) {
        server_note(&connection->probe, connection->probe);
        return NULL;
    }
    connection_hold_signals(SIG_BLOCK);
    connection->dbd = connection_take(r, &connection->probe);
    if (connection->dbd == NULL) {
        connection_hold_signals(SIG_UNBLOCK);
        sem_post(&vacant);
        return NULL;
    }
    connection->opened_at = mdl_metric_clock();
    if (connection_attach(connection) != APR_SUCCESS) {
        mdl_connection_close(connection);
        return NULL;
    }
    return connection;
}

mdl_connection_t *mdl_connection_open(request_rec *r)
{
    mdl_connection_t *connection = connection_open(r);

    mdl_metric_add(connection != NULL ? &mdl_metrics->database_connections
                                      : &mdl_metrics->database_refused,
                   1);
    return connection;
}

apr_status_t mdl_connection_run(mdl_connection_t **connection, request_rec *r, mdl_db_run_fn *how,
                                mdl_effect_fn *effect, void *arg)
{
    if (*connection == NULL) {
        *connection = mdl_connection_open(r);
    }
    return *connection != NULL ? how((*connection)->db, effect, arg, r->pool) : MDL_DB_EGONE;
}

mdl_db_t *mdl_connection_db(mdl_connection_t *connection)
{
    return connection->db;
}

unsigned mdl_connection_rows(const mdl_connection_t *connection)
{
    return mdl_db_cost(connection->db).rows - connection->before.rows;
}

/* A request that took several connections has an entry for each. */
static void connection_note_cost(const mdl_connection_t *connection)
{
    mdl_db_cost_t before = connection->before;
    mdl_db_cost_t now = mdl_db_cost(connection->db);

    apr_table_mergen(connection->r->notes, COST_NOTE,
                     apr_psprintf(connection->r->pool, "statements=%u;trips=%u;rows=%u",
                                  now.statements - before.statements, now.trips - before.trips,
                                  mdl_connection_rows(connection)));
}

void mdl_connection_close(mdl_connection_t *connection)
{
    if (connection != NULL) {
        if (connection->db != NULL) {
            connection_note_cost(connection);
            mdl_db_set_request(connection->db, NULL);
            server_note(&connection->probe, mdl_db_silent(connection->db));
        }
        mdl_metric_add(&mdl_metrics->database_connection_time,
                       mdl_metric_clock() - connection->opened_at);
        dbd_close(ap_server_conf, connection->dbd);
        connection_hold_signals(SIG_UNBLOCK);
        sem_post(&vacant);
    }
}
