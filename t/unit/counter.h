/*
 * The epoch's only row, used as a counter that tests of transactions change and read.
 */
#ifndef MDL_T_UNIT_COUNTER_H
#define MDL_T_UNIT_COUNTER_H

#include "t/unit/database.h"

static inline apr_status_t bump(mdl_db_t *on, apr_pool_t *p)
{
    return mdl_db_exec(on, NULL, p, MDL_Q(EPOCH_BUMP));
}

/** Increments the counter, as an effect. */
static inline apr_status_t bump_once(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    (void)arg;
    return bump(on, p);
}

/** Effect that reads the counter into *(apr_int64_t *)arg. */
static inline apr_status_t read_count(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(on, &row, p, MDL_Q(EPOCH_READ));

    *(apr_int64_t *)arg = rv == APR_SUCCESS ? mdl_rows_int(row, 0) : -1;
    return rv;
}

/** The counter; -1 if it can't be read. */
static inline apr_int64_t count(mdl_db_t *on, apr_pool_t *p)
{
    apr_int64_t n = -1;

    mdl_db_read(on, read_count, &n, p);
    return n;
}

#endif
