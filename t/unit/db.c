/*
 * A connection: values, error classes, transactions.  Migrations are in migrate.c, lost connections
 * in db_lost.c, other programs' locks and full disks in db_faults.c.
 */
#include "t/unit/counter.h"
#include "t/unit/number.h"

#include <limits.h>
#include <sqlite3.h>

#include <apr_dbd.h>

static mdl_db_t *db;

/* Rows to test with: a shop, whose email may be NULL, and a key, whose time may be any number. */

static apr_int64_t insert_shop(const char *name, const char *domain, const char *email,
                               apr_pool_t *p)
{
    mdl_rows_t *row;

    if (mdl_db_select_one(db, &row, p,
                          MDL_Q(SHOP_INSERT, .name = name, .domain = domain, .email = email,
                                .now = 1)) != APR_SUCCESS) {
        return 0;
    }
    return mdl_rows_int(row, 0);
}

static apr_status_t insert_key(mdl_db_t *on, apr_int64_t shop, const char *id, const char *name,
                               apr_int64_t created_at, apr_pool_t *p)
{
    return mdl_db_exec(on, NULL, p,
                       MDL_Q(API_KEY_INSERT, .id = id, .shop_id = shop, .name = name,
                             .scope = "full", .secret_mac = "mac", .secret_id = "id",
                             .created_at = created_at, .expires_at = 0));
}

static mdl_rows_t *key_row(const char *id, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, &row, p, MDL_Q(API_KEY_BY_ID, id)) == APR_SUCCESS ? row : NULL;
}

static void test_values(apr_pool_t *p)
{
    char *large = apr_palloc(p, 100001);
    const char *odd = "it's \"quoted\", 100 % \\ and \xc3\xa9\xe2\x82\xac\nnext line";
    apr_int64_t shop = insert_shop(odd, "values.test", NULL, p);
    mdl_rows_t *row;

    ok(shop > 0, "INSERT ... RETURNING gives the new id");
    is_int(mdl_db_select_one(db, &row, p, MDL_Q(SHOP_BY_ID, shop)), APR_SUCCESS,
           "a row is found by an integer argument");
    is_str(mdl_rows_text(row, 1), odd, "text is read as it was written");
    is_str(mdl_rows_text(row, 3), NULL, "a NULL argument is read as NULL");
    ok(mdl_rows_null(row, 3) && !mdl_rows_null(row, 1), "NULL and text are different");
    is_int(mdl_rows_int(row, 3), 0, "NULL as an integer is 0");

    shop = insert_shop("", "empty.test", "", p);
    mdl_db_select_one(db, &row, p, MDL_Q(SHOP_BY_ID, shop));
    is_str(mdl_rows_text(row, 3), "", "an empty text is not NULL");

    memset(large, 'x', 100000);
    large[100000] = '\0';
    shop = insert_shop(large, "large.test", NULL, p);
    mdl_db_select_one(db, &row, p, MDL_Q(SHOP_BY_ID, shop));
    is_str(mdl_rows_text(row, 1), large, "a text of 100,000 bytes is read whole");

    insert_key(db, shop, "smallest", "n", INT64_MIN, p);
    insert_key(db, shop, "largest", "n", INT64_MAX, p);
    is_int(mdl_rows_int(key_row("smallest", p), 4), INT64_MIN,
           "the smallest integer is read as written");
    is_int(mdl_rows_int(key_row("largest", p), 4), INT64_MAX,
           "the largest integer is read as written");
    ok(mdl_rows_null(key_row("largest", p), 6), "a NULL integer is NULL");
}

static void test_rows(apr_pool_t *p)
{
    apr_int64_t changed = -1;
    mdl_rows_t *rows;
    int n = 0;

    is_int(mdl_db_select_one(db, &rows, p, MDL_Q(SHOP_BY_ID, -5)), APR_ENOENT,
           "a missing row is APR_ENOENT");
    is_int(mdl_db_select(db, &rows, p, MDL_Q(SHOP_BY_ID, -5)), APR_SUCCESS,
           "a select without rows is not an error");
    ok(!mdl_rows_next(rows), "it has no first row");

    mdl_db_select(db, &rows, p, MDL_Q(SHOP_LIST));
    while (mdl_rows_next(rows)) {
        n++;
    }
    is_int(n, 3, "each row is returned once");
    ok(!mdl_rows_next(rows), "after the last row there is none, however often one asks");

    mdl_db_exec(db, &changed, p, MDL_Q(EPOCH_BUMP));
    is_int(changed, 1, "an UPDATE returns how many rows it changed");
    mdl_db_exec(db, &changed, p, MDL_Q(API_KEY_REVOKE, .now = 1, .id = "nobody", .shop_id = 0));
    is_int(changed, 0, "it returns 0 if it changed none");
    is_int(insert_shop("other", "values.test", NULL, p), 0,
           "ON CONFLICT DO NOTHING returns no row");
}

/* An effect that reads a shop's name as a value of an enum, after a write. */
typedef struct {
    apr_int64_t shop;
    int column;
    unsigned value;
} enum_read_t;

static apr_status_t read_enum(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    static const char *const names[] = {"zero", "one", "two", NULL};
    enum_read_t *read = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(on, &row, p, MDL_Q(SHOP_BY_ID, read->shop));

    if (rv == APR_SUCCESS) {
        read->value = mdl_rows_enum(row, read->column, names);
    }
    return rv;
}

static apr_status_t write_and_read_enum(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    bump(on, p);
    return read_enum(on, p, arg);
}

static void test_enums(apr_pool_t *p)
{
    enum_read_t known = {insert_shop("two", "two.test", NULL, p), 1, 99};
    enum_read_t unknown = {insert_shop("three", "three.test", NULL, p), 1, 99};
    enum_read_t null = {known.shop, 3, 99};
    apr_int64_t before = count(db, p);

    is_int(mdl_db_read(db, read_enum, &known, p), APR_SUCCESS, "an enum's name is read");
    is_int(known.value, 2, "its value is found");
    is_int(mdl_db_read(db, read_enum, &unknown, p), MDL_DB_EOTHER,
           "an unknown name of an enum is an error");
    is_int(unknown.value, 0, "its value is 0");
    is_int(mdl_db_snapshot(db, read_enum, &null, p), MDL_DB_EOTHER, "NULL is an error, too");
    is_int(mdl_db_write(db, write_and_read_enum, &unknown, p), MDL_DB_EOTHER,
           "a transaction that reads an unknown name fails");
    is_int(count(db, p), before, "and it is rolled back");
    is_int(mdl_db_write(db, write_and_read_enum, &known, p), APR_SUCCESS,
           "the next transaction succeeds");
}

static apr_status_t ignore_unique(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_int64_t shop = *(apr_int64_t *)arg;

    bump(on, p);
    insert_key(on, shop, "secret-twice", "n", 1, p);
    return APR_SUCCESS;
}

static void test_errors(apr_pool_t *p)
{
    apr_int64_t shop = insert_shop("errors", "errors.test", NULL, p);
    apr_int64_t before;

    insert_key(db, shop, "secret-twice", "first", 1, p);
    is_int(insert_key(db, shop, "secret-twice", "second", 1, p), MDL_DB_EUNIQUE,
           "a second row of one key is MDL_DB_EUNIQUE");
    ok(*mdl_db_error(db) != '\0' && strchr(mdl_db_error(db), '\n') == NULL,
       "the database's message is kept in one line");
    ok(strstr(mdl_db_error(db), "secret-twice") == NULL, "it does not contain the values");
    is_str(mdl_rows_text(key_row("secret-twice", p), 2), "first", "the first row stays");
    is_int(insert_key(db, 999999, "orphan", "n", 1, p), MDL_DB_EOTHER,
           "a row without its parent is MDL_DB_EOTHER");
    is_int(insert_key(db, shop, "nameless", NULL, 1, p), MDL_DB_ENULL,
           "NULL in a NOT NULL column is MDL_DB_ENULL");
    is_int(mdl_db_command(db, "SELECT no_such_column FROM shop"), MDL_DB_EOTHER,
           "an invalid command is MDL_DB_EOTHER");

    before = count(db, p);
    is_int(mdl_db_write(db, ignore_unique, &shop, p), MDL_DB_EUNIQUE,
           "a transaction whose effect ignores an error fails with that error");
    ok(strcasestr(mdl_db_error(db), "unique") != NULL, "the database's message is kept");
    is_int(count(db, p), before, "and the transaction is rolled back");
}

static apr_status_t misuse(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const char *how = arg;
    mdl_rows_t *row;

    bump(on, p);
    if (*how == 'f') {
        return mdl_db_exec(on, NULL, p, MDL_Q_AS(MDL_Q_API_KEY_REVOKE, SHOP_BY_ID, 1));
    }
    if (*how == 'n') {
        return mdl_db_exec(on, NULL, p, MDL_Q_AS(MDL_Q_SHOP_LOCK, ASSIGNMENT_QUANTITIES, 1));
    }
    return mdl_db_select_one(on, &row, p, MDL_Q_AS(MDL_Q_SHOP_BY_ID, API_KEY_BY_ID, "1"));
}

static void test_arguments_refused(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);

    is_int(mdl_db_write(db, misuse, "few", p), MDL_DB_EOTHER, "too few arguments are refused");
    is_int(mdl_db_write(db, misuse, "name", p), MDL_DB_EOTHER, "those of other names are refused");
    is_int(mdl_db_write(db, misuse, "type", p), MDL_DB_EOTHER,
           "a text argument for an integer is refused");
    is_int(count(db, p), before, "and their transactions are rolled back");
}

static apr_status_t bump_and_return(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_status_t rv = bump(on, p);

    return rv == APR_SUCCESS ? *(apr_status_t *)arg : rv;
}

typedef struct {
    mdl_db_t *other;
    apr_int64_t seen; /* read by the other connection before the commit */
} onlooker_t;

static apr_status_t bump_before_onlooker(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    onlooker_t *onlooker = arg;
    apr_status_t rv = bump(on, p);

    onlooker->seen = count(onlooker->other, p);
    return rv;
}

static void test_transactions(const database_t *database, apr_pool_t *p)
{
    onlooker_t onlooker = {.other = database_open(database, p)};
    apr_int64_t before = count(db, p);
    apr_status_t own = APR_EGENERAL;

    is_int(mdl_db_write(db, bump_and_return, &own, p), APR_EGENERAL,
           "the transaction returns what the effect returned");
    is_int(count(db, p), before, "an effect that fails is rolled back");
    is_int(mdl_db_write(db, bump_before_onlooker, &onlooker, p), APR_SUCCESS,
           "the connection can be used for the next transaction");
    is_int(onlooker.seen, before, "another connection sees nothing before the commit");
    is_int(count(onlooker.other, p), before + 1, "it sees the change after the commit");
}

/* An effect that counts, and succeeds at its run number "good". */
typedef struct {
    atomic_llong counters[40];
    int runs;
    int good;
    apr_status_t rv; /* of the other runs */
} counting_t;

static apr_status_t count_things(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    counting_t *counting = arg;
    apr_status_t rv = mdl_db_exec(on, NULL, p, MDL_Q(EPOCH_BUMP));

    for (int i = 0; i < 40; i++) {
        mdl_db_count(on, &counting->counters[i], i);
    }
    mdl_db_count(on, &counting->counters[1], 1);
    return ++counting->runs == counting->good ? rv : counting->rv;
}

static void test_counts(apr_pool_t *p)
{
    counting_t counting = {.good = 1};
    counting_t refused = {.rv = APR_EGENERAL};
    counting_t again = {.good = 2, .rv = MDL_DB_EGONE};

    mdl_db_write(db, count_things, &counting, p);
    is_int(counting.counters[1], 2, "what a committed effect counted is added up");
    is_int(counting.counters[39], 39, "also if that is a lot");
    mdl_db_write(db, count_things, &refused, p);
    is_int(refused.counters[1], 0, "what a refused one counted is not");
    is_int(mdl_db_write(db, count_things, &again, p), APR_SUCCESS, "an effect is run again");
    is_int(again.counters[1], 2, "and what it counted is counted once");
}

static void test_open(const database_t *database, apr_pool_t *p)
{
    const char *nowhere = database->dialect == MDL_SQLITE3
                              ? "/nonexistent/folder/db"
                              : "host=/nonexistent dbname=x connect_timeout=1";
    const char *why = NULL;
    mdl_db_t *none;

    is_int(mdl_db_open(&none, "nosuchdriver", "x", &why, p), APR_EINVAL,
           "an unknown driver is APR_EINVAL");
    ok(why != NULL && strstr(why, "nosuchdriver") != NULL, "the reason names it");
    ok(why != NULL && strstr(why, "libaprutil1-dbd-nosuchdriver") != NULL,
       "the reason names the package that may contain it");
    is_int(mdl_db_open(&none, database->driver, nowhere, &why, p), MDL_DB_EGONE,
           "a database that does not answer is MDL_DB_EGONE");
    ok(why != NULL && *why != '\0' && strchr(why, '\n') == NULL, "the reason is one line");
}

#define MANY 200 /* more statements than a connection sends before it waits for answers */

/* Sends many statements without reading their results; one of them may be invalid. */
static apr_status_t bump_many(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    int faulty = *(const int *)arg;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < MANY; i++) {
        rv = i == faulty ? insert_key(on, 999999, "orphan", "n", 1, p) : bump(on, p);
    }
    return rv;
}

/* Requests rows that are not read, in a pool that ends before the answer has come. */
static apr_status_t bump_after_unread(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_pool_t *short_lived;
    mdl_rows_t *rows;
    apr_status_t rv;

    (void)arg;
    apr_pool_create(&short_lived, p);
    rv = mdl_db_select(on, &rows, short_lived, MDL_Q(SHOP_LIST));
    apr_pool_destroy(short_lived);
    return rv == APR_SUCCESS ? bump(on, p) : rv;
}

static void test_unanswered(apr_pool_t *p)
{
    apr_int64_t before = count(db, p);
    int none = -1, early = 10, late = MANY - 10;

    is_int(mdl_db_write(db, bump_many, &none, p), APR_SUCCESS, "many statements are run");
    is_int(count(db, p), before + MANY, "each of them takes effect");
    is_int(mdl_db_write(db, bump_many, &early, p), MDL_DB_EOTHER,
           "an early statement of many fails");
    is_int(mdl_db_write(db, bump_many, &late, p), MDL_DB_EOTHER, "a late statement of many fails");
    is_int(count(db, p), before + MANY, "one failed statement rolls all of them back");
    is_int(mdl_db_write(db, bump_after_unread, NULL, p), APR_SUCCESS,
           "the pool of a result may end before the answer comes");
    is_int(count(db, p), before + MANY + 1, "the statement after it takes effect");
}

/* A connection opened and closed as by mod_dbd. */
typedef struct {
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
} opened_t;

static apr_status_t opened_close(void *data)
{
    opened_t *opened = data;

    is_int(apr_dbd_close(opened->driver, opened->handle), APR_SUCCESS,
           "the connection can be closed");
    return APR_SUCCESS;
}

static void test_attach(const database_t *database, apr_pool_t *p)
{
    opened_t opened;
    apr_pool_t *connection;
    mdl_db_t *first, *second;

    apr_pool_create(&connection, p);
    apr_dbd_get_driver(p, database->driver, &opened.driver);
    if (!ok(apr_dbd_open(opened.driver, connection, database->params, &opened.handle) ==
                APR_SUCCESS,
            "a connection is opened elsewhere")) {
        return;
    }
    apr_pool_cleanup_register(connection, &opened, opened_close, apr_pool_cleanup_null);
    is_int(mdl_db_attach(&first, opened.driver, opened.handle, database->params, connection),
           APR_SUCCESS, "it can be attached");
    is_int(mdl_db_dialect(first), database->dialect, "its dialect is known");
    is_int(count(first, p), count(db, p), "it can be used");
    mdl_db_attach(&second, opened.driver, opened.handle, database->params, connection);
    ok(first == second, "attaching it again gives the same object");
    apr_pool_destroy(connection);
}

/* Reads the counter before and after another connection has changed it. */
typedef struct {
    mdl_db_t *other;
    int ends; /* end the snapshot in between */
    apr_int64_t before;
    apr_int64_t after;
} twice_t;

static apr_status_t read_twice(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    twice_t *twice = arg;
    apr_status_t rv = read_count(on, p, &twice->before);

    if (rv == APR_SUCCESS && twice->ends) {
        rv = mdl_db_end_snapshot(on);
    }
    if (rv == APR_SUCCESS && (rv = mdl_db_write(twice->other, bump_once, NULL, p)) == APR_SUCCESS) {
        rv = read_count(on, p, &twice->after);
    }
    return rv;
}

static apr_status_t bump_and_end(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_status_t rv = bump_once(on, p, arg);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_end_snapshot(on);
    }
    return rv == APR_SUCCESS ? APR_EGENERAL : rv;
}

/* An error that is reported only at the snapshot's end. */
static apr_status_t read_wrong_and_end(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(on, &rows, p, MDL_Q(EPOCH_READ));

    (void)arg;
    if (rv == APR_SUCCESS) {
        rv = mdl_db_end_snapshot(on);
    }
    return rv == APR_SUCCESS && mdl_rows_next(rows) ? APR_EGENERAL : rv;
}

static apr_status_t refuse_to_read(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_int64_t n;

    (void)arg;
    return read_count(on, p, &n) == APR_SUCCESS ? APR_ENOENT : APR_EGENERAL;
}

static void test_snapshot(const database_t *database, apr_pool_t *p)
{
    twice_t twice = {.other = database_open(database, p)};

    is_int(mdl_db_snapshot(db, read_twice, &twice, p), APR_SUCCESS,
           "another connection writes while one reads a snapshot");
    is_int(twice.after, twice.before, "the snapshot does not contain the change");
    is_int(count(db, p), twice.before + 1, "the change is seen after the snapshot");
    is_int(mdl_db_read(db, read_twice, &twice, p), APR_SUCCESS,
           "another connection writes while one reads without a snapshot");
    is_int(twice.after, twice.before + 1, "each statement sees what was committed before it");
    is_int(mdl_db_snapshot(db, refuse_to_read, NULL, p), APR_ENOENT,
           "mdl_db_snapshot returns what the effect returned");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "the connection can write afterwards");
}

static void test_end_snapshot(const database_t *database, apr_pool_t *p)
{
    twice_t twice = {.other = database_open(database, p), .ends = 1};
    apr_int64_t before = count(db, p);

    is_int(mdl_db_snapshot(db, read_twice, &twice, p), APR_SUCCESS,
           "another connection writes after a snapshot has ended");
    is_int(twice.after, twice.before + 1, "the effect sees the change");
    is_int(mdl_db_write(db, bump_and_end, NULL, p), APR_EGENERAL,
           "there is no snapshot to end in a transaction that writes");
    is_int(count(db, p), before + 1, "so it is rolled back as a whole");
    mdl_db_command(db, "CREATE TEMP VIEW epoch AS SELECT 1 AS id, "
                       "CAST(abs(-9223372036854775807 - 1) AS BIGINT) AS n");
    is_int(mdl_db_snapshot(db, read_wrong_and_end, NULL, p), MDL_DB_EOTHER,
           "an error beside the snapshot's end is not lost");
    mdl_db_command(db, "DROP VIEW epoch");
    is_int(mdl_db_write(db, bump_once, NULL, p), APR_SUCCESS,
           "the connection can write afterwards");
}

static void test_configure(void)
{
    is_int(sqlite3_memory_used(), 0,
           "SQLite does not count its memory, for which threads would wait");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    test_values(p);
    test_rows(p);
    test_enums(p);
    test_errors(p);
    test_arguments_refused(p);
    test_transactions(database, p);
    test_counts(p);
    test_unanswered(p);
    test_snapshot(database, p);
    test_end_snapshot(database, p);
    test_open(database, p);
    test_attach(database, p);
    test_configure();
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
