#include "settings/catalog.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/utf8.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "settings/frame.h"

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

void mdl_catalog_add_holders(mdl_json_t *to, const mdl_visit_t *visit)
{
    static const struct {
        const char *path;
        const char *member;
    } kinds[] = {{"/orders/", "order_id"}, {"/mappings/", "mapping_id"}};
    const apr_array_header_t *details = visit->problem.details;
    mdl_json_t *array = mdl_json_add_array(to, "holders");

    mdl_json_add_bool(to, "has_holders", details != NULL && details->nelts > 0);
    for (int i = 0; details != NULL && i < details->nelts; i++) {
        const char *pointer = APR_ARRAY_IDX(details, i, mdl_problem_detail_t).pointer;
        mdl_json_t *holder = mdl_json_add_object(array, NULL);

        for (apr_size_t j = 0; pointer != NULL && j < sizeof kinds / sizeof *kinds; j++) {
            apr_size_t length = strlen(kinds[j].path);

            if (strncmp(pointer, kinds[j].path, length) == 0) {
                mdl_json_add_string(holder, kinds[j].member, pointer + length);
            }
        }
    }
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
