#include "api/authenticate.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <apr_time.h>

static apr_status_t authenticate_unauthorized(mdl_request_t *request)
{
    apr_table_setn(request->r->headers_out, "WWW-Authenticate", "Bearer realm=\"downloads\"");
    return mdl_problem_set(&request->problem, 401, "unauthorized",
                           "A valid API key is required: Authorization: Bearer adk_live_…");
}

static int authenticate_bearer(request_rec *r, mdl_token_t *token)
{
    const char *header = apr_table_get(r->headers_in, "Authorization");

    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) {
        return 0;
    }
    for (header += 7; *header == ' '; header++) {
    }
    return mdl_token_parse(header, token);
}

static apr_status_t take_connection(mdl_request_t *request, mdl_connection_t **connection)
{
    if (*connection == NULL) {
        *connection = mdl_connection_open(request->r);
    }
    return *connection != NULL ? APR_SUCCESS : MDL_DB_EGONE;
}

static apr_status_t key_epoch_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_key_epoch(db, p, arg);
}

/* Asks for the epoch when it is this request's turn.  Success means that the cache may be used. */
static apr_status_t refresh_epoch(mdl_request_t *request, mdl_connection_t **connection,
                                  apr_time_t now)
{
    mdl_epoch_state_t state = mdl_key_cache_state(request->service->key_cache, now);
    apr_int64_t epoch;
    apr_status_t rv;

    if (state == MDL_EPOCH_CURRENT) {
        return APR_SUCCESS;
    }
    rv = take_connection(request, connection);
    if (rv == APR_SUCCESS) {
        rv = mdl_db_read(mdl_connection_db(*connection), key_epoch_effect, &epoch,
                         request->r->pool);
    }
    if (rv == APR_SUCCESS) {
        mdl_key_cache_set_epoch(request->service->key_cache, epoch, now);
    }
    return state == MDL_EPOCH_EXPIRED ? rv : APR_SUCCESS;
}

static void authenticate_remember(mdl_request_t *request, const mdl_key_record_t *record,
                                  apr_time_t asked_at)
{
    mdl_cached_key_t key = {.shop_id = record->key.shop_id,
                            .expires_at = record->key.expires_at,
                            .read_only = request->caller.read_only};

    apr_cpystrn(key.id, record->key.id, sizeof key.id);
    memcpy(key.mac, record->mac, sizeof key.mac);
    mdl_key_cache_set_epoch(request->service->key_cache, record->epoch, asked_at);
    mdl_key_cache_put(request->service->key_cache, &key, record->epoch);
}

static apr_status_t key_look_up_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_key_look_up(db, p, arg);
}

static apr_status_t verify_by_database(mdl_request_t *request, mdl_connection_t **connection,
                                       const mdl_token_t *token, const unsigned char *mac,
                                       apr_time_t now)
{
    mdl_key_look_up_t look_up = {.id = token->id};
    const mdl_key_record_t *record = &look_up.record;
    int equal;
    apr_status_t rv;

    if ((rv = take_connection(request, connection)) != APR_SUCCESS ||
        (rv = mdl_db_read(mdl_connection_db(*connection), key_look_up_effect, &look_up,
                          request->r->pool)) != APR_SUCCESS) {
        return rv;
    }
    /* An unknown key is compared too, with a MAC of zeros. */
    equal = mdl_equal(mac, record->mac, sizeof record->mac);
    if (!equal || !record->known || record->key.revoked_at != 0 ||
        (record->key.expires_at != 0 && record->key.expires_at <= now)) {
        return authenticate_unauthorized(request);
    }
    apr_cpystrn(request->caller.key_id, token->id, sizeof request->caller.key_id);
    if (strcmp(record->shop_status, "approved") != 0) {
        return mdl_problem_set(&request->problem, 403, "shop_not_approved",
                               "This shop is not approved to use the API.");
    }
    request->caller.shop_id = record->key.shop_id;
    request->caller.read_only = strcmp(record->key.scope, "read") == 0;
    authenticate_remember(request, record, now);
    return APR_SUCCESS;
}

apr_status_t mdl_authenticate(mdl_request_t *request, mdl_connection_t **connection)
{
    apr_time_t now = apr_time_now();
    unsigned char mac[MDL_SHA256_LENGTH];
    mdl_token_t token = {.id = ""};
    mdl_cached_key_t key;
    int well_formed = authenticate_bearer(request->r, &token);
    apr_status_t rv;

    mdl_token_mac(request->service->secret, &token, mac);
    if (!well_formed) {
        return authenticate_unauthorized(request);
    }
    if ((rv = refresh_epoch(request, connection, now)) != APR_SUCCESS) {
        return rv;
    }
    /* A wrong secret goes the way of an unknown key, so that time does not tell them apart. */
    if (mdl_key_cache_get(request->service->key_cache, token.id, &key) &&
        mdl_equal(mac, key.mac, sizeof mac) && (key.expires_at == 0 || key.expires_at > now)) {
        apr_cpystrn(request->caller.key_id, token.id, sizeof request->caller.key_id);
        request->caller.shop_id = key.shop_id;
        request->caller.read_only = key.read_only;
    } else {
        rv = verify_by_database(request, connection, &token, mac, now);
    }
    if (rv == APR_SUCCESS) {
        mdl_key_cache_used(request->service->key_cache, token.id, now);
    }
    return rv;
}
