/*
 * The connection to PostgreSQL is cut after the first message of a write, then after the second,
 * and so on, whichever side sent it.  The write takes effect at most once.  After it is repeated
 * with its Idempotency-Key, it has taken effect exactly once and has one answer.
 */
#include "t/unit/counter.h"
#include "t/unit/fixtures.h"
#include "t/unit/relay.h"

#include "base/log.h"

#define MOST 1000 /* messages of a transaction */

static const database_t *database; /* not through the relay */
static database_t relayed;
static relay_t relay;
static mdl_db_t *db; /* not through the relay, like onlooker */
static PGconn *onlooker;
static apr_int64_t shop;

/* --- writes --- */

/* A request with a key, which may be sent several times. */
typedef struct {
    mdl_effect_fn *effect;
    void *arg;
    mdl_idempotency_t idempotency;
    mdl_stored_response_t response;
    int runs; /* of the effect */
} request_t;

static apr_status_t request_effect(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    request_t *request = arg;
    apr_status_t rv = mdl_idempotency_find(on, &request->idempotency, &request->response, p);

    if (rv != APR_ENOENT) {
        return rv;
    }
    request->runs++;
    if ((rv = bump(on, p)) != APR_SUCCESS ||
        (rv = request->effect(on, p, request->arg)) != APR_SUCCESS) {
        return rv;
    }
    request->response = (mdl_stored_response_t){
        .status = 201, .body = apr_psprintf(p, "{\"run\": %d}", request->runs)};
    return mdl_idempotency_store(on, &request->idempotency, &request->response, p);
}

/* Retries as the API does: if another transaction was first, its answer is stored by then. */
static apr_status_t request_send(mdl_db_t *on, request_t *request, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_write(on, request_effect, request, p);

    return rv == MDL_DB_ENULL ? mdl_db_write(on, request_effect, request, p) : rv;
}

static request_t put_mapping(int n, apr_pool_t *p)
{
    const char *product = apr_psprintf(p, PRODUCT("%d"), 1000 + n);

    return (request_t){.effect = mdl_mapping_put_effect,
                       .arg = new_mapping(shop, product, ids_of(p, 0), p)};
}

static request_t assign_order(int n, apr_pool_t *p)
{
    return (request_t){.effect = mdl_order_assign_effect,
                       .arg = new_assignment(shop, apr_psprintf(p, "%d", n), p, 1, PRODUCT("1"))};
}

typedef struct {
    const char *name;
    request_t (*make)(int n, apr_pool_t *p);
    int refuses;      /* the relay refuses connections until the client has seen a failure */
    const char *rows; /* a query that counts the rows that the effects insert */
    /* out */
    int messages;
    int refused;  /* requests that failed at first */
    int repeated; /* requests that failed although their effect was committed */
    int wrong;
} write_case_t;

static apr_int64_t number_of(const char *sql)
{
    PGresult *result = PQexec(onlooker, sql);
    apr_int64_t number = PQntuples(result) == 1 ? apr_atoi64(PQgetvalue(result, 0, 0)) : -1;

    PQclear(result);
    return number;
}

static void note_wrong(const write_case_t *test, int n, const char *what)
{
    printf("# %s, cut after message %d: %s\n", test->name, n, what);
}

/* Sends a request whose connection is cut after n messages, and repeats it.  False if there were
   fewer messages. */
static int write_cut(write_case_t *test, int n, apr_pool_t *p)
{
    request_t request = test->make(test->refuses * MOST + n, p);
    apr_int64_t before = count(db, p), rows = number_of(test->rows);
    mdl_db_t *on = database_open(&relayed, p);
    const char *first = NULL;
    apr_status_t rv;
    int cut, runs, wrong = test->wrong;

    request.idempotency = (mdl_idempotency_t){
        .secret = make_secret('s', p),
        .shop_id = shop,
        .key = apr_psprintf(p, "%s-%d-%d", test->name, test->refuses, n),
        .fingerprint = "print",
        .retention = apr_time_from_sec(3600),
        .now = apr_time_now()};
    relay_arm(&relay, n, test->refuses);
    rv = request_send(on, &request, p);
    cut = relay_disarm(&relay);
    runs = request.runs;
    first = rv == APR_SUCCESS ? request.response.body : NULL;
    test->refused += rv != APR_SUCCESS;
    test->wrong += rv != APR_SUCCESS && (!test->refuses || rv != MDL_DB_EGONE);
    test->wrong += count(db, p) > before + 1;
    rv = request_send(on, &request, p);
    test->repeated += first == NULL && request.runs == runs;
    test->wrong += rv != APR_SUCCESS;
    test->wrong += first != NULL && strcmp(first, request.response.body) != 0;
    test->wrong += count(db, p) != before + 1 || number_of(test->rows) != rows + 1;
    if (test->wrong != wrong) {
        note_wrong(test, n, mdl_db_error(on));
    }
    return cut;
}

static void test_write(write_case_t test, apr_pool_t *p)
{
    apr_pool_t *own;
    int cut = 1;

    apr_pool_create(&own, p);
    while (cut && test.messages < MOST) {
        cut = write_cut(&test, test.messages++, own);
        apr_pool_clear(own);
    }
    apr_pool_destroy(own);
    printf("# %s: %d messages, %d requests failed at first, %d of them after their commit\n",
           test.name, test.messages, test.refused, test.repeated);
    ok(test.messages > 20 && !cut, apr_pstrcat(p, test.name, ": cut after each message", NULL));
    is_int(test.wrong, 0, "  each request takes effect once, with one answer");
    if (test.refuses) {
        ok(test.refused > 20, "  most requests fail at first");
        ok(test.repeated > 0, "  some of them fail after their commit");
    } else {
        is_int(test.refused, 0, "  the client does not notice");
    }
}

/* --- reads --- */

#define SHOPS 5

static apr_status_t read_shops(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    mdl_rows_t *rows, *row;
    apr_status_t rv = mdl_db_select(on, &rows, p, MDL_Q(SHOP_LIST));
    int *n = arg;

    *n = 0;
    if (rv != APR_SUCCESS || (rv = mdl_db_select(on, &row, p, MDL_Q(EPOCH_READ))) != APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        ++*n;
    }
    *n += mdl_rows_next(row);
    return APR_SUCCESS;
}

static void test_read(const char *name, mdl_db_run_fn *run, int refuses, apr_pool_t *p)
{
    int cut = 1, wrong = 0, refused = 0, n = 0;
    apr_pool_t *own;

    apr_pool_create(&own, p);
    for (n = 0; cut && n < MOST; n++) {
        mdl_db_t *on = database_open(&relayed, own);
        apr_status_t rv;
        int rows;

        relay_arm(&relay, n, refuses);
        rv = run(on, read_shops, &rows, own);
        cut = relay_disarm(&relay);
        refused += rv != APR_SUCCESS;
        wrong += rv == APR_SUCCESS ? rows != SHOPS + 1 : !refuses || rv != MDL_DB_EGONE;
        wrong += run(on, read_shops, &rows, own) != APR_SUCCESS || rows != SHOPS + 1;
        apr_pool_clear(own);
    }
    apr_pool_destroy(own);
    ok(n > 10 && !cut, apr_pstrcat(p, name, ": cut after each message", NULL));
    is_int(wrong, 0, "  a read fails, or has all its rows");
    ok(refuses ? refused > 5 : refused == 0,
       refuses ? "  most reads fail" : "  the reader does not notice");
}

static void be_silent(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                      const char *message)
{
    (void)file, (void)line, (void)level, (void)rv, (void)message;
}

static void tests(const database_t *on, apr_pool_t *p)
{
    const char *mappings = "SELECT count(*) FROM mapping";
    const char *orders = "SELECT count(*) FROM orders";

    database = on;
    db = database_ready(database, p);
    if (database->dialect != MDL_PGSQL) {
        return;
    }
    shop = make_shop(db, "cut.test", p);
    for (int i = 1; i < SHOPS; i++) {
        make_shop(db, apr_psprintf(p, "cut-%d.test", i), p);
    }
    make_mapping(db, new_mapping(shop, PRODUCT("1"), ids_of(p, 0), p), p);
    onlooker = PQconnectdb(database->params);
    /* Reconnecting does not repeat database_open's settings. */
    pgsql_command(database->params, apr_pstrcat(p, "ALTER DATABASE ", PQdb(onlooker),
                                                " SET synchronous_commit = off", NULL));
    relay_start(&relay, database->params, p);
    relayed = *database;
    relayed.params = apr_pstrcat(p, database->params, " host=", relay.folder, NULL);
    mdl_log_set_sink(be_silent);
    test_write((write_case_t){.name = "a mapping", .make = put_mapping, .rows = mappings}, p);
    test_write((write_case_t){.name = "a mapping, without reconnecting",
                              .make = put_mapping,
                              .rows = mappings,
                              .refuses = 1},
               p);
    test_write((write_case_t){.name = "an order, without reconnecting",
                              .make = assign_order,
                              .rows = orders,
                              .refuses = 1},
               p);
    test_read("a read, without reconnecting", mdl_db_read, 1, p);
    test_read("a snapshot", mdl_db_snapshot, 0, p);
    relay_stop(&relay, p);
    PQfinish(onlooker);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
