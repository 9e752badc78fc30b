/*
 * Checks that the server's secret is the one that signed the database's keys and pages; and
 * replaces a secret: counts what still depends on an older secret, and retires it.
 */
#ifndef MDL_CORE_SHOP_SECRET_H
#define MDL_CORE_SHOP_SECRET_H

#include "base/crypto.h"
#include "db/db.h"

/** Effect: records since when the first secret signs, unless that is known. */
apr_status_t mdl_secret_note(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p);

/** Effect: reads whether these secrets signed this database's keys and pages.  They are foreign
    when they signed none of the live keys, and either another secret signed some, or there are
    orders and another secret is on record. */
typedef struct {
    const mdl_secret_t *secret;
    int is_other;            /* out, like all that follows */
    apr_int64_t keys;        /* live keys signed by one of the secrets */
    apr_int64_t strange;     /* live keys signed by another secret: they get 401 */
    apr_int64_t lost_tokens; /* of storefronts, sealed with another secret */
    int lost_data_key;       /* core/shop/data_key.h */
} mdl_secret_signed_t;
apr_status_t mdl_secret_signed(mdl_db_t *db, apr_pool_t *p, mdl_secret_signed_t *of);

/** A sentence on what is wrong after mdl_secret_signed, and what to do; NULL: nothing. */
const char *mdl_secret_trouble(const mdl_secret_signed_t *of, apr_pool_t *p);

/** Effect: counts what the first secret has not signed. */
typedef struct {
    const mdl_secret_t *secret;
    apr_time_t since;      /* out, like all that follows; 0: not known */
    apr_int64_t keys;      /* live keys; each is signed again when it is used */
    apr_int64_t pages;     /* orders whose page was emailed before since */
    apr_int64_t recent;    /* of these, in the last 30 days */
    apr_int64_t tokens;    /* of storefronts */
    apr_int64_t data_keys; /* 0 or 1: core/shop/data_key.h */
} mdl_secret_status_t;
apr_status_t mdl_secret_status(mdl_db_t *db, apr_pool_t *p, mdl_secret_status_t *status);

/** Effect: seals again what an older secret has sealed, and revokes live keys that it signed. */
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
