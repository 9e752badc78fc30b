/*
 * What a download session that is over has cost: for each file that it reserved a download of,
 * whether that is charged or given back.
 *
 * A file is charged once all its bytes were delivered.  The files of an archive are judged one by
 * one: a customer who lacks nothing but the end of the archive has every file.
 *
 * What was delivered of a file that is given back is remembered for its assignment and added up:
 * two halves by two links are one download.  Bytes that make MDL_DOWNLOAD_FACTOR times the size are
 * one, too; else a part that nobody asks for would make the rest free for ever.
 */
#ifndef MDL_CORE_DOWNLOAD_SETTLEMENT_H
#define MDL_CORE_DOWNLOAD_SETTLEMENT_H

#include "core/download/coverage.h"
#include "db/db.h"

#define MDL_DOWNLOAD_FACTOR 3 /* bytes that one download may send, in sizes of the whole */

/** What a session is for, and the downloads that it has reserved. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    const char *etag;
    apr_int64_t size;
    const char *files;          /* JSON array of asset ids: one download of each */
    const char *charged_places; /* the places in files of those that were charged before, as the
                                   text of a coverage */
    apr_time_t opened_at;       /* of the link's first session */
} mdl_reservation_t;

typedef struct {
    apr_array_header_t *charged;    /* apr_int64_t: assets whose download is charged now */
    apr_array_header_t *returned;   /* and those whose download is given back */
    mdl_coverage_t *charged_places; /* with those that were charged before */
} mdl_settlement_t;

/** Settles a reservation by what was delivered since the session was opened or resumed.  What was
    delivered of a file that is given back is remembered; of one that is charged, it is forgotten.
 */
apr_status_t mdl_settlement_of(mdl_db_t *db, const mdl_reservation_t *reservation,
                               const mdl_coverage_t *delivered, mdl_settlement_t *settlement,
                               apr_pool_t *p);

/** Whether all was delivered, of a file together with what is remembered of it, which is then
    forgotten. */
apr_status_t mdl_settlement_is_whole(mdl_db_t *db, const mdl_reservation_t *reservation,
                                     const mdl_coverage_t *delivered, int *whole, apr_pool_t *p);

#endif
