#include <string.h>

#include <apr_strings.h>

#include "api/members.h"
#include "api/resource.h"
#include "api/routes.h"
#include "base/http/accept_language.h"
#include "base/mail/mime.h"
#include "core/shop/brand.h"
#include "core/shop/shop.h"

typedef struct {
    apr_int64_t shop_id;
    mdl_shop_set_t set;
    mdl_logo_put_t put;
    mdl_shop_t *shop;           /* out */
    mdl_shop_storage_t storage; /* out */
} shop_call_t;

static shop_call_t *shop_call_begin(mdl_request_t *request)
{
    shop_call_t *call = apr_pcalloc(request->r->pool, sizeof *call);

    call->shop_id = request->caller.shop_id;
    request->arg = call;
    return call;
}

/* Reads the shop and what it stores. */
static apr_status_t shop_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_call_t *call = arg;
    apr_status_t rv = mdl_shop_find(db, call->shop_id, &call->shop, p);

    return rv == APR_SUCCESS ? mdl_shop_storage(db, call->shop_id, NULL, &call->storage, p) : rv;
}

static apr_status_t shop_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_call_t *call = arg;

    return mdl_shop_find(db, call->shop_id, &call->shop, p);
}

/* --- the logo --- */

static const char *logo_status(const mdl_logo_t *logo, const mdl_brand_t *brand)
{
    return logo->waits                     ? "preparing"
           : logo->fault != MDL_IMAGE_GOOD ? "failed"
           : brand->logo_sha256 != NULL    ? "ready"
                                           : "none";
}

static void logo_write_members(mdl_json_t *to, const mdl_request_t *request, const mdl_shop_t *shop)
{
    const mdl_brand_t *brand = &shop->brand;
    apr_pool_t *p = request->r->pool;
    int has = brand->logo_sha256 != NULL;

    mdl_json_add_string(to, "status", logo_status(&shop->logo, brand));
    mdl_json_add_string(
        to, "url",
        has ? mdl_logo_url(request->service->settings->public_url, brand->logo_sha256, p) : NULL);
    mdl_json_add_int_if(to, "width", brand->logo_width, has);
    mdl_json_add_int_if(to, "height", brand->logo_height, has);
    if (!shop->logo.waits && shop->logo.fault != MDL_IMAGE_GOOD) {
        mdl_json_t *error = mdl_json_add_object(to, "error");

        mdl_json_add_string(error, "code", mdl_logo_fault_name(shop->logo.fault));
        mdl_json_add_string(error, "message", mdl_logo_fault_text(shop->logo.fault));
    } else {
        mdl_json_add_null(to, "error");
    }
}

static apr_status_t shop_parse(mdl_request_t *request)
{
    shop_call_begin(request);
    return APR_SUCCESS;
}

static apr_status_t logo_parse_put(mdl_request_t *request)
{
    shop_call_t *call = shop_call_begin(request);

    call->put = (mdl_logo_put_t){.shop_id = call->shop_id,
                                 .image = request->bytes,
                                 .length = request->bytes_length,
                                 .problem = &request->problem};
    return APR_SUCCESS;
}

static apr_status_t logo_put_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_call_t *call = arg;
    apr_status_t rv = mdl_logo_put(db, p, &call->put);

    return rv == APR_SUCCESS ? shop_find_effect(db, p, call) : rv;
}

static apr_status_t logo_parse_delete(mdl_request_t *request)
{
    shop_call_begin(request);
    return mdl_members_none(request);
}

static apr_status_t logo_delete_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_logo_delete(db, ((shop_call_t *)arg)->shop_id, p);
}

static void logo_write(mdl_request_t *request)
{
    const mdl_shop_t *shop = ((shop_call_t *)request->arg)->shop;

    request->entity_id = mdl_resource_id(request, shop->id);
    logo_write_members(request->response, request, shop);
}

static void logo_write_accepted(mdl_request_t *request)
{
    request->status = HTTP_ACCEPTED;
    logo_write(request);
}

/* --- the shop --- */

static const char *const hold_names[] = {"medium", "high", NULL};

static void texts_write(mdl_json_t *to, const char *stored, apr_pool_t *p)
{
    mdl_email_texts_t texts = mdl_email_texts_read(stored, p);

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        mdl_json_t *text = mdl_json_add_object(to, mdl_email_languages[i]);

        mdl_json_add_string(text, "greeting", texts.of[i].greeting);
        mdl_json_add_string(text, "closing", texts.of[i].closing);
    }
}

static void shop_write_languages(mdl_json_t *to, const char *list, apr_pool_t *p)
{
    mdl_json_t *array = list != NULL ? mdl_json_add_array(to, "languages") : NULL;
    char *last;

    if (array == NULL) {
        mdl_json_add_null(to, "languages");
        return;
    }
    for (char *tag = apr_strtok(apr_pstrdup(p, list), ",", &last); tag != NULL;
         tag = apr_strtok(NULL, ",", &last)) {
        mdl_json_add_string(array, NULL, tag);
    }
}

static void storage_write_members(mdl_json_t *to, const mdl_shop_storage_t *storage,
                                  apr_int64_t quota)
{
    apr_int64_t left = storage->taken < quota ? quota - storage->taken : 0;

    mdl_json_add_int(to, "files", storage->files);
    mdl_json_add_int(to, "bytes", storage->bytes);
    mdl_json_add_int(to, "former_bytes", storage->former_bytes);
    mdl_json_add_int(to, "upload_bytes", storage->taken - storage->bytes);
    mdl_json_add_int_if(to, "quota", quota, quota != 0);
    mdl_json_add_int_if(to, "bytes_left", left, quota != 0);
}

static void shop_write(mdl_request_t *request)
{
    const shop_call_t *call = request->arg;
    const mdl_shop_t *shop = call->shop;
    mdl_json_t *to = request->response;

    request->entity_id = mdl_resource_id(request, shop->id);

    mdl_json_add_int(to, "id", shop->id);
    mdl_json_add_string(to, "name", shop->name);
    mdl_json_add_string(to, "domain", shop->domain);
    mdl_json_add_string(to, "email", shop->email);
    mdl_json_add_string(to, "email_status", mdl_address_state_names[shop->email_state]);
    mdl_json_add_string(to, "sender_name", shop->sender_name);
    mdl_json_add_string(to, "reply_to", shop->reply_to);
    mdl_json_add_string(to, "withdrawal_url", shop->withdrawal_url);
    mdl_json_add_int(to, "email_delay", shop->mail_delay);
    mdl_json_add_string(to, "hold_at", mdl_risk_names[shop->hold_at]);
    mdl_json_add_bool(to, "declaration", shop->declaration);
    mdl_json_add_string(to, "help", mdl_shop_help_names[shop->help]);
    mdl_json_add_int_if(to, "default_download_limit", shop->download_limit,
                        shop->download_limit >= 0);
    mdl_json_add_int_if(to, "default_access_days", shop->access_days, shop->access_days >= 0);
    shop_write_languages(to, shop->brand.languages, request->r->pool);
    mdl_json_add_string(to, "accent", shop->brand.accent);
    texts_write(mdl_json_add_object(to, "emails"), shop->brand.email_texts, request->r->pool);
    logo_write_members(mdl_json_add_object(to, "logo"), request, shop);
    storage_write_members(mdl_json_add_object(to, "storage"), &call->storage,
                          request->service->settings->storage_quota);
    mdl_json_add_time(to, "created_at", shop->created_at);
}

/* NULL keeps the value, "" clears it. */
static const char *shop_text(mdl_members_t *members, const char *name, mdl_presence_t presence)
{
    const char *text = mdl_members_text(members, name, presence, MDL_SHOP_NAME_MAX);

    return text == NULL && mdl_members_given(members, name) ? "" : text;
}

static const char *shop_address(mdl_members_t *members, const char *name, apr_pool_t *p)
{
    const char *text = shop_text(members, name, MDL_NULLABLE);

    if (text != NULL && *text != '\0' && mdl_mime_address_of_sender(text, p) == NULL) {
        mdl_members_fault(members, name, "invalid",
                          "This member is an email address with ASCII alone before its @.");
    }
    return text;
}

static const char *shop_url(mdl_members_t *members, const char *name)
{
    const char *text = mdl_members_text(members, name, MDL_NULLABLE, MDL_SHOP_URL_MAX);

    if (text != NULL && !mdl_shop_url_valid(text)) {
        mdl_members_fault(members, name, "invalid", MDL_SHOP_URL_RULE);
    }
    return text == NULL && mdl_members_given(members, name) ? "" : text;
}

static const char *shop_accent(mdl_members_t *members, apr_pool_t *p)
{
    const char *text = shop_text(members, "accent", MDL_NULLABLE);

    if (text != NULL && *text != '\0' && mdl_accent(text, p) == NULL) {
        mdl_members_fault(members, "accent", "invalid", MDL_ACCENT_RULE);
    }
    return text;
}

/* A language that is given replaces both of its texts. */
static const mdl_email_texts_t *shop_texts(mdl_request_t *request, mdl_members_t *members)
{
    apr_pool_t *p = request->r->pool;
    const mdl_json_t *object = mdl_members_object(members, "emails");
    mdl_email_texts_t *texts = apr_pcalloc(p, sizeof *texts);
    mdl_members_t *languages;

    if (object == NULL) {
        return NULL;
    }
    languages = mdl_members_begin(request, object, "/emails");
    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        const char *name = mdl_email_languages[i];
        const mdl_json_t *given = mdl_members_object(languages, name);

        if (given != NULL) {
            mdl_members_t *text = mdl_members_begin(request, given,
                                                    apr_pstrcat(p, "/emails/", name, NULL));

            texts->of[i] = (mdl_email_text_t){
                .given = 1,
                .greeting = mdl_members_lines(text, "greeting", MDL_EMAIL_TEXT_MAX),
                .closing = mdl_members_lines(text, "closing", MDL_EMAIL_TEXT_MAX)};
            mdl_members_end(text);
        }
    }
    mdl_members_end(languages);
    return texts;
}

/* As a list with commas. */
static const char *shop_languages(mdl_members_t *members, apr_pool_t *p)
{
    const mdl_json_t *texts = mdl_members_texts(
        members, "languages", MDL_NULLABLE, MDL_LANGUAGES_MAX, MDL_LANGUAGE_MAX, MDL_LANGUAGE_MAX);
    const char *list = "";

    for (apr_size_t i = 0; i < mdl_json_length(texts); i++) {
        const char *tag = mdl_json_string(mdl_json_element(texts, i));

        if (!mdl_language_tag_valid(tag)) {
            list = "-";
            break;
        }
        list = apr_pstrcat(p, list, i > 0 ? "," : "", tag, NULL);
    }
    if (*list != '\0' && mdl_language_list(list, p) == NULL) {
        mdl_members_fault(members, "languages", "invalid", MDL_LANGUAGES_RULE);
    }
    return mdl_members_given(members, "languages") ? list : NULL;
}

/* NULL keeps the value, -1 clears it. */
static const int *shop_number(mdl_members_t *members, const char *name, int min, int max,
                              apr_pool_t *p)
{
    int *number = apr_palloc(p, sizeof *number);

    *number = (int)mdl_members_int(members, name, MDL_NULLABLE, min, max, -1);
    return mdl_members_given(members, name) ? number : NULL;
}

static const int *shop_declaration(mdl_members_t *members, apr_pool_t *p)
{
    int *declaration = apr_palloc(p, sizeof *declaration);

    *declaration = mdl_members_bool(members, "declaration", 0);
    return mdl_members_given(members, "declaration") ? declaration : NULL;
}

static const int *shop_help(mdl_members_t *members, apr_pool_t *p)
{
    int *help = apr_palloc(p, sizeof *help);

    if (!mdl_members_given(members, "help")) {
        return NULL;
    }
    *help = (int)mdl_members_choice(members, "help", mdl_shop_help_names, MDL_SHOP_HELP_ON);
    return help;
}

static apr_status_t shop_parse_change(mdl_request_t *request)
{
    mdl_members_t *members = mdl_members_begin(request, request->body, "");
    mdl_shop_set_t *set = &shop_call_begin(request)->set;
    apr_pool_t *p = request->r->pool;

    set->id = request->caller.shop_id;
    set->problem = &request->problem;
    set->storefront.settings = request->service->settings;
    set->name = mdl_members_given(members, "name") ? shop_text(members, "name", MDL_REQUIRED)
                                                   : NULL;
    set->email = shop_address(members, "email", p);
    set->sender_name = shop_text(members, "sender_name", MDL_NULLABLE);
    set->reply_to = shop_address(members, "reply_to", p);
    set->withdrawal_url = shop_url(members, "withdrawal_url");
    set->accent = shop_accent(members, p);
    set->email_texts = shop_texts(request, members);
    set->mail_delay = (int)mdl_members_int(members, "email_delay", MDL_OPTIONAL, 0,
                                           MDL_SHOP_MAIL_DELAY_MAX, -1);
    set->download_limit = shop_number(members, "default_download_limit", 0, MDL_SHOP_DOWNLOADS_MAX,
                                      p);
    set->declaration = shop_declaration(members, p);
    set->help = shop_help(members, p);
    set->languages = shop_languages(members, p);
    set->access_days = shop_number(members, "default_access_days", 1, MDL_SHOP_DAYS_MAX, p);
    if (mdl_members_given(members, "hold_at")) {
        set->hold_at = MDL_RISK_MEDIUM + mdl_members_choice(members, "hold_at", hold_names, 0);
    }
    return mdl_members_end(members);
}

static apr_status_t shop_change_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_call_t *call = arg;
    apr_status_t rv = mdl_shop_set(db, p, &call->set);

    return rv == APR_SUCCESS ? shop_read_effect(db, p, call) : rv;
}

static const char *const image_types[] = {"image/png", "image/jpeg", NULL};

const mdl_route_t mdl_shop_routes[] = {
    {"GET", "/shop", .parse = shop_parse, .effect = shop_read_effect, .write = shop_write},
    {"PATCH", "/shop", "shop", "changed", .parse = shop_parse_change, .effect = shop_change_effect,
     .write = shop_write},
    {"GET", "/shop/logo", .parse = shop_parse, .effect = shop_find_effect, .write = logo_write},
    {"PUT", "/shop/logo", "shop", "logo_changed", .takes = image_types,
     .max_body = MDL_LOGO_MAX_BYTES, .parse = logo_parse_put, .effect = logo_put_effect,
     .write = logo_write_accepted},
    {"DELETE", "/shop/logo", "shop", "logo_deleted", .optional_body = 1, .parse = logo_parse_delete,
     .effect = logo_delete_effect, .write = mdl_resource_write_deleted},
    {0},
};
