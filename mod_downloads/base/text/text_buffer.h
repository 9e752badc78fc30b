/*
 * A growing text.  Not an apr_bucket_brigade, because apr-util 1.6 makes a bucket of nearly 500
 * bytes for each write, however short.
 */
#ifndef MDL_BASE_TEXT_TEXT_BUFFER_H
#define MDL_BASE_TEXT_TEXT_BUFFER_H

#include <apr_pools.h>

typedef struct mdl_text_buffer_t mdl_text_buffer_t;

#define MDL_TEXT_BUFFER_FIRST 16384
#define MDL_TEXT_BUFFER_PIECE 65536

/** Makes an empty buffer, which lives as long as p. */
mdl_text_buffer_t *mdl_text_buffer_make(apr_pool_t *p);

/** Consumes the beginning of bytes, which a NUL follows, and returns how many bytes it took; the
    rest is passed again with the next bytes.  If last, nothing follows, and the rest is dropped. */
typedef apr_size_t mdl_text_buffer_take_t(void *baton, const char *bytes, apr_size_t length,
                                          int last);

/** Makes a buffer that passes its bytes to take: the first ones once there are
    MDL_TEXT_BUFFER_FIRST of them, so that they leave early, and later ones by about
    MDL_TEXT_BUFFER_PIECE. */
mdl_text_buffer_t *mdl_text_buffer_make_passing(mdl_text_buffer_take_t *take, void *baton,
                                                apr_pool_t *p);

/** Passes the rest to take, if any.  Nothing may be written afterwards. */
void mdl_text_buffer_end(mdl_text_buffer_t *buffer);

void mdl_text_buffer_write(mdl_text_buffer_t *buffer, const char *bytes, apr_size_t length);
void mdl_text_buffer_put(mdl_text_buffer_t *buffer, const char *text);

/** The text, with a closing NUL; valid until the next write.  length may be NULL. */
const char *mdl_text_buffer_text(const mdl_text_buffer_t *buffer, apr_size_t *length);

#endif
