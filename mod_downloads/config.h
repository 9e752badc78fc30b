/*
 * The httpd side of the settings: the command table, the module's configuration and the check that
 * runs before the server starts.  The directives themselves are in core/settings/settings.h.
 */
#ifndef MDL_CONFIG_H
#define MDL_CONFIG_H

#include <httpd.h>
#include <http_config.h>

#include "core/settings/settings.h"

/** Every Downloads* directive, for the module record. */
extern const command_rec mdl_config_commands[];

/** create_server_config of the module record: settings with every default.  There is no merge. */
void *mdl_config_create_server(apr_pool_t *p, server_rec *s);

/**
 * The settings, the same for each server of this httpd.  When none of the directives was given,
 * settings->configured is 0 and the module is to do nothing.
 */
mdl_settings_t *mdl_config(server_rec *s);

/**
 * A check_config hook, which must run after the MPM's (APR_HOOK_LAST).  It copies DBDriver and
 * DBDParams from the configuration tree to the settings, then looks for every mistake that can be
 * found without a database: in the directives, the secret file, the storage and templates folders,
 * and the handlers.  Logs each as a sentence and returns OK only when there is none.  It changes
 * nothing on disk, since `httpd -t` and `httpd -k graceful` run it too.
 */
int mdl_config_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s);

#endif
