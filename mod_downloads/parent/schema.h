/*
 * The database's schema, the storage folder and the secret when a server starts.
 */
#ifndef MDL_PARENT_SCHEMA_H
#define MDL_PARENT_SCHEMA_H

#include <httpd.h>

#include "core/service/service.h"

/**
 * Brings the schema up to date, or checks that it is, and that the storage folder and the secret
 * belong with the database, in a short-lived child that runs as the httpd user: so no file of the
 * database belongs to root, and none of its handles crosses a fork.  Returns OK, or what
 * post_config is to return so that httpd does not start; the reason has been logged.  A database
 * out of reach is no such reason, and a server that has served before goes on.  *has_storage is
 * false if it does so although the folder is another, which must not be used.
 */
int mdl_schema_prepare(const mdl_service_t *service, server_rec *s, int *has_storage,
                       apr_pool_t *p);

#endif
