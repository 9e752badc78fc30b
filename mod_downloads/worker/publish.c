#include "worker/publish.h"

#include "base/clock.h"
#include "core/shop/day_count.h"
#include "core/shop/webhook_delivery.h"

#define PAUSE  apr_time_from_msec(100) /* so that many writes share a transaction */
#define SECOND apr_time_from_sec(1)
#define LATE   1000 /* the most ids given to other transactions while one commits */

MDL_EFFECT(mdl_event_first_waiting, apr_int64_t *)

void mdl_publish_look(mdl_worker_t *worker)
{
    apr_int64_t first;

    if (mdl_reconnect_read(worker->database, mdl_event_first_waiting_effect, &first,
                           worker->turn) == APR_SUCCESS &&
        first != 0) {
        worker->events = 1;
        worker->events_from = first;
    }
}

apr_time_t mdl_publish_due(const mdl_worker_t *worker)
{
    return worker->events ? worker->events_at : APR_INT64_MAX;
}

typedef struct {
    mdl_event_number_t number;
    int queued; /* for a webhook endpoint */
} publish_t;

static apr_status_t publish_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    publish_t *publish = arg;
    apr_status_t rv = mdl_event_number(db, p, &publish->number);

    publish->queued = 0;
    if (rv == APR_SUCCESS) {
        rv = mdl_day_count_add(db, publish->number.events, p);
    }
    return rv == APR_SUCCESS && publish->number.ids->nelts > 0
               ? mdl_webhook_queue(db, publish->number.ids, &publish->queued, p)
               : rv;
}

/* Raises the id from which events are searched: while an old snapshot is open, the index of waiting
   events still has the numbered ones, which need not be read again.  mdl_publish_look finds events
   that committed after more than LATE others. */
static void events_go_on(mdl_worker_t *worker, const apr_array_header_t *ids)
{
    if (ids->nelts > 0) {
        apr_int64_t from = APR_ARRAY_IDX(ids, ids->nelts - 1, apr_int64_t) - LATE;

        worker->events_from = from > worker->events_from ? from : worker->events_from;
    }
}

void mdl_publish_events(mdl_worker_t *worker)
{
    apr_time_t now = mdl_clock_monotonic();
    publish_t publish = {.number.from = worker->events_from};

    if (mdl_worker_write(worker, publish_effect, &publish) != APR_SUCCESS) {
        worker->events_at = now + SECOND;
        return;
    }
    events_go_on(worker, publish.number.ids);
    worker->events = publish.number.more;
    worker->events_at = publish.number.more ? now : now + PAUSE;
    worker->look |= publish.queued;
}
