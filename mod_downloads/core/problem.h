/*
 * A problem: why the service refuses a request.  A client gets it in the error envelope (contract,
 * section 4), an operator on the command line.
 */
#ifndef MDL_CORE_PROBLEM_H
#define MDL_CORE_PROBLEM_H

#include <apr_errno.h>
#include <apr_tables.h>

/** Returned by an effect that has filled its problem; its transaction is rolled back. */
#define MDL_EPROBLEM (APR_OS_START_USERERR + 1)

typedef struct {
    const char *pointer; /* JSON pointer (RFC 6901) of the faulty member, or NULL */
    const char *code;
    const char *message;
} mdl_problem_detail_t;

typedef struct {
    int status;       /* HTTP status */
    const char *code; /* contract, section 4 */
    const char *message;
    apr_int64_t limit; /* the exceeded limit; 0: none */
    apr_int64_t count; /* the actual number, if has_count */
    int has_count;
    apr_array_header_t *details; /* mdl_problem_detail_t; NULL: none */
} mdl_problem_t;

/** Fills a problem, keeping the details added before, and returns MDL_EPROBLEM. */
apr_status_t mdl_problem_set(mdl_problem_t *problem, int status, const char *code,
                             const char *message);

/** Adds the numbers that the message mentions, without a limit below 1 and a count below 0. */
void mdl_problem_count(mdl_problem_t *problem, apr_int64_t limit, apr_int64_t count);

/** The most details that a problem has. */
#define MDL_PROBLEM_DETAILS_MAX 100

/** Whether no more details are added. */
int mdl_problem_is_full(const mdl_problem_t *problem);

/** Adds a detail, up to MDL_PROBLEM_DETAILS_MAX; the strings must live as long as p. */
void mdl_problem_add_detail(mdl_problem_t *problem, const char *pointer, const char *code,
                            const char *message, apr_pool_t *p);

/** Empties a problem before another run of its effect. */
void mdl_problem_clear(mdl_problem_t *problem);

#endif
