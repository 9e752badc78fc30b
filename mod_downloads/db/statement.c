#include "db/private.h"

#include <string.h>

#include <apr_strings.h>

#include "base/log.h"
#include "base/names.h"

#define MAX_ARGUMENTS 32

struct mdl_rows_t {
    mdl_db_t *db;
    apr_pool_t *pool;
    const char *label; /* of the statement */
    apr_dbd_results_t *results;
    apr_dbd_row_t *row;
};

static apr_status_t statement_prepare(mdl_db_t *db, mdl_statement_t statement)
{
    const mdl_statement_text_t *text = &mdl_statements[statement];
    apr_dbd_prepared_t *prepared = NULL;
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS || db->prepared[statement] != NULL) {
        return rv;
    }
    if (apr_dbd_prepare(db->driver, db->pool, db->handle, text->text[db->ops->dialect], text->label,
                        &prepared) != 0) {
        return mdl_db_note_failure(db, text->label);
    }
    db->prepared[statement] = prepared;
    return APR_SUCCESS;
}

/* Binds by type.  A mismatch is the caller's mistake, found by the first test that gets there. */
static apr_status_t statement_bind(mdl_db_t *db, const mdl_statement_text_t *text,
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
    apr_status_t rv = statement_prepare(db, statement);

    if (rv != APR_SUCCESS ||
        (rv = statement_bind(db, &mdl_statements[statement], args, nargs, values))) {
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
    apr_status_t rv = statement_prepare(db, statement);

    *rows = NULL;
    if (rv != APR_SUCCESS ||
        (rv = statement_bind(db, &mdl_statements[statement], args, nargs, values))) {
        return rv;
    }
    /* random = 1: without it, an error of PostgreSQL looks like an empty result. */
    if (apr_dbd_pbselect(db->driver, p, db->handle, &results, db->prepared[statement], 1, values) !=
        0) {
        return mdl_db_note_failure(db, mdl_statements[statement].label);
    }
    *rows = apr_pcalloc(p, sizeof **rows);
    (*rows)->db = db;
    (*rows)->pool = p;
    (*rows)->label = mdl_statements[statement].label;
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
    /* PostgreSQL's driver starts over when it is asked again after the last row. */
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

unsigned mdl_rows_enum(const mdl_rows_t *rows, int column, const char *const *names)
{
    const char *name = mdl_rows_text(rows, column);
    int value = mdl_names_find(names, name);

    if (value < 0) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0114: database: column %d of %s holds an unknown value: %s",
                column + 1, rows->label, name != NULL ? name : "NULL");
        rows->db->failed = MDL_DB_EOTHER;
        return 0;
    }
    return (unsigned)value;
}

apr_status_t mdl_db_command(mdl_db_t *db, const char *sql)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return db->ops->command(db->native, sql) ? mdl_db_note_failure(db, "command") : APR_SUCCESS;
}
