#include "api/jobs.h"

#include <string.h>

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "api/routes.h"
#include "base/ulid.h"
#include "core/order/job_control.h"
#include "request_notes.h"

#define POLL_MAX 10 /* seconds */

typedef struct {
    mdl_request_t *request;
    const char *id;
    mdl_job_t *job;
    mdl_move_t *move; /* of a job buyers_move */
} job_get_t;

static int job_is_open(const mdl_job_t *job)
{
    return job->status == MDL_JOB_QUEUED || job->status == MDL_JOB_RUNNING;
}

static void job_write_members(mdl_json_t *to, const mdl_job_t *job)
{
    mdl_json_t *object;

    mdl_json_add_string(to, "id", job->id);
    mdl_json_add_string(to, "type", mdl_job_type_names[job->type]);
    mdl_json_add_string(to, "status", mdl_job_status_names[job->status]);
    mdl_json_add_int_if(to, "asset_id", job->asset_id, job->asset_id != 0);
    mdl_json_add_string(to, "storefront_order_id", job->storefront_order_id);
    object = mdl_json_add_object(to, "progress");
    mdl_json_add_int(object, "bytes_received", job->bytes_received);
    mdl_json_add_int_if(object, "bytes_total", job->bytes_total, job->bytes_total >= 0);
    mdl_json_add_int_if(object, "percent",
                        job->bytes_total == 0 ? 100 : job->bytes_received * 100 / job->bytes_total,
                        job->bytes_total >= 0);
    mdl_json_add_int(to, "attempts", job->attempts);
    mdl_json_add_int(to, "max_attempts", job->max_attempts);
    mdl_json_add_time(to, "next_attempt_at", job->status == MDL_JOB_QUEUED ? job->due_at : 0);
    if (job->error_code != NULL) {
        object = mdl_json_add_object(to, "error");
        mdl_json_add_string(object, "code", job->error_code);
        mdl_json_add_string(object, "message", job->error_message);
    } else {
        mdl_json_add_null(to, "error");
    }
    mdl_json_add_time(to, "created_at", job->created_at);
    mdl_json_add_time(to, "updated_at", job->updated_at);
    mdl_json_add_time(to, "started_at", job->started_at);
    mdl_json_add_time(to, "finished_at", job->finished_at);
}

/* Retry-After grows with the job's age: polling leaves the key's tokens for other requests. */
static void job_set_retry_after(mdl_request_t *request, const mdl_job_t *job)
{
    apr_int64_t seconds = apr_time_sec(apr_time_now() - job->created_at) / 10;

    if (job_is_open(job)) {
        request->retry_after = seconds < 1 ? 1 : seconds > POLL_MAX ? POLL_MAX : (int)seconds;
    }
}

void mdl_job_write(mdl_request_t *request, const mdl_job_t *job)
{
    mdl_note(request->r, MDL_NOTE_JOB, job->id);
    job_set_retry_after(request, job);
    job_write_members(mdl_json_add_object(request->response, "job"), job);
}

static apr_status_t job_not_found(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 404, "job_not_found", "There is no such job.");
}

static apr_status_t job_parse(mdl_request_t *request)
{
    job_get_t *get = apr_pcalloc(request->r->pool, sizeof *get);

    get->request = request;
    get->id = request->parameters[0];
    request->arg = get;
    return mdl_ulid_valid("job_", get->id) ? APR_SUCCESS : job_not_found(request);
}

static apr_status_t job_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    job_get_t *get = arg;
    apr_status_t rv = mdl_job_find_of_shop(db, get->request->caller.shop_id, get->id, &get->job, p);

    get->move = NULL;
    if (rv == APR_SUCCESS && get->job->type == MDL_JOB_MOVE) {
        rv = mdl_move_find(db, get->job->id, &get->move, p);
    }
    return rv == APR_ENOENT ? job_not_found(get->request) : rv;
}

void mdl_job_write_move(mdl_request_t *request, const mdl_job_t *job, const mdl_move_t *move)
{
    mdl_note(request->r, MDL_NOTE_JOB, job->id);
    job_set_retry_after(request, job);
    job_write_members(request->response, job);
    if (move != NULL) {
        mdl_move_json(mdl_json_add_object(request->response, "move"), move, request->r->pool);
    }
}

static void job_write_response(mdl_request_t *request)
{
    const job_get_t *get = request->arg;

    mdl_job_write_move(request, get->job, get->move);
}

static const char *job_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_job_t *job = row;

    (void)request;
    job_write_members(to, job);
    return job->id;
}

MDL_EFFECT(mdl_job_page, mdl_job_page_t *)

/* Emails are jobs, too, but the list leaves them out. */
static const char *const listed_types[] = {"asset_import", "upload_verification",
                                           "storefront_lookup", "buyers_move", NULL};

static apr_status_t job_parse_list(mdl_request_t *request)
{
    mdl_job_page_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_list_t *query = mdl_list_begin(request);

    list->status = mdl_list_choice(query, "status", mdl_job_status_names);
    list->type = mdl_list_choice(query, "type", listed_types);
    list->asset_id = mdl_list_id(query, "asset_id");
    request->arg = list;
    return mdl_list_end(query, &list->page);
}

static apr_status_t job_parse_control(mdl_request_t *request)
{
    mdl_job_control_t *act = apr_pcalloc(request->r->pool, sizeof *act);
    apr_status_t rv = mdl_members_none(request);

    act->id = request->parameters[0];
    act->shop_id = request->caller.shop_id;
    act->versions = request->versions;
    act->rules = request->service->fraud;
    act->problem = &request->problem;
    request->arg = act;
    if (rv == APR_SUCCESS && !mdl_ulid_valid("job_", act->id)) {
        rv = job_not_found(request);
    }
    return rv;
}

static void job_write_control(mdl_request_t *request)
{
    const mdl_job_t *job = ((mdl_job_control_t *)request->arg)->job;

    job_set_retry_after(request, job);
    job_write_members(request->response, job);
}

static void job_write_retry(mdl_request_t *request)
{
    request->status = 202;
    job_write_control(request);
}

MDL_EFFECT(mdl_job_cancel, mdl_job_control_t *)
MDL_EFFECT(mdl_job_retry, mdl_job_control_t *)

const mdl_route_t mdl_job_routes[] = {
    {"GET", "/jobs/{}", .versioned = 1, .parse = job_parse, .effect = job_effect,
     .write = job_write_response},
    {"GET", "/jobs", .write_entity = job_write_row, .parse = job_parse_list,
     .effect = mdl_job_page_effect, .write = mdl_list_write},
    {"POST", "/jobs/{}/cancel", "job", "cancelled", .versioned = 1, .optional_body = 1,
     .parse = job_parse_control, .effect = mdl_job_cancel_effect, .write = job_write_control},
    {"POST", "/jobs/{}/retry", "job", "retried", .versioned = 1, .optional_body = 1,
     .parse = job_parse_control, .effect = mdl_job_retry_effect, .write = job_write_retry},
    {0},
};
