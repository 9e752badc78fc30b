#include "settings/pages.h"

#include "base/text/present.h"
#include "core/catalog/pack.h"
#include "settings/catalog.h"
#include "settings/frame.h"

#define LINES 50

MDL_EFFECT(mdl_pack_page, mdl_list_page_t *)

static int packs_send(mdl_visit_t *visit, int status)
{
    mdl_list_page_t page = {
        .shop_id = visit->shop->id, .before = mdl_visit_before(visit), .limit = LINES + 1};
    mdl_json_t *data, *packs;
    apr_status_t rv = mdl_visit_read(visit, mdl_pack_page_effect, &page);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    packs = mdl_json_add_array(data, "packs");
    for (int i = 0; i < page.found->nelts && i < LINES; i++) {
        const mdl_pack_t *each = APR_ARRAY_IDX(page.found, i, const mdl_pack_t *);
        mdl_json_t *to = mdl_json_add_object(packs, NULL);

        mdl_json_add_int(to, "pack_id", each->id);
        mdl_json_add_string(to, "pack_name", each->name);
        mdl_json_add_int(to, "file_count", each->file_ids->nelts);
        mdl_present_date(to, "updated", each->updated_at);
    }
    mdl_json_add_bool(data, "has_packs", page.found->nelts > 0);
    if (page.found->nelts > LINES) {
        mdl_json_add_int(data, "before",
                         APR_ARRAY_IDX(page.found, LINES - 1, const mdl_pack_t *)->id);
    }
    mdl_json_add_string(data, "typed_name", mdl_visit_field(visit, "name"));
    return mdl_frame_send(visit, status, "packs.html", data, NULL);
}

static int packs_show(mdl_visit_t *visit)
{
    return packs_send(visit, HTTP_OK);
}

typedef struct {
    mdl_pack_edit_t edit;
    mdl_visit_t *visit;
    apr_int64_t id; /* out */
} packs_create_t;

static apr_status_t packs_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    packs_create_t *packs = arg;
    apr_status_t rv = mdl_pack_create(db, p, &packs->edit);

    if (rv == APR_SUCCESS) {
        packs->id = ((const mdl_pack_t *)packs->edit.ref.entity)->id;
        mdl_catalog_note_id(packs->visit, packs->id);
    }
    return rv;
}

/* A new pack has no files; its page adds them. */
static int packs_create(mdl_visit_t *visit)
{
    packs_create_t packs = {
        .edit = {.ref = mdl_catalog_ref(visit), .name = mdl_visit_field(visit, "name")},
        .visit = visit};
    apr_status_t rv = mdl_catalog_check_name(visit, packs.edit.name);

    visit->audit.detail = packs.edit.name;
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, packs_create_effect, &packs);
    }
    return mdl_catalog_done(visit, rv, "packs", packs.id, packs_send);
}

const mdl_page_t mdl_pack_list_pages[] = {
    {"{}/packs", "pack", "created", .sees = MDL_ROLE_READ_ONLY, .get = packs_show,
     .acts = MDL_ROLE_STAFF, .post = packs_create, .done = "pack_created"},
    {0},
};
