/*
 * The plans of all statements in sql/queries on each database: none scans a growing table.
 *
 * On PostgreSQL each is planned as in the service, once for all arguments and with the session's
 * settings, on tables of one row and of 30,000 that were never analyzed; or, for `make
 * check-plans`, of MDL_TEST_ROWS rows and of a thirtieth of them.  SQLite's plans do not depend
 * on the rows.
 */
#include "t/unit/seed.h"

#include <jansson.h>

#include "db/dialect.h"

/* What a statement may scan, and why.  On PostgreSQL it is the name of a table or an index, on
   SQLite a part of the plan's line. */
static const struct {
    mdl_statement_t statement;
    const char *what;
    const char *reason;
} allowed[] = {
    {MDL_Q_MIGRATIONS, "schema_migration", "the table has a row for each release"},
    {MDL_Q_MIGRATION_RUNS_WITH, "schema_migration", "the table has a row for each release"},
    {MDL_Q_MIGRATION_COLUMNS, "pragma_table_info", "the columns of one table"},
    {MDL_Q_SHOP_LIST, "shop", "an operator's command that lists every shop"},
    {MDL_Q_BLOB_COUNT, "blob", "an operator's command"},
    {MDL_Q_BLOBS_NEWEST, "asset", "reads the primary key backwards and stops at its LIMIT"},
    {MDL_Q_JOB_COUNT, "job", "an operator's command that counts every job"},
    {MDL_Q_JOB_COUNT_OF_SHOP, "job_shop", "an operator's command that counts a shop's jobs"},
    {MDL_Q_JOBS_FAILED, "job_failed_id", "an operator's command that reads the failed jobs"},
    {MDL_Q_JOBS_FLUSH, "job_due", "an operator's command that reads the emails that wait"},
    {MDL_Q_STORAGE_STATUS, "blob", "an operator's command that counts every blob"},
    {MDL_Q_STORAGE_STATUS, "stray_object", "as above"},
    {MDL_Q_STORAGE_STATUS, "storage_hold", "as above"},
    {MDL_Q_STORAGE_HELD, "storage_hold", "the table has a row for each copy that is being made"},
    {MDL_Q_STORAGE_RELEASE_ALL, "storage_hold", "as above"},
    {MDL_Q_STORAGE_HOLDS_LAPSED, "storage_hold", "as above"},
    {MDL_Q_RESTORED_FORGET_NODES, "node", "the table has a row for each httpd"},
    {MDL_Q_RESTORED_SKIP_IDS, "sqlite_sequence", "has a row for each table"},
    {MDL_Q_RESTORED_SKIP_IDS, "(c.relnamespace = n.oid)", "reads PostgreSQL's own tables"},
    {MDL_Q_RESTORED_SKIP_IDS, "pg_class", "as above"},
    {MDL_Q_RESTORED_EMAILS, "job", "an operator's command, before httpd starts, as the next"},
    {MDL_Q_RESTORED_LETTERS, "job", "as above"},
    {MDL_Q_RESTORED_EMAILS_FAILED, "email", "as above"},
    {MDL_Q_RESTORED_FINDS, "find_request", "as above"},
    {MDL_Q_RESTORED_MOVES, "job", "as above"},
    {MDL_Q_RESTORED_MOVES, "move", "as above"},
    {MDL_Q_RESTORED_NEWS, "news_item_pkey", "as above"},
    {MDL_Q_RESTORED_NEWS_ADDRESSES, "news_address_due", "as above"},
    {MDL_Q_RESTORED_NOTICES, "notice", "as above"},
    {MDL_Q_RESTORED_SIGN_OUT, "staff_session", "as above"},
    {MDL_Q_RESTORED_SKIP_NUMBERS, "shop", "as above"},
    {MDL_Q_RESTORED_STAFF_EMAILS, "staff_email", "as above"},
    {MDL_Q_MEMBER_LIST, "m", "an operator's command that lists every member"},
    {MDL_Q_API_KEY_LIST, "api_key_shop", "a shop has a few keys"},
    {MDL_Q_API_KEY_COUNT_LIVE, "api_key_shop", "a shop has a few keys"},
    {MDL_Q_ASSET_LIST_OF_CATEGORY, "asset_shop_category",
     "the second filter is applied to each row"},
    {MDL_Q_ASSET_LIST_OF_PREFIX, "SCAN a", "scans the thousand rows that it has found before"},
    {MDL_Q_ASSIGNMENTS_OF_ORDERS, "SCAN a", "scans a_rows, which the statement has found before"},
    {MDL_Q_MOVE_COUNT, "SCAN a", "scans the purchases that it has found before, 10,000 at most"},
    {MDL_Q_MOVE_ORDERS, "SCAN a", "scans the purchases that it has found before"},
    {MDL_Q_MOVE_EMAILS, "SCAN w", "scans the thousand rows that it has found before"},
    {MDL_Q_API_KEYS_REVOKE_UNSIGNED, "api_key", "an operator's command, run once for a secret"},
    {MDL_Q_API_KEYS_UNSIGNED, "api_key", "an operator's command"},
    {MDL_Q_API_KEYS_BY_SECRET, "api_key", "an operator's command, and once at a start"},
    {MDL_Q_SECRETS, "secret", "the table has a row for each secret that there was"},
    {MDL_Q_ORDER_EXISTS, "orders", "stops at the first row"},
    {MDL_Q_EMAIL_PAGE_OF_ADDRESS, "SCAN e", "scans the thousand rows that it has found before"},
    {MDL_Q_EMAILS_TRIED, "email", "reads the primary key backwards and stops at its LIMIT"},
    {MDL_Q_HELP_WAITING, "help_request_open", "a shop has a thousand that wait at most"},
    {MDL_Q_HELP_COUNTS, "SCAN open_requests", "counts the rows that it has found before"},
    {MDL_Q_NEWS_MAPPING, "pack_file_asset", "reads the packs that have a file"},
    {MDL_Q_NEWS_ADDRESSES_FORGET, "news_address_sent", "with the next, changes every row once"},
    {MDL_Q_NEWS_SENT_FORGET, "news_address_sent", "as above"},
    {MDL_Q_GAUGE_DATABASE, "VIRTUAL TABLE", "two numbers of SQLite itself"},
    {MDL_Q_GAUGE_JOBS_RUNNING, "job_owner", "reads as many jobs as the nodes have slots"},
    {MDL_Q_GAUGE_WEBHOOK_ENDPOINTS, "webhook_endpoint_failing",
     "reads the index and stops at its LIMIT"},
    {MDL_Q_COPY_COLUMNS, "SCAN t", "an operator's command, of the schema, like the next"},
    {MDL_Q_COPY_COLUMNS, "SCAN c", "as above"},
    {MDL_Q_COPY_COLUMNS, "pg_class", "as above"},
    {MDL_Q_COPY_REFERENCES, "SCAN t", "as above"},
    {MDL_Q_COPY_REFERENCES, "SCAN f", "as above"},
    {MDL_Q_COPY_REFERENCES, "pg_constraint", "as above"},
    {MDL_Q_COPY_SEQUENCE, "SCAN sqlite_sequence", "as above"},
    {MDL_Q_COPY_SEQUENCE, "c.relnamespace = n.oid", "as above"},
    {MDL_Q_MAINTENANCE_RUNNING, "download_transfer", "an operator's command; what runs has a row"},
    {MDL_Q_MAINTENANCE_RUNNING, "storage_hold", "has a row for each backup"},
    {MDL_Q_MAINTENANCE_RUNNING, "job_owner", "reads as many jobs as the nodes have slots"},
    {MDL_Q_MAINTENANCE_RUNNING, "upload_open", "an operator's command that reads open uploads"},
    {MDL_Q_MAINTENANCE_RUNNING, "upload_shop_open", "as above"},
    {MDL_Q_MAINTENANCE_RUNNING, "s.datid = d.oid", "as above"},
    {MDL_Q_NODES, "node", "the table has a row for each node"},
    {MDL_Q_NODES_FORGET, "node", "the table has a row for each node"},
    {MDL_Q_NODES_LIVE, "node", "the table has a row for each node"},
    {MDL_Q_ALERT_FINDINGS_SEEN, "alert_finding", "the table has a row for each test that fails"},
    {MDL_Q_ALERT_FINDINGS_FORGET, "alert_finding", "as above"},
    {MDL_Q_ALERTS_RAISE, "alert_finding", "as above"},
    {MDL_Q_ALERTS_SETTLE, "alert", "as above"},
    {MDL_Q_ALERTS_FORGET, "alert", "as above"},
    {MDL_Q_ALERTS_TAKE, "alert", "as above"},
    {MDL_Q_CONNECTIONS, "s.datid = d.oid", "an operator's command"},
    {MDL_Q_CONNECTIONS, "pg_database", "an operator's command"},
    {MDL_Q_CATEGORY_LEAVE_ASSETS, "asset_category", "changes every row that it reads"},
    {MDL_Q_METER_BEATS, "meter", "the table has a row for each process that delivers"},
    {MDL_Q_LICENSE_CLAIMS_CLOSE, "license_claim_waiting", "changes every row that it reads"},
    {MDL_Q_DOWNLOAD_SESSIONS_SET_BACK, "download_session_idle",
     "reads what is not idle yet, once after the clock was set back"},
    {MDL_Q_FIND_ORDERS, "orders_customer", "skips orders that have an address of their own"},
    {MDL_Q_FRAUD_COUNTS, "orders", "counts up to a limit, and skips the order itself"},
    {MDL_Q_IDEMPOTENCY_AFTER, "idempotency",
     "reads the primary key forwards and stops at its LIMIT"},
    {MDL_Q_JOB_CLAIM_SHARED, "shop", "reads a range of at most 32 ids"},
    {MDL_Q_JOB_LOOK, "SCAN shop", "reads the primary key backwards and stops at its LIMIT"},
    {MDL_Q_JOB_INHERIT, "job_owner", "reads at most as many jobs as a node has slots"},
    {MDL_Q_JOBS_RUNNING, "job_owner", "reads as many jobs as the nodes have slots"},
    {MDL_Q_JOBS_LEASED, "job_owner", "reads as many jobs as the nodes have slots"},
    {MDL_Q_JOBS_SET_BACK, "job_due",
     "reads what is not due yet, once after the clock was set back"},
    {MDL_Q_JOB_TO_CLEAN, "job_due", "reads the few jobs that their worker has to clean up after"},
    {MDL_Q_JOBS_HOLD, "job_shop", "an operator's command that reads a shop's jobs, once"},
    {MDL_Q_JOBS_RESUME, "job_shop", "an operator's command that reads a shop's jobs, once"},
    {MDL_Q_EVENT_FIRST_WAITING, "event_waiting", "reads the index forwards and stops at its LIMIT"},
    {MDL_Q_EVENTS_WAITING, "event_waiting", "reads the index forwards and stops at its LIMIT"},
    {MDL_Q_ORDER_WALK_OF_EXPIRED, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_HELD_EMAIL, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_KEYS_OWED, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_LIMIT_REACHED, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_MAPPINGS, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_MAPPINGS_UNFINISHED, "SCAN s", "scans s, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_PRODUCT, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_ORDER_WALK_OF_UNDELIVERED, "SCAN q", "scans q, which the statement has found before"},
    {MDL_Q_JOB_SOURCES, "job", "an operator's command, run once for a secret"},
    {MDL_Q_PAGES_SENT, "email", "an operator's command"},
    {MDL_Q_PRUNE_ADDRESSES, "orders_client_ip_kept", "reads the range of a batch, as the next do"},
    {MDL_Q_PRUNE_ANSWERS, "idempotency_created", "as above"},
    {MDL_Q_PRUNE_AUDIT, "audit_pkey", "as above"},
    {MDL_Q_PRUNE_DOWNLOADS, "download_session_opened", "as above"},
    {MDL_Q_PRUNE_EMAILS, "email_pkey", "as above"},
    {MDL_Q_PRUNE_FINDS, "find_request_asked", "as above"},
    {MDL_Q_PRUNE_JOBS, "job_pkey", "as above"},
    {MDL_Q_PRUNE_EVENTS, "event_pkey", "as above"},
    {MDL_Q_PRUNE_UPLOADS, "upload_pkey", "as above"},
    {MDL_Q_PRUNE_VISITS, "order_visit_visited", "as above"},
    {MDL_Q_PRUNE_WEBHOOKS, "webhook_delivery_pkey", "as above"},
    {MDL_Q_STOREFRONT_TOKENS, "shop", "an operator's command"},
    {MDL_Q_SHOPS_BLOCKED, "shop_blocked", "the index has a row for each blocked shop"},
    {MDL_Q_SHOP_BYTES, "upload_shop_open", "a shop has a few open uploads"},
    {MDL_Q_UPLOAD_INSERT, "upload_shop_open", "a shop has a few open uploads"},
    {MDL_Q_UPLOAD_OPEN_OF_SHOP, "upload_shop_open", "a shop has a few open uploads"},
    {MDL_Q_UPLOAD_BEGUN_OF_SHOP, "upload_shop_open", "a shop has a few open uploads"},
    {MDL_Q_JOB_PAGE, "job_shop_type", "skips the jobs of a shop's few webhook endpoints"},
    {MDL_Q_JOB_PAGE_FAILED, "job_failed", "skips the jobs of a shop's few webhook endpoints"},
    {MDL_Q_IMPORTS_FAILED, "job_failed", "skips the jobs of a shop's few webhook endpoints"},
    {MDL_Q_WEBHOOK_DELIVERIES_INSERT, "webhook_endpoint_shop", "a shop has a few endpoints"},
    {MDL_Q_WEBHOOK_ENDPOINTS_FAILING, "SCAN webhook_endpoint USING INDEX webhook_endpoint_failing",
     "reads the index backwards and stops at its LIMIT"},
    {MDL_Q_WEBHOOK_ENDPOINT_COUNT, "webhook_endpoint_shop", "a shop has a few endpoints"},
    {MDL_Q_SHOP_UNBLOCK_WEBHOOKS, "webhook_endpoint_shop", "a shop has a few endpoints"},
    {MDL_Q_WEBHOOK_DELIVERIES_SET_BACK, "webhook_delivery_due",
     "reads what is not due yet, once after the clock was set back"},
    {MDL_Q_WEBHOOK_SECRETS, "webhook_endpoint", "an operator's command, run once for a secret"},
    {MDL_Q_TRANSFERS_FORBIDDEN, "download_transfer",
     "reads the transfers of one process at the moment"},
    {MDL_Q_LOGO_DELETE_ALL, "logo_pkey", "a shop has at most 11 logos"},
    {MDL_Q_LOGO_PRUNE, "logo_pkey", "a shop has at most 11 logos"},
    {MDL_Q_LOGO_IMAGE_DELETE, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_LOGO_IMAGE_DELETE_ANY, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_LOGO_IMAGE_OF_JOB, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_SHOP_BY_ID, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_SHOP_INSERT, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_SHOP_LIST, "logo_image_pkey", "a shop has one row"},
    {MDL_Q_MEMBER_LIST_OF_SHOP, "(s.id = m.shop_id)", "the shop is one row"},
    {MDL_Q_MEMBER_FIND, "(s.id = m.shop_id)", "the shop is one row"},
    {MDL_Q_STAFF_OWNERS_REACHED, "member_shop", "a shop has at most 100 members"},
    {MDL_Q_NOTICE_ADD, "notice_pkey", "a shop has at most 100 members"},
    {MDL_Q_NOTICE_DEFAULT, "member_shop", "a shop has at most 100 members"},
    {MDL_Q_NOTICE_ADD_OF_EMAIL, "notice_pkey", "a shop has at most 100 members"},
    {MDL_Q_NOTICE_ADD_DAILY, "notice_pkey", "a shop has at most 100 members"},
    {MDL_Q_STAFF_TOLD_NOW, "member_shop", "a shop has at most 100 members"},
    {MDL_Q_STAFF_ADDRESS_FIND, "member_shop", "a shop has at most 100 members"},
    {MDL_Q_STAFF_ADDRESS_FORGET, "member_shop", "a shop has at most 100 members"},
    {MDL_Q_EVENTS_INSERT_DOWNLOADS, "'download.completed'", "compares two types of events"},
};

/* Columns, of every table or of one, in which a large part of the rows may have the same value. */
static const char *const wide[] = {
    "kind",
    "shop_id",
    "status",
    "lane",
    "lease_owner",
    "allowance.asset_id",
    "asset.category_id",
    "assignment.mapping_id",
    "assignment_file.asset_id",
    "assignment_link.link_id",
    "download_transfer.meter_id",
    "license_claim.tag_id",
    "license_key.tag_id",
    "mapping_file.asset_id",
    "mapping_license_key_tag.tag_id",
    "mapping_link.link_id",
    "mapping_pack.pack_id",
    "orders.customer_id",
    "orders.substr(client_ip, 1, 19)",
    "pack_file.asset_id",
};

static int rows; /* in each table */

static int is_allowed(mdl_statement_t statement, const char *what)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (allowed[i].statement == statement && strstr(what, allowed[i].what) != NULL) {
            return 1;
        }
    }
    return 0;
}

static const char *add_line(const char *to, const char *line, apr_pool_t *p)
{
    return apr_pstrcat(p, to, "#   ", line, "\n", NULL);
}

/* --- SQLite --- */

/* SEARCH looks up in an index; SCAN reads all rows, even in the order of an index. */
static int sqlite_is_scan(mdl_statement_t statement, const char *line)
{
    if (strstr(line, "AUTOMATIC") != NULL) {
        return 1;
    }
    return strncmp(line, "SCAN ", 5) == 0 && strcmp(line, "SCAN CONSTANT ROW") != 0 &&
           strstr(line, "epoch") == NULL &&     /* a table of one row */
           strstr(line, "json_each") == NULL && /* the array of a parameter */
           /* rows already found, see other lines of the plan */
           strstr(line, "_rows") == NULL && strncmp(line, "SCAN (subquery-", 15) != 0 &&
           !is_allowed(statement, line);
}

/* Whether a list parameter is read again for each row of the preceding table in the join, whose
   line had parent_before. */
static int sqlite_is_read_anew(mdl_statement_t statement, const char *line, int parent,
                               int parent_before)
{
    return strncmp(line, "SCAN ", 5) == 0 && strstr(line, "VIRTUAL TABLE") != NULL &&
           parent == parent_before && !is_allowed(statement, line);
}

static const char *sqlite_scans(sqlite3 *sqlite, mdl_statement_t statement, apr_pool_t *p)
{
    const char *sql = apr_pstrcat(p, "EXPLAIN QUERY PLAN ",
                                  mdl_statements[statement].text[MDL_SQLITE3], NULL);
    const char *scans = "";
    int parent_before = -1;
    sqlite3_stmt *plan;

    if (sqlite3_prepare_v2(sqlite, sql, -1, &plan, NULL) != SQLITE_OK) {
        return add_line("", sqlite3_errmsg(sqlite), p);
    }
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(plan, 3);
        int parent = sqlite3_column_int(plan, 1);

        if (sqlite_is_scan(statement, line) ||
            sqlite_is_read_anew(statement, line, parent, parent_before)) {
            scans = add_line(scans, line, p);
        }
        parent_before = strncmp(line, "SEARCH ", 7) == 0 || strncmp(line, "SCAN ", 5) == 0 ? parent
                                                                                           : -1;
    }
    sqlite3_finalize(plan);
    return scans;
}

static void sqlite_tests(const database_t *database, apr_pool_t *p)
{
    sqlite3 *sqlite;

    database_ready(database, p);
    sqlite3_open(database->params, &sqlite);
    for (mdl_statement_t i = 0; i < MDL_Q_COUNT; i++) {
        const char *scans = sqlite_scans(sqlite, i, p);

        ok(*scans == '\0', apr_psprintf(p, "%s scans no growing table", mdl_statements[i].label));
        printf("%s", scans);
    }
    sqlite3_close(sqlite);
}

/* --- PostgreSQL --- */

/* The context of a search for scans in a plan. */
typedef struct {
    PGconn *pgsql;
    apr_pool_t *pool;
    mdl_statement_t statement;
    const char *scans;
} search_t;

static PGresult *pgsql_run(PGconn *pgsql, const char *sql)
{
    PGresult *result = PQexec(pgsql, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK) {
        printf("# %s: %s", sql, PQerrorMessage(pgsql));
    }
    return result;
}

static const char *node_text(const json_t *node, const char *name)
{
    const char *text = json_string_value(json_object_get(node, name));

    return text != NULL ? text : "";
}

static int node_is(const json_t *node, const char *name, const char *const *values)
{
    while (*values != NULL && strcmp(node_text(node, name), *values) != 0) {
        values++;
    }
    return *values != NULL;
}

/* The condition without the table's alias, "((shop_id = $1) AND (id < $2))". */
static const char *node_condition(const json_t *node, apr_pool_t *p)
{
    char *condition = apr_pstrdup(p, node_text(node, "Index Cond"));
    const char *prefix = apr_pstrcat(p, node_text(node, "Alias"), ".", NULL);
    char *at = condition;

    while ((at = strstr(at, prefix)) != NULL) {
        if (at > condition && at[-1] == '(') {
            memmove(at, at + strlen(prefix), strlen(at + strlen(prefix)) + 1);
        } else {
            at++;
        }
    }
    return condition;
}

static int column_is_wide(const char *table, const char *column, apr_pool_t *p)
{
    const char *full = apr_pstrcat(p, table, ".", column, NULL);

    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (strcmp(wide[i], column) == 0 || strcmp(wide[i], full) == 0) {
            return 1;
        }
    }
    return 0;
}

/* How much of an index is read.  NARROW: the first columns, up to one that is not wide, are
   compared by equality.  WIDE: fewer are, or one by a range.  WHOLE: all of it. */
typedef enum { NARROW, WIDE, WHOLE } reading_t;

static reading_t index_reading(const search_t *search, const json_t *node, const char *table)
{
    const char *condition = node_condition(node, search->pool);
    const char *sql = apr_psprintf(
        search->pool,
        "SELECT pg_get_indexdef(indexrelid, n, true) "
        "FROM pg_index, generate_series(1, indnkeyatts) n WHERE indexrelid = '%s'::regclass "
        "ORDER BY n",
        node_text(node, "Index Name"));
    PGresult *columns = pgsql_run(search->pgsql, sql);
    reading_t reading = WHOLE;

    for (int i = 0; reading != NARROW && i < PQntuples(columns); i++) {
        const char *column = PQgetvalue(columns, i, 0);

        if (strstr(condition, apr_pstrcat(search->pool, "(", column, " ", NULL)) == NULL) {
            break;
        }
        reading = WIDE;
        if (strstr(condition, apr_pstrcat(search->pool, "(", column, " = ", NULL)) == NULL) {
            break;
        }
        reading = column_is_wide(table, column, search->pool) ? WIDE : NARROW;
    }
    PQclear(columns);
    return reading;
}

/* Whether a node scans a table or an index.  A bounded node stops after a few rows, unless it
   filters rows out, or has to skip others to find them. */
static int node_is_scan(const search_t *search, const json_t *node, const char *table, int bounded)
{
    static const char *const by_index[] = {"Index Scan", "Index Only Scan", "Bitmap Index Scan",
                                           NULL};
    reading_t reading;

    if (strcmp(node_text(node, "Node Type"), "Seq Scan") == 0) {
        return 1;
    }
    if (!node_is(node, "Node Type", by_index)) {
        return 0;
    }
    reading = index_reading(search, node, table);
    return reading != NARROW && (!bounded || *node_text(node, "Filter") != '\0' ||
                                 (reading == WHOLE && *node_text(node, "Index Cond") != '\0'));
}

/* Whether a join compares each row of one side with all of the other, instead of using an index:
   cheap for a few rows, quadratic for many. */
static int node_compares_all(const json_t *node)
{
    return strcmp(node_text(node, "Node Type"), "Nested Loop") == 0 &&
           strstr(node_text(node, "Join Filter"), " = ") != NULL;
}

/* Whether the nodes below a node are bounded: the node is and passes that on, or it is a limit. */
static int node_passes_bound(const json_t *node, int bounded)
{
    static const char *const streaming[] = {
        "Nested Loop",  "LockRows", "Subquery Scan", "Result",     "Append",
        "Merge Append", "Unique",   "Group",         "ProjectSet", NULL};

    return strcmp(node_text(node, "Node Type"), "Limit") == 0 ||
           (bounded && node_is(node, "Node Type", streaming));
}

static void plan_search(search_t *search, const json_t *node, const char *table, int bounded)
{
    const char *relation = node_text(node, "Relation Name");
    size_t i;
    json_t *child;

    relation = *relation != '\0' ? relation : table;
    if (node_compares_all(node) && !is_allowed(search->statement, node_text(node, "Join Filter"))) {
        search->scans = add_line(search->scans,
                                 apr_pstrcat(search->pool, "Nested Loop that compares all ",
                                             node_text(node, "Join Filter"), NULL),
                                 search->pool);
    }
    if (node_is_scan(search, node, relation, bounded) && !is_allowed(search->statement, relation) &&
        !is_allowed(search->statement, node_text(node, "Index Name"))) {
        search->scans = add_line(search->scans,
                                 apr_pstrcat(search->pool, node_text(node, "Node Type"), " ",
                                             relation, " ", node_text(node, "Index Name"), " ",
                                             node_text(node, "Index Cond"), " filter ",
                                             node_text(node, "Filter"), NULL),
                                 search->pool);
    }
    json_array_foreach(json_object_get(node, "Plans"), i, child)
    {
        plan_search(search, child, relation, node_passes_bound(node, bounded));
    }
}

/* The statement's plan for all arguments. */
static json_t *pgsql_plan(PGconn *pgsql, mdl_statement_t statement, apr_pool_t *p)
{
    const mdl_statement_text_t *text = &mdl_statements[statement];
    const char *values = "";
    PGresult *result;
    json_t *plan;

    for (const char *type = text->types; *type != '\0'; type++) {
        values = apr_pstrcat(p, values, type == text->types ? "(" : ", ", "NULL", NULL);
    }
    result = pgsql_run(pgsql, apr_pstrcat(p, "EXPLAIN (FORMAT JSON) EXECUTE ", text->label, values,
                                          *values != '\0' ? ")" : "", NULL));
    plan = PQntuples(result) > 0 ? json_loads(PQgetvalue(result, 0, 0), 0, NULL) : NULL;
    PQclear(result);
    return plan;
}

static const char *pgsql_scans(PGconn *pgsql, mdl_statement_t statement, apr_pool_t *p)
{
    search_t search = {.pgsql = pgsql, .pool = p, .statement = statement, .scans = ""};
    json_t *plan = pgsql_plan(pgsql, statement, p);

    if (plan == NULL) {
        return "#   there is no plan\n";
    }
    plan_search(&search, json_object_get(json_array_get(plan, 0), "Plan"), "", 0);
    json_decref(plan);
    return search.scans;
}

static void pgsql_is(PGconn *pgsql, const char *sql, const char *expected, const char *name)
{
    PGresult *result = pgsql_run(pgsql, sql);

    is_str(PQgetvalue(result, 0, 0), expected, name);
    PQclear(result);
}

static void pgsql_tests(const database_t *database, apr_pool_t *p)
{
    PGconn *pgsql = PQconnectdb(database->params);
    void *native = mdl_dialect_pgsql.attach(pgsql, p);

    seed(database, rows, p);
    pgsql_is(pgsql,
             "SELECT COALESCE(string_agg(relname, ' '), '') FROM pg_class WHERE relkind = 'r' "
             "AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) = 0",
             "", "t/unit/seed.sql has rows for every table");
    mdl_dialect_pgsql.session(native);
    for (mdl_statement_t i = 0; i < MDL_Q_COUNT; i++) {
        void *prepared = NULL;
        const char *scans;

        mdl_dialect_pgsql.prepare(native, &mdl_statements[i], &prepared);
        scans = pgsql_scans(pgsql, i, p);
        ok(*scans == '\0',
           apr_psprintf(p, "%s scans no growing table of %d rows", mdl_statements[i].label, rows));
        printf("%s", scans);
    }
    pgsql_is(pgsql, "SELECT sum(custom_plans) FROM pg_prepared_statements", "0",
             "each plan is a generic one, for all arguments");
    PQfinish(pgsql);
}

int main(void)
{
    const char *many = getenv("MDL_TEST_ROWS");
    const char *server = getenv("MDL_TEST_PGSQL");
    int sizes[] = {many != NULL ? atoi(many) / 30 : 1, many != NULL ? atoi(many) : 30000};
    apr_pool_t *p = tap_begin();

    on_sqlite(sqlite_tests, p);
    for (int i = 0; server != NULL && i < 2; i++) {
        rows = sizes[i];
        on_pgsql(server, pgsql_tests, p);
    }
    return tap_end(p);
}
