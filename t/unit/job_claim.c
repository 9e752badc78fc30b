/*
 * Who owns a job: claims, shops that share a lane, lost leases, a worker's successor.
 */
#include "t/unit/jobs.h"

static int has(const apr_array_header_t *jobs, const char *id)
{
    for (int i = 0; i < jobs->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(jobs, i, mdl_job_t *)->id, id) == 0) {
            return 1;
        }
    }
    return 0;
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

/* Claims for free slots while two shops have running jobs, and counts the jobs that each gets. */
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

/* After a take-over the old worker can't write. */
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
    is_int(new->attempts, 1, "which goes on with the same attempt");
    is_int(new->interruptions, 0, "a lease that is lost says nothing of what was begun");
    is_int(new->started_at, old->started_at, "the time of the job's start stays");
    ok(new->lease_token > old->lease_token, "the token is higher");

    old->bytes_received = 999;
    old->bytes_total = 1000;
    old->validator = "stale";
    old->status = MDL_JOB_SUCCEEDED;
    old->error_code = "stale";
    old->due_at = 1;
    is_int(work(mdl_job_renew, old, p), APR_ENOENT, "the old worker can't renew the lease");
    is_int(end_work(mdl_job_release, old, p), APR_ENOENT, "the old worker can't release the job");
    is_int(end_work(mdl_job_retry_later, old, p), APR_ENOENT,
           "the old worker can't postpone the job");
    is_int(end_work(mdl_job_finish, old, p), APR_ENOENT, "the old worker can't finish the job");
    now = find(id, p);
    ok(now->status == MDL_JOB_RUNNING && now->bytes_received == 0 && now->bytes_total == -1 &&
           now->validator == NULL && now->error_code == NULL && now->attempts == 1 &&
           now->due_at == new->due_at && now->lease_token == new->lease_token,
       "the old worker has changed nothing");
    is_int(work(mdl_job_renew, new, p), APR_SUCCESS, "the new worker can renew the lease");
    forget_jobs();
}

static void inherit_from(const char *worker, mdl_begun_t *begun, apr_pool_t *p)
{
    mdl_job_inherit_t inherit = {worker, begun};

    mdl_db_write(db, mdl_job_inherit_effect, &inherit, p);
    mdl_begun_clear(begun);
}

/* Lets a worker die that has claimed a job, in some state and with some bytes received; returns its
   successor's claim. */
static mdl_job_t *die_with(const mdl_job_t *job, mdl_begun_t *begun, mdl_begun_state_t state,
                           apr_int64_t received, apr_pool_t *p)
{
    mdl_begun_job_t *mark = mdl_begun_add(begun, job->id, job->lease_token, job->bytes_received, p);

    atomic_store(&mark->state, (int)state);
    atomic_store(&mark->received, received);
    inherit_from("node-1", begun, p);
    return claim_one("node-1", p);
}

static void test_inherit(apr_pool_t *p)
{
    const char *mine = make_job(MDL_LANE_SMALL, -apr_time_from_sec(20), p);
    mdl_job_t *job = claim_one("node-1", p);
    mdl_begun_t *begun;
    mdl_job_t *again;

    mdl_begun_create(&begun, p);
    make_job(MDL_LANE_SMALL, -apr_time_from_sec(10), p);
    claim_one("node-2", p);
    again = die_with(job, begun, MDL_BEGUN_NOT, 0, p);
    ok(again != NULL && strcmp(again->id, mine) == 0,
       "the jobs of a worker that died are due at once for its successor");
    is_int(again->attempts, 1, "which goes on with the same attempt");
    is_int(again->interruptions, 0, "what was claimed and not begun was not interrupted");
    ok(claim_one("node-1", p) == NULL, "the jobs of other workers are not");
    is_int(work(mdl_job_renew, job, p), APR_ENOENT, "a worker that is alive after all can't write");

    again = die_with(again, begun, MDL_BEGUN_WORKS, 0, p);
    is_int(again->interruptions, 1, "what was begun was interrupted");
    again = die_with(again, begun, MDL_BEGUN_NOT, 0, p);
    is_int(again->interruptions, 1, "a death before the beginning changes nothing");
    again = die_with(again, begun, MDL_BEGUN_WORKS, 0, p);
    is_int(again->interruptions, 2, "the next interruption in a row is counted, too");
    again = die_with(again, begun, MDL_BEGUN_WAITS, 0, p);
    is_int(again->interruptions, 2, "that of one that waits for another host is not");
    mdl_begun_died(begun, 1);
    again = die_with(again, begun, MDL_BEGUN_WAITS, 0, p);
    is_int(again->interruptions, 3, "unless the process has crashed");
    again = die_with(again, begun, MDL_BEGUN_WORKS, 100, p);
    ok(again->interruptions == 1 && again->bytes_received == 100,
       "after progress the row begins with the death that came then");
    again = die_with(again, begun, MDL_BEGUN_WORKS, 100, p);
    is_int(again->interruptions, 2, "to come as far as before is no progress");
    again->interruptions = 0;
    work(mdl_job_renew, again, p);
    is_int(find(mine, p)->interruptions, 0, "a lease's renewal writes down that there was some");
    again = die_with(again, begun, MDL_BEGUN_WORKS, 0, p);
    again->due_at = 1;
    end_work(mdl_job_retry_later, again, p);
    again = claim_one("node-1", p);
    ok(again->attempts == 2 && again->interruptions == 0,
       "an attempt that its worker ended puts an end to the row");
    forget_jobs();
}

/* Processes that claim at the same time; each writes a byte for each job that it gets. */

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

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "jobs.test", p);
    test_claim(p);
    test_share(p);
    test_look(p);
    test_fencing(p);
    test_inherit(p);
    test_at_once(database, p);
}

int main(void)
{
    return test_jobs(tests);
}
