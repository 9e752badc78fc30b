#include "api/jobs.h"

#include <string.h>

#include "api/list.h"
#include "api/members.h"
#include "api/resource.h"
#include "base/ulid.h"
#include "core/job_control.h"

typedef struct {
    mdl_call_t *call;
    const char *id;
    mdl_job_t *job;
} get_t;

static int is_open(const mdl_job_t *job)
{
    return strcmp(job->status, "queued") == 0 || strcmp(job->status, "running") == 0;
}

static void write_members(mdl_json_t *to, const mdl_job_t *job)
{
    mdl_json_t *object;

    mdl_json_add_string(to, "id", job->id);
    mdl_json_add_string(to, "type", job->type);
    mdl_json_add_string(to, "status", job->status);
    mdl_json_add_int_if(to, "asset_id", job->asset_id, job->asset_id != 0);
    mdl_json_add_string(to, "storefront_order_id", job->storefront_order_id);
    object = mdl_json_add_object(to, "progress");
    mdl_json_add_int(object, "bytes_received", job->bytes_received);
    if (job->bytes_total >= 0) {
        mdl_json_add_int(object, "bytes_total", job->bytes_total);
        mdl_json_add_int(object, "percent",
                         job->bytes_total == 0 ? 100
                                               : job->bytes_received * 100 / job->bytes_total);
    } else {
        mdl_json_add_null(object, "bytes_total");
        mdl_json_add_null(object, "percent");
    }
    mdl_json_add_int(to, "attempts", job->attempts);
    mdl_json_add_int(to, "max_attempts", job->max_attempts);
    mdl_json_add_time(to, "next_attempt_at", strcmp(job->status, "queued") == 0 ? job->due_at : 0);
    if (job->error_code != NULL) {
        object = mdl_json_add_object(to, "error");
        mdl_json_add_string(object, "code", job->error_code);
        mdl_json_add_string(object, "message", job->error_message);
    } else {
        mdl_json_add_null(to, "error");
    }
    mdl_json_add_time(to, "created_at", job->created_at);
    mdl_json_add_time(to, "started_at", job->started_at);
    mdl_json_add_time(to, "finished_at", job->finished_at);
}

void mdl_job_write(mdl_call_t *call, const mdl_job_t *job)
{
    write_members(mdl_json_add_object(call->answer, "job"), job);
}

static apr_status_t not_found(mdl_call_t *call)
{
    return mdl_refuse(&call->refusal, 404, "job_not_found", "There is no such job.");
}

static apr_status_t parse(mdl_call_t *call)
{
    get_t *get = apr_pcalloc(call->r->pool, sizeof *get);

    get->call = call;
    get->id = call->parameters[0];
    call->arg = get;
    return mdl_ulid_valid("job_", get->id) ? APR_SUCCESS : not_found(call);
}

static apr_status_t effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    get_t *get = arg;
    apr_status_t rv = mdl_job_find_of_shop(db, get->call->caller.shop_id, get->id, &get->job, p);

    return rv == APR_ENOENT ? not_found(get->call) : rv;
}

static void write_answer(mdl_call_t *call)
{
    const mdl_job_t *job = ((get_t *)call->arg)->job;

    if (is_open(job)) {
        call->retry_after = 1;
    }
    write_members(call->answer, job);
}

const mdl_route_t mdl_route_job = {
    .method = "GET",
    .path = "/jobs/{}",
    .parse = parse,
    .effect = effect,
    .write = write_answer,
};

static const char *write_row(mdl_json_t *to, mdl_call_t *call, const void *row)
{
    const mdl_job_t *job = row;

    (void)call;
    write_members(to, job);
    return job->id;
}

static const mdl_resource_t resource = {"job", write_row};

const mdl_route_t mdl_route_job_list = {
    .method = "GET",
    .path = "/jobs",
    .resource = &resource,
    .parse = mdl_list_parse,
    .effect = mdl_job_page,
    .write = mdl_list_write,
};

static apr_status_t parse_act(mdl_call_t *call)
{
    mdl_job_act_t *act = apr_pcalloc(call->r->pool, sizeof *act);
    apr_status_t rv = mdl_members_none(call);

    act->id = call->parameters[0];
    act->shop_id = call->caller.shop_id;
    act->rules = call->service->fraud;
    act->refusal = &call->refusal;
    call->arg = act;
    if (rv == APR_SUCCESS && !mdl_ulid_valid("job_", act->id)) {
        rv = not_found(call);
    }
    return rv;
}

static void write_cancel(mdl_call_t *call)
{
    mdl_job_write(call, ((mdl_job_act_t *)call->arg)->job);
}

static void write_retry(mdl_call_t *call)
{
    call->status = 202;
    write_cancel(call);
}

const mdl_route_t mdl_route_job_cancel = {
    .method = "POST",
    .path = "/jobs/{}/cancel",
    .wakes = 1,
    .optional_body = 1,
    .parse = parse_act,
    .effect = mdl_job_cancel,
    .write = write_cancel,
};

const mdl_route_t mdl_route_job_retry = {
    .method = "POST",
    .path = "/jobs/{}/retry",
    .wakes = 1,
    .optional_body = 1,
    .parse = parse_act,
    .effect = mdl_job_retry,
    .write = write_retry,
};
