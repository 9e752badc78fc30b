/*
 * Checks of the schema, the storage folder and the secret at start-up.
 */
#ifndef MDL_PARENT_SCHEMA_H
#define MDL_PARENT_SCHEMA_H

#include <httpd.h>

#include "core/service/service.h"

/**
 * Migrates the schema or checks its version, and checks that the storage folder and the secret
 * belong to the database.  Does so in a short-lived child that runs as the httpd user, so that root
 * owns no database file and no database handle crosses a fork.  Returns OK, or the error for
 * post_config, logged, with which httpd does not start.  An unreachable database is no error, and a
 * server that has served before always goes on; *has_storage is false if the folder belongs to
 * another database then, and must not be used.
 */
int mdl_schema_prepare(const mdl_service_t *service, server_rec *s, int *has_storage,
                       apr_pool_t *p);

#endif
