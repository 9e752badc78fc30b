/*
 * An API key: adk_live_<keyId>_<secret> (contract, section 2).  The database has the key id and an
 * HMAC of the secret; the token is shown only once.
 */
#ifndef MDL_CORE_SHOP_KEY_H
#define MDL_CORE_SHOP_KEY_H

#include "base/crypto.h"
#include "core/problem.h"
#include "core/shop/shop.h"
#include "db/db.h"

#define MDL_KEY_ID_LENGTH     16
#define MDL_KEY_SECRET_LENGTH 43
#define MDL_KEYS_PER_SHOP     10
#define MDL_KEY_NAME_MAX      100 /* bytes */

/** READ: reads, except what opens a download.  DELIVER: reads everything.  FULL: also writes. */
typedef enum { MDL_KEY_SCOPE_READ, MDL_KEY_SCOPE_DELIVER, MDL_KEY_SCOPE_FULL } mdl_key_scope_t;
extern const char *const mdl_key_scope_names[];

typedef struct {
    const char *id;
    apr_int64_t shop_id;
    const char *name;
    mdl_key_scope_t scope;
    apr_time_t created_at;
    apr_time_t last_used_at; /* 0: never, like the next two */
    apr_time_t expires_at;
    apr_time_t revoked_at;
} mdl_key_t;

/** The parts of a token. */
typedef struct {
    char id[MDL_KEY_ID_LENGTH + 1];
    char secret[MDL_KEY_SECRET_LENGTH + 1];
} mdl_token_t;

/** Parses a token; false when its form or its checksum is wrong. */
int mdl_token_parse(const char *text, mdl_token_t *token);

/** The MAC of a token's secret, under the server's secret. */
void mdl_token_mac(const mdl_secret_t *secret, const mdl_token_t *token,
                   unsigned char mac[MDL_SHA256_LENGTH]);

/**
 * Effect: creates a key.  Refused: 404 not_found, 403 shop_not_approved, 409 when the shop has
 * MDL_KEYS_PER_SHOP live keys, 400 for an invalid name.
 */
typedef struct {
    const mdl_secret_t *secret;
    mdl_key_t key;     /* in: shop_id, name, scope, expires_at; out: all */
    const char *token; /* out */
    mdl_problem_t *problem;
} mdl_key_create_t;
apr_status_t mdl_key_create(mdl_db_t *db, apr_pool_t *p, mdl_key_create_t *create);

/** Effect: revokes a key and moves the epoch.  Refused: 404, also when it is not the shop's; 409
    when it is already revoked. */
typedef struct {
    const char *id;
    apr_int64_t shop_id; /* 0: any shop */
    mdl_key_t *key;      /* out */
    mdl_problem_t *problem;
} mdl_key_revoke_t;
apr_status_t mdl_key_revoke(mdl_db_t *db, apr_pool_t *p, mdl_key_revoke_t *revoke);

/** Effect: reads the keys of a shop (mdl_key_t *), oldest first. */
typedef struct {
    apr_int64_t shop_id;
    apr_array_header_t *keys; /* out */
} mdl_key_list_t;
apr_status_t mdl_key_list(mdl_db_t *db, apr_pool_t *p, mdl_key_list_t *list);

/** What the database knows of a key. */
typedef struct {
    int known;
    unsigned char mac[MDL_SHA256_LENGTH];
    const char *secret_id; /* of the server's secret that made mac (mdl_secret_id) */
    mdl_key_t key;
    const char *shop_name;
    const char *shop_domain;
    mdl_shop_status_t shop_status;
    int shop_blocked;
    apr_int64_t epoch; /* read before the key, so as not to miss a revocation in between */
} mdl_key_record_t;

/** Effect: reads a record; known is 0 for an unknown id. */
typedef struct {
    const char *id;
    mdl_key_record_t record; /* out */
} mdl_key_look_up_t;
apr_status_t mdl_key_look_up(mdl_db_t *db, apr_pool_t *p, mdl_key_look_up_t *look_up);

/** Effect: replaces the MAC of a key, unless it is no longer before. */
typedef struct {
    const char *id;
    const char *secret_id;
    const unsigned char *before; /* MDL_SHA256_LENGTH bytes, like mac */
    const unsigned char *mac;
} mdl_key_sign_t;
apr_status_t mdl_key_sign(mdl_db_t *db, apr_pool_t *p, const mdl_key_sign_t *sign);

/** Effect: reads the epoch. */
apr_status_t mdl_key_epoch(mdl_db_t *db, apr_pool_t *p, apr_int64_t *epoch);

/** Effect: records when a key was used. */
typedef struct {
    const char *id;
    apr_time_t used_at;
} mdl_key_touch_t;
apr_status_t mdl_key_touch(mdl_db_t *db, apr_pool_t *p, const mdl_key_touch_t *touch);

#endif
