#include "base/deflate.h"

#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>

#include "base/log.h"

#define LEVEL 1
#define HEAD  sizeof(apr_uint32_t)

/* Out of memory ends the process, as in APR's pools. */
static void __attribute__((noreturn)) deflate_give_up(void)
{
    mdl_log(MDL_LOG_ERR, 0, "MDL0903: there is no memory to pack an answer, the process ends");
    abort();
}

const void *mdl_deflate(const void *data, apr_size_t length, apr_size_t *packed, apr_pool_t *p)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
    apr_uint32_t head = (apr_uint32_t)length;
    apr_size_t room;
    char *to;

    if (compressor == NULL) {
        deflate_give_up();
    }
    room = libdeflate_deflate_compress_bound(compressor, length);
    to = apr_palloc(p, HEAD + room);
    memcpy(to, &head, HEAD);
    *packed = HEAD + libdeflate_deflate_compress(compressor, data, length, to + HEAD, room);
    libdeflate_free_compressor(compressor);
    return to;
}

apr_status_t mdl_inflate(const void *data, apr_size_t length, apr_size_t most, const char **text,
                         apr_size_t *unpacked, apr_pool_t *p)
{
    struct libdeflate_decompressor *decompressor;
    enum libdeflate_result result;
    apr_uint32_t head;
    char *to;

    if (length < HEAD) {
        return APR_EINVAL;
    }
    memcpy(&head, data, HEAD);
    if (head > most) {
        return APR_EINVAL;
    }
    decompressor = libdeflate_alloc_decompressor();
    if (decompressor == NULL) {
        deflate_give_up();
    }
    to = apr_palloc(p, (apr_size_t)head + 1);
    result = libdeflate_deflate_decompress(decompressor, (const char *)data + HEAD, length - HEAD,
                                           to, head, NULL);
    libdeflate_free_decompressor(decompressor);
    to[head] = '\0';
    *text = to;
    *unpacked = head;
    return result == LIBDEFLATE_SUCCESS ? APR_SUCCESS : APR_EINVAL;
}
