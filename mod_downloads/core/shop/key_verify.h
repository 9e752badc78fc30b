/*
 * Whether an API token is valid, and whose it is (contract, section 2).  The cache of verified keys
 * answers while its epoch is current, else the database.
 */
#ifndef MDL_CORE_SHOP_KEY_VERIFY_H
#define MDL_CORE_SHOP_KEY_VERIFY_H

#include "core/shop/key_cache.h"

typedef enum {
    MDL_KEY_VALID,
    MDL_KEY_INVALID,           /* missing, malformed, unknown, wrong, expired or revoked */
    MDL_KEY_SHOP_NOT_APPROVED, /* valid, but of a shop that may not use the API */
    MDL_KEY_SHOP_BLOCKED       /* likewise, while the operator blocks all of the shop */
} mdl_key_validity_t;

typedef struct {
    const mdl_secret_t *secret;
    mdl_key_cache_t *cache;
    /** Runs an effect on a connection to the database; not called where the cache suffices. */
    apr_status_t (*run)(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg);
    void *baton;
    mdl_key_validity_t validity; /* out */
    mdl_caller_t caller; /* out: the key's id unless the key is invalid, all if it is valid */
} mdl_key_verify_t;

/**
 * Verifies a token; NULL is an invalid one.  Where the cache does not have the key, or has not
 * heard of the epoch for 2 s, the database is asked, and what run returns is returned.  The time it
 * takes does not tell an unknown key from a wrong secret.
 */
apr_status_t mdl_key_verify(mdl_key_verify_t *verify, const char *token);

#endif
