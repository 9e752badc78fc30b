#include "core/catalog/references.h"

#include <string.h>

#include <apr_strings.h>

static const struct {
    const char *code, *path, *name, *verb;
} kinds[] = {
    [MDL_REFERENCE_MAPPING] = {"held_by_mapping", "/mappings/", "Mapping", "holds"},
    [MDL_REFERENCE_PACK] = {"held_by_pack", "/packs/", "Pack", "holds"},
    [MDL_REFERENCE_ORDER] = {"held_by_order", "/orders/", "Order", "holds"},
    [MDL_REFERENCE_WAITING_ORDER] = {"held_by_order", "/orders/", "Order", "waits for keys of"},
};

static int references_is_noted(const mdl_problem_t *problem, const char *pointer)
{
    for (int i = 0; problem->details != NULL && i < problem->details->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(problem->details, i, mdl_problem_detail_t).pointer, pointer) ==
            0) {
            return 1;
        }
    }
    return 0;
}

static apr_status_t references_note(mdl_db_t *db, const mdl_entity_ref_t *ref,
                                    const mdl_reference_query_t *query, const char *noun,
                                    apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q_AS(query->statement, ASSET_MAPPINGS, .id = ref->id,
                                             .limit = MDL_PROBLEM_DETAILS_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *id = mdl_rows_text(rows, 0);
        const char *pointer = apr_pstrcat(p, kinds[query->kind].path, id, NULL);

        if (!references_is_noted(ref->problem, pointer)) {
            mdl_problem_add_detail(ref->problem, pointer, kinds[query->kind].code,
                                   apr_psprintf(p, "%s %s %s this %s.", kinds[query->kind].name, id,
                                                kinds[query->kind].verb, noun),
                                   p);
        }
    }
    return rv;
}

apr_status_t mdl_references_check(mdl_db_t *db, const mdl_entity_ref_t *ref,
                                  const mdl_reference_query_t *queries, apr_size_t n,
                                  const char *code, const char *noun, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t i = 0; rv == APR_SUCCESS && i < n; i++) {
        rv = references_note(db, ref, &queries[i], noun, p);
    }
    return rv == APR_SUCCESS && ref->problem->details != NULL
               ? mdl_problem_set(
                     ref->problem, 409, code,
                     apr_psprintf(p, "The %s is in use; see details for what holds it.", noun))
               : rv;
}
