#include "core/problem.h"

apr_status_t mdl_problem_set(mdl_problem_t *problem, int status, const char *code,
                             const char *message)
{
    problem->status = status;
    problem->code = code;
    problem->message = message;
    return MDL_EPROBLEM;
}

void mdl_problem_count(mdl_problem_t *problem, apr_int64_t limit, apr_int64_t count)
{
    problem->limit = limit;
    problem->has_count = count >= 0;
    problem->count = count;
}

int mdl_problem_is_full(const mdl_problem_t *problem)
{
    return problem->details != NULL && problem->details->nelts == MDL_PROBLEM_DETAILS_MAX;
}

void mdl_problem_add_detail(mdl_problem_t *problem, const char *pointer, const char *code,
                            const char *message, apr_pool_t *p)
{
    if (mdl_problem_is_full(problem)) {
        return;
    }
    if (problem->details == NULL) {
        problem->details = apr_array_make(p, 4, sizeof(mdl_problem_detail_t));
    }
    APR_ARRAY_PUSH(problem->details, mdl_problem_detail_t) = (mdl_problem_detail_t){pointer, code,
                                                                                    message};
}

void mdl_problem_clear(mdl_problem_t *problem)
{
    *problem = (mdl_problem_t){0};
}
