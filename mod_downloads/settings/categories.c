#include "settings/pages.h"

#include "base/text/present.h"
#include "core/catalog/category.h"
#include "core/version.h"
#include "settings/catalog.h"
#include "settings/frame.h"

#define LINES 50

MDL_EFFECT(mdl_category_page, mdl_list_page_t *)
MDL_EFFECT(mdl_category_find, mdl_entity_ref_t *)
MDL_EFFECT(mdl_category_change, mdl_category_edit_t *)
MDL_EFFECT(mdl_category_delete, mdl_entity_ref_t *)

static void category_add(mdl_json_t *to, const mdl_category_t *category)
{
    mdl_json_add_int(to, "category_id", category->id);
    mdl_json_add_string(to, "category_name", category->name);
    mdl_present_date(to, "updated", category->updated_at);
}

static int categories_send(mdl_visit_t *visit, int status)
{
    mdl_list_page_t page = {
        .shop_id = visit->shop->id, .before = mdl_visit_before(visit), .limit = LINES + 1};
    mdl_json_t *data, *categories;
    apr_status_t rv = mdl_visit_read(visit, mdl_category_page_effect, &page);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    categories = mdl_json_add_array(data, "categories");
    for (int i = 0; i < page.found->nelts && i < LINES; i++) {
        category_add(mdl_json_add_object(categories, NULL),
                     APR_ARRAY_IDX(page.found, i, mdl_category_t *));
    }
    mdl_json_add_bool(data, "has_categories", page.found->nelts > 0);
    if (page.found->nelts > LINES) {
        mdl_json_add_int(data, "before",
                         APR_ARRAY_IDX(page.found, LINES - 1, mdl_category_t *)->id);
    }
    mdl_json_add_string(data, "typed_name", mdl_visit_field(visit, "name"));
    return mdl_frame_send(visit, status, "categories.html", data, NULL);
}

static int categories_show(mdl_visit_t *visit)
{
    return categories_send(visit, HTTP_OK);
}

static int category_send(mdl_visit_t *visit, int status)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);
    mdl_problem_t none = {0};
    const mdl_category_t *category;
    mdl_json_t *data;
    apr_status_t rv;

    ref.versions = NULL;
    ref.problem = &none;
    rv = mdl_visit_read(visit, mdl_category_find_effect, &ref);
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, none.status == HTTP_NOT_FOUND ? APR_ENOENT : rv);
    }
    category = ref.entity;
    data = mdl_frame_data(visit);
    category_add(data, category);
    mdl_json_add_int(data, "seen", mdl_version(category->updated_at));
    mdl_json_add_string(data, "typed_name",
                        visit->fields != NULL ? mdl_visit_field(visit, "name") : category->name);
    return mdl_frame_send(visit, status, "category.html", data, NULL);
}

static int category_show(mdl_visit_t *visit)
{
    return category_send(visit, HTTP_OK);
}

/* --- forms ---------------------------------------------------------------------------------- */

typedef struct {
    mdl_category_edit_t edit;
    mdl_visit_t *visit;
} categories_create_t;

static apr_status_t categories_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    categories_create_t *categories = arg;
    apr_status_t rv = mdl_category_create(db, p, &categories->edit);

    if (rv == APR_SUCCESS) {
        mdl_catalog_note_id(categories->visit,
                            ((const mdl_category_t *)categories->edit.ref.entity)->id);
    }
    return rv;
}

static mdl_category_edit_t category_edit(mdl_visit_t *visit)
{
    mdl_category_edit_t edit = {.ref = mdl_catalog_ref(visit),
                                .name = mdl_visit_field(visit, "name")};

    visit->audit.detail = edit.name;
    return edit;
}

static int categories_create(mdl_visit_t *visit)
{
    categories_create_t categories = {.edit = category_edit(visit), .visit = visit};
    apr_status_t rv = mdl_catalog_check_name(visit, categories.edit.name);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, categories_create_effect, &categories);
    }
    return mdl_catalog_done(visit, rv, "categories", 0, categories_send);
}

static int category_change(mdl_visit_t *visit)
{
    mdl_category_edit_t edit = category_edit(visit);
    apr_status_t rv = mdl_catalog_check_name(visit, edit.name);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_category_change_effect, &edit);
    }
    return mdl_catalog_done(visit, rv, "categories", edit.ref.id, category_send);
}

static int category_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);

    return mdl_catalog_done(visit, mdl_visit_write(visit, mdl_category_delete_effect, &ref),
                            "categories", 0, category_send);
}

const mdl_page_t mdl_category_pages[] = {
    {"{}/categories", "category", "created", .sees = MDL_ROLE_READ_ONLY, .get = categories_show,
     .acts = MDL_ROLE_STAFF, .post = categories_create, .done = "category_created"},
    {"{}/categories/{}", "category", "changed", .sees = MDL_ROLE_READ_ONLY, .get = category_show,
     .acts = MDL_ROLE_STAFF, .post = category_change, .done = "category_changed"},
    {"{}/categories/{}/delete", "category", "deleted", .acts = MDL_ROLE_STAFF,
     .post = category_delete, .done = "category_deleted"},
    {0},
};
