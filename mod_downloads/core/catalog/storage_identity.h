/*
 * The identity of the storage folder, which the database knows.  It prevents work on a folder that
 * is empty by mistake, not mounted, or another service's: files would be missing, and the sweeps
 * would remove files that they don't know.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_IDENTITY_H
#define MDL_CORE_CATALOG_STORAGE_IDENTITY_H

#include "db/db.h"
#include "storage/storage.h"

/**
 * Checks that the storage's folder belongs to the database.  If join is set, a database that knows
 * no folder adopts this one; of several processes at once, the first decides.  It does not adopt a
 * folder with files while the database knows none, nor one without files while the database knows
 * some, unless somebody has written an identity there.  Returns APR_EMISMATCH if they don't belong
 * together, with a sentence in *why that says what to do; an error of the database; or an error
 * such as APR_EACCES with *why.  Runs transactions of its own.
 */
apr_status_t mdl_storage_belongs(mdl_db_t *db, const mdl_storage_config_t *storage, int join,
                                 const char **why, apr_pool_t *p);

#endif
