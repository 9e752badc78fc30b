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

/* How many of the tokens with one character replaced are accepted. */
static int corruptions_taken(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);
    mdl_token_t token;
    int taken = 0;

    for (size_t i = 0; copy[i] != '\0'; i++) {
        for (int c = 1; c < 256; c++) {
            if ((char)c != text[i]) {
                copy[i] = (char)c;
                taken += mdl_token_parse(copy, &token);
            }
        }
        copy[i] = text[i];
    }
    return taken;
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
    is_int(length, 75, "a token is adk_live_, 16 characters, _ and 49");
    ok(strncmp(text, "adk_live_", 9) == 0 && text[25] == '_', "in their places");
    is_int(strspn(text + 9, base62), 16, "the key id is of base 62");
    is_int(strspn(text + 26, base62), 49, "the secret too");
    is_str(text + 69, checksum, "its last six are the CRC-32 of all before them");
    ok(mdl_token_parse(text, &token), "it can be taken apart");
    ok(strncmp(token.id, text + 9, 16) == 0 && strlen(token.id) == 16, "into the key id");
    ok(strncmp(token.secret, text + 26, 43) == 0 && strlen(token.secret) == 43,
       "and the secret without the checksum");
    is_int(corruptions_taken(text, p), 0, "with any one character changed it is refused");
    ok(!mdl_token_parse("", &token), "an empty one is refused");
    ok(!mdl_token_parse(apr_pstrmemdup(p, text, 74), &token), "a shorter one is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, text, "0", NULL), &token), "a longer one is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, " ", text, NULL), &token), "one after a space is refused");
    ok(!mdl_token_parse(apr_pstrcat(p, "adk_test_", text + 9, NULL), &token),
       "one of another prefix is refused");
}

static void test_mac(const char *text, const mdl_key_record_t *record, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];
    mdl_token_t token;

    mdl_token_parse(text, &token);
    mdl_token_mac(secret, &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) == 0, "the MAC of its secret is what is kept");
    token.secret[42] = token.secret[42] == 'a' ? 'b' : 'a';
    mdl_token_mac(secret, &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) != 0, "another secret has another MAC");
    mdl_token_parse(text, &token);
    mdl_token_mac(make_secret('o', p), &token, mac);
    ok(memcmp(mac, record->mac, sizeof mac) != 0, "as it has under another server's secret");
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
    is_int(record.key.shop_id, shop, "with its shop");
    is_int(record.shop_status, MDL_SHOP_APPROVED, "that shop's status");
    is_str(record.shop_domain, "keys.test", "and domain");
    is_int(record.key.scope, MDL_KEY_SCOPE_FULL, "its scope");
    is_int(record.key.expires_at, key.key.expires_at, "its end");
    is_int(record.key.revoked_at, 0, "and that it is not revoked");
    is_int(record.epoch, epoch(db, p), "and the epoch");
    ok(!look_up(db, "0000000000000000", p).known, "an id that there is not is not known");
}

static void test_refused(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_key_create_t key = new_key(shop, p);

    key.key.name = "";
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key without a name is refused");
    is_int(key.problem->status, 400, "with 400");
    key = new_key(shop, p);
    key.key.name = memset(apr_pcalloc(p, 102), 'n', 101);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a name of 101 bytes is refused");
    key = new_key(shop + 1000, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key of no shop is refused");
    is_int(key.problem->status, 404, "with 404");
    key = new_key(shop, p);
    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "a key of a suspended shop is refused");
    is_str(key.problem->code, "shop_not_approved", "because it is not approved");
    is_int(key.problem->status, 403, "with 403");
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
    is_str(APR_ARRAY_IDX(list.keys, 9, mdl_key_t *)->id, key.key.id, "listed oldest first");
    key = new_key(shop, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "the eleventh is refused");
    is_int(key.problem->status, 409, "with 409");

    revoke.id = APR_ARRAY_IDX(list.keys, 9, mdl_key_t *)->id;
    mdl_db_write(db, mdl_key_revoke_effect, &revoke, p);
    key = new_key(shop, p);
    is_int(create(db, &key, p), APR_SUCCESS, "a revoked key makes room");
    key = new_key(shop, p);
    is_int(create(db, &key, p), MDL_EPROBLEM, "for one");
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(120));
    key = new_key(shop, p);
    is_int(create(db, &key, p), APR_SUCCESS, "an expired key makes room");
    key = new_key(make_shop(db, "others.test", p), p);
    is_int(create(db, &key, p), APR_SUCCESS, "other shops' keys don't count");
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
    ok(revoked_at > 0, "now");
    is_int(look_up(db, key.key.id, p).key.revoked_at, revoked_at, "which its record says");
    is_int(epoch(db, p), before + 1, "and the epoch has moved");
    is_int(mdl_db_write(db, mdl_key_revoke_effect, &revoke, p), APR_SUCCESS, "again is no error");
    is_int(revoke.key->revoked_at, revoked_at, "and changes nothing");
    is_int(epoch(db, p), before + 1, "not the epoch either");
    revoke.id = "0000000000000000";
    is_int(mdl_db_write(db, mdl_key_revoke_effect, &revoke, p), MDL_EPROBLEM,
           "a key that there is not is refused");
    is_int(revoke.problem->status, 404, "with 404");
}

static void test_approval(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    apr_int64_t before = epoch(db, p);

    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(epoch(db, p), before + 1, "to suspend a shop moves the epoch");
    set_shop_status(db, shop, MDL_SHOP_SUSPENDED, p);
    is_int(epoch(db, p), before + 1, "again does not");
    set_shop_status(db, shop, MDL_SHOP_APPROVED, p);
    is_int(epoch(db, p), before + 2, "to approve it does");
    is_int(set_shop_status(db, shop + 1000, MDL_SHOP_APPROVED, p), MDL_EPROBLEM,
           "a shop that there is not is refused");
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
