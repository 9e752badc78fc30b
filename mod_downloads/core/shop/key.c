#include "core/shop/key.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/zip/crc32.h"
#include "base/text/utf8.h"

#define PREFIX          "adk_live_"
#define PREFIX_LENGTH   (sizeof PREFIX - 1)
#define CHECKSUM_LENGTH 6

const char *const mdl_key_scope_names[] = {[MDL_KEY_SCOPE_READ] = "read",
                                           [MDL_KEY_SCOPE_DELIVER] = "deliver",
                                           [MDL_KEY_SCOPE_FULL] = "full",
                                           NULL};

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static void token_checksum(const char *text, apr_size_t length, char checksum[CHECKSUM_LENGTH + 1])
{
    apr_uint32_t crc = mdl_crc32(0, text, length);

    for (int i = CHECKSUM_LENGTH - 1; i >= 0; i--) {
        checksum[i] = base62[crc % 62];
        crc /= 62;
    }
    checksum[CHECKSUM_LENGTH] = '\0';
}

int mdl_token_parse(const char *text, mdl_token_t *token)
{
    const apr_size_t body = PREFIX_LENGTH + MDL_KEY_ID_LENGTH + 1 + MDL_KEY_SECRET_LENGTH;
    const char *id = text + PREFIX_LENGTH;
    const char *secret = id + MDL_KEY_ID_LENGTH + 1;
    char checksum[CHECKSUM_LENGTH + 1];

    if (strlen(text) != body + CHECKSUM_LENGTH || memcmp(text, PREFIX, PREFIX_LENGTH) != 0 ||
        strspn(id, base62) != MDL_KEY_ID_LENGTH || secret[-1] != '_' ||
        strspn(secret, base62) != MDL_KEY_SECRET_LENGTH + CHECKSUM_LENGTH) {
        return 0;
    }
    token_checksum(text, body, checksum);
    if (memcmp(text + body, checksum, CHECKSUM_LENGTH) != 0) {
        return 0;
    }
    apr_cpystrn(token->id, id, sizeof token->id);
    apr_cpystrn(token->secret, secret, sizeof token->secret);
    return 1;
}

void mdl_token_mac(const mdl_secret_t *secret, const mdl_token_t *token,
                   unsigned char mac[MDL_SHA256_LENGTH])
{
    mdl_secret_mac(secret, "api-key", token->secret, MDL_KEY_SECRET_LENGTH, mac);
}

static apr_status_t key_check_shop(mdl_db_t *db, mdl_key_create_t *create, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, &row, p, MDL_Q(API_KEY_LOCK_SHOP, create->key.shop_id));
    if (rv == APR_ENOENT) {
        return mdl_problem_set(create->problem, 404, "not_found", "There is no such shop.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (mdl_rows_enum(row, 0, mdl_shop_status_names) != MDL_SHOP_APPROVED) {
        return mdl_problem_set(create->problem, 403, "shop_not_approved",
                               "The shop must be approved before it can have keys.");
    }
    rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(API_KEY_COUNT_LIVE, .shop_id = create->key.shop_id, .now = apr_time_now()));
    if (rv == APR_SUCCESS && mdl_rows_int(row, 0) >= MDL_KEYS_PER_SHOP) {
        return mdl_problem_set(create->problem, 409, "too_many_keys",
                               "The shop has 10 live keys; revoke one first.");
    }
    return rv;
}

apr_status_t mdl_key_create(mdl_db_t *db, apr_pool_t *p, mdl_key_create_t *create)
{
    mdl_key_t *key = &create->key;
    unsigned char mac[MDL_SHA256_LENGTH];
    char checksum[CHECKSUM_LENGTH + 1];
    mdl_token_t token;
    const char *body;
    apr_status_t rv;

    if (strlen(key->name) > MDL_KEY_NAME_MAX) {
        return mdl_problem_set(create->problem, 400, "key_name_too_long",
                               "This name is too long: shorten it to 25 characters.");
    }
    if (!mdl_utf8_is_name(key->name, MDL_KEY_NAME_MAX)) {
        return mdl_problem_set(create->problem, 400, "invalid_key_name",
                               "Give the key a name, in one line.");
    }
    if ((rv = key_check_shop(db, create, p)) != APR_SUCCESS) {
        return rv;
    }
    key->id = mdl_random_base62(MDL_KEY_ID_LENGTH, p);
    key->created_at = apr_time_now();
    apr_cpystrn(token.secret, mdl_random_base62(MDL_KEY_SECRET_LENGTH, p), sizeof token.secret);
    body = apr_pstrcat(p, PREFIX, key->id, "_", token.secret, NULL);
    token_checksum(body, strlen(body), checksum);
    create->token = apr_pstrcat(p, body, checksum, NULL);
    mdl_token_mac(create->secret, &token, mac);
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(API_KEY_INSERT, .id = key->id, .shop_id = key->shop_id,
                             .name = key->name, .scope = mdl_key_scope_names[key->scope],
                             .secret_mac = mdl_base64url(mac, sizeof mac, p),
                             .secret_id = mdl_secret_id(create->secret),
                             .created_at = key->created_at, .expires_at = key->expires_at));
}

static mdl_key_t *key_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_key_t *key = apr_pcalloc(p, sizeof *key);

    MDL_READ(row, api_key, key, id, shop_id, name, created_at, last_used_at, expires_at,
             revoked_at);
    key->scope = MDL_ENUM(row, api_key, scope, mdl_key_scope_names);
    return key;
}

apr_status_t mdl_key_revoke(mdl_db_t *db, apr_pool_t *p, mdl_key_revoke_t *revoke)
{
    apr_int64_t changed;
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_exec(
        db, &changed, p,
        MDL_Q(API_KEY_REVOKE, .now = apr_time_now(), .id = revoke->id, .shop_id = revoke->shop_id));
    if (rv == APR_SUCCESS && changed > 0) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(API_KEY_BY_ID, revoke->id));
    if (rv == APR_SUCCESS) {
        revoke->key = key_of_row(row, p);
    }
    if (rv == APR_ENOENT ||
        (rv == APR_SUCCESS && revoke->shop_id != 0 && revoke->key->shop_id != revoke->shop_id)) {
        return mdl_problem_set(revoke->problem, 404, "not_found", "There is no such key.");
    }
    return rv == APR_SUCCESS && changed == 0
               ? mdl_problem_set(revoke->problem, 409, "already_revoked",
                                 "The key is revoked already.")
               : rv;
}

apr_status_t mdl_key_list(mdl_db_t *db, apr_pool_t *p, mdl_key_list_t *list)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(API_KEY_LIST, list->shop_id));

    list->keys = apr_array_make(p, MDL_KEYS_PER_SHOP, sizeof(mdl_key_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(list->keys, mdl_key_t *) = key_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_key_epoch(mdl_db_t *db, apr_pool_t *p, apr_int64_t *epoch)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EPOCH_READ));

    if (rv == APR_SUCCESS) {
        *epoch = mdl_rows_int(row, 0);
    }
    return rv;
}

apr_status_t mdl_key_look_up(mdl_db_t *db, apr_pool_t *p, mdl_key_look_up_t *look_up)
{
    mdl_key_record_t *record = &look_up->record;
    mdl_rows_t *row;
    apr_status_t rv;

    memset(record, 0, sizeof *record);
    if ((rv = mdl_key_epoch(db, p, &record->epoch)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(API_KEY_VERIFY, look_up->id));
    if (rv == APR_ENOENT) {
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    record->known = mdl_base64url_decode(record->mac, sizeof record->mac,
                                         MDL_TEXT(row, api_key_verify, secret_mac)) == APR_SUCCESS;
    record->key.id = look_up->id;
    record->key.shop_id = MDL_INT(row, api_key_verify, shop_id);
    record->key.scope = MDL_ENUM(row, api_key_verify, scope, mdl_key_scope_names);
    record->key.name = MDL_TEXT(row, api_key_verify, key_name);
    MDL_READ(row, api_key_verify, &record->key, expires_at, revoked_at);
    MDL_READ(row, api_key_verify, record, shop_name, secret_id);
    record->shop_domain = MDL_TEXT(row, api_key_verify, domain);
    record->shop_status = MDL_ENUM(row, api_key_verify, status, mdl_shop_status_names);
    record->shop_blocked = !MDL_NULL(row, api_key_verify, blocked_at);
    return APR_SUCCESS;
}

apr_status_t mdl_key_sign(mdl_db_t *db, apr_pool_t *p, const mdl_key_sign_t *sign)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(API_KEY_SIGN,
                             .secret_mac = mdl_base64url(sign->mac, MDL_SHA256_LENGTH, p),
                             .secret_id = sign->secret_id, .id = sign->id,
                             .old_mac = mdl_base64url(sign->before, MDL_SHA256_LENGTH, p)));
}

apr_status_t mdl_key_touch(mdl_db_t *db, apr_pool_t *p, const mdl_key_touch_t *touch)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(API_KEY_TOUCH, .last_used_at = touch->used_at, .id = touch->id));
}
