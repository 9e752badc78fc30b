#include "db/private.h"

#include <string.h>

#include <apr_strings.h>

#include "base/log.h"
#include "base/names.h"

struct mdl_rows_t {
    mdl_db_t *db;
    apr_pool_t *pool;
    const char *label; /* of the statement */
    mdl_result_t result;
    int next; /* row */
};

static apr_status_t statement_prepare(mdl_db_t *db, mdl_statement_t statement)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS || db->prepared[statement] != NULL) {
        return rv;
    }
    db->ops->prepare(db->native, &mdl_statements[statement], &db->prepared[statement]);
    return db->prepared[statement] != NULL
               ? APR_SUCCESS
               : mdl_db_note_failure(db, mdl_statements[statement].label);
}

/* result may be NULL. */
static apr_status_t statement_run(mdl_db_t *db, const mdl_query_t *query, mdl_result_t *result,
                                  apr_pool_t *p)
{
    const mdl_statement_text_t *text = &mdl_statements[query->statement];
    const mdl_statement_text_t *named = &mdl_statements[query->named];
    apr_status_t rv;

    if (text != named &&
        (strcmp(text->names, named->names) != 0 || strcmp(text->types, named->types) != 0)) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0104: %s takes other arguments than %s", text->label,
                named->label);
        return db->failed = MDL_DB_EOTHER;
    }
    if ((rv = statement_prepare(db, query->statement)) != APR_SUCCESS) {
        return rv;
    }
    db->cost.statements++;
    return db->ops->run(db->native, text, db->prepared[query->statement], query->args, result, p)
               ? mdl_db_note_failure(db, text->label)
               : APR_SUCCESS;
}

apr_status_t mdl_db_flush(mdl_db_t *db)
{
    const char *failed = NULL;

    if (db->ops->flush != NULL && db->ops->flush(db->native, &failed)) {
        db->cost.trips++;
    }
    return failed != NULL ? mdl_db_note_failure(db, failed) : APR_SUCCESS;
}

apr_status_t mdl_db_exec(mdl_db_t *db, apr_int64_t *changed, apr_pool_t *p, mdl_query_t query)
{
    mdl_result_t *result = changed != NULL ? apr_pcalloc(p, sizeof *result) : NULL;
    apr_status_t rv = statement_run(db, &query, result, p);

    if (rv == APR_SUCCESS && result != NULL && result->pending) {
        rv = mdl_db_flush(db);
    }
    if (rv == APR_SUCCESS && changed != NULL) {
        *changed = result->changed;
    }
    return rv;
}

apr_status_t mdl_db_select(mdl_db_t *db, mdl_rows_t **rows, apr_pool_t *p, mdl_query_t query)
{
    mdl_rows_t *found = apr_pcalloc(p, sizeof *found);
    apr_status_t rv = statement_run(db, &query, &found->result, p);

    found->db = db;
    found->pool = p;
    found->label = mdl_statements[query.statement].label;
    *rows = rv == APR_SUCCESS ? found : NULL;
    return rv;
}

apr_status_t mdl_db_select_one(mdl_db_t *db, mdl_rows_t **row, apr_pool_t *p, mdl_query_t query)
{
    apr_status_t rv = mdl_db_select(db, row, p, query);

    return rv == APR_SUCCESS ? mdl_rows_one(*row) : rv;
}

apr_status_t mdl_rows_one(mdl_rows_t *rows)
{
    apr_status_t rv = rows->result.pending ? mdl_db_flush(rows->db) : APR_SUCCESS;

    return rv != APR_SUCCESS || mdl_rows_next(rows) ? rv : APR_ENOENT;
}

int mdl_rows_next(mdl_rows_t *rows)
{
    if (rows->result.pending) {
        mdl_db_flush(rows->db);
    }
    if (rows->next >= rows->result.rows) {
        return 0;
    }
    rows->next++;
    rows->db->cost.rows++;
    return 1;
}

static const mdl_cell_t *rows_cell(const mdl_rows_t *rows, int column)
{
    return &rows->result.cells[(rows->next - 1) * rows->result.columns + column];
}

const char *mdl_rows_text(const mdl_rows_t *rows, int column)
{
    const mdl_cell_t *cell = rows_cell(rows, column);

    switch (cell->type) {
    case MDL_CELL_INT:
        return apr_psprintf(rows->pool, "%" APR_INT64_T_FMT, cell->number);
    case MDL_CELL_TEXT:
        return cell->text;
    default:
        return NULL;
    }
}

apr_int64_t mdl_rows_int(const mdl_rows_t *rows, int column)
{
    const mdl_cell_t *cell = rows_cell(rows, column);

    return cell->type == MDL_CELL_TEXT ? apr_atoi64(cell->text) : cell->number;
}

apr_int64_t mdl_rows_int_or_none(const mdl_rows_t *rows, int column)
{
    return mdl_rows_null(rows, column) ? -1 : mdl_rows_int(rows, column);
}

int mdl_rows_null(const mdl_rows_t *rows, int column)
{
    return rows_cell(rows, column)->type == MDL_CELL_NULL;
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

apr_status_t mdl_db_finish_by(mdl_db_t *db, const char *sql)
{
    if (db->ops->command(db->native, sql)) {
        return mdl_db_note_failure(db, sql);
    }
    return mdl_db_flush(db);
}

apr_status_t mdl_db_command(mdl_db_t *db, const char *sql)
{
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_finish_by(db, sql);
}
