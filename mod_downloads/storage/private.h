/*
 * What the files of this folder share.
 */
#ifndef MDL_STORAGE_PRIVATE_H
#define MDL_STORAGE_PRIVATE_H

#include "storage/storage.h"

#define MDL_HEX_DIGITS "0123456789abcdef" /* one of the blobs' folders each */

#define MDL_STORAGE_FILE_MODE 0640

struct mdl_storage_t {
    const char *root;
    const char *blobs;
    const char *partial;
    apr_int64_t reserve;
};

/** The folder of the blobs whose SHA-256 begins with a hexadecimal digit. */
const char *mdl_storage_shard(const mdl_storage_t *storage, char digit, apr_pool_t *p);

/** Maps an errno: ENOSPC, EDQUOT and EFBIG to APR_ENOSPC, others to themselves. */
apr_status_t mdl_storage_status(int error);

apr_status_t mdl_storage_sync_file(int fd);

/** Syncs a folder; APR_SUCCESS also where the file system can't sync folders. */
apr_status_t mdl_storage_sync_folder(const char *path);

#endif
