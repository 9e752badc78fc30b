#include "db/copy.h"

#include <string.h>

#include <apr_strings.h>

#include "db/copy_schema.h"
#include "db/private.h"

#define ROWS_MAX   2000          /* of a batch */
#define ROWS_FIRST 16            /* before the size of a table's rows is known */
#define CELL_MAX   32            /* bytes of an integer, or around a text */
#define BATCH      (1024 * 1024) /* bytes of values; a batch may have several times as many */

struct mdl_copy_t {
    mdl_db_t *from;
    mdl_db_t *to;
    apr_array_header_t *tables; /* mdl_copy_table_t *, in order */
    void (*step)(void *baton, int rows);
    void *baton;
};

/* Where a pass through a table has come to, on one database. */
typedef struct {
    const mdl_copy_table_t *table;
    mdl_db_t *db;
    int limit;                        /* rows of the next batch */
    mdl_arg_t key[MDL_COPY_KEYS_MAX]; /* of the last row */
    int begun;                        /* whether there was a row */
    mdl_result_t *rows;               /* the last batch */
    apr_pool_t *pool;                 /* of key */
} pass_t;

apr_status_t mdl_copy_create(mdl_copy_t **copy, mdl_db_t *from, mdl_db_t *to, const char **why,
                             apr_pool_t *p)
{
    apr_array_header_t *tables;
    apr_status_t rv = mdl_copy_schema_read(&tables, from, to, why, p);

    if (rv == APR_SUCCESS) {
        *copy = apr_palloc(p, sizeof **copy);
        **copy = (mdl_copy_t){.from = from, .to = to, .tables = tables};
    }
    return rv;
}

int mdl_copy_tables(const mdl_copy_t *copy)
{
    return copy->tables->nelts;
}

static const mdl_copy_table_t *table_at(const mdl_copy_t *copy, int i)
{
    return APR_ARRAY_IDX(copy->tables, i, const mdl_copy_table_t *);
}

const char *mdl_copy_table_name(const mdl_copy_t *copy, int table)
{
    return table_at(copy, table)->name;
}

/* --- statements --- */

/* Runs a statement that is prepared for this once.  Both databases take $1 for a parameter. */
static apr_status_t copy_run(mdl_db_t *db, const char *sql, const char *types,
                             const mdl_arg_t *args, mdl_result_t **result, apr_pool_t *p)
{
    const mdl_statement_text_t text = {.label = "", .types = types, .text = {sql, sql}};
    void *prepared = NULL;
    apr_status_t rv = mdl_db_begin_session(db);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *result = apr_pcalloc(p, sizeof **result); /* of p, which may release it */
    db->ops->prepare(db->native, &text, &prepared);
    if (prepared == NULL) {
        return mdl_db_note_failure(db, "copy");
    }
    rv = db->ops->run(db->native, &text, prepared, args, *result, p)
             ? mdl_db_note_failure(db, "copy")
             : mdl_db_flush(db);
    if (db->ops->finish != NULL) {
        db->ops->finish(prepared);
    }
    return rv;
}

/* The names of the columns, or those of the key, each with what is put before and behind it. */
static const char *columns_list(const mdl_copy_table_t *table, int keys, const char *behind,
                                apr_pool_t *p)
{
    apr_array_header_t *names = apr_array_make(p, 32, sizeof(const char *));

    for (int i = 0; i < (keys ? table->nkeys : table->columns->nelts); i++) {
        APR_ARRAY_PUSH(names, const char *) = apr_pstrcat(
            p, "\"", mdl_copy_column_at(table, keys ? table->keys[i] : i)->name, "\"", behind,
            NULL);
    }
    return apr_pstrcat(p, apr_array_pstrcat(p, names, ','), NULL);
}

static const char *keys_types(const mdl_copy_table_t *table, apr_pool_t *p)
{
    char *types = apr_pcalloc(p, MDL_COPY_KEYS_MAX + 1);

    for (int i = 0; i < table->nkeys; i++) {
        types[i] = mdl_copy_column_at(table, table->keys[i])->is_text ? 's' : 'i';
    }
    return types;
}

static const char *keys_parameters(const mdl_copy_table_t *table, apr_pool_t *p)
{
    const char *list = "$1";

    for (int i = 1; i < table->nkeys; i++) {
        list = apr_psprintf(p, "%s, $%d", list, i + 1);
    }
    return list;
}

/* --- passes --- */

static const char *cell_text(const mdl_cell_t *cell, apr_pool_t *p)
{
    return cell->type == MDL_CELL_INT    ? apr_psprintf(p, "%" APR_INT64_T_FMT, cell->number)
           : cell->type == MDL_CELL_TEXT ? cell->text
                                         : NULL;
}

static const mdl_cell_t *pass_cell(const pass_t *pass, int row, int column)
{
    return &pass->rows->cells[row * pass->rows->columns + column];
}

/* Notes a row's key, whose columns are the row's from at on, or everywhere for at < 0. */
static void pass_keep_key(pass_t *pass, const mdl_cell_t *row, int is_key)
{
    pass->begun = 1;
    for (int i = 0; i < pass->table->nkeys; i++) {
        const mdl_cell_t *cell = &row[is_key ? i : pass->table->keys[i]];
        const char *text = cell_text(cell, pass->pool);

        if (mdl_copy_column_at(pass->table, pass->table->keys[i])->is_text) {
            pass->key[i].text = apr_pstrdup(pass->pool, text);
        } else {
            pass->key[i].number = apr_atoi64(text);
        }
    }
}

static apr_status_t pass_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    pass_t *pass = arg;
    const mdl_copy_table_t *table = pass->table;
    const char *keys = columns_list(table, 1, "", p);
    const char *where = pass->begun
                            ? apr_psprintf(p, "WHERE (%s) > (%s) ", keys, keys_parameters(table, p))
                            : "";

    return copy_run(db,
                    apr_psprintf(p, "SELECT %s FROM \"%s\" %sORDER BY %s LIMIT %d",
                                 columns_list(table, 0, "", p), table->name, where, keys,
                                 pass->limit),
                    pass->begun ? keys_types(table, p) : "", pass->key, &pass->rows, p);
}

static apr_size_t pass_size(const pass_t *pass)
{
    apr_size_t size = 0;

    for (int i = 0; i < pass->rows->rows * pass->rows->columns; i++) {
        const mdl_cell_t *cell = &pass->rows->cells[i];

        size += cell->type == MDL_CELL_TEXT ? strlen(cell->text) : sizeof cell->number;
    }
    return size;
}

/* Reads the next batch, and adapts the one behind it to the size of this one's rows. */
static apr_status_t pass_read(pass_t *pass, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_read(pass->db, pass_read_effect, pass, p);
    apr_size_t size;

    if (rv != APR_SUCCESS || pass->rows->rows == 0) {
        return rv;
    }
    size = pass_size(pass) / (apr_size_t)pass->rows->rows + 1;
    apr_pool_clear(pass->pool);
    pass_keep_key(pass, pass_cell(pass, pass->rows->rows - 1, 0), 0);
    pass->limit = (int)(BATCH / size < ROWS_MAX ? BATCH / size : ROWS_MAX);
    pass->limit += pass->limit == 0;
    return APR_SUCCESS;
}

static pass_t pass_make(const mdl_copy_table_t *table, mdl_db_t *db, apr_pool_t *p)
{
    pass_t pass = {.table = table, .db = db, .limit = ROWS_FIRST};

    apr_pool_create(&pass.pool, p);
    apr_pool_tag(pass.pool, "mdl_copy_key");
    return pass;
}

/* --- rows --- */

/* Adds a JSON string (RFC 8259, section 7), or null. */
static char *json_put(char *end, const char *text)
{
    if (text == NULL) {
        memcpy(end, "null", 4);
        return end + 4;
    }
    *end++ = '"';
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') {
            end += apr_snprintf(end, 7, "\\u%04x", *text);
            continue;
        }
        if (*text == '"' || *text == '\\') {
            *end++ = '\\';
        }
        *end++ = *text;
    }
    *end++ = '"';
    return end;
}

/* All values are texts, which the columns' types make numbers of again. */
static const char *rows_json(const pass_t *pass, apr_pool_t *p)
{
    apr_size_t cells = (apr_size_t)pass->rows->rows * (apr_size_t)pass->rows->columns;
    char *json = apr_palloc(p, 6 * pass_size(pass) + CELL_MAX * (cells + 1));
    char *end = json;

    *end++ = '[';
    for (int row = 0; row < pass->rows->rows; row++) {
        *end++ = row > 0 ? ',' : ' ';
        for (int i = 0; i < pass->rows->columns; i++) {
            *end++ = i > 0 ? ',' : '[';
            end = json_put(end, cell_text(pass_cell(pass, row, i), p));
        }
        *end++ = ']';
    }
    *end++ = ']';
    *end = '\0';
    return json;
}

static const char *insert_sql(const mdl_db_t *db, const mdl_copy_table_t *table, apr_pool_t *p)
{
    apr_array_header_t *values = apr_array_make(p, 32, sizeof(const char *));
    int is_sqlite = mdl_db_dialect(db) == MDL_SQLITE3;

    for (int i = 0; i < table->columns->nelts; i++) {
        APR_ARRAY_PUSH(values, const char *) = apr_psprintf(
            p, "(value ->> %d)%s", i,
            is_sqlite || mdl_copy_column_at(table, i)->is_text ? "" : "::bigint");
    }
    return apr_psprintf(p, "INSERT INTO \"%s\" (%s) SELECT %s FROM %s", table->name,
                        columns_list(table, 0, "", p), apr_array_pstrcat(p, values, ','),
                        is_sqlite ? "json_each($1)" : "jsonb_array_elements($1::jsonb)");
}

typedef struct {
    const mdl_copy_table_t *table;
    mdl_arg_t json;
} insert_t;

static apr_status_t insert_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const insert_t *insert = arg;
    mdl_result_t *result;

    return copy_run(db, insert_sql(db, insert->table, p), "s", &insert->json, &result, p);
}

/* The key of the target's last row. */
static apr_status_t last_key_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    pass_t *pass = arg;
    const mdl_copy_table_t *table = pass->table;
    mdl_result_t *result;
    apr_status_t rv = copy_run(db,
                               apr_psprintf(p, "SELECT %s FROM \"%s\" ORDER BY %s LIMIT 1",
                                            columns_list(table, 1, "", p), table->name,
                                            columns_list(table, 1, " DESC", p)),
                               "", NULL, &result, p);

    if (rv == APR_SUCCESS && result->rows > 0) {
        pass_keep_key(pass, result->cells, 1);
    }
    return rv;
}

/* --- identities --- */

typedef struct {
    const char *table;
    apr_int64_t last; /* 0: it has given none, or there is none */
} sequence_t;

static apr_status_t sequence_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    sequence_t *sequence = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(COPY_SEQUENCE, sequence->table));

    sequence->last = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t sequence_write(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const sequence_t *sequence = arg;
    mdl_result_t *result;
    apr_status_t rv;

    if (mdl_db_dialect(db) == MDL_PGSQL) {
        return copy_run(
            db,
            apr_psprintf(p,
                         "SELECT setval(pg_get_serial_sequence('%s', 'id'), %" APR_INT64_T_FMT ")",
                         sequence->table, sequence->last),
            "", NULL, &result, p);
    }
    rv = copy_run(db,
                  apr_psprintf(p, "DELETE FROM sqlite_sequence WHERE name = '%s'", sequence->table),
                  "", NULL, &result, p);
    return rv != APR_SUCCESS
               ? rv
               : copy_run(db,
                          apr_psprintf(
                              p, "INSERT INTO sqlite_sequence VALUES ('%s', %" APR_INT64_T_FMT ")",
                              sequence->table, sequence->last),
                          "", NULL, &result, p);
}

static apr_status_t sequence_copy(mdl_copy_t *copy, const mdl_copy_table_t *table, apr_pool_t *p)
{
    sequence_t sequence = {.table = table->name};
    apr_status_t rv = mdl_db_read(copy->from, sequence_read, &sequence, p);

    return rv == APR_SUCCESS && sequence.last > 0
               ? mdl_db_write(copy->to, sequence_write, &sequence, p)
               : rv;
}

/* --- progress --- */

typedef struct {
    const mdl_copy_table_t *table;
    apr_int64_t rows; /* added to */
} count_t;

static apr_status_t count_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    count_t *count = arg;
    mdl_result_t *result;
    apr_status_t rv = copy_run(db,
                               apr_psprintf(p, "SELECT count(*) FROM \"%s\"", count->table->name),
                               "", NULL, &result, p);

    count->rows += rv == APR_SUCCESS ? result->cells[0].number : 0;
    return rv;
}

apr_status_t mdl_copy_count(mdl_copy_t *copy, int of_target, apr_int64_t *rows, apr_pool_t *p)
{
    mdl_db_t *db = of_target ? copy->to : copy->from;
    count_t count = {0};
    apr_status_t rv = APR_SUCCESS;

    mdl_db_limit_waits(db, 0);
    for (int i = 0; i < copy->tables->nelts && rv == APR_SUCCESS; i++) {
        count.table = table_at(copy, i);
        rv = mdl_db_read(db, count_effect, &count, p);
    }
    mdl_db_limit_waits(db, 1);
    *rows = count.rows;
    return rv;
}

void mdl_copy_watch(mdl_copy_t *copy, void (*step)(void *baton, int rows), void *baton)
{
    copy->step = step;
    copy->baton = baton;
}

static void copy_step(const mdl_copy_t *copy, int rows)
{
    if (copy->step != NULL) {
        copy->step(copy->baton, rows);
    }
}

/* --- the copy --- */

static int table_is_filled_at_first(const mdl_copy_table_t *table)
{
    return strcmp(table->name, "epoch") == 0 || strcmp(table->name, "event_feed") == 0;
}

apr_status_t mdl_copy_find_rows(mdl_copy_t *copy, const char **table, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    *table = NULL;
    for (int i = 0; rv == APR_SUCCESS && *table == NULL && i < copy->tables->nelts; i++) {
        pass_t pass = pass_make(table_at(copy, i), copy->to, p);

        rv = mdl_db_read(copy->to, last_key_effect, &pass, p);
        if (pass.begun && !table_is_filled_at_first(pass.table)) {
            *table = pass.table->name;
        }
    }
    return rv;
}

static apr_status_t clear_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_copy_t *copy = arg;
    apr_status_t rv = APR_SUCCESS;
    mdl_result_t *result;

    for (int i = 0; rv == APR_SUCCESS && i < copy->tables->nelts; i++) {
        const mdl_copy_table_t *table = table_at(copy, i);

        if (table_is_filled_at_first(table)) {
            rv = copy_run(db, apr_psprintf(p, "DELETE FROM \"%s\"", table->name), "", NULL, &result,
                          p);
        }
    }
    return rv;
}

apr_status_t mdl_copy_clear(mdl_copy_t *copy, apr_pool_t *p)
{
    return mdl_db_write(copy->to, clear_effect, copy, p);
}

apr_status_t mdl_copy_rows(mdl_copy_t *copy, int table, apr_int64_t *rows, apr_pool_t *p)
{
    pass_t pass = pass_make(table_at(copy, table), copy->from, p);
    insert_t insert = {.table = pass.table};
    apr_status_t rv = mdl_db_read(copy->to, last_key_effect, &pass, p);
    apr_pool_t *turn;

    *rows = 0;
    apr_pool_create(&turn, p);
    apr_pool_tag(turn, "mdl_copy_rows");
    while (rv == APR_SUCCESS) {
        apr_pool_clear(turn);
        rv = pass_read(&pass, turn);
        if (rv != APR_SUCCESS || pass.rows->rows == 0) {
            break;
        }
        insert.json.text = rows_json(&pass, turn);
        rv = mdl_db_write(copy->to, insert_effect, &insert, turn);
        *rows += pass.rows->rows;
        copy_step(copy, pass.rows->rows);
    }
    apr_pool_destroy(turn);
    return rv == APR_SUCCESS ? sequence_copy(copy, pass.table, p) : rv;
}

static apr_status_t references_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const char **table = arg;
    mdl_result_t *result;
    apr_status_t rv = copy_run(db, "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1", "",
                               NULL, &result, p);

    *table = rv == APR_SUCCESS && result->rows > 0 ? result->cells[0].text : NULL;
    return rv;
}

apr_status_t mdl_copy_check_references(mdl_copy_t *copy, const char **table, apr_pool_t *p)
{
    *table = NULL;
    return mdl_db_dialect(copy->to) == MDL_SQLITE3
               ? mdl_db_read(copy->to, references_effect, table, p)
               : APR_SUCCESS;
}

/* --- the comparison --- */

static int cells_equal(const mdl_cell_t *cell, const mdl_cell_t *other, apr_pool_t *p)
{
    const char *text = cell_text(cell, p);
    const char *theirs = cell_text(other, p);

    return text == NULL || theirs == NULL ? text == theirs : strcmp(text, theirs) == 0;
}

static const char *key_text(const pass_t *pass, int row, apr_pool_t *p)
{
    const char *key = "";

    for (int i = 0; i < pass->table->nkeys; i++) {
        key = apr_pstrcat(p, key, *key != '\0' ? ", " : "",
                          cell_text(pass_cell(pass, row, pass->table->keys[i]), p), NULL);
    }
    return key;
}

/* The first row of two batches that differs; -1: none does. */
static int rows_differ(const pass_t *pass, const pass_t *other, apr_pool_t *p)
{
    int columns = pass->rows->columns;

    for (int row = 0; row < pass->rows->rows && row < other->rows->rows; row++) {
        for (int i = 0; i < columns; i++) {
            if (!cells_equal(pass_cell(pass, row, i), pass_cell(other, row, i), p)) {
                return row;
            }
        }
    }
    return pass->rows->rows == other->rows->rows
               ? -1
               : (pass->rows->rows < other->rows->rows ? pass->rows->rows : other->rows->rows);
}

static apr_status_t sequences_differ(mdl_copy_t *copy, const mdl_copy_table_t *table,
                                     const char **different, apr_pool_t *p)
{
    sequence_t from = {.table = table->name};
    sequence_t to = from;
    apr_status_t rv = mdl_db_read(copy->from, sequence_read, &from, p);

    if (rv == APR_SUCCESS && (rv = mdl_db_read(copy->to, sequence_read, &to, p)) == APR_SUCCESS &&
        from.last != to.last) {
        *different = "the last number given";
    }
    return rv;
}

apr_status_t mdl_copy_compare(mdl_copy_t *copy, int table, apr_int64_t *rows,
                              const char **different, apr_pool_t *p)
{
    pass_t from = pass_make(table_at(copy, table), copy->from, p);
    pass_t to = pass_make(from.table, copy->to, p);
    apr_status_t rv = APR_SUCCESS;
    apr_pool_t *turn;

    *rows = 0;
    *different = NULL;
    apr_pool_create(&turn, p);
    apr_pool_tag(turn, "mdl_copy_compare");
    do {
        int row;

        apr_pool_clear(turn);
        to.limit = from.limit;
        if ((rv = pass_read(&from, turn)) != APR_SUCCESS ||
            (rv = pass_read(&to, turn)) != APR_SUCCESS) {
            break;
        }
        if ((row = rows_differ(&from, &to, turn)) >= 0) {
            *different = key_text(row < from.rows->rows ? &from : &to, row, p);
            break;
        }
        *rows += from.rows->rows;
        copy_step(copy, from.rows->rows);
    } while (from.rows->rows > 0);
    apr_pool_destroy(turn);
    return rv == APR_SUCCESS && *different == NULL
               ? sequences_differ(copy, from.table, different, p)
               : rv;
}
