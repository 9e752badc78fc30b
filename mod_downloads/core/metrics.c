#include "core/metrics.h"

#include <stddef.h>
#include <string.h>

#define MEASURE apr_time_from_sec(5)

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "other processes would not see libatomic's locks");

static mdl_metrics_t own;
mdl_metrics_t *mdl_metrics = &own;

#define MSEC(n) apr_time_from_msec(n)

const apr_interval_time_t mdl_bucket_limits[MDL_BUCKETS - 1] = {
    MSEC(1),   MSEC(5),    MSEC(10),   MSEC(25),   MSEC(100),
    MSEC(250), MSEC(1000), MSEC(2500), MSEC(5000), MSEC(30000)};

const char *const mdl_bucket_names[MDL_BUCKETS] = {"0.001", "0.005", "0.01", "0.025", "0.1", "0.25",
                                                   "1.0",   "2.5",   "5.0",  "30.0",  "+Inf"};

const char *const mdl_limit_names[MDL_LIMITS] = {
    "key",  "shop", "network",      "forged",          "page", "file",
    "mail", NULL,   "sign_in_user", "sign_in_network", "find", "news"};

static const char *const places[] = {"server", "object_store"};
static const char *const downloads[] = {"counted", "returned", "cut"};
static const char *const mails[] = {"sent", "retried", "failed", "bounced"};
static const char *const ends[] = {"succeeded", "retried", "failed", "lost"};
static const char *const open_states[] = {"due", "later", "running"};
static const char *const node_states[] = {"live", "silent"};
static const char *const attempts[] = {"failed", "succeeded"};

#define AT(member) .offset = offsetof(mdl_metrics_t, member)
#define BY(name, values)                                                                           \
    {                                                                                              \
        name, values, sizeof(values) / sizeof *(values)                                            \
    }
#define OF_JOBS(values)                                                                            \
    {                                                                                              \
        {"type", mdl_job_type_names, MDL_JOB_TYPES}, BY("state", values)                           \
    }

const mdl_metric_family_t mdl_metric_families[] = {
    {"database_connections_used", MDL_COUNTER, 0, "Connections that requests took from the pool.",
     AT(database_connections)},
    {"database_connection_held_seconds", MDL_COUNTER, 1,
     "For how long requests held them; its rate is how many are in use.",
     AT(database_connection_time)},
    {"database_connections_refused", MDL_COUNTER, 0,
     "Requests that got no connection: the pool was exhausted, or the database out of reach.",
     AT(database_refused)},
    {"idempotency_replays", MDL_COUNTER, 0,
     "Writes that were answered with the stored response to their Idempotency-Key.",
     AT(idempotency_replays)},
    {"rate_limited",
     MDL_COUNTER,
     0,
     "Requests refused, or emails delayed, by a rate limit.",
     AT(rate_limited),
     {BY("limit", mdl_limit_names)}},
    {"imported_bytes", MDL_COUNTER, 0, "Bytes received by imports.", AT(imported_bytes)},
    {"uploaded_bytes", MDL_COUNTER, 0, "Bytes received by uploads.", AT(uploaded_bytes)},
    {"delivered_bytes",
     MDL_COUNTER,
     0,
     "Bytes of files that customers got, counted when a transfer has ended.",
     AT(delivered_bytes),
     {BY("from", places)}},
    {"downloads",
     MDL_COUNTER,
     0,
     "Downloads that were counted or given back, and transfers that were cut.",
     AT(downloads),
     {BY("outcome", downloads)}},
    {"jobs_ended",
     MDL_COUNTER,
     0,
     "Attempts at jobs that have ended.",
     AT(jobs_ended),
     {{"type", mdl_job_type_names, MDL_JOB_TYPES}, BY("outcome", ends)}},
    {"emails",
     MDL_COUNTER,
     0,
     "Emails to customers and staff.",
     AT(emails),
     {BY("outcome", mails)}},
    {"webhook_attempts",
     MDL_COUNTER,
     0,
     "Deliveries to webhook endpoints that were tried.",
     AT(webhook_attempts),
     {BY("outcome", attempts)}},
    {"database_up", MDL_GAUGE, 0, "Whether the database answered the last time it was asked.",
     AT(database_up)},
    {"database_connections_max", MDL_GAUGE, 0,
     "Connections that this httpd may have open to the database.", AT(database_connections_max)},
    {"database_bytes", MDL_GAUGE, 0, "The size of the database.", AT(database_bytes)},
    {"database_free_bytes", MDL_GAUGE, 0,
     "What the file system of the database has left; SQLite only.", AT(database_free_bytes)},
    {"storage_free_bytes", MDL_GAUGE, 0, "What the file system of the storage folder has left.",
     AT(storage_free_bytes)},
    {"storage_reserve_bytes", MDL_GAUGE, 0, "What must be left there (DownloadsStorageReserve).",
     AT(storage_reserve_bytes)},
    {"jobs", MDL_GAUGE, 0,
     "Jobs that are due, due later or running; of the first two 10,000 in each lane are counted.",
     AT(jobs), OF_JOBS(open_states)},
    {"job_oldest_seconds", MDL_GAUGE, 1,
     "For how long the oldest of them has been due, or has run.", AT(job_oldest),
     OF_JOBS(open_states)},
    {"nodes",
     MDL_GAUGE,
     0,
     "Nodes whose background process is heard of.",
     AT(nodes),
     {BY("state", node_states)}},
    {"webhook_endpoints_failing", MDL_GAUGE, 0,
     "Webhook endpoints that fail or were switched off for it, up to 1,000.",
     AT(webhook_endpoints_failing)},
    {"worker_up", MDL_GAUGE, 0,
     "Whether the background process of this node works; absent with DownloadsWorker Off.",
     AT(worker_up)},
    {"worker_heartbeat_age_seconds", MDL_GAUGE, 1, "The time since its last heartbeat.",
     AT(worker_heartbeat_age)},
    {0},
};

void mdl_histogram_add(mdl_histogram_t *histogram, apr_interval_time_t took)
{
    int i = 0;

    if (!MDL_METRICS) {
        return;
    }
    while (i < MDL_BUCKETS - 1 && took > mdl_bucket_limits[i]) {
        i++;
    }
    mdl_metric_add(&histogram->buckets[i], 1);
    mdl_metric_add(&histogram->time, took > 0 ? took : 0);
}

static int family_words(const mdl_metric_family_t *family)
{
    int words = 1;

    for (int i = 0; i < 2; i++) {
        words *= family->labels[i].name != NULL ? family->labels[i].count : 1;
    }
    return words;
}

void mdl_metrics_clear(mdl_metrics_t *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    for (const mdl_metric_family_t *family = mdl_metric_families; family->name != NULL; family++) {
        mdl_metric_t *words = (mdl_metric_t *)((char *)metrics + family->offset);

        for (int i = 0; family->type == MDL_GAUGE && i < family_words(family); i++) {
            mdl_metric_set(&words[i], MDL_METRIC_ABSENT);
        }
    }
}

int mdl_metrics_claim(void)
{
    long long measured = atomic_load(&mdl_metrics->measured_at);
    apr_time_t now = mdl_clock_monotonic();

    return (measured == 0 || now - measured >= MEASURE) &&
           atomic_compare_exchange_strong(&mdl_metrics->measured_at, &measured, now);
}
