/*
 * Whether the server's secret is the one that signed what the database has; and its replacement:
 * what still hangs on an older one, and its end.
 */
#ifndef MDL_CORE_SHOP_SECRET_H
#define MDL_CORE_SHOP_SECRET_H

#include "base/crypto.h"
#include "db/db.h"

/** Effect: notes since when the first secret signs, unless that is known. */
apr_status_t mdl_secret_note(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p);

/** Effect that reads whether the secrets are those with which this database's keys and pages were
    signed.  They count as others when none of the live keys is theirs, and either some are
   another's or there are orders and another one has served them. */
typedef struct {
    const mdl_secret_t *secret;
    int is_other;            /* out, as all that follows */
    apr_int64_t keys;        /* live ones that one of the secrets has signed */
    apr_int64_t strange;     /* live ones of another secret, which get 401 */
    apr_int64_t lost_tokens; /* of storefronts, sealed with another one */
    int lost_data_key;       /* core/shop/data_key.h */
} mdl_secret_signed_t;
apr_status_t mdl_secret_signed(mdl_db_t *db, apr_pool_t *p, mdl_secret_signed_t *of);

/** What is wrong by what mdl_secret_signed has found, and what to do, in a sentence; NULL: nothing.
 */
const char *mdl_secret_trouble(const mdl_secret_signed_t *of, apr_pool_t *p);

/** Effect that counts what the first secret has not signed. */
typedef struct {
    const mdl_secret_t *secret;
    apr_time_t since;      /* out, as all that follows: 0 when not known */
    apr_int64_t keys;      /* live ones: each is signed anew when it is used */
    apr_int64_t pages;     /* orders whose address was sent before since */
    apr_int64_t recent;    /* of these in the last 30 days */
    apr_int64_t tokens;    /* of storefronts */
    apr_int64_t data_keys; /* 0 or 1: core/shop/data_key.h */
} mdl_secret_status_t;
apr_status_t mdl_secret_status(mdl_db_t *db, apr_pool_t *p, mdl_secret_status_t *status);

/** Effect: seals anew what an older secret has sealed, and revokes the live keys that it has
    signed. */
typedef struct {
    const mdl_secret_t *secret;
    apr_int64_t keys; /* out */
    apr_int64_t tokens;
    apr_int64_t lost; /* tokens that none of the secrets opens */
    apr_int64_t data_keys;
    apr_int64_t lost_data_keys;
} mdl_secret_retire_t;
apr_status_t mdl_secret_retire(mdl_db_t *db, apr_pool_t *p, mdl_secret_retire_t *retire);

#endif
