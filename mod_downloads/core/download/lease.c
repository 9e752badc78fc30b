#include "core/download/lease.h"

apr_status_t mdl_lease_renew(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick)
{
    apr_int64_t known;
    apr_status_t rv = mdl_db_exec(db, MDL_Q_LEASE_RENEW, NULL, p,
                                  MDL_ARGS(mdl_text(tick->id), mdl_int(tick->leased_until)));

    tick->lost = apr_array_make(p, 4, sizeof(const char *));
    for (int i = 0; i < tick->progress->nelts && rv == APR_SUCCESS; i++) {
        const mdl_session_delivery_t *moved = &APR_ARRAY_IDX(tick->progress, i,
                                                             mdl_session_delivery_t);

        rv = mdl_db_exec(db, MDL_Q_TRANSFER_PROGRESS, &known, p,
                         MDL_ARGS(mdl_text(mdl_coverage_text(moved->coverage, p)),
                                  mdl_int(moved->bytes), mdl_text(moved->transfer_id)));
        if (rv == APR_SUCCESS && !known) {
            APR_ARRAY_PUSH(tick->lost, const char *) = moved->transfer_id;
        }
    }
    return rv;
}

apr_status_t mdl_lease_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_lease_tick_t *tick)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, MDL_Q_TRANSFERS_FORBIDDEN, &rows, p,
        MDL_ARGS(mdl_text(tick->id), mdl_int(apr_time_now()), mdl_int(MDL_DOWNLOAD_FACTOR)));

    tick->forbidden = apr_array_make(p, 4, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(tick->forbidden, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}

static apr_status_t lease_settle(mdl_db_t *db, const char *lease_id, mdl_lease_sweep_t *sweep,
                                 apr_pool_t *p)
{
    apr_array_header_t *lost = apr_array_make(p, 16, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t settle = {.deliveries = lost, .idle = sweep->idle};
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_TRANSFERS_OF_LEASE, &rows, p,
                                    MDL_ARGS(mdl_text(lease_id), mdl_int(sweep->limit)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(lost, mdl_session_delivery_t) = (mdl_session_delivery_t){
            .transfer_id = mdl_rows_text(rows, 0),
            .session_id = mdl_rows_text(rows, 1),
            .generation = mdl_rows_int(rows, 2),
            .coverage = mdl_coverage_read(mdl_rows_text(rows, 3), p),
            .bytes = mdl_rows_int(rows, 4)};
    }
    sweep->more = lost->nelts == sweep->limit;
    return rv == APR_SUCCESS ? mdl_session_settle(db, p, &settle) : rv;
}

/* One lease at a time; its row goes once none of its transfers is left. */
apr_status_t mdl_lease_sweep(mdl_db_t *db, apr_pool_t *p, mdl_lease_sweep_t *sweep)
{
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    const char *id;
    apr_status_t rv;

    sweep->more = 0;
    rv = mdl_db_select_one(db, MDL_Q_LEASE_EXPIRED, &row, p, MDL_ARGS(mdl_int(now)));
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    id = mdl_rows_text(row, 0);
    rv = lease_settle(db, id, sweep, p);
    if (rv == APR_SUCCESS && !sweep->more) {
        rv = mdl_db_exec(db, MDL_Q_LEASE_REMOVE, NULL, p, MDL_ARGS(mdl_text(id), mdl_int(now)));
    }
    sweep->more = 1;
    return rv;
}
