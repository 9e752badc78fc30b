/*
 * Settles download sessions: what transfers have delivered charges files, and a session that is
 * idle gives back the downloads of the others.
 *
 * What was delivered of a file that is given back is kept with its allowance: two halves by two
 * links are one download.  So are bytes that make MDL_DOWNLOAD_FACTOR times its size; else a part
 * that nobody asks for would make the rest free for ever.
 *
 * A session that becomes counted is an event (core/shop/event.h) to the shop's system.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_SETTLE_H
#define MDL_CORE_DOWNLOAD_SESSION_SETTLE_H

#include "core/download/session.h"

/** What a transfer has delivered, so far or in the end. */
typedef struct {
    const char *transfer_id;
    const char *session_id;
    const char *page_id; /* of its order */
    apr_int64_t generation;
    apr_int64_t assignment_id;
    const apr_array_header_t *files; /* mdl_progress_t */
    apr_int64_t bytes;
    int is_unwritten; /* it is small, and has no row yet */
} mdl_session_delivery_t;

typedef struct {
    const char *meter_id;                 /* whose transfers they are */
    const apr_array_header_t *deliveries; /* mdl_session_delivery_t */
    apr_interval_time_t idle;
    int default_download_limit;
} mdl_session_settle_t;

/** Effect: ends transfers. */
apr_status_t mdl_session_settle(mdl_db_t *db, apr_pool_t *p, const mdl_session_settle_t *all);

typedef struct {
    int limit;
    int default_download_limit;
    int settled; /* out */
} mdl_session_sweep_t;

/** Effect: ends sessions that are idle. */
apr_status_t mdl_session_sweep(mdl_db_t *db, apr_pool_t *p, mdl_session_sweep_t *sweep);

/** Effect: ends open sessions that hold a download which another link asks for, and of which no
    transfer runs: they do not wait to become idle. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: any file of the assignment */
    int default_download_limit;
    int released; /* out: sessions that were ended; each may have had the last download */
    int running;  /* out: sessions that hold one while they send */
} mdl_session_release_t;
apr_status_t mdl_session_release(mdl_db_t *db, apr_pool_t *p, mdl_session_release_t *release);

/** Ends an open session, which the transaction has locked, though it is not idle.  Returns its
   files (mdl_progress_t) as they are then. */
apr_status_t mdl_session_end(mdl_db_t *db, const mdl_session_t *session, int default_download_limit,
                             apr_array_header_t **files, apr_pool_t *p);

/** Effect, for when the clock was set back: sessions that were used at a time that has not come are
    idle from now on.  It can be repeated. */
apr_status_t mdl_session_set_back(mdl_db_t *db, apr_pool_t *p);

#endif
