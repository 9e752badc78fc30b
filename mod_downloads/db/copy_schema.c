#include "db/copy_schema.h"

#include <string.h>

#include <apr_strings.h>

static apr_status_t tables_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t **tables = arg;
    mdl_copy_table_t *table = NULL;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(COPY_COLUMNS));

    *tables = apr_array_make(p, 64, sizeof(mdl_copy_table_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *name = MDL_TEXT(rows, copy_columns, table_name);
        int key_at = (int)MDL_INT(rows, copy_columns, key_at);

        if (table == NULL || strcmp(table->name, name) != 0) {
            table = apr_pcalloc(p, sizeof *table);
            table->name = name;
            table->columns = apr_array_make(p, 16, sizeof(mdl_copy_column_t));
            APR_ARRAY_PUSH(*tables, mdl_copy_table_t *) = table;
        }
        if (key_at > 0 && key_at <= MDL_COPY_KEYS_MAX) {
            table->keys[key_at - 1] = table->columns->nelts;
            table->nkeys++;
        }
        APR_ARRAY_PUSH(table->columns, mdl_copy_column_t) = (mdl_copy_column_t){
            MDL_TEXT(rows, copy_columns, name), (int)MDL_INT(rows, copy_columns, is_text)};
    }
    return rv;
}

const mdl_copy_column_t *mdl_copy_column_at(const mdl_copy_table_t *table, int i)
{
    return &APR_ARRAY_IDX(table->columns, i, mdl_copy_column_t);
}

static int table_is_like(const mdl_copy_table_t *table, const mdl_copy_table_t *other)
{
    if (strcmp(table->name, other->name) != 0 || table->nkeys != other->nkeys ||
        table->nkeys == 0 || table->columns->nelts != other->columns->nelts ||
        memcmp(table->keys, other->keys, sizeof table->keys) != 0) {
        return 0;
    }
    for (int i = 0; i < table->columns->nelts; i++) {
        const mdl_copy_column_t *mine = mdl_copy_column_at(table, i);
        const mdl_copy_column_t *theirs = mdl_copy_column_at(other, i);

        if (strcmp(mine->name, theirs->name) != 0 || mine->is_text != theirs->is_text) {
            return 0;
        }
    }
    return 1;
}

/* The name of the first table that differs; NULL: none does. */
static const char *tables_differ(const apr_array_header_t *tables, const apr_array_header_t *others)
{
    for (int i = 0; i < tables->nelts; i++) {
        const mdl_copy_table_t *table = APR_ARRAY_IDX(tables, i, const mdl_copy_table_t *);

        if (i >= others->nelts ||
            !table_is_like(table, APR_ARRAY_IDX(others, i, mdl_copy_table_t *))) {
            return table->name;
        }
    }
    return others->nelts > tables->nelts
               ? APR_ARRAY_IDX(others, tables->nelts, const mdl_copy_table_t *)->name
               : NULL;
}

typedef struct {
    const char *child;
    const char *parent;
} reference_t;

static apr_status_t references_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_array_header_t **references = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(COPY_REFERENCES));

    *references = apr_array_make(p, 64, sizeof(reference_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*references, reference_t) = (reference_t){
            MDL_TEXT(rows, copy_references, child), MDL_TEXT(rows, copy_references, parent)};
    }
    return rv;
}

static int table_is_placed(const apr_array_header_t *tables, const char *name)
{
    for (int i = 0; i < tables->nelts; i++) {
        const mdl_copy_table_t *table = APR_ARRAY_IDX(tables, i, const mdl_copy_table_t *);

        if (strcmp(table->name, name) == 0) {
            return table->is_placed;
        }
    }
    return 1;
}

static int table_may_come(const apr_array_header_t *tables, const apr_array_header_t *references,
                          const mdl_copy_table_t *table)
{
    for (int i = 0; i < references->nelts; i++) {
        const reference_t *reference = &APR_ARRAY_IDX(references, i, const reference_t);

        if (strcmp(reference->child, table->name) == 0 &&
            strcmp(reference->parent, table->name) != 0 &&
            !table_is_placed(tables, reference->parent)) {
            return 0;
        }
    }
    return 1;
}

/* Parents before children; fewer tables than there are if they refer to each other. */
static apr_array_header_t *tables_order(const apr_array_header_t *tables,
                                        const apr_array_header_t *references, apr_pool_t *p)
{
    apr_array_header_t *ordered = apr_array_make(p, tables->nelts, sizeof(mdl_copy_table_t *));
    int before;

    do {
        before = ordered->nelts;
        for (int i = 0; i < tables->nelts; i++) {
            mdl_copy_table_t *table = APR_ARRAY_IDX(tables, i, mdl_copy_table_t *);

            if (!table->is_placed && table_may_come(tables, references, table)) {
                table->is_placed = 1;
                APR_ARRAY_PUSH(ordered, mdl_copy_table_t *) = table;
            }
        }
    } while (ordered->nelts > before);
    return ordered;
}

apr_status_t mdl_copy_schema_read(apr_array_header_t **tables, mdl_db_t *from, mdl_db_t *to,
                                  const char **why, apr_pool_t *p)
{
    apr_array_header_t *own, *others, *references;
    const char *different;
    apr_status_t rv;

    if ((rv = mdl_db_read(from, tables_read, &others, p)) != APR_SUCCESS ||
        (rv = mdl_db_read(to, tables_read, &own, p)) != APR_SUCCESS ||
        (rv = mdl_db_read(to, references_read, &references, p)) != APR_SUCCESS) {
        return rv;
    }
    if ((different = tables_differ(others, own)) != NULL) {
        *why = apr_psprintf(p, "The table %s is not the same in both databases.", different);
        return APR_EMISMATCH;
    }
    *tables = tables_order(own, references, p);
    if ((*tables)->nelts < own->nelts) {
        *why = "The tables refer to each other in a circle.";
        return APR_EMISMATCH;
    }
    return APR_SUCCESS;
}
