#include "ctl/catalog.h"

#include <stddef.h>

#include <apr_strings.h>

#include "core/catalog/asset.h"
#include "core/catalog/mapping.h"
#include "ctl/listing.h"

static const mdl_field_t asset_fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_asset_t, id), 1, NULL},
    {"status", MDL_FIELD_ENUM, offsetof(mdl_asset_t, status), 1, mdl_asset_status_names},
    {"filename", MDL_FIELD_TEXT, offsetof(mdl_asset_t, filename), 1, NULL},
    {"title", MDL_FIELD_TEXT, offsetof(mdl_asset_t, title), 0, NULL},
    {"content_type", MDL_FIELD_TEXT, offsetof(mdl_asset_t, content_type), 0, NULL},
    {"size", MDL_FIELD_NUMBER, offsetof(mdl_asset_t, size), 1, NULL},
    {"sha256", MDL_FIELD_TEXT, offsetof(mdl_asset_t, sha256), 0, NULL},
    {"source_url", MDL_FIELD_TEXT, offsetof(mdl_asset_t, source_url), 0, NULL},
    {"version", MDL_FIELD_INT, offsetof(mdl_asset_t, version), 1, NULL},
    {"former_version", MDL_FIELD_INT, offsetof(mdl_asset_t, former_version), 0, NULL},
    {"former_until", MDL_FIELD_TIME, offsetof(mdl_asset_t, former_until), 0, NULL},
    {"category_id", MDL_FIELD_ID, offsetof(mdl_asset_t, category_id), 0, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_asset_t, created_at), 0, NULL},
    {"updated_at", MDL_FIELD_TIME, offsetof(mdl_asset_t, updated_at), 1, NULL},
    {0},
};

static const mdl_field_t mapping_fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_mapping_t, id), 1, NULL},
    {"storefront_product_id", MDL_FIELD_TEXT, offsetof(mdl_mapping_t, storefront_product_id), 1,
     NULL},
    {"title", MDL_FIELD_TEXT, offsetof(mdl_mapping_t, title), 1, NULL},
    {"is_active", MDL_FIELD_FLAG, offsetof(mdl_mapping_t, is_active), 1, NULL},
    {"download_type", MDL_FIELD_ENUM, offsetof(mdl_mapping_t, download_type), 1,
     mdl_download_type_names},
    {"download_limit", MDL_FIELD_INT, offsetof(mdl_mapping_t, download_limit), 1, NULL},
    {"access_days", MDL_FIELD_INT, offsetof(mdl_mapping_t, access_days), 1, NULL},
    {"content", MDL_FIELD_ENUM, offsetof(mdl_mapping_t, content), 1, mdl_mapping_content_names},
    {"fresh_downloads", MDL_FIELD_FLAG, offsetof(mdl_mapping_t, fresh_downloads), 0, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_mapping_t, created_at), 0, NULL},
    {"updated_at", MDL_FIELD_TIME, offsetof(mdl_mapping_t, updated_at), 1, NULL},
    {0},
};

MDL_EFFECT(mdl_asset_list, mdl_asset_list_t *)
MDL_EFFECT(mdl_asset_get, mdl_entity_ref_t *)
MDL_EFFECT(mdl_mapping_list, mdl_mapping_list_t *)
MDL_EFFECT(mdl_mapping_find, mdl_entity_ref_t *)

int mdl_ctl_asset_list(mdl_ctl_t *ctl)
{
    mdl_asset_list_t list = {.page = {.summary = 1}};

    return mdl_ctl_list(ctl, mdl_asset_list_effect, &list.page, asset_fields,
                        "The shop has no file.");
}

int mdl_ctl_asset_show(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_entity_ref_t ref = {.problem = &problem};
    int failed = mdl_ctl_find(ctl, mdl_asset_get_effect, &ref);

    if (!failed) {
        mdl_printer_record(ctl->output, asset_fields, ref.entity);
    }
    return failed;
}

int mdl_ctl_mapping_list(mdl_ctl_t *ctl)
{
    mdl_mapping_list_t list = {.page = {.summary = 1}, .is_active = -1};

    return mdl_ctl_list(ctl, mdl_mapping_list_effect, &list.page, mapping_fields,
                        "The shop has no mapping.");
}

/* Prints ids, or adds them to the document of --json. */
static void mapping_print_ids(mdl_ctl_t *ctl, mdl_json_t *document, const char *name,
                              const apr_array_header_t *ids)
{
    mdl_json_t *list = mdl_json_add_array(document, name);
    const char *text = "";

    for (int i = 0; ids != NULL && i < ids->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(ids, i, apr_int64_t);

        mdl_json_add_int(list, NULL, id);
        text = apr_psprintf(ctl->p, "%s%s%" APR_INT64_T_FMT, text, i > 0 ? " " : "", id);
    }
    mdl_printer_line(ctl->output, "%-23s%s", name, *text ? text : "-");
}

int mdl_ctl_mapping_show(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_entity_ref_t ref = {.problem = &problem};
    int failed = mdl_ctl_find(ctl, mdl_mapping_find_effect, &ref);
    mdl_json_t *document = mdl_json_object(ctl->p), *variants;
    const mdl_mapping_t *mapping = ref.entity;

    if (failed) {
        return failed;
    }
    if (!mdl_printer_is_json(ctl->output)) {
        mdl_printer_record(ctl->output, mapping_fields, mapping);
    }
    mdl_printer_fill(document, mapping_fields, mapping);
    variants = mdl_json_add_array(document, "storefront_variant_ids");
    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        mdl_json_add_string(variants, NULL,
                            APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *));
    }
    mdl_printer_line(ctl->output, "%-23s%s", "storefront_variant_ids",
                     mapping->storefront_variant_ids->nelts > 0
                         ? apr_array_pstrcat(ctl->p, mapping->storefront_variant_ids, ' ')
                         : "-");
    mapping_print_ids(ctl, document, "file_ids", mapping->file_ids);
    mapping_print_ids(ctl, document, "pack_ids", mapping->pack_ids);
    mapping_print_ids(ctl, document, "link_ids", mapping->link_ids);
    mapping_print_ids(ctl, document, "license_key_tag_ids", mapping->license_key_tag_ids);
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}
