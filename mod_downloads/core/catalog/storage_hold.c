#include "core/catalog/storage_hold.h"

#include <apr_time.h>

#include "base/ulid.h"

apr_status_t mdl_storage_hold(mdl_db_t *db, apr_pool_t *p, mdl_storage_hold_t *hold)
{
    hold->id = mdl_ulid("hold_", p);
    hold->since = apr_time_now();
    return mdl_db_exec(db, MDL_Q_STORAGE_HOLD, NULL, p,
                       MDL_ARGS(mdl_text(hold->id), mdl_text(hold->user), mdl_int(hold->since)));
}

apr_status_t mdl_storage_held(mdl_db_t *db, mdl_storage_hold_t *hold, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_STORAGE_HELD, &row, p, MDL_NO_ARGS);

    if (rv == APR_SUCCESS) {
        *hold = (mdl_storage_hold_t){.id = mdl_rows_text(row, 0),
                                     .user = mdl_rows_text(row, 1),
                                     .since = mdl_rows_int(row, 2)};
    }
    return rv;
}

apr_status_t mdl_storage_release(mdl_db_t *db, apr_pool_t *p, mdl_storage_release_t *release)
{
    apr_status_t rv = release->id != NULL
                          ? mdl_db_exec(db, MDL_Q_STORAGE_RELEASE, &release->released, p,
                                        MDL_ARGS(mdl_text(release->id)))
                          : mdl_db_exec(db, MDL_Q_STORAGE_RELEASE_ALL, &release->released, p,
                                        MDL_NO_ARGS);

    return rv == APR_SUCCESS && release->id != NULL && release->released == 0
               ? mdl_problem_set(release->problem, 404, "hold_not_found", "There is no such hold.")
               : rv;
}
