/*
 * Moving buyers: a job gives what a mapping gives to each order that has another mapping's product,
 * as an assignment by the API would, some orders at a time.  An order that has it already, or had
 * it until it was revoked, gets nothing, so a move can be repeated.  Orders without access, and
 * those where the product itself was revoked, are passed over.  An order that the assignment
 * would refuse, such as one that has as many files as an order may have, is skipped and listed.
 */
#ifndef MDL_CORE_ORDER_MOVE_H
#define MDL_CORE_ORDER_MOVE_H

#include "base/text/json.h"
#include "core/job.h"
#include "core/order/assignment.h"

/** How many purchases a count looks at. */
#define MDL_MOVE_COUNTED 10000

/** How many of the skipped orders are listed, the first. */
#define MDL_MOVE_LISTED 100

typedef struct {
    const char *job_id;
    apr_int64_t mapping_id;    /* whose orders get */
    apr_int64_t to_mapping_id; /* what this one gives */
    int license_keys;          /* whether its license keys are given, too */
    int send_email;            /* whether the customers get an email */
    const char *key_id;        /* who asked, like user_name; or NULL */
    const char *user_name;
    const char *after_content; /* the last order that was looked at, like after_order_id */
    apr_int64_t after_order_id;
    apr_int64_t given;          /* orders that got it */
    apr_int64_t skipped;        /* orders that were skipped */
    const char *skipped_orders; /* a JSON array of the first of them: [number, code] */
} mdl_move_t;

/**
 * Effect: counts the orders that have a mapping.  Looks at MDL_MOVE_COUNTED purchases at most.
 * Refused: 404 mapping_not_found for either; 422 mapping_inactive.
 */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t mapping_id;
    apr_int64_t to_mapping_id;
    apr_int64_t orders; /* out */
    apr_int64_t have;   /* out: those that have the other, or had it */
    apr_int64_t lack;   /* out: those that a move would give it to */
    int more;           /* out: whether there are more purchases */
    mdl_problem_t *problem;
} mdl_move_count_t;
apr_status_t mdl_move_count(mdl_db_t *db, apr_pool_t *p, mdl_move_count_t *count);

/** Effect: queues the job of a move.  Refused like a count. */
typedef struct {
    apr_int64_t shop_id;
    mdl_move_t move; /* in: all but job_id and the members from after_content on */
    mdl_job_t *job;  /* out */
    mdl_problem_t *problem;
} mdl_move_start_t;
apr_status_t mdl_move_start(mdl_db_t *db, apr_pool_t *p, mdl_move_start_t *start);

/** Reads the move of a job. */
apr_status_t mdl_move_find(mdl_db_t *db, const char *job_id, mdl_move_t **move, apr_pool_t *p);

/** Effect: reads the newest move of a mapping's buyers and its job; both NULL: there was none. */
typedef struct {
    apr_int64_t shop_id;
    apr_int64_t mapping_id;
    mdl_move_t *move; /* out */
    mdl_job_t *job;   /* out */
} mdl_move_newest_t;
apr_status_t mdl_move_newest(mdl_db_t *db, apr_pool_t *p, mdl_move_newest_t *newest);

/** The next orders of a move, and what they get. */
typedef struct mdl_move_batch_t mdl_move_batch_t;

/**
 * Reads the next orders of a job's move; *batch is NULL after the last.  While many emails of the
 * shop wait for their first attempt, a move that sends emails has to wait until *wait_until.
 * MDL_EPROBLEM: the mapping that is given is no longer there, or not active.
 */
apr_status_t mdl_move_read(mdl_db_t *db, const mdl_job_t *job, mdl_move_batch_t **batch,
                           apr_time_t *wait_until, mdl_problem_t *problem, apr_pool_t *p);

/** Gives to the orders of a batch, as many as a short time allows, and stores how far the move has
    come.  Must be called in a transaction that holds the job. */
apr_status_t mdl_move_give(mdl_db_t *db, const mdl_move_batch_t *batch,
                           const mdl_settings_t *settings, apr_pool_t *p);

/** Adds a move to a document, with the skipped orders. */
void mdl_move_json(mdl_json_t *to, const mdl_move_t *move, apr_pool_t *p);

#endif
