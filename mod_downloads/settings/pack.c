#include "settings/pages.h"

#include <apr_strings.h>

#include "base/text/present.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/pack.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/version.h"
#include "settings/catalog.h"
#include "settings/filter.h"
#include "settings/frame.h"

#define FOUND_SHOWN 20 /* files that can be added */

/* --- the page ------------------------------------------------------------------------------- */

static const mdl_filter_field_t fields[] = {
    {"q", .max = MDL_FILENAME_MAX},
    {0},
};

typedef struct {
    mdl_entity_ref_t ref;
    apr_array_header_t *files;    /* out: mdl_asset_t *, in the pack's order */
    apr_array_header_t *products; /* out: mdl_asset_user_t * */
    mdl_asset_list_t found;       /* files that can be added */
} pack_t;

static apr_status_t pack_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    pack_t *pack = arg;
    apr_status_t rv;

    if ((rv = mdl_pack_find(db, p, &pack->ref)) != APR_SUCCESS ||
        (rv = mdl_asset_find_all(db, pack->ref.shop_id,
                                 ((const mdl_pack_t *)pack->ref.entity)->file_ids, &pack->files,
                                 p)) != APR_SUCCESS ||
        (rv = mdl_products_of_pack(db, pack->ref.id, &pack->products, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_asset_list(db, p, &pack->found);
}

static mdl_json_t *pack_add_file(mdl_json_t *array, const mdl_asset_t *asset)
{
    mdl_json_t *to = mdl_json_add_object(array, NULL);

    mdl_json_add_int(to, "file_id", asset->id);
    mdl_json_add_string(to, "title", asset->title);
    mdl_json_add_string(to, "filename", asset->filename);
    mdl_frame_add_choice(to, mdl_asset_status_names, (int)asset->status);
    return to;
}

static void pack_add_files(mdl_json_t *to, const apr_array_header_t *files)
{
    mdl_json_t *array = mdl_json_add_array(to, "files");

    mdl_json_add_bool(to, "has_files", files->nelts > 0);
    for (int i = 0; i < files->nelts; i++) {
        mdl_json_t *file = pack_add_file(array, APR_ARRAY_IDX(files, i, const mdl_asset_t *));

        mdl_json_add_bool(file, "has_above", i > 0);
        mdl_json_add_bool(file, "has_below", i + 1 < files->nelts);
    }
}

/* Adds the files that were searched for, without those of the pack. */
static void pack_add_found(mdl_json_t *to, const pack_t *pack)
{
    const apr_array_header_t *found = pack->found.page.found;
    mdl_json_t *array = mdl_json_add_array(to, "found");
    int shown = 0;

    for (int i = 0; i < found->nelts; i++) {
        const mdl_asset_t *asset = APR_ARRAY_IDX(found, i, const mdl_asset_t *);

        if (!mdl_ids_has(((const mdl_pack_t *)pack->ref.entity)->file_ids, asset->id)) {
            pack_add_file(array, asset);
            shown++;
        }
    }
    mdl_json_add_bool(to, "has_found", shown > 0);
    mdl_json_add_bool(to, "more_found", found->nelts == FOUND_SHOWN);
}

static int pack_send(mdl_visit_t *visit, int status)
{
    pack_t pack = {
        .ref = mdl_catalog_ref(visit),
        .found = {
            .page = {.shop_id = visit->shop->id, .before = APR_INT64_MAX, .limit = FOUND_SHOWN}}};
    mdl_problem_t none = {0};
    const mdl_pack_t *entity;
    mdl_filter_t filter;
    mdl_json_t *data;
    apr_status_t rv;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    pack.found.prefix = mdl_filter_value(&filter, "q");
    pack.ref.versions = NULL;
    pack.ref.problem = &none;
    rv = mdl_visit_read(visit, pack_effect, &pack);
    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, none.status == HTTP_NOT_FOUND ? APR_ENOENT : rv);
    }
    entity = pack.ref.entity;
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    mdl_json_add_int(data, "pack_id", entity->id);
    mdl_json_add_string(data, "pack_name", entity->name);
    mdl_json_add_int(data, "seen", mdl_version(entity->updated_at));
    mdl_json_add_string(data, "typed_name",
                        mdl_visit_field(visit, "name") != NULL ? mdl_visit_field(visit, "name")
                                                               : entity->name);
    pack_add_files(data, pack.files);
    mdl_catalog_add_products(data, pack.products, visit->r->pool);
    pack_add_found(data, &pack);
    mdl_catalog_add_holders(data, visit);
    return mdl_frame_send(visit, status, "pack.html", data, NULL);
}

static int pack_show(mdl_visit_t *visit)
{
    return pack_send(visit, HTTP_OK);
}

/* --- its forms ------------------------------------------------------------------------------ */

static int pack_done(mdl_visit_t *visit, apr_status_t rv)
{
    return mdl_catalog_done(visit, rv, "packs", mdl_identifier_parse(visit->argument), pack_send);
}

MDL_EFFECT(mdl_pack_change, mdl_pack_edit_t *)

static int pack_rename(mdl_visit_t *visit)
{
    mdl_pack_edit_t edit = {.ref = mdl_catalog_ref(visit), .name = mdl_visit_field(visit, "name")};
    apr_status_t rv = mdl_catalog_check_name(visit, edit.name);

    visit->audit.detail = edit.name;
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_pack_change_effect, &edit);
    }
    return pack_done(visit, rv);
}

/* A button beside a file; its name says what it does, its value is the file. */
typedef enum { PRESSED_ADD, PRESSED_REMOVE, PRESSED_UP, PRESSED_DOWN, PRESSED_NONE } pressed_t;

static const char *const buttons[] = {"add", "remove", "up", "down"};

/* The list after a button was pressed, in p. */
static apr_array_header_t *pack_press(const apr_array_header_t *ids, pressed_t pressed,
                                      apr_int64_t file, apr_pool_t *p)
{
    apr_array_header_t *after = apr_array_make(p, ids->nelts + 1, sizeof(apr_int64_t));
    int at = 0, to;

    if (pressed == PRESSED_ADD && !mdl_ids_has(ids, file)) {
        apr_array_cat(after, ids);
        APR_ARRAY_PUSH(after, apr_int64_t) = file;
        return after;
    }
    while (at < ids->nelts && APR_ARRAY_IDX(ids, at, apr_int64_t) != file) {
        at++;
    }
    to = pressed == PRESSED_UP ? at - 1 : pressed == PRESSED_DOWN ? at + 1 : at;
    if (at == ids->nelts || to < 0 || to == ids->nelts) {
        to = at;
    }
    for (int i = 0; i < ids->nelts; i++) {
        apr_int64_t each = APR_ARRAY_IDX(ids, i == to ? at : i == at ? to : i, apr_int64_t);

        if (each != file || pressed != PRESSED_REMOVE) {
            APR_ARRAY_PUSH(after, apr_int64_t) = each;
        }
    }
    return after;
}

typedef struct {
    mdl_visit_t *visit;
    pressed_t pressed;
    apr_int64_t file;
} pack_arrange_t;

/* The list is read and written in one transaction, and only in the version that was read. */
static apr_status_t pack_arrange_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const pack_arrange_t *arrange = arg;
    mdl_pack_edit_t edit = {.ref = mdl_catalog_ref(arrange->visit)};
    const mdl_pack_t *pack;
    apr_status_t rv = mdl_pack_find(db, p, &edit.ref);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    pack = edit.ref.entity;
    edit.ref.versions = mdl_ids_of(mdl_version(pack->updated_at), p);
    edit.file_ids = pack_press(pack->file_ids, arrange->pressed, arrange->file, p);
    if (edit.file_ids->nelts > MDL_PACK_FILES_MAX) {
        return mdl_problem_set(edit.ref.problem, 422, "too_many_files",
                               "A pack has at most " APR_STRINGIFY(MDL_PACK_FILES_MAX) " files.");
    }
    return mdl_pack_change(db, p, &edit);
}

static int pack_arrange(mdl_visit_t *visit)
{
    pack_arrange_t arrange = {.visit = visit, .pressed = PRESSED_ADD};
    const char *value = NULL;

    while (arrange.pressed < PRESSED_NONE &&
           (value = mdl_visit_field(visit, buttons[arrange.pressed])) == NULL) {
        arrange.pressed++;
    }
    arrange.file = mdl_identifier_parse(value);
    if (arrange.file == 0) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    return pack_done(visit, mdl_visit_write(visit, pack_arrange_effect, &arrange));
}

MDL_EFFECT(mdl_pack_delete, mdl_entity_ref_t *)

static int pack_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = mdl_catalog_ref(visit);

    return mdl_catalog_done(visit, mdl_visit_write(visit, mdl_pack_delete_effect, &ref), "packs", 0,
                            pack_send);
}

const mdl_page_t mdl_pack_pages[] = {
    {"{}/packs/{}", "pack", "changed", .sees = MDL_ROLE_READ_ONLY, .get = pack_show,
     .acts = MDL_ROLE_STAFF, .post = pack_rename, .done = "pack_changed"},
    {"{}/packs/{}/files", "pack", "changed", .acts = MDL_ROLE_STAFF, .post = pack_arrange,
     .done = "pack_changed"},
    {"{}/packs/{}/delete", "pack", "deleted", .acts = MDL_ROLE_STAFF, .post = pack_delete,
     .done = "pack_deleted"},
    {0},
};
