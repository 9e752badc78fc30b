/*
 * Compression: DEFLATE (RFC 1951) by libdeflate, preceded by the uncompressed length.
 */
#ifndef MDL_BASE_DEFLATE_H
#define MDL_BASE_DEFLATE_H

#include <apr_errno.h>
#include <apr_pools.h>

/** Compresses up to 1 GiB into p; *packed gets the compressed length. */
const void *mdl_deflate(const void *data, apr_size_t length, apr_size_t *packed, apr_pool_t *p);

/** Decompresses mdl_deflate's output into p and appends a NUL; APR_EINVAL for anything else, and
    for more than most bytes. */
apr_status_t mdl_inflate(const void *data, apr_size_t length, apr_size_t most, const char **text,
                         apr_size_t *unpacked, apr_pool_t *p);

#endif
