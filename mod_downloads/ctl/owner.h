/*
 * Giving up root: what downloadsctl creates, above all SQLite's files, must belong to the user that
 * httpd runs as, who owns the storage folder.
 */
#ifndef MDL_CTL_OWNER_H
#define MDL_CTL_OWNER_H

#include <apr_pools.h>

/**
 * Makes a process of root permanently one of the folder's owner, with that user's groups and home;
 * does nothing in a process of another user.  Returns NULL, or a sentence: there is no such folder
 * (NULL: none is configured), root owns it, or the system refuses.
 */
const char *mdl_owner_become(const char *folder, apr_pool_t *p);

#endif
