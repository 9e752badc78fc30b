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
    const apr_array_header_t *files; /* mdl_progress_t: it holds a download of each that is not
                                        whole */
    int is_running; /* a transfer of it runs; otherwise it may go on, or be released to another
                       link (session_settle.h).  A small part may run all the same */
} mdl_reservation_t;

/** Reads those of assignments (apr_int64_t), of each among its 100 newest sessions:
    mdl_reservation_t *. */
apr_status_t mdl_reservations_read(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                   apr_array_header_t **reservations, apr_pool_t *p);

/** Whether it holds a download of a file, or with 0 of any file. */
int mdl_reservation_holds(const mdl_reservation_t *reservation, apr_int64_t asset_id);

#endif
