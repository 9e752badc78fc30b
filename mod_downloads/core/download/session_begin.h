/*
 * Begins the transfers of a link: takes what they cost, or says why they may not begin.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_BEGIN_H
#define MDL_CORE_DOWNLOAD_SESSION_BEGIN_H

#include "core/download/entitlement.h"
#include "core/download/session.h"
#include "core/download/signed_url.h"

#define MDL_SESSION_TRANSFERS 16 /* at once, over all processes */

#define MDL_SESSION_SMALL_PART (1024 * 1024)

typedef struct {
    const mdl_signed_file_t *link; /* asset_id 0: the archive */
    const mdl_layout_t *layout;    /* one download of each file is taken, or of none */
    int limit;                     /* of the assignment; 0: unlimited */
    int default_download_limit;    /* of mappings without one */
    const char *etag;
    apr_int64_t size;
    mdl_session_t last; /* the link's, as it was found; generation 0: none */
    int whole;          /* all of it is asked for */
    apr_int64_t bytes;  /* that are asked for */
    int patient;        /* the caller can ask again when running transfers may have ended by then */
    apr_interval_time_t lifetime;
    apr_interval_time_t idle;
    const char *meter_id;   /* of this process */
    apr_time_t alive_until; /* what to move its beat to, by mdl_clock_monotonic; 0: not to */
    const char *transfer_id;
    mdl_entitlement_t entitlement; /* out, like all that follow: OK, EXHAUSTED, RUNNING, LINK_OLD
                                      when its time is over, CAPPED, CROWDED or, if patient,
                                      UNSETTLED */
    apr_int64_t generation;
    int is_unwritten; /* the transfer has no row, and the meter has not beaten */
    const char *why;  /* how it counts; NULL unless a transaction came to its COMMIT */
} mdl_session_begin_t;

/**
 * Begins a part of at most MDL_SESSION_SMALL_PART bytes without a statement, as the link's last
 * session goes on; false for any other request.  It gets a row from mdl_meter_renew if it still
 * runs then.
 */
int mdl_session_begin_part(mdl_session_begin_t *begin);

/**
 * Begins a transfer just before its first byte, in a transaction of its own.  If one download is
 * left and 50 sessions begin at once, one of them gets it.  If none is left, it takes over one that
 * another session holds of which no transfer runs.
 */
apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p);

#endif
