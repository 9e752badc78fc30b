#include "db/private.h"

#include <pthread.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "db/writer.h"
#include "db/writer_lock.h"

#define GROUP_MAX  64
#define PATIENCE   apr_time_from_sec(5)
#define MORE_TRIES 3 /* after the second, for deadlocks */
#define SILENCE    apr_time_from_sec(1)
#define CHECK_AGE  apr_time_from_sec(1)

/* The cache is in KiB.  The savepoints' journal stays in memory: beyond 64 KiB SQLite would write
   it to a file for each batch. */
#define WRITER_SETTINGS "PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY"

/* WRITE is refused during maintenance, SETTLE goes on. */
typedef enum { NONE, SNAPSHOT, WRITE, SETTLE } transaction_t;

static int is_writing(transaction_t transaction)
{
    return transaction == WRITE || transaction == SETTLE;
}

/* Sends the command that begins a transaction. */
static apr_status_t transaction_open(mdl_db_t *db, const char *command)
{
    if (db->ops->begin != NULL) {
        db->ops->begin(db->native);
    }
    return command != NULL && db->ops->command(db->native, command)
               ? mdl_db_note_failure(db, "BEGIN")
               : APR_SUCCESS;
}

static int is_file_replaced(const mdl_db_t *db)
{
    return db->file_path != NULL && mdl_db_file_id(db) != db->file_id;
}

static apr_status_t transaction_open_write(mdl_db_t *db)
{
    apr_status_t rv = mdl_writer_lock(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (is_file_replaced(db)) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0113: %s is not the file any more that this process has opened; restart httpd",
                db->file_path);
        rv = MDL_DB_EGONE;
    } else if ((rv = transaction_open(db, NULL)) == APR_SUCCESS &&
               db->ops->begin_write(db->native, db->patience)) {
        rv = mdl_db_note_failure(db, "BEGIN");
    }
    if (rv != APR_SUCCESS) {
        mdl_writer_unlock(db);
    }
    return rv;
}

static apr_status_t transaction_begin(mdl_db_t *db, transaction_t transaction)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    switch (transaction) {
    case SNAPSHOT:
        return transaction_open(db, db->ops->begin_snapshot);
    case WRITE:
    case SETTLE:
        return transaction_open_write(db);
    default:
        return transaction_open(db, NULL);
    }
}

/* The result of an effect, which may have taken a statement's error for no rows.  It may handle a
   violated constraint itself. */
static apr_status_t transaction_outcome(const mdl_db_t *db, apr_status_t rv)
{
    return rv == APR_SUCCESS || (db->failed != APR_SUCCESS && db->failed != MDL_DB_EUNIQUE)
               ? db->failed
               : rv;
}

static apr_status_t transaction_end(mdl_db_t *db, transaction_t transaction, apr_status_t rv)
{
    int open = is_writing(transaction) || db->snapshot;

    rv = transaction_outcome(db, rv);
    if (rv == APR_SUCCESS && open) {
        rv = mdl_db_finish_by(db, "COMMIT");
    } else {
        mdl_db_flush(db);
        rv = transaction_outcome(db, rv);
    }
    /* PostgreSQL skips the COMMIT of mdl_db_end_snapshot if a statement before it has failed. */
    open |= transaction == SNAPSHOT && db->failed != APR_SUCCESS;
    if (rv != APR_SUCCESS && open) {
        db->ops->command(db->native, "ROLLBACK");
        mdl_db_flush(db);
    }
    if (is_writing(transaction)) {
        mdl_writer_unlock(db);
    }
    return rv;
}

/* Makes the connection usable again for a second try. */
static apr_status_t transaction_mend(mdl_db_t *db, apr_status_t rv)
{
    if (rv == MDL_DB_ERETRY) {
        return APR_SUCCESS;
    }
    mdl_db_forget_statements(db);
    db->session = 0; /* have the settings made again, in case the session is new */
    if (rv == MDL_DB_ESTALE) {
        return db->ops->dialect == MDL_SQLITE3 ? APR_SUCCESS : mdl_db_command(db, "DEALLOCATE ALL");
    }
    if (is_file_replaced(db)) {
        return MDL_DB_EGONE;
    }
    if ((rv = db->ops->reset(db->native)) != APR_SUCCESS) {
        mdl_db_keep_error(db);
    }
    return rv;
}

static apr_status_t transaction_out_of_reach(const mdl_db_t *db)
{
    mdl_log(MDL_LOG_ERR, 0, "MDL0110: the database is out of reach: %s", db->error);
    return MDL_DB_EGONE;
}

static apr_status_t transaction_check(mdl_db_t *db, apr_pool_t *p)
{
    apr_time_t now = mdl_clock_monotonic();
    mdl_db_cost_t before = db->cost;
    apr_status_t rv;

    if (db->check == NULL || now < db->check_at) {
        return APR_SUCCESS;
    }
    rv = db->check(db, p, NULL);
    db->cost = before;
    if (rv == APR_SUCCESS || rv == MDL_DB_ECLOSED) {
        db->closed = rv == MDL_DB_ECLOSED;
        db->check_at = db->closed ? 0 : now + CHECK_AGE;
        rv = APR_SUCCESS;
    }
    return rv;
}

static void transaction_count(mdl_db_t *db)
{
    for (int i = 0; i < db->tally.count; i++) {
        atomic_fetch_add_explicit(db->tally.each[i].counter, db->tally.each[i].n,
                                  memory_order_relaxed);
    }
}

static apr_status_t transaction_run(mdl_db_t *db, transaction_t transaction, mdl_effect_fn *effect,
                                    void *arg, apr_pool_t *p)
{
    apr_status_t rv = transaction_begin(db, transaction);

    db->tally.count = 0;
    if (rv == APR_SUCCESS) {
        db->failed = APR_SUCCESS;
        db->snapshot = transaction == SNAPSHOT;
        rv = transaction_check(db, p);
        if (rv == APR_SUCCESS && transaction == WRITE && db->closed) {
            rv = MDL_DB_ECLOSED;
        }
        rv = transaction_end(db, transaction, rv == APR_SUCCESS ? effect(db, p, arg) : rv);
    }
    if (rv == APR_SUCCESS) {
        transaction_count(db);
    }
    if (db->ops->end != NULL) {
        db->ops->end(db->native);
    }
    return rv;
}

/* Whether another try on a mended connection may succeed. */
static int is_mendable(apr_status_t rv)
{
    return rv == MDL_DB_EGONE || rv == MDL_DB_ESTALE || rv == MDL_DB_ERETRY;
}

/* Whether a transaction failed after so long a silence that an immediate retry is useless. */
static int is_silence(apr_status_t rv, apr_time_t began)
{
    return rv == MDL_DB_EGONE && mdl_clock_monotonic() - began >= SILENCE;
}

static apr_status_t transaction_try(mdl_db_t *db, transaction_t transaction, mdl_effect_fn *effect,
                                    void *arg, apr_time_t began, apr_pool_t *p)
{
    apr_status_t rv = transaction_run(db, transaction, effect, arg, p);

    for (int i = 0; is_mendable(rv) && i <= MORE_TRIES && (i == 0 || rv != MDL_DB_EGONE); i++) {
        if (is_silence(rv, began)) {
            return rv;
        }
        if (i == 0) {
            mdl_log(MDL_LOG_INFO, 0, "MDL0109: database: a transaction is tried again after: %s",
                    db->error);
        }
        if (transaction_mend(db, rv) != APR_SUCCESS) {
            return MDL_DB_EGONE;
        }
        rv = transaction_run(db, transaction, effect, arg, p);
    }
    return rv == MDL_DB_ESTALE || rv == MDL_DB_ERETRY ? MDL_DB_EOTHER : rv;
}

static apr_status_t transaction_run_mended(mdl_db_t *db, transaction_t transaction,
                                           mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    apr_time_t began = mdl_clock_monotonic();
    apr_status_t rv;

    if (db->silent) {
        return MDL_DB_EGONE;
    }
    rv = transaction_try(db, transaction, effect, arg, began, p);
    db->silent = is_silence(rv, began);
    return rv == MDL_DB_EGONE ? transaction_out_of_reach(db) : rv;
}

/*
 * Group commit on SQLite: threads that want to write while another writes queue up.  The next
 * leader runs all their effects in one transaction on the process's writer, each in its own
 * savepoint, so that one fsync serves many.  The other threads sleep, so the leader may use their
 * pools and connections.
 */

typedef struct group_entry_t {
    mdl_db_t *db; /* the caller's */
    transaction_t transaction;
    mdl_effect_fn *effect;
    void *arg;
    apr_pool_t *pool;
    apr_status_t rv;
    int done;
    pthread_cond_t turn;
    struct group_entry_t *next;
} group_entry_t;

static pthread_mutex_t group_mutex = PTHREAD_MUTEX_INITIALIZER;
static group_entry_t *group_first;
static group_entry_t **group_last = &group_first;
static int group_led; /* whether there is a leader */

/* Takes up to GROUP_MAX entries from the queue's head. */
static group_entry_t *group_take_batch(void)
{
    group_entry_t *batch;
    group_entry_t **end = &group_first;

    pthread_mutex_lock(&group_mutex);
    for (int n = 0; n < GROUP_MAX && *end != NULL; n++) {
        end = &(*end)->next;
    }
    batch = group_first;
    group_first = *end;
    if (group_first == NULL) {
        group_last = &group_first;
    }
    *end = NULL;
    pthread_mutex_unlock(&group_mutex);
    return batch;
}

static void group_copy_error(const mdl_db_t *db, group_entry_t *entry)
{
    if (db != entry->db) {
        apr_cpystrn(entry->db->error, db->error, sizeof entry->db->error);
    }
}

/* Runs an effect and copies its cost and error to its caller's connection. */
static apr_status_t group_run_effect(mdl_db_t *db, group_entry_t *entry)
{
    mdl_db_cost_t before = db->cost;
    apr_status_t rv;

    entry->db->closed = db->closed;
    if (db->closed && entry->transaction == WRITE) {
        return MDL_DB_ECLOSED;
    }
    db->request_id = entry->db->request_id;
    rv = entry->effect(db, entry->pool, entry->arg);
    if (db != entry->db) {
        entry->db->cost.statements += db->cost.statements - before.statements;
        entry->db->cost.rows += db->cost.rows - before.rows;
    }
    if (rv != APR_SUCCESS || db->failed != APR_SUCCESS) {
        group_copy_error(db, entry);
    }
    return rv;
}

static apr_status_t group_run_in_savepoint(mdl_db_t *db, group_entry_t *entry)
{
    const char *close = "RELEASE effect";
    mdl_db_tally_t before = db->tally;
    apr_status_t failed;

    if (db->ops->command(db->native, "SAVEPOINT effect")) {
        return mdl_db_note_failure(db, "SAVEPOINT");
    }
    entry->rv = transaction_outcome(db, group_run_effect(db, entry));
    failed = db->failed;
    db->failed = APR_SUCCESS;
    if (entry->rv != APR_SUCCESS) {
        close = "ROLLBACK TO effect; RELEASE effect";
        db->tally = before;
    }
    if (!db->ops->command(db->native, close)) {
        return APR_SUCCESS;
    }
    /* A full disk rolls back the whole transaction, savepoints included. */
    return failed != APR_SUCCESS ? failed : mdl_db_note_failure(db, close);
}

/* An effect that runs a batch of effects: if one fails, the others are still committed. */
static apr_status_t group_run_batch(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    group_entry_t **batch = arg;

    (void)p;
    if (*batch == NULL) {
        *batch = group_take_batch();
    }
    if ((*batch)->next == NULL) {
        return (*batch)->rv = group_run_effect(db, *batch);
    }
    for (group_entry_t *entry = *batch; entry != NULL; entry = entry->next) {
        apr_status_t rv = group_run_in_savepoint(db, entry);

        if (rv != APR_SUCCESS || is_mendable(entry->rv)) {
            return rv != APR_SUCCESS ? rv : entry->rv;
        }
    }
    return APR_SUCCESS;
}

/* Removes the leader's entry and overdue entries from the queue. */
static group_entry_t *group_take_late(const group_entry_t *own)
{
    apr_time_t now = mdl_clock_monotonic();
    group_entry_t *late = NULL;
    group_entry_t **end = &late;
    group_entry_t **at = &group_first;

    pthread_mutex_lock(&group_mutex);
    while (*at != NULL) {
        group_entry_t *entry = *at;

        if (entry == own || entry->db->patience <= now) {
            *at = entry->next;
            *end = entry;
            end = &entry->next;
        } else {
            at = &entry->next;
        }
    }
    *end = NULL;
    group_last = at;
    pthread_mutex_unlock(&group_mutex);
    return late;
}

static mdl_db_t *writer_open(const mdl_db_t *db, apr_pool_t *p)
{
    const char *why;
    mdl_db_t *opened;

    return mdl_db_open(&opened, db->ops->name, db->file_path, &why, p) == APR_SUCCESS &&
                   mdl_db_command(opened, WRITER_SETTINGS) == APR_SUCCESS
               ? opened
               : NULL;
}

static void group_lead(mdl_db_t *db, group_entry_t *own)
{
    group_entry_t *batch = NULL;
    group_entry_t *next;
    mdl_db_t *on = mdl_writer_take(db, writer_open);
    apr_status_t rv;

    on->patience = db->patience;
    on->check = db->check;
    rv = transaction_run_mended(on, SETTLE, group_run_batch, &batch, own->pool);
    if (batch == NULL) { /* no transaction was begun */
        batch = group_take_late(own);
    }
    pthread_mutex_lock(&group_mutex);
    for (group_entry_t *entry = batch; entry != NULL; entry = next) {
        next = entry->next;
        /* The transaction was rolled back, so no result of its effects counts. */
        if (rv != APR_SUCCESS) {
            entry->rv = rv;
            group_copy_error(on, entry);
        }
        entry->done = 1;
        pthread_cond_signal(&entry->turn);
    }
    pthread_mutex_unlock(&group_mutex);
    if (rv == MDL_DB_EGONE) {
        mdl_writer_lose();
    }
}

static apr_status_t group_write(mdl_db_t *db, transaction_t transaction, mdl_effect_fn *effect,
                                void *arg, apr_pool_t *p)
{
    group_entry_t entry = {.db = db,
                           .transaction = transaction,
                           .effect = effect,
                           .arg = arg,
                           .pool = p,
                           .turn = PTHREAD_COND_INITIALIZER};

    db->patience = mdl_clock_monotonic() + PATIENCE;
    /* The writer opened the present file, but db is on a replaced one. */
    if (mdl_db_begin_session(db) != APR_SUCCESS || is_file_replaced(db) || db->unreferenced) {
        return transaction_run_mended(db, transaction, effect, arg, p);
    }
    pthread_mutex_lock(&group_mutex);
    *group_last = &entry;
    group_last = &entry.next;
    while (!entry.done) {
        if (group_led) {
            pthread_cond_wait(&entry.turn, &group_mutex);
            continue;
        }
        group_led = 1;
        pthread_mutex_unlock(&group_mutex);
        group_lead(db, &entry);
        pthread_mutex_lock(&group_mutex);
        group_led = 0;
    }
    if (!group_led && group_first != NULL) {
        pthread_cond_signal(&group_first->turn);
    }
    pthread_mutex_unlock(&group_mutex);
    pthread_cond_destroy(&entry.turn);
    return entry.rv;
}

static apr_status_t nothing_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)db, (void)p, (void)arg;
    return APR_SUCCESS;
}

/* A statement that does not fit the schema may be due to a change since the last check. */
static apr_status_t transaction_explain(mdl_db_t *db, apr_status_t rv, apr_pool_t *p)
{
    if (rv != MDL_DB_EOTHER || db->check == NULL) {
        return rv;
    }
    db->check_at = 0;
    return transaction_run_mended(db, NONE, nothing_effect, NULL, p) == MDL_DB_ENEWER
               ? MDL_DB_ENEWER
               : rv;
}

static apr_status_t transaction_write(mdl_db_t *db, transaction_t transaction,
                                      mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    apr_status_t rv = db->ops->dialect == MDL_SQLITE3
                          ? group_write(db, transaction, effect, arg, p)
                          : transaction_run_mended(db, transaction, effect, arg, p);

    return transaction_explain(db, rv, p);
}

apr_status_t mdl_db_write(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return transaction_write(db, WRITE, effect, arg, p);
}

apr_status_t mdl_db_settle(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return transaction_write(db, SETTLE, effect, arg, p);
}

apr_status_t mdl_db_read(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return transaction_explain(db, transaction_run_mended(db, NONE, effect, arg, p), p);
}

apr_status_t mdl_db_snapshot(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return transaction_explain(db, transaction_run_mended(db, SNAPSHOT, effect, arg, p), p);
}

apr_status_t mdl_db_end_snapshot(mdl_db_t *db)
{
    if (!db->snapshot) {
        return APR_SUCCESS;
    }
    if (db->ops->command(db->native, "COMMIT")) {
        return mdl_db_note_failure(db, "COMMIT");
    }
    db->snapshot = 0;
    return APR_SUCCESS;
}

apr_status_t mdl_db_wait_briefly(mdl_db_t *db)
{
    const char *command = db->ops->wait_briefly;

    return command != NULL && db->ops->command(db->native, command)
               ? mdl_db_note_failure(db, command)
               : APR_SUCCESS;
}

apr_status_t mdl_db_ask(mdl_db_t *db, apr_pool_t *p)
{
    db->session = 0; /* making the settings again is the ping */
    return mdl_db_read(db, nothing_effect, NULL, p);
}
