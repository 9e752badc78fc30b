#include "core/ids.h"

#include <apr_hash.h>
#include <apr_strings.h>

apr_array_header_t *mdl_ids_of(apr_int64_t id, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 1, sizeof(apr_int64_t));

    APR_ARRAY_PUSH(ids, apr_int64_t) = id;
    return ids;
}

int mdl_ids_has(const apr_array_header_t *ids, apr_int64_t id)
{
    for (int i = 0; i < ids->nelts; i++) {
        if (APR_ARRAY_IDX(ids, i, apr_int64_t) == id) {
            return 1;
        }
    }
    return 0;
}

apr_array_header_t *mdl_ids_sort(const apr_array_header_t *ids, const apr_array_header_t *entities,
                                 apr_pool_t *p)
{
    apr_array_header_t *sorted = apr_array_make(p, ids->nelts, sizeof(apr_int64_t *));

    for (int i = 0; i < ids->nelts; i++) {
        for (int j = 0; j < entities->nelts; j++) {
            apr_int64_t *entity = APR_ARRAY_IDX(entities, j, apr_int64_t *);

            if (*entity == APR_ARRAY_IDX(ids, i, apr_int64_t)) {
                APR_ARRAY_PUSH(sorted, apr_int64_t *) = entity;
            }
        }
    }
    return sorted;
}

static void ids_fill(mdl_json_t *array, const apr_array_header_t *ids)
{
    for (int i = 0; i < ids->nelts; i++) {
        mdl_json_add_int(array, NULL, APR_ARRAY_IDX(ids, i, apr_int64_t));
    }
}

void mdl_ids_add(mdl_json_t *to, const char *name, const apr_array_header_t *ids)
{
    ids_fill(mdl_json_add_array(to, name), ids);
}

const char *mdl_ids_json(const apr_array_header_t *ids, apr_pool_t *p)
{
    return mdl_db_ids_text(ids, '[', ']', p);
}

apr_status_t mdl_ids_ask_known(mdl_db_t *db, mdl_statement_t known, apr_int64_t shop_id,
                               const apr_array_header_t *ids, mdl_rows_t **known_rows,
                               apr_pool_t *p)
{
    *known_rows = NULL;
    return ids != NULL && ids->nelts > 0
               ? mdl_db_select(db, known_rows, p,
                               MDL_Q_AS(known, ASSET_KNOWN, .shop_id = shop_id, .ids = ids))
               : APR_SUCCESS;
}

void mdl_ids_compare_known(mdl_rows_t *known_rows, const apr_array_header_t *ids,
                           const char *member, mdl_problem_t *problem, apr_pool_t *p)
{
    apr_hash_t *found = apr_hash_make(p);

    if (known_rows == NULL) {
        return;
    }
    while (mdl_rows_next(known_rows)) {
        apr_int64_t *id = apr_palloc(p, sizeof *id);

        *id = mdl_rows_int(known_rows, 0);
        apr_hash_set(found, id, sizeof *id, id);
    }
    for (int i = 0; i < ids->nelts; i++) {
        if (apr_hash_get(found, &APR_ARRAY_IDX(ids, i, apr_int64_t), sizeof(apr_int64_t)) == NULL) {
            mdl_problem_add_detail(problem, apr_psprintf(p, "/%s/%d", member, i),
                                   "unknown_reference", "There is no such id in this shop.", p);
        }
    }
}

apr_status_t mdl_ids_check(mdl_db_t *db, mdl_statement_t known, apr_int64_t shop_id,
                           const apr_array_header_t *ids, const char *member,
                           mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *known_rows;
    apr_status_t rv = mdl_ids_ask_known(db, known, shop_id, ids, &known_rows, p);

    if (rv == APR_SUCCESS) {
        mdl_ids_compare_known(known_rows, ids, member, problem, p);
    }
    return rv;
}
