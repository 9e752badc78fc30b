#include "db/private.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>

#include <apr_time.h>

#include "base/log.h"

#define LOCK_WAIT    apr_time_from_sec(5)
#define LOCK_NAP_MIN 250 /* microseconds */
#define LOCK_NAP_MAX 1000
#define GROUP_MAX    64
#define MORE_TRIES   3 /* beyond the second, where transactions got into each other's way */

/* Waits for this process's turn to write.  flock belongs to the open file, so it holds between the
   threads of one process as between processes, and a killed holder lets go. */
static apr_status_t lock_writer(mdl_db_t *db)
{
    apr_time_t deadline = apr_time_now() + LOCK_WAIT;
    apr_interval_time_t nap = LOCK_NAP_MIN;

    if (db->lock_path == NULL) {
        return APR_SUCCESS;
    }
    if (db->lock_fd < 0) {
        db->lock_fd = open(db->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
        if (db->lock_fd < 0) {
            mdl_log(MDL_LOG_ERR, errno, "MDL0106: can't open the lock file %s", db->lock_path);
            return MDL_DB_EGONE;
        }
    }
    while (flock(db->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            mdl_log(MDL_LOG_ERR, errno, "MDL0107: can't lock %s", db->lock_path);
            return MDL_DB_EOTHER;
        }
        if (apr_time_now() > deadline) {
            mdl_log(MDL_LOG_WARNING, 0, "MDL0108: another process holds %s for over 5 s",
                    db->lock_path);
            return MDL_DB_EBUSY;
        }
        apr_sleep(nap);
        nap = nap * 2 > LOCK_NAP_MAX ? LOCK_NAP_MAX : nap * 2;
    }
    return APR_SUCCESS;
}

static void unlock_writer(mdl_db_t *db)
{
    if (db->lock_fd >= 0) {
        flock(db->lock_fd, LOCK_UN);
    }
}

typedef enum { NONE, SNAPSHOT, WRITE } transaction_t;

static apr_status_t begin_snapshot(mdl_db_t *db)
{
    apr_status_t rv = mdl_db_begin_session(db);

    return rv == APR_SUCCESS && db->ops->command(db->native, db->ops->begin_snapshot)
               ? mdl_db_note_failure(db, "BEGIN")
               : rv;
}

static apr_status_t begin_write(mdl_db_t *db)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS || (rv = lock_writer(db)) != APR_SUCCESS) {
        return rv;
    }
    if (db->file_path != NULL && mdl_db_file_id(db) != db->file_id) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0113: %s is not the file any more that this process has opened; restart httpd",
                db->file_path);
        unlock_writer(db);
        return MDL_DB_EGONE;
    }
    if (db->ops->command(db->native, db->ops->begin)) {
        rv = mdl_db_note_failure(db, "BEGIN");
        unlock_writer(db);
        return rv;
    }
    return APR_SUCCESS;
}

static apr_status_t transaction_end(mdl_db_t *db, apr_status_t rv)
{
    if (rv == APR_SUCCESS) {
        rv = db->failed;
    }
    if (rv == APR_SUCCESS && db->ops->command(db->native, "COMMIT")) {
        rv = mdl_db_note_failure(db, "COMMIT");
    }
    if (rv != APR_SUCCESS) {
        db->ops->command(db->native, "ROLLBACK");
    }
    unlock_writer(db);
    return rv;
}

/* Makes the connection usable again after the classes that a second try can mend. */
static apr_status_t transaction_mend(mdl_db_t *db, apr_status_t rv)
{
    if (rv == MDL_DB_ERETRY) {
        return APR_SUCCESS;
    }
    memset(db->prepared, 0, sizeof db->prepared);
    db->session = 0; /* statements may be lost because the session is another */
    if (rv == MDL_DB_ESTALE) {
        return db->dialect == MDL_SQLITE3 ? APR_SUCCESS : mdl_db_command(db, "DEALLOCATE ALL");
    }
    if (db->ops->reset == NULL) {
        return MDL_DB_EGONE;
    }
    if ((rv = db->ops->reset(db->native)) != APR_SUCCESS) {
        mdl_db_keep_error(db);
    }
    return rv;
}

static apr_status_t out_of_reach(const mdl_db_t *db)
{
    mdl_log(MDL_LOG_ERR, 0, "MDL0110: the database is out of reach: %s%s", db->error,
            db->ops->reset == NULL ? "; when that is mended, restart httpd" : "");
    return MDL_DB_EGONE;
}

static apr_status_t transaction_begin(mdl_db_t *db, transaction_t transaction)
{
    switch (transaction) {
    case SNAPSHOT:
        return begin_snapshot(db);
    case WRITE:
        return begin_write(db);
    default:
        return APR_SUCCESS;
    }
}

static apr_status_t transaction_run(mdl_db_t *db, transaction_t transaction, mdl_effect_fn *effect,
                                    void *arg, apr_pool_t *p)
{
    apr_status_t rv = transaction_begin(db, transaction);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    db->failed = APR_SUCCESS;
    rv = effect(db, p, arg);
    return transaction != NONE ? transaction_end(db, rv) : rv;
}

/* Whether another try on a mended connection may do: others may change the schema, or take a lock,
   again and again. */
static int is_mendable(apr_status_t rv)
{
    return rv == MDL_DB_EGONE || rv == MDL_DB_ESTALE || rv == MDL_DB_ERETRY;
}

static apr_status_t run_mended(mdl_db_t *db, transaction_t transaction, mdl_effect_fn *effect,
                               void *arg, apr_pool_t *p)
{
    apr_status_t rv = transaction_run(db, transaction, effect, arg, p);

    for (int i = 0; is_mendable(rv) && i <= MORE_TRIES && (i == 0 || rv != MDL_DB_EGONE); i++) {
        if (i == 0) {
            mdl_log(MDL_LOG_INFO, 0, "MDL0109: database: a connection is made anew after: %s",
                    db->error);
        }
        if (transaction_mend(db, rv) != APR_SUCCESS) {
            return out_of_reach(db);
        }
        rv = transaction_run(db, transaction, effect, arg, p);
    }
    if (rv == MDL_DB_EGONE) {
        return out_of_reach(db);
    }
    return rv == MDL_DB_ESTALE || rv == MDL_DB_ERETRY ? MDL_DB_EOTHER : rv;
}

/*
 * Group commit on SQLite: threads that want to write while another one does queue up, and the next
 * to lead runs what they all want in one transaction, each effect in a savepoint of its own.  One
 * fsync then serves many.  The others sleep meanwhile, so the leader may use their pools.
 */

typedef struct entry_t {
    mdl_effect_fn *effect;
    void *arg;
    apr_pool_t *pool;
    apr_status_t rv;
    int done;
    pthread_cond_t turn;
    struct entry_t *next;
} entry_t;

static pthread_mutex_t group_mutex = PTHREAD_MUTEX_INITIALIZER;
static entry_t *group_first;
static entry_t **group_last = &group_first;
static int group_led; /* by one of the threads */

/* Takes the first entries of the queue. */
static entry_t *take_batch(void)
{
    entry_t *batch;
    entry_t **end = &group_first;

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

static apr_status_t run_in_savepoint(mdl_db_t *db, entry_t *entry)
{
    const char *close = "RELEASE effect";
    apr_status_t failed;

    if (db->ops->command(db->native, "SAVEPOINT effect")) {
        return mdl_db_note_failure(db, "SAVEPOINT");
    }
    entry->rv = entry->effect(db, entry->pool, entry->arg);
    failed = db->failed;
    if (entry->rv == APR_SUCCESS) {
        entry->rv = failed;
    }
    db->failed = APR_SUCCESS;
    if (entry->rv != APR_SUCCESS) {
        close = "ROLLBACK TO effect; RELEASE effect";
    }
    if (!db->ops->command(db->native, close)) {
        return APR_SUCCESS;
    }
    /* A full disk has rolled back the whole transaction, savepoints and all. */
    return failed != APR_SUCCESS ? failed : mdl_db_note_failure(db, close);
}

/* An effect made of many: what one of them refuses does not concern the others. */
static apr_status_t run_batch(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    entry_t **batch = arg;

    (void)p;
    if (*batch == NULL) {
        *batch = take_batch();
    }
    if ((*batch)->next == NULL) {
        return (*batch)->rv = (*batch)->effect(db, (*batch)->pool, (*batch)->arg);
    }
    for (entry_t *entry = *batch; entry != NULL; entry = entry->next) {
        apr_status_t rv = run_in_savepoint(db, entry);

        if (rv != APR_SUCCESS || is_mendable(entry->rv)) {
            return rv != APR_SUCCESS ? rv : entry->rv;
        }
    }
    return APR_SUCCESS;
}

/* Takes one entry out of the queue. */
static entry_t *take_own(entry_t *own)
{
    pthread_mutex_lock(&group_mutex);
    for (entry_t **at = &group_first; *at != NULL; at = &(*at)->next) {
        if (*at == own) {
            *at = own->next;
            if (group_last == &own->next) {
                group_last = at;
            }
            break;
        }
    }
    pthread_mutex_unlock(&group_mutex);
    own->next = NULL;
    return own;
}

static void transaction_lead(mdl_db_t *db, entry_t *own)
{
    entry_t *batch = NULL;
    entry_t *next;
    apr_status_t rv = run_mended(db, WRITE, run_batch, &batch, own->pool);

    /* No transaction was to be had: for nobody, when others hold the lock; but a connection that is
       lost is this thread's alone. */
    if (batch == NULL) {
        batch = rv == MDL_DB_EBUSY ? take_batch() : take_own(own);
    }
    pthread_mutex_lock(&group_mutex);
    for (entry_t *entry = batch; entry != NULL; entry = next) {
        next = entry->next;
        /* What was rolled back counts for nothing, not even what was refused because of it. */
        if (rv != APR_SUCCESS) {
            entry->rv = rv;
        }
        entry->done = 1;
        pthread_cond_signal(&entry->turn);
    }
    pthread_mutex_unlock(&group_mutex);
}

static apr_status_t write_in_group(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    entry_t entry = {.effect = effect, .arg = arg, .pool = p, .turn = PTHREAD_COND_INITIALIZER};

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
        transaction_lead(db, &entry);
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

apr_status_t mdl_db_write(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return db->dialect == MDL_SQLITE3 ? write_in_group(db, effect, arg, p)
                                      : run_mended(db, WRITE, effect, arg, p);
}

apr_status_t mdl_db_read(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return run_mended(db, NONE, effect, arg, p);
}

apr_status_t mdl_db_snapshot(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p)
{
    return run_mended(db, SNAPSHOT, effect, arg, p);
}
