#include "settings/catalog.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/utf8.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "settings/frame.h"

#define PRODUCTS_SHOWN 20

mdl_entity_ref_t mdl_catalog_ref(mdl_visit_t *visit)
{
    const char *seen = mdl_visit_field(visit, "seen");

    return (mdl_entity_ref_t){
        .shop_id = visit->shop->id,
        .id = mdl_identifier_parse(visit->argument),
        .versions = seen != NULL ? mdl_ids_of(mdl_identifier_parse(seen), visit->r->pool) : NULL,
        .problem = &visit->problem};
}

apr_status_t mdl_catalog_check_name(mdl_visit_t *visit, const char *name)
{
    return name != NULL && mdl_utf8_is_text(name, MDL_NAME_MAX)
               ? APR_SUCCESS
               : mdl_problem_set(&visit->problem, 400, "invalid_title",
                                 "A name or title has 1 to " APR_STRINGIFY(
                                     MDL_NAME_MAX) " characters, in one line.");
}

void mdl_catalog_note_id(mdl_visit_t *visit, apr_int64_t id)
{
    visit->audit.noun_id = apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT, id);
}

/* Details of other problems point elsewhere. */
void mdl_catalog_add_holders(mdl_json_t *to, const mdl_visit_t *visit)
{
    static const struct {
        const char *path;
        const char *member;
    } kinds[] = {{"/orders/", "order_id"}, {"/mappings/", "mapping_id"}};
    const apr_array_header_t *details = visit->problem.details;
    mdl_json_t *array = mdl_json_add_array(to, "holders");
    int any = 0;

    for (int i = 0; details != NULL && i < details->nelts; i++) {
        const char *pointer = APR_ARRAY_IDX(details, i, mdl_problem_detail_t).pointer;

        for (apr_size_t j = 0; pointer != NULL && j < sizeof kinds / sizeof *kinds; j++) {
            apr_size_t length = strlen(kinds[j].path);

            if (strncmp(pointer, kinds[j].path, length) == 0) {
                mdl_json_add_string(mdl_json_add_object(array, NULL), kinds[j].member,
                                    pointer + length);
                any = 1;
            }
        }
    }
    mdl_json_add_bool(to, "has_holders", any);
}

void mdl_catalog_add_products(mdl_json_t *to, const apr_array_header_t *mappings, apr_pool_t *p)
{
    int shown = mappings->nelts > PRODUCTS_SHOWN ? PRODUCTS_SHOWN : mappings->nelts;
    mdl_json_t *array = mdl_json_add_array(to, "products");

    for (int i = 0; i < shown; i++) {
        const mdl_asset_user_t *each = APR_ARRAY_IDX(mappings, i, const mdl_asset_user_t *);
        mdl_json_t *product = mdl_json_add_object(array, NULL);

        mdl_product_json(product, each->name, each->storefront_product_id, p);
        mdl_json_add_int(product, "mapping_id", each->id);
    }
    mdl_json_add_bool(to, "has_products", shown > 0);
    mdl_json_add_int_if(to, "more_products", mappings->nelts - shown, mappings->nelts > shown);
    mdl_json_add_bool(to, "uncounted_products", mappings->nelts == MDL_ASSET_USES_MAX);
}

int mdl_catalog_done(mdl_visit_t *visit, apr_status_t rv, const char *list, apr_int64_t id,
                     int (*send)(mdl_visit_t *visit, int status))
{
    return rv == MDL_EPROBLEM && visit->problem.status != HTTP_NOT_FOUND
               ? send(visit, visit->problem.status)
               : mdl_frame_done(visit, rv,
                                id != 0
                                    ? apr_psprintf(visit->r->pool, "%s/%" APR_INT64_T_FMT, list, id)
                                    : list);
}
