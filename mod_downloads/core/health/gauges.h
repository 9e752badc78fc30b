/*
 * The gauges that the database has to be asked for (core/metrics.h).
 */
#ifndef MDL_CORE_HEALTH_GAUGES_H
#define MDL_CORE_HEALTH_GAUGES_H

#include "core/metrics.h"
#include "db/db.h"

typedef struct {
    apr_int64_t jobs[MDL_JOB_TYPES][MDL_OPEN];
    apr_interval_time_t oldest[MDL_JOB_TYPES][MDL_OPEN]; /* by this host's clock */
    int nodes[MDL_NODES];
    apr_int64_t endpoints; /* of webhooks, that fail */
    apr_int64_t bytes;     /* of the database */
    apr_int64_t free;      /* bytes left on its disk; MDL_METRIC_ABSENT: not known */
} mdl_gauges_t;

/** Effect: measures them.  Reads 10,000 jobs of a lane at most, twice. */
apr_status_t mdl_gauges_read(mdl_db_t *db, apr_pool_t *p, mdl_gauges_t *gauges);

/** Sets the metrics; with NULL, those of a database that does not answer. */
void mdl_gauges_set(const mdl_gauges_t *gauges);

#endif
