/*
 * Texts that the database keeps for nobody but this server: AES-256-GCM (NIST SP 800-38D) under a
 * key that is derived from the server's secret.
 */
#ifndef MDL_BASE_SEAL_H
#define MDL_BASE_SEAL_H

#include "base/crypto.h"

/**
 * Seals text under the key that belongs to purpose, a short constant.  owner says whom it belongs
 * to: only with the same owner it can be opened, so that a sealed text is of no use in another's
 * row.  The result is printable ASCII in p, another one each time.
 */
const char *mdl_seal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                     const char *text, apr_pool_t *p);

/** Opens what mdl_seal has made.  APR_EINVAL when it was changed, belongs to another owner, or was
    sealed with another secret: which of them can't be told. */
apr_status_t mdl_unseal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                        const char *sealed, const char **text, apr_pool_t *p);

#endif
