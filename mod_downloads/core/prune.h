/*
 * Prunes tables: removes old rows after their retention time.  Each batch is a short transaction of
 * about MDL_PRUNE_BATCH rows; more if many have the same time.  A pass goes through a table in the
 * order of a key that grows with time.  A high-water mark says where the next batch begins, so that
 * neither kept rows nor PostgreSQL's dead rows are read again.
 */
#ifndef MDL_CORE_PRUNE_H
#define MDL_CORE_PRUNE_H

#include "base/ulid.h"
#include "db/db.h"

#define MDL_PRUNE_BATCH 500

typedef enum {
    MDL_PRUNE_JOBS,      /* that have ended */
    MDL_PRUNE_UPLOADS,   /* that are over, and have no job */
    MDL_PRUNE_EMAILS,    /* of orders that have a newer email, and without a job */
    MDL_PRUNE_EVENTS,    /* that have a number */
    MDL_PRUNE_WEBHOOKS,  /* deliveries of events */
    MDL_PRUNE_DOWNLOADS, /* that are settled */
    MDL_PRUNE_VISITS,    /* of orders' pages */
    MDL_PRUNE_AUDIT,
    MDL_PRUNE_ADDRESSES, /* IP addresses of clients, in orders */
    MDL_PRUNE_ANSWERS,   /* responses to requests with an Idempotency-Key */
    MDL_PRUNE_FINDS,     /* requests for the links of an address */
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
    apr_time_t before;      /* rows that are older */
    mdl_prune_mark_t after; /* where the batch begins */
    mdl_prune_mark_t next;  /* out: where the next batch begins */
    int more;               /* out: whether the next batch may find something */
    apr_int64_t removed;    /* out: rows */
} mdl_prune_t;
apr_status_t mdl_prune(mdl_db_t *db, apr_pool_t *p, mdl_prune_t *prune);

#endif
