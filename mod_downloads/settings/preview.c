#include "settings/pages.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/accept_language.h"
#include "base/text/present.h"
#include "base/text/templates.h"
#include "core/order/find_request.h"
#include "core/order/offer_json.h"
#include "html.h"
#include "settings/frame.h"

#define ORDER    "1001"
#define FILENAME "example.pdf"
#define SIZE     2345678

static const char *const names[] = {"page.html", NULL};

static void preview_add_file(mdl_json_t *files, const mdl_visit_t *visit)
{
    mdl_json_t *file = mdl_json_add_object(files, NULL);
    int total = visit->shop->download_limit >= 0 ? visit->shop->download_limit
                                                 : visit->service->settings->download_limit;
    mdl_json_t *limit = total > 0 ? mdl_json_add_object(file, "limit") : NULL;

    mdl_json_add_string(file, "title", FILENAME);
    mdl_json_add_string(file, "filename", FILENAME);
    mdl_json_add_bool(file, "ready", 1);
    mdl_present_size(file, "size", SIZE);
    if (limit != NULL) {
        mdl_json_add_int(limit, "left", total);
        mdl_json_add_int(limit, "total", total);
        mdl_json_add_bool(limit, "few", total <= MDL_OFFER_FEW);
    }
}

/* What page.html gets (docs/templates.md), for an order of one file. */
static mdl_json_t *preview_data(const mdl_visit_t *visit)
{
    int days = visit->shop->access_days;
    mdl_json_t *data = mdl_json_object(visit->r->pool);
    mdl_json_t *product = mdl_json_add_object(mdl_json_add_array(data, "products"), NULL);
    mdl_json_t *contents = mdl_json_add_object(product, "contents");
    mdl_json_t *files = mdl_json_add_array(product, "files");

    mdl_json_add_bool(data, "active", 1);
    mdl_json_add_bool(data, "has_files", 1);
    mdl_json_add_bool(data, "complete", 1);
    mdl_json_add_bool(data, "limited", 1);
    mdl_json_add_string(data, "order_id", ORDER);
    mdl_json_add_string(data, "action", visit->r->uri);
    mdl_json_add_string(data, "sample_back", "../shop");
    mdl_present_date(data, "ordered", apr_time_now());
    mdl_present_date(data, "expires",
                     days > 0 ? apr_time_now() + apr_time_from_sec((apr_time_t)days * 86400) : 0);
    mdl_json_add_string(contents, "title", FILENAME);
    mdl_json_add_int(contents, "more", 0);
    mdl_json_add_null(product, "expires");
    mdl_json_add_bool(product, "single", 1);
    preview_add_file(files, visit);
    mdl_json_add_copy(data, "files", files);
    return data;
}

static void preview_add_shop(mdl_json_t *data, mdl_html_policy_t *policy, const mdl_visit_t *visit)
{
    const char *public_url = visit->service->settings->public_url;
    const mdl_shop_t *shop = visit->shop;
    mdl_json_t *to = mdl_json_add_object(data, "shop");
    apr_pool_t *p = visit->r->pool;
    const char *style = mdl_brand_style(&shop->brand, p);

    mdl_json_add_string(to, "name", shop->name);
    mdl_json_add_string(to, "support_email", shop->reply_to != NULL ? shop->reply_to : shop->email);
    mdl_json_add_string(to, "find_url", mdl_find_url(public_url, shop->domain, p));
    mdl_brand_json(to, &shop->brand, public_url, p);
    policy->img = apr_pstrcat(p, " ", public_url, "/logo/", NULL);
    if (style != NULL) {
        mdl_json_add_string(to, "style", apr_pstrcat(p, "<style>", style, "</style>", NULL));
        policy->style = mdl_html_hash(style, p);
    }
}

/* The templates are read anew: few owners look, and so they see what the operator has just
   changed. */
static int preview_show(mdl_visit_t *visit)
{
    request_rec *r = visit->r;
    apr_array_header_t *problems = apr_array_make(r->pool, 1, sizeof(const char *));
    const mdl_templates_t *templates = mdl_templates_read_shop(
        visit->service->settings->templates, visit->shop->id, names, problems, r->pool);
    const apr_array_header_t *languages = mdl_language_offered(
        visit->shop->brand.languages,
        mdl_accept_language(apr_table_get(r->headers_in, "Accept-Language"), r->pool), r->pool);
    const char *language;
    const mdl_template_t *template = mdl_templates_get(templates, names[0], visit->shop->id,
                                                       languages, &language, r->pool);
    mdl_html_policy_t policy = {.referrer_policy = "no-referrer"};
    mdl_json_t *data = preview_data(visit);

    if (template == NULL) {
        return mdl_frame_failure(visit, APR_EGENERAL);
    }
    preview_add_shop(data, &policy, visit);
    mdl_visit_end(visit);
    mdl_html_send(r, HTTP_OK, template, data, NULL, &policy);
    return OK;
}

const mdl_page_t mdl_preview_pages[] = {
    {"{}/shop/preview", .sees = MDL_ROLE_OWNER, .get = preview_show},
    {0},
};
