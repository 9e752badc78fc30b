/*
 * A job of the background process: an import, the hashing of an upload, an email to a customer or
 * to a shop's staff, a look-up at a shop's storefront, or what is sent to a webhook endpoint.
 * Workers claim jobs under a lease; each claim draws a higher token, and whatever a worker writes
 * is fenced by the token it drew, so that a worker that lost its lease changes nothing (contract,
 * section 9).
 */
#ifndef MDL_CORE_JOB_H
#define MDL_CORE_JOB_H

#include "core/beat.h"
#include "core/job_begun.h"
#include "core/list_page.h"
#include "db/db.h"

/* Of types and lanes, which a newer release on the same database may have more of, the last value
   stands for those that are not known here. */

typedef enum {
    MDL_JOB_IMPORT,
    MDL_JOB_VERIFY,
    MDL_JOB_EMAIL,
    MDL_JOB_LOOKUP,
    MDL_JOB_WEBHOOK, /* stays as long as its endpoint (core/shop/webhook.h) */
    MDL_JOB_STAFF_EMAIL,
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

/* A job waits in a lane; each lane has slots of its own, so that small imports never wait for
   large ones. */
typedef enum {
    MDL_LANE_SMALL,
    MDL_LANE_BULK,
    MDL_LANE_HASH,
    MDL_LANE_MAIL,
    MDL_LANE_LOOKUP, /* a slow storefront holds up other look-ups at most, and no import */
    MDL_LANE_WEBHOOK,
    MDL_LANE_CLEANUP, /* of cancelled jobs, until their worker has stopped and left no file */
    MDL_LANE_UNKNOWN
} mdl_job_lane_t;
extern const char *const mdl_job_lane_names[];

#define MDL_LANES MDL_LANE_CLEANUP /* how many lanes have slots: those before it */

typedef struct {
    const char *id;
    mdl_job_type_t type;
    mdl_job_status_t status;
    apr_int64_t asset_id; /* 0 for none, as the next two */
    apr_int64_t email_id;
    apr_int64_t order_id;
    const char *storefront_order_id; /* of that order; NULL for none, as upload_id */
    const char *upload_id;
    apr_int64_t shop_id;
    apr_int64_t bytes_received;
    apr_int64_t bytes_total; /* -1: not known */
    const char *request_id;  /* of the request that caused it (mdl_db_request); NULL for none */
    int attempts;
    int max_attempts;
    apr_time_t due_at;
    const char *error_code; /* NULL for none, as error_message */
    const char *error_message;
    apr_time_t created_at;
    apr_time_t started_at;
    apr_time_t finished_at;
    apr_time_t updated_at; /* moves with whatever of it changes, its progress too; back only when
                              the clock was set back and the job waits (mdl_job_set_back) */
    mdl_job_lane_t lane;
    const char *source_url; /* as mdl_source_seal */
    const char *expected_sha256;
    const char *validator; /* of the partial file, see worker/job_import.c; NULL for none */
    apr_int64_t lease_token;
    int interruptions; /* how often in a row the worker died after it had begun with this job, and
                          without progress */
    int shop_blocked;  /* as mdl_job_claim reads it */
} mdl_job_t;

/** How often an email is tried: after 1, 5, 15, 30 minutes, then hourly for 5 days. */
#define MDL_JOB_MAIL_ATTEMPTS 124

/** A copy of a job that lives in another pool. */
mdl_job_t *mdl_job_copy(const mdl_job_t *job, apr_pool_t *p);

/** What a line of the log calls a job: its id, and the request that caused it. */
const char *mdl_job_name(const mdl_job_t *job, apr_pool_t *p);

/** Queues a job, due now or later at due_at, which is noted (mdl_db_note_due): id, type, lane,
   asset_id, email_id, order_id, upload_id, shop_id, max_attempts, … are given. Status and
   created_at are set. */
apr_status_t mdl_job_insert(mdl_db_t *db, mdl_job_t *job, apr_pool_t *p);

/** Reads a job of any type and shop; APR_ENOENT when there is none. */
apr_status_t mdl_job_find(mdl_db_t *db, const char *id, mdl_job_t **job, apr_pool_t *p);

/** Reads a job that a shop may see; APR_ENOENT also for another shop's. */
apr_status_t mdl_job_find_of_shop(mdl_db_t *db, apr_int64_t shop_id, const char *id,
                                  mdl_job_t **job, apr_pool_t *p);

/** Effect that reads the newest jobs (mdl_job_t *), of one shop unless shop_id is 0.  For those of
    a status it looks at as many jobs as it takes, all of them at worst. */
typedef struct {
    apr_int64_t shop_id;
    const char *status; /* a name, or NULL */
    int limit;
    apr_array_header_t *jobs; /* out */
} mdl_job_list_t;
apr_status_t mdl_job_list(mdl_db_t *db, apr_pool_t *p, mdl_job_list_t *list);

/** Effect that counts the jobs of each status, of one shop unless shop_id is 0. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t jobs[MDL_JOB_CANCELLED + 1]; /* out: by mdl_job_status_t */
} mdl_job_count_t;
apr_status_t mdl_job_count(mdl_db_t *db, apr_pool_t *p, mdl_job_count_t *count);

/** Reads the number of the order that a job is about, also that of an email; NULL if there is none.
 */
apr_status_t mdl_job_order(mdl_db_t *db, const mdl_job_t *job, const char **storefront_order_id,
                           apr_pool_t *p);

/** Effect that reads which jobs have failed, the oldest first, up to limit after one. */
typedef struct {
    apr_int64_t shop_id; /* 0: of any shop */
    const char *type;    /* a name; NULL: of any type */
    apr_time_t since;    /* failed then or later; 0: whenever */
    const char *after;   /* a job's id; "" at first */
    int limit;
    apr_array_header_t *ids; /* out: const char * */
} mdl_job_failed_t;
apr_status_t mdl_job_failed(mdl_db_t *db, apr_pool_t *p, mdl_job_failed_t *failed);

/** Effect: makes emails due now that failed before and wait for their next attempt, up to limit;
   not those that wait for the shop's delay or its rate, nor those of a blocked shop. */
typedef struct {
    int limit;
    apr_int64_t flushed; /* out */
} mdl_job_flush_t;
apr_status_t mdl_job_flush(mdl_db_t *db, apr_pool_t *p, mdl_job_flush_t *flush);

/** Effect that finds out when the earliest job of each lane is due, by one statement.  Below from
    lies what jobs have left that are ended, and that PostgreSQL can't remove while somebody has an
    old snapshot: a look or claim must not wade through it each time. */
typedef struct {
    apr_time_t from[MDL_LANE_UNKNOWN];   /* by lane; 0: all jobs are looked at */
    apr_time_t until;                    /* jobs that are due later are not looked at */
    apr_time_t due_at[MDL_LANE_UNKNOWN]; /* out; 0 for none */
    apr_int64_t newest_shop;             /* out: the largest id of a shop */
} mdl_job_look_t;
apr_status_t mdl_job_look(mdl_db_t *db, apr_pool_t *p, mdl_job_look_t *look);

/** How a claim shares a lane's free slots between shops. */
typedef struct {
    const apr_array_header_t *running; /* of each job under way in the lane, its shop's id */
    apr_int64_t after;                 /* the shop whose turn was last */
    apr_int64_t from;                  /* shops with ids above it, */
    apr_int64_t to;                    /* up to this one, are looked for, too */
} mdl_job_share_t;

/** How many of a lane's slots a shop has that is alone; at least one. */
int mdl_job_slots_alone(int slots);

/** Effect: claims up to limit due jobs of a lane, then looks what is due beside them.  Without a
   share the oldest are claimed.  With one, limit is how many slots are free, and some of them stay
   free unless enough shops wait (job_claim_shared). */
typedef struct {
    mdl_job_lane_t lane;
    const char *owner;
    int limit;
    const mdl_job_share_t *share; /* or NULL */
    mdl_job_look_t *look;         /* jobs that are due before its from are not claimed */
    apr_array_header_t *jobs;     /* out, of mdl_job_t * */
} mdl_job_claim_t;
apr_status_t mdl_job_claim(mdl_db_t *db, apr_pool_t *p, mdl_job_claim_t *claim);

/* --- what a worker writes: each of these returns APR_ENOENT when the lease is lost --- */

/** Renews the lease and notes progress, validator and interruptions. */
apr_status_t mdl_job_renew(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

/*
 * What a worker does with a job at last.  *held has a row if the worker still held it
 * (mdl_rows_one); else nothing was changed.
 */

/** Gives a job back unfinished, to be claimed from job->due_at on in job->lane, with progress,
    validator and interruptions; the attempt doesn't count. */
apr_status_t mdl_job_release(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p);

/** Puts a job back until job->due_at after a failed attempt, with the reason in error_code and
    error_message. */
apr_status_t mdl_job_retry_later(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held,
                                 apr_pool_t *p);

/** Ends a job: status, error_code and error_message, progress as in job. */
apr_status_t mdl_job_finish(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p);

/** Effect: takes queued jobs of a blocked shop out of the lanes from which workers claim, or puts
    back those of a shop that is not blocked any more: up to limit after one, by id. */
typedef struct {
    apr_int64_t shop_id;
    int resume;
    int limit;
    const char *after; /* in and out: "" at first; NULL after the last */
} mdl_job_hold_t;
apr_status_t mdl_job_hold(mdl_db_t *db, apr_pool_t *p, mdl_job_hold_t *hold);

/** Effect that reads the beats (mdl_beat_t) of all jobs that workers have, or have to clean up
 * after. */
apr_status_t mdl_job_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats);

/** Effect: takes those jobs from their workers, unless they have renewed their leases since:
   running ones as mdl_job_inherit, cancelled ones for any worker to clean up after. */
apr_status_t mdl_job_expire(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *lost);

/** Effect, for when the clock was set back: what was queued at a time that has not come waits from
    now on as long as it was to wait.  It can be repeated. */
apr_status_t mdl_job_set_back(mdl_db_t *db, apr_pool_t *p);

/** Effect: makes the jobs that a dead worker held due at once; worker is its jobs' owner.  Their
   next claim goes on with the same attempt.  For those with which it had begun the death is an
   interruption, the first one if there was progress before. */
typedef struct {
    const char *worker;
    const mdl_begun_t *begun;
} mdl_job_inherit_t;
apr_status_t mdl_job_inherit(mdl_db_t *db, apr_pool_t *p, const mdl_job_inherit_t *inherit);

/** Turns a job that succeeded in this transaction into a failed one, with its error_code and
    error_message. */
apr_status_t mdl_job_fail(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

/** Reads an open job of an asset other than this one (NULL: any); *job is NULL for none. */
apr_status_t mdl_job_open_of_asset(mdl_db_t *db, apr_int64_t asset_id, const char *but,
                                   mdl_job_t **job, apr_pool_t *p);

/** Effect that reads a page of the jobs that a shop may see and that fit the filters.  It looks at
    1,000 jobs at most, and may have fewer entries than there are, or none, and a next place. */
typedef struct {
    mdl_list_page_t page; /* of mdl_job_t */
    const char *status;   /* a name, or NULL */
    const char *type;     /* a name, or NULL */
    apr_int64_t asset_id; /* or 0 */
} mdl_job_page_t;
apr_status_t mdl_job_page(mdl_db_t *db, apr_pool_t *p, mdl_job_page_t *list);

/** Cancels the open jobs of an asset. */
apr_status_t mdl_job_cancel_of_asset(mdl_db_t *db, apr_int64_t asset_id, apr_pool_t *p);

/** Reads cancelled jobs (mdl_job_t *) that may have left a file: those that this owner worked on,
   or nobody. */
apr_status_t mdl_job_to_clean(mdl_db_t *db, const char *owner, int limit, apr_array_header_t **jobs,
                              apr_pool_t *p);

/** Notes that nothing is left of a cancelled job.  APR_ENOENT when it has been queued again. */
apr_status_t mdl_job_cleaned(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p);

#endif
