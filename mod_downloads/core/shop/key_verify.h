/*
 * Verifies an API token and finds its caller (contract, section 2): by the cache of verified keys
 * while its epoch is current, else by the database.
 */
#ifndef MDL_CORE_SHOP_KEY_VERIFY_H
#define MDL_CORE_SHOP_KEY_VERIFY_H

#include "core/shop/key_cache.h"

typedef enum {
    MDL_KEY_VALID,
    MDL_KEY_INVALID,           /* missing, malformed, unknown, wrong, expired or revoked */
    MDL_KEY_SHOP_NOT_APPROVED, /* valid, but of a shop that may not use the API */
    MDL_KEY_SHOP_BLOCKED       /* valid, but of a shop that the operator blocks */
} mdl_key_validity_t;

typedef struct {
    const mdl_secret_t *secret;
    mdl_key_cache_t *cache;
    /** Runs an effect on a database connection; not called when the cache suffices. */
    apr_status_t (*run)(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg);
    void *baton;
    mdl_key_validity_t validity; /* out */
    mdl_caller_t caller;         /* out: all if the key is valid; no shop_id if its shop is not */
} mdl_key_verify_t;

/**
 * Verifies a token; NULL is invalid.  Asks the database, and returns what run returns, if the cache
 * does not have the key or has not heard of the epoch for 2 s. The time taken does not tell an
 * unknown key from a wrong secret.
 */
apr_status_t mdl_key_verify(mdl_key_verify_t *verify, const char *token);

#endif
