#include "worker/publish.h"

#include "base/clock.h"
#include "core/shop/webhook_delivery.h"

#define PAUSE  apr_time_from_msec(100) /* so that many writes share a transaction */
#define SECOND apr_time_from_sec(1)

static apr_status_t notice_is_waiting_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_notice_is_waiting(db, p, arg);
}

void mdl_publish_look(mdl_worker_t *worker)
{
    int waiting;

    if (mdl_reconnect_read(worker->database, notice_is_waiting_effect, &waiting, worker->turn) ==
        APR_SUCCESS) {
        worker->notices |= waiting;
    }
}

apr_time_t mdl_publish_due(const mdl_worker_t *worker)
{
    return worker->notices ? worker->notices_at : APR_INT64_MAX;
}

typedef struct {
    mdl_notice_number_t number;
    int queued; /* for a webhook endpoint */
} publish_t;

static apr_status_t publish_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    publish_t *publish = arg;
    apr_status_t rv = mdl_notice_number(db, p, &publish->number);

    publish->queued = 0;
    return rv == APR_SUCCESS && publish->number.ids->nelts > 0
               ? mdl_webhook_queue(db, publish->number.ids, &publish->queued, p)
               : rv;
}

void mdl_publish_notices(mdl_worker_t *worker)
{
    apr_time_t now = mdl_clock_monotonic();
    publish_t publish;

    if (mdl_worker_write(worker, publish_effect, &publish) != APR_SUCCESS) {
        worker->notices_at = now + SECOND;
        return;
    }
    worker->notices = publish.number.more;
    worker->notices_at = publish.number.more ? now : now + PAUSE;
    worker->look |= publish.queued;
}
