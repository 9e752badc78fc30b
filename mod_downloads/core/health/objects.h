/*
 * Health check of the object store: each request that the service makes is made once.
 */
#ifndef MDL_CORE_HEALTH_OBJECTS_H
#define MDL_CORE_HEALTH_OBJECTS_H

#include "core/health/health.h"

/** Whether objects can be written, read, listed and removed, also in parts, and whether the bucket
    belongs to the database; needs the settings.  Waits for the store. */
mdl_health_fn mdl_health_objects;

#endif
