#include "ctl/job.h"

#include <stddef.h>

#include <apr_strings.h>

#include "core/job_control.h"
#include "core/job_source.h"
#include "core/shop/shop.h"

#define MAX_SHOWN 50

static const mdl_field_t fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_job_t, id), 1, NULL},
    {"type", MDL_FIELD_ENUM, offsetof(mdl_job_t, type), 1, mdl_job_type_names},
    {"status", MDL_FIELD_ENUM, offsetof(mdl_job_t, status), 1, mdl_job_status_names},
    {"lane", MDL_FIELD_ENUM, offsetof(mdl_job_t, lane), 0, mdl_job_lane_names},
    {"shop_id", MDL_FIELD_NUMBER, offsetof(mdl_job_t, shop_id), 1, NULL},
    {"asset_id", MDL_FIELD_ID, offsetof(mdl_job_t, asset_id), 0, NULL},
    {"email_id", MDL_FIELD_ID, offsetof(mdl_job_t, email_id), 0, NULL},
    {"order_id", MDL_FIELD_ID, offsetof(mdl_job_t, order_id), 0, NULL},
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
    {"error_code", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_code), 1, NULL},
    {"error_message", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_message), 0, NULL},
    {0},
};

typedef struct {
    mdl_job_list_t list;
    mdl_problem_t *problem;
} jobs_of_shop_t;

/* An unknown shop is an error, not an empty list. */
static apr_status_t jobs_of_shop(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    jobs_of_shop_t *search = arg;
    mdl_shop_t *shop;
    apr_status_t rv = search->list.shop_id ? mdl_shop_find(db, search->list.shop_id, &shop, p)
                                           : APR_SUCCESS;

    if (rv == APR_ENOENT) {
        return mdl_problem_set(search->problem, 404, "not_found", "There is no such shop.");
    }
    return rv == APR_SUCCESS ? mdl_job_list(db, p, &search->list) : rv;
}

int mdl_ctl_job_list(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    jobs_of_shop_t search = {
        .list = {.shop_id = ctl->shop_id, .status = ctl->status, .limit = MAX_SHOWN},
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
    if (search.list.jobs->nelts == MAX_SHOWN) {
        mdl_printer_line(ctl->output, "(no more than %d are shown)", MAX_SHOWN);
    }
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

    return rv == APR_ENOENT
               ? mdl_problem_set(find->problem, 404, "job_not_found", "There is no such job.")
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
