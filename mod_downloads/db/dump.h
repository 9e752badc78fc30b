/*
 * The whole database as a file, and back.  On SQLite the file is a database, on PostgreSQL what
 * pg_dump -Fc writes; the programs pg_dump and pg_restore must be in the PATH.
 */
#ifndef MDL_DB_DUMP_H
#define MDL_DB_DUMP_H

#include "db/db.h"

typedef struct {
    const char *params; /* mod_dbd's DBDParams */
    const char *path;   /* of the file */
    /* An effect that only reads, and sees the state that the file has. */
    mdl_effect_fn *within;
    void *arg;
    /* Called while a program of PostgreSQL is at work, ten times a second. */
    void (*waiting)(void *baton);
    void *baton;
    const char *why; /* out: a sentence for people if a program failed, else NULL */
} mdl_db_dump_t;

/** Writes the database into a new file while others change it, then calls within.  db must not be
    in a transaction.  Returns an error of the database, APR_EGENERAL with why, or what within
    returns. */
apr_status_t mdl_db_dump(mdl_db_t *db, mdl_db_dump_t *dump, apr_pool_t *p);

/** PostgreSQL: fills an empty database from the file, all or nothing; within is not called. */
apr_status_t mdl_db_load(mdl_db_dump_t *dump, apr_pool_t *p);

#endif
