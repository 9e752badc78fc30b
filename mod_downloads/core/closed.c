#include "core/closed.h"

apr_status_t mdl_closed_begin(mdl_db_t *db, apr_pool_t *p, const char *reason)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(MAINTENANCE_BEGIN, reason));
}

apr_status_t mdl_closed_end(mdl_db_t *db, apr_pool_t *p, void *unused)
{
    apr_int64_t ended;
    apr_status_t rv = mdl_db_exec(db, &ended, p, MDL_Q(MAINTENANCE_END));

    (void)unused;
    return rv == APR_SUCCESS && ended == 0 ? APR_ENOENT : rv;
}

apr_status_t mdl_closed_copy_begin(mdl_db_t *db, apr_pool_t *p, const mdl_closed_t *closed)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(MAINTENANCE_COPY_BEGIN, .since = closed->since,
                             .reason = closed->reason, .copy_of = closed->copy_of));
}

apr_status_t mdl_closed_copy_end(mdl_db_t *db, apr_pool_t *p, void *unused)
{
    (void)unused;
    return mdl_db_exec(db, NULL, p, MDL_Q(MAINTENANCE_COPY_END));
}

apr_status_t mdl_closed_find(mdl_db_t *db, apr_pool_t *p, mdl_closed_t *closed)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MAINTENANCE));

    *closed = (mdl_closed_t){.since = 0};
    if (rv == APR_SUCCESS) {
        MDL_READ(row, maintenance, closed, since, reason, copy_of);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_closed_running(mdl_db_t *db, apr_pool_t *p, mdl_closed_running_t *running)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MAINTENANCE_RUNNING, running->before));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, maintenance_running, running, downloads, uploads, jobs, transactions,
                 backups);
    }
    return rv;
}
