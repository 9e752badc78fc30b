#include "t/unit/fixtures.h"

#include "core/idempotency.h"
#include "t/unit/effects.h"

#define HOUR apr_time_from_sec(3600)
#define NOW  APR_TIME_C(1700000000000000)

static const mdl_json_t *body(const char *name, apr_pool_t *p)
{
    mdl_json_t *json = mdl_json_object(p);

    mdl_json_add_int(json, name, 1);
    return json;
}

static void test_fingerprint(apr_pool_t *p)
{
    const char *one = mdl_idempotency_fingerprint("POST", "/a", body("bc", p), p);

    is_str(mdl_idempotency_fingerprint("POST", "/a", body("bc", p), p), one,
           "equal requests have the same fingerprint");
    ok(strcmp(mdl_idempotency_fingerprint("PUT", "/a", body("bc", p), p), one) != 0,
       "another method gives another fingerprint");
    ok(strcmp(mdl_idempotency_fingerprint("POST/", "a", body("bc", p), p), one) != 0,
       "moving a byte from the path to the method gives another fingerprint");
    ok(strcmp(mdl_idempotency_fingerprint("POST", "/a", body("bd", p), p), one) != 0,
       "another body gives another fingerprint");
}

static const mdl_secret_t *secret;

static mdl_idempotency_t entry(apr_int64_t shop_id, const char *key)
{
    return (mdl_idempotency_t){.secret = secret,
                               .shop_id = shop_id,
                               .key = key,
                               .fingerprint = "print",
                               .retention = 24 * HOUR,
                               .now = NOW};
}

static void test_store(mdl_db_t *db, apr_int64_t shop, apr_int64_t other_shop, apr_pool_t *p)
{
    mdl_idempotency_t idempotency = entry(shop, "first");
    mdl_idempotency_t elsewhere = entry(other_shop, "first");
    mdl_stored_response_t in = {.status = 201, .location = NULL, .body = "{\"caf\xc3\xa9\":1}"};
    mdl_stored_response_t second = {.status = 202, .location = "https://x.test/1", .body = "{}"};
    mdl_stored_response_t out = {0};

    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_ENOENT,
           "a new key has no stored response");
    is_int(mdl_idempotency_store(db, &idempotency, &in, p), APR_SUCCESS, "a response is stored");
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_SUCCESS, "the response is found");
    is_int(out.status, 201, "its status is returned");
    is_str(out.body, in.body, "its body is returned");
    is_str(out.location, NULL, "a response without a Location has none");
    is_int(mdl_idempotency_store(db, &idempotency, &second, p), MDL_DB_ENULL,
           "a second response is not stored");
    mdl_idempotency_find(db, &idempotency, &out, p);
    is_int(out.status, 201, "the first response stays");

    idempotency.fingerprint = "another";
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_EMISMATCH,
           "the same key with another request is a mismatch");
    is_int(mdl_idempotency_find(db, &elsewhere, &out, p), APR_ENOENT,
           "another shop's key of the same name is another key");
    is_int(mdl_idempotency_store(db, &elsewhere, &second, p), APR_SUCCESS,
           "a response is stored for it");
    mdl_idempotency_find(db, &elsewhere, &out, p);
    is_str(out.location, "https://x.test/1", "its Location is returned");
    elsewhere = entry(other_shop, "First");
    is_int(mdl_idempotency_find(db, &elsewhere, &out, p), APR_ENOENT, "keys are case-sensitive");
}

static void test_expired(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_idempotency_t idempotency = entry(shop, "expiring");
    mdl_stored_response_t in = {.status = 201, .body = "old"};
    mdl_stored_response_t out = {0};

    mdl_idempotency_store(db, &idempotency, &in, p);
    idempotency.now = NOW + 24 * HOUR - 1;
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_SUCCESS,
           "a response is found until the end of its retention");
    is_int(mdl_idempotency_store(db, &idempotency, &in, p), MDL_DB_ENULL,
           "it is not replaced until then");
    idempotency.now = NOW + 24 * HOUR;
    idempotency.fingerprint = "another";
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_ENOENT,
           "it is not found after that");
    in.body = "new";
    is_int(mdl_idempotency_store(db, &idempotency, &in, p), APR_SUCCESS,
           "another response can be stored after that");
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_SUCCESS,
           "a response is found again");
    is_str(out.body, "new", "it is the new response");
}

/* Stored answers are sealed: a copy of the database must not show license keys and addresses. */
static void test_sealed(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_idempotency_t idempotency = entry(shop, "sealed"), large = entry(shop, "large");
    mdl_stored_response_t in = {.status = 200, .etag = "\"7-1.x\"", .body = "{\"AAAA-BBBB\":1}"};
    mdl_stored_response_t big = {.status = 200,
                                 .body = memset(apr_pcalloc(p, 1000001), 'b', 1000000)};
    mdl_stored_response_t out = {0};

    mdl_idempotency_store(db, &idempotency, &in, p);
    mdl_idempotency_find(db, &idempotency, &out, p);
    is_str(out.etag, in.etag, "a response has its ETag");
    mdl_idempotency_store(db, &large, &big, p);
    mdl_idempotency_find(db, &large, &out, p);
    is_str(out.body, big.body, "a large body is the same");
    ok(out.etag == NULL, "without an ETag there is none");
    idempotency.secret = make_secrets("ns", p);
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_SUCCESS,
           "an older secret opens it");
    is_str(out.body, in.body, "with the same body");
    idempotency.secret = make_secret('n', p);
    is_int(mdl_idempotency_find(db, &idempotency, &out, p), APR_EINVAL, "another does not");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *db = database_ready(database, p);
    apr_int64_t shop = make_shop(db, "one.test", p);

    test_store(db, shop, make_shop(db, "two.test", p), p);
    test_expired(db, shop, p);
    test_sealed(db, shop, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    test_fingerprint(p);
    on_each_database(tests, p);
    return tap_end(p);
}
