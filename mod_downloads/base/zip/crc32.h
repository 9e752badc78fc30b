/*
 * CRC-32 (ISO-HDLC, as ZIP and zlib use it) by libdeflate.
 */
#ifndef MDL_BASE_ZIP_CRC32_H
#define MDL_BASE_ZIP_CRC32_H

#include <apr.h>

/** Continues crc (0 to begin) over length bytes of data. */
apr_uint32_t mdl_crc32(apr_uint32_t crc, const void *data, apr_size_t length);

#endif
