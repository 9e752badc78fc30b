/*
 * Expired rows are removed batch by batch and others stay.  No batch reads rows that an earlier one
 * left, nor the dead rows that PostgreSQL keeps for an old snapshot.
 */
#include "t/unit/seed.h"

#include "core/prune.h"
#include "db/private.h"
#include "t/unit/effects.h"

#define ROWS   3000
#define BEFORE 2000 /* the times of seed.sql's rows are their numbers */

static const char *const names[MDL_PRUNE_TABLES] = {
    [MDL_PRUNE_JOBS] = "job",
    [MDL_PRUNE_UPLOADS] = "upload",
    [MDL_PRUNE_EMAILS] = "email",
    [MDL_PRUNE_EVENTS] = "event",
    [MDL_PRUNE_DOWNLOADS] = "download_session",
    [MDL_PRUNE_VISITS] = "order_visit",
    [MDL_PRUNE_AUDIT] = "audit",
    [MDL_PRUNE_ANSWERS] = "idempotency",
    [MDL_PRUNE_FINDS] = "find_request",
};

static mdl_db_t *db;

/* The first column of a statement's row. */
static apr_int64_t number_of(const char *sql, apr_pool_t *p)
{
    apr_dbd_results_t *result = NULL;
    apr_dbd_row_t *row = NULL;
    const char *text = "-1";

    if (apr_dbd_select(db->driver, p, db->handle, &result, sql, 1) == 0 &&
        apr_dbd_get_row(db->driver, p, result, &row, 1) == 0) {
        text = apr_dbd_get_entry(db->driver, row, 0);
    }
    return apr_atoi64(text);
}

static apr_int64_t count(const char *what, apr_pool_t *p)
{
    return number_of(apr_pstrcat(p, "SELECT count(*) FROM ", what, NULL), p);
}

/* Runs a pass from a mark on; returns how many rows it removed. */
static apr_int64_t prune(mdl_prune_table_t table, apr_time_t before, mdl_prune_mark_t *mark,
                         apr_pool_t *p)
{
    mdl_prune_t batch = {.table = table, .before = before, .more = 1};
    apr_int64_t removed = 0;
    int batches = 0, large = 0;

    while (batch.more && batches++ < 100) {
        batch.after = *mark;
        if (mdl_db_write(db, mdl_prune_effect, &batch, p) != APR_SUCCESS) {
            break;
        }
        removed += batch.removed;
        large += batch.removed > MDL_PRUNE_BATCH;
        *mark = batch.next;
    }
    ok(!batch.more && large == 0,
       apr_psprintf(p, "%s: a pass goes through in batches", names[table]));
    return removed;
}

/* Prunes a table; expects exactly the rows of condition over to be removed. */
static void test_table(mdl_prune_table_t table, const char *over, apr_pool_t *p)
{
    const char *condition = apr_pstrcat(p, names[table], " WHERE ", over, NULL);
    apr_int64_t all = count(names[table], p), expected = count(condition, p), removed;
    mdl_prune_mark_t mark = {0};

    removed = prune(table, BEFORE, &mark, p);
    ok(expected > MDL_PRUNE_BATCH, "  which takes several");
    is_int(removed, expected, "  as many as are over");
    is_int(count(condition, p), 0, "  namely these");
    is_int(count(names[table], p), all - expected, "  and no others");
    is_int(prune(table, BEFORE, &mark, p), 0, "  a second pass finds nothing");
}

static void test_jobs(apr_pool_t *p)
{
    mdl_prune_mark_t mark = {0};

    mdl_db_command(db, "UPDATE job SET status = 'cancelled', lane = 'cleanup', due_at = 5"
                       " WHERE id = 'job_1000000005'");
    mdl_db_command(db, "UPDATE job SET status = 'cancelled', lease_owner = 'node', due_at = NULL"
                       " WHERE id = 'job_1000000006'");
    test_table(MDL_PRUNE_JOBS,
               "finished_at < 2000 AND id NOT IN ('job_1000000005', 'job_1000000006')", p);
    is_int(count("job WHERE created_at < 2000 AND status IN ('queued', 'running')", p), 201,
           "what waits or runs is left");
    mdl_db_command(db,
                   "UPDATE job SET finished_at = 10, due_at = NULL WHERE id = 'job_1000000010'");
    is_int(prune(MDL_PRUNE_JOBS, BEFORE, &mark, p), 1, "what ends later goes with the next pass");
}

static void test_uploads(apr_pool_t *p)
{
    mdl_db_command(db, "UPDATE upload SET updated_at = 2500 WHERE id = 'upl_1000000008'");
    test_table(MDL_PRUNE_UPLOADS,
               "status <> 'open' AND expires_at < 2000 AND id <> 'upl_1000000008'"
               " AND id NOT IN (SELECT upload_id FROM job WHERE upload_id IS NOT NULL)",
               p);
    is_int(count("upload WHERE status = 'open' AND expires_at < 2000", p), 19,
           "open uploads are left");
}

static void test_emails(apr_pool_t *p)
{
    mdl_db_command(db, "UPDATE email SET order_id = 4 WHERE id <> 7");
    test_table(MDL_PRUNE_EMAILS,
               "created_at < 2000 AND id <> 7"
               " AND id NOT IN (SELECT email_id FROM job WHERE email_id IS NOT NULL)",
               p);
    is_int(count("email WHERE id = 7", p), 1, "the only email of an order stays");
}

static void test_downloads(apr_pool_t *p)
{
    mdl_db_command(db, "INSERT INTO download_transfer (id, session_id, generation, assignment_id,"
                       " meter_id, files, bytes) VALUES ('one', 'link100', 1, 100, 'm', '', 0)");
    mdl_db_command(db, "UPDATE download_session SET status = 'counted' WHERE id = 'link100'");
    mdl_db_command(db, "DELETE FROM download_transfer WHERE id <> 'one'");
    test_table(MDL_PRUNE_DOWNLOADS, "status <> 'open' AND opened_at < 2000 AND id <> 'link100'", p);
    is_int(count("download_session WHERE status = 'open'", p), 29, "open sessions are left");
    is_int(count("download_session WHERE id = 'link100'", p), 1, "one that is being sent is, too");
}

/* The pages read to find where a batch of the audit ends. */
static int pages_of_end(PGconn *pgsql, apr_int64_t mark, apr_pool_t *p)
{
    PGresult *plan = PQexec(
        pgsql,
        apr_psprintf(p, "EXPLAIN (ANALYZE, BUFFERS) EXECUTE prune_end (%" APR_INT64_T_FMT ", 499)",
                     mark));
    int pages = 0;

    for (int i = 0; i < PQntuples(plan) && pages == 0; i++) {
        const char *line = strstr(PQgetvalue(plan, i, 0), "Buffers: shared hit=");

        pages = line != NULL ? atoi(line + 20) : 0;
    }
    PQclear(plan);
    return pages;
}

/* An old snapshot keeps PostgreSQL from cleaning up after deleted rows. */
static void test_snapshot(const database_t *database, apr_pool_t *p)
{
    PGconn *holder = PQconnectdb(database->params), *pgsql = PQconnectdb(database->params);
    mdl_prune_mark_t mark = {0};
    int from_mark, from_begin;

    mdl_db_command(db, "INSERT INTO audit (noun, action, via, created_at)"
                       " SELECT 'order', 'assigned', 'api', 4000 FROM generate_series(1, 20000)");
    PQclear(PQexec(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    PQclear(PQexec(holder, "SELECT count(*) FROM audit"));
    ok(prune(MDL_PRUNE_AUDIT, 5000, &mark, p) > 20000, "  beside an old snapshot, too");
    PQclear(
        PQexec(pgsql, apr_pstrcat(p, "PREPARE prune_end (bigint, bigint) AS ",
                                  mdl_statements[MDL_Q_PRUNE_AUDIT_END].text[MDL_PGSQL], NULL)));
    from_mark = pages_of_end(pgsql, mark.number, p);
    from_begin = pages_of_end(pgsql, 0, p);
    printf("# %d pages from the mark, %d from the beginning\n", from_mark, from_begin);
    ok(from_mark > 0 && from_mark * 5 < from_begin, "  what they have left is not looked at again");
    PQfinish(holder);
    PQfinish(pgsql);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    seed(database, ROWS, p);
    db = database_open(database, p);
    test_jobs(p);
    test_uploads(p);
    test_emails(p);
    test_downloads(p);
    test_table(MDL_PRUNE_VISITS, "visited_at < 2000", p);
    test_table(MDL_PRUNE_EVENTS, "created_at < 2000 AND number IS NOT NULL", p);
    test_table(MDL_PRUNE_AUDIT, "created_at < 2000", p);
    test_table(MDL_PRUNE_ANSWERS, "created_at < 2000", p);
    mdl_db_command(db, "UPDATE find_request SET sent_at = 2500 WHERE address_mac = 'mac7'");
    test_table(MDL_PRUNE_FINDS, "asked_at < 2000 AND address_mac <> 'mac7'", p);
    if (database->dialect == MDL_PGSQL) {
        test_snapshot(database, p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
