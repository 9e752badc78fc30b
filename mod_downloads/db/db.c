#include "db/db.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/log.h"
#include "db/private.h"

#define ATTACHED_KEY  "mdl_db"
#define MAX_ARGUMENTS 32

struct mdl_rows_t {
    mdl_db_t *db;
    apr_pool_t *pool;
    apr_dbd_results_t *results;
    apr_dbd_row_t *row;
};

/* Keeps the first line of what the database said: the rest can hold a customer's data. */
void mdl_db_keep_error(mdl_db_t *db)
{
    const char *error_text = db->ops->error_text(db->native);
    apr_size_t length = strcspn(error_text, "\n");

    if (length >= sizeof db->error) {
        length = sizeof db->error - 1;
    }
    memcpy(db->error, error_text, length);
    db->error[length] = '\0';
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

static apr_status_t close_lock(void *data)
{
    mdl_db_t *db = data;

    if (db->lock_fd >= 0) {
        close(db->lock_fd);
        db->lock_fd = -1;
    }
    return APR_SUCCESS;
}

static mdl_db_t *db_make(const apr_dbd_driver_t *driver, apr_dbd_t *handle, const char *params,
                         apr_pool_t *p)
{
    const char *name = apr_dbd_name(driver);
    mdl_db_t *db;

    if (strcmp(name, "sqlite3") != 0 && strcmp(name, "pgsql") != 0) {
        return NULL;
    }
    db = apr_pcalloc(p, sizeof *db);
    db->pool = p;
    db->driver = driver;
    db->handle = handle;
    db->native = apr_dbd_native_handle(driver, handle);
    db->dialect = *name == 's' ? MDL_SQLITE3 : MDL_PGSQL;
    db->ops = db->dialect == MDL_SQLITE3 ? &mdl_dialect_sqlite3 : &mdl_dialect_pgsql;
    if (db->dialect == MDL_SQLITE3) {
        db->file_path = apr_pstrdup(p, params);
        db->lock_path = apr_pstrcat(p, params, "-writer", NULL);
    }
    db->lock_fd = -1;
    apr_pool_cleanup_register(p, db, close_lock, apr_pool_cleanup_null);
    return db;
}

static apr_status_t close_handle(void *data)
{
    mdl_db_t *db = data;

    apr_dbd_close(db->driver, db->handle);
    return APR_SUCCESS;
}

apr_status_t mdl_db_open(mdl_db_t **db, const char *driver_name, const char *params,
                         const char **why, apr_pool_t *p)
{
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    const char *error = NULL;
    apr_status_t rv;

    *db = NULL;
    *why = apr_psprintf(p,
                        "The driver %s of DBDriver is not installed, or not one of sqlite3 and "
                        "pgsql.",
                        driver_name);
    if ((rv = apr_dbd_init(p)) != APR_SUCCESS) {
        return rv;
    }
    if (apr_dbd_get_driver(p, driver_name, &driver) != APR_SUCCESS) {
        return APR_EINVAL;
    }
    if (apr_dbd_open_ex(driver, p, params, &handle, &error) != APR_SUCCESS) {
        *why = error != NULL ? apr_pstrndup(p, error, strcspn(error, "\n")) : "It gave no reason.";
        return MDL_DB_EGONE;
    }
    if ((*db = db_make(driver, handle, params, p)) == NULL) {
        apr_dbd_close(driver, handle);
        return APR_EINVAL;
    }
    apr_pool_cleanup_register(p, *db, close_handle, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

apr_status_t mdl_db_attach(mdl_db_t **db, const apr_dbd_driver_t *driver, apr_dbd_t *handle,
                           const char *params, apr_pool_t *connection_pool)
{
    void *found = NULL;

    apr_pool_userdata_get(&found, ATTACHED_KEY, connection_pool);
    if (found == NULL) {
        if ((found = db_make(driver, handle, params, connection_pool)) == NULL) {
            return APR_EINVAL;
        }
        apr_pool_userdata_setn(found, ATTACHED_KEY, NULL, connection_pool);
    }
    *db = found;
    return APR_SUCCESS;
}

mdl_dialect_t mdl_db_dialect(const mdl_db_t *db)
{
    return db->dialect;
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

    if (db->session) {
        return APR_SUCCESS;
    }
    if ((rv = db->ops->session(db->native)) != APR_SUCCESS) {
        return mdl_db_note_failure(db, "session");
    }
    db->session = 1;
    db->file_id = mdl_db_file_id(db);
    return APR_SUCCESS;
}

static apr_status_t db_prepare(mdl_db_t *db, mdl_statement_t statement)
{
    const mdl_statement_text_t *text = &mdl_statements[statement];
    apr_dbd_prepared_t *prepared = NULL;
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS || db->prepared[statement] != NULL) {
        return rv;
    }
    if (apr_dbd_prepare(db->driver, db->pool, db->handle, text->text[db->dialect], text->label,
                        &prepared) != 0) {
        return mdl_db_note_failure(db, text->label);
    }
    db->prepared[statement] = prepared;
    return APR_SUCCESS;
}

/* Binds by type; a mismatch is a fault of the caller, found by the first test that gets there. */
static apr_status_t bind_arguments(mdl_db_t *db, const mdl_statement_text_t *text,
                                   const mdl_arg_t *args, apr_size_t nargs, const void **values)
{
    if (strlen(text->types) != nargs || nargs > MAX_ARGUMENTS) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0104: %s takes %d arguments, got %d", text->label,
                (int)strlen(text->types), (int)nargs);
        return db->failed = MDL_DB_EOTHER;
    }
    for (apr_size_t i = 0; i < nargs; i++) {
        if (args[i].type != 'n' && args[i].type != text->types[i]) {
            mdl_log(MDL_LOG_ERR, 0, "MDL0105: argument %d of %s has the wrong type", (int)i + 1,
                    text->label);
            return db->failed = MDL_DB_EOTHER;
        }
        switch (args[i].type) {
        case 'i':
            values[i] = &args[i].i;
            break;
        case 's':
            values[i] = args[i].s;
            break;
        default:
            values[i] = NULL;
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_db_exec(mdl_db_t *db, mdl_statement_t statement, apr_int64_t *changed,
                         apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs)
{
    const void *values[MAX_ARGUMENTS];
    int rows = 0;
    apr_status_t rv = db_prepare(db, statement);

    if (rv != APR_SUCCESS ||
        (rv = bind_arguments(db, &mdl_statements[statement], args, nargs, values))) {
        return rv;
    }
    if (apr_dbd_pbquery(db->driver, p, db->handle, &rows, db->prepared[statement], values) != 0) {
        return mdl_db_note_failure(db, mdl_statements[statement].label);
    }
    if (changed != NULL) {
        *changed = rows;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_db_select(mdl_db_t *db, mdl_statement_t statement, mdl_rows_t **rows,
                           apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs)
{
    const void *values[MAX_ARGUMENTS];
    apr_dbd_results_t *results = NULL;
    apr_status_t rv = db_prepare(db, statement);

    *rows = NULL;
    if (rv != APR_SUCCESS ||
        (rv = bind_arguments(db, &mdl_statements[statement], args, nargs, values))) {
        return rv;
    }
    /* random = 1: without it PostgreSQL's errors look like an empty result */
    if (apr_dbd_pbselect(db->driver, p, db->handle, &results, db->prepared[statement], 1, values) !=
        0) {
        return mdl_db_note_failure(db, mdl_statements[statement].label);
    }
    *rows = apr_pcalloc(p, sizeof **rows);
    (*rows)->db = db;
    (*rows)->pool = p;
    (*rows)->results = results;
    return APR_SUCCESS;
}

apr_status_t mdl_db_select_one(mdl_db_t *db, mdl_statement_t statement, mdl_rows_t **row,
                               apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs)
{
    apr_status_t rv = mdl_db_select(db, statement, row, p, args, nargs);

    return rv != APR_SUCCESS || mdl_rows_next(*row) ? rv : APR_ENOENT;
}

int mdl_rows_next(mdl_rows_t *rows)
{
    /* PostgreSQL's driver begins anew when it is asked again after the last row. */
    if (rows->results != NULL &&
        apr_dbd_get_row(rows->db->driver, rows->pool, rows->results, &rows->row, -1) != 0) {
        rows->results = NULL;
    }
    return rows->results != NULL;
}

const char *mdl_rows_text(const mdl_rows_t *rows, int column)
{
    const char *value;

    if (apr_dbd_datum_get(rows->db->driver, rows->row, column, APR_DBD_TYPE_STRING, &value) !=
        APR_SUCCESS) {
        return NULL;
    }
    return apr_pstrdup(rows->pool, value);
}

apr_int64_t mdl_rows_int(const mdl_rows_t *rows, int column)
{
    apr_int64_t value;

    if (apr_dbd_datum_get(rows->db->driver, rows->row, column, APR_DBD_TYPE_LONGLONG, &value) !=
        APR_SUCCESS) {
        return 0;
    }
    return value;
}

int mdl_rows_null(const mdl_rows_t *rows, int column)
{
    const char *value;

    return apr_dbd_datum_get(rows->db->driver, rows->row, column, APR_DBD_TYPE_STRING, &value) ==
           APR_ENOENT;
}

apr_status_t mdl_db_command(mdl_db_t *db, const char *sql)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return db->ops->command(db->native, sql) ? mdl_db_note_failure(db, "command") : APR_SUCCESS;
}
