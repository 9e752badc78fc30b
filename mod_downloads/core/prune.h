/*
 * What is over is removed after the time for which it is kept, batch by batch: each is a short
 * transaction of MDL_PRUNE_BATCH rows at most, and of a few more where many are of one moment.  A
 * pass goes through a table in the order of a key that grows with time.  Its mark is where the next
 * batch begins, so that neither what is kept nor what PostgreSQL has left of deleted rows is looked
 * at again.
 */
#ifndef MDL_CORE_PRUNE_H
#define MDL_CORE_PRUNE_H

#include "base/ulid.h"
#include "db/db.h"

#define MDL_PRUNE_BATCH 500

typedef enum {
    MDL_PRUNE_JOBS,      /* that have ended */
    MDL_PRUNE_UPLOADS,   /* that are over, and have no job any more */
    MDL_PRUNE_EMAILS,    /* of orders that have a newer one, and without a job */
    MDL_PRUNE_EVENTS,    /* that have a number */
    MDL_PRUNE_WEBHOOKS,  /* what was sent of them */
    MDL_PRUNE_DOWNLOADS, /* that are settled */
    MDL_PRUNE_AUDIT,
    MDL_PRUNE_ADDRESSES, /* of clients: the orders stay, without them */
    MDL_PRUNE_ANSWERS,   /* to requests with an Idempotency-Key */
    MDL_PRUNE_TABLES
} mdl_prune_table_t;

/** At first all zero. */
typedef struct {
    apr_int64_t number;
    char id[MDL_ULID_LENGTH + 8];
} mdl_prune_mark_t;

/** Effect: removes a batch. */
typedef struct {
    mdl_prune_table_t table;
    apr_time_t before;      /* what was over by then */
    mdl_prune_mark_t after; /* where the batch begins */
    mdl_prune_mark_t next;  /* out: where the next one does */
    int more;               /* out: whether it may find something */
    apr_int64_t removed;    /* out: rows */
} mdl_prune_t;
apr_status_t mdl_prune(mdl_db_t *db, apr_pool_t *p, mdl_prune_t *prune);

#endif
