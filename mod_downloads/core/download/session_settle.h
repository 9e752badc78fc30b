/*
 * Settles download sessions: files are charged as transfers deliver them, and an idle session gives
 * back the downloads of the files that were not charged.
 *
 * If a download is given back, the delivered ranges of its file are kept with the allowance: two
 * halves by two links make one download.  So do MDL_DOWNLOAD_FACTOR times the file's size in bytes;
 * else links could send all but the last byte for ever.
 *
 * A session that becomes counted adds an event (core/shop/event.h).
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_SETTLE_H
#define MDL_CORE_DOWNLOAD_SESSION_SETTLE_H

#include "core/download/session.h"

/** What a transfer has delivered, so far or in total. */
typedef struct {
    const char *transfer_id;
    const char *session_id;
    const char *page_id; /* of its order */
    apr_int64_t generation;
    apr_int64_t assignment_id;
    const apr_array_header_t *files; /* mdl_progress_t */
    apr_int64_t bytes;
    apr_int64_t acknowledged; /* of these, by the client's TCP: no more than it certainly has */
    apr_int64_t handed_over;  /* of these, to the object store, by a redirect */
    int is_unwritten;         /* a small part without a row */
} mdl_session_delivery_t;

typedef struct {
    const char *meter_id;                 /* the meter of these transfers */
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

/** Effect: ends open sessions without a transfer that hold a download which another link needs,
    before they become idle. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: any file of the assignment */
    int default_download_limit;
    int released; /* out: ended sessions; any of them may have held the last download */
    int running;  /* out: sessions with a transfer that hold one */
} mdl_session_release_t;
apr_status_t mdl_session_release(mdl_db_t *db, apr_pool_t *p, mdl_session_release_t *release);

/** Ends an open session before it is idle; the transaction has locked it.  *files gets its progress
    (mdl_progress_t) at its end. */
apr_status_t mdl_session_end(mdl_db_t *db, const mdl_session_t *session, int default_download_limit,
                             apr_array_header_t **files, apr_pool_t *p);

/** Effect for a clock that was set back: sessions last used in the future are idle from now on.  It
    can be repeated. */
apr_status_t mdl_session_set_back(mdl_db_t *db, apr_pool_t *p);

#endif
