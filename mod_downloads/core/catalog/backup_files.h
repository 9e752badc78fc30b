/*
 * Copies the files of a backup, from the storage into the backup or back.  A file that is there
 * with the right size is not copied again.  Each file's SHA-256 is compared as it is copied.
 */
#ifndef MDL_CORE_CATALOG_BACKUP_FILES_H
#define MDL_CORE_CATALOG_BACKUP_FILES_H

#include "core/catalog/backup_set.h"
#include "core/catalog/storage_verify.h"

typedef struct {
    const mdl_backup_set_t *set;
    const mdl_storage_t *from;
    mdl_storage_t *to;
    /* Called after each piece; ends the copy unless it returns APR_SUCCESS. */
    apr_status_t (*step)(void *baton);
    /* Called with each file that can't be copied; rv is for MDL_BLOB_UNREADABLE. */
    void (*found)(void *baton, const mdl_blob_t *blob, mdl_blob_fault_t fault, apr_status_t rv);
    void *baton;
    apr_int64_t files; /* out: there now, like bytes */
    apr_int64_t bytes;
    apr_int64_t copied; /* out: of these, like copied_bytes */
    apr_int64_t copied_bytes;
    apr_int64_t objects; /* out: blobs that are in objects, which are not copied */
    apr_int64_t faults;  /* out */
} mdl_backup_files_t;

/** Copies the files of the list.  Returns the first error of the place that is written to, such as
    APR_ENOSPC, APR_EAGAIN if another process copies there, or that of step. */
apr_status_t mdl_backup_files_copy(mdl_backup_files_t *files, apr_pool_t *p);

/** Removes partial files of copies that were killed. */
void mdl_backup_files_clean(mdl_storage_t *storage, apr_pool_t *p);

/** Removes the files of a folder of backups that none of its backups needs. */
apr_status_t mdl_backup_files_prune(const char *folder, const mdl_storage_t *storage,
                                    apr_pool_t *p);

#endif
