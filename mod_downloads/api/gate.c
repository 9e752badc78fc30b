#include "api/gate.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "api/response.h"
#include "api/authenticate.h"
#include "api/body.h"
#include "api/etag.h"
#include "api/list.h"
#include "api/rate.h"
#include "api/resource.h"
#include "core/metrics.h"
#include "core/identifier.h"
#include "core/write.h"
#include "request_body.h"
#include "request_notes.h"

typedef struct {
    mdl_write_t write;
    mdl_request_t *request;
    mdl_idempotency_t idempotency;
    mdl_audit_t audit;
} gate_write_t;

static apr_status_t gate_idempotency_key(mdl_request_t *request, const char **key)
{
    const char *header = apr_table_get(request->r->headers_in, "Idempotency-Key");

    if (header == NULL) {
        return mdl_problem_set(&request->problem, 400, "idempotency_key_required",
                               "Send an Idempotency-Key header: any string that is unique to this "
                               "operation.");
    }
    if (*header == '\0' || strlen(header) > MDL_IDEMPOTENCY_KEY_MAX) {
        return mdl_problem_set(&request->problem, 400, "idempotency_key_invalid",
                               "Send an Idempotency-Key of 1 to 255 bytes.");
    }
    *key = header;
    return APR_SUCCESS;
}

static void gate_fill_response(mdl_request_t *request, mdl_stored_response_t *response)
{
    request->status = 200;
    request->location = NULL;
    request->response = mdl_json_object(request->r->pool);
    request->route->write(request);
    response->status = request->status;
    response->location = request->location;
    if (request->text != NULL) {
        response->body = request->text;
    } else {
        response->body = request->status == HTTP_NO_CONTENT
                             ? ""
                             : mdl_json_text(request->response, NULL, request->r->pool);
    }
}

typedef struct {
    const char *names;
    apr_pool_t *pool;
} gate_members_t;

static void gate_add_member(void *baton, const char *name, mdl_json_t *value)
{
    gate_members_t *members = baton;

    (void)value;
    members->names = members->names != NULL
                         ? apr_pstrcat(members->pool, members->names, ", ", name, NULL)
                         : name;
}

/* The reason given or, for a PATCH without one, the names of its members: values may be secret. */
static const char *gate_audit_detail(const mdl_request_t *request)
{
    gate_members_t members = {.pool = request->r->pool};
    const char *reason = mdl_json_string(mdl_json_member(request->body, "reason"));

    if (reason == NULL && strcmp(request->r->method, "PATCH") == 0) {
        mdl_json_each(request->body, gate_add_member, &members);
    }
    return reason != NULL ? reason : members.names;
}

/* The effect of the route, and the response that is stored with it. */
static apr_status_t gate_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    gate_write_t *write = arg;
    mdl_request_t *request = write->request;
    mdl_stored_response_t *response = &write->write.response;
    apr_status_t rv = request->route->effect(db, p, request->arg);

    if (rv == APR_SUCCESS) {
        gate_fill_response(request, response);
        response->etag = mdl_etag_of(request, response->body);
        write->audit.noun_id = request->entity_id;
    }
    return rv;
}

MDL_EFFECT(mdl_write, mdl_write_t *)
MDL_EFFECT(mdl_write_replay, mdl_write_t *)

static apr_status_t gate_run_write(mdl_request_t *request, mdl_write_t *write)
{
    apr_status_t rv = mdl_request_run(request, mdl_db_write, mdl_write_effect, write);

    /* Another request with this key has committed first: the second run finds its response. */
    if (rv == MDL_DB_ENULL) {
        rv = mdl_request_run(request, mdl_db_write, mdl_write_effect, write);
    }
    if (rv == MDL_DB_ELOCKED) {
        request->retry_after = 1;
        return mdl_problem_set(&request->problem, 409, "idempotency_conflict_in_progress",
                               "A request that this one has to wait for is still in progress.");
    }
    return rv;
}

static apr_status_t gate_prepare_write(mdl_request_t *request, gate_write_t *write)
{
    apr_status_t rv;

    if ((rv = gate_idempotency_key(request, &write->idempotency.key)) != APR_SUCCESS ||
        (rv = mdl_body_read(request)) != APR_SUCCESS) {
        return rv;
    }
    write->idempotency.secret = request->service->secret;
    write->idempotency.shop_id = request->caller.shop_id;
    write->idempotency.retention = request->service->settings->idempotency_retention;
    write->idempotency.now = apr_time_now();
    write->idempotency.fingerprint = mdl_idempotency_fingerprint(request->r->method, request->path,
                                                                 request->body, request->r->pool);
    write->audit = (mdl_audit_t){.shop_id = request->caller.shop_id,
                                 .noun = request->route->noun,
                                 .action = request->route->action,
                                 .via = MDL_VIA_API,
                                 .key_id = request->caller.key_id,
                                 .detail = gate_audit_detail(request)};
    write->write = (mdl_write_t){.effect = gate_effect,
                                 .arg = write,
                                 .audit = &write->audit,
                                 .problem = &request->problem,
                                 .idempotency = &write->idempotency};
    return APR_SUCCESS;
}

/* Parses members and query; only a list takes parameters. */
static apr_status_t gate_parse(mdl_request_t *request)
{
    apr_status_t rv = request->route->parse != NULL ? request->route->parse(request) : APR_SUCCESS;

    return rv == APR_SUCCESS && request->list == NULL ? mdl_list_none(request) : rv;
}

static void gate_tag_read(const mdl_request_t *request, mdl_stored_response_t *response)
{
    response->etag = mdl_etag_of(request, response->body);
    apr_table_setn(request->r->headers_out, "ETag", response->etag);
    if (mdl_etag_known(request)) {
        response->status = HTTP_NOT_MODIFIED;
        response->body = "";
    }
}

static apr_status_t gate_pass_read(mdl_request_t *request, mdl_stored_response_t *response)
{
    const mdl_route_t *route = request->route;
    apr_status_t rv = gate_parse(request);

    if (rv == APR_SUCCESS && route->effect != NULL) {
        rv = mdl_request_run(request, route->snapshot ? mdl_db_snapshot : mdl_db_read,
                             route->effect, request->arg);
    }
    if (rv == APR_SUCCESS) {
        gate_fill_response(request, response);
        if (route->versioned) {
            gate_tag_read(request, response);
        }
    }
    return rv;
}

static apr_status_t gate_authorize(mdl_request_t *request, int writes)
{
    apr_status_t rv = mdl_authenticate(request);

    if (rv == APR_SUCCESS && writes && request->caller.scope < MDL_KEY_SCOPE_FULL) {
        return mdl_problem_set(&request->problem, 403, "insufficient_scope",
                               "This key may only read.");
    }
    if (rv == APR_SUCCESS && request->caller.scope < request->route->scope) {
        return mdl_problem_set(&request->problem, 403, "insufficient_scope",
                               request->route->scope == MDL_KEY_SCOPE_FULL
                                   ? "Only a key that may also write sees this."
                                   : "This key may read, but not deliver.");
    }
    return rv;
}

static apr_status_t gate_pass_write(mdl_request_t *request, mdl_stored_response_t *response)
{
    gate_write_t write = {.request = request};
    apr_status_t rv;

    /* A body may take as long as the client likes, and connections are few. */
    mdl_request_release(request);
    if ((rv = gate_prepare_write(request, &write)) != APR_SUCCESS ||
        /* The key may have been revoked meanwhile. */
        (rv = gate_authorize(request, 1)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_etag_parse(request)) == APR_SUCCESS &&
        (rv = gate_parse(request)) == APR_SUCCESS) {
        rv = gate_run_write(request, &write.write);
    }
    /* A request that succeeded once gets its response again, even if its own effect, another
       request, a setting or maintenance would make it fail now. */
    if ((rv == MDL_EPROBLEM || rv == MDL_DB_ECLOSED) &&
        mdl_request_run(request, mdl_db_read, mdl_write_replay_effect, &write.write) ==
            APR_SUCCESS) {
        request->retry_after = 0;
        rv = APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *response = write.write.response;
    if (response->etag != NULL) {
        apr_table_setn(request->r->headers_out, "ETag", response->etag);
    }
    if (write.write.replayed) {
        apr_table_setn(request->r->headers_out, "Idempotent-Replayed", "true");
        mdl_metric_add(&mdl_metrics->idempotency_replays, 1);
    } else {
        mdl_service_wake(request->service, write.write.due);
    }
    return APR_SUCCESS;
}

/* For logs. */
static void gate_note(const mdl_request_t *request)
{
    const char *id = request->parameters[0];

    mdl_note_id(request->r, MDL_NOTE_SHOP, request->caller.shop_id);
    if (request->caller.key_id[0] != '\0') {
        mdl_note(request->r, MDL_NOTE_KEY, request->caller.key_id);
    }
    if (id != NULL && strncmp(request->route->path, "/orders/", 8) == 0 &&
        mdl_identifier_is_digits(id)) {
        mdl_note(request->r, MDL_NOTE_ORDER, id);
    }
}

static apr_status_t gate_admit(mdl_request_t *request, int writes)
{
    apr_status_t rv = gate_authorize(request, writes);

    gate_note(request);
    if (rv == APR_SUCCESS) {
        return mdl_rate_charge(request, writes);
    }
    /* A valid key gets its rate limit headers even when the request is refused. */
    if (request->caller.key_id[0] != '\0') {
        mdl_rate_show(request);
    }
    return rv;
}

static apr_status_t gate_pass(mdl_request_t *request, mdl_stored_response_t *response)
{
    int writes = request->r->method_number != M_GET;
    apr_status_t rv = request->route->no_key ? mdl_rate_charge_open(request)
                                             : gate_admit(request, writes);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return writes ? gate_pass_write(request, response) : gate_pass_read(request, response);
}

int mdl_gate_run(mdl_request_t *request)
{
    mdl_stored_response_t response = {0};
    apr_status_t rv = gate_pass(request, &response);

    mdl_request_release(request);
    mdl_rate_charge_rows(request);
    if (rv == AP_FILTER_ERROR) {
        return rv;
    }
    if (rv != APR_SUCCESS && rv != MDL_EPROBLEM) {
        mdl_response_failure(request, rv);
    }
    if (rv != APR_SUCCESS) {
        mdl_request_body_discard(request->r);
        return mdl_response_problem(request);
    }
    request->status = response.status;
    request->location = response.location;
    return mdl_response_send(request, response.body, strlen(response.body));
}
