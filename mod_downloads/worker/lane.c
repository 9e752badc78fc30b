#include "worker/lane.h"

typedef struct {
    mdl_runner_kind_t kind;
    int runners;
    int slots; /* a single shop gets at most four in five */
} capacity_t;

#define OBJECT_RUNNERS 8

static capacity_t lane_capacity(mdl_job_lane_t lane, const mdl_settings_t *settings)
{
    switch (lane) {
    case MDL_LANE_BULK:
        /* A thread for each slot: resuming 5 GiB reads them first, which must not delay others. */
        return (capacity_t){MDL_RUNNER_TRANSFER, settings->ingest_concurrency,
                            settings->ingest_concurrency};
    case MDL_LANE_HASH:
        return (capacity_t){MDL_RUNNER_HASH, 1, 5};
    case MDL_LANE_MAIL:
        /* A slot for each connection: its email is settled before it gets the next. */
        return (capacity_t){MDL_RUNNER_MAIL, settings->mail_connections,
                            settings->mail_connections};
    case MDL_LANE_LOOKUP:
        /* Each may wait for a slow storefront, and costs only a socket. */
        return (capacity_t){MDL_RUNNER_TRANSFER, 1, 80};
    case MDL_LANE_WEBHOOK:
        /* One job for each endpoint, which may be slow too. */
        return (capacity_t){MDL_RUNNER_TRANSFER, 1, 80};
    case MDL_LANE_NEWS:
        /* It shares the connections of MAIL (mdl_worker_slots). */
        return (capacity_t){MDL_RUNNER_MAIL, 0, 0};
    case MDL_LANE_ORDERS:
        /* The control thread does the work itself: one batch a turn. */
        return (capacity_t){MDL_RUNNER_TRANSFER, 0, 1};
    default:
        /* Files that arrive in one turn are synced together.  With an object store, a runner waits
           for it with each file. */
        return (capacity_t){MDL_RUNNER_TRANSFER,
                            settings->storage.objects.url != NULL ? OBJECT_RUNNERS : 1, 80};
    }
}

apr_status_t mdl_lanes_start(mdl_lane_t lanes[MDL_LANES], const mdl_service_t *service,
                             mdl_queue_t *done, apr_pool_t *p)
{
    for (mdl_job_lane_t i = 0; i < MDL_LANES; i++) {
        const capacity_t capacity = lane_capacity(i, service->settings);
        mdl_lane_t *lane = &lanes[i];

        lane->slots = i == MDL_LANE_MAIL ? 0 : capacity.slots; /* see mdl_worker_share */
        for (int j = 0; j < capacity.runners; j++) {
            apr_status_t rv = mdl_runner_start(&lane->runners[j], capacity.kind, j, service, done,
                                               p);

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
}

void mdl_lanes_join(mdl_lane_t lanes[MDL_LANES])
{
    for (int i = 0; i < MDL_LANES; i++) {
        for (int j = 0; j < lanes[i].runner_count; j++) {
            mdl_runner_join(lanes[i].runners[j]);
        }
    }
}
