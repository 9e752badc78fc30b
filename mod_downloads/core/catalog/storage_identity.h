/*
 * The identities of the storage folder and of the bucket, which the database knows.  They prevent
 * work on a place that is empty by mistake, not mounted, or another service's: files would be
 * missing, and the sweeps would remove files that they don't know.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_IDENTITY_H
#define MDL_CORE_CATALOG_STORAGE_IDENTITY_H

#include "db/db.h"
#include "storage/storage.h"

/**
 * Checks that the storage's folder and bucket, as far as there are any, belong to the database.  If
 * join is set, a database that knows no folder adopts this one, and the first process decides: but
 * not a folder with files while the database knows none, nor one without files while it knows some,
 * unless somebody has written an identity there.  Likewise a bucket that has no identity gets the
 * database's, unless the database knows objects.  Without a folder the database must know no file
 * of one.
 *
 * Returns APR_EMISMATCH if they don't belong together, with a sentence in *why that says what to
 * do; an error of the database; or another error with *why, such as APR_EACCES for the folder, or
 * an error of base/http/object_store.h for the bucket, which then could not be compared
 * (mdl_storage_unasked).  Runs transactions of its own, and waits for the store.
 */
apr_status_t mdl_storage_belongs(mdl_db_t *db, const mdl_storage_config_t *storage, int join,
                                 const char **why, apr_pool_t *p);

/** The same for a bucket alone, which does not get an identity. */
apr_status_t mdl_storage_bucket_belongs(mdl_db_t *db, const mdl_object_config_t *bucket,
                                        const char **why, apr_pool_t *p);

/** Whether mdl_storage_belongs has failed only because the store did not answer or refused access.
    Like a database that is away, this need not stop a service. */
int mdl_storage_unasked(apr_status_t rv);

#endif
