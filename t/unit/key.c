#include "t/unit/fixtures.h"

#include "base/zip/crc32.h"
#include "core/shop/key.h"
#include "t/unit/effects.h"

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static mdl_secret_t *secret;

static mdl_key_create_t new_key(apr_int64_t shop_id, apr_pool_t *p)
{
    return (mdl_key_create_t){
        .secret = secret,
        .key = {.shop_id = shop_id, .name = "till", .scope = MDL_KEY_SCOPE_FULL},
        .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
}

static apr_status_t create(mdl_db_t *db, mdl_key_create_t *key, apr_pool_t *p)
{
    return mdl_db_write(db, mdl_key_create_effect, key, p);
}

static apr_int64_t epoch(mdl_db_t *db, apr_pool_t *p)
{
    apr_int64_t n = -1;

    mdl_db_read(db, mdl_key_epoch_effect, &n, p);
    return n;
}

static mdl_key_record_t look_up(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    mdl_key_look_up_t look_up = {.id = id};

    mdl_db_read(db, mdl_key_look_up_effect, &look_up, p);
    return look_up.record;
}

/* The number of accepted tokens among those with one character replaced. */
static int corruptions_accepted(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);
    mdl_token_t token;
    int accepted = 0;

    for (size_t i = 0; copy[i] != '\0'; i++) {
        for (int c = 1; c < 256; c++) {
            if ((char)c != text[i]) {
                copy[i] = (char)c;
                accepted += mdl_token_parse(copy, &token);
            }
        }
        copy[i] = text[i];
    }
    return accepted;
}

static void test_token(const char *text, apr_pool_t *p)
{
    apr_size_t length = strlen(text);
    apr_uint32_t crc = mdl_crc32(0, text, 69);
    char checksum[7] = "";
    mdl_token_t token;

    for (int i = 5; i >= 0; i--, crc /= 62) {
        checksum[i] = base62[crc % 62];
    }
    is_int(length, 75, "a token has 75 characters");
    ok(strncmp(text, "adk_live_", 9) == 0 && text[25] == '_',
       "it begins with adk_live_, and _ separates the key id from the secret");
    is_int(strspn(text + 9, base62), 16, "the key id is base 62");
    is_int(strspn(text + 26, base62), 49, "the secret and the checksum are base 62");
    is_str(text + 69, checksum, "the last six characters are the CRC-32 of the others");
    ok(mdl_token_parse(text, &token), "the token is parsed");
    ok(strncmp(token.id, text + 9, 16) == 0 && strlen(token.id) == 16, "the key id is returned");
    ok(strncmp(token.secret, text + 26, 43) == 0 && strlen(token.secret) == 43,
       "the secret is returned without the checksum");
    is_int(corruptions_accepted(text, p), 0, "a token with any one character changed is refused");
    ok(!mdl_token_parse("", &token), "an empty token is refused");
    ok(!mdl_token_parse(apr_pstrmemdup(p, text, 74), &token), "a shorter token is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, text, "0", NULL), &token), "a longer token is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, " ", text, NULL), &token),
       "a token after a space is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, "adk_test_", text + 9, NULL), &token),
       "a token with another prefix is refused");
}

static void test_mac(const char *text, const mdl_key_record_t *record, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];
    mdl_token_t token;

    mdl_token_parse(text, &token);
    mdl_token_mac(secret, &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) == 0, "the record has the MAC of the secret");
    token.secret[42] = token.secret[42] == 'a' ? 'b' : 'a';
    mdl_token_mac(secret, &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) != 0, "another secret has another MAC");
    mdl_token_parse(text, &token);
    mdl_token_mac(make_secret('o', p), &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) != 0, "another server's secret gives another MAC");
}

static void test_create(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);
    mdl_key_record_t record;

    key.key.expires_at = apr_time_now() + apr_time_from_sec(60);
    is_int(create(db, &key, p), APR_SUCCESS, "a key is created");
    test_token(key.token, p);
    record = look_up(db, key.key.id, p);
    ok(record.known, "its record is found by its id");
    test_mac(key.token, &record, p);
    is_int(record.key.shop_id, shop, "the record has its shop");
    is_int(record.shop_status, MDL_SHOP_APPROVED, "the record has the shop's status");
    is_str(record.shop_domain, "keys.test", "the record has the shop's domain");
    is_int(record.key.scope, MDL_KEY_SCOPE_FULL, "the record has its scope");
    is_int(record.key.expires_at, key.key.expires_at, "the record has its end");
    is_int(record.key.revoked_at, 0, "the record says that it is not revoked");
    is_int(record.epoch, epoch(db, p), "the record has the epoch");
    ok(!look_up(db, "0000000000000000", p).known, "a key id that does not exist is unknown");
}

static void test_refused(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);

    key.key.name = "";
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key without a name is refused");
    is_int(key.problem->status, 400, "the status is 400");
    key = new_key(shop, p);
    key.key.name = memset(apr_pcalloc(p, 102), 'n', 101);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a name of 101 bytes is refused");
    key = new_key(shop + 1000, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key of an unknown shop is refused");
    is_int(key.problem->status, 404, "the status is 404");
    key = new_key(shop, p);
    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key of a suspended shop is refused");
    is_str(key.problem->code, "shop_not_approved", "the code says that the shop is not approved");
    is_int(key.problem->status, 403, "the status is 403");
    set_shop_status(db, shop, MDL_SHOP_APPROVED, p);
}

static void test_limit(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);
    mdl_key_list_t list = {.shop_id = shop};
    mdl_key_revoke_t revoke = {.problem = apr_pcalloc(p, sizeof(mdl_problem_t))};

    mdl_db_read(db, mdl_key_list_effect, &list, p);
    for (int n = list.keys->nelts; n < MDL_KEYS_PER_SHOP; n++) {
        key = new_key(shop, p);
        create(db, &key, p);
    }
    mdl_db_read(db, mdl_key_list_effect, &list, p);
    is_int(list.keys->nelts, 10, "a shop can have ten keys");
    is_str(APR_ARRAY_IDX(list.keys, 9, mdl_key_t *)->id, key.key.id,
           "the keys are listed oldest first");
    key = new_key(shop, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "an eleventh key is refused");
    is_int(key.problem->status, 409, "the status is 409");

    revoke.id = APR_ARRAY_IDX(list.keys, 9, mdl_key_t *)->id;
    mdl_db_write(db, mdl_key_revoke_effect, &revoke, p);
    key = new_key(shop, p);
    is_int(create(db, &key, p), APR_SUCCESS, "a key can be created after another is revoked");
    key = new_key(shop, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "only one key can be created instead");
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(120));
    key = new_key(shop, p);
    is_int(create(db, &key, p), APR_SUCCESS, "a key can be created after another has expired");
    key = new_key(make_shop(db, "others.test", p), p);
    is_int(create(db, &key, p), APR_SUCCESS, "the keys of other shops do not count");
}

static void test_revoke(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);
    mdl_key_revoke_t revoke = {.problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    apr_int64_t before;
    apr_time_t revoked_at;

    create(db, &key, p);
    before = epoch(db, p);
    revoke.id = key.key.id;
    is_int(mdl_db_write(db, mdl_key_revoke_effect, &revoke, p), APR_SUCCESS, "a key is revoked");
    revoked_at = revoke.key->revoked_at;
    ok(revoked_at > 0, "the time of its revocation is returned");
    is_int(look_up(db, key.key.id, p).key.revoked_at, revoked_at, "the record has that time");
    is_int(epoch(db, p), before + 1, "the epoch has increased");
    is_int(mdl_db_write(db, mdl_key_revoke_effect, &revoke, p), MDL_EPROBLEM,
           "it can't be revoked again");
    is_int(revoke.problem->status, 409, "the status is 409");
    is_int(revoke.key->revoked_at, revoked_at, "the time of its revocation stays");
    is_int(epoch(db, p), before + 1, "the epoch stays");
    revoke.id = "0000000000000000";
    is_int(mdl_db_write(db, mdl_key_revoke_effect, &revoke, p), MDL_EPROBLEM,
           "an unknown key can't be revoked");
    is_int(revoke.problem->status, 404, "the status is 404");
}

static void test_approval(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    apr_int64_t before = epoch(db, p);

    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(epoch(db, p), before + 1, "suspending a shop increases the epoch");
    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(epoch(db, p), before + 1, "suspending it again does not");
    set_shop_status(db, shop, MDL_SHOP_APPROVED, p);
    is_int(epoch(db, p), before + 2, "approving it increases the epoch");
    is_int(set_shop_status(db, shop + 1000, MDL_SHOP_APPROVED, p), MDL_EPROBLEM,
           "the status of an unknown shop can't be set");
}

static void test_touch(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);
    mdl_key_list_t list = {.shop_id = shop};
    mdl_key_touch_t touch = {.used_at = 2000};

    create(db, &key, p);
    touch.id = key.key.id;
    mdl_db_write(db, mdl_key_touch_effect, &touch, p);
    touch.used_at = 1000;
    mdl_db_write(db, mdl_key_touch_effect, &touch, p);
    mdl_db_read(db, mdl_key_list_effect, &list, p);
    is_int(APR_ARRAY_IDX(list.keys, 0, mdl_key_t *)->last_used_at, 2000,
           "the last use of a key never goes back");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    mdl_db_t *db = database_ready(database, p);
    apr_int64_t shop = make_shop(db, "keys.test", p);

    test_create(db, shop, p);
    test_refused(db, shop, p);
    test_limit(db, shop, p);
    test_revoke(db, make_shop(db, "revoke.test", p), p);
    test_approval(db, shop, p);
    test_touch(db, make_shop(db, "touch.test", p), p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    on_each_database(tests, p);
    return tap_end(p);
}
