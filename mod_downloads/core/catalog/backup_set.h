/*
 * Backups in a folder, as downloadsctl backup leaves them:
 *
 *   <folder>/blobs/, partial/     files, as in a storage folder; all backups share them
 *   <folder>/<name>/database      db/dump.h
 *   <folder>/<name>/files         a line for each blob: SHA-256, size and, in an object, its key
 *   <folder>/<name>/manifest      what the backup is, and its own digest; written last
 *
 * A name is the time of the backup, so names are in its order.
 */
#ifndef MDL_CORE_CATALOG_BACKUP_SET_H
#define MDL_CORE_CATALOG_BACKUP_SET_H

#include <apr_file_io.h>
#include <apr_tables.h>

#include "storage/storage.h"

typedef struct {
    const char *folder;
    const char *name;
    apr_time_t made_at;
    const char *build;
    const char *driver;   /* as in DBDriver */
    const char *hold;     /* the hold that it was made under, which its database knows */
    const char *identity; /* of the storage folder; NULL: none */
    apr_int64_t files;    /* blobs in files, without the faulty ones */
    apr_int64_t bytes;
    apr_int64_t objects; /* blobs in objects, whose bytes are not in the backup */
    apr_int64_t faults;  /* files that could not be copied */
    const char *database_sha256;
    const char *list_sha256;
} mdl_backup_set_t;

/** The path of a file of the backup: "database", "files", "manifest". */
const char *mdl_backup_path(const mdl_backup_set_t *set, const char *file, apr_pool_t *p);

/** Digests database and list, and writes the manifest: from then on the backup counts. */
apr_status_t mdl_backup_set_seal(mdl_backup_set_t *set, apr_pool_t *p);

/** Reads a backup: path is its folder, or the folder of backups, then the newest.  Compares the
    digests of manifest and list.  Otherwise APR_EINVAL or an error of the disk, with *why. */
apr_status_t mdl_backup_set_read(mdl_backup_set_t *set, const char *path, const char **why,
                                 apr_pool_t *p);

/** Copies the database of the backup to a new file, unless path is NULL, and syncs it.
    APR_EMISMATCH: it is damaged. */
apr_status_t mdl_backup_set_database(const mdl_backup_set_t *set, const char *path, apr_pool_t *p);

/** Lists the names (const char *) of the folder's backups, oldest first: those with a manifest, or
    those without, which were not completed. */
apr_status_t mdl_backup_set_names(const char *folder, int complete, apr_array_header_t **names,
                                  apr_pool_t *p);

/** Removes a backup, its manifest first, but no blobs. */
void mdl_backup_set_remove(const char *folder, const char *name, apr_pool_t *p);

/** The list of a backup, line by line. */
typedef struct {
    apr_file_t *file;
    char line[2048];
} mdl_backup_list_t;

apr_status_t mdl_backup_list_open(mdl_backup_list_t *list, const mdl_backup_set_t *set,
                                  apr_pool_t *p);

/** Reads the next blob, whose texts live until the next call.  APR_EOF: there is none. */
apr_status_t mdl_backup_list_next(mdl_backup_list_t *list, mdl_blob_t *blob);

#endif
