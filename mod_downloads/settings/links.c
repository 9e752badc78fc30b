#include "settings/pages.h"

#include "base/text/present.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/link.h"
#include "core/version.h"
#include "settings/catalog.h"
#include "settings/frame.h"

#define LINES 50

MDL_EFFECT(mdl_link_page, mdl_list_page_t *)
MDL_EFFECT(mdl_link_change, mdl_link_edit_t *)
MDL_EFFECT(mdl_link_delete, mdl_entity_ref_t *)

static void link_add(mdl_json_t *to, const mdl_link_t *link)
{
    mdl_json_add_int(to, "link_id", link->id);
    mdl_json_add_string(to, "title", link->title);
    mdl_json_add_string(to, "url", link->url);
    mdl_present_date(to, "updated", link->updated_at);
}

/* Adds what was typed; without it, what is (NULL: nothing). */
static void link_add_typed(mdl_json_t *to, const mdl_visit_t *visit, const mdl_link_t *link)
{
    const char *title = mdl_visit_field(visit, "title");
    const char *url = mdl_visit_field(visit, "url");
    int typed = title != NULL || url != NULL || link == NULL;

    mdl_json_add_string(to, "typed_title", typed ? title : link->title);
    mdl_json_add_string(to, "typed_url", typed ? url : link->url);
}

static int links_send(mdl_visit_t *visit, int status)
{
    mdl_list_page_t page = {
        .shop_id = visit->shop->id, .before = mdl_visit_before(visit), .limit = LINES + 1};
    mdl_json_t *data, *links;
    apr_status_t rv = mdl_visit_read(visit, mdl_link_page_effect, &page);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    links = mdl_json_add_array(data, "links");
    for (int i = 0; i < page.found->nelts && i < LINES; i++) {
        link_add(mdl_json_add_object(links, NULL), APR_ARRAY_IDX(page.found, i, mdl_link_t *));
    }
    mdl_json_add_bool(data, "has_links", page.found->nelts > 0);
    if (page.found->nelts > LINES) {
        mdl_json_add_int(data, "before", APR_ARRAY_IDX(page.found, LINES - 1, mdl_link_t *)->id);
    }
    link_add_typed(data, visit, NULL);
    return mdl_frame_send(visit, status, "links.html", data, NULL);
}

static int links_show(mdl_visit_t *visit)
{
    return links_send(visit, HTTP_OK);
}

typedef struct {
    mdl_entity_ref_t ref;
    apr_array_header_t *products; /* out: mdl_asset_user_t * */
} link_t;

static apr_status_t link_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    link_t *link = arg;
    apr_status_t rv = mdl_link_find(db, p, &link->ref);

    return rv == APR_SUCCESS ? mdl_products_of_link(db, link->ref.id, &link->products, p) : rv;
}

static int link_send(mdl_visit_t *visit, int status)
{
    link_t link = {.ref = mdl_catalog_ref(visit)};
    const mdl_link_t *entity;
    mdl_problem_t none = {0};
    mdl_json_t *data;
    apr_status_t rv;

    link.ref.versions = NULL;
    link.ref.problem = &none;
    rv = mdl_visit_read(visit, link_effect, &link);
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, none.status == HTTP_NOT_FOUND ? APR_ENOENT : rv);
    }
    entity = link.ref.entity;
    data = mdl_frame_data(visit);
    link_add(data, entity);
    mdl_json_add_int(data, "seen", mdl_version(entity->updated_at));
    link_add_typed(data, visit, entity);
    mdl_catalog_add_products(data, link.products, visit->r->pool);
    mdl_catalog_add_holders(data, visit);
    return mdl_frame_send(visit, status, "link.html", data, NULL);
}

static int link_show(mdl_visit_t *visit)
{
    return link_send(visit, HTTP_OK);
}

/* --- forms ---------------------------------------------------------------------------------- */

static apr_status_t link_check(mdl_visit_t *visit, const mdl_link_edit_t *edit)
{
    apr_status_t rv = mdl_catalog_check_name(visit, edit->title);

    return rv != APR_SUCCESS || (edit->url != NULL && mdl_link_url_valid(edit->url))
               ? rv
               : mdl_problem_set(
                     &visit->problem, 400, "invalid_link",
                     "Give the whole https address of a page, of at most " APR_STRINGIFY(
                         MDL_LINK_URL_MAX) " characters, without a password.");
}

typedef struct {
    mdl_link_edit_t edit;
    mdl_visit_t *visit;
} links_create_t;

static apr_status_t links_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    links_create_t *links = arg;
    apr_status_t rv = mdl_link_create(db, p, &links->edit);

    if (rv == APR_SUCCESS) {
        mdl_catalog_note_id(links->visit, ((const mdl_link_t *)links->edit.ref.entity)->id);
    }
    return rv;
}

static mdl_link_edit_t link_edit(mdl_visit_t *visit)
{
    mdl_link_edit_t edit = {.ref = mdl_catalog_ref(visit),
                            .title = mdl_visit_field(visit, "title"),
                            .url = mdl_visit_field(visit, "url")};

    visit->audit.detail = edit.title;
    return edit;
}

static int links_create(mdl_visit_t *visit)
{
    links_create_t links = {.edit = link_edit(visit), .visit = visit};
    apr_status_t rv = link_check(visit, &links.edit);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, links_create_effect, &links);
    }
    return mdl_catalog_done(visit, rv, "links", 0, links_send);
}

static int link_change(mdl_visit_t *visit)
{
    mdl_link_edit_t edit = link_edit(visit);
    apr_status_t rv = link_check(visit, &edit);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_link_change_effect, &edit);
    }
    return mdl_catalog_done(visit, rv, "links", edit.ref.id, link_send);
}

static int link_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);

    return mdl_catalog_done(visit, mdl_visit_write(visit, mdl_link_delete_effect, &ref), "links", 0,
                            link_send);
}

const mdl_page_t mdl_link_pages[] = {
    {"{}/links", "link", "created", .sees = MDL_ROLE_READ_ONLY, .get = links_show,
     .acts = MDL_ROLE_STAFF, .post = links_create, .done = "link_created"},
    {"{}/links/{}", "link", "changed", .sees = MDL_ROLE_READ_ONLY, .get = link_show,
     .acts = MDL_ROLE_STAFF, .post = link_change, .done = "link_changed"},
    {"{}/links/{}/delete", "link", "deleted", .acts = MDL_ROLE_STAFF, .post = link_delete,
     .done = "link_deleted"},
    {0},
};
