#include "core/catalog/category.h"

#include <apr_time.h>

#include "core/version.h"

static mdl_category_t *category_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_category_t *category = apr_pcalloc(p, sizeof *category);

    MDL_READ(row, category, category, id, name, created_at, updated_at);
    return category;
}

/* Runs a statement that selects the category. */
static apr_status_t category_select_one(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p,
                                        mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "category_not_found",
                               "There is no such category.");
    }
    if (rv == APR_SUCCESS) {
        ref->entity = category_of_row(row, p);
    }
    return rv;
}

/* The same by id and shop, and checks the caller's version. */
static apr_status_t category_select_known(mdl_db_t *db, mdl_entity_ref_t *ref,
                                          mdl_statement_t statement, apr_pool_t *p)
{
    apr_status_t rv = category_select_one(
        db, ref, p, MDL_Q_AS(statement, CATEGORY_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions, ((const mdl_category_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

apr_status_t mdl_category_create(mdl_db_t *db, apr_pool_t *p, mdl_category_edit_t *edit)
{
    return category_select_one(db, &edit->ref, p,
                               MDL_Q(CATEGORY_INSERT, .shop_id = edit->ref.shop_id,
                                     .name = edit->name, .now = apr_time_now()));
}

apr_status_t mdl_category_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    return category_select_known(db, ref, MDL_Q_CATEGORY_BY_ID, p);
}

/* After a change that met no row: there is none, or it has another version. */
static apr_status_t category_refuse_change(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = mdl_category_find(db, p, ref);

    return rv == APR_SUCCESS ? mdl_version_refuse(ref->problem) : rv;
}

apr_status_t mdl_category_change(mdl_db_t *db, apr_pool_t *p, mdl_category_edit_t *edit)
{
    apr_status_t rv;

    if (edit->name == NULL) {
        return mdl_category_find(db, p, &edit->ref);
    }
    rv = category_select_one(db, &edit->ref, p,
                             MDL_Q(CATEGORY_CHANGE, .name = edit->name, .now = apr_time_now(),
                                   .id = edit->ref.id, .shop_id = edit->ref.shop_id,
                                   MDL_VERSION_ARGS(edit->ref.versions, p)));
    return rv == MDL_EPROBLEM && edit->ref.versions != NULL
               ? category_refuse_change(db, &edit->ref, p)
               : rv;
}

apr_status_t mdl_category_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    apr_status_t rv = category_select_known(db, ref, MDL_Q_CATEGORY_LOCK, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(
            db, NULL, p,
            MDL_Q(CATEGORY_LEAVE_ASSETS, .now = apr_time_now(), .category_id = ref->id));
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(
            db, NULL, p,
            MDL_Q(CATEGORY_LEAVE_UPLOADS, .now = apr_time_now(), .category_id = ref->id));
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(CATEGORY_DELETE, ref->id)) : rv;
}

apr_status_t mdl_category_hold(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t category_id,
                               mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    if (category_id == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(CATEGORY_HOLD, .id = category_id, .shop_id = shop_id));
    if (rv != APR_ENOENT) {
        return rv;
    }
    mdl_problem_add_detail(problem, "/category_id", "unknown_reference",
                           "There is no such category in this shop.", p);
    return mdl_problem_set(problem, 422, "unknown_reference",
                           "The asset names a category that this shop does not have.");
}

apr_status_t mdl_category_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(CATEGORY_PAGE, .shop_id = page->shop_id,
                                          .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_category_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_category_t *) = category_of_row(rows, p);
    }
    return rv;
}
