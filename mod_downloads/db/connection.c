#include "db/private.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/log.h"
#include "db/writer.h"

#define ATTACHED_KEY "mdl_db"

/* Keeps only the first line: the rest can contain a customer's data. */
void mdl_db_keep_error(mdl_db_t *db)
{
    const char *text = db->ops->error_text(db->native);

    apr_cpystrn(db->error, text, sizeof db->error);
    db->error[strcspn(db->error, "\n")] = '\0';
}

apr_status_t mdl_db_note_failure(mdl_db_t *db, const char *what)
{
    apr_status_t rv = db->ops->classify(db->native);

    mdl_db_keep_error(db);
    if (db->failed == APR_SUCCESS) {
        db->failed = rv;
    }
    if (rv == MDL_DB_EOTHER || rv == MDL_DB_EFULL) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0101: database: %s: %s", what, db->error);
    } else if (rv == MDL_DB_EBUSY || rv == MDL_DB_ELOCKED) {
        mdl_log(MDL_LOG_WARNING, 0, "MDL0101: database: %s: %s", what, db->error);
    } else {
        mdl_log(MDL_LOG_DEBUG, 0, "MDL0102: database: %s: %s", what, db->error);
    }
    return rv;
}

void mdl_db_forget_statements(mdl_db_t *db)
{
    for (int i = 0; i < MDL_Q_COUNT; i++) {
        if (db->prepared[i] != NULL && db->ops->finish != NULL) {
            db->ops->finish(db->prepared[i]);
        }
        db->prepared[i] = NULL;
    }
}

/* Runs before the handle is closed: SQLite keeps a handle open that has statements. */
static apr_status_t connection_release(void *data)
{
    mdl_db_t *db = data;

    mdl_db_forget_statements(db);
    if (db->ops->detach != NULL) {
        db->ops->detach(db->native);
    }
    if (db->lock_fd >= 0) {
        close(db->lock_fd);
        db->lock_fd = -1;
    }
    if (db->file_path != NULL) {
        mdl_writer_leave();
    }
    return APR_SUCCESS;
}

static const mdl_dialect_ops_t *dialect_of(const apr_dbd_driver_t *driver)
{
    const char *name = apr_dbd_name(driver);

    if (strcmp(name, mdl_dialect_sqlite3.name) == 0) {
        return &mdl_dialect_sqlite3;
    }
    return strcmp(name, mdl_dialect_pgsql.name) == 0 ? &mdl_dialect_pgsql : NULL;
}

/* NULL for a driver that is neither of the two. */
static mdl_db_t *connection_make(const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                                 const char *params, apr_pool_t *p)
{
    const mdl_dialect_ops_t *ops = dialect_of(driver);
    mdl_db_t *db;

    if (ops == NULL) {
        return NULL;
    }
    db = apr_pcalloc(p, sizeof *db);
    db->pool = p;
    db->driver = driver;
    db->handle = handle;
    db->ops = ops;
    db->native = ops->attach(apr_dbd_native_handle(driver, handle), p);
    if (ops->dialect == MDL_SQLITE3) {
        db->file_path = apr_pstrdup(p, params);
        db->lock_path = apr_pstrcat(p, params, "-writer", NULL);
        mdl_writer_join();
    }
    db->file_id = mdl_db_file_id(db);
    db->lock_fd = -1;
    return db;
}

static apr_status_t connection_close_handle(void *data)
{
    mdl_db_t *db = data;

    apr_dbd_close(db->driver, db->handle);
    return APR_SUCCESS;
}

apr_status_t mdl_db_open(mdl_db_t **db, const char *driver_name, const char *params,
                         const char **why, apr_pool_t *p)
{
    const apr_dbd_driver_t *driver;
    const mdl_dialect_ops_t *ops;
    apr_dbd_t *handle;
    const char *error = NULL;
    apr_status_t rv;

    *db = NULL;
    *why = apr_psprintf(p,
                        "apr-util's driver %s is not installed (Debian: apt-get install "
                        "libaprutil1-dbd-%s), or is not one of sqlite3 and pgsql.",
                        driver_name, driver_name);
    if ((rv = apr_dbd_init(p)) != APR_SUCCESS) {
        return rv;
    }
    if (apr_dbd_get_driver(p, driver_name, &driver) != APR_SUCCESS) {
        return APR_EINVAL;
    }
    ops = dialect_of(driver);
    if (ops != NULL && ops->refusal != NULL && (error = ops->refusal(params)) != NULL) {
        *why = error;
        return MDL_DB_EGONE;
    }
    if (apr_dbd_open_ex(driver, p, params, &handle, &error) != APR_SUCCESS) {
        *why = error != NULL ? apr_pstrndup(p, error, strcspn(error, "\n")) : "It gave no reason.";
        return MDL_DB_EGONE;
    }
    if ((*db = connection_make(driver, handle, params, p)) == NULL) {
        apr_dbd_close(driver, handle);
        return APR_EINVAL;
    }
    apr_pool_cleanup_register(p, *db, connection_close_handle, apr_pool_cleanup_null);
    apr_pool_cleanup_register(p, *db, connection_release, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

apr_status_t mdl_db_attach(mdl_db_t **db, const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                           const char *params, apr_pool_t *connection_pool)
{
    void *found = NULL;

    apr_pool_userdata_get(&found, ATTACHED_KEY, connection_pool);
    if (found == NULL) {
        if ((found = connection_make(driver, handle, params, connection_pool)) == NULL) {
            return APR_EINVAL;
        }
        apr_pool_userdata_setn(found, ATTACHED_KEY, NULL, connection_pool);
        apr_pool_cleanup_register(connection_pool, found, connection_release,
                                  apr_pool_cleanup_null);
    }
    *db = found;
    (*db)->silent = 0;
    return APR_SUCCESS;
}

int mdl_db_silent(const mdl_db_t *db)
{
    return db->silent;
}

void mdl_db_limit_waits(mdl_db_t *db, int limited)
{
    if (db->ops->limit != NULL) {
        db->ops->limit(db->native, limited);
    }
}

mdl_dialect_t mdl_db_dialect(const mdl_db_t *db)
{
    return db->ops->dialect;
}

void mdl_db_set_check(mdl_db_t *db, mdl_effect_fn *check)
{
    db->check = check;
}

void mdl_db_ignore_references(mdl_db_t *db)
{
    db->unreferenced = db->ops->dialect == MDL_SQLITE3;
}

int mdl_db_is_closed(const mdl_db_t *db)
{
    return db->closed;
}

void mdl_db_set_request(mdl_db_t *db, const char *request_id)
{
    db->request_id = request_id;
}

const char *mdl_db_request(const mdl_db_t *db)
{
    return db->request_id;
}

mdl_db_cost_t mdl_db_cost(const mdl_db_t *db)
{
    return db->cost;
}

void mdl_db_count_rows(mdl_db_t *db, apr_uint32_t rows)
{
    db->cost.rows += rows;
}

const char *mdl_db_error(const mdl_db_t *db)
{
    return db->error;
}

apr_uint64_t mdl_db_file_id(const mdl_db_t *db)
{
    struct stat file;

    return db->file_path != NULL && stat(db->file_path, &file) == 0 ? (apr_uint64_t)file.st_ino : 0;
}

apr_status_t mdl_db_begin_session(mdl_db_t *db)
{
    apr_status_t rv;

    if (db->ops->is_new != NULL && db->ops->is_new(db->native)) {
        mdl_db_forget_statements(db);
        db->session = 0;
    }
    if (db->session) {
        return APR_SUCCESS;
    }
    if ((rv = db->ops->session(db->native)) != APR_SUCCESS) {
        return mdl_db_note_failure(db, "session");
    }
    if (db->unreferenced && db->ops->command(db->native, "PRAGMA foreign_keys = OFF")) {
        return mdl_db_note_failure(db, "session");
    }
    db->session = 1;
    db->check_at = 0;
    return APR_SUCCESS;
}

apr_status_t mdl_db_free(const mdl_db_t *db, apr_int64_t *bytes)
{
    struct statvfs fs;

    if (db->file_path == NULL || statvfs(db->file_path, &fs) != 0) {
        return APR_ENOENT;
    }
    *bytes = (apr_int64_t)fs.f_bavail * (apr_int64_t)fs.f_frsize;
    return APR_SUCCESS;
}

void mdl_db_count(mdl_db_t *db, atomic_llong *counter, apr_int64_t n)
{
    mdl_db_tally_t *tally = &db->tally;
    int i = 0;

    while (i < tally->count && tally->each[i].counter != counter) {
        i++;
    }
    if (i == tally->count && i < MDL_DB_TALLIES) {
        tally->each[i].counter = counter;
        tally->each[i].n = 0;
        tally->count++;
    }
    if (i < MDL_DB_TALLIES) {
        tally->each[i].n += n;
    } else {
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed); /* better than not at all */
    }
}

void mdl_db_note_due(mdl_db_t *db, apr_time_t at)
{
    if (db->due.at == 0 || at < db->due.at) {
        db->due.at = at;
    }
}

void mdl_db_note_event(mdl_db_t *db)
{
    db->due.events = 1;
}

mdl_db_due_t mdl_db_take_due(mdl_db_t *db)
{
    mdl_db_due_t due = db->due;

    db->due = (mdl_db_due_t){0};
    return due;
}
