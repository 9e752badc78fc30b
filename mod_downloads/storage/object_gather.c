#include "storage/object_gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/zip/crc32.h"
#include "storage/private.h"

#define FIRST_ROOM 65536
#define COPY_SIZE  65536

struct mdl_object_gather_t {
    const char *folder;
    apr_int64_t size;
    char *memory;
    apr_size_t room; /* of memory */
    int fd;          /* -1: none yet */
};

static apr_status_t gather_cleanup(void *data)
{
    mdl_object_gather_t *gather = data;

    free(gather->memory);
    if (gather->fd >= 0) {
        close(gather->fd);
    }
    return APR_SUCCESS;
}

mdl_object_gather_t *mdl_object_gather_create(const char *folder, apr_pool_t *p)
{
    mdl_object_gather_t *gather = apr_pcalloc(p, sizeof *gather);

    gather->folder = folder;
    gather->fd = -1;
    apr_pool_cleanup_register(p, gather, gather_cleanup, apr_pool_cleanup_null);
    return gather;
}

apr_int64_t mdl_object_gather_size(const mdl_object_gather_t *gather)
{
    return gather->size;
}

static apr_status_t file_put(mdl_object_gather_t *gather, apr_int64_t at, const char *data,
                             apr_size_t length)
{
    if (gather->fd < 0) {
        gather->fd = open(gather->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    if (gather->fd < 0) {
        return mdl_storage_status(errno);
    }
    while (length > 0) {
        ssize_t n = pwrite(gather->fd, data, length, (off_t)at);

        if (n == 0 || (n < 0 && errno != EINTR)) {
            return n == 0 ? APR_ENOSPC : mdl_storage_status(errno);
        }
        if (n > 0) {
            data += n;
            at += n;
            length -= (apr_size_t)n;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t memory_put(mdl_object_gather_t *gather, apr_int64_t at, const char *data,
                               apr_size_t length)
{
    apr_size_t needed = (apr_size_t)at + length, room = gather->room;

    while (room < needed) {
        room = room == 0 ? FIRST_ROOM : room * 2;
    }
    if (room > gather->room) {
        char *larger = realloc(gather->memory, room);

        if (larger == NULL) {
            return APR_ENOMEM;
        }
        gather->memory = larger;
        gather->room = room;
    }
    memcpy(gather->memory + at, data, length);
    return APR_SUCCESS;
}

apr_status_t mdl_object_gather_put(mdl_object_gather_t *gather, apr_int64_t at, const char *data,
                                   apr_size_t length)
{
    apr_status_t rv = gather->folder != NULL ? file_put(gather, at, data, length)
                                             : memory_put(gather, at, data, length);
    apr_int64_t end = at + (apr_int64_t)length;

    if (rv == APR_SUCCESS && end > gather->size) {
        gather->size = end;
    }
    return rv;
}

void mdl_object_gather_resize(mdl_object_gather_t *gather, apr_int64_t size)
{
    gather->size = size;
}

apr_status_t mdl_object_gather_body(mdl_object_gather_t *gather, apr_int64_t from,
                                    mdl_sha256_t *whole, apr_uint32_t *crc32,
                                    mdl_object_body_t *body, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_sha256_t *own = mdl_sha256_begin(p);
    char copy[COPY_SIZE];

    for (apr_int64_t at = from; at < gather->size;) {
        apr_int64_t left = gather->size - at;
        ssize_t length = left < COPY_SIZE ? (ssize_t)left : COPY_SIZE;
        const char *bytes = copy;

        if (gather->fd < 0) {
            bytes = gather->memory + at;
        } else if ((length = pread(gather->fd, copy, (size_t)length, (off_t)at)) <= 0) {
            return length < 0 ? mdl_storage_status(errno) : APR_EOF;
        }
        mdl_sha256_update(own, bytes, (apr_size_t)length);
        if (whole != NULL) {
            mdl_sha256_update(whole, bytes, (apr_size_t)length);
            *crc32 = mdl_crc32(*crc32, bytes, (apr_size_t)length);
        }
        at += length;
    }
    mdl_sha256_end(own, digest);
    *body = (mdl_object_body_t){.fd = gather->fd,
                                .offset = from,
                                .length = gather->size - from,
                                .sha256 = mdl_hex(digest, sizeof digest, p)};
    if (gather->fd < 0) {
        body->bytes = gather->memory != NULL ? gather->memory + from : "";
    }
    return APR_SUCCESS;
}

char *mdl_object_gather_release(mdl_object_gather_t *gather)
{
    char *memory = gather->memory;

    gather->memory = NULL;
    gather->room = 0;
    gather->size = 0;
    return memory;
}
