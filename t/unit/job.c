#include "t/unit/fixtures.h"

#include "base/ulid.h"
#include "core/catalog/import.h"
#include "core/job_control.h"
#include "t/unit/effects.h"

#define LEASE apr_time_from_sec(60)

static mdl_db_t *db;
static apr_int64_t shop;

/* A queued import job in a lane, due in some microseconds. */

typedef struct {
    mdl_job_lane_t lane;
    apr_interval_time_t due_in;
    mdl_import_t import;
} new_job_t;

static apr_status_t queue(mdl_db_t *on, apr_pool_t *p, void *arg)
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

static const char *make_job(mdl_job_lane_t lane, apr_interval_time_t due_in, apr_pool_t *p)
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

static void forget_jobs(void)
{
    mdl_db_command(db, "DELETE FROM job");
}

static apr_array_header_t *claim_as(const char *owner, mdl_job_lane_t lane, int limit,
                                    apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_claim_t claim = {.lane = lane, .owner = owner, .limit = limit, .look = &look};

    return mdl_db_write(db, mdl_job_claim_effect, &claim, p) == APR_SUCCESS
               ? claim.jobs
               : apr_array_make(p, 1, sizeof(mdl_job_t *));
}

static mdl_job_t *claim_one(const char *owner, apr_pool_t *p)
{
    apr_array_header_t *jobs = claim_as(owner, MDL_LANE_SMALL, 1, p);

    return jobs->nelts == 1 ? APR_ARRAY_IDX(jobs, 0, mdl_job_t *) : NULL;
}

static int has(const apr_array_header_t *jobs, const char *id)
{
    for (int i = 0; i < jobs->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(jobs, i, mdl_job_t *)->id, id) == 0) {
            return 1;
        }
    }
    return 0;
}

static void put_clock_forward(apr_interval_time_t by)
{
    atomic_fetch_add(&clock_ahead, by);
}

/* --- what a worker writes, as an effect --- */

typedef apr_status_t write_fn(mdl_db_t *on, const mdl_job_t *job, apr_pool_t *p);

typedef struct {
    write_fn *write;
    const mdl_job_t *job;
} writing_t;

static apr_status_t write_it(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const writing_t *writing = arg;

    return writing->write(on, writing->job, p);
}

static apr_status_t work(write_fn *write, const mdl_job_t *job, apr_pool_t *p)
{
    writing_t writing = {write, job};

    return mdl_db_write(db, write_it, &writing, p);
}

typedef struct {
    const char *id;
    apr_int64_t shop_id; /* 0: any */
    mdl_job_t *job;
} finding_t;

static apr_status_t find_it(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    finding_t *finding = arg;

    return finding->shop_id != 0
               ? mdl_job_find_of_shop(on, finding->shop_id, finding->id, &finding->job, p)
               : mdl_job_find(on, finding->id, &finding->job, p);
}

static mdl_job_t *find(const char *id, apr_pool_t *p)
{
    finding_t finding = {.id = id};

    mdl_db_read(db, find_it, &finding, p);
    return finding.job;
}

static void test_queue(apr_pool_t *p)
{
    apr_int64_t other = make_shop(db, "other.test", p);
    mdl_job_t *job = find(make_job(MDL_LANE_SMALL, 0, p), p);
    finding_t finding = {.id = job->id, .shop_id = shop};

    is_int(job->status, MDL_JOB_QUEUED, "a new job is queued");
    is_int(job->type, MDL_JOB_IMPORT, "it has its type");
    is_int(job->attempts, 0, "it has no attempts");
    is_int(job->bytes_total, -1, "its size is unknown");
    ok(job->started_at == 0 && job->finished_at == 0 && job->error_code == NULL,
       "it has not begun, ended or failed");
    is_int(mdl_db_read(db, find_it, &finding, p), APR_SUCCESS, "its shop finds it");
    finding.shop_id = other;
    is_int(mdl_db_read(db, find_it, &finding, p), APR_ENOENT, "another shop does not find it");
    finding = (finding_t){.id = "job_none"};
    is_int(mdl_db_read(db, find_it, &finding, p), APR_ENOENT,
           "a job that does not exist is not found");
    forget_jobs();
}

static void test_claim(apr_pool_t *p)
{
    const char *third = make_job(MDL_LANE_SMALL, -apr_time_from_sec(10), p);
    const char *first = make_job(MDL_LANE_SMALL, -apr_time_from_sec(30), p);
    const char *second = make_job(MDL_LANE_SMALL, -apr_time_from_sec(20), p);
    const char *later = make_job(MDL_LANE_SMALL, apr_time_from_sec(30), p);
    apr_array_header_t *jobs;
    mdl_job_t *job;

    make_job(MDL_LANE_BULK, -apr_time_from_sec(90), p);
    jobs = claim_as("w", MDL_LANE_SMALL, 2, p);
    is_int(jobs->nelts, 2, "no more jobs than the limit are claimed");
    ok(has(jobs, first) && has(jobs, second),
       "the jobs that have been due for longest are claimed first");
    job = APR_ARRAY_IDX(jobs, 0, mdl_job_t *);
    is_int(job->status, MDL_JOB_RUNNING, "a claimed job is running");
    is_int(job->attempts, 1, "it is in its first attempt");
    ok(job->lease_token > 0 && job->started_at > 0, "it has a token and the time of its start");
    jobs = claim_as("w", MDL_LANE_SMALL, 10, p);
    ok(jobs->nelts == 1 && has(jobs, third), "the next job is claimed, and no job of another lane");
    is_int(claim_as("w", MDL_LANE_SMALL, 10, p)->nelts, 0, "a claimed job is not claimed again");
    put_clock_forward(apr_time_from_sec(31));
    jobs = claim_as("w", MDL_LANE_SMALL, 10, p);
    ok(jobs->nelts == 1 && has(jobs, later), "a job is claimed when it is due and not before");
    forget_jobs();
}

/* Makes due jobs of a shop in the mail lane. */
static void make_due(apr_int64_t of, int jobs, apr_pool_t *p)
{
    static int number;

    for (int i = 0; i < jobs; i++) {
        number++;
        mdl_db_command(
            db, apr_psprintf(p,
                             "INSERT INTO job (id, shop_id, type, lane, status, attempts, "
                             "max_attempts, due_at, lease_token, bytes_received, created_at) "
                             "VALUES ('due_%d', %" APR_INT64_T_FMT
                             ", 'email', 'mail', 'queued', 0, 9, %d, 0, 0, 1)",
                             number, of, number));
    }
}

/* Claims for free slots beside so many running jobs of two shops, and counts what they get. */
static void claim_shared(int limit, const mdl_job_share_t *given, const apr_int64_t shops[2],
                         const int running[2], int got[2], apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 16, sizeof(apr_int64_t));
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_share_t share = *given;
    mdl_job_claim_t claim = {
        .lane = MDL_LANE_MAIL, .owner = "w", .limit = limit, .share = &share, .look = &look};

    share.running = ids;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < running[i]; j++) {
            APR_ARRAY_PUSH(ids, apr_int64_t) = shops[i];
        }
        got[i] = -1;
    }
    if (mdl_db_write(db, mdl_job_claim_effect, &claim, p) != APR_SUCCESS) {
        return;
    }
    got[0] = got[1] = 0;
    for (int i = 0; i < claim.jobs->nelts; i++) {
        got[APR_ARRAY_IDX(claim.jobs, i, mdl_job_t *)->shop_id == shops[1]]++;
    }
}

static void test_share(apr_pool_t *p)
{
    static const struct {
        int limit, running[2], due[2], got[2];
        const char *name;
    } cases[] = {
        {20, {0, 0}, {40, 0}, {16, 0}, "a shop alone gets four slots in five"},
        {4, {16, 0}, {40, 0}, {0, 0}, "a shop that has four in five gets no more"},
        {4, {16, 0}, {40, 1}, {0, 1}, "another shop's first job gets a slot beside it"},
        {4, {16, 0}, {40, 9}, {0, 3}, "another shop's jobs leave a slot for a third"},
        {1, {16, 3}, {40, 9}, {0, 0}, "which none of the two gets"},
        {20, {0, 0}, {40, 40}, {9, 8}, "two backlogs share the slots"},
        {10, {8, 0}, {40, 40}, {0, 8}, "the shop with fewer running jobs comes first"},
        {1, {0, 0}, {3, 0}, {1, 0}, "a shop gets the only slot"},
        {1, {0, 0}, {3, 3}, {1, 0}, "two shops and a slot: the first in the circle"},
    };
    const apr_int64_t shops[] = {shop, make_shop(db, "second.test", p)};
    const mdl_job_share_t all = {.to = shops[1]};
    const mdl_job_share_t behind_first = {.after = shops[0], .to = shops[1]};
    const mdl_job_share_t oldest = {.from = shops[1], .to = shops[1]};
    int got[2];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_due(shops[0], cases[i].due[0], p);
        make_due(shops[1], cases[i].due[1], p);
        claim_shared(cases[i].limit, &all, shops, cases[i].running, got, p);
        ok(got[0] == cases[i].got[0] && got[1] == cases[i].got[1],
           apr_psprintf(p, "%s: %d, %d", cases[i].name, got[0], got[1]));
        forget_jobs();
    }
    make_due(shops[0], 3, p);
    make_due(shops[1], 3, p);
    claim_shared(1, &behind_first, shops, (const int[2]){0, 0}, got, p);
    ok(got[0] == 0 && got[1] == 1, "the turn after a shop is the next shop's");
    claim_shared(9, &oldest, shops, (const int[2]){0, 0}, got, p);
    ok(got[0] == 3 && got[1] == 2, "the shops of the oldest jobs need not be looked for");
    is_int(mdl_job_slots_alone(20), 16, "alone a shop has 16 slots of 20");
    is_int(mdl_job_slots_alone(1), 1, "alone a shop has the only slot");
    forget_jobs();
}

static void test_look(apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    apr_time_t now = apr_time_now();
    mdl_job_claim_t claim = {.lane = MDL_LANE_SMALL, .owner = "w", .limit = 9, .look = &look};
    apr_time_t bulk, small;

    mdl_db_read(db, mdl_job_look_effect, &look, p);
    for (int i = 0; i < MDL_LANE_UNKNOWN; i++) {
        is_int(look.due_at[i], 0, "an empty lane has no due time");
    }
    make_job(MDL_LANE_BULK, apr_time_from_sec(9), p);
    bulk = find(make_job(MDL_LANE_BULK, apr_time_from_sec(5), p), p)->due_at;
    small = find(make_job(MDL_LANE_SMALL, 0, p), p)->due_at;
    make_job(MDL_LANE_CLEANUP, 0, p);
    mdl_db_read(db, mdl_job_look_effect, &look, p);
    is_int(look.due_at[MDL_LANE_BULK], bulk, "a lane's due time is that of its earliest job");
    is_int(look.due_at[MDL_LANE_SMALL], small, "each lane has its own due time");
    ok(look.due_at[MDL_LANE_CLEANUP] != 0 && look.due_at[MDL_LANE_MAIL] == 0,
       "only a lane with jobs has a due time");
    look.until = now + apr_time_from_sec(1);
    mdl_db_read(db, mdl_job_look_effect, &look, p);
    is_int(look.due_at[MDL_LANE_BULK], 0, "jobs due after the upper bound are not counted");
    look.from[MDL_LANE_SMALL] = small + 1;
    mdl_db_write(db, mdl_job_claim_effect, &claim, p);
    ok(claim.jobs->nelts == 0 && look.due_at[MDL_LANE_SMALL] == 0,
       "jobs due before a lane's lower bound are neither counted nor claimed");
    look.from[MDL_LANE_SMALL] = small;
    look.until = APR_INT64_MAX;
    mdl_db_write(db, mdl_job_claim_effect, &claim, p);
    ok(claim.jobs->nelts == 1 && look.due_at[MDL_LANE_BULK] == bulk,
       "a claim also returns the due times of the other lanes");
    forget_jobs();
}

/* Some of the time of a lease goes by; then another worker takes over what is lost.  Returns how
   many jobs that were. */
static int take_over_after(apr_interval_time_t wait, mdl_beats_t *beats, apr_pool_t *p)
{
    apr_array_header_t *leases, *lost;

    atomic_fetch_add(&monotonic_ahead, wait);
    mdl_db_read(db, mdl_job_beats_effect, &leases, p);
    lost = mdl_beats_look(beats, leases, p);
    mdl_db_write(db, mdl_job_expire_effect, lost, p);
    return lost->nelts;
}

/* The old worker of a job that another has taken over can't write. */
static void test_fencing(apr_pool_t *p)
{
    mdl_beats_t *beats = mdl_beats_watch(LEASE, p);
    const char *id = make_job(MDL_LANE_SMALL, 0, p);
    mdl_job_t *old = claim_one("old", p);
    mdl_job_t *new, *now;

    ok(claim_one("new", p) == NULL, "a job is not claimed by another worker during its lease");
    put_clock_forward(apr_time_from_sec(3600));
    is_int(take_over_after(0, beats, p), 0, "nor is it lost when the clock is set forward");
    ok(claim_one("new", p) == NULL, "and claimed then");
    is_int(take_over_after(LEASE * 2 / 3, beats, p), 0, "it is not lost during its lease");
    put_clock_forward(-apr_time_from_sec(7200));
    is_int(work(mdl_job_renew, old, p), APR_SUCCESS,
           "the worker renews the lease, also when the clock was set back");
    is_int(take_over_after(LEASE * 2 / 3, beats, p), 0, "it is not lost during the renewed lease");
    is_int(take_over_after(LEASE * 2 / 3, beats, p), 0, "nor a while later");
    is_int(take_over_after(LEASE * 2 / 3, beats, p), 1, "it is lost when that has expired");
    is_int(work(mdl_job_renew, old, p), APR_SUCCESS,
           "an expired lease can be renewed before another worker claims the job");
    put_clock_forward(apr_time_from_sec(3600));
    new = claim_one("new", p);
    ok(new != NULL &&strcmp(new->id, id) == 0,
       "another worker claims the job when the lease has expired");
    is_int(new->attempts, 2, "that is another attempt");
    is_int(new->started_at, old->started_at, "the time of the job's start stays");
    ok(new->lease_token > old->lease_token, "the token is higher");

    old->bytes_received = 999;
    old->bytes_total = 1000;
    old->validator = "stale";
    old->status = MDL_JOB_SUCCEEDED;
    old->error_code = "stale";
    old->due_at = 1;
    is_int(work(mdl_job_renew, old, p), APR_ENOENT, "the old worker can't renew the lease");
    is_int(work(mdl_job_release, old, p), APR_ENOENT, "the old worker can't release the job");
    is_int(work(mdl_job_retry_later, old, p), APR_ENOENT, "the old worker can't postpone the job");
    is_int(work(mdl_job_finish, old, p), APR_ENOENT, "the old worker can't finish the job");
    now = find(id, p);
    ok(now->status == MDL_JOB_RUNNING && now->bytes_received == 0 && now->bytes_total == -1 &&
           now->validator == NULL && now->error_code == NULL && now->attempts == 2 &&
           now->due_at == new->due_at && now->lease_token == new->lease_token,
       "the old worker has changed nothing");
    is_int(work(mdl_job_renew, new, p), APR_SUCCESS, "the new worker can renew the lease");
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
    is_int(work(mdl_job_release, job, p), APR_SUCCESS, "a job is released");
    job = find(id, p);
    is_int(job->status, MDL_JOB_QUEUED, "a released job is queued");
    is_int(job->attempts, 0, "its attempt does not count");
    is_int(job->bytes_received, 20, "its progress is stored");
    is_str(job->validator, "\"etag\"", "its validator stays");
    is_int(claim_as("w", MDL_LANE_SMALL, 9, p)->nelts, 0, "it has left its old lane");
    is_int(claim_as("w", MDL_LANE_BULK, 9, p)->nelts, 1, "it is in the new lane");
    is_int(work(mdl_job_release, job, p), APR_ENOENT,
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
    is_int(work(mdl_job_retry_later, job, p), APR_SUCCESS, "a failed attempt is postponed");
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
    put_clock_forward(apr_time_from_sec(1)); /* its due_at may be taken a moment after updated_at */
    job = claim_one("w", p);
    ok(job != NULL, "what was due at once is due once that is known");
    put_clock_forward(apr_time_from_sec(3600));
    job->due_at = apr_time_now() + apr_time_from_sec(10);
    work(mdl_job_retry_later, job, p);
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
    work(mdl_job_retry_later, job, p);
    mdl_db_write(db, set_back_effect, NULL, p);
    ok(claim_one("w", p) == NULL, "nothing changes while the clock is right");
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
    is_int(work(mdl_job_finish, job, p), APR_SUCCESS, "a job is finished");
    is_int(work(mdl_job_finish, job, p), APR_ENOENT, "it can't be finished twice");
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

static void test_inherit(apr_pool_t *p)
{
    const char *mine = make_job(MDL_LANE_SMALL, -apr_time_from_sec(20), p);
    mdl_job_t *job = claim_one("node-1", p);
    mdl_job_t *again;

    make_job(MDL_LANE_SMALL, -apr_time_from_sec(10), p);
    claim_one("node-2", p);
    mdl_db_write(db, mdl_job_inherit_effect, (void *)"node-1", p);
    again = claim_one("node-1", p);
    ok(again != NULL && strcmp(again->id, mine) == 0,
       "the jobs of a worker that died are due at once for its successor");
    is_int(again->attempts, 1, "which goes on with the same attempt");
    is_int(again->interruptions, 1, "and knows that it was interrupted");
    ok(claim_one("node-1", p) == NULL, "the jobs of other workers are not");
    is_int(work(mdl_job_renew, job, p), APR_ENOENT, "a worker that is alive after all can't write");

    mdl_db_write(db, mdl_job_inherit_effect, (void *)"node-1", p);
    again = claim_one("node-1", p);
    is_int(again->interruptions, 2, "the next interruption in a row is counted, too");
    again->due_at = 1;
    work(mdl_job_retry_later, again, p);
    again = claim_one("node-1", p);
    ok(again->attempts == 2 && again->interruptions == 0,
       "an attempt that its worker ended puts an end to the row");
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
    is_int(work(mdl_job_release, job, p), APR_ENOENT, "its worker can't release it");
    is_int(work(mdl_job_finish, job, p), APR_ENOENT, "its worker can't finish it");
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
        usleep(1100); /* ids sort by the millisecond */
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

/* Processes that claim at the same time; each writes a byte for each job that it got. */

#define WORKERS 4
#define JOBS    120

static void claim_all(const database_t *database, int to, apr_pool_t *p)
{
    apr_array_header_t *jobs;
    int good = 1;

    db = database_open(database, p);
    if (database->dialect == MDL_PGSQL) {
        /* Forces the plan in which PostgreSQL may run a subquery once for each row. */
        mdl_db_command(db, "SET enable_hashjoin = off; SET enable_mergejoin = off;"
                           "SET enable_hashagg = off; SET enable_sort = off;"
                           "SET enable_material = off");
    }
    do {
        jobs = claim_as("w", MDL_LANE_SMALL, 7, p);
        good &= jobs->nelts <= 7;
        for (int i = 0; i < jobs->nelts; i++) {
            char number = (char)strtol(APR_ARRAY_IDX(jobs, i, mdl_job_t *)->id + 4, NULL, 10);

            good &= write(to, &number, 1) == 1;
        }
    } while (jobs->nelts > 0);
    child_end(good);
}

static apr_status_t insert_many(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < JOBS && rv == APR_SUCCESS; i++) {
        mdl_job_t job = {.id = apr_psprintf(p, "job_%d", i),
                         .type = MDL_JOB_IMPORT,
                         .lane = MDL_LANE_SMALL,
                         .shop_id = *(apr_int64_t *)arg,
                         .max_attempts = 1};

        rv = mdl_job_insert(on, &job, p);
    }
    return rv;
}

static void test_at_once(const database_t *database, apr_pool_t *p)
{
    int claimed[JOBS] = {0}, results[2], good = 1, once = 0;
    pid_t children[WORKERS];
    char number;

    mdl_db_write(db, insert_many, &shop, p);
    mdl_db_command(db, "ANALYZE job");
    if (pipe(results) != 0) {
        exit(2);
    }
    for (int i = 0; i < WORKERS; i++) {
        if ((children[i] = child_begin()) == 0) {
            claim_all(database, results[1], p);
        }
    }
    close(results[1]);
    while (read(results[0], &number, 1) == 1) {
        claimed[(int)number]++;
    }
    close(results[0]);
    for (int i = 0; i < WORKERS; i++) {
        good &= child_good(children[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        once += claimed[i] == 1;
    }
    ok(good, "four processes that claim at once get no more jobs than their limit");
    is_int(once, JOBS, "each job is claimed by exactly one of them");
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

/* A job type that only a newer release, which uses the same database, knows. */
static void test_unknown_type(const database_t *database, apr_pool_t *p)
{
    const char *id = make_job(MDL_LANE_SMALL, 0, p);

    mdl_db_command(db, database->dialect == MDL_SQLITE3
                           ? "PRAGMA ignore_check_constraints = ON"
                           : "ALTER TABLE job DROP CONSTRAINT job_type_check");
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
    test_claim(p);
    test_share(p);
    test_look(p);
    test_fencing(p);
    test_progress(p);
    test_retry_later(p);
    test_set_back(p);
    test_finish(p);
    test_inherit(p);
    test_cancel(p);
    test_list(p);
    test_copy(p);
    test_at_once(database, p);
    test_unknown_type(database, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
