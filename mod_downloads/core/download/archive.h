/*
 * All files of an assignment as one ZIP archive.
 */
#ifndef MDL_CORE_DOWNLOAD_ARCHIVE_H
#define MDL_CORE_DOWNLOAD_ARCHIVE_H

#include <apr_tables.h>
#include <apr_time.h>

#include "base/crypto.h"
#include "base/zip/zip.h"
#include "core/download/entitlement.h"
#include "db/db.h"

/** A file in the archive; its index is that of its entry in the ZIP. */
typedef struct {
    apr_int64_t asset_id;
    apr_int64_t size;
    const char *object; /* the key of the object that has it; NULL: the folder has it */
    unsigned char sha256[MDL_SHA256_LENGTH];
} mdl_archive_file_t;

/** The contents of an archive.  Archives with the same tag have the same bytes. */
typedef struct {
    mdl_zip_t *zip;
    apr_array_header_t *files; /* mdl_archive_file_t; only ready files */
    int missing;     /* the index of a file whose object was not there when it was read last; -1:
                        none */
    const char *tag; /* 64 hexadecimal digits, for an entity tag */
    apr_time_t updated_at;  /* of the file changed last */
    mdl_allowance_t fewest; /* of the file with the fewest downloads left; without its version */
} mdl_archive_t;

/**
 * Reads the archive of an assignment.  The result takes some 110 bytes a file, and 40 more if an
 * object has it; reading it takes 50 more a file, and 500 rows at a time.  fresh_limit is the limit
 * for mdl_allowance_renew, if a file's new bytes begin a new allowance, or NULL.
 */
apr_status_t mdl_archive_read(mdl_db_t *db, apr_int64_t assignment_id, const int *fresh_limit,
                              mdl_archive_t *archive, apr_pool_t *p);

/** The filename of an order's archives. */
const char *mdl_archive_filename(const char *storefront_order_id, apr_pool_t *p);

#endif
