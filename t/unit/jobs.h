/*
 * Shared by the tests of jobs: a shop's imports, the claims of workers, and what a worker writes.
 */
#ifndef MDL_T_UNIT_JOBS_H
#define MDL_T_UNIT_JOBS_H

#include "t/unit/fixtures.h"

#include "core/catalog/import.h"
#include "core/order/job_control.h"
#include "t/unit/effects.h"

#define LEASE apr_time_from_sec(60)

static mdl_db_t *db;
static apr_int64_t shop;

typedef struct {
    mdl_job_lane_t lane;
    apr_interval_time_t due_in;
    mdl_import_t import;
} new_job_t;

static inline apr_status_t queue(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    new_job_t *new = arg;
    apr_status_t rv = mdl_import_queue(on, p, &new->import);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_command(
        on, apr_psprintf(
                p, "UPDATE job SET lane = '%s', due_at = %" APR_INT64_T_FMT " WHERE id = '%s'",
                mdl_job_lane_names[new->lane], apr_time_now() + new->due_in, new->import.job.id));
}

/** Makes a queued import job in a lane, due in some microseconds; returns its id. */
static inline const char *make_job(mdl_job_lane_t lane, apr_interval_time_t due_in, apr_pool_t *p)
{
    new_job_t new = {
        .lane = lane,
        .due_in = due_in,
        .import = {.shop_id = shop,
                   .max_attempts = 5,
                   .asset = {.source_url = "https://files.test/x", .filename = "x", .title = "x"}}};

    if (mdl_db_write(db, queue, &new, p) != APR_SUCCESS) {
        printf("Bail out! job: %s\n", mdl_db_error(db));
        exit(2);
    }
    return new.import.job.id;
}

static inline void forget_jobs(void)
{
    mdl_db_command(db, "DELETE FROM job");
}

static inline apr_array_header_t *claim_as(const char *owner, mdl_job_lane_t lane, int limit,
                                           apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_claim_t claim = {.lane = lane, .owner = owner, .limit = limit, .look = &look};

    return mdl_db_write(db, mdl_job_claim_effect, &claim, p) == APR_SUCCESS
               ? claim.jobs
               : apr_array_make(p, 1, sizeof(mdl_job_t *));
}

/** Claims a small job; NULL if none is due. */
static inline mdl_job_t *claim_one(const char *owner, apr_pool_t *p)
{
    apr_array_header_t *jobs = claim_as(owner, MDL_LANE_SMALL, 1, p);

    return jobs->nelts == 1 ? APR_ARRAY_IDX(jobs, 0, mdl_job_t *) : NULL;
}

static inline void put_clock_forward(apr_interval_time_t by)
{
    atomic_fetch_add(&clock_ahead, by);
}

typedef apr_status_t write_fn(mdl_db_t *on, const mdl_job_t *job, apr_pool_t *p);

typedef struct {
    write_fn *write;
    const mdl_job_t *job;
} writing_t;

static inline apr_status_t write_it(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const writing_t *writing = arg;

    return writing->write(on, writing->job, p);
}

/** Runs a function by which a worker writes, as an effect. */
static inline apr_status_t work(write_fn *write, const mdl_job_t *job, apr_pool_t *p)
{
    writing_t writing = {write, job};

    return mdl_db_write(db, write_it, &writing, p);
}

typedef apr_status_t end_fn(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p);

typedef struct {
    end_fn *end;
    const mdl_job_t *job;
} ending_t;

static inline apr_status_t end_it(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const ending_t *ending = arg;
    mdl_rows_t *held;
    apr_status_t rv = ending->end(on, ending->job, &held, p);

    return rv == APR_SUCCESS ? mdl_rows_one(held) : rv;
}

/* Ends a job; APR_ENOENT if the worker no longer held it. */
static inline apr_status_t end_work(end_fn *end, const mdl_job_t *job, apr_pool_t *p)
{
    ending_t ending = {end, job};

    return mdl_db_write(db, end_it, &ending, p);
}

typedef struct {
    const char *id;
    apr_int64_t shop_id; /* 0: any */
    mdl_job_t *job;
} lookup_t;

static inline apr_status_t find_it(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    lookup_t *lookup = arg;

    return lookup->shop_id != 0
               ? mdl_job_find_of_shop(on, lookup->shop_id, lookup->id, &lookup->job, p)
               : mdl_job_find(on, lookup->id, &lookup->job, p);
}

static inline mdl_job_t *find(const char *id, apr_pool_t *p)
{
    lookup_t lookup = {.id = id};

    mdl_db_read(db, find_it, &lookup, p);
    return lookup.job;
}

/** Lets part of a lease pass; then another worker takes over lost jobs.  Returns their number. */
static inline int take_over_after(apr_interval_time_t wait, mdl_beats_t *beats, apr_pool_t *p)
{
    apr_array_header_t *leases, *lost;

    atomic_fetch_add(&monotonic_ahead, wait);
    mdl_db_read(db, mdl_job_beats_effect, &leases, p);
    lost = mdl_beats_look(beats, leases, p);
    mdl_db_write(db, mdl_job_expire_effect, lost, p);
    return lost->nelts;
}

/** Runs the tests on each database; main returns the result. */
static inline int test_jobs(database_tests_fn *tests)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}

#endif
