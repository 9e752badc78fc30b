/*
 * Reading bytes of an object as a stream.  Errors and calls: base/http/object_store.h.
 *
 * While nobody calls, the source stands still: at most 256 KiB are held here, and no timer runs.  A
 * body that is cut, also after hours with a slow client, is asked for again from the next byte.
 */
#ifndef MDL_BASE_HTTP_OBJECT_READER_H
#define MDL_BASE_HTTP_OBJECT_READER_H

#include "base/http/object_store.h"

/** The most that mdl_object_reader_take gives at once, in bytes. */
#define MDL_OBJECT_READER_PIECE 65536

/** One reader belongs to one thread at a time. */
typedef struct mdl_object_reader_t mdl_object_reader_t;

/**
 * Begins to read length bytes from offset on of an object that has total bytes, and sends the first
 * request, which asks for 64 MiB at most; waits for nothing.  call is kept, not copied, and
 * patience bounds the wait for the first answer.  Returns MDL_OBJECT_EAWAY if the store is away and
 * another call asks it.  The reader is closed, at the latest, when p is destroyed.
 */
apr_status_t mdl_object_reader_open(mdl_object_reader_t **reader, mdl_object_store_t *store,
                                    const char *key, apr_int64_t total, apr_int64_t offset,
                                    apr_int64_t length, mdl_object_call_t *call, apr_pool_t *p);

/**
 * Waits for the first answer's headers.  APR_ENOENT, APR_EINCOMPLETE if the object has another size
 * than total, MDL_OBJECT_EBROKEN if the answer is not the range that was asked for.
 */
apr_status_t mdl_object_reader_ready(mdl_object_reader_t *reader);

/**
 * Gives the next bytes, at most MDL_OBJECT_READER_PIECE and, after a wait, no fewer unless the body
 * ends or is cut there; *length is 0 at the end.  *bytes are valid until the next call.  Gives up
 * with MDL_OBJECT_EAWAY after 30 s without a byte.  Calls mdl_object_reader_ready if nobody has.
 */
apr_status_t mdl_object_reader_take(mdl_object_reader_t *reader, const char **bytes,
                                    apr_size_t *length);

/** Ends the request, and gives its connection back.  Closing twice does nothing. */
void mdl_object_reader_close(mdl_object_reader_t *reader);

#endif
