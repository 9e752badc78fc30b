#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/names.h"
#include "base/text/present.h"
#include "core/shop/key.h"
#include "settings/frame.h"

#define DAY apr_time_from_sec(86400)

/* The lifetimes that the form offers, in days. */
static const char *const lifetimes[] = {"30", "90", "365", NULL};

MDL_EFFECT(mdl_key_list, mdl_key_list_t *)

static void keys_add(mdl_json_t *keys, const mdl_key_t *key, apr_time_t now)
{
    mdl_json_t *to = mdl_json_add_object(keys, NULL);
    int expired = key->expires_at != 0 && key->expires_at <= now;

    mdl_json_add_string(to, "key_id", key->id);
    mdl_json_add_string(to, "key_name", key->name);
    mdl_frame_add_choice(to, mdl_key_scope_names, (int)key->scope);
    mdl_present_date(to, "created", key->created_at);
    mdl_present_date(to, "used", key->last_used_at);
    mdl_present_date(to, "expires", key->expires_at);
    mdl_present_date(to, "revoked", key->revoked_at);
    mdl_json_add_bool(to, "expired", expired && key->revoked_at == 0);
    mdl_json_add_bool(to, "live", !expired && key->revoked_at == 0);
}

/* Adds what was typed into a form that is shown again. */
static void keys_add_typed(mdl_json_t *data, const mdl_visit_t *visit)
{
    const char *scope = mdl_visit_field(visit, "scope");
    const char *expires = mdl_visit_field(visit, "expires");
    int lifetime = mdl_names_find(lifetimes, expires);

    mdl_json_add_string(data, "typed_name", mdl_visit_field(visit, "name"));
    mdl_json_add_bool(data, "typed_read", scope != NULL && strcmp(scope, "read") == 0);
    mdl_json_add_bool(data, "typed_deliver", scope != NULL && strcmp(scope, "deliver") == 0);
    for (int i = 0; lifetimes[i] != NULL; i++) {
        mdl_json_add_bool(data, apr_pstrcat(visit->r->pool, "typed_", lifetimes[i], NULL),
                          i == lifetime);
    }
}

static int keys_send(mdl_visit_t *visit, int status)
{
    mdl_key_list_t list = {.shop_id = visit->shop->id};
    apr_time_t now = apr_time_now();
    mdl_json_t *data, *keys;
    apr_status_t rv = mdl_visit_read(visit, mdl_key_list_effect, &list);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "base_url", visit->service->settings->api_url);
    mdl_json_add_bool(data, "has_keys", list.keys->nelts > 0);
    keys = mdl_json_add_array(data, "keys");
    for (int i = list.keys->nelts - 1; i >= 0; i--) {
        keys_add(keys, APR_ARRAY_IDX(list.keys, i, const mdl_key_t *), now);
    }
    keys_add_typed(data, visit);
    return mdl_frame_send(visit, status, "keys.html", data, NULL);
}

static int keys_show(mdl_visit_t *visit)
{
    return keys_send(visit, HTTP_OK);
}

typedef struct {
    mdl_key_create_t create;
    mdl_visit_t *visit;
} keys_create_t;

static apr_status_t keys_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    keys_create_t *keys = arg;
    apr_status_t rv = mdl_key_create(db, p, &keys->create);

    keys->visit->audit.noun_id = keys->create.key.id;
    keys->visit->audit.detail = keys->create.key.name;
    return rv;
}

/* Only this response shows the token, which is not stored; a form that is sent again can't. */
static int keys_create(mdl_visit_t *visit)
{
    const char *name = mdl_visit_field(visit, "name");
    const char *scope = mdl_visit_field(visit, "scope");
    const char *expires = mdl_visit_field(visit, "expires");
    keys_create_t keys = {.create = {.secret = visit->service->secret, .problem = &visit->problem},
                          .visit = visit};
    mdl_key_t *key = &keys.create.key;
    mdl_json_t *data;
    apr_status_t rv;

    if (mdl_names_find(mdl_key_scope_names, scope) < 0 ||
        (expires != NULL && mdl_names_find(lifetimes, expires) < 0)) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    *key = (mdl_key_t){.shop_id = visit->shop->id,
                       .name = name != NULL ? name : "",
                       .scope = (mdl_key_scope_t)mdl_names_find(mdl_key_scope_names, scope)};
    if (expires != NULL) {
        key->expires_at = apr_time_now() + apr_atoi64(expires) * DAY;
    }
    rv = mdl_visit_write(visit, keys_create_effect, &keys);
    if (rv == MDL_EPROBLEM) {
        return keys_send(visit, visit->problem.status);
    }
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "key_name", key->name);
    mdl_json_add_string(data, "token", keys.create.token);
    mdl_json_add_string(data, "base_url", visit->service->settings->api_url);
    return mdl_frame_send(visit, HTTP_OK, "key_created.html", data, NULL);
}

/* The key that the path names, if it belongs to the shop. */
static apr_status_t keys_find(mdl_visit_t *visit, const mdl_key_t **key)
{
    mdl_key_list_t list = {.shop_id = visit->shop->id};
    apr_status_t rv = mdl_visit_read(visit, mdl_key_list_effect, &list);

    for (int i = 0; rv == APR_SUCCESS && i < list.keys->nelts; i++) {
        *key = APR_ARRAY_IDX(list.keys, i, const mdl_key_t *);
        if (strcmp((*key)->id, visit->argument) == 0) {
            return APR_SUCCESS;
        }
    }
    return rv == APR_SUCCESS ? APR_ENOENT : rv;
}

static int keys_ask(mdl_visit_t *visit)
{
    const mdl_key_t *key;
    apr_status_t rv = keys_find(visit, &key);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_string(data, "key_id", key->id);
    mdl_json_add_string(data, "key_name", key->name);
    mdl_present_date(data, "used", key->last_used_at);
    mdl_present_date(data, "revoked", key->revoked_at);
    return mdl_frame_send(visit, HTTP_OK, "key_revoke.html", data, NULL);
}

MDL_EFFECT(mdl_key_revoke, mdl_key_revoke_t *)

static int keys_revoke(mdl_visit_t *visit)
{
    mdl_key_revoke_t revoke = {
        .id = visit->argument, .shop_id = visit->shop->id, .problem = &visit->problem};

    return mdl_frame_done(visit, mdl_visit_write(visit, mdl_key_revoke_effect, &revoke), "keys");
}

const mdl_page_t mdl_key_pages[] = {
    {"{}/keys", "api_key", "created", .sees = MDL_ROLE_READ_ONLY, .get = keys_show,
     .acts = MDL_ROLE_OWNER, .post = keys_create},
    {"{}/keys/{}/revoke", "api_key", "revoked", .sees = MDL_ROLE_OWNER, .get = keys_ask,
     .acts = MDL_ROLE_OWNER, .post = keys_revoke, .done = "key_revoked", .changes_keys = 1},
    {0},
};
