#include "base/zip/crc32.h"

#include <libdeflate.h>

apr_uint32_t mdl_crc32(apr_uint32_t crc, const void *data, apr_size_t length)
{
    /* libdeflate_crc32() restarts for a NULL buffer, even in mid-stream. */
    return length == 0 ? crc : libdeflate_crc32(crc, data, length);
}
