#include "core/catalog/storage_hold.h"

#include <apr_time.h>

#include "base/ulid.h"

apr_status_t mdl_storage_hold(mdl_db_t *db, apr_pool_t *p, mdl_storage_hold_t *hold)
{
    hold->id = mdl_ulid("hold_", p);
    hold->since = apr_time_now();
    mdl_db_exec(db, NULL, p, MDL_Q(STORAGE_HOLDS_LAPSED));
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(STORAGE_HOLD, .id = hold->id, .user_name = hold->user,
                             .held_at = hold->since, .lease = hold->lease));
}

apr_status_t mdl_storage_hold_renew(mdl_db_t *db, apr_pool_t *p, const mdl_storage_hold_t *hold)
{
    apr_int64_t renewed = 0;
    apr_status_t rv = mdl_db_exec(db, &renewed, p,
                                  MDL_Q(STORAGE_HOLD_RENEW, .lease = hold->lease, .id = hold->id));

    return rv == APR_SUCCESS && renewed == 0 ? APR_ENOENT : rv;
}

apr_status_t mdl_storage_held(mdl_db_t *db, mdl_storage_hold_t *hold, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_HELD));

    if (rv == APR_SUCCESS) {
        *hold = (mdl_storage_hold_t){.id = MDL_TEXT(row, storage_held, id),
                                     .user = MDL_TEXT(row, storage_held, user_name),
                                     .since = MDL_INT(row, storage_held, held_at)};
    }
    return rv;
}

apr_status_t mdl_storage_release(mdl_db_t *db, apr_pool_t *p, mdl_storage_release_t *release)
{
    apr_status_t rv = release->id != NULL
                          ? mdl_db_exec(db, &release->released, p,
                                        MDL_Q(STORAGE_RELEASE, release->id))
                          : mdl_db_exec(db, &release->released, p, MDL_Q(STORAGE_RELEASE_ALL));

    return rv == APR_SUCCESS && release->id != NULL && release->released == 0
               ? mdl_problem_set(release->problem, 404, "hold_not_found", "There is no such hold.")
               : rv;
}
