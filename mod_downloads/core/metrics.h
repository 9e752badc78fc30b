/*
 * What a node counts for its operator, in memory that all of its processes share: counters, which
 * only grow, and gauges, which are measured now and then.  Each is one 64-bit word, so counting
 * needs no lock and no system call.  The table mdl_metric_families has all of them; what is
 * exported is made from it.  No metric has a label whose values strangers or shops choose.
 *
 * A process that shares no memory, such as downloadsctl, counts for itself.
 */
#ifndef MDL_CORE_METRICS_H
#define MDL_CORE_METRICS_H

#include <stdatomic.h>

#include <apr.h>
#include <apr_time.h>

#include "base/clock.h"
#include "core/job.h"

/* 0 builds a module that counts nothing, for `make check-metrics` to compare with. */
#ifndef MDL_METRICS
#define MDL_METRICS 1
#endif

typedef atomic_llong mdl_metric_t;

#define MDL_METRIC_ABSENT LLONG_MIN /* a gauge that could not be measured */

#define MDL_OPERATIONS_MAX 512
#define MDL_BUCKETS        11 /* of mdl_bucket_limits, and one for what is slower */
#define MDL_CLASSES        4  /* 2xx to 5xx */
#define MDL_LIMITS         12 /* kinds of rate limits (core/shop/rate_limit.h) */
#define MDL_JOB_TYPES      (MDL_JOB_UNKNOWN + 1)

/** In seconds and, for the text, as OpenMetrics writes them. */
extern const apr_interval_time_t mdl_bucket_limits[MDL_BUCKETS - 1];
extern const char *const mdl_bucket_names[MDL_BUCKETS];

typedef struct {
    mdl_metric_t buckets[MDL_BUCKETS]; /* each without those below */
    mdl_metric_t time;                 /* the sum, in microseconds */
} mdl_histogram_t;

/** The requests of an operation. */
typedef struct {
    mdl_metric_t classes[MDL_CLASSES];
    mdl_histogram_t took;
} mdl_operation_count_t;

enum { MDL_DELIVERED_HERE, MDL_DELIVERED_BY_STORE, MDL_DELIVERED };
enum { MDL_DOWNLOAD_COUNTED, MDL_DOWNLOAD_RETURNED, MDL_DOWNLOAD_CUT, MDL_DOWNLOADS };
enum { MDL_MAILS_SENT, MDL_MAILS_RETRIED, MDL_MAILS_FAILED, MDL_MAILS_BOUNCED, MDL_MAILS };
enum { MDL_ENDED_WELL, MDL_ENDED_AGAIN, MDL_ENDED_FAILED, MDL_ENDED_LOST, MDL_ENDED };
enum { MDL_OPEN_DUE, MDL_OPEN_LATER, MDL_OPEN_RUNNING, MDL_OPEN };
enum { MDL_NODES_LIVE, MDL_NODES_SILENT, MDL_NODES };

typedef struct {
    mdl_metric_t measured_at; /* by mdl_clock_monotonic: when somebody last began to */

    mdl_operation_count_t operations[MDL_OPERATIONS_MAX];
    mdl_histogram_t database_wait;

    /* counters */
    mdl_metric_t database_connections;
    mdl_metric_t database_connection_time;
    mdl_metric_t database_refused;
    mdl_metric_t idempotency_replays;
    mdl_metric_t rate_limited[MDL_LIMITS];
    mdl_metric_t imported_bytes;
    mdl_metric_t uploaded_bytes;
    mdl_metric_t delivered_bytes[MDL_DELIVERED];
    mdl_metric_t downloads[MDL_DOWNLOADS];
    mdl_metric_t jobs_ended[MDL_JOB_TYPES][MDL_ENDED];
    mdl_metric_t emails[MDL_MAILS];
    mdl_metric_t webhook_attempts[2]; /* failed, succeeded */

    /* gauges */
    mdl_metric_t database_up;
    mdl_metric_t database_connections_max;
    mdl_metric_t database_bytes;
    mdl_metric_t database_free_bytes;
    mdl_metric_t storage_free_bytes;
    mdl_metric_t storage_reserve_bytes;
    mdl_metric_t jobs[MDL_JOB_TYPES][MDL_OPEN];
    mdl_metric_t job_oldest[MDL_JOB_TYPES][MDL_OPEN];
    mdl_metric_t nodes[MDL_NODES];
    mdl_metric_t webhook_endpoints_failing;
    mdl_metric_t worker_up;
    mdl_metric_t worker_heartbeat_age;
} mdl_metrics_t;

/** Where this process counts: never NULL. */
extern mdl_metrics_t *mdl_metrics;

typedef enum { MDL_COUNTER, MDL_GAUGE } mdl_metric_type_t;

/** A family of metrics: a word, an array or an array of arrays of mdl_metrics_t. */
typedef struct {
    const char *name; /* without "downloads_", and a counter's "_total" */
    mdl_metric_type_t type;
    int is_time; /* microseconds, exported as seconds */
    const char *help;
    apr_size_t offset;
    struct {
        const char *name;          /* NULL: none */
        const char *const *values; /* a NULL is not exported */
        int count;
    } labels[2];
} mdl_metric_family_t;

/** Ends with a family without a name. */
extern const mdl_metric_family_t mdl_metric_families[];

/** The names of mdl_rate_kind_t. */
extern const char *const mdl_limit_names[MDL_LIMITS];

static inline void mdl_metric_add(mdl_metric_t *metric, long long n)
{
    if (MDL_METRICS) {
        atomic_fetch_add_explicit(metric, n, memory_order_relaxed);
    }
}

/** The time, for a difference that is counted. */
static inline apr_time_t mdl_metric_clock(void)
{
    return MDL_METRICS ? mdl_clock_monotonic() : 0;
}

static inline void mdl_metric_set(mdl_metric_t *metric, long long value)
{
    atomic_store_explicit(metric, value, memory_order_relaxed);
}

static inline long long mdl_metric_get(const mdl_metric_t *metric)
{
    return atomic_load_explicit(metric, memory_order_relaxed);
}

/** Adds a time to a histogram. */
void mdl_histogram_add(mdl_histogram_t *histogram, apr_interval_time_t took);

/** Makes all counters 0 and all gauges absent: for new memory. */
void mdl_metrics_clear(mdl_metrics_t *metrics);

/** Whether the caller must measure the gauges now: at most one in the node does, every few seconds,
    however many ask. */
int mdl_metrics_claim(void);

#endif
