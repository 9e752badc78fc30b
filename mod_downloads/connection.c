#include "connection.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <ap_mpm.h>
#include <http_core.h>
#include <http_main.h>
#include <mod_dbd.h>

#include "base/log.h"
#include "config.h"

#define TURN_WAIT_S 5

#define COST_NOTE "downloads-db"

struct mdl_connection_t {
    request_rec *r;
    ap_dbd_t *dbd;
    mdl_db_t *db;
    mdl_db_cost_t before;
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

/* mod_dbd would let a thread wait for ever, so the threads wait here.  Each child has a semaphore
   of its own, for it is not shared. */
static sem_t vacant;

static int connection_take_turn(void)
{
    struct timespec deadline;

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
    return 1;
}

void mdl_connection_init(int max)
{
    int threaded;

    sem_init(&vacant, 0, (unsigned)max);

    single_threaded = ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded) == APR_SUCCESS &&
                      threaded == AP_MPMQ_NOT_SUPPORTED;
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
}

mdl_connection_t *mdl_connection_open(request_rec *r)
{
    mdl_connection_t *connection = apr_pcalloc(r->pool, sizeof *connection);

    if (!connection_take_turn()) {
        return NULL;
    }
    connection_hold_signals(SIG_BLOCK);
    connection->dbd = dbd_open(r->pool, ap_server_conf);
    if (connection->dbd == NULL) {
        connection_hold_signals(SIG_UNBLOCK);
        sem_post(&vacant);
        return NULL;
    }
    if (mdl_db_attach(&connection->db, connection->dbd->driver, connection->dbd->handle,
                      mdl_config(r->server)->db_params, connection->dbd->pool) != APR_SUCCESS) {
        mdl_connection_close(connection);
        return NULL;
    }
    connection->r = r;
    connection->before = mdl_db_cost(connection->db);
    return connection;
}

mdl_db_t *mdl_connection_db(mdl_connection_t *connection)
{
    return connection->db;
}

unsigned mdl_connection_rows(const mdl_connection_t *connection)
{
    return mdl_db_cost(connection->db).rows - connection->before.rows;
}

/* A request that has taken several connections has a word for each. */
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
        if (connection->r != NULL) {
            connection_note_cost(connection);
        }
        dbd_close(ap_server_conf, connection->dbd);
        connection_hold_signals(SIG_UNBLOCK);
        sem_post(&vacant);
    }
}
