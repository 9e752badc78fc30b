/*
 * What the database must still be told, because it was out of reach, or nobody waits for it:
 * effects that the settler's thread runs as soon as it can.
 */
#ifndef MDL_METERING_OWED_H
#define MDL_METERING_OWED_H

#include "db/reconnect.h"

/** Adds an effect, whose arg is in pool; the pool must have no parent, and is destroyed once the
    effect has run. */
void mdl_owed_add(mdl_effect_fn *effect, void *arg, apr_pool_t *pool);

/** Whether any is left. */
int mdl_owed_any(void);

/** Runs them, for the settler's thread; p is scratch.  One that the database refuses for good is
    logged and dropped. */
void mdl_owed_run(mdl_reconnect_t *database, apr_pool_t *p);

#endif
