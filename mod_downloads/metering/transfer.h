/*
 * A running response that sends bytes of a body, and which of them were delivered.
 *
 * What the output filter passes on has a position in the response: its header, parts of the body,
 * and what separates them.  A mark notes how many bytes the connection had sent when a position was
 * reached; so the number of bytes that have come to the client tells which parts it has.  Where
 * that is not known to the byte, as with TLS and HTTP/2, it is rounded up.
 *
 * All transfers of this process are in two lists, of those that run and those that have ended,
 * guarded by a mutex, for the thread that settles them (settler.h).
 */
#ifndef MDL_METERING_TRANSFER_H
#define MDL_METERING_TRANSFER_H

#include <httpd.h>

#include "core/download/session_settle.h"

#define MDL_TRANSFER_ID_LENGTH 22

typedef struct mdl_transfer_t mdl_transfer_t;

typedef void mdl_transfer_wake_fn(void);

/** Registers what is called, from any thread, when there is something to do for the settler: a
   first transfer has begun, or one has ended.  Before any transfer begins. */
void mdl_transfer_on_change(mdl_transfer_wake_fn *wake);

/**
 * Makes a transfer ready that may begin with the response to r.  Flushes what httpd still holds of
 * earlier responses on the connection: it would be counted as this one's, and their transfers have
 * to end before it is decided whether this one is another download.  NULL for a stream whose
 * connection is gone, and with a log line when no descriptor is left.
 */
mdl_transfer_t *mdl_transfer_make(request_rec *r);

/** Begins it just before the response to r, with whose pool it ends.  of, which has no files or
    bytes yet, is copied; body says which files are where, and lives until mdl_transfer_end_body, or
    as long as r. */
void mdl_transfer_begin(mdl_transfer_t *transfer, request_rec *r, const mdl_session_delivery_t *of,
                        const mdl_layout_t *body);

/* --- for the output filter, in the order in which things are passed --- */

/** Sets a mark at what was passed so far; to be called before the next piece is passed. */
void mdl_transfer_mark(mdl_transfer_t *transfer);

/** A part of the body is passed. */
void mdl_transfer_add_part(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** The client has this part of the body once it has all that was passed. */
void mdl_transfer_add_rest(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** Notes bytes that are passed on but are not part of the body. */
void mdl_transfer_add_other(mdl_transfer_t *transfer, apr_uint64_t length);

/** No more parts of the body will be passed. */
void mdl_transfer_end_body(mdl_transfer_t *transfer);

/** Whether the transfer must end, since the customer has lost access to the file. */
int mdl_transfer_is_cut(const mdl_transfer_t *transfer);

/* --- for the settler --- */

/** Whether any transfer runs, and whether any has ended. */
void mdl_transfer_any(int *running, int *ended);

/** Returns the progress of running transfers since the last call, and of those that have no row:
    mdl_session_delivery_t, at most limit of each kind. */
apr_array_header_t *mdl_transfer_moved(int limit, apr_pool_t *p);

/** These, which mdl_transfer_moved returned, have rows now. */
void mdl_transfer_written(const apr_array_header_t *deliveries);

/** Returns what ended transfers have delivered: mdl_session_delivery_t, at most limit.  They stay
    until they are removed.  *waiting gets the number of ended transfers whose delivery is not known
    yet. */
apr_array_header_t *mdl_transfer_settled(int limit, int *waiting, apr_pool_t *p);

/** Removes one that mdl_transfer_settled returned. */
void mdl_transfer_remove(const char *id);

/** Cuts the transfer of that id; true if it runs and was not cut before. */
int mdl_transfer_cut(const char *id);

/** Resets the connections of those that were cut 2.5 seconds ago and have not ended. */
void mdl_transfer_reset_stalled(void);

/** Ends all, for this process ends.  Those that run, and later ones, are cut: a thread that waits
    for its client would keep the process alive.  The kernel delivers what has ended. */
void mdl_transfer_end_all(void);

#endif
