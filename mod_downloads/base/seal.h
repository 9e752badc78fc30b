/*
 * Texts in the database that only this server can read: AES-256-GCM (NIST SP 800-38D) under a key
 * that is derived from the server's secret.
 */
#ifndef MDL_BASE_SEAL_H
#define MDL_BASE_SEAL_H

#include "base/crypto.h"

/**
 * Seals bytes under the key that belongs to purpose, a short constant.  They can be opened only
 * with the same owner, so a sealed text is useless in another's row.  The result is printable ASCII
 * in p and different each time.
 */
const char *mdl_seal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                     const void *data, apr_size_t size, apr_pool_t *p);

/**
 * The same, but equal for equal bytes under one secret, purpose and owner: what is sealed is found,
 * and kept unique, by its sealed text.  The nonce is made of the bytes by HMAC-SHA-256, as a
 * synthetic initialization vector (RFC 8452 has the idea).
 */
const char *mdl_seal_alike(const mdl_secret_t *secret, const char *purpose, const char *owner,
                           const void *data, apr_size_t size, apr_pool_t *p);

/** How many bytes a sealed text holds; 0 for none. */
apr_size_t mdl_sealed_size(const char *sealed);

/** Opens a sealed text, with any of the secrets; *data lives in p, with a NUL behind its *length
    bytes.  Returns APR_EINVAL when it was changed, belongs to another owner or was sealed with
    another secret; which of these can't be told. */
apr_status_t mdl_unseal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                        const char *sealed, const char **data, apr_size_t *length, apr_pool_t *p);

/** Seals anew what the first secret does not open, but an older one: *renewed, NULL for what the
    first does.  APR_EINVAL as mdl_unseal. */
apr_status_t mdl_seal_renew(const mdl_secret_t *secret, const char *purpose, const char *owner,
                            const char *sealed, const char **renewed, apr_pool_t *p);

#endif
