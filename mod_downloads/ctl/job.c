#include "ctl/job.h"

#include <stddef.h>
#include <string.h>

#include <apr_strings.h>

#include "base/ulid.h"
#include "core/order/job_control.h"
#include "core/job_source.h"
#include "core/shop/shop.h"
#include "core/write.h"

#define BATCH   100 /* failed jobs read at a time */
#define REFUSED 100 /* refused jobs that are listed */

static const mdl_field_t fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_job_t, id), 1, NULL},
    {"type", MDL_FIELD_ENUM, offsetof(mdl_job_t, type), 1, mdl_job_type_names},
    {"status", MDL_FIELD_ENUM, offsetof(mdl_job_t, status), 1, mdl_job_status_names},
    {"lane", MDL_FIELD_ENUM, offsetof(mdl_job_t, lane), 0, mdl_job_lane_names},
    {"shop_id", MDL_FIELD_NUMBER, offsetof(mdl_job_t, shop_id), 1, NULL},
    {"asset_id", MDL_FIELD_ID, offsetof(mdl_job_t, asset_id), 0, NULL},
    {"email_id", MDL_FIELD_ID, offsetof(mdl_job_t, email_id), 0, NULL},
    {"order_id", MDL_FIELD_ID, offsetof(mdl_job_t, order_id), 0, NULL},
    {"storefront_order_id", MDL_FIELD_TEXT, offsetof(mdl_job_t, storefront_order_id), 0, NULL},
    {"source_url", MDL_FIELD_TEXT, offsetof(mdl_job_t, source_url), 0, NULL},
    {"expected_sha256", MDL_FIELD_TEXT, offsetof(mdl_job_t, expected_sha256), 0, NULL},
    {"bytes_received", MDL_FIELD_NUMBER, offsetof(mdl_job_t, bytes_received), 0, NULL},
    {"bytes_total", MDL_FIELD_SIZE, offsetof(mdl_job_t, bytes_total), 0, NULL},
    {"attempts", MDL_FIELD_INT, offsetof(mdl_job_t, attempts), 1, NULL},
    {"max_attempts", MDL_FIELD_INT, offsetof(mdl_job_t, max_attempts), 0, NULL},
    {"lease_token", MDL_FIELD_NUMBER, offsetof(mdl_job_t, lease_token), 0, NULL},
    {"due_at", MDL_FIELD_TIME, offsetof(mdl_job_t, due_at), 0, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_job_t, created_at), 1, NULL},
    {"started_at", MDL_FIELD_TIME, offsetof(mdl_job_t, started_at), 0, NULL},
    {"finished_at", MDL_FIELD_TIME, offsetof(mdl_job_t, finished_at), 0, NULL},
    {"request_id", MDL_FIELD_TEXT, offsetof(mdl_job_t, request_id), 1, NULL},
    {"error_code", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_code), 1, NULL},
    {"error_message", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_message), 0, NULL},
    {0},
};

typedef struct {
    mdl_job_list_t list;
    mdl_job_count_t count;
    mdl_problem_t *problem;
} jobs_of_shop_t;

/* An unknown shop is an error, not an empty list. */
static apr_status_t jobs_of_shop(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    jobs_of_shop_t *search = arg;
    apr_status_t rv = mdl_ctl_check_shop(db, search->list.shop_id, search->problem, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_job_list(db, p, &search->list);
    }
    return rv == APR_SUCCESS ? mdl_job_count(db, p, &search->count) : rv;
}

/* Prints how many jobs the list shows of how many, and the count of each status. */
static void job_print_total(mdl_ctl_t *ctl, const jobs_of_shop_t *search)
{
    const apr_int64_t *jobs = search->count.jobs;
    const char *each = "";
    apr_int64_t all = 0;

    for (int i = 0; i <= MDL_JOB_CANCELLED; i++) {
        each = apr_psprintf(ctl->p, "%s%s%" APR_INT64_T_FMT " %s", each, i > 0 ? ", " : "", jobs[i],
                            mdl_job_status_names[i]);
        if (ctl->status == NULL || strcmp(ctl->status, mdl_job_status_names[i]) == 0) {
            all += jobs[i];
        }
    }
    mdl_printer_line(ctl->output, "%d of %" APR_INT64_T_FMT "%s%s job%s; in all %s",
                     search->list.jobs->nelts, all, ctl->status != NULL ? " " : "",
                     ctl->status != NULL ? ctl->status : "", all == 1 ? "" : "s", each);
}

int mdl_ctl_job_list(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    jobs_of_shop_t search = {.list = {.shop_id = ctl->shop_id,
                                      .status = ctl->status,
                                      .limit = ctl->limit != 0 ? ctl->limit : MDL_CTL_SHOWN},
                             .count = {.shop_id = ctl->shop_id},
                             .problem = &problem};
    int failed = mdl_ctl_read(ctl, jobs_of_shop, &search, &problem);

    if (failed) {
        return failed;
    }
    for (int i = 0; i < search.list.jobs->nelts; i++) {
        mdl_job_t *job = APR_ARRAY_IDX(search.list.jobs, i, mdl_job_t *);

        job->source_url = mdl_source_shown(job->source_url, ctl->p);
    }
    mdl_printer_list(ctl->output, fields, search.list.jobs, "No job was found.");
    job_print_total(ctl, &search);
    return MDL_EXIT_DONE;
}

typedef struct {
    const char *id;
    mdl_job_t *job; /* out */
    mdl_problem_t *problem;
} job_find_t;

static apr_status_t job_find(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    job_find_t *find = arg;
    apr_status_t rv = mdl_job_find(db, find->id, &find->job, p);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(find->problem, 404, "job_not_found", "There is no such job.");
    }
    return rv == APR_SUCCESS ? mdl_job_order(db, find->job, &find->job->storefront_order_id, p)
                             : rv;
}

int mdl_ctl_job_show(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    job_find_t find = {.id = ctl->arguments[0], .problem = &problem};
    int failed = mdl_ctl_read(ctl, job_find, &find, &problem);

    if (!failed) {
        find.job->source_url = mdl_source_shown(find.job->source_url, ctl->p);
        mdl_printer_record(ctl->output, fields, find.job);
    }
    return failed;
}

typedef struct {
    mdl_job_control_t control;
    mdl_ctl_t *ctl;
} job_retry_t;

static apr_status_t ctl_job_retry_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    job_retry_t *retry = arg;
    apr_status_t rv = mdl_job_retry(db, p, &retry->control);

    if (rv == APR_SUCCESS) {
        retry->ctl->audit.shop_id = retry->control.job->shop_id;
    }
    return rv;
}

int mdl_ctl_job_retry(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    job_retry_t retry = {.control = {.id = ctl->arguments[0], .problem = &problem}, .ctl = ctl};
    mdl_job_t *job;
    int failed = mdl_ctl_write(ctl, ctl_job_retry_effect, &retry, &problem);

    if (failed) {
        return failed;
    }
    job = retry.control.job;
    job->source_url = mdl_source_shown(job->source_url, ctl->p);
    mdl_printer_result(ctl->output, fields, job, "Job %s is queued again.", job->id);
    return MDL_EXIT_DONE;
}

/* --- every failed job --- */

#define AFTER_MAX (MDL_ULID_LENGTH + 8)

typedef struct {
    mdl_job_failed_t search;
    apr_int64_t retried;
    apr_int64_t refused;
    mdl_json_t *refusals; /* the first REFUSED */
    mdl_problem_t problem;
} retry_all_t;

static apr_status_t ctl_job_check_shop_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    retry_all_t *all = arg;

    return mdl_ctl_check_shop(db, all->search.shop_id, &all->problem, p);
}

MDL_EFFECT(mdl_job_failed, mdl_job_failed_t *)
MDL_EFFECT(mdl_write, mdl_write_t *)

static void retry_note_refusal(mdl_ctl_t *ctl, retry_all_t *all, const char *id)
{
    mdl_json_t *refusal;

    if (all->refused++ >= REFUSED) {
        return;
    }
    mdl_printer_line(ctl->output, "Job %s is not: %s", id, all->problem.message);
    refusal = mdl_json_add_object(all->refusals, NULL);
    mdl_json_add_string(refusal, "id", id);
    mdl_json_add_string(refusal, "code", all->problem.code);
    mdl_json_add_string(refusal, "message", all->problem.message);
}

/* Retries a job in its own transaction, because a refusal rolls back. */
static int retry_one(mdl_ctl_t *ctl, retry_all_t *all, const char *id)
{
    job_retry_t retry = {.control = {.id = id, .problem = &all->problem}, .ctl = ctl};
    mdl_write_t write = {.effect = ctl_job_retry_effect,
                         .arg = &retry,
                         .audit = &ctl->audit,
                         .problem = &all->problem};
    apr_status_t rv;

    ctl->audit.noun_id = id;
    rv = mdl_db_write(ctl->db, mdl_write_effect, &write, ctl->p);
    if (rv == MDL_EPROBLEM) {
        retry_note_refusal(ctl, all, id);
    } else if (rv != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            mdl_ctl_database_error(ctl, rv));
    } else {
        all->retried++;
    }
    return MDL_EXIT_DONE;
}

/* Retries a batch; after gets its last id.  all->search.after is NULL if there are no more. */
static int retry_batch(mdl_ctl_t *ctl, retry_all_t *all, char after[AFTER_MAX])
{
    const apr_array_header_t *ids;
    int failed = mdl_ctl_read(ctl, mdl_job_failed_effect, &all->search, &all->problem);

    ids = all->search.ids;
    for (int i = 0; !failed && i < ids->nelts; i++) {
        failed = retry_one(ctl, all, APR_ARRAY_IDX(ids, i, const char *));
    }
    if (!failed && ids->nelts == BATCH) {
        apr_cpystrn(after, APR_ARRAY_IDX(ids, BATCH - 1, const char *), AFTER_MAX);
    } else {
        all->search.after = NULL;
    }
    return failed;
}

int mdl_ctl_job_retry_failed(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    char after[AFTER_MAX] = "";
    retry_all_t all = {.search = {.shop_id = ctl->shop_id,
                                  .type = ctl->type,
                                  .since = ctl->since,
                                  .after = after,
                                  .limit = BATCH},
                       .refusals = mdl_json_add_array(document, "refusals")};
    int failed = mdl_ctl_read(ctl, ctl_job_check_shop_effect, &all, &all.problem);
    apr_pool_t *pool;
    mdl_ctl_t step;

    apr_pool_create(&pool, ctl->p);
    apr_pool_tag(pool, "mdl_ctl_job_retry_failed");
    while (!failed && all.search.after != NULL) {
        step = mdl_ctl_step(ctl, pool);
        failed = retry_batch(&step, &all, after);
        apr_pool_clear(pool);
    }
    mdl_printer_note(ctl->output,
                     "%" APR_INT64_T_FMT " job%s queued again, %" APR_INT64_T_FMT " refused.",
                     all.retried, all.retried == 1 ? " is" : "s are", all.refused);
    mdl_json_add_int(document, "retried", all.retried);
    mdl_json_add_int(document, "refused", all.refused);
    if (!failed) {
        mdl_printer_document(ctl->output, document);
    }
    return failed;
}
