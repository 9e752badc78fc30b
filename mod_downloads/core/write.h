/*
 * Runs every change that a person or an API key makes, in one transaction: the check that its
 * Idempotency-Key or form is new, the effect, the audit entry, and what becomes due.  The effect
 * adds the events for the shop itself (core/shop/event.h).
 */
#ifndef MDL_CORE_WRITE_H
#define MDL_CORE_WRITE_H

#include "core/audit.h"
#include "core/form.h"
#include "core/idempotency.h"
#include "core/problem.h"

/** Returned by mdl_write for a form that has taken effect before. */
#define MDL_EUSED (APR_OS_START_USERERR + 2)

typedef struct {
    mdl_effect_fn *effect; /* may run twice */
    void *arg;
    const mdl_audit_t *audit; /* the effect may add to it */
    mdl_problem_t *problem;   /* cleared before the effect; NULL: it refuses nothing */

    /* Both NULL: the effect runs each time. */
    const mdl_form_t *form;
    mdl_idempotency_t *idempotency;

    mdl_stored_response_t response; /* with idempotency: filled by the effect */
    int replayed;     /* out: whether response was stored before; then nothing is changed */
    mdl_db_due_t due; /* out: for mdl_service_wake */
} mdl_write_t;

/**
 * Effect, for mdl_db_write.  Returns what write->effect returns; MDL_EUSED; or 409
 * idempotency_conflict for a key used with another request.  MDL_DB_ENULL, also from the end of the
 * transaction: another request with this key was faster; run it again for its response.
 */
apr_status_t mdl_write(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write);

/** Effect: only reads the stored response, which a repeated request gets even if it would be
    refused by now.  APR_ENOENT when there is none. */
apr_status_t mdl_write_replay(mdl_db_t *db, apr_pool_t *p, mdl_write_t *write);

#endif
