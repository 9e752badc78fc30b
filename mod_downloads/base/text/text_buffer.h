/*
 * A text that grows at its end.  An apr_bucket_brigade is no place to collect one: apr-util 1.6
 * makes a bucket of nearly 500 bytes for each write, however short.
 */
#ifndef MDL_BASE_TEXT_TEXT_BUFFER_H
#define MDL_BASE_TEXT_TEXT_BUFFER_H

#include <apr_pools.h>

typedef struct mdl_text_buffer_t mdl_text_buffer_t;

#define MDL_TEXT_BUFFER_PIECE 65536

/** An empty one, which lives as long as p. */
mdl_text_buffer_t *mdl_text_buffer_make(apr_pool_t *p);

/** Takes the first bytes of a text, behind which is a NUL, and returns how many it took; the others
    are given again with what follows them.  last: nothing does, and the rest is dropped. */
typedef apr_size_t mdl_text_buffer_take_t(void *baton, const char *bytes, apr_size_t length,
                                          int last);

/** One that keeps no more than some MDL_TEXT_BUFFER_PIECE bytes and gives what was written before
    to take. */
mdl_text_buffer_t *mdl_text_buffer_make_passing(mdl_text_buffer_take_t *take, void *baton,
                                                apr_pool_t *p);

/** Gives take the rest, unless all was given; nothing is written after it. */
void mdl_text_buffer_end(mdl_text_buffer_t *buffer);

void mdl_text_buffer_write(mdl_text_buffer_t *buffer, const char *bytes, apr_size_t length);
void mdl_text_buffer_put(mdl_text_buffer_t *buffer, const char *text);

/** What was written, with a NUL behind it; valid until more is.  length may be NULL. */
const char *mdl_text_buffer_text(const mdl_text_buffer_t *buffer, apr_size_t *length);

#endif
