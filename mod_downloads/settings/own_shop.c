#include "settings/pages.h"

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/utf8.h"
#include "core/order/find_request.h"
#include "core/shop/brand.h"
#include "settings/frame.h"

#define FORM_BYTES 16384 /* of the form, beside the image */
#define TEXTS_MAX  65536 /* bytes of the form with texts for emails */

/* What the shop's form was sent with, else what the shop has. */
static const char *shown(const mdl_visit_t *visit, const char *field, const char *now)
{
    return visit->fields != NULL && visit->file == NULL ? mdl_visit_field(visit, field) : now;
}

/* A number; -1 is shown as nothing. */
static const char *number_text(int number, apr_pool_t *p)
{
    return number >= 0 ? apr_itoa(p, number) : NULL;
}

static void own_shop_add_logo(mdl_json_t *data, const mdl_visit_t *visit, mdl_image_fault_t fault)
{
    const mdl_shop_t *shop = visit->shop;

    mdl_json_add_bool(data, "logo_waits", shop->logo.waits);
    if (fault != MDL_IMAGE_GOOD) {
        mdl_json_add_bool(mdl_json_add_object(data, "logo_fault"), mdl_logo_fault_name(fault), 1);
    }
    mdl_brand_json(data, &shop->brand, visit->service->settings->public_url, visit->r->pool);
}

static const char *text_field(const mdl_visit_t *visit, const char *name, int language)
{
    return apr_pstrcat(visit->r->pool, name, "_", mdl_email_languages[language], NULL);
}

static void own_shop_add_texts(mdl_json_t *data, const mdl_visit_t *visit)
{
    mdl_email_texts_t texts = mdl_email_texts_read(visit->shop->brand.email_texts, visit->r->pool);
    mdl_json_t *array = mdl_json_add_array(data, "email_texts");

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        mdl_json_t *to = mdl_json_add_object(array, NULL);

        mdl_json_add_string(to, "value", mdl_email_languages[i]);
        mdl_json_add_string(to, "greeting",
                            shown(visit, text_field(visit, "greeting", i), texts.of[i].greeting));
        mdl_json_add_string(to, "closing",
                            shown(visit, text_field(visit, "closing", i), texts.of[i].closing));
    }
}

static const char *const switch_names[] = {"off", "on", NULL};

static mdl_shop_help_t own_shop_help(const mdl_visit_t *visit)
{
    mdl_shop_help_t now = visit->shop->help;
    int help = mdl_names_find(mdl_shop_help_names, shown(visit, "help", mdl_shop_help_names[now]));

    return help >= 0 ? (mdl_shop_help_t)help : now;
}

/* logo_fault: of an image that was just refused, or of the last one. */
static int own_shop_send(mdl_visit_t *visit, int status, mdl_image_fault_t logo_fault)
{
    const mdl_shop_t *shop = visit->shop;
    mdl_json_t *data = mdl_frame_data(visit);
    const char *hold_at = shown(visit, "hold_at", mdl_risk_names[shop->hold_at]);

    mdl_json_add_string(data, "name", shown(visit, "name", shop->name));
    mdl_json_add_string(data, "email", shown(visit, "email", shop->email));
    mdl_json_add_string(
        data, "find_url",
        mdl_find_url(visit->service->settings->public_url, shop->domain, visit->r->pool));
    mdl_json_add_string(data, "sender_name", shown(visit, "sender_name", shop->sender_name));
    mdl_json_add_string(data, "reply_to", shown(visit, "reply_to", shop->reply_to));
    mdl_json_add_string(data, "withdrawal_url",
                        shown(visit, "withdrawal_url", shop->withdrawal_url));
    mdl_json_add_string(data, "accent_typed", shown(visit, "accent", shop->brand.accent));
    mdl_json_add_string(data, "email_delay",
                        shown(visit, "email_delay", apr_itoa(visit->r->pool, shop->mail_delay)));
    mdl_json_add_string(data, "languages", shown(visit, "languages", shop->brand.languages));
    mdl_json_add_string(data, "limit",
                        shown(visit, "limit", number_text(shop->download_limit, visit->r->pool)));
    mdl_json_add_string(data, "days",
                        shown(visit, "days", number_text(shop->access_days, visit->r->pool)));
    mdl_json_add_int(data, "default_limit", visit->service->settings->download_limit);
    mdl_json_add_bool(data, "holds_medium",
                      mdl_names_find(mdl_risk_names, hold_at) == (int)MDL_RISK_MEDIUM);
    mdl_json_add_bool(data, "declares",
                      mdl_names_find(switch_names, shown(visit, "declaration",
                                                         switch_names[shop->declaration])) == 1);
    mdl_json_add_bool(mdl_json_add_object(data, "helps"), mdl_shop_help_names[own_shop_help(visit)],
                      1);
    own_shop_add_texts(data, visit);
    own_shop_add_logo(data, visit, logo_fault);
    return mdl_frame_send(visit, status, "shop.html", data, NULL);
}

static int own_shop_show(mdl_visit_t *visit)
{
    const mdl_logo_t *logo = &visit->shop->logo;

    return own_shop_send(visit, HTTP_OK, logo->waits ? MDL_IMAGE_GOOD : logo->fault);
}

/* A field that is empty clears its value. */
static const char *field_or_empty(const mdl_visit_t *visit, const char *name)
{
    const char *value = mdl_visit_field(visit, name);

    return value != NULL ? value : "";
}

static const char *text_read(const mdl_visit_t *visit, const char *name, int language)
{
    const char *text = mdl_visit_field(visit, text_field(visit, name, language));

    return text != NULL ? mdl_utf8_lines(text, visit->r->pool) : NULL;
}

static mdl_email_texts_t texts_read(const mdl_visit_t *visit)
{
    mdl_email_texts_t texts;

    for (int i = 0; i < MDL_EMAIL_LANGUAGES; i++) {
        texts.of[i] = (mdl_email_text_t){.given = 1,
                                         .greeting = text_read(visit, "greeting", i),
                                         .closing = text_read(visit, "closing", i)};
    }
    return texts;
}

/* The number of a field, -1 for an empty one, -2 for what is none. */
static int field_number(const mdl_visit_t *visit, const char *name, int max)
{
    const char *text = mdl_visit_field(visit, name);
    int number = mdl_visit_number(text, max);

    return text == NULL ? -1 : number < 0 ? -2 : number;
}

MDL_EFFECT(mdl_shop_set, mdl_shop_set_t *)

static int own_shop_change(mdl_visit_t *visit)
{
    int hold_at = mdl_names_find(mdl_risk_names, mdl_visit_field(visit, "hold_at"));
    int limit = field_number(visit, "limit", MDL_SHOP_DOWNLOADS_MAX);
    int days = field_number(visit, "days", MDL_SHOP_DAYS_MAX);
    int declaration = mdl_names_find(switch_names, mdl_visit_field(visit, "declaration"));
    int help = mdl_names_find(mdl_shop_help_names, mdl_visit_field(visit, "help"));
    mdl_email_texts_t texts = texts_read(visit);
    mdl_shop_set_t set = {.id = visit->shop->id,
                          .email_texts = &texts,
                          .download_limit = &limit,
                          .access_days = &days,
                          .declaration = declaration >= 0 ? &declaration : NULL,
                          .help = help >= 0 ? &help : NULL,
                          .name = field_or_empty(visit, "name"),
                          .email = field_or_empty(visit, "email"),
                          .sender_name = field_or_empty(visit, "sender_name"),
                          .reply_to = field_or_empty(visit, "reply_to"),
                          .withdrawal_url = field_or_empty(visit, "withdrawal_url"),
                          .accent = field_or_empty(visit, "accent"),
                          .languages = field_or_empty(visit, "languages"),
                          .mail_delay = mdl_visit_number(mdl_visit_field(visit, "email_delay"),
                                                         MDL_SHOP_MAIL_DELAY_MAX),
                          .hold_at = hold_at >= (int)MDL_RISK_MEDIUM ? (mdl_risk_t)hold_at
                                                                     : MDL_RISK_NONE,
                          .storefront.settings = visit->service->settings,
                          .problem = &visit->problem};
    apr_status_t rv;

    if (set.mail_delay < 0 || set.hold_at == MDL_RISK_NONE) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if (limit < -1) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_limit",
                        "Downloads of each file: give 0 to 1,000,000, or nothing.");
        return own_shop_send(visit, HTTP_BAD_REQUEST, MDL_IMAGE_GOOD);
    }
    if (days < -1 || days == 0) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_shop_days",
                        "Days of access: give 1 to 36,500, or nothing.");
        return own_shop_send(visit, HTTP_BAD_REQUEST, MDL_IMAGE_GOOD);
    }
    visit->audit.noun_id = apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT, visit->shop->id);
    rv = mdl_visit_write(visit, mdl_shop_set_effect, &set);
    return rv == MDL_EPROBLEM ? own_shop_send(visit, visit->problem.status, MDL_IMAGE_GOOD)
                              : mdl_frame_done(visit, rv, "shop");
}

MDL_EFFECT(mdl_logo_put, mdl_logo_put_t *)

static int own_shop_put_logo(mdl_visit_t *visit)
{
    mdl_logo_put_t put = {.shop_id = visit->shop->id,
                          .image = visit->file != NULL ? visit->file : "",
                          .length = visit->file_length,
                          .problem = &visit->problem};
    apr_status_t rv;

    visit->audit.noun_id = apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT, visit->shop->id);
    rv = mdl_visit_write(visit, mdl_logo_put_effect, &put);
    if (rv == MDL_EPROBLEM && put.fault != MDL_IMAGE_GOOD) {
        visit->problem.message = NULL; /* the page has a sentence for the fault */
    }
    return rv == MDL_EPROBLEM ? own_shop_send(visit, visit->problem.status, put.fault)
                              : mdl_frame_done(visit, rv, "shop");
}

static apr_status_t logo_delete_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_logo_delete(db, *(apr_int64_t *)arg, p);
}

static int own_shop_delete_logo(mdl_visit_t *visit)
{
    visit->audit.noun_id = apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT, visit->shop->id);
    return mdl_frame_done(visit, mdl_visit_write(visit, logo_delete_effect, &visit->shop->id),
                          "shop");
}

const mdl_page_t mdl_own_shop_pages[] = {
    {"{}/shop", "shop", "changed", .sees = MDL_ROLE_OWNER, .get = own_shop_show,
     .acts = MDL_ROLE_OWNER, .post = own_shop_change, .done = "shop_changed", .changes_keys = 1,
     .max_length = TEXTS_MAX, .allows = MDL_ALLOW_LOGO},
    {"{}/shop/logo", "shop", "logo_changed", .acts = MDL_ROLE_OWNER, .post = own_shop_put_logo,
     .done = "logo_sent", .has_file = 1, .max_length = MDL_LOGO_MAX_BYTES + FORM_BYTES,
     .allows = MDL_ALLOW_LOGO},
    {"{}/shop/logo/delete", "shop", "logo_deleted", .acts = MDL_ROLE_OWNER,
     .post = own_shop_delete_logo, .done = "logo_deleted"},
    {0},
};
