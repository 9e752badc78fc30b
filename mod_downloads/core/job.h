/*
 * A job of the background process: an import, the hashing of an upload, an email to a customer or
 * to a shop's staff, a look-up at a shop's storefront, the deliveries to a webhook endpoint, a
 * shop's logo, a product for the buyers of another, the orders of merged customers, news for the
 * buyers of a file, or the wait for what an email lacked.
 * Workers claim jobs under a lease.  Each claim draws a higher fencing token, and all writes of the
 * worker require it, so a worker that has lost its lease changes nothing (contract, section 9).
 */
#ifndef MDL_CORE_JOB_H
#define MDL_CORE_JOB_H

#include "core/beat.h"
#include "core/job_begun.h"
#include "core/list_page.h"
#include "db/db.h"

/* A newer release on the same database may have more types and lanes: they are UNKNOWN here. */

typedef enum {
    MDL_JOB_IMPORT,
    MDL_JOB_VERIFY,
    MDL_JOB_EMAIL,
    MDL_JOB_LOOKUP,
    MDL_JOB_WEBHOOK, /* exists as long as its endpoint (core/shop/webhook.h) */
    MDL_JOB_STAFF_EMAIL,
    MDL_JOB_LOGO,       /* makes a shop's logo (core/shop/logo.h) */
    MDL_JOB_MOVE,       /* gives a product to the orders that have another (core/order/move.h) */
    MDL_JOB_FIND_EMAIL, /* sends the links of an address (core/order/find_request.h) */
    MDL_JOB_LATE,       /* waits for what was missing when an email was sent (core/order/late.h) */
    MDL_JOB_TELL,       /* finds the buyers of a new version (core/order/news.h) */
    MDL_JOB_NEWS,       /* an email that tells one of new versions */
    MDL_JOB_MERGE,      /* moves the orders of merged customers (core/order/merge.h) */
    MDL_JOB_UNKNOWN
} mdl_job_type_t;
extern const char *const mdl_job_type_names[];

typedef enum {
    MDL_JOB_QUEUED,
    MDL_JOB_RUNNING,
    MDL_JOB_SUCCEEDED,
    MDL_JOB_FAILED,
    MDL_JOB_CANCELLED
} mdl_job_status_t;
extern const char *const mdl_job_status_names[];

/* A job waits in a lane.  Each lane has its own slots: small imports never wait for large ones. */
typedef enum {
    MDL_LANE_SMALL,
    MDL_LANE_BULK,
    MDL_LANE_HASH,
    MDL_LANE_MAIL,
    MDL_LANE_LOOKUP, /* a slow storefront only delays other look-ups */
    MDL_LANE_WEBHOOK,
    MDL_LANE_ORDERS,  /* changes of many orders, a few at a time: without a thread of its own */
    MDL_LANE_NEWS,    /* emails that leave when none of an order waits */
    MDL_LANE_CLEANUP, /* cancelled jobs, until their worker has stopped and their file is removed */
    MDL_LANE_UNKNOWN
} mdl_job_lane_t;
extern const char *const mdl_job_lane_names[];

#define MDL_LANES MDL_LANE_CLEANUP /* the lanes before it have slots */

typedef struct {
    const char *id;
    mdl_job_type_t type;
    mdl_job_status_t status;
    apr_int64_t asset_id; /* 0: none, like the next two */
    apr_int64_t email_id;
    apr_int64_t order_id;
    const char *storefront_order_id; /* of that order; NULL: none, like upload_id */
    const char *upload_id;
    apr_int64_t shop_id;
    apr_int64_t bytes_received;
    apr_int64_t bytes_total; /* -1: not known */
    const char *request_id;  /* of the request that caused it (mdl_db_request), or NULL */
    int attempts;
    int max_attempts;
    apr_time_t due_at;
    const char *error_code; /* NULL: none, like error_message */
    const char *error_message;
    apr_time_t created_at;
    apr_time_t started_at;
    apr_time_t finished_at;
    apr_time_t updated_at; /* moves with every change, progress included; back only when the clock
                              was set back (mdl_job_set_back) */
    mdl_job_lane_t lane;
    const char *source_url; /* by mdl_source_seal */
    const char *expected_sha256;
    const char *written;   /* how far its object has come (storage/object_writer.h), or NULL */
    const char *object;    /* the key of its object, only set for a new one; else NULL */
    const char *validator; /* of the partial file (worker/job_import.c), or NULL */
    apr_int64_t lease_token;
    int interruptions; /* how often in a row the worker died during this job, without progress */
    int shop_blocked;  /* only set by mdl_job_claim */
} mdl_job_t;

/** Attempts to send an email: retried after 1, 5, 15, 30 minutes, then hourly for 5 days. */
#define MDL_JOB_MAIL_ATTEMPTS 124

/** A copy of a job in another pool. */
mdl_job_t *mdl_job_copy(const mdl_job_t *job, apr_pool_t *p);

/** The name of a job in the log: its id, and the request that caused it. */
const char *mdl_job_name(const mdl_job_t *job, apr_pool_t *p);

/** Queues a job with the given id, type, lane, asset_id, email_id, order_id, upload_id, shop_id,
    max_attempts, …, due at due_at or, if that has passed, now (mdl_db_note_due).  Sets status,
    created_at, updated_at and due_at. */
apr_status_t mdl_job_insert(mdl_db_t *db, mdl_job_t *job, apr_pool_t *p);

/** Reads a job of any type and shop; APR_ENOENT when there is none. */
apr_status_t mdl_job_find(mdl_db_t *db, const char *id, mdl_job_t **job, apr_pool_t *p);

/** Reads a job that a shop may see; APR_ENOENT also for another shop's. */
apr_status_t mdl_job_find_of_shop(mdl_db_t *db, apr_int64_t shop_id, const char *id,
                                  mdl_job_t **job, apr_pool_t *p);

/** Effect: reads the newest jobs (mdl_job_t *), of a shop or, with shop_id 0, of all.  With a
    status it looks at as many jobs as needed, at worst all. */
typedef struct {
    apr_int64_t shop_id;
    const char *status; /* a name, or NULL */
    int limit;
    apr_array_header_t *jobs; /* out */
} mdl_job_list_t;
apr_status_t mdl_job_list(mdl_db_t *db, apr_pool_t *p, mdl_job_list_t *list);

/** Effect: counts the jobs of each status, of a shop or, with shop_id 0, of all. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t jobs[MDL_JOB_CANCELLED + 1]; /* out: by mdl_job_status_t */
} mdl_job_count_t;
apr_status_t mdl_job_count(mdl_db_t *db, apr_pool_t *p, mdl_job_count_t *count);

/** Reads the number of a job's order, or of its email's order; NULL: none. */
apr_status_t mdl_job_order(mdl_db_t *db, const mdl_job_t *job, const char **storefront_order_id,
                           apr_pool_t *p);

/** Effect: reads the ids of failed jobs after a job, oldest first. */
typedef struct {
    apr_int64_t shop_id; /* 0: any shop */
    const char *type;    /* a name; NULL: any type */
    apr_time_t since;    /* failed then or later; 0: any time */
    const char *after;   /* a job's id; "" at first */
    int limit;
    apr_array_header_t *ids; /* out: const char * */
} mdl_job_failed_t;
apr_status_t mdl_job_failed(mdl_db_t *db, apr_pool_t *p, mdl_job_failed_t *failed);

/** Effect: makes up to limit emails due now that wait for another attempt after a failure; not
    emails that wait for the shop's delay or rate, nor those of a blocked shop. */
typedef struct {
    int limit;
    apr_int64_t flushed; /* out */
} mdl_job_flush_t;
apr_status_t mdl_job_flush(mdl_db_t *db, apr_pool_t *p, mdl_job_flush_t *flush);

/** Effect: finds out when the earliest job of each lane is due, by one statement.  Member from is a
    low-water mark: below it are only dead index entries of jobs, which PostgreSQL can't remove
    while an old snapshot is open, and which a look or claim should not read each time. */
typedef struct {
    apr_time_t from[MDL_LANE_UNKNOWN];   /* by lane; 0: all jobs */
    apr_time_t until;                    /* jobs due later are ignored */
    apr_time_t due_at[MDL_LANE_UNKNOWN]; /* out; 0: none */
    apr_int64_t newest_shop;             /* out: the highest id of a shop */
} mdl_job_look_t;
apr_status_t mdl_job_look(mdl_db_t *db, apr_pool_t *p, mdl_job_look_t *look);

/** How a claim shares a lane's free slots between shops. */
typedef struct {
    const apr_array_header_t *running; /* shop ids of the lane's running jobs, one for each job */
    apr_int64_t after;                 /* the shop that had the last turn */
    apr_int64_t from;                  /* shops with higher ids, */
    apr_int64_t to;                    /* up to this one, are considered, too */
} mdl_job_share_t;

/** How many of a lane's slots a shop may use while no other shop waits; at least one. */
int mdl_job_slots_alone(int slots);

/** Effect: claims up to limit due jobs of a lane, then looks for the next due ones.  Without a
    share, claims the oldest.  With a share, limit is the number of free slots, some of which stay
    free unless enough shops wait (job_claim_shared). */
typedef struct {
    mdl_job_lane_t lane;
    const char *owner;
    int limit;
    const mdl_job_share_t *share; /* or NULL */
    mdl_job_look_t *look;         /* jobs due before its from are not claimed */
    apr_array_header_t *jobs;     /* out, of mdl_job_t * */
} mdl_job_claim_t;
apr_status_t mdl_job_claim(mdl_db_t *db, apr_pool_t *p, mdl_job_claim_t *claim);

/* --- what a worker writes: each of these returns APR_ENOENT when the lease is lost --- */

/** Renews the lease, and stores progress, written, validator and interruptions. */
apr_status_t mdl_job_renew(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

/*
 * How a worker ends its work on a job.  *held has a row (mdl_rows_one) if the worker still held the
 * lease; else nothing was changed.
 */

/** Gives a job back unfinished, due at job->due_at in job->lane, with progress, written,
    validator, interruptions and what held it up (error_code, error_message); the attempt doesn't
    count. */
apr_status_t mdl_job_release(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p);

/** Queues a job until job->due_at after a failed attempt, with its error_code and error_message. */
apr_status_t mdl_job_retry_later(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held,
                                 apr_pool_t *p);

/** Ends a job, with status, error_code, error_message and progress as in job. */
apr_status_t mdl_job_finish(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p);

/** Effect: takes queued jobs of a blocked shop out of the workers' lanes, or puts them back after
    the shop was unblocked: up to limit jobs after a job, by id. */
typedef struct {
    apr_int64_t shop_id;
    int resume;
    int limit;
    const char *after; /* in and out: "" at first; NULL after the last */
} mdl_job_hold_t;
apr_status_t mdl_job_hold(mdl_db_t *db, apr_pool_t *p, mdl_job_hold_t *hold);

/** Effect: reads the heartbeats (mdl_beat_t) of all jobs that workers run or must clean up. */
apr_status_t mdl_job_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats);

/** Effect: takes lost jobs from their workers, unless the leases were renewed since: running jobs
    as in mdl_job_inherit, cancelled jobs for any worker to clean up after. */
apr_status_t mdl_job_expire(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *lost);

/** Effect for a clock that was set back: jobs queued in the future wait from now on, for as long as
    they were to wait.  It can be repeated. */
apr_status_t mdl_job_set_back(mdl_db_t *db, apr_pool_t *p);

/** Effect: makes the jobs of a dead worker due at once; worker is their lease's owner.  Their next
    claim continues the same attempt.  For jobs that it had begun, the death is an interruption: the
    first one if there was progress before it. */
typedef struct {
    const char *worker;
    const mdl_begun_t *begun;
} mdl_job_inherit_t;
apr_status_t mdl_job_inherit(mdl_db_t *db, apr_pool_t *p, const mdl_job_inherit_t *inherit);

/** Turns a job that succeeded in this transaction into a failed one, with its error_code and
    message. */
apr_status_t mdl_job_fail(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

/** Reads an open job of an asset, except the job but (NULL: any); *job is NULL: none. */
apr_status_t mdl_job_open_of_asset(mdl_db_t *db, apr_int64_t asset_id, const char *but,
                                   mdl_job_t **job, apr_pool_t *p);

/** Effect: reads a page of the jobs that a shop may see and that fit the filters.  It looks at
    1,000 jobs at most, so it may find fewer than there are, and still have a next place. */
typedef struct {
    mdl_list_page_t page; /* of mdl_job_t */
    const char *status;   /* a name, or NULL */
    const char *type;     /* a name, or NULL */
    apr_int64_t asset_id; /* or 0 */
} mdl_job_page_t;
apr_status_t mdl_job_page(mdl_db_t *db, apr_pool_t *p, mdl_job_page_t *list);

/** Cancels the open jobs of an asset. */
apr_status_t mdl_job_cancel_of_asset(mdl_db_t *db, apr_int64_t asset_id, apr_pool_t *p);

/** Reads cancelled jobs (mdl_job_t *) that may have left a file, and that belong to this owner or
    to nobody. */
apr_status_t mdl_job_to_clean(mdl_db_t *db, const char *owner, int limit, apr_array_header_t **jobs,
                              apr_pool_t *p);

/** Records that a cancelled job is cleaned up.  APR_ENOENT when it was queued again. */
apr_status_t mdl_job_cleaned(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

#endif
