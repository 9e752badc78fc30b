#include "base/text/text_buffer.h"

#include <stdlib.h>
#include <string.h>

struct mdl_text_buffer_t {
    char *bytes;
    apr_size_t length;
    apr_size_t room;              /* without the NUL */
    mdl_text_buffer_take_t *take; /* or NULL */
    void *baton;
    apr_size_t due; /* the length at which take is called next */
};

static apr_status_t text_buffer_free(void *data)
{
    free(((mdl_text_buffer_t *)data)->bytes);
    return APR_SUCCESS;
}

/* By realloc: a pool would keep every earlier, smaller buffer. */
static void text_buffer_reserve(mdl_text_buffer_t *buffer, apr_size_t room)
{
    char *bytes = realloc(buffer->bytes, room + 1);

    if (bytes == NULL) {
        abort();
    }
    buffer->bytes = bytes;
    buffer->room = room;
}

mdl_text_buffer_t *mdl_text_buffer_make(apr_pool_t *p)
{
    mdl_text_buffer_t *buffer = apr_pcalloc(p, sizeof *buffer);

    text_buffer_reserve(buffer, 1023);
    *buffer->bytes = '\0';
    apr_pool_cleanup_register(p, buffer, text_buffer_free, apr_pool_cleanup_null);
    return buffer;
}

mdl_text_buffer_t *mdl_text_buffer_make_passing(mdl_text_buffer_take_t *take, void *baton,
                                                apr_pool_t *p)
{
    mdl_text_buffer_t *buffer = mdl_text_buffer_make(p);

    buffer->take = take;
    buffer->baton = baton;
    buffer->due = MDL_TEXT_BUFFER_FIRST;
    return buffer;
}

static void text_buffer_pass(mdl_text_buffer_t *buffer, int last)
{
    apr_size_t taken = buffer->take(buffer->baton, buffer->bytes, buffer->length, last);

    if (last) {
        return;
    }
    buffer->length -= taken;
    memmove(buffer->bytes, buffer->bytes + taken, buffer->length + 1);
    buffer->due = buffer->length + MDL_TEXT_BUFFER_PIECE;
}

void mdl_text_buffer_write(mdl_text_buffer_t *buffer, const char *bytes, apr_size_t length)
{
    if (length > buffer->room - buffer->length) {
        text_buffer_reserve(buffer, 2 * buffer->room + length);
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    if (buffer->take != NULL && buffer->length >= buffer->due) {
        text_buffer_pass(buffer, 0);
    }
}

void mdl_text_buffer_end(mdl_text_buffer_t *buffer)
{
    text_buffer_pass(buffer, 1);
}

void mdl_text_buffer_put(mdl_text_buffer_t *buffer, const char *text)
{
    mdl_text_buffer_write(buffer, text, strlen(text));
}

const char *mdl_text_buffer_text(const mdl_text_buffer_t *buffer, apr_size_t *length)
{
    if (length != NULL) {
        *length = buffer->length;
    }
    return buffer->bytes;
}
