/*
 * A download session: the requests of one link share it, and it decides what they cost together
 * (contract, section 8).
 *
 * A session begins when a link is about to send its first bytes.  It reserves one download of each
 * of the link's files, and is pinned to the current entity tag and size.  charge.h has what happens
 * to each download.  The session is counted once all its files are charged, and returned if it ends
 * before that.  The link begins another session, its next generation, when the whole is requested
 * again after it was counted, or when the link's content has changed.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_H
#define MDL_CORE_DOWNLOAD_SESSION_H

#include "core/download/charge.h"
#include "core/download/progress.h"
#include "db/db.h"

#define MDL_DOWNLOAD_FACTOR 3 /* a download may send this many times its size */

typedef enum { MDL_SESSION_OPEN, MDL_SESSION_COUNTED, MDL_SESSION_RETURNED } mdl_session_status_t;
extern const char *const mdl_session_status_names[];

typedef struct {
    const char *id; /* of the link */
    apr_int64_t generation;
    mdl_session_status_t status;
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    const char *etag;
    apr_int64_t size;
    const char *files;    /* as text: files with a download; whole ones are charged */
    apr_int64_t bytes;    /* delivered, repeated bytes included */
    apr_time_t opened_at; /* of the link's first session */
    apr_time_t idle_at;   /* when it ends; 0: it has a transfer with a row, or is not open */
    int running; /* transfers, of all generations or of this one, depending on the statement */
    apr_int64_t running_bytes; /* of this generation */
} mdl_session_t;

/** Reads session_columns, running and running_bytes from a row, from column on. */
void mdl_session_read(const mdl_rows_t *row, int column, mdl_session_t *session);

/** The state of a file in a session with this status. */
mdl_charge_state_t mdl_session_charge(mdl_session_status_t status, const mdl_progress_t *file);

/** A session as people see it in their order. */
typedef struct {
    const char *id;
    apr_int64_t generation;
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    mdl_session_status_t status;
    apr_int64_t bytes;
    apr_int64_t size;
    apr_int64_t transfers;
    apr_time_t opened_at;
    apr_time_t updated_at;
    apr_time_t ended_at; /* when its last transfer was settled; 0: none was */
    apr_int64_t acknowledged;
    apr_int64_t handed_over;
    apr_int64_t version;  /* 0: the archive */
    const char *network;  /* or NULL */
    const char *etag;     /* of a file, its SHA-256 in quotation marks */
    const char *filename; /* as it is now; NULL: the archive */
} mdl_session_view_t;

/** Asks for an order's sessions behind a place in their list; NULL: from the newest on. */
apr_status_t mdl_session_ask_list(mdl_db_t *db, apr_int64_t order_id, const char *place, int limit,
                                  mdl_rows_t **rows, apr_pool_t *p);

/** A session's place in the list of its order. */
const char *mdl_session_place(const mdl_session_view_t *session, apr_pool_t *p);

/** Reads them: mdl_session_view_t *, newest first. */
apr_array_header_t *mdl_session_read_list(mdl_rows_t *rows, apr_pool_t *p);

#endif
