/*
 * A database and the storage folder that belongs with it: the folder has an identity, and the
 * database knows it.  So nobody works on a folder that is empty by mistake, not mounted, or another
 * service's: its files would be missing, and the sweeps would remove what they don't know.
 */
#ifndef MDL_CORE_CATALOG_STORAGE_IDENTITY_H
#define MDL_CORE_CATALOG_STORAGE_IDENTITY_H

#include "db/db.h"

/**
 * Checks that the folder root belongs with the database.  A database that knows no folder takes
 * this one, unless join is false: the first of several processes that do so at once decides.  It
 * takes none that holds files if it knows no file itself, and none that holds no file if it knows
 * some, unless somebody has written an identity there.  Returns APR_EMISMATCH if they don't belong
 * together, and *why is then a sentence that says what to do; an error of the database, or
 * APR_EACCES and the like with *why, if that could not be found out. Runs transactions of its own.
 */
apr_status_t mdl_storage_belongs(mdl_db_t *db, const char *root, int join, const char **why,
                                 apr_pool_t *p);

#endif
