/*
 * A download session: what one download costs (contract, section 8).
 *
 * It begins with the first bytes that a link sends, which takes one download of each of its files,
 * and is pinned to the entity tag and the size of then.  Once what its transfers delivered is the
 * whole it is counted for good.  One that is idle before that gives its downloads back, but for the
 * files of an archive that it delivered.  A request for the whole, once that was counted, begins
 * the link's next generation.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_H
#define MDL_CORE_DOWNLOAD_SESSION_H

#include "core/download/coverage.h"
#include "core/download/signed_url.h"
#include "db/db.h"

#define MDL_SESSION_TRANSFERS 16 /* at once, over all processes */
#define MDL_SESSION_FACTOR    3  /* bytes that one download may send, in sizes of the whole */

typedef enum { MDL_SESSION_OPEN, MDL_SESSION_COUNTED, MDL_SESSION_RETURNED } mdl_session_status_t;

typedef struct {
    const char *id; /* of the link */
    apr_int64_t generation;
    mdl_session_status_t status;
    const char *etag;
    apr_int64_t size;
    const char *ranges;
    apr_int64_t bytes;
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    const char *taken;    /* JSON array of asset ids */
    apr_time_t opened_at; /* of the link's first generation */
    apr_time_t idle_at;
    const char *kept; /* places in taken of what counts though it was returned, as a coverage */
} mdl_session_t;

/** A link's last session; APR_ENOENT when it has none. */
apr_status_t mdl_session_find(mdl_db_t *db, const char *id, mdl_session_t *session, apr_pool_t *p);

typedef enum {
    MDL_SESSION_BEGUN,
    MDL_SESSION_EXHAUSTED, /* no download is left */
    MDL_SESSION_OVER,      /* its time is over */
    MDL_SESSION_CAPPED,    /* it has sent MDL_SESSION_FACTOR times its size */
    MDL_SESSION_CROWDED,   /* MDL_SESSION_TRANSFERS run */
    MDL_SESSION_UNSETTLED  /* others run that may have ended, or made it whole: ask again soon */
} mdl_session_verdict_t;

typedef struct {
    const mdl_signed_file_t *link;   /* asset_id 0: the archive */
    const apr_array_header_t *files; /* apr_int64_t: one download of each is taken, or of none */
    int limit;                       /* of the assignment; 0: unlimited */
    const char *etag;
    apr_int64_t size;
    int whole;   /* all of it is asked for */
    int patient; /* whether UNSETTLED is an answer */
    apr_interval_time_t lifetime;
    apr_interval_time_t idle;
    const char *meter_id;    /* of this process */
    apr_time_t leased_until; /* what to renew the meter's lease to; 0: it is good */
    const char *transfer_id;
    mdl_session_verdict_t verdict; /* out, as all below */
    apr_int64_t generation;
    const char *why; /* of BEGUN: how it counts; NULL when the database took nothing of it */
} mdl_session_begin_t;

/**
 * Begins a transfer just before its first byte, in a transaction of its own.  Of 50 sessions that
 * begin at once with one download left, one is let in.
 */
apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p);

/** What a transfer has delivered in the end. */
typedef struct {
    const char *transfer_id;
    const char *session_id;
    apr_int64_t generation;
    const char *ranges;
    apr_int64_t bytes;
} mdl_session_delivery_t;

typedef struct {
    const apr_array_header_t *deliveries; /* mdl_session_delivery_t, by session_id */
    apr_interval_time_t idle;
} mdl_session_settle_t;

/** Effect: ends transfers. */
apr_status_t mdl_session_settle(mdl_db_t *db, apr_pool_t *p, const mdl_session_settle_t *all);

typedef struct {
    int limit;
    int settled; /* out */
} mdl_session_sweep_t;

/** Effect: ends sessions that are idle. */
apr_status_t mdl_session_sweep(mdl_db_t *db, apr_pool_t *p, mdl_session_sweep_t *sweep);

/** One of an order's, for people to see. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    const char *status;
    apr_int64_t bytes;
    apr_int64_t size;
    apr_int64_t transfers;
    apr_time_t opened_at;
    apr_time_t updated_at;
} mdl_session_view_t;

/** The last ones of an order, newest first: mdl_session_view_t. */
apr_status_t mdl_session_list(mdl_db_t *db, apr_int64_t order_id, int limit,
                              apr_array_header_t **sessions, apr_pool_t *p);

#endif
