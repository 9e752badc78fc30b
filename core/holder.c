#include "core/holder.h"

#include <string.h>

#include <apr_strings.h>

static const struct {
    const char *code, *path, *name;
} kinds[] = {
    [MDL_HOLDER_MAPPING] = {"held_by_mapping", "/mappings/", "Mapping"},
    [MDL_HOLDER_PACK] = {"held_by_pack", "/packs/", "Pack"},
    [MDL_HOLDER_ORDER] = {"held_by_order", "/orders/", "Order"},
};

static int is_noted(const mdl_refusal_t *refusal, const char *pointer)
{
    for (int i = 0; refusal->details != NULL && i < refusal->details->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(refusal->details, i, mdl_detail_t).pointer, pointer) == 0) {
            return 1;
        }
    }
    return 0;
}

apr_status_t mdl_holder_note(mdl_db_t *db, mdl_statement_t statement, mdl_holder_t holder,
                             apr_int64_t id, const char *noun, mdl_refusal_t *refusal,
                             apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, statement, &rows, p,
                                    MDL_ARGS(mdl_int(id), mdl_int(MDL_MAX_DETAILS)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *name = mdl_rows_text(rows, 0);
        const char *pointer = apr_pstrcat(p, kinds[holder].path, name, NULL);

        if (!is_noted(refusal, pointer)) {
            mdl_refusal_detail(
                refusal, pointer, kinds[holder].code,
                apr_psprintf(p, "%s %s holds this %s.", kinds[holder].name, name, noun), p);
        }
    }
    return rv;
}
