#include <string.h>

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/utf8.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/version.h"
#include "settings/frame.h"
#include "settings/pages.h"
#include "settings/products.h"

#define TEXTS_MAX (1024 * 1024) /* bytes of a form with a note or variants */

static mdl_entity_ref_t product_ref(mdl_visit_t *visit)
{
    const char *seen = mdl_visit_field(visit, "seen");

    return (mdl_entity_ref_t){
        .shop_id = visit->shop->id,
        .id = mdl_identifier_parse(visit->argument),
        .versions = seen != NULL ? mdl_ids_of(mdl_identifier_parse(seen), visit->r->pool) : NULL,
        .problem = &visit->problem};
}

/* --- the page ------------------------------------------------------------------------------- */

static const char *const kinds[] = {[MDL_PRODUCT_FILE - 1] = "is_file",
                                    [MDL_PRODUCT_PACK - 1] = "is_pack",
                                    [MDL_PRODUCT_LINK - 1] = "is_link",
                                    [MDL_PRODUCT_TAG - 1] = "is_tag",
                                    NULL};

static void items_add(mdl_json_t *data, const char *name, const apr_array_header_t *items,
                      const mdl_mapping_t *mapping, apr_pool_t *p)
{
    mdl_json_t *array = mdl_json_add_array(data, name);
    mdl_product_content_t before = 0;

    for (int i = 0; i < items->nelts; i++) {
        const mdl_product_item_t *item = &APR_ARRAY_IDX(items, i, mdl_product_item_t);
        mdl_json_t *to = mdl_json_add_object(array, NULL);

        mdl_json_add_string(to, "item",
                            apr_psprintf(p, "%d-%" APR_INT64_T_FMT, (int)item->content, item->id));
        mdl_json_add_string(to, "name", item->name);
        mdl_json_add_string(
            to, "detail",
            item->detail != NULL && strcmp(item->detail, item->name) != 0 ? item->detail : NULL);
        mdl_frame_add_choice(to, kinds, (int)item->content - 1);
        mdl_json_add_bool(to, "follows", item->content == before);
        mdl_json_add_bool(
            to, "given",
            mdl_ids_has(*mdl_product_content((mdl_mapping_t *)mapping, item->content), item->id));
        before = item->content;
    }
}

static const char *variants_text(const mdl_mapping_t *mapping, apr_pool_t *p)
{
    const char *text = "";

    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        const char *variant = APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *);
        const char *title = APR_ARRAY_IDX(mapping->variant_titles, i, const char *);

        text = apr_pstrcat(p, text, mdl_product_number(variant), title != NULL ? " " : "",
                           title != NULL ? title : "", "\n", NULL);
    }
    return text;
}

static void product_add_number(mdl_json_t *to, const char *name, int number)
{
    mdl_json_add_int_if(to, name, number, number >= 0);
}

/* Adds what the form shows: what was typed, else the mapping's values. */
static void form_add(mdl_json_t *data, const mdl_visit_t *visit, const mdl_mapping_t *mapping)
{
    static const char *const texts[] = {"title", "note", "limit", "days", "variants"};
    int typed = visit->fields != NULL && strcmp(visit->audit.action, "saved") == 0;
    mdl_json_t *form = mdl_json_add_object(data, "form");
    apr_pool_t *p = visit->r->pool;

    if (typed) {
        for (apr_size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            mdl_json_add_string(form, apr_pstrcat(p, "typed_", texts[i], NULL),
                                mdl_visit_field(visit, texts[i]));
        }
    } else {
        mdl_json_add_string(form, "typed_title", mapping->title);
        mdl_json_add_string(form, "typed_note", mapping->note);
        product_add_number(form, "typed_limit", mapping->download_limit);
        product_add_number(form, "typed_days", mapping->access_days);
        mdl_json_add_string(form, "typed_variants", variants_text(mapping, p));
    }
    mdl_json_add_bool(form, "typed_active",
                      typed ? mdl_visit_field(visit, "active") != NULL : mapping->is_active);
    mdl_json_add_bool(form, "typed_separate",
                      typed ? mdl_visit_field(visit, "separate") != NULL
                            : mapping->download_type == MDL_DOWNLOAD_FILES);
    mdl_json_add_bool(form, "typed_pinned",
                      typed ? mdl_visit_field(visit, "pinned") != NULL
                            : mapping->content == MDL_CONTENT_PINNED);
    mdl_json_add_bool(form, "typed_fresh",
                      typed ? mdl_visit_field(visit, "fresh") != NULL : mapping->fresh_downloads);
}

MDL_EFFECT(mdl_product_find, mdl_product_find_t *)

static int product_send_template(mdl_visit_t *visit, int status, const char *template)
{
    const char *text = mdl_visit_parameter(visit, "find");
    mdl_product_find_t find = {.ref = product_ref(visit), .text = text};
    const mdl_mapping_t *mapping;
    mdl_json_t *data;
    apr_status_t rv;

    if (text != NULL && !mdl_utf8_is_text(text, MDL_PRODUCT_TITLE_MAX)) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, mdl_product_find_effect, &find)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mapping = find.ref.entity;
    data = mdl_frame_data(visit);
    mdl_products_add(data, find.product, visit->r->pool);
    mdl_json_add_int(data, "seen", mdl_version(mapping->updated_at));
    mdl_json_add_int(data, "default_limit",
                     visit->shop->download_limit >= 0 ? visit->shop->download_limit
                                                      : visit->service->settings->download_limit);
    mdl_json_add_int_if(data, "default_days", visit->shop->access_days,
                        visit->shop->access_days > 0);
    items_add(data, "contents", find.contents, mapping, visit->r->pool);
    items_add(data, "matches", find.matches, mapping, visit->r->pool);
    mdl_json_add_string(data, "find", text);
    form_add(data, visit, mapping);
    return mdl_frame_send(visit, status, template, data, NULL);
}

static int product_show(mdl_visit_t *visit)
{
    return product_send_template(visit, HTTP_OK, "product.html");
}

/* --- its forms ------------------------------------------------------------------------------ */

/* A form that changes the mapping. */
typedef struct {
    mdl_mapping_put_t put;
    mdl_visit_t *visit;
    apr_status_t (*change)(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping, apr_pool_t *p);
} product_edit_t;

static apr_status_t product_edit_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    product_edit_t *edit = arg;
    mdl_mapping_t *old;
    apr_status_t rv = mdl_mapping_lock(db, &edit->put, &old, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    edit->put.mapping = *old;
    /* mdl_mapping_replace compares with what is stored, so the lists may be changed in place. */
    rv = edit->change(db, edit->visit, &edit->put.mapping, p);
    return rv == APR_SUCCESS ? mdl_mapping_replace(db, p, &edit->put) : rv;
}

static int product_edit(mdl_visit_t *visit,
                        apr_status_t (*change)(mdl_db_t *db, mdl_visit_t *visit,
                                               mdl_mapping_t *mapping, apr_pool_t *p))
{
    mdl_entity_ref_t ref = product_ref(visit);
    product_edit_t edit = {.put = {.shop_id = ref.shop_id,
                                   .mapping.id = ref.id,
                                   .versions = ref.versions,
                                   .problem = &visit->problem},
                           .visit = visit,
                           .change = change};
    apr_status_t rv = mdl_visit_write(visit, product_edit_effect, &edit);

    return rv == MDL_EPROBLEM && visit->problem.status != HTTP_NOT_FOUND
               ? product_send_template(visit, visit->problem.status, "product.html")
               : mdl_frame_done(visit, rv,
                                apr_psprintf(visit->r->pool, "products/%" APR_INT64_T_FMT, ref.id));
}

/* A number that may be left out (-1); -2 for a fault. */
static int number_read(mdl_visit_t *visit, const char *name, int max)
{
    const char *text = mdl_visit_field(visit, name);
    int number = mdl_visit_number(text, max);

    return text == NULL ? -1 : number < 0 ? -2 : number;
}

static apr_status_t product_save(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                 apr_pool_t *p)
{
    const char *note = mdl_visit_field(visit, "note");
    apr_status_t rv;

    (void)db;
    if ((rv = mdl_products_read_title(visit, mapping)) != APR_SUCCESS ||
        (rv = mdl_products_read_variants(visit, mapping)) != APR_SUCCESS) {
        return rv;
    }
    mapping->note = note != NULL ? mdl_utf8_lines(note, p) : NULL;
    if (mapping->note != NULL && !mdl_utf8_is_lines(mapping->note, MDL_PRODUCT_NOTE_MAX)) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_note",
                               "A note has up to 1,000 characters.");
    }
    mapping->download_limit = number_read(visit, "limit", MDL_PRODUCT_DOWNLOADS_MAX);
    mapping->access_days = number_read(visit, "days", MDL_PRODUCT_DAYS_MAX);
    if (mapping->download_limit < -1) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_limit",
                               "Downloads of each file: give 0 to 1,000,000, or nothing.");
    }
    if (mapping->access_days < -1) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_days",
                               "Days of access: give 0 to 36,500, or nothing.");
    }
    mapping->is_active = mdl_visit_field(visit, "active") != NULL;
    mapping->content = mdl_visit_field(visit, "pinned") != NULL ? MDL_CONTENT_PINNED
                                                                : MDL_CONTENT_LIVE;
    mapping->fresh_downloads = mdl_visit_field(visit, "fresh") != NULL;
    mapping->download_type = mdl_visit_field(visit, "separate") != NULL ? MDL_DOWNLOAD_FILES
                                                                        : MDL_DOWNLOAD_ZIP;
    return APR_SUCCESS;
}

static int product_saves(mdl_visit_t *visit)
{
    return product_edit(visit, product_save);
}

static apr_status_t content_add(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                apr_pool_t *p)
{
    (void)db;
    (void)p;
    return mdl_products_add_content(visit, mapping);
}

static int product_adds(mdl_visit_t *visit)
{
    return product_edit(visit, content_add);
}

/* Removes an entry, or moves it before the one that it follows. */
static apr_status_t content_move(mdl_visit_t *visit, mdl_mapping_t *mapping, int removes)
{
    mdl_product_content_t content;
    apr_int64_t id;
    apr_status_t rv = mdl_products_read_item(visit, &content, &id);
    apr_array_header_t *list;
    int at = 0;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    list = *mdl_product_content(mapping, content);
    while (at < list->nelts && APR_ARRAY_IDX(list, at, apr_int64_t) != id) {
        at++;
    }
    if (at == list->nelts) {
        return APR_SUCCESS; /* somebody was faster */
    }
    if (removes) {
        for (list->nelts--; at < list->nelts; at++) {
            APR_ARRAY_IDX(list, at, apr_int64_t) = APR_ARRAY_IDX(list, at + 1, apr_int64_t);
        }
    } else if (at > 0) {
        APR_ARRAY_IDX(list, at, apr_int64_t) = APR_ARRAY_IDX(list, at - 1, apr_int64_t);
        APR_ARRAY_IDX(list, at - 1, apr_int64_t) = id;
    }
    return APR_SUCCESS;
}

static apr_status_t content_remove(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                   apr_pool_t *p)
{
    (void)db;
    (void)p;
    return content_move(visit, mapping, 1);
}

static int product_removes(mdl_visit_t *visit)
{
    return product_edit(visit, content_remove);
}

static apr_status_t content_raise(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                  apr_pool_t *p)
{
    (void)db;
    (void)p;
    return content_move(visit, mapping, 0);
}

static int product_raises(mdl_visit_t *visit)
{
    return product_edit(visit, content_raise);
}

/* Adds what another product gives. */
static apr_status_t content_copy(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                 apr_pool_t *p)
{
    const char *number = mdl_visit_field(visit, "from");
    mdl_mapping_t *from;
    apr_status_t rv = number != NULL && mdl_identifier_is_digits(number)
                          ? mdl_product_of_number(db, visit->shop->id, number, &from, p)
                          : APR_ENOENT;

    if (rv != APR_SUCCESS) {
        return rv != APR_ENOENT
                   ? rv
                   : mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "unknown_product",
                                     "The shop has no product with this number here.");
    }
    for (mdl_product_content_t kind = MDL_PRODUCT_FILE; kind <= MDL_PRODUCT_TAG; kind++) {
        const apr_array_header_t *list = *mdl_product_content(from, kind);

        for (int i = 0; i < list->nelts; i++) {
            if (!mdl_product_content_add(mapping, kind, APR_ARRAY_IDX(list, i, apr_int64_t))) {
                return mdl_products_refuse_full(visit);
            }
        }
    }
    return APR_SUCCESS;
}

static int product_copies(mdl_visit_t *visit)
{
    return product_edit(visit, content_copy);
}

static int product_ask(mdl_visit_t *visit)
{
    return product_send_template(visit, HTTP_OK, "product_delete.html");
}

MDL_EFFECT(mdl_mapping_delete, mdl_entity_ref_t *)

static int product_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = product_ref(visit);

    return mdl_frame_done(visit, mdl_visit_write(visit, mdl_mapping_delete_effect, &ref),
                          "products");
}

const mdl_page_t mdl_product_pages[] = {
    {"{}/products/{}", "mapping", "saved", .sees = MDL_ROLE_READ_ONLY, .get = product_show,
     .acts = MDL_ROLE_STAFF, .post = product_saves, .done = "product_saved",
     .max_length = TEXTS_MAX},
    {"{}/products/{}/add", "mapping", "changed", .acts = MDL_ROLE_STAFF, .post = product_adds,
     .done = "content_added"},
    {"{}/products/{}/remove", "mapping", "changed", .acts = MDL_ROLE_STAFF, .post = product_removes,
     .done = "content_removed"},
    {"{}/products/{}/up", "mapping", "changed", .acts = MDL_ROLE_STAFF, .post = product_raises,
     .done = "content_moved"},
    {"{}/products/{}/copy", "mapping", "changed", .acts = MDL_ROLE_STAFF, .post = product_copies,
     .done = "content_copied"},
    {"{}/products/{}/delete", "mapping", "deleted", .sees = MDL_ROLE_STAFF, .get = product_ask,
     .acts = MDL_ROLE_STAFF, .post = product_delete, .done = "product_deleted"},
    {0},
};
