#include "core/order/email_data.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/accept_language.h"
#include "base/names.h"
#include "base/text/present.h"
#include "base/text/utf8.h"
#include "core/catalog/product.h"
#include "core/download/signed_url.h"
#include "core/order/email_products.h"
#include "core/order/news_data.h"
#include "core/shop/notice.h"
#include "core/shop/staff_email.h"

#define DAY        apr_time_from_sec(86400)
#define NAME_SHOWN 60 /* characters */

/* The most pixels that a logo fills; twice as many look sharp on a good screen. */
#define LOGO_WIDTH  200
#define LOGO_HEIGHT 80

static void add_own_text(mdl_json_t *data, const char *name, const char *text, apr_pool_t *p)
{
    if (text != NULL) {
        mdl_product_json_note(mdl_json_add_object(data, name), "lines", text, p);
    }
}

void mdl_email_choose_language(mdl_letter_source_t *source, const mdl_order_t *order, apr_pool_t *p)
{
    apr_array_header_t *languages = apr_array_make(p, 1, sizeof(const char *));

    if (order->customer.locale != NULL) {
        APR_ARRAY_PUSH(languages, const char *) = order->customer.locale;
    }
    languages = mdl_language_offered(order->brand.languages, languages, p);
    source->locale = languages->nelts > 0 ? APR_ARRAY_IDX(languages, 0, const char *) : NULL;
    source->other = languages->nelts > 1 ? APR_ARRAY_IDX(languages, 1, const char *) : NULL;
}

/* Outlook shows a picture as large as its attributes say. */
static void add_logo_size(mdl_json_t *logo, const mdl_brand_t *brand)
{
    int width = brand->logo_width, height = brand->logo_height;

    if (width > LOGO_WIDTH) {
        height = height * LOGO_WIDTH / width;
        width = LOGO_WIDTH;
    }
    if (height > LOGO_HEIGHT) {
        width = width * LOGO_HEIGHT / height;
        height = LOGO_HEIGHT;
    }
    mdl_json_add_int(logo, "shown_width", width > 0 ? width : 1);
    mdl_json_add_int(logo, "shown_height", height > 0 ? height : 1);
}

mdl_json_t *mdl_email_data(const mdl_order_t *order, const mdl_secret_t *secret,
                           const char *public_url, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_json_t *object = mdl_json_add_object(data, "shop");
    mdl_letter_source_t letter;
    mdl_email_text_t text;

    mdl_email_choose_language(&letter, order, p);
    text = mdl_email_text_for(order->brand.email_texts, letter.locale, letter.other, p);
    mdl_json_add_string(object, "name", order->shop_name);
    mdl_json_add_string(object, "support_email", order->shop_email);
    mdl_brand_json(object, &order->brand, public_url, p);
    add_logo_size(mdl_json_member(object, "logo"), &order->brand);
    object = mdl_json_add_object(data, "customer");
    mdl_json_add_string(object, "first_name", order->customer.first_name);
    mdl_json_add_string(data, "order_id", mdl_order_called(order));
    mdl_json_add_string(data, "page_url",
                        mdl_signed_url_page(secret, public_url, order->page_id, p));
    mdl_json_add_string(data, "withdrawal_url", mdl_order_withdrawal(order, apr_time_now()));
    mdl_present_date(data, "ordered", order->created_at);
    mdl_email_products(data, order, apr_time_now(), secret, public_url, p);
    mdl_json_add_bool(data, "undeclared", order->undeclared);
    mdl_present_date(data, "declared", order->declared_at);
    mdl_json_add_bool(data, "files_truncated", order->files_truncated && !order->undeclared);
    mdl_json_add_bool(data, "links_truncated", order->links_truncated && !order->undeclared);
    add_own_text(data, "greeting", text.greeting, p);
    add_own_text(data, "closing", text.closing, p);
    return data;
}

void mdl_email_add_shop(mdl_json_t *data, const mdl_shop_t *shop, const char *settings_url,
                        apr_pool_t *p)
{
    mdl_json_t *of = mdl_json_add_object(data, "shop");

    mdl_json_add_string(of, "name", mdl_utf8_quoted(shop->name, NAME_SHOWN, p));
    mdl_json_add_string(of, "domain", shop->domain);
    mdl_json_add_int(data, "shop_id", shop->id);
    mdl_json_add_string(data, "settings_url",
                        settings_url != NULL
                            ? apr_psprintf(p, "%s/%" APR_INT64_T_FMT, settings_url, shop->id)
                            : NULL);
}

/* --- a sample --- */

#define FIND      "find"
#define LOW_STOCK "license_keys_low"
#define DISABLED  "webhook_disabled"

#define SAMPLES_OF_CUSTOMERS 3

const char *const mdl_email_sample_names[] = {
    "email",  MDL_NEWS_TEMPLATE,       FIND, MDL_STAFF_EMAIL_NOTICES, LOW_STOCK,
    DISABLED, MDL_STAFF_EMAIL_CONFIRM, NULL};

/* Names that are the same in every language. */
#define SAMPLE_KEY   "ABCD-EFGH-2345-6789"
#define SAMPLE_URL   "https://example.com/"
#define SAMPLE_LINK  "Blog"
#define SAMPLE_ORDER "1043"

static void sample_add_file(mdl_assignment_t *assignment, const char *name, apr_int64_t size,
                            apr_pool_t *p)
{
    mdl_order_file_t *file = apr_pcalloc(p, sizeof *file);

    file->asset_id = assignment->files->nelts + 1;
    file->filename = file->title = name;
    file->sha256 = "";
    file->size = size;
    file->status = MDL_ASSET_READY;
    APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = file;
}

static mdl_assignment_t *sample_assignment(apr_pool_t *p)
{
    mdl_assignment_t *assignment = mdl_assignment_make(p);
    mdl_order_link_t *link = apr_pcalloc(p, sizeof *link);

    assignment->status = MDL_ASSIGNMENT_ACTIVE;
    assignment->storefront_product_id = "sample";
    assignment->title = "";
    assignment->storefront_variant_id = "";
    assignment->quantity = 1;
    assignment->expires_at = apr_time_now() + 30 * DAY;
    sample_add_file(assignment, "handbook.pdf", 2411724, p);
    sample_add_file(assignment, "album.zip", 734003200, p);
    link->title = SAMPLE_LINK;
    link->url = SAMPLE_URL;
    APR_ARRAY_PUSH(assignment->links, mdl_order_link_t *) = link;
    return assignment;
}

static mdl_order_t *sample_order(const mdl_shop_t *shop, const char *locale, apr_pool_t *p)
{
    mdl_order_t *order = mdl_order_make(p);

    order->shop_id = shop->id;
    order->shop_name = shop->name;
    order->shop_email = shop->reply_to != NULL ? shop->reply_to : shop->email;
    order->withdrawal_url = shop->withdrawal_url;
    order->brand = shop->brand;
    order->storefront_order_id = SAMPLE_ORDER;
    order->page_id = "AAAAAAAAAAAAAAAAAAAAAA"; /* no order's */
    order->created_at = apr_time_now();
    order->customer.first_name = "Ada";
    order->customer.locale = locale;
    APR_ARRAY_PUSH(order->assignments, mdl_assignment_t *) = sample_assignment(p);
    return order;
}

/* A sealed key would need the database. */
static void sample_add_key(mdl_json_t *product)
{
    mdl_json_t *keys = mdl_json_member(product, "license_keys");

    mdl_json_add_string(mdl_json_add_object(keys, NULL), "license_key", SAMPLE_KEY);
    mdl_json_add_bool(product, "has_license_keys", 1);
}

static mdl_json_t *sample_delivery(mdl_letter_source_t *source, const mdl_shop_t *shop,
                                   const mdl_secret_t *secret, const char *public_url,
                                   apr_pool_t *p)
{
    const mdl_order_t *order = sample_order(shop, source->locale, p);
    mdl_json_t *data = mdl_email_data(order, secret, public_url, p);

    mdl_email_choose_language(source, order, p);
    sample_add_key(mdl_json_element(mdl_json_member(data, "products"), 0));
    return data;
}

static mdl_json_t *sample_news(mdl_letter_source_t *source, const mdl_shop_t *shop,
                               const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    const mdl_order_t *order = sample_order(shop, source->locale, p);
    mdl_news_email_t email = {.files = apr_array_make(p, 1, sizeof(mdl_news_file_t))};

    APR_ARRAY_PUSH(email.files, mdl_news_file_t) = (mdl_news_file_t){.title = "handbook.pdf",
                                                                     .filename = "handbook.pdf",
                                                                     .version = 2,
                                                                     .note = "ABC",
                                                                     .order = order};
    mdl_email_choose_language(source, order, p);
    return mdl_news_data(&email, apr_pstrcat(p, public_url, "/u/sample", NULL), secret, public_url,
                         p);
}

/* Two orders, the newest first. */
static mdl_json_t *sample_find(mdl_letter_source_t *source, const mdl_shop_t *shop,
                               const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    const mdl_order_t *order = sample_order(shop, source->locale, p);
    mdl_json_t *data = mdl_json_object(p);
    mdl_json_t *of = mdl_json_add_object(data, "shop");
    mdl_json_t *list = mdl_json_add_array(data, "orders");

    mdl_email_choose_language(source, order, p);
    mdl_json_add_string(of, "name", order->shop_name);
    mdl_json_add_string(of, "support_email", order->shop_email);
    mdl_brand_json(of, &order->brand, public_url, p);
    for (int i = 0; i < 2; i++) {
        mdl_json_t *to = mdl_json_add_object(list, NULL);

        mdl_json_add_string(to, "order_id", i == 0 ? order->storefront_order_id : "1027");
        mdl_present_date(to, "ordered", order->created_at - i * 30 * DAY);
        mdl_json_add_string(to, "page_url",
                            mdl_signed_url_page(secret, public_url, order->page_id, p));
    }
    return data;
}

static void sample_add_help(mdl_json_t *help, const mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_json_t *of = mdl_json_add_object(mdl_json_add_array(help, "requests"), NULL);

    mdl_json_add_bool(help, "has_requests", 1);
    mdl_json_add_string(of, "order_id", SAMPLE_ORDER);
    mdl_present_date(of, "asked", apr_time_now());
    mdl_json_add_string(of, "help_url", apr_pstrcat(p, settings->public_url, "/h/sample", NULL));
}

/* A link that confirmed an address would confirm it for whoever looks at the sample. */
static mdl_json_t *sample_notice(const char *template, const mdl_shop_t *shop,
                                 const mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);

    if (strcmp(template, MDL_STAFF_EMAIL_NOTICES) == 0) {
        for (int i = 0; i < MDL_NOTICE_KINDS; i++) {
            mdl_json_add_int(mdl_json_add_object(data, mdl_notice_kind_names[i]), "count", i + 1);
        }
        sample_add_help(mdl_json_member(data, mdl_notice_kind_names[MDL_NOTICE_HELP]), settings, p);
    } else if (strcmp(template, LOW_STOCK) == 0) {
        mdl_json_add_int(data, "license_key_tag_id", 1);
        mdl_json_add_string(data, "tag", mdl_utf8_quoted("ABCD", 4, p));
        mdl_json_add_int(data, "available", 5);
        mdl_json_add_int(data, "low_stock_threshold", 5);
    } else if (strcmp(template, DISABLED) == 0) {
        mdl_json_add_int(data, "webhook_endpoint_id", 1);
        mdl_json_add_string(data, "url", SAMPLE_URL);
        mdl_present_date(data, "failing_since", apr_time_now() - 5 * DAY);
        mdl_json_add_string(data, "error", "HTTP 500");
    } else {
        mdl_json_add_string(data, "confirm_url",
                            apr_pstrcat(p, settings->public_url, "/c/sample", NULL));
        mdl_present_date(data, "expires", apr_time_now() + MDL_STAFF_ADDRESS_EXPIRES);
    }
    mdl_email_add_shop(data, shop, settings->settings_url, p);
    return data;
}

int mdl_email_sample_is_customers(const char *template)
{
    return mdl_names_find(mdl_email_sample_names, template) < SAMPLES_OF_CUSTOMERS;
}

void mdl_email_sample(mdl_letter_source_t *source, const char *template, const mdl_shop_t *shop,
                      const mdl_secret_t *secret, const mdl_settings_t *settings, apr_pool_t *p)
{
    source->template = template;
    source->shop_id = shop->id;
    source->data = strcmp(template, *mdl_email_sample_names) == 0
                       ? sample_delivery(source, shop, secret, settings->public_url, p)
                   : strcmp(template, MDL_NEWS_TEMPLATE) == 0
                       ? sample_news(source, shop, secret, settings->public_url, p)
                   : strcmp(template, FIND) == 0
                       ? sample_find(source, shop, secret, settings->public_url, p)
                       : sample_notice(template, shop, settings, p);
}
