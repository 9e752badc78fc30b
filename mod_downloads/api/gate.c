#include "api/gate.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "api/response.h"
#include "api/authenticate.h"
#include "api/body.h"
#include "api/rate.h"
#include "connection.h"
#include "core/idempotency.h"
#include "request_body.h"

typedef struct {
    mdl_request_t *request;
    mdl_idempotency_t idempotency;
    mdl_stored_response_t response;
    int replayed;
} write_t;

static apr_status_t key_of_request(mdl_request_t *request, const char **key)
{
    const char *header = apr_table_get(request->r->headers_in, "Idempotency-Key");

    if (header == NULL) {
        return mdl_problem_set(&request->problem, 400, "idempotency_key_required",
                               "Send an Idempotency-Key header: any string that is unique to this "
                               "operation.");
    }
    /* httpd joins two headers of one name with a comma and a space; a key has no space. */
    *key = mdl_idempotency_key(header, request->r->pool);
    if (*key == NULL) {
        return mdl_problem_set(&request->problem, 400, "idempotency_key_invalid",
                               "Send one Idempotency-Key of 1 to 255 visible ASCII characters.");
    }
    return APR_SUCCESS;
}

static apr_status_t gate_conflict(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 409, "idempotency_conflict",
                           "This Idempotency-Key was used with another request.");
}

static void gate_write_answer(mdl_request_t *request, mdl_stored_response_t *response)
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

/* The transaction of a write: replay, or effect and answer together. */
static apr_status_t gate_write_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    write_t *write = arg;
    mdl_request_t *request = write->request;
    apr_status_t rv = mdl_idempotency_find(db, &write->idempotency, &write->response, p);

    write->replayed = rv == APR_SUCCESS;
    if (rv == APR_EMISMATCH) {
        return gate_conflict(request);
    }
    if (rv != APR_ENOENT) {
        return rv;
    }
    mdl_problem_clear(&request->problem);
    if ((rv = request->route->effect(db, p, request->arg)) != APR_SUCCESS) {
        return rv;
    }
    gate_write_answer(request, &write->response);
    return mdl_idempotency_store(db, &write->idempotency, &write->response, p);
}

static apr_status_t find_answer(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    write_t *write = arg;
    apr_status_t rv = mdl_idempotency_find(db, &write->idempotency, &write->response, p);

    write->replayed = rv == APR_SUCCESS;
    return rv;
}

static apr_status_t run_write(mdl_request_t *request, mdl_db_t *db, write_t *write)
{
    apr_status_t rv = mdl_db_write(db, gate_write_effect, write, request->r->pool);

    /* Another request with this key was first: its response is there now. */
    if (rv == APR_EEXIST) {
        rv = mdl_db_write(db, gate_write_effect, write, request->r->pool);
    }
    if (rv == MDL_DB_ELOCKED) {
        request->retry_after = 1;
        return mdl_problem_set(&request->problem, 409, "idempotency_conflict_in_progress",
                               "A request that this one has to wait for is still in progress.");
    }
    return rv;
}

static apr_status_t prepare_write(mdl_request_t *request, write_t *write)
{
    const char *body;
    apr_size_t length;
    apr_status_t rv;

    if ((rv = key_of_request(request, &write->idempotency.key)) != APR_SUCCESS ||
        (rv = mdl_body_read(request)) != APR_SUCCESS) {
        return rv;
    }
    body = mdl_json_canonical(request->body, &length, request->r->pool);
    write->request = request;
    write->idempotency.shop_id = request->caller.shop_id;
    write->idempotency.retention = request->service->settings->idempotency_retention;
    write->idempotency.now = apr_time_now();
    write->idempotency.fingerprint = mdl_idempotency_fingerprint(request->r->method, request->path,
                                                                 body, length, request->r->pool);
    return APR_SUCCESS;
}

static void give_back(mdl_connection_t **connection)
{
    mdl_connection_close(*connection);
    *connection = NULL;
}

static apr_status_t gate_take(mdl_request_t *request, mdl_connection_t **connection)
{
    if (*connection == NULL) {
        *connection = mdl_connection_open(request->r);
    }
    return *connection != NULL ? APR_SUCCESS : MDL_DB_EGONE;
}

static apr_status_t read_effect(mdl_request_t *request, mdl_connection_t **connection)
{
    apr_status_t rv = gate_take(request, connection);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return (request->route->snapshot ? mdl_db_snapshot : mdl_db_read)(
        mdl_connection_db(*connection), request->route->effect, request->arg, request->r->pool);
}

static apr_status_t pass_read(mdl_request_t *request, mdl_connection_t **connection,
                              mdl_stored_response_t *response)
{
    apr_status_t rv;

    if (request->route->parse != NULL && (rv = request->route->parse(request)) != APR_SUCCESS) {
        return rv;
    }
    rv = request->route->effect != NULL ? read_effect(request, connection) : APR_SUCCESS;
    if (rv == APR_SUCCESS) {
        gate_write_answer(request, response);
    }
    return rv;
}

static apr_status_t pass_write(mdl_request_t *request, mdl_connection_t **connection,
                               mdl_stored_response_t *response)
{
    write_t write = {.request = request};
    apr_status_t rv;

    /* A body may take as long as the client likes, and connections are few. */
    give_back(connection);
    if ((rv = prepare_write(request, &write)) != APR_SUCCESS) {
        return rv;
    }
    if (request->route->parse != NULL) {
        rv = request->route->parse(request);
    }
    if (rv == APR_SUCCESS && (rv = gate_take(request, connection)) == APR_SUCCESS) {
        rv = run_write(request, mdl_connection_db(*connection), &write);
    }
    /* What succeeded once is answered as it was then, though by now it would be refused: its own
       effect, another request or a setting may have made it so. */
    if (rv == MDL_EPROBLEM && gate_take(request, connection) == APR_SUCCESS &&
        mdl_db_read(mdl_connection_db(*connection), find_answer, &write, request->r->pool) ==
            APR_SUCCESS) {
        rv = APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *response = write.response;
    if (write.replayed) {
        apr_table_setn(request->r->headers_out, "Idempotent-Replayed", "true");
    } else if (request->route->wakes) {
        mdl_service_wake(request->service);
    }
    return APR_SUCCESS;
}

static apr_status_t gate_admit(mdl_request_t *request, mdl_connection_t **connection, int writes)
{
    apr_status_t rv = mdl_authenticate(request, connection);

    if (rv == APR_SUCCESS && writes && request->caller.read_only) {
        rv = mdl_problem_set(&request->problem, 403, "insufficient_scope",
                             "This key may only read.");
    }
    if (rv == APR_SUCCESS) {
        return mdl_rate_charge(request, writes);
    }
    /* A valid key is told, even where it may not do what it asks for. */
    if (request->caller.key_id[0] != '\0') {
        mdl_rate_show(request);
    }
    return rv;
}

/* Everything up to the response.  The connection is the caller's to give back. */
static apr_status_t gate_pass(mdl_request_t *request, mdl_connection_t **connection,
                              mdl_stored_response_t *response)
{
    int writes = request->r->method_number != M_GET;
    apr_status_t rv = request->route->no_key ? APR_SUCCESS
                                             : gate_admit(request, connection, writes);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return writes ? pass_write(request, connection, response)
                  : pass_read(request, connection, response);
}

int mdl_gate_run(mdl_request_t *request)
{
    mdl_connection_t *connection = NULL;
    mdl_stored_response_t response = {0};
    apr_status_t rv = gate_pass(request, &connection, &response);

    mdl_connection_close(connection);
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
