/*
 * A reservation: the downloads that an open session holds.  They count as used until they are
 * charged or given back (session.h).
 */
#ifndef MDL_CORE_DOWNLOAD_RESERVATION_H
#define MDL_CORE_DOWNLOAD_RESERVATION_H

#include "core/download/progress.h"
#include "db/db.h"

typedef struct {
    apr_int64_t assignment_id;
    const char *session_id;
    apr_int64_t generation;
    const apr_array_header_t *files; /* mdl_progress_t: those not whole hold a download */
    int is_running; /* whether it has a transfer, small parts without a row left aside; otherwise it
                       may be resumed, or released to another link (session_settle.h) */
} mdl_reservation_t;

/** Reads the reservations (mdl_reservation_t *) of assignments (apr_int64_t), among the 100 newest
    sessions of each. */
apr_status_t mdl_reservations_read(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                   apr_array_header_t **reservations, apr_pool_t *p);

/** Whether it holds a download of a file; asset_id 0: of any file. */
int mdl_reservation_holds(const mdl_reservation_t *reservation, apr_int64_t asset_id);

#endif
