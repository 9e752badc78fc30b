#include "core/write.h"

#include <apr_time.h>

apr_status_t mdl_write_replay(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write)
{
    apr_status_t rv = mdl_idempotency_find(db, write->idempotency, &write->response, p);

    write->replayed = rv == APR_SUCCESS;
    return rv;
}

/* Checks that the form or the Idempotency-Key is new; sets replayed if it is not. */
static apr_status_t write_begin(mdl_db_t *db, mdl_write_t *write, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    if (write->form != NULL) {
        rv = mdl_form_use(db, write->form, apr_time_now(), p);
        return rv == APR_EEXIST ? MDL_EUSED : rv;
    }
    if (write->idempotency != NULL && (rv = mdl_write_replay(db, p, write)) == APR_EMISMATCH) {
        return mdl_problem_set(write->problem, 409, "idempotency_conflict",
                               "This Idempotency-Key was used with another request.");
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_write(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write)
{
    apr_status_t rv;

    if (write->problem != NULL) {
        mdl_problem_clear(write->problem);
    }
    mdl_db_take_due(db);
    if ((rv = write_begin(db, write, p)) != APR_SUCCESS || write->replayed) {
        return rv;
    }
    if ((rv = write->effect(db, p, write->arg)) != APR_SUCCESS ||
        (rv = mdl_audit_add(db, write->audit, p)) != APR_SUCCESS) {
        return rv;
    }
    if (write->idempotency != NULL) {
        rv = mdl_idempotency_store(db, write->idempotency, &write->response, p);
    }
    write->due = mdl_db_take_due(db);
    return rv;
}
