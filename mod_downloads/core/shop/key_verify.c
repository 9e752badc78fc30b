#include "core/shop/key_verify.h"

#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"

typedef struct {
    mdl_token_t token;
    unsigned char macs[MDL_SECRETS_MAX][MDL_SHA256_LENGTH]; /* under each of the server's secrets */
    int nmacs;
    apr_time_t now;      /* by the wall clock */
    apr_time_t asked_at; /* by mdl_clock_monotonic */
} presented_t;

MDL_EFFECT(mdl_key_epoch, apr_int64_t *)
MDL_EFFECT(mdl_key_look_up, mdl_key_look_up_t *)

/* Asks for the epoch if it is this request's turn.  APR_SUCCESS: the cache may be used. */
static apr_status_t key_refresh_epoch(const mdl_key_verify_t *verify, apr_time_t asked_at)
{
    apr_int64_t epoch;
    apr_status_t rv;

    if (mdl_key_cache_state(verify->cache, asked_at) == MDL_EPOCH_CURRENT) {
        return APR_SUCCESS;
    }
    rv = verify->run(verify->baton, mdl_db_read, mdl_key_epoch_effect, &epoch);
    if (rv == APR_SUCCESS) {
        mdl_key_cache_set_epoch(verify->cache, epoch, asked_at);
        return APR_SUCCESS;
    }
    /* The epoch may have expired while this request waited for an answer. */
    return mdl_key_cache_state(verify->cache, mdl_clock_monotonic()) == MDL_EPOCH_EXPIRED
               ? rv
               : APR_SUCCESS;
}

static int key_matches(const presented_t *presented, const unsigned char *mac,
                       apr_time_t expires_at)
{
    int equal = 0;

    for (int i = 0; i < presented->nmacs; i++) {
        equal |= mdl_equal(presented->macs[i], mac, MDL_SHA256_LENGTH);
    }
    return equal && (expires_at == 0 || expires_at > presented->now);
}

static mdl_caller_t key_caller(const mdl_key_record_t *record)
{
    mdl_caller_t caller = {.shop_id = record->key.shop_id, .scope = record->key.scope};

    apr_cpystrn(caller.key_id, record->key.id, sizeof caller.key_id);
    apr_cpystrn(caller.key_name, record->key.name, sizeof caller.key_name);
    apr_cpystrn(caller.shop_name, record->shop_name, sizeof caller.shop_name);
    apr_cpystrn(caller.shop_domain, record->shop_domain, sizeof caller.shop_domain);
    return caller;
}

static void key_remember(const mdl_key_verify_t *verify, const mdl_key_record_t *record,
                         apr_time_t asked_at)
{
    mdl_cached_key_t key = {
        .caller = verify->caller, .expires_at = record->key.expires_at, .known_at = asked_at};

    memcpy(key.mac, record->mac, sizeof key.mac);
    mdl_key_cache_set_epoch(verify->cache, record->epoch, asked_at);
    mdl_key_cache_put(verify->cache, &key, record->epoch);
}

MDL_EFFECT(mdl_key_sign, const mdl_key_sign_t *)

/* Signs a key with the first secret that an older secret has signed.  If that fails, its next use
   tries again. */
static void key_sign_anew(const mdl_key_verify_t *verify, const presented_t *presented,
                          mdl_key_record_t *record)
{
    mdl_key_sign_t sign = {.id = record->key.id,
                           .secret_id = mdl_secret_id(verify->secret),
                           .before = record->mac,
                           .mac = presented->macs[0]};

    if (verify->run(verify->baton, mdl_db_write, mdl_key_sign_effect, &sign) == APR_SUCCESS) {
        memcpy(record->mac, presented->macs[0], sizeof record->mac);
    }
}

static apr_status_t key_verify_by_database(mdl_key_verify_t *verify, const presented_t *presented)
{
    mdl_key_look_up_t look_up = {.id = presented->token.id};
    const mdl_key_record_t *record = &look_up.record;
    int matches;
    apr_status_t rv = verify->run(verify->baton, mdl_db_read, mdl_key_look_up_effect, &look_up);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* An unknown key is compared, too, with a MAC of zeros. */
    matches = key_matches(presented, record->mac, record->key.expires_at);
    if (!matches || !record->known || record->key.revoked_at != 0) {
        return APR_SUCCESS;
    }
    verify->caller = key_caller(record);
    if (record->shop_blocked || record->shop_status != MDL_SHOP_APPROVED) {
        verify->caller.shop_id = 0;
        verify->validity = record->shop_blocked ? MDL_KEY_SHOP_BLOCKED : MDL_KEY_SHOP_NOT_APPROVED;
        return APR_SUCCESS;
    }
    verify->validity = MDL_KEY_VALID;
    if (strcmp(record->secret_id, mdl_secret_id(verify->secret)) != 0) {
        key_sign_anew(verify, presented, &look_up.record);
    }
    key_remember(verify, record, presented->asked_at);
    return APR_SUCCESS;
}

apr_status_t mdl_key_verify(mdl_key_verify_t *verify, const char *token)
{
    presented_t presented = {.now = apr_time_now(), .asked_at = mdl_clock_monotonic()};
    int well_formed = token != NULL && mdl_token_parse(token, &presented.token);
    mdl_cached_key_t key;
    apr_status_t rv;

    verify->validity = MDL_KEY_INVALID;
    verify->caller = (mdl_caller_t){.key_id = ""};
    presented.nmacs = mdl_secret_count(verify->secret);
    for (int i = 0; i < presented.nmacs; i++) {
        mdl_token_mac(mdl_secret_at(verify->secret, i), &presented.token, presented.macs[i]);
    }
    if (!well_formed) {
        return APR_SUCCESS;
    }
    if ((rv = key_refresh_epoch(verify, presented.asked_at)) != APR_SUCCESS) {
        return rv;
    }
    /* A wrong secret is handled like an unknown key, so that timing does not tell them apart. */
    if (mdl_key_cache_get(verify->cache, presented.token.id, presented.asked_at, &key) &&
        key_matches(&presented, key.mac, key.expires_at)) {
        verify->validity = MDL_KEY_VALID;
        verify->caller = key.caller;
    } else {
        rv = key_verify_by_database(verify, &presented);
    }
    if (verify->validity == MDL_KEY_VALID) {
        mdl_key_cache_used(verify->cache, presented.token.id, presented.now);
    }
    return rv;
}
