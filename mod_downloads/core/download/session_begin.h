/*
 * Begins the transfers of a link: reserves what they cost, or says why they may not begin.
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
    const mdl_layout_t *layout;    /* takes one download of each file, or none at all */
    int limit;                     /* of the assignment; 0: unlimited */
    int is_fresh;                  /* whether a file's new bytes begin a new allowance */
    int default_download_limit;    /* of mappings without one */
    const char *etag;
    apr_int64_t size;
    int version;         /* of the file; 0: the archive */
    const char *network; /* of the client (mdl_address_network), or NULL */
    mdl_session_t last;  /* the last session of the link, as it was read; generation 0: none */
    int whole;           /* whether all of it is requested */
    apr_int64_t bytes;   /* that are requested */
    int patient; /* whether the caller can ask again later, when running transfers may have ended */
    apr_interval_time_t lifetime;
    apr_interval_time_t idle;
    const char *meter_id;   /* of this process */
    apr_time_t alive_until; /* heartbeat to write, by mdl_clock_monotonic; 0: none */
    const char *transfer_id;
    mdl_entitlement_t entitlement; /* out, like all that follow: OK, EXHAUSTED, RUNNING, LINK_OLD,
                                      CAPPED, CROWDED or, if patient, UNSETTLED */
    apr_int64_t generation;
    int is_unwritten; /* whether the transfer got no row, and the heartbeat was not written */
    const char *why;  /* how the request counts; NULL unless a transaction came to its COMMIT */
} mdl_session_begin_t;

/**
 * Begins a part of at most MDL_SESSION_SMALL_PART bytes in the link's last session, without a
 * statement; false for any other request. mdl_meter_renew writes a row if the part takes longer.
 */
int mdl_session_begin_part(mdl_session_begin_t *begin);

/**
 * Begins a transfer just before its first byte, in a transaction of its own.  If one download is
 * left and 50 sessions begin at once, exactly one gets it.  If none is left, takes over a download
 * from a session that has no transfer.
 */
apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p);

#endif
