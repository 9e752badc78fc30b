/*
 * The metrics as a section of mod_status's page, and of its "?auto".
 */
#ifndef MDL_MONITOR_STATUS_H
#define MDL_MONITOR_STATUS_H

#include "core/service/service.h"

/** Registers the hook, which works if mod_status is loaded. */
void mdl_status_register(void);

/** For each httpd child, before its threads. */
void mdl_status_child_init(const mdl_service_t *service);

#endif
