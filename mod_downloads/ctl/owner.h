/*
 * Giving up root: what downloadsctl makes, SQLite's files above all, must be httpd's user's, and
 * that user owns the storage folder.
 */
#ifndef MDL_CTL_OWNER_H
#define MDL_CTL_OWNER_H

#include <apr_pools.h>

/**
 * Makes a process of root's one of the folder's owner, with that user's groups and home, for good.
 * Does nothing for another user.  Returns NULL, or a sentence: there is no such folder, root owns
 * it, the system refuses.  folder may be NULL, for none was configured.
 */
const char *mdl_owner_become(const char *folder, apr_pool_t *p);

#endif
