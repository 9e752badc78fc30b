#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/http/accept_language.h"
#include "base/mail/mime.h"
#include "core/order/email_data.h"
#include "core/shop/staff_email.h"
#include "settings/filter.h"
#include "settings/frame.h"

#define LANGUAGE_MAX 35 /* bytes of a tag */

static const mdl_filter_field_t fields[] = {
    {"email", .names = mdl_email_sample_names},
    {"language", .max = LANGUAGE_MAX},
    {0},
};

/* An email as it would be sent now, made as the background process makes it. */
typedef struct {
    const mdl_templates_t *templates;
    mdl_letter_source_t source;
    mdl_letter_t letter;
} preview_t;

/* The language that the query names, else the visitor's. */
static const char *preview_language(const mdl_visit_t *visit, const mdl_filter_t *filter)
{
    const char *given = mdl_filter_value(filter, "language");
    const apr_array_header_t *accepted = mdl_accept_language(
        apr_table_get(visit->r->headers_in, "Accept-Language"), visit->r->pool);

    return given != NULL         ? given
           : accepted->nelts > 0 ? APR_ARRAY_IDX(accepted, 0, const char *)
                                 : NULL;
}

/* APR_EINVAL for a faulty query, APR_ENOENT when a template can't be read. */
static apr_status_t preview_make(mdl_visit_t *visit, preview_t *preview)
{
    apr_pool_t *p = visit->r->pool;
    const mdl_settings_t *settings = visit->service->settings;
    apr_array_header_t *problems = apr_array_make(p, 1, sizeof(const char *));
    mdl_filter_t filter;
    const char *name;
    apr_status_t rv = mdl_filter_read(&filter, fields, visit);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    name = mdl_filter_value(&filter, "email");
    preview->source.locale = preview_language(visit, &filter);
    preview->templates = mdl_templates_read_shop(settings->templates, visit->shop->id,
                                                 mdl_settings_template_names, problems, p);
    mdl_email_sample(&preview->source, name != NULL ? name : *mdl_email_sample_names, visit->shop,
                     visit->service->secret, settings, p);
    return mdl_letter_choose(&preview->letter, preview->templates, &preview->source, p);
}

static int preview_failure(mdl_visit_t *visit, apr_status_t rv)
{
    return rv == APR_EINVAL ? mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form")
                            : mdl_frame_message(visit, HTTP_INTERNAL_SERVER_ERROR, "error");
}

static void choice_add(mdl_json_t *choices, const char *value, const char *chosen)
{
    mdl_json_t *choice = mdl_json_add_object(choices, NULL);

    mdl_json_add_string(choice, "value", value);
    mdl_json_add_bool(choice, "chosen", strcmp(value, chosen) == 0);
}

/* Customers get their email in the shop's languages alone. */
static void preview_add_choices(mdl_json_t *data, const preview_t *preview, const mdl_shop_t *shop,
                                apr_pool_t *p)
{
    const char *chosen = preview->source.template;
    const char *shown = preview->letter.language;
    const char *offered = mdl_email_sample_is_customers(chosen) ? shop->brand.languages : NULL;
    const apr_array_header_t *languages = mdl_templates_languages(
        preview->templates, apr_pstrcat(p, chosen, ".html", NULL), preview->source.shop_id, p);
    mdl_json_t *choices = mdl_json_add_array(data, "letters");

    for (const char *const *name = mdl_email_sample_names; *name != NULL; name++) {
        choice_add(choices, *name, chosen);
    }
    choices = mdl_json_add_array(data, "languages");
    for (int i = 0; i < languages->nelts; i++) {
        const char *language = APR_ARRAY_IDX(languages, i, const char *);

        if (mdl_language_offers(offered, language) || strcmp(language, shown) == 0) {
            choice_add(choices, language, shown);
        }
    }
}

static int preview_send(mdl_visit_t *visit, int status)
{
    mdl_text_buffer_t *text = mdl_text_buffer_make(visit->r->pool);
    preview_t preview = {0};
    mdl_json_t *data;
    apr_status_t rv = preview_make(visit, &preview);

    if (rv != APR_SUCCESS) {
        return preview_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_letter_write_text(&preview.letter, text);
    mdl_json_add_string(data, "letter", preview.source.template);
    mdl_json_add_string(data, "language", preview.letter.language);
    mdl_json_add_string(data, "subject", mdl_letter_subject(&preview.letter));
    mdl_json_add_string(data, "text", mdl_text_buffer_text(text, NULL));
    mdl_json_add_bool(data, "has_address", mdl_mime_address_valid(visit->user));
    preview_add_choices(data, &preview, visit->shop, visit->r->pool);
    return mdl_frame_send(visit, status, "email_preview.html", data, NULL);
}

static int preview_show(mdl_visit_t *visit)
{
    return preview_send(visit, HTTP_OK);
}

/* What the frame of the page shows. */
static int preview_show_html(mdl_visit_t *visit)
{
    preview_t preview = {0};
    apr_status_t rv = preview_make(visit, &preview);

    return rv == APR_SUCCESS ? mdl_frame_send_letter(visit, &preview.letter)
                             : preview_failure(visit, rv);
}

MDL_EFFECT(mdl_staff_email_test, mdl_staff_email_test_t *)

/* Sends the email that the query names to the address that the visitor has signed in with. */
static int preview_test(mdl_visit_t *visit)
{
    apr_pool_t *p = visit->r->pool;
    preview_t preview = {0};
    mdl_staff_email_test_t test = {
        .shop_id = visit->shop->id, .address = visit->user, .problem = &visit->problem};
    apr_status_t rv = preview_make(visit, &preview);

    if (rv != APR_SUCCESS || !mdl_mime_address_valid(visit->user)) {
        return preview_failure(visit, rv != APR_SUCCESS ? rv : APR_EINVAL);
    }
    test.template = preview.source.template;
    test.language = preview.letter.language;
    visit->audit.noun_id = apr_psprintf(p, "%" APR_INT64_T_FMT, visit->shop->id);
    visit->audit.detail = apr_psprintf(p, "%s, %s", test.template, test.language);
    rv = mdl_visit_write(visit, mdl_staff_email_test_effect, &test);
    if (rv != APR_SUCCESS) {
        return rv == MDL_EPROBLEM ? preview_send(visit, visit->problem.status)
                                  : mdl_frame_failure(visit, rv);
    }
    return mdl_frame_redirect(visit,
                              mdl_frame_path(visit, "%s/emails/preview", visit->audit.noun_id),
                              apr_pstrcat(p, visit->page->done, "&email=", test.template,
                                          "&language=", test.language, NULL));
}

const mdl_page_t mdl_email_preview_pages[] = {
    {"{}/emails/preview", .sees = MDL_ROLE_READ_ONLY, .get = preview_show,
     .allows = MDL_ALLOW_FRAME},
    {"{}/emails/preview/html", .sees = MDL_ROLE_READ_ONLY, .get = preview_show_html},
    {"{}/emails/preview/test", "shop", "email_tested", .acts = MDL_ROLE_STAFF, .post = preview_test,
     .done = "email_tested", .allows = MDL_ALLOW_FRAME},
    {0},
};
