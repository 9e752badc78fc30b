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
    mdl_call_t *call;
    mdl_idempotency_t idempotency;
    mdl_answer_t answer;
    int replayed;
} write_t;

static apr_status_t key_of_request(mdl_call_t *call, const char **key)
{
    const char *header = apr_table_get(call->r->headers_in, "Idempotency-Key");

    if (header == NULL) {
        return mdl_refuse(&call->refusal, 400, "idempotency_key_required",
                          "Send an Idempotency-Key header: any string that is unique to this "
                          "operation.");
    }
    /* httpd joins two headers of one name with a comma and a space; a key has no space. */
    *key = mdl_idempotency_key(header, call->r->pool);
    if (*key == NULL) {
        return mdl_refuse(&call->refusal, 400, "idempotency_key_invalid",
                          "Send one Idempotency-Key of 1 to 255 visible ASCII characters.");
    }
    return APR_SUCCESS;
}

static apr_status_t conflict(mdl_call_t *call)
{
    return mdl_refuse(&call->refusal, 409, "idempotency_conflict",
                      "This Idempotency-Key was used with another request.");
}

static void write_answer(mdl_call_t *call, mdl_answer_t *answer)
{
    call->status = 200;
    call->location = NULL;
    call->answer = mdl_json_object(call->r->pool);
    call->route->write(call);
    answer->status = call->status;
    answer->location = call->location;
    if (call->text != NULL) {
        answer->body = call->text;
    } else {
        answer->body = call->status == HTTP_NO_CONTENT
                           ? ""
                           : mdl_json_text(call->answer, NULL, call->r->pool);
    }
}

/* The transaction of a write: replay, or effect and answer together. */
static apr_status_t write_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    write_t *write = arg;
    mdl_call_t *call = write->call;
    apr_status_t rv = mdl_idempotency_find(db, &write->idempotency, &write->answer, p);

    write->replayed = rv == APR_SUCCESS;
    if (rv == APR_EMISMATCH) {
        return conflict(call);
    }
    if (rv != APR_ENOENT) {
        return rv;
    }
    mdl_refusal_clear(&call->refusal);
    if ((rv = call->route->effect(db, p, call->arg)) != APR_SUCCESS) {
        return rv;
    }
    write_answer(call, &write->answer);
    return mdl_idempotency_store(db, &write->idempotency, &write->answer, p);
}

static apr_status_t find_answer(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    write_t *write = arg;
    apr_status_t rv = mdl_idempotency_find(db, &write->idempotency, &write->answer, p);

    write->replayed = rv == APR_SUCCESS;
    return rv;
}

static apr_status_t run_write(mdl_call_t *call, mdl_db_t *db, write_t *write)
{
    apr_status_t rv = mdl_db_write(db, write_effect, write, call->r->pool);

    /* Another request with this key was first: its answer is there now. */
    if (rv == APR_EEXIST) {
        rv = mdl_db_write(db, write_effect, write, call->r->pool);
    }
    if (rv == MDL_DB_EBUSY && mdl_db_dialect(db) == MDL_PGSQL) {
        call->retry_after = 1;
        return mdl_refuse(&call->refusal, 409, "idempotency_conflict_in_progress",
                          "A request that this one has to wait for is still in progress.");
    }
    return rv;
}

static apr_status_t prepare_write(mdl_call_t *call, write_t *write)
{
    const char *body;
    apr_size_t length;
    apr_status_t rv;

    if ((rv = key_of_request(call, &write->idempotency.key)) != APR_SUCCESS ||
        (rv = mdl_body_read(call)) != APR_SUCCESS) {
        return rv;
    }
    body = mdl_json_canonical(call->body, &length, call->r->pool);
    write->call = call;
    write->idempotency.shop_id = call->caller.shop_id;
    write->idempotency.retention = call->service->settings->idempotency_retention;
    write->idempotency.now = apr_time_now();
    write->idempotency.fingerprint = mdl_idempotency_fingerprint(call->r->method, call->path, body,
                                                                 length, call->r->pool);
    return APR_SUCCESS;
}

static void give_back(mdl_connection_t **connection)
{
    mdl_connection_close(*connection);
    *connection = NULL;
}

static apr_status_t take(mdl_call_t *call, mdl_connection_t **connection)
{
    if (*connection == NULL) {
        *connection = mdl_connection_open(call->r);
    }
    return *connection != NULL ? APR_SUCCESS : MDL_DB_EGONE;
}

static apr_status_t read_effect(mdl_call_t *call, mdl_connection_t **connection)
{
    apr_status_t rv = take(call, connection);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return (call->route->snapshot ? mdl_db_snapshot : mdl_db_read)(
        mdl_connection_db(*connection), call->route->effect, call->arg, call->r->pool);
}

static apr_status_t pass_read(mdl_call_t *call, mdl_connection_t **connection, mdl_answer_t *answer)
{
    apr_status_t rv;

    if (call->route->parse != NULL && (rv = call->route->parse(call)) != APR_SUCCESS) {
        return rv;
    }
    rv = call->route->effect != NULL ? read_effect(call, connection) : APR_SUCCESS;
    if (rv == APR_SUCCESS) {
        write_answer(call, answer);
    }
    return rv;
}

static apr_status_t pass_write(mdl_call_t *call, mdl_connection_t **connection,
                               mdl_answer_t *answer)
{
    write_t write = {.call = call};
    apr_status_t rv;

    /* A body may take as long as the client likes, and connections are few. */
    give_back(connection);
    if ((rv = prepare_write(call, &write)) != APR_SUCCESS) {
        return rv;
    }
    if (call->route->parse != NULL) {
        rv = call->route->parse(call);
    }
    if (rv == APR_SUCCESS && (rv = take(call, connection)) == APR_SUCCESS) {
        rv = run_write(call, mdl_connection_db(*connection), &write);
    }
    /* What succeeded once is answered as it was then, though by now it would be refused: its own
       effect, another request or a setting may have made it so. */
    if (rv == MDL_EREFUSED && take(call, connection) == APR_SUCCESS &&
        mdl_db_read(mdl_connection_db(*connection), find_answer, &write, call->r->pool) ==
            APR_SUCCESS) {
        rv = APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *answer = write.answer;
    if (write.replayed) {
        apr_table_setn(call->r->headers_out, "Idempotent-Replayed", "true");
    } else if (call->route->wakes) {
        mdl_service_wake(call->service);
    }
    return APR_SUCCESS;
}

static apr_status_t admit(mdl_call_t *call, mdl_connection_t **connection, int writes)
{
    apr_status_t rv = mdl_authenticate(call, connection);

    if (rv == APR_SUCCESS && writes && call->caller.read_only) {
        rv = mdl_refuse(&call->refusal, 403, "insufficient_scope", "This key may only read.");
    }
    if (rv == APR_SUCCESS) {
        return mdl_rate_charge(call, writes);
    }
    /* A valid key is told, even where it may not do what it asks for. */
    if (call->caller.key_id[0] != '\0') {
        mdl_rate_show(call);
    }
    return rv;
}

/* Everything up to the answer.  The connection is the caller's to give back. */
static apr_status_t pass(mdl_call_t *call, mdl_connection_t **connection, mdl_answer_t *answer)
{
    int writes = call->r->method_number != M_GET;
    apr_status_t rv = call->route->no_key ? APR_SUCCESS : admit(call, connection, writes);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return writes ? pass_write(call, connection, answer) : pass_read(call, connection, answer);
}

int mdl_gate_run(mdl_call_t *call)
{
    mdl_connection_t *connection = NULL;
    mdl_answer_t answer = {0};
    apr_status_t rv = pass(call, &connection, &answer);

    mdl_connection_close(connection);
    if (rv == AP_FILTER_ERROR) {
        return rv;
    }
    if (rv != APR_SUCCESS && rv != MDL_EREFUSED) {
        mdl_answer_failure(call, rv);
    }
    if (rv != APR_SUCCESS) {
        mdl_request_leave_body(call->r);
        return mdl_answer_refusal(call);
    }
    call->status = answer.status;
    call->location = answer.location;
    return mdl_answer_send(call, answer.body, strlen(answer.body));
}
