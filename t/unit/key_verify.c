#include "t/unit/fixtures.h"

#include "base/zip/crc32.h"
#include "core/shop/key_verify.h"
#include "t/unit/effects.h"

#define MS   APR_TIME_C(1000)
#define HOUR apr_time_from_sec(3600)

/* A verifier whose database can be made unavailable, and which counts the effects that it runs. */
typedef struct {
    mdl_db_t *db; /* NULL: unavailable */
    int effects;
    mdl_key_verify_t verify;
    apr_pool_t *pool;
} verifier_t;

static mdl_secret_t *secret;

static apr_status_t run(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg)
{
    verifier_t *verifier = baton;

    verifier->effects++;
    return verifier->db != NULL ? how(verifier->db, effect, arg, verifier->pool) : MDL_DB_EGONE;
}

static verifier_t *new_verifier(mdl_db_t *db, apr_pool_t *p)
{
    verifier_t *verifier = apr_pcalloc(p, sizeof *verifier);

    verifier->db = db;
    verifier->pool = p;
    verifier->verify = (mdl_key_verify_t){.secret = secret, .run = run, .baton = verifier};
    if (mdl_key_cache_create(&verifier->verify.cache, p) != APR_SUCCESS) {
        printf("Bail out! no cache\n");
        exit(2);
    }
    return verifier;
}

static mdl_key_create_t new_key(mdl_db_t *db, apr_int64_t shop_id, mdl_key_scope_t scope,
                                int lifetime, apr_pool_t *p)
{
    mdl_key_create_t key = {.secret = secret,
                            .key = {.shop_id = shop_id, .name = "till", .scope = scope},
                            .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    key.key.expires_at = lifetime != 0 ? apr_time_now() + apr_time_from_sec(lifetime) : 0;
    is_int(mdl_db_write(db, mdl_key_create_effect, &key, p), APR_SUCCESS, "(a key is created)");
    return key;
}

/* The validity of a token, or -1 for an error of the database; resets verifier->effects. */
static int validity_of(verifier_t *verifier, const char *token)
{
    apr_status_t rv;

    verifier->effects = 0;
    rv = mdl_key_verify(&verifier->verify, token);
    return rv == APR_SUCCESS ? (int)verifier->verify.validity : -1;
}

/* A well-formed token with one key's id and another token's secret. */
static const char *token_of(const char *id, const char *other, apr_pool_t *p)
{
    static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char *token = apr_psprintf(p, "adk_live_%s_%.43s......", id, other + 26);
    apr_uint32_t crc = mdl_crc32(0, token, 69);

    for (int i = 74; i >= 69; i--, crc /= 62) {
        token[i] = base62[crc % 62];
    }
    return token;
}

static void test_valid(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t full = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_create_t read = new_key(db, shop, MDL_KEY_SCOPE_READ, 0, p);
    const mdl_caller_t *caller = &verifier->verify.caller;
    apr_time_t used_at;
    char used[MDL_KEY_ID_LENGTH + 1];
    int index = 0;

    is_int(validity_of(verifier, full.token), MDL_KEY_VALID, "a key is valid");
    is_str(caller->key_id, full.key.id, "its id is returned");
    is_int(caller->shop_id, shop, "its shop is returned");
    is_int(caller->scope, MDL_KEY_SCOPE_FULL, "its scope is full");
    ok(mdl_key_cache_next_used(verifier->verify.cache, &index, used, &used_at),
       "its use is recorded");
    is_str(used, full.key.id, "the recorded use is that of this key");
    is_int(validity_of(verifier, full.token), MDL_KEY_VALID, "it is valid the second time");
    is_int(verifier->effects, 0, "the second time needs no database");
    is_int(caller->shop_id, shop, "the second time has the same shop");
    is_int(validity_of(verifier, read.token), MDL_KEY_VALID, "a key with the scope read is valid");
    is_int(caller->scope, MDL_KEY_SCOPE_READ, "its scope is read");
    is_int(validity_of(verifier, read.token), MDL_KEY_VALID, "it is valid from the cache");
    is_int(caller->scope, MDL_KEY_SCOPE_READ, "its scope is read in the cache, too");
}

static void test_invalid(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_create_t other = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    const char *wrong = token_of(key.key.id, other.token, p);

    is_int(validity_of(verifier, NULL), MDL_KEY_INVALID, "a missing token is invalid");
    is_int(validity_of(verifier, ""), MDL_KEY_INVALID, "an empty token is invalid");
    is_int(validity_of(verifier, "adk_live_nonsense"), MDL_KEY_INVALID,
           "a malformed token is invalid");
    is_int(verifier->effects, 0, "malformed tokens need no database");
    is_int(validity_of(verifier, token_of("0000000000000000", key.token, p)), MDL_KEY_INVALID,
           "an unknown key is invalid");
    is_int(validity_of(verifier, wrong), MDL_KEY_INVALID, "a wrong secret is invalid");
    is_str(verifier->verify.caller.key_id, "", "the key's id is not returned");
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID, "the right secret is valid");
    is_int(validity_of(verifier, wrong), MDL_KEY_INVALID,
           "the wrong secret stays invalid after that");
    is_int(verifier->effects, 1, "a wrong secret takes a query, as an unknown key does");
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID,
           "the right secret stays valid after that");
    is_int(verifier->effects, 0, "it stays in the cache");
}

static void test_expiry(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 60, p);

    is_int(validity_of(verifier, key.token), MDL_KEY_VALID, "a key is valid before its end");
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(59) + 900 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID, "a cached key is valid up to its end");
    atomic_fetch_add(&clock_ahead, 200 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_INVALID,
           "a cached key is invalid after its end");
    is_int(validity_of(new_verifier(db, p), key.token), MDL_KEY_INVALID,
           "a key that is not cached is invalid after its end");
}

static void test_revocation(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_revoke_t revoke = {.id = key.key.id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    validity_of(verifier, key.token);
    mdl_db_write(db, mdl_key_revoke_effect, &revoke, p);
    atomic_fetch_add(&monotonic_ahead, 300 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_INVALID,
           "a revoked key is invalid once the epoch is read again");
    is_str(verifier->verify.caller.key_id, "", "its id is not returned");
}

/* Sets the wall clock while a key is in the cache, then revokes the key. */
static void test_clock_step(mdl_db_t *db, apr_int64_t shop, apr_interval_time_t by, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_revoke_t revoke = {.id = key.key.id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    validity_of(verifier, key.token);
    atomic_fetch_add(&clock_ahead, by);
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID,
           "a key is valid after the clock was set");
    mdl_db_write(db, mdl_key_revoke_effect, &revoke, p);
    atomic_fetch_add(&monotonic_ahead, 300 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_INVALID, "it is invalid once it is revoked");
    atomic_fetch_add(&clock_ahead, -by);
}

static void test_approval(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_create_t other = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);

    validity_of(verifier, key.token);
    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    atomic_fetch_add(&monotonic_ahead, 300 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_SHOP_NOT_APPROVED,
           "a key of a suspended shop is told apart from an invalid one");
    is_str(verifier->verify.caller.key_id, key.key.id, "its id is returned");
    is_int(verifier->verify.caller.shop_id, 0, "its shop is not returned");
    is_int(validity_of(verifier, token_of(key.key.id, other.token, p)), MDL_KEY_INVALID,
           "a wrong secret is invalid for a suspended shop, too");
    set_shop_status(db, shop, MDL_SHOP_APPROVED, p);
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID,
           "the key is valid as soon as the shop is approved");
}

static void test_outage(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    verifier_t *verifier = new_verifier(db, p);
    mdl_key_create_t key = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);
    mdl_key_create_t other = new_key(db, shop, MDL_KEY_SCOPE_FULL, 0, p);

    is_int(validity_of(verifier, key.token), MDL_KEY_VALID, "a key is verified");
    verifier->db = NULL;
    is_int(validity_of(verifier, other.token), -1,
           "another key can't be verified without the database");
    atomic_fetch_add(&monotonic_ahead, 1500 * MS);
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID, "the verified key stays valid for 2 s");
    is_int(verifier->effects, 1, "reading the epoch was tried");
    atomic_fetch_add(&monotonic_ahead, 600 * MS);
    is_int(validity_of(verifier, key.token), -1, "it can't be verified after 2 s");
    verifier->db = db;
    is_int(validity_of(verifier, key.token), MDL_KEY_VALID,
           "it is valid when the database is back");
    is_int(verifier->effects, 1, "only the epoch was read");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *db = database_ready(database, p);

    test_valid(db, make_shop(db, "valid.test", p), p);
    test_invalid(db, make_shop(db, "invalid.test", p), p);
    test_expiry(db, make_shop(db, "expiry.test", p), p);
    test_revocation(db, make_shop(db, "revocation.test", p), p);
    test_clock_step(db, make_shop(db, "back.test", p), -HOUR, p);
    test_clock_step(db, make_shop(db, "forward.test", p), HOUR, p);
    test_approval(db, make_shop(db, "approval.test", p), p);
    test_outage(db, make_shop(db, "outage.test", p), p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    stop_clocks();
    on_each_database(tests, p);
    return tap_end(p);
}
