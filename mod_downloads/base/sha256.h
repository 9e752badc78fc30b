/*
 * An incremental SHA-256 (FIPS 180-4), which another process can go on with.
 */
#ifndef MDL_BASE_SHA256_H
#define MDL_BASE_SHA256_H

#include <apr_errno.h>
#include <apr_pools.h>

#define MDL_SHA256_LENGTH 32

typedef struct mdl_sha256_t mdl_sha256_t;

/** Begins a digest, in p. */
mdl_sha256_t *mdl_sha256_begin(apr_pool_t *p);

void mdl_sha256_update(mdl_sha256_t *sha, const void *data, apr_size_t length);

/** Writes the digest and resets sha for the next one. */
void mdl_sha256_end(mdl_sha256_t *sha, unsigned char digest[MDL_SHA256_LENGTH]);

/** Bytes of a saved state. */
#define MDL_SHA256_STATE_LENGTH 40

/** Saves the state behind a multiple of 64 bytes, in a form that is the same on every machine.
    APR_EINVAL behind any other number of bytes. */
apr_status_t mdl_sha256_save(const mdl_sha256_t *sha, unsigned char state[MDL_SHA256_STATE_LENGTH]);

/** Goes on from a saved state, whatever sha has digested before.  APR_EINVAL, and sha is unchanged,
    if it is no such state. */
apr_status_t mdl_sha256_restore(mdl_sha256_t *sha,
                                const unsigned char state[MDL_SHA256_STATE_LENGTH]);

#endif
