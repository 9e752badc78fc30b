#include "db/private.h"

#define TRIES 5 /* others of the pooler's clients may take the connection away in between */

/* A transaction of other takes the pooler's connection on which db has prepared a statement; db
   then gets another, which doesn't know it. */
static apr_status_t session_probe(mdl_db_t *db, mdl_db_t *other, int *kept)
{
    apr_status_t rv = mdl_db_command(db, "PREPARE mdl_session AS SELECT 1");

    if (rv == APR_SUCCESS && (rv = mdl_db_command(other, "BEGIN")) == APR_SUCCESS) {
        rv = mdl_db_command(db, "EXECUTE mdl_session");
        mdl_db_command(other, "ROLLBACK");
    }
    /* A stale statement is one that is not there, or that a former probe left behind. */
    *kept = rv != MDL_DB_ESTALE;
    return *kept && rv == APR_SUCCESS ? mdl_db_command(db, "DEALLOCATE mdl_session") : rv;
}

apr_status_t mdl_db_keeps_session(mdl_db_t *db, const char *params, int *kept, const char **why,
                                  apr_pool_t *p)
{
    mdl_db_t *other;
    apr_status_t rv;

    *kept = 1;
    if (db->ops->dialect == MDL_SQLITE3) {
        return APR_SUCCESS;
    }
    if ((rv = mdl_db_open(&other, db->ops->name, params, why, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < TRIES && rv == APR_SUCCESS; i++) {
        rv = session_probe(db, other, kept);
    }
    *why = mdl_db_error(*mdl_db_error(db) != '\0' ? db : other);
    return *kept ? rv : APR_SUCCESS;
}
