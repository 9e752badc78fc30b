/*
 * The way in for every change that a person or a key makes: in one transaction once by its key or
 * its form, the effect, its entry in the audit, and what is due then.  What the effect tells the
 * shop of it adds (core/shop/event.h).
 */
#ifndef MDL_CORE_WRITE_H
#define MDL_CORE_WRITE_H

#include "core/audit.h"
#include "core/form.h"
#include "core/idempotency.h"
#include "core/problem.h"

/** What mdl_write returns for a form that has taken effect before. */
#define MDL_EUSED (APR_OS_START_USERERR + 2)

typedef struct {
    mdl_effect_fn *effect; /* may run twice */
    void *arg;
    const mdl_audit_t *audit; /* the effect may add to it */
    mdl_problem_t *problem;   /* emptied before the effect; NULL: it refuses nothing */

    /* Both NULL: it takes effect each time. */
    const mdl_form_t *form;
    mdl_idempotency_t *idempotency;

    mdl_stored_response_t response; /* with idempotency: the effect fills it */
    int replayed;                   /* out: response was stored before, and nothing is changed */
    mdl_db_due_t due;               /* out: for mdl_service_wake */
} mdl_write_t;

/**
 * Effect, for mdl_db_write.  Returns as write->effect does, MDL_EUSED, and 409 idempotency_conflict
 * for a key that was used with another request.  MDL_DB_ENULL, also from the end of the
 * transaction: another request with this key was faster; run it once more for its response.
 */
apr_status_t mdl_write(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write);

/** Effect that only looks for the response, as a request that succeeded once gets it again even if
    it would be refused by now.  APR_ENOENT when there is none. */
apr_status_t mdl_write_replay(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write);

#endif
