#include "core/job_queue.h"

#include <apr_time.h>

#include "base/names.h"

static apr_status_t lane_ask(mdl_db_t *db, apr_int64_t shop_id, const char *lane, apr_time_t now,
                             mdl_rows_t **row, apr_pool_t *p)
{
    return shop_id != 0 ? mdl_db_select(db, row, p,
                                        MDL_Q(JOB_LANE_OF_SHOP, .lane = lane, .shop_id = shop_id,
                                              .now = now, .limit = MDL_QUEUE_MAX + 1))
                        : mdl_db_select(db, row, p,
                                        MDL_Q(JOB_LANE, .lane = lane, .now = now,
                                              .limit = MDL_QUEUE_MAX + 1));
}

apr_status_t mdl_queue_read(mdl_db_t *db, apr_pool_t *p, mdl_queue_t *queue)
{
    apr_time_t now = apr_time_now();
    mdl_rows_t *rows[MDL_LANES];
    mdl_rows_t *running;
    apr_status_t rv = mdl_db_select(db, &running, p, MDL_Q(JOBS_RUNNING, queue->shop_id));

    for (int i = 0; i < (int)MDL_LANES && rv == APR_SUCCESS; i++) {
        rv = lane_ask(db, queue->shop_id, mdl_job_lane_names[i], now, &rows[i], p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < (int)MDL_LANES; i++) {
        mdl_queue_lane_t *lane = &queue->lanes[i];

        *lane = (mdl_queue_lane_t){0};
        if (mdl_rows_next(rows[i])) {
            MDL_READ(rows[i], job_lane, lane, waiting, later, oldest);
        }
    }
    while (mdl_rows_next(running)) {
        int lane = mdl_names_find(mdl_job_lane_names, MDL_TEXT(running, jobs_running, lane));

        if (lane >= 0 && lane < (int)MDL_LANES) {
            queue->lanes[lane].running = MDL_INT(running, jobs_running, jobs);
        }
    }
    return APR_SUCCESS;
}
