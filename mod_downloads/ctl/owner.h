/*
 * Giving up root: files that downloadsctl creates, above all SQLite's, must belong to httpd's user,
 * who owns the storage folder.
 */
#ifndef MDL_CTL_OWNER_H
#define MDL_CTL_OWNER_H

#include <apr_pools.h>

/**
 * If the process is root, permanently becomes the folder's owner, with that user's groups and home.
 * Returns NULL, or why it failed: the folder does not exist (NULL: none is configured), root owns
 * it, or the system refuses.
 */
const char *mdl_owner_become(const char *folder, apr_pool_t *p);

/** The same for a user by name, who is httpd's, when there is no folder; NULL: unknown. */
const char *mdl_owner_become_user(const char *name, apr_pool_t *p);

#endif
