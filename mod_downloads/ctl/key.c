#include "ctl/key.h"

#include <stddef.h>

#include <apr_time.h>

#include "base/names.h"
#include "core/shop/key.h"
#include "core/shop/shop.h"

static const mdl_field_t fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_key_t, id), 1, NULL},
    {"shop_id", MDL_FIELD_NUMBER, offsetof(mdl_key_t, shop_id), 0, NULL},
    {"name", MDL_FIELD_TEXT, offsetof(mdl_key_t, name), 1, NULL},
    {"scope", MDL_FIELD_ENUM, offsetof(mdl_key_t, scope), 1, mdl_key_scope_names},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_key_t, created_at), 1, NULL},
    {"last_used_at", MDL_FIELD_TIME, offsetof(mdl_key_t, last_used_at), 1, NULL},
    {"expires_at", MDL_FIELD_TIME, offsetof(mdl_key_t, expires_at), 1, NULL},
    {"revoked_at", MDL_FIELD_TIME, offsetof(mdl_key_t, revoked_at), 1, NULL},
    {0},
};

typedef struct {
    mdl_key_create_t create;
    mdl_ctl_t *ctl;
} key_create_t;

static apr_status_t key_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    key_create_t *keys = arg;
    apr_status_t rv = mdl_key_create(db, p, &keys->create);

    keys->ctl->audit.noun_id = keys->create.key.id;
    return rv;
}

void mdl_ctl_key_print(mdl_ctl_t *ctl, const mdl_key_create_t *created)
{
    const mdl_key_t *key = &created->key;
    mdl_json_t *document = mdl_json_object(ctl->p);

    mdl_printer_note(ctl->output,
                     "Key %s of shop %" APR_INT64_T_FMT
                     ".  Store its token now: it is shown only once and stored nowhere.",
                     key->id, key->shop_id);
    mdl_printer_line(ctl->output, "%s", created->token);
    mdl_printer_fill(mdl_json_add_object(document, "key"), fields, key);
    mdl_json_add_string(document, "token", created->token);
    mdl_printer_document(ctl->output, document);
}

int mdl_ctl_key_create(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    key_create_t keys = {
        .create = {.secret = ctl->secret,
                   .key = {.shop_id = ctl->id,
                           .name = ctl->arguments[1],
                           .scope = ctl->scope != NULL ? (mdl_key_scope_t)mdl_names_find(
                                                             mdl_key_scope_names, ctl->scope)
                                                       : MDL_KEY_SCOPE_FULL},
                   .problem = &problem},
        .ctl = ctl};
    mdl_key_t *key = &keys.create.key;
    int failed;

    if (!ctl->secret) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    if (ctl->expires_s) {
        key->expires_at = apr_time_now() + apr_time_from_sec(ctl->expires_s);
    }
    ctl->audit.shop_id = ctl->id;
    ctl->audit.detail = key->name;
    if ((failed = mdl_ctl_write(ctl, key_create_effect, &keys, &problem))) {
        return failed;
    }
    mdl_ctl_key_print(ctl, &keys.create);
    return MDL_EXIT_DONE;
}

typedef struct {
    mdl_key_list_t list;
    mdl_problem_t *problem;
} keys_of_shop_t;

/* An unknown shop is an error, not an empty list. */
static apr_status_t keys_of_shop(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    keys_of_shop_t *search = arg;
    mdl_shop_t *shop;
    apr_status_t rv = mdl_shop_find(db, search->list.shop_id, &shop, p);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(search->problem, 404, "not_found", "There is no such shop.");
    }
    return rv == APR_SUCCESS ? mdl_key_list(db, p, &search->list) : rv;
}

int mdl_ctl_key_list(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    keys_of_shop_t search = {.list = {.shop_id = ctl->id}, .problem = &problem};
    int failed = mdl_ctl_read(ctl, keys_of_shop, &search, &problem);

    if (!failed) {
        mdl_printer_list(ctl->output, fields, search.list.keys, "The shop has no key.");
    }
    return failed;
}

typedef struct {
    mdl_key_revoke_t revoke;
    mdl_ctl_t *ctl;
} key_revoke_t;

static apr_status_t key_revoke_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    key_revoke_t *keys = arg;
    apr_status_t rv = mdl_key_revoke(db, p, &keys->revoke);

    if (rv == APR_SUCCESS) {
        keys->ctl->audit.shop_id = keys->revoke.key->shop_id;
    }
    return rv;
}

int mdl_ctl_key_revoke(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    key_revoke_t keys = {.revoke = {.id = ctl->arguments[0], .problem = &problem}, .ctl = ctl};
    int failed = mdl_ctl_write(ctl, key_revoke_effect, &keys, &problem);

    if (failed) {
        return failed;
    }
    mdl_ctl_await_key_caches();
    mdl_printer_result(ctl->output, fields, keys.revoke.key, "Key %s (%s) is revoked.",
                       keys.revoke.key->id, keys.revoke.key->name);
    return MDL_EXIT_DONE;
}
