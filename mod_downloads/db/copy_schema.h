/*
 * The tables of a database that is copied to another (db/copy.h)
 */
#ifndef MDL_DB_COPY_SCHEMA_H
#define MDL_DB_COPY_SCHEMA_H

#include <apr_tables.h>

#include "db/db.h"

#define MDL_COPY_KEYS_MAX 8

typedef struct {
    const char *name;
    int is_text; /* else an integer */
} mdl_copy_column_t;

typedef struct {
    const char *name;
    apr_array_header_t *columns; /* mdl_copy_column_t, by name */
    int keys[MDL_COPY_KEYS_MAX]; /* the primary key: indexes of columns */
    int nkeys;
    int is_placed; /* in the order of foreign keys */
} mdl_copy_table_t;

const mdl_copy_column_t *mdl_copy_column_at(const mdl_copy_table_t *table, int i);

/** Reads the tables, mdl_copy_table_t *, in the order of the target's foreign keys.  APR_EMISMATCH
    if the schemas differ, or can't be put in order; *why is then a sentence. */
apr_status_t mdl_copy_schema_read(apr_array_header_t **tables, mdl_db_t *from, mdl_db_t *to,
                                  const char **why, apr_pool_t *p);

#endif
