/*
 * Copies all rows of one database to another with the same schema, SQLite or PostgreSQL, and
 * compares them row by row.  Its statements are the only ones that are not in sql/queries: they are
 * made from the schema, as the databases themselves know it.
 *
 * Tables come in the order of the target's foreign keys, and rows in that of their primary key,
 * which is the same on both: so a copy that was killed goes on behind the target's last row.
 */
#ifndef MDL_DB_COPY_H
#define MDL_DB_COPY_H

#include "db/db.h"

typedef struct mdl_copy_t mdl_copy_t;

/** Reads both schemas; the connections must live as long as p.  APR_EMISMATCH if they differ, or
    can't be put in order; *why is then a sentence. */
apr_status_t mdl_copy_create(mdl_copy_t **copy, mdl_db_t *from, mdl_db_t *to, const char **why,
                             apr_pool_t *p);

/** *table gets the name of a table of the target that has rows, except for those that a migration
    has put there; NULL: there is none. */
apr_status_t mdl_copy_find_rows(mdl_copy_t *copy, const char **table, apr_pool_t *p);

/** Deletes what a migration has put into the target. */
apr_status_t mdl_copy_clear(mdl_copy_t *copy, apr_pool_t *p);

/** Counts the rows of all tables, of the target or the source. */
apr_status_t mdl_copy_count(mdl_copy_t *copy, int of_target, apr_int64_t *rows, apr_pool_t *p);

/** From now on step is called with the number of rows that were copied or compared. */
void mdl_copy_watch(mdl_copy_t *copy, void (*step)(void *baton, int rows), void *baton);

int mdl_copy_tables(const mdl_copy_t *copy);
const char *mdl_copy_table_name(const mdl_copy_t *copy, int table);

/** Copies the rows of a table that the target does not have yet, and what its identity has given.
 *rows gets their number. */
apr_status_t mdl_copy_rows(mdl_copy_t *copy, int table, apr_int64_t *rows, apr_pool_t *p);

/** Compares all rows of a table, and its identity.  *rows gets their number, *different the key of
    the first row that differs, or NULL. */
apr_status_t mdl_copy_compare(mdl_copy_t *copy, int table, apr_int64_t *rows,
                              const char **different, apr_pool_t *p);

/** *table gets the name of a table of the target that refers to a row that is not there, or NULL.
    PostgreSQL has checked its references by then. */
apr_status_t mdl_copy_check_references(mdl_copy_t *copy, const char **table, apr_pool_t *p);

#endif
