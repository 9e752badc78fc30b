#include "db/dialect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>
#include <libpq-fe.h>

#include "base/clock.h"

/* Milliseconds.  ANSWER_WAIT is above the server's own limits for one statement, but several
   statements that each wait for a lock may reach it together. */
#define ANSWER_WAIT 7000
#define PACKET_WAIT 2000 /* until the peer's kernel must have acknowledged */
#define TLS_NAP     50
#define NO_ANSWER   "the server has not answered for 7 s"

#define MAX_SENT            64      /* statements without an answer yet */
#define TRANSACTION_ABORTED "25P02" /* SQLSTATE */
#define OID_INT8            20      /* of pg_type */
#define OID_TEXT            25
#define OID_INT8_ARRAY      1016

/* A statement in the pipeline. */
typedef struct {
    const char *label;
    mdl_result_t *result; /* NULL: not wanted */
    apr_pool_t *pool;     /* of the result */
    void **prepared;      /* of a statement that is being prepared, else NULL */
} sent_t;

typedef struct {
    PGconn *conn;
    int backend;   /* pid of the server process that has the session's settings */
    int unlimited; /* waits for an answer are not limited */
    int cut;       /* we closed the connection because no answer came */
    int piped;     /* in libpq's pipeline mode */
    sent_t sent[MAX_SENT];
    int count;
    const char *failed; /* label of the first statement that failed since the last flush */
    char sqlstate[6];   /* of the last error; "" if the connection is lost */
    char error[512];
} pgsql_t;

static void *pgsql_attach(void *native, apr_pool_t *p)
{
    pgsql_t *pgsql = apr_pcalloc(p, sizeof *pgsql);

    pgsql->conn = native;
    return pgsql;
}

/* Keeps the error of a result, or the connection's if result is NULL.  Ignores a statement that
   failed only because the transaction was aborted before. */
static void pgsql_keep_error(pgsql_t *pgsql, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorMessage(result);

    if (state != NULL && strcmp(state, TRANSACTION_ABORTED) == 0) {
        return;
    }
    apr_cpystrn(pgsql->sqlstate, state != NULL ? state : "", sizeof pgsql->sqlstate);
    if (pgsql->cut) {
        text = NO_ANSWER;
    } else if (*text == '\0') {
        text = PQerrorMessage(pgsql->conn);
    }
    apr_cpystrn(pgsql->error, text, sizeof pgsql->error);
}

/* --- waiting --- */

static apr_time_t pgsql_deadline(void)
{
    return mdl_clock_monotonic() + apr_time_from_msec(ANSWER_WAIT);
}

/* Waits for events on the socket and returns them.  At the deadline it shuts the connection down,
   so that libpq finds it lost.  Returns 0 then, and after a nap. */
static int pgsql_wait(pgsql_t *pgsql, short events, apr_time_t deadline, int nap)
{
    struct pollfd socket = {.fd = PQsocket(pgsql->conn), .events = events};
    apr_time_t left = deadline - mdl_clock_monotonic();
    int ms = left > 0 ? (int)apr_time_as_msec(left) + 1 : 0;

    if (pgsql->unlimited || (nap > 0 && nap < ms)) {
        ms = nap > 0 ? nap : -1;
    }
    if (poll(&socket, 1, ms) > 0) {
        return socket.revents;
    }
    if (ms == 0) {
        pgsql->cut = 1;
        shutdown(socket.fd, SHUT_RDWR);
    }
    return 0;
}

/* PQgetResult with a deadline.  Naps because data that TLS has already read causes no event. */
static PGresult *pgsql_result(pgsql_t *pgsql)
{
    apr_time_t deadline = pgsql_deadline();
    int nap = PQsslInUse(pgsql->conn) ? TLS_NAP : 0;

    while (PQisBusy(pgsql->conn) && PQsocket(pgsql->conn) >= 0) {
        pgsql_wait(pgsql, POLLIN, deadline, nap);
        if (!PQconsumeInput(pgsql->conn)) {
            break;
        }
    }
    return PQgetResult(pgsql->conn);
}

/* Flushes libpq's send buffer and reads meanwhile: a server with unread answers stops reading. */
static void pgsql_send_rest(pgsql_t *pgsql)
{
    apr_time_t deadline = pgsql_deadline();

    while (PQflush(pgsql->conn) > 0 && PQsocket(pgsql->conn) >= 0) {
        if ((pgsql_wait(pgsql, POLLIN | POLLOUT, deadline, 0) & POLLIN) &&
            !PQconsumeInput(pgsql->conn)) {
            return;
        }
    }
}

/* --- answers --- */

/* A clean-up that forgets a result if its pool ends before the answer has come.  A result that has
   come may outlive the connection. */
typedef struct {
    pgsql_t *pgsql;
    mdl_result_t *result;
} release_t;

static apr_status_t pgsql_release(void *data)
{
    const release_t *release = data;

    for (int i = 0; release->result->pending && i < release->pgsql->count; i++) {
        if (release->pgsql->sent[i].result == release->result) {
            release->pgsql->sent[i].result = NULL;
        }
    }
    PQclear(release->result->source);
    return APR_SUCCESS;
}

/* The texts stay in libpq's result, which the pool then owns. */
static void pgsql_read_rows(PGresult *from, mdl_result_t *result, apr_pool_t *p)
{
    mdl_cell_t *cell;

    result->source = from;
    result->changed = apr_atoi64(PQcmdTuples(from));
    result->rows = PQntuples(from);
    result->columns = PQnfields(from);
    cell = apr_pcalloc(p, sizeof *cell * (apr_size_t)result->rows * (apr_size_t)result->columns);
    result->cells = cell;
    for (int row = 0; row < result->rows; row++) {
        for (int column = 0; column < result->columns; column++, cell++) {
            if (!PQgetisnull(from, row, column)) {
                cell->type = MDL_CELL_TEXT;
                cell->text = PQgetvalue(from, row, column);
            }
        }
    }
}

/* COMMIT of a failed transaction reports success with the tag ROLLBACK. */
static int pgsql_is_good(const sent_t *sent, PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        return 1;
    case PGRES_COMMAND_OK:
        return strcmp(sent->label, "COMMIT") != 0 || strcmp(PQcmdStatus(result), "COMMIT") == 0;
    default:
        return 0;
    }
}

static void pgsql_take_answer(pgsql_t *pgsql, const sent_t *sent, PGresult *answer)
{
    int good = pgsql_is_good(sent, answer);

    if (!good && pgsql->failed == NULL) {
        pgsql->failed = sent->label;
        pgsql_keep_error(pgsql, answer);
    }
    if (!good && sent->prepared != NULL) {
        *sent->prepared = NULL;
    }
    if (sent->result != NULL) {
        sent->result->pending = 0;
    }
    if (good && sent->result != NULL) {
        pgsql_read_rows(answer, sent->result, sent->pool);
    } else {
        PQclear(answer);
    }
}

/* Reads the answer to PQpipelineSync; there is none if the connection was lost. */
static void pgsql_read_sync(pgsql_t *pgsql)
{
    PGresult *result = pgsql_result(pgsql);

    while (result != NULL && PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
        PQclear(result);
        result = pgsql_result(pgsql);
    }
    PQclear(result);
}

static void pgsql_read_answers(pgsql_t *pgsql)
{
    int count = pgsql->count;

    PQpipelineSync(pgsql->conn);
    pgsql_send_rest(pgsql);
    pgsql->count = 0;
    for (int i = 0; i < count; i++) {
        PGresult *end;

        pgsql_take_answer(pgsql, &pgsql->sent[i], pgsql_result(pgsql));
        while ((end = pgsql_result(pgsql)) != NULL) {
            PQclear(end);
        }
    }
    pgsql_read_sync(pgsql);
}

static int pgsql_flush(void *native, const char **failed)
{
    pgsql_t *pgsql = native;

    if (pgsql->count == 0 && pgsql->failed == NULL) {
        return 0;
    }
    if (pgsql->count > 0) {
        pgsql_read_answers(pgsql);
    }
    *failed = pgsql->failed;
    pgsql->failed = NULL;
    return 1;
}

/* --- statements --- */

static void pgsql_begin(void *native)
{
    pgsql_t *pgsql = native;

    pgsql->piped = PQenterPipelineMode(pgsql->conn);
    PQsetnonblocking(pgsql->conn, pgsql->piped);
}

static void pgsql_end(void *native)
{
    pgsql_t *pgsql = native;

    if (pgsql->piped) {
        PQexitPipelineMode(pgsql->conn);
        PQsetnonblocking(pgsql->conn, 0);
    }
    pgsql->piped = 0;
}

/* Records a statement about to be sent; if the pipeline is full, reads its answers first. */
static void pgsql_note_sent(pgsql_t *pgsql, const sent_t *sent)
{
    if (pgsql->count == MAX_SENT) {
        pgsql_read_answers(pgsql);
    }
    pgsql->sent[pgsql->count++] = *sent;
}

/* Returns libpq's result of sending; outside of a pipeline also waits for the answer. */
static int pgsql_sent(pgsql_t *pgsql, int alone, int good)
{
    const char *failed = NULL;

    if (!good) {
        const sent_t *unsent = &pgsql->sent[--pgsql->count];

        if (unsent->result != NULL) {
            unsent->result->pending = 0;
        }
        pgsql_keep_error(pgsql, NULL);
    }
    if (alone) {
        pgsql_flush(pgsql, &failed);
        pgsql_end(pgsql);
    }
    return !good || failed != NULL;
}

static Oid pgsql_type_of(char type)
{
    return type == 's' ? OID_TEXT : type == 'a' ? OID_INT8_ARRAY : OID_INT8;
}

/* The server knows the statement by its name; *prepared only marks it as prepared. */
static void pgsql_prepare(void *native, const mdl_statement_text_t *statement, void **prepared)
{
    pgsql_t *pgsql = native;
    int alone = !pgsql->piped;
    Oid types[MDL_MAX_ARGUMENTS];
    int n = (int)strlen(statement->types);

    for (int i = 0; i < n; i++) {
        types[i] = pgsql_type_of(statement->types[i]);
    }
    if (alone) {
        pgsql_begin(pgsql);
    }
    pgsql_note_sent(pgsql, &(sent_t){.label = statement->label, .prepared = prepared});
    *prepared = pgsql;
    if (pgsql_sent(
            pgsql, alone,
            PQsendPrepare(pgsql->conn, statement->label, statement->text[MDL_PGSQL], n, types))) {
        *prepared = NULL;
    }
}

static const char *pgsql_value(char type, const mdl_arg_t *arg, apr_pool_t *p)
{
    if (mdl_arg_null(type, arg)) {
        return NULL;
    }
    return type == 's'   ? arg->text
           : type == 'a' ? mdl_db_ids_text(arg->ids, '{', '}', p)
                         : apr_psprintf(p, "%" APR_INT64_T_FMT, arg->number);
}

static int pgsql_run(void *native, const mdl_statement_text_t *statement, void *prepared,
                     const mdl_arg_t *args, mdl_result_t *result, apr_pool_t *p)
{
    pgsql_t *pgsql = native;
    int alone = !pgsql->piped;
    const char *values[MDL_MAX_ARGUMENTS];
    int n = (int)strlen(statement->types);

    (void)prepared;
    for (int i = 0; i < n; i++) {
        values[i] = pgsql_value(statement->types[i], &args[i], p);
    }
    if (alone) {
        pgsql_begin(pgsql);
    }
    if (result != NULL) {
        release_t *release = apr_palloc(p, sizeof *release);

        *release = (release_t){pgsql, result};
        apr_pool_cleanup_register(p, release, pgsql_release, apr_pool_cleanup_null);
        result->pending = 1;
    }
    pgsql_note_sent(pgsql, &(sent_t){.label = statement->label, .result = result, .pool = p});
    return pgsql_sent(pgsql, alone,
                      PQsendQueryPrepared(pgsql->conn, statement->label, n, values, NULL, NULL, 0));
}

/* The result of the last command. */
static PGresult *pgsql_exec(pgsql_t *pgsql, const char *sql)
{
    PGresult *last = NULL;
    PGresult *next;

    if (PQsendQuery(pgsql->conn, sql)) {
        while ((next = pgsql_result(pgsql)) != NULL) {
            PQclear(last);
            last = next;
        }
    }
    return last;
}

/* sql may have several commands only outside of a pipeline. */
static int pgsql_command(void *native, const char *sql)
{
    pgsql_t *pgsql = native;
    PGresult *result;
    ExecStatusType status;

    if (pgsql->piped) {
        pgsql_note_sent(pgsql, &(sent_t){.label = sql});
        return pgsql_sent(pgsql, 0,
                          PQsendQueryParams(pgsql->conn, sql, 0, NULL, NULL, NULL, NULL, 0));
    }
    result = pgsql_exec(pgsql, sql);
    status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        pgsql_keep_error(pgsql, result);
    }
    PQclear(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
}

static int pgsql_begin_write(void *native, apr_time_t patience)
{
    (void)patience;
    return pgsql_command(native, "BEGIN");
}

/* --- sessions and errors --- */

/* Lets the kernel close a connection to a vanished host.  Fails harmlessly on a Unix socket. */
static void pgsql_watch_host(const pgsql_t *pgsql)
{
    static const struct {
        int level, option, value;
    } options[] = {{IPPROTO_TCP, TCP_USER_TIMEOUT, PACKET_WAIT},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 1},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 1}};

    for (apr_size_t i = 0; i < sizeof options / sizeof *options; i++) {
        setsockopt(PQsocket(pgsql->conn), options[i].level, options[i].option, &options[i].value,
                   sizeof options[i].value);
    }
}

static apr_status_t pgsql_session(void *native)
{
    pgsql_t *pgsql = native;

    pgsql->backend = PQbackendPID(pgsql->conn);
    pgsql->cut = 0;
    pgsql_watch_host(pgsql);
    /* Verbose messages have the SQLSTATE, which is the same in every language of the server.
       Generic plans: every statement finds its few rows by an index, however large the table has
       become since planning.  By itself the planner would scan small tables, sort rows that an
       index has in order, or use parallel index scans, until the tables are analyzed.  The penalty
       for disabled methods counts as cost and would trigger JIT compilation, so jit is off. */
    PQsetErrorVerbosity(pgsql->conn, PQERRORS_VERBOSE);
    return pgsql_command(native, "SET lock_timeout = 5000; SET statement_timeout = 6000;"
                                 "SET idle_in_transaction_session_timeout = 30000;"
                                 "SET client_min_messages = warning;"
                                 "SET plan_cache_mode = force_generic_plan;"
                                 "SET enable_seqscan = off; SET enable_hashjoin = off;"
                                 "SET enable_mergejoin = off; SET enable_bitmapscan = off;"
                                 "SET max_parallel_workers_per_gather = 0; SET jit = off")
               ? MDL_DB_EGONE
               : APR_SUCCESS;
}

static int pgsql_is_new(void *native)
{
    const pgsql_t *pgsql = native;

    return PQbackendPID(pgsql->conn) != pgsql->backend;
}

static void pgsql_limit(void *native, int limited)
{
    pgsql_t *pgsql = native;

    pgsql->unlimited = !limited;
}

static apr_status_t pgsql_classify(void *native)
{
    const pgsql_t *pgsql = native;
    static const struct {
        const char *state; /* or its first two characters */
        apr_status_t error;
    } classes[] = {
        {"23505", MDL_DB_EUNIQUE}, {"23502", MDL_DB_ENULL},   {"22012", MDL_DB_ENULL},
        {"55P03", MDL_DB_ELOCKED}, {"57014", MDL_DB_ELOCKED}, {"40001", MDL_DB_ERETRY},
        {"40P01", MDL_DB_ERETRY},  {"26000", MDL_DB_ESTALE},  {"0A000", MDL_DB_ESTALE},
        {"42P05", MDL_DB_ESTALE},  {"53100", MDL_DB_EFULL},   {"25P03", MDL_DB_EGONE},
        {"08", MDL_DB_EGONE},      {"57P", MDL_DB_EGONE},     {"53300", MDL_DB_EGONE},
        {"25006", MDL_DB_EGONE},   {"58030", MDL_DB_EGONE},
    };

    if (PQstatus(pgsql->conn) != CONNECTION_OK || pgsql->sqlstate[0] == '\0') {
        return MDL_DB_EGONE;
    }
    for (apr_size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(pgsql->sqlstate, classes[i].state, strlen(classes[i].state)) == 0) {
            return classes[i].error;
        }
    }
    return MDL_DB_EOTHER;
}

static const char *pgsql_error_text(void *native)
{
    const pgsql_t *pgsql = native;

    return pgsql->error;
}

static apr_status_t pgsql_reset(void *native)
{
    pgsql_t *pgsql = native;

    PQreset(pgsql->conn);
    pgsql->cut = 0;
    PQsetnonblocking(pgsql->conn, 0);
    if (PQstatus(pgsql->conn) != CONNECTION_OK) {
        pgsql_keep_error(pgsql, NULL);
        return MDL_DB_EGONE;
    }
    return APR_SUCCESS;
}

const mdl_dialect_ops_t mdl_dialect_pgsql = {
    .name = "pgsql",
    .dialect = MDL_PGSQL,
    .attach = pgsql_attach,
    .session = pgsql_session,
    .is_new = pgsql_is_new,
    .limit = pgsql_limit,
    .prepare = pgsql_prepare,
    .run = pgsql_run,
    .command = pgsql_command,
    .begin = pgsql_begin,
    .flush = pgsql_flush,
    .end = pgsql_end,
    .classify = pgsql_classify,
    .error_text = pgsql_error_text,
    .reset = pgsql_reset,
    .begin_write = pgsql_begin_write,
    .begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    .wait_briefly = "SET LOCAL lock_timeout = 250",
};
