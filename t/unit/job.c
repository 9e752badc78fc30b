/*
 * A job's life: its worker's writes, its retry, its end, its cancellation.
 */
#include "t/unit/jobs.h"

static void test_queue(apr_pool_t *p)
{
    apr_int64_t other = make_shop(db, "other.test", p);
    mdl_job_t *job = find(make_job(MDL_LANE_SMALL, 0, p), p);
    lookup_t lookup = {.id = job->id, .shop_id = shop};

    is_int(job->status, MDL_JOB_QUEUED, "a new job is queued");
    is_int(job->type, MDL_JOB_IMPORT, "it has its type");
    is_int(job->attempts, 0, "it has no attempts");
    is_int(job->bytes_total, -1, "its size is unknown");
    ok(job->started_at == 0 && job->finished_at == 0 && job->error_code == NULL,
       "it has not begun, ended or failed");
    is_int(mdl_db_read(db, find_it, &lookup, p), APR_SUCCESS, "its shop finds it");
    lookup.shop_id = other;
    is_int(mdl_db_read(db, find_it, &lookup, p), APR_ENOENT, "another shop does not find it");
    lookup = (lookup_t){.id = "job_none"};
    is_int(mdl_db_read(db, find_it, &lookup, p), APR_ENOENT,
           "a job that does not exist is not found");
    forget_jobs();
}

static void test_progress(apr_pool_t *p)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);
    mdl_job_t *job = claim_one("w", p);

    job->bytes_received = 10;
    job->bytes_total = APR_INT64_C(5000000000);
    job->validator = "\"etag\"";
    work(mdl_job_renew, job, p);
    job = find(id, p);
    is_int(job->bytes_received, 10, "renewing stores how much was received");
    is_int(job->bytes_total, APR_INT64_C(5000000000), "renewing stores the total size");
    is_str(job->validator, "\"etag\"", "renewing stores the validator");

    job->bytes_received = 20;
    job->lane = MDL_LANE_BULK;
    job->due_at = apr_time_now();
    is_int(end_work(mdl_job_release, job, p), APR_SUCCESS, "a job is released");
    job = find(id, p);
    is_int(job->status, MDL_JOB_QUEUED, "a released job is queued");
    is_int(job->attempts, 0, "its attempt does not count");
    is_int(job->bytes_received, 20, "its progress is stored");
    is_str(job->validator, "\"etag\"", "its validator stays");
    is_int(claim_as("w", MDL_LANE_SMALL, 9, p)->nelts, 0, "it has left its old lane");
    is_int(claim_as("w", MDL_LANE_BULK, 9, p)->nelts, 1, "it is in the new lane");
    is_int(end_work(mdl_job_release, job, p), APR_ENOENT,
           "a worker that released a job can't do so again");
    forget_jobs();
}

static void test_retry_later(apr_pool_t *p)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);
    mdl_job_t *job = claim_one("w", p);

    job->due_at = apr_time_now() + apr_time_from_sec(10);
    job->error_code = "source_unavailable";
    job->error_message = "It answered 503.";
    is_int(end_work(mdl_job_retry_later, job, p), APR_SUCCESS, "a failed attempt is postponed");
    job = find(id, p);
    is_int(job->status, MDL_JOB_QUEUED, "the job is queued");
    is_int(job->attempts, 1, "its attempt counts");
    is_str(job->error_message, "It answered 503.", "its error is stored");
    ok(claim_one("w", p) == NULL, "it is not claimed before it is due");
    put_clock_forward(apr_time_from_sec(11));
    job = claim_one("w", p);
    ok(job != NULL && job->attempts == 2, "it is claimed when it is due");
    forget_jobs();
}

static apr_status_t set_back_effect(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    (void)arg;
    return mdl_job_set_back(on, p);
}

static void test_set_back(apr_pool_t *p)
{
    mdl_job_t *job;

    make_job(MDL_LANE_SMALL, 0, p);
    put_clock_forward(-apr_time_from_sec(3600));
    ok(claim_one("w", p) == NULL, "after the clock was set back a job is not due");
    mdl_db_write(db, set_back_effect, NULL, p);
    job = claim_one("w", p);
    ok(job != NULL, "what was due at once is due once that is known");
    put_clock_forward(apr_time_from_sec(3600));
    job->due_at = apr_time_now() + apr_time_from_sec(10);
    end_work(mdl_job_retry_later, job, p);
    put_clock_forward(-apr_time_from_sec(3600));
    mdl_db_write(db, set_back_effect, NULL, p);
    mdl_db_write(db, set_back_effect, NULL, p);
    put_clock_forward(apr_time_from_sec(9));
    mdl_db_write(db, set_back_effect, NULL, p);
    ok(claim_one("w", p) == NULL, "what was to wait does wait");
    put_clock_forward(apr_time_from_sec(2));
    ok((job = claim_one("w", p)) != NULL, "as long as it was to");
    put_clock_forward(apr_time_from_sec(3600));
    job->due_at = apr_time_now() + apr_time_from_sec(10);
    end_work(mdl_job_retry_later, job, p);
    mdl_db_write(db, set_back_effect, NULL, p);
    ok(claim_one("w", p) == NULL, "nothing changes while the clock is right");
    forget_jobs();

    make_job(MDL_LANE_SMALL, 0, p);
    job = claim_one("w", p);
    job->due_at = apr_time_now() + apr_time_from_sec(3600);
    end_work(mdl_job_retry_later, job, p);
    put_clock_forward(-apr_time_from_sec(600));
    mdl_db_write(db, set_back_effect, NULL, p);
    mdl_db_write(db, set_back_effect, NULL, p);
    put_clock_forward(apr_time_from_sec(3590));
    mdl_db_write(db, set_back_effect, NULL, p);
    ok(claim_one("w", p) == NULL, "what was to wait for longer than the clock was set back does");
    put_clock_forward(apr_time_from_sec(20));
    ok(claim_one("w", p) != NULL, "as long as it was to, too");
    forget_jobs();
}

static void test_finish(apr_pool_t *p)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);
    mdl_job_control_t retry = {.id = id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    mdl_job_t *job = claim_one("w", p);

    is_int(mdl_db_write(db, mdl_job_retry_effect, &retry, p), MDL_EPROBLEM,
           "a running job can't be retried");
    is_int(retry.problem->status, 409, "the status is 409");
    job->status = MDL_JOB_FAILED;
    job->error_code = "source_not_found";
    job->error_message = "It answered 404.";
    job->bytes_received = job->bytes_total = 5;
    is_int(end_work(mdl_job_finish, job, p), APR_SUCCESS, "a job is finished");
    is_int(end_work(mdl_job_finish, job, p), APR_ENOENT, "it can't be finished twice");
    job = find(id, p);
    is_int(job->status, MDL_JOB_FAILED, "its status is stored");
    is_str(job->error_code, "source_not_found", "its error code is stored");
    ok(job->finished_at > 0 && job->due_at == 0, "its end is stored, and it is no longer due");
    put_clock_forward(LEASE * 2);
    ok(claim_one("w", p) == NULL, "it is never claimed again");

    is_int(mdl_db_write(db, mdl_job_retry_effect, &retry, p), APR_SUCCESS,
           "an operator can retry a failed job");
    is_int(retry.job->status, MDL_JOB_QUEUED, "a retried job is queued");
    ok(retry.job->attempts == 0 && retry.job->error_code == NULL && retry.job->finished_at == 0,
       "it has no attempts, error or end");
    job = claim_one("w", p);
    ok(job != NULL && strcmp(job->id, id) == 0, "it is claimed");
    retry.id = "job_none";
    is_int(mdl_db_write(db, mdl_job_retry_effect, &retry, p), MDL_EPROBLEM,
           "an unknown job can't be retried");
    is_int(retry.problem->status, 404, "the status is 404");
    forget_jobs();
}

typedef struct {
    const char *owner;
    apr_array_header_t *jobs;
} cleaning_t;

static apr_status_t find_to_clean(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    cleaning_t *cleaning = arg;

    return mdl_job_to_clean(on, cleaning->owner, 10, &cleaning->jobs, p);
}

static int to_clean(const char *owner, apr_pool_t *p)
{
    cleaning_t cleaning = {.owner = owner};

    mdl_db_read(db, find_to_clean, &cleaning, p);
    return cleaning.jobs->nelts;
}

static const char *cancelled_job(apr_pool_t *p, int claimed)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);
    mdl_job_control_t cancel = {
        .id = id, .shop_id = shop, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    if (claimed) {
        claim_one("node-1", p);
    }
    is_int(mdl_db_write(db, mdl_job_cancel_effect, &cancel, p), APR_SUCCESS, "a job is cancelled");
    is_int(cancel.job->status, MDL_JOB_CANCELLED, "its status is cancelled");
    return id;
}

static void test_cancel(apr_pool_t *p)
{
    mdl_beats_t *beats = mdl_beats_watch(LEASE, p);
    const char *id = cancelled_job(p, 1);
    mdl_job_t *job = find(id, p);
    mdl_job_control_t retry = {.id = id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    job->status = MDL_JOB_SUCCEEDED;
    is_int(work(mdl_job_renew, job, p), APR_ENOENT, "its worker can't renew the lease");
    is_int(end_work(mdl_job_release, job, p), APR_ENOENT, "its worker can't release it");
    is_int(end_work(mdl_job_finish, job, p), APR_ENOENT, "its worker can't finish it");
    take_over_after(LEASE / 2, beats, p);
    put_clock_forward(LEASE * 2);
    ok(claim_one("node-1", p) == NULL, "a cancelled job is not claimed");
    is_int(to_clean("node-1", p), 1, "its worker has to clean up after it");
    is_int(to_clean("node-2", p), 0, "no other worker has to clean up after it");
    is_int(take_over_after(LEASE / 2, beats, p), 0, "nor has it when that takes a while");
    is_int(take_over_after(LEASE * 2 / 3, beats, p), 1,
           "the job is taken from its worker after a lease");
    is_int(to_clean("node-2", p), 1,
           "any worker has to clean up when its owner has not done so within a lease");
    is_int(work(mdl_job_cleaned, job, p), APR_SUCCESS, "the clean-up is recorded");
    is_int(to_clean("node-1", p) + to_clean("node-2", p), 0,
           "after that no worker has to clean up");
    is_int(work(mdl_job_cleaned, job, p), APR_ENOENT, "the clean-up can't be recorded twice");

    is_int(mdl_db_write(db, mdl_job_retry_effect, &retry, p), APR_SUCCESS,
           "a cancelled job can be retried");
    job = claim_one("node-2", p);
    ok(job != NULL && strcmp(job->id, id) == 0, "it is claimed like any other job");
    forget_jobs();

    job = find(cancelled_job(p, 0), p);
    is_int(to_clean("node-2", p), 1, "any worker has to clean up after a job without an owner");
    retry.id = job->id;
    mdl_db_write(db, mdl_job_retry_effect, &retry, p);
    is_int(to_clean("node-2", p), 0, "no worker has to clean up after a job that is retried");
    is_int(work(mdl_job_cleaned, job, p), APR_ENOENT,
           "a row read before the retry does not record a clean-up");
    forget_jobs();
}

static void test_list(apr_pool_t *p)
{
    mdl_job_list_t all = {.limit = 2};
    mdl_job_list_t own = {.shop_id = shop, .limit = 10};
    mdl_job_list_t others = {.shop_id = shop + 1000, .limit = 10};
    const char *last = NULL;

    for (int i = 0; i < 3; i++) {
        put_clock_forward(1000); /* ids sort by milliseconds */
        last = make_job(MDL_LANE_SMALL, 0, p);
    }
    mdl_db_read(db, mdl_job_list_effect, &all, p);
    mdl_db_read(db, mdl_job_list_effect, &own, p);
    mdl_db_read(db, mdl_job_list_effect, &others, p);
    is_int(all.jobs->nelts, 2, "the list has no more jobs than the limit");
    is_str(APR_ARRAY_IDX(all.jobs, 0, mdl_job_t *)->id, last, "the newest job is first");
    is_int(own.jobs->nelts, 3, "a shop's list has its jobs");
    is_int(others.jobs->nelts, 0, "a shop's list does not have the jobs of other shops");
    forget_jobs();
}

static void test_copy(apr_pool_t *p)
{
    apr_pool_t *short_lived;
    mdl_job_t *copy;
    const char *id = apr_pstrdup(p, make_job(MDL_LANE_SMALL, 0, p));

    apr_pool_create(&short_lived, p);
    copy = mdl_job_copy(find(id, short_lived), p);
    apr_pool_destroy(short_lived);
    is_str(copy->id, id, "a copy outlives the pool of the original");
    is_str(copy->source_url, "https://files.test/x", "its other texts are copied, too");
    is_str(copy->error_code, NULL, "NULL stays NULL");
    forget_jobs();
}

/* A job type of a newer release on the same database. */
static void test_unknown_type(apr_pool_t *p)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);

    mdl_db_command(db, "UPDATE job SET type = 'of_tomorrow'");
    is_int(find(id, p)->type, MDL_JOB_UNKNOWN, "a job of an unknown type can be read");
    is_int(claim_as("w", MDL_LANE_SMALL, 1, p)->nelts, 1,
           "it can be claimed, so that it can be released");
    forget_jobs();
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "jobs.test", p);
    test_queue(p);
    test_progress(p);
    test_retry_later(p);
    test_set_back(p);
    test_finish(p);
    test_cancel(p);
    test_list(p);
    test_copy(p);
    test_unknown_type(p);
}

int main(void)
{
    stop_clocks();
    return test_jobs(tests);
}
