/*
 * Encryption of values in the database: AES-256-GCM (NIST SP 800-38D) under a key derived from the
 * server's secret.
 */
#ifndef MDL_BASE_SEAL_H
#define MDL_BASE_SEAL_H

#include "base/crypto.h"

/**
 * Encrypts bytes under the key of purpose, a short constant.  owner is authenticated: the text can
 * be opened only with the same owner, so it is useless in another owner's row.  The result is
 * printable ASCII in p and different each time.
 */
const char *mdl_seal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                     const void *data, apr_size_t size, apr_pool_t *p);

/**
 * Deterministic: equal bytes under one secret, purpose and owner give equal texts, so that a sealed
 * value can be looked up and kept unique.  The nonce is an HMAC-SHA-256 of the bytes, a synthetic
 * initialization vector (the idea is from RFC 8452).
 */
const char *mdl_seal_alike(const mdl_secret_t *secret, const char *purpose, const char *owner,
                           const void *data, apr_size_t size, apr_pool_t *p);

/** The number of bytes in a sealed text; 0 if it is too short to be one. */
apr_size_t mdl_sealed_size(const char *sealed);

/** Decrypts a sealed text with any of the secrets; *data lives in p, with a NUL after its *length
    bytes.  Returns APR_EINVAL if the text was changed, or sealed for another owner or with another
    secret; these can't be told apart. */
apr_status_t mdl_unseal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                        const char *sealed, const char **data, apr_size_t *length, apr_pool_t *p);

/** Seals a text again with the first secret if only an older secret opens it: *renewed, in p; NULL
    if the first opens it.  APR_EINVAL as mdl_unseal. */
apr_status_t mdl_seal_renew(const mdl_secret_t *secret, const char *purpose, const char *owner,
                            const char *sealed, const char **renewed, apr_pool_t *p);

#endif
