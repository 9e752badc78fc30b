/*
 * Cancels and retries jobs, and updates the asset or the order that waits for the job.
 */
#ifndef MDL_CORE_ORDER_JOB_CONTROL_H
#define MDL_CORE_ORDER_JOB_CONTROL_H

#include "core/order/fraud.h"
#include "core/job.h"
#include "core/problem.h"

/** The argument of both effects. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;                /* 0: an operator retries a job of any shop */
    const apr_array_header_t *versions; /* as in mdl_entity_ref_t */
    const mdl_fraud_rules_t *rules;     /* for mdl_job_cancel */
    mdl_job_t *job;                     /* out */
    mdl_problem_t *problem;
} mdl_job_control_t;

/** Effect: cancels a shop's open job; a cancelled job stays cancelled.  A worker that runs the job
    stops when it is woken.  Refused: 404, 412, 409 job_finished. */
apr_status_t mdl_job_cancel(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *cancel);

/** Effect: queues a failed or cancelled job again.  Refused: 404, 412, 409 job_finished, 409
    asset_not_ready when another job fills its asset. */
apr_status_t mdl_job_retry(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *retry);

#endif
