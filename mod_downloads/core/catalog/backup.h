/*
 * Makes a backup of the database and of the files that it knows, while the service runs.  The hold
 * on the storage comes first, then database and list of files from one snapshot, then the files.
 */
#ifndef MDL_CORE_CATALOG_BACKUP_H
#define MDL_CORE_CATALOG_BACKUP_H

#include "core/catalog/backup_files.h"
#include "core/catalog/storage_hold.h"
#include "db/db.h"

#define MDL_BACKUP_KEEP_MAX 1000

typedef struct {
    const mdl_storage_config_t *config; /* of the storage */
    const mdl_storage_t *storage;
    const char *params; /* mod_dbd's DBDParams */
    const char *folder; /* of backups, an absolute path; made if it is missing */
    const char *user;   /* the system's user */
    int keep;           /* remove all but so many of its backups; 0: remove none */
    int (*stopped)(void);
    /* As in mdl_backup_files_t. */
    void (*found)(void *baton, const mdl_blob_t *blob, mdl_blob_fault_t fault, apr_status_t rv);
    /* Called after each piece of a file, with the number of files. */
    void (*step)(void *baton, apr_int64_t done, apr_int64_t total);
    void *baton;
    mdl_backup_set_t set;     /* out */
    mdl_backup_files_t files; /* out */
    const char *why;          /* out: a sentence for people, or NULL: the database has failed */
} mdl_backup_t;

/** Makes the backup.  Runs transactions of its own, and reads a large part of the database.
    APR_EINTR: it was stopped; the next backup goes on with the files that it has copied. */
apr_status_t mdl_backup_make(mdl_db_t *db, mdl_backup_t *backup, apr_pool_t *p);

#endif
