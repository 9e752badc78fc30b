/*
 * What people do with a job, and what that means for the asset or the order that waits for it.
 */
#ifndef MDL_CORE_ORDER_JOB_CONTROL_H
#define MDL_CORE_ORDER_JOB_CONTROL_H

#include "core/order/fraud.h"
#include "core/job.h"
#include "core/problem.h"

/** What cancelling and retrying have in common. */
typedef struct {
    const char *id;
    apr_int64_t shop_id;                /* 0: an operator retries, who may have any job */
    const apr_array_header_t *versions; /* as in mdl_entity_ref_t */
    const mdl_fraud_rules_t *rules;     /* to cancel by */
    mdl_job_t *job;                     /* out */
    mdl_problem_t *problem;
} mdl_job_control_t;

/** Effect: cancels a shop's open job; one that is cancelled already stays so.  Refused: 404, 412,
   409 job_finished.  A worker that is at it stops when it is woken. */
apr_status_t mdl_job_cancel(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *cancel);

/** Effect: queues a failed or cancelled job anew.  Refused: 404, 412, 409 job_finished,
    409 asset_not_ready when another job fills its asset. */
apr_status_t mdl_job_retry(mdl_db_t *db, apr_pool_t *p, mdl_job_control_t *retry);

#endif
