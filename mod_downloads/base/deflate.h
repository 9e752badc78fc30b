/*
 * Bytes made smaller: DEFLATE (RFC 1951) by libdeflate, behind the length of what it unpacks to.
 */
#ifndef MDL_BASE_DEFLATE_H
#define MDL_BASE_DEFLATE_H

#include <apr_errno.h>
#include <apr_pools.h>

/** Packs up to 1 GiB, into p. */
const void *mdl_deflate(const void *data, apr_size_t length, apr_size_t *packed, apr_pool_t *p);

/** Unpacks what mdl_deflate made, with a NUL behind it, into p; APR_EINVAL for anything else, and
    for more than most bytes. */
apr_status_t mdl_inflate(const void *data, apr_size_t length, apr_size_t most, const char **text,
                         apr_size_t *unpacked, apr_pool_t *p);

#endif
