/*
 * A running answer that sends bytes of a body, and what of them was delivered.
 *
 * What the filter passes on has a position in the answer: the header, parts of the body, and what
 * separates them.  Marks tell at which byte of the connection a position was reached, so how
 * far the connection's bytes have come tells which parts the client has.  Where that is not known
 * to the byte, as with TLS and HTTP/2, it is rounded up.
 *
 * All transfers of this process are in one list, for its settler; a mutex guards it.
 */
#ifndef MDL_METERING_TRANSFER_H
#define MDL_METERING_TRANSFER_H

#include <httpd.h>

#include "core/download/coverage.h"

#define MDL_TRANSFER_ID 22 /* letters */

typedef struct mdl_transfer_t mdl_transfer_t;

/** Sends what earlier answers left in httpd's hands: it would be taken for the next one's, and
   their transfers have to end before it is decided whether that is another download.
   APR_ECONNABORTED for a stream whose connection is gone. */
apr_status_t mdl_transfer_flush(conn_rec *c);

/** Begins one just before the answer to r, for a row of the database.  It ends with r's pool. */
mdl_transfer_t *mdl_transfer_begin(request_rec *r, const char *id, const char *session_id,
                                   apr_int64_t generation);

/* For the filter, in the order in which things are passed. */

/** Marks what was passed so far; to be called before the next piece is passed. */
void mdl_transfer_mark(mdl_transfer_t *transfer);

/** That a part of the body is passed. */
void mdl_transfer_add_part(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** That the client has a part of the body once it has all that was passed. */
void mdl_transfer_add_rest(mdl_transfer_t *transfer, apr_int64_t offset, apr_int64_t length);

/** That other bytes are passed. */
void mdl_transfer_add_other(mdl_transfer_t *transfer, apr_uint64_t length);

/** Whether it has to end, for the customer may not have the file any more. */
int mdl_transfer_is_cut(const mdl_transfer_t *transfer);

/* For the settler. */

/** What was delivered so far, or in the end. */
typedef struct {
    const char *id;
    const char *session_id;
    apr_int64_t generation;
    mdl_coverage_t *coverage;
    apr_int64_t bytes;
} mdl_transfer_view_t;

/** How many run, and how many have ended. */
void mdl_transfer_count(int *running, int *ended);

/** Those that run and moved since they were looked at last, limit at most. */
apr_array_header_t *mdl_transfer_moved(int limit, apr_pool_t *p);

/** Those that have ended and whose end is known, limit at most: they stay until they are removed.
 *waiting says how many others are still on their way. */
apr_array_header_t *mdl_transfer_settled(int limit, int *waiting, apr_pool_t *p);

void mdl_transfer_remove(const char *id);

/** Cuts all that run, as this process ends. */
void mdl_transfer_end_all(void);

/** Cuts the transfer of that id; true when there is one that was not cut before. */
int mdl_transfer_cut(const char *id);

/** Resets the connections of those that were cut for a while and have not ended. */
void mdl_transfer_reset_stalled(void);

#endif
