/*
 * A download session: what the requests of one link share, and what they cost together (contract,
 * section 8).
 *
 * It begins with the first bytes that a link sends, which reserves one download of each of its
 * files, and is pinned to the entity tag and the size of that moment.  Once its transfers have
 * delivered the whole, it is counted for good.  One that is idle before that gives its downloads
 * back, except those of an archive's files that it delivered (settlement.h).  When the whole is
 * asked for again after it was counted, the link's next generation begins.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_H
#define MDL_CORE_DOWNLOAD_SESSION_H

#include "core/download/coverage.h"
#include "core/download/entitlement.h"
#include "core/download/settlement.h"
#include "core/download/signed_url.h"
#include "db/db.h"

#define MDL_SESSION_TRANSFERS 16 /* at once, over all processes */

typedef enum { MDL_SESSION_OPEN, MDL_SESSION_COUNTED, MDL_SESSION_RETURNED } mdl_session_status_t;
extern const char *const mdl_session_status_names[];

typedef struct {
    const char *id; /* of the link */
    apr_int64_t generation;
    mdl_session_status_t status;
    mdl_reservation_t reserved;
    const char *ranges; /* what it delivered, as the text of a coverage */
    apr_int64_t bytes;  /* with what was delivered twice */
    apr_time_t idle_at;
} mdl_session_t;

/** A link's last session; APR_ENOENT when it has none. */
apr_status_t mdl_session_find(mdl_db_t *db, const char *id, mdl_session_t *session, apr_pool_t *p);

typedef struct {
    const mdl_signed_file_t *link;   /* asset_id 0: the archive */
    const apr_array_header_t *files; /* apr_int64_t: one download of each is taken, or of none */
    int limit;                       /* of the assignment; 0: unlimited */
    const char *etag;
    apr_int64_t size;
    int whole;   /* all of it is asked for */
    int patient; /* the caller can ask again when running transfers may have ended by then */
    apr_interval_time_t lifetime;
    apr_interval_time_t idle;
    const char *lease_id;    /* of this process */
    apr_time_t leased_until; /* what to renew the lease to; 0: not to */
    const char *transfer_id;
    mdl_entitlement_t entitlement; /* out, like all that follow: OK, EXHAUSTED, LINK_OLD when its
                                      time is over, CAPPED, CROWDED or, if patient, UNSETTLED */
    apr_int64_t generation;
    const char *why; /* how it counts; NULL when no transaction came so far */
} mdl_session_begin_t;

/**
 * Begins a transfer just before its first byte, in a transaction of its own.  If one download is
 * left and 50 sessions begin at once, one of them gets it.
 */
apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p);

/** What a transfer has delivered, so far or in the end. */
typedef struct {
    const char *transfer_id;
    const char *session_id;
    apr_int64_t generation;
    const mdl_coverage_t *coverage;
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

/** A session of an order, for people to see. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    mdl_session_status_t status;
    apr_int64_t bytes;
    apr_int64_t size;
    apr_int64_t transfers;
    apr_time_t opened_at;
    apr_time_t updated_at;
} mdl_session_view_t;

/** Asks for the last sessions of an order. */
apr_status_t mdl_session_ask_list(mdl_db_t *db, apr_int64_t order_id, int limit, mdl_rows_t **rows,
                                  apr_pool_t *p);

/** Reads them: mdl_session_view_t, newest first. */
apr_array_header_t *mdl_session_read_list(mdl_rows_t *rows, apr_pool_t *p);

#endif
