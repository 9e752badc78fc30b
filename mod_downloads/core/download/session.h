/*
 * A download session: what the requests of one link share, and what they cost together (contract,
 * section 8).
 *
 * It begins with the first bytes that a link sends, which reserves one download of each of its
 * files, and is pinned to the entity tag and the size of that moment.  What becomes of the download
 * of each file is in charge.h.  The session is counted once all its files are charged, and returned
 * once it is over without that.  The link's next generation begins when the whole is asked for
 * again after it was counted, or when what the link sends has changed.
 */
#ifndef MDL_CORE_DOWNLOAD_SESSION_H
#define MDL_CORE_DOWNLOAD_SESSION_H

#include "core/download/charge.h"
#include "core/download/progress.h"
#include "db/db.h"

#define MDL_DOWNLOAD_FACTOR 3 /* bytes that one download may send, in sizes of the whole */

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
    const char *files;    /* as text: what it has a download of; a whole one is charged */
    apr_int64_t bytes;    /* with what was delivered twice */
    apr_time_t opened_at; /* the link's first session */
    apr_time_t idle_at;   /* when it ends; 0: a transfer with a row runs, or it is not open */
    int running;          /* transfers: of all generations, or of this one, as the statement says */
    apr_int64_t running_bytes; /* of this generation */
} mdl_session_t;

/** Reads the columns of the row (session_columns, and two numbers) from that one on. */
void mdl_session_read(const mdl_rows_t *row, int column, mdl_session_t *session);

/** The state of a file in a session of that status. */
mdl_charge_state_t mdl_session_charge(mdl_session_status_t status, const mdl_progress_t *file);

/** A session of an order, for people to see. */
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
} mdl_session_view_t;

/** Asks for the last sessions of an order that are behind a place in their list; NULL: from the
    newest on. */
apr_status_t mdl_session_ask_list(mdl_db_t *db, apr_int64_t order_id, const char *place, int limit,
                                  mdl_rows_t **rows, apr_pool_t *p);

/** The place of a session in the list of its order. */
const char *mdl_session_place(const mdl_session_view_t *session, apr_pool_t *p);

/** Reads them: mdl_session_view_t *, newest first. */
apr_array_header_t *mdl_session_read_list(mdl_rows_t *rows, apr_pool_t *p);

#endif
