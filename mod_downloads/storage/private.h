/*
 * Shared by the files of this room.
 */
#ifndef MDL_STORAGE_PRIVATE_H
#define MDL_STORAGE_PRIVATE_H

#include "storage/storage.h"

#define MDL_HEX_DIGITS "0123456789abcdef" /* each names a shard, a folder of blobs */

#define MDL_STORAGE_FILE_MODE 0640

struct mdl_storage_t {
    mdl_object_store_t *objects; /* NULL: none */
    const char *blobs;           /* paths of folders; NULL: there is none */
    const char *partial;
    apr_int64_t reserve;
};

/** Opens the folder of a storage that is being made. */
apr_status_t mdl_folder_open(mdl_storage_t *made, const mdl_storage_config_t *config,
                             apr_pool_t *p);

/* As the functions of storage.h, for a blob in the folder. */
apr_status_t mdl_folder_find(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p);
apr_status_t mdl_folder_size(const mdl_storage_t *storage, const mdl_blob_t *blob,
                             apr_int64_t *size, apr_pool_t *p);
apr_status_t mdl_folder_digest(const mdl_storage_t *storage, const mdl_blob_t *blob,
                               const char **digest, apr_pool_t *p);

/** Why a file of the folder has no path: APR_ENOENT without a folder, else APR_EINVAL for its name.
 */
apr_status_t mdl_folder_path_fault(const mdl_storage_t *storage);

/** The folder of the blobs whose SHA-256 begins with digit, hexadecimal. */
const char *mdl_storage_shard(const mdl_storage_t *storage, char digit, apr_pool_t *p);

/** The path of a blob, whether or not it exists; NULL unless sha256 is valid and there is a
    folder. */
const char *mdl_storage_path(const mdl_storage_t *storage, const char *sha256, apr_pool_t *p);

/** Converts an errno: ENOSPC, EDQUOT and EFBIG become APR_ENOSPC, others stay. */
apr_status_t mdl_storage_status(int error);

apr_status_t mdl_storage_sync_file(int fd);

/** Syncs a folder; APR_SUCCESS also if the file system can't sync folders. */
apr_status_t mdl_storage_sync_folder(const char *path);

#endif
