/*
 * A transfer: a response that sends a body's bytes, and which of them were delivered.
 *
 * Every byte that the output filter passes has a position in the response: header, parts of the
 * body, separators.  A mark records how many bytes the connection had sent when a position was
 * passed, so the number of bytes that reached the client tells which parts it has.  Where that is
 * not exact, as with TLS and HTTP/2, it is rounded up.
 *
 * The process's transfers are in two lists, running and ended, guarded by a mutex, for the
 * settler's thread (settler.h).
 */
#ifndef MDL_METERING_TRANSFER_H
#define MDL_METERING_TRANSFER_H

#include <httpd.h>

#include "core/download/session_settle.h"

#define MDL_TRANSFER_ID_LENGTH 22

typedef struct mdl_transfer_t mdl_transfer_t;

typedef void mdl_transfer_wake_fn(void);

/** Registers the function that wakes the settler, called from any thread: when a first transfer
    begins or any ends.  Call it before any transfer begins. */
void mdl_transfer_on_change(mdl_transfer_wake_fn *wake);

/**
 * Prepares a transfer for the response to r.  Flushes httpd's buffered bytes of earlier responses
 * on the connection: they would be counted as this transfer's, and the earlier transfers must end
 * before it is decided whether this is another download.  NULL for a stream whose connection is
 * gone, and, logged, if no descriptor is left.
 */
mdl_transfer_t *mdl_transfer_make(request_rec *r);

/** Begins a transfer just before the response to r; it ends with r's pool.  of, without files or
    bytes, is copied; body is the files' layout, and must live until mdl_transfer_end_body, or as
    long as r. */
void mdl_transfer_begin(mdl_transfer_t *transfer, request_rec *r, const mdl_session_delivery_t *of,
                        const mdl_layout_t *body);

/* --- for the output filter, in the order in which things are passed --- */

/** Sets a mark at the current position; call it before passing the next piece. */
void mdl_transfer_mark(mdl_transfer_t *transfer);

/** Notes a part of the body that is passed on. */
void mdl_transfer_add_part(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** Notes a part of the body that the client has once it has all bytes passed so far. */
void mdl_transfer_add_rest(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** Notes bytes that are passed on and are not part of the body. */
void mdl_transfer_add_other(mdl_transfer_t *transfer, apr_uint64_t length);

/** Notes that no more parts of the body follow. */
void mdl_transfer_end_body(mdl_transfer_t *transfer);

/** Whether the transfer must end, because the customer has lost access to the file. */
int mdl_transfer_is_cut(const mdl_transfer_t *transfer);

/* --- for the settler --- */

/** Whether any transfer is running, and whether any has ended. */
void mdl_transfer_any(int *running, int *ended);

/** Returns the progress (mdl_session_delivery_t) of running transfers that moved since the last
    call, and of those without a row, at most limit of each. */
apr_array_header_t *mdl_transfer_moved(int limit, apr_pool_t *p);

/** Notes that these results of mdl_transfer_moved have rows now. */
void mdl_transfer_written(const apr_array_header_t *deliveries);

/** Returns the final deliveries (mdl_session_delivery_t) of ended transfers, at most limit; they
    stay until removed.  *waiting gets the number of ended transfers without a final delivery. */
apr_array_header_t *mdl_transfer_settled(int limit, int *waiting, apr_pool_t *p);

/** Removes a transfer that mdl_transfer_settled returned. */
void mdl_transfer_remove(const char *id);

/** Cuts a transfer; true if it is running and was not cut before. */
int mdl_transfer_cut(const char *id);

/** Resets the connections of transfers that were cut 2.5 seconds ago and have not ended. */
void mdl_transfer_reset_stalled(void);

/** At the end of the process: cuts all running and later transfers, because a thread that waits for
    its client would keep the process alive.  The kernel still delivers ended transfers. */
void mdl_transfer_end_all(void);

#endif
