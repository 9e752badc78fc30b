#include "core/health/gauges.h"

#include <string.h>

#include <apr_time.h>

#include "base/names.h"
#include "core/node.h"

#define JOBS_MAX      10000 /* counted in each lane */
#define ENDPOINTS_MAX 1000

static mdl_job_type_t type_of(const char *name)
{
    int type = mdl_names_find(mdl_job_type_names, name);

    return type < 0 ? MDL_JOB_UNKNOWN : (mdl_job_type_t)type;
}

static void gauges_note_jobs(mdl_gauges_t *gauges, const char *type, int state, apr_int64_t jobs,
                             apr_interval_time_t oldest)
{
    mdl_job_type_t i = type_of(type);

    gauges->jobs[i][state] += jobs;
    if (oldest > gauges->oldest[i][state]) {
        gauges->oldest[i][state] = oldest;
    }
}

static apr_status_t gauges_read_lane(mdl_db_t *db, mdl_gauges_t *gauges, const char *lane,
                                     apr_time_t now, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(GAUGE_JOBS, .lane = lane, .now = now, .limit = JOBS_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        int is_due = MDL_INT(rows, gauge_jobs, is_due) != 0;

        gauges_note_jobs(gauges, MDL_TEXT(rows, gauge_jobs, type),
                         is_due ? MDL_OPEN_DUE : MDL_OPEN_LATER, MDL_INT(rows, gauge_jobs, jobs),
                         is_due ? now - MDL_INT(rows, gauge_jobs, oldest) : 0);
    }
    return rv;
}

static apr_status_t gauges_read_running(mdl_db_t *db, mdl_gauges_t *gauges, apr_time_t now,
                                        apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(GAUGE_JOBS_RUNNING));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        gauges_note_jobs(gauges, MDL_TEXT(rows, gauge_jobs_running, type), MDL_OPEN_RUNNING,
                         MDL_INT(rows, gauge_jobs_running, jobs),
                         now - MDL_INT(rows, gauge_jobs_running, oldest));
    }
    return rv;
}

static apr_status_t gauges_read_jobs(mdl_db_t *db, mdl_gauges_t *gauges, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    apr_status_t rv = gauges_read_running(db, gauges, now, p);

    for (int i = 0; i < MDL_LANE_UNKNOWN && rv == APR_SUCCESS; i++) {
        rv = gauges_read_lane(db, gauges, mdl_job_lane_names[i], now, p);
    }
    return rv;
}

static apr_status_t gauges_read_nodes(mdl_db_t *db, mdl_gauges_t *gauges, apr_pool_t *p)
{
    apr_array_header_t *nodes;
    apr_status_t rv = mdl_node_list(db, p, &nodes);

    for (int i = 0; rv == APR_SUCCESS && i < nodes->nelts; i++) {
        int silent = APR_ARRAY_IDX(nodes, i, mdl_node_t).silence >= MDL_NODE_LOST;

        gauges->nodes[silent ? MDL_NODES_SILENT : MDL_NODES_LIVE]++;
    }
    return rv;
}

apr_status_t mdl_gauges_read(mdl_db_t *db, apr_pool_t *p, mdl_gauges_t *gauges)
{
    mdl_rows_t *row;
    apr_status_t rv;

    memset(gauges, 0, sizeof *gauges);
    if ((rv = gauges_read_jobs(db, gauges, p)) != APR_SUCCESS ||
        (rv = gauges_read_nodes(db, gauges, p)) != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p, MDL_Q(GAUGE_WEBHOOK_ENDPOINTS, ENDPOINTS_MAX))) !=
            APR_SUCCESS) {
        return rv;
    }
    gauges->endpoints = mdl_rows_int(row, 0);
    if ((rv = mdl_db_select_one(db, &row, p, MDL_Q(GAUGE_DATABASE))) == APR_SUCCESS) {
        gauges->bytes = mdl_rows_int(row, 0);
    }
    if (mdl_db_free(db, &gauges->free) != APR_SUCCESS) {
        gauges->free = MDL_METRIC_ABSENT;
    }
    return rv;
}

void mdl_gauges_set(const mdl_gauges_t *gauges)
{
    for (int i = 0; i < MDL_JOB_TYPES; i++) {
        for (int j = 0; j < MDL_OPEN; j++) {
            /* Nothing is later than "later" by an age. */
            int has_age = gauges != NULL && j != MDL_OPEN_LATER;

            mdl_metric_set(&mdl_metrics->jobs[i][j],
                           gauges != NULL ? gauges->jobs[i][j] : MDL_METRIC_ABSENT);
            mdl_metric_set(&mdl_metrics->job_oldest[i][j],
                           has_age ? gauges->oldest[i][j] : MDL_METRIC_ABSENT);
        }
    }
    for (int i = 0; i < MDL_NODES; i++) {
        mdl_metric_set(&mdl_metrics->nodes[i],
                       gauges != NULL ? gauges->nodes[i] : MDL_METRIC_ABSENT);
    }
    mdl_metric_set(&mdl_metrics->webhook_endpoints_failing,
                   gauges != NULL ? gauges->endpoints : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->database_bytes,
                   gauges != NULL ? gauges->bytes : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->database_free_bytes,
                   gauges != NULL ? gauges->free : MDL_METRIC_ABSENT);
    mdl_metric_set(&mdl_metrics->database_up, gauges != NULL);
}
