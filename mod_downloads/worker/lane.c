#include "worker/lane.h"

/* Slots of 0: DownloadsIngestConcurrency. */
static const struct {
    mdl_runner_kind_t kind;
    int runners;
    int slots;
} table[MDL_LANES] = {
    [MDL_LANE_SMALL] = {MDL_RUNNER_TRANSFER, 1, 16},
    [MDL_LANE_BULK] = {MDL_RUNNER_TRANSFER, MDL_LANE_MAX_RUNNERS, 0},
    [MDL_LANE_HASH] = {MDL_RUNNER_HASH, 1, 4},
    [MDL_LANE_MAIL] = {MDL_RUNNER_MAIL, 1, 8},
    /* Each may wait for a storefront that is slow, and costs no more than a socket. */
    [MDL_LANE_LOOKUP] = {MDL_RUNNER_TRANSFER, 1, 64},
};

apr_status_t mdl_lanes_start(mdl_lane_t lanes[MDL_LANES], const mdl_service_t *service,
                             mdl_queue_t *done, apr_pool_t *p)
{
    for (int i = 0; i < MDL_LANES; i++) {
        mdl_lane_t *lane = &lanes[i];

        lane->slots = table[i].slots != 0 ? table[i].slots : service->settings->ingest_concurrency;
        for (int j = 0; j < table[i].runners; j++) {
            apr_status_t rv = mdl_runner_start(&lane->runners[j], table[i].kind, service, done, p);

            if (rv != APR_SUCCESS) {
                return rv;
            }
            lane->runner_count++;
        }
    }
    return APR_SUCCESS;
}

void mdl_lanes_stop(mdl_lane_t lanes[MDL_LANES])
{
    for (int i = 0; i < MDL_LANES; i++) {
        for (int j = 0; j < lanes[i].runner_count; j++) {
            mdl_runner_stop(lanes[i].runners[j]);
        }
    }
    for (int i = 0; i < MDL_LANES; i++) {
        for (int j = 0; j < lanes[i].runner_count; j++) {
            mdl_runner_join(lanes[i].runners[j]);
        }
    }
}

mdl_runner_t *mdl_lane_runner(const mdl_lane_t *lane)
{
    mdl_runner_t *best = lane->runners[0];

    for (int i = 1; i < lane->runner_count; i++) {
        if (mdl_runner_load(lane->runners[i]) < mdl_runner_load(best)) {
            best = lane->runners[i];
        }
    }
    return best;
}
