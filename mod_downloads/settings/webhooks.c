#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/present.h"
#include "base/text/utf8.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/shop/webhook_delivery.h"
#include "core/version.h"
#include "settings/frame.h"

#define LINES 50

/* The endpoint of the path, in the version that the form's page has shown. */
static mdl_entity_ref_t webhook_ref(mdl_visit_t *visit)
{
    const char *seen = mdl_visit_field(visit, "seen");

    return (mdl_entity_ref_t){
        .shop_id = visit->shop->id,
        .id = mdl_identifier_parse(visit->argument),
        .versions = seen != NULL ? mdl_ids_of(mdl_identifier_parse(seen), visit->r->pool) : NULL,
        .problem = &visit->problem};
}

/* --- data for templates --------------------------------------------------------------------- */

/* Adds the type, and a member of its name that templates test. */
static void type_add(mdl_json_t *to, const char *type, apr_pool_t *p)
{
    char *name = apr_pstrdup(p, type);

    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot, '.')) {
        *dot = '_';
    }
    mdl_json_add_string(to, "type", type);
    mdl_json_add_bool(mdl_json_add_object(to, "event"), name, 1);
}

static int types_have(const mdl_json_t *types, const char *type)
{
    for (apr_size_t i = 0; i < mdl_json_length(types); i++) {
        if (strcmp(mdl_json_string(mdl_json_element(types, i)), type) == 0) {
            return 1;
        }
    }
    return 0;
}

static void webhook_add(mdl_json_t *to, const mdl_webhook_t *webhook, apr_pool_t *p)
{
    const mdl_json_t *types = mdl_json_stored(webhook->types, p);
    mdl_json_t *list = mdl_json_add_array(to, "types");

    mdl_json_add_int(to, "webhook_id", webhook->id);
    mdl_json_add_string(to, "url", webhook->url);
    mdl_json_add_string(to, "description", webhook->description);
    mdl_json_add_bool(to, "all_types", types == NULL);
    for (apr_size_t i = 0; i < mdl_json_length(types); i++) {
        type_add(mdl_json_add_object(list, NULL), mdl_json_string(mdl_json_element(types, i)), p);
    }
    mdl_json_add_bool(to, "active", webhook->is_active);
    mdl_present_date(to, "failing", webhook->failing_since);
    mdl_present_date(to, "disabled", webhook->disabled_at);
    mdl_present_date(to, "former_secret", webhook->old_until);
    mdl_json_add_int(to, "seen", mdl_version(webhook->updated_at));
}

/* Adds what a form shows: what was typed, else the endpoint's values; NULL for a new endpoint. */
static void form_add(mdl_json_t *data, const mdl_visit_t *visit, const mdl_webhook_t *webhook)
{
    apr_pool_t *p = visit->r->pool;
    int typed = visit->fields != NULL;
    const char *events = mdl_visit_field(visit, "events");
    const char *kept = webhook != NULL ? webhook->types : NULL;
    const mdl_json_t *types = mdl_json_stored(kept, p);
    mdl_json_t *form = mdl_json_add_object(data, "form"), *list;

    mdl_json_add_string(form, "typed_url",
                        typed             ? mdl_visit_field(visit, "url")
                        : webhook != NULL ? webhook->url
                                          : NULL);
    mdl_json_add_string(form, "typed_description",
                        typed             ? mdl_visit_field(visit, "description")
                        : webhook != NULL ? webhook->description
                                          : NULL);
    mdl_json_add_bool(form, "typed_active",
                      typed ? mdl_visit_field(visit, "active") != NULL
                            : webhook != NULL && webhook->is_active);
    mdl_json_add_bool(form, "some",
                      typed ? events != NULL && strcmp(events, "some") == 0 : types != NULL);
    list = mdl_json_add_array(form, "choices");
    for (int i = 0; i < MDL_EVENT_WEBHOOK_TEST; i++) { /* a test is sent whatever is chosen */
        const char *type = mdl_event_type_names[i];
        mdl_json_t *choice = mdl_json_add_object(list, NULL);

        type_add(choice, type, p);
        mdl_json_add_bool(choice, "chosen",
                          typed ? mdl_visit_field(visit, type) != NULL : types_have(types, type));
    }
}

static void delivery_add(mdl_json_t *to, const mdl_webhook_delivery_t *delivery, apr_pool_t *p)
{
    mdl_json_add_int(to, "delivery_id", delivery->id);
    mdl_json_add_string(to, "event_id", mdl_event_id_text(delivery->event_id, p));
    if (delivery->type != NULL) {
        type_add(to, delivery->type, p);
    }
    mdl_frame_add_choice(to, mdl_delivery_status_names, (int)delivery->status);
    mdl_json_add_int_if(to, "attempts", delivery->attempts, delivery->attempts > 0);
    mdl_json_add_int_if(to, "answer", delivery->response_status, delivery->response_status != 0);
    mdl_json_add_string(to, "body", delivery->response_body);
    mdl_json_add_string(to, "error", delivery->error);
    mdl_present_date(to, "created", delivery->created_at);
    mdl_present_date(to, "next_attempt", delivery->attempts > 0 ? delivery->due_at : 0);
}

static int same_text(const char *text, const char *other)
{
    return text == NULL || other == NULL ? text == other : strcmp(text, other) == 0;
}

/* Whether two deliveries failed in the same way, so that it needs to be said only once. */
static int delivery_fails_alike(const mdl_webhook_delivery_t *a, const mdl_webhook_delivery_t *b)
{
    return a->error != NULL && a->response_status == b->response_status &&
           same_text(a->error, b->error) && same_text(a->response_body, b->response_body);
}

static void deliveries_add(mdl_json_t *data, const apr_array_header_t *found, apr_pool_t *p)
{
    mdl_json_t *deliveries = mdl_json_add_array(data, "deliveries");
    const mdl_webhook_delivery_t *each = NULL;
    int unfolded = 0; /* the newest failure is, so that its reason needs no click */

    mdl_json_add_bool(data, "has_deliveries", found->nelts > 0);
    for (int i = 0; i < found->nelts && i < LINES; i++) {
        const mdl_webhook_delivery_t *before = each;
        mdl_json_t *delivery = mdl_json_add_object(deliveries, NULL);

        each = APR_ARRAY_IDX(found, i, const mdl_webhook_delivery_t *);
        delivery_add(delivery, each, p);
        mdl_json_add_bool(delivery, "same", before != NULL && delivery_fails_alike(before, each));
        mdl_json_add_bool(delivery, "unfolded", each->error != NULL && !unfolded);
        unfolded |= each->error != NULL;
    }
    mdl_json_add_int_if(data, "before", each != NULL ? each->id : 0, found->nelts > LINES);
}

/* --- the list ------------------------------------------------------------------------------- */

MDL_EFFECT(mdl_webhook_page, mdl_list_page_t *)

static int webhooks_send(mdl_visit_t *visit, int status)
{
    apr_pool_t *p = visit->r->pool;
    mdl_list_page_t page = {
        .shop_id = visit->shop->id, .before = APR_INT64_MAX, .limit = MDL_WEBHOOKS_MAX};
    mdl_json_t *data, *webhooks;
    apr_status_t rv = mdl_visit_read(visit, mdl_webhook_page_effect, &page);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "has_webhooks", page.found->nelts > 0);
    mdl_json_add_bool(data, "has_room", page.found->nelts < MDL_WEBHOOKS_MAX);
    webhooks = mdl_json_add_array(data, "webhooks");
    for (int i = 0; i < page.found->nelts; i++) {
        webhook_add(mdl_json_add_object(webhooks, NULL),
                    APR_ARRAY_IDX(page.found, i, const mdl_webhook_t *), p);
    }
    form_add(data, visit, NULL);
    return mdl_frame_send(visit, status, "webhooks.html", data, NULL);
}

static int webhooks_show(mdl_visit_t *visit)
{
    return webhooks_send(visit, HTTP_OK);
}

/* --- forms ---------------------------------------------------------------------------------- */

static apr_status_t form_read_types(mdl_visit_t *visit, mdl_webhook_edit_t *edit)
{
    const char *events = mdl_visit_field(visit, "events");
    apr_array_header_t *types = apr_array_make(visit->r->pool, 8, sizeof(const char *));

    if (events == NULL || strcmp(events, "some") != 0) {
        return APR_SUCCESS;
    }
    for (int i = 0; i < MDL_EVENT_WEBHOOK_TEST; i++) {
        if (mdl_visit_field(visit, mdl_event_type_names[i]) != NULL) {
            APR_ARRAY_PUSH(types, const char *) = mdl_event_type_names[i];
        }
    }
    if (types->nelts == 0) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "no_event_types",
                               "Choose at least one event, or all of them.");
    }
    edit->types = mdl_json_texts(types, visit->r->pool);
    return APR_SUCCESS;
}

static apr_status_t form_read(mdl_visit_t *visit, mdl_webhook_edit_t *edit)
{
    edit->url = mdl_visit_field(visit, "url");
    edit->description = mdl_visit_field(visit, "description");
    edit->set_description = edit->set_types = 1;
    if (edit->url == NULL ||
        !mdl_webhook_url_valid(visit->service->settings, edit->url, visit->r->pool)) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_webhook_url",
                               "The URL has up to 2,048 characters, and " MDL_WEBHOOK_URL_RULE);
    }
    if (edit->description != NULL && !mdl_utf8_is_text(edit->description, MDL_WEBHOOK_TEXT_MAX)) {
        return mdl_problem_set(
            &visit->problem, HTTP_BAD_REQUEST, "invalid_description",
            "A description has up to 255 characters, none of them a control character.");
    }
    return form_read_types(visit, edit);
}

static int secret_send(mdl_visit_t *visit, const mdl_webhook_t *webhook, int rotated)
{
    mdl_json_t *data = mdl_frame_data(visit);

    mdl_json_add_bool(data, "rotated", rotated);
    mdl_json_add_string(data, "secret", webhook->secret);
    webhook_add(data, webhook, visit->r->pool);
    return mdl_frame_send(visit, HTTP_OK, "webhook_secret.html", data, NULL);
}

typedef struct {
    mdl_webhook_edit_t edit;
    mdl_visit_t *visit;
} webhook_create_t;

static apr_status_t webhook_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    webhook_create_t *create = arg;
    mdl_visit_t *visit = create->visit;
    apr_status_t rv = mdl_webhook_create(db, p, &create->edit);

    if (rv == APR_SUCCESS) {
        visit->audit.noun_id = apr_psprintf(p, "%" APR_INT64_T_FMT,
                                            ((mdl_webhook_t *)create->edit.ref.entity)->id);
    }
    return rv;
}

static int webhooks_create(mdl_visit_t *visit)
{
    webhook_create_t create = {
        .edit = {.ref = webhook_ref(visit), .is_active = 1, .secret = visit->service->secret},
        .visit = visit};
    apr_status_t rv;

    rv = visit->shop->status == MDL_SHOP_APPROVED
             ? form_read(visit, &create.edit)
             : mdl_problem_set(&visit->problem, HTTP_FORBIDDEN, "shop_not_approved",
                               "The shop must be approved before it can have webhook endpoints.");
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, webhook_create_effect, &create);
    }
    if (rv == MDL_EPROBLEM) {
        return webhooks_send(visit, visit->problem.status);
    }
    return rv == APR_SUCCESS ? secret_send(visit, create.edit.ref.entity, 0)
                             : mdl_frame_failure(visit, rv);
}

/* --- one endpoint --------------------------------------------------------------------------- */

MDL_EFFECT(mdl_webhook_delivery_page, mdl_webhook_delivery_page_t *)

static int webhook_send(mdl_visit_t *visit, int status)
{
    mdl_webhook_delivery_page_t list = {
        .page = {.before = mdl_visit_before(visit), .limit = LINES + 1},
        .ref = {.shop_id = visit->shop->id,
                .id = mdl_identifier_parse(visit->argument),
                .problem = &visit->problem}};
    apr_status_t rv = mdl_visit_read(visit, mdl_webhook_delivery_page_effect, &list);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    webhook_add(data, list.ref.entity, visit->r->pool);
    form_add(data, visit, list.ref.entity);
    deliveries_add(data, list.page.found, visit->r->pool);
    return mdl_frame_send(visit, status, "webhook.html", data, NULL);
}

static int webhooks_show_one(mdl_visit_t *visit)
{
    return webhook_send(visit, HTTP_OK);
}

/* Redirects to the endpoint's page after its form. */
static int webhook_done(mdl_visit_t *visit, apr_status_t rv)
{
    return mdl_frame_done(visit, rv,
                          apr_pstrcat(visit->r->pool, "webhooks/", visit->argument, NULL));
}

MDL_EFFECT(mdl_webhook_change, mdl_webhook_edit_t *)

static int webhooks_change(mdl_visit_t *visit)
{
    mdl_webhook_edit_t edit = {.ref = webhook_ref(visit),
                               .is_active = mdl_visit_field(visit, "active") != NULL};
    apr_status_t rv = form_read(visit, &edit);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_webhook_change_effect, &edit);
    }
    return rv == MDL_EPROBLEM ? webhook_send(visit, visit->problem.status)
                              : webhook_done(visit, rv);
}

MDL_EFFECT(mdl_webhook_rotate, mdl_webhook_edit_t *)

static int webhooks_rotate(mdl_visit_t *visit)
{
    mdl_webhook_edit_t edit = {.ref = webhook_ref(visit), .secret = visit->service->secret};
    apr_status_t rv = mdl_visit_write(visit, mdl_webhook_rotate_effect, &edit);

    return rv == APR_SUCCESS ? secret_send(visit, edit.ref.entity, 1)
                             : mdl_frame_failure(visit, rv);
}

MDL_EFFECT(mdl_webhook_test, mdl_webhook_test_t *)

static int webhooks_test(mdl_visit_t *visit)
{
    mdl_webhook_test_t test = {.ref = webhook_ref(visit)};

    return webhook_done(visit, mdl_visit_write(visit, mdl_webhook_test_effect, &test));
}

MDL_EFFECT(mdl_webhook_resend, mdl_webhook_resend_t *)

static int webhooks_resend(mdl_visit_t *visit)
{
    mdl_webhook_resend_t resend = {.ref = webhook_ref(visit),
                                   .id = mdl_identifier_parse(mdl_visit_field(visit, "delivery"))};

    return webhook_done(visit, mdl_visit_write(visit, mdl_webhook_resend_effect, &resend));
}

MDL_EFFECT(mdl_webhook_find, mdl_entity_ref_t *)

static int webhooks_ask(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = webhook_ref(visit);
    apr_status_t rv = mdl_visit_read(visit, mdl_webhook_find_effect, &ref);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    webhook_add(data, ref.entity, visit->r->pool);
    return mdl_frame_send(visit, HTTP_OK, "webhook_delete.html", data, NULL);
}

MDL_EFFECT(mdl_webhook_delete, mdl_entity_ref_t *)

static int webhooks_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = webhook_ref(visit);

    return mdl_frame_done(visit, mdl_visit_write(visit, mdl_webhook_delete_effect, &ref),
                          "webhooks");
}

const mdl_page_t mdl_webhook_pages[] = {
    {"{}/webhooks", "webhook_endpoint", "created", .sees = MDL_ROLE_READ_ONLY, .get = webhooks_show,
     .acts = MDL_ROLE_OWNER, .post = webhooks_create},
    {"{}/webhooks/{}", "webhook_endpoint", "changed", .sees = MDL_ROLE_READ_ONLY,
     .get = webhooks_show_one, .acts = MDL_ROLE_OWNER, .post = webhooks_change,
     .done = "webhook_changed"},
    {"{}/webhooks/{}/rotate-secret", "webhook_endpoint", "secret_rotated", .acts = MDL_ROLE_OWNER,
     .post = webhooks_rotate},
    {"{}/webhooks/{}/test", "webhook_endpoint", "tested", .acts = MDL_ROLE_OWNER,
     .post = webhooks_test, .done = "webhook_tested"},
    {"{}/webhooks/{}/resend", "webhook_endpoint", "event_resent", .acts = MDL_ROLE_OWNER,
     .post = webhooks_resend, .done = "webhook_resent"},
    {"{}/webhooks/{}/delete", "webhook_endpoint", "deleted", .sees = MDL_ROLE_OWNER,
     .get = webhooks_ask, .acts = MDL_ROLE_OWNER, .post = webhooks_delete,
     .done = "webhook_deleted"},
    {0},
};
