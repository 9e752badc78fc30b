/*
 * The resource jobs: GET /jobs, GET /jobs/{id}, POST /jobs/{id}/cancel and /retry.
 */
#ifndef MDL_API_JOBS_H
#define MDL_API_JOBS_H

#include "api/request.h"
#include "core/order/move.h"

/** Adds a job to the response, as its member "job", and Retry-After until the job has ended. */
void mdl_job_write(mdl_request_t *request, const mdl_job_t *job);

/** Writes a job as the response, with its move if it has one. */
void mdl_job_write_move(mdl_request_t *request, const mdl_job_t *job, const mdl_move_t *move);

#endif
