#include "core/catalog/link.h"

#include <string.h>

#include <apr_time.h>

#include "base/http/url.h"
#include "core/catalog/references.h"
#include "core/version.h"

static mdl_link_t *link_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_link_t *link = apr_pcalloc(p, sizeof *link);

    MDL_READ(row, link, link, id, title, url, created_at, updated_at);
    return link;
}

int mdl_link_url_valid(const char *url)
{
    return strlen(url) <= MDL_LINK_URL_MAX && mdl_http_url_is_https(url);
}

/* Runs a statement that selects the link. */
static apr_status_t link_select_one(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p,
                                    mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "link_not_found", "There is no such link.");
    }
    if (rv == APR_SUCCESS) {
        ref->entity = link_of_row(row, p);
    }
    return rv;
}

/* The same by id and shop, and checks the caller's version. */
static apr_status_t link_select_known(mdl_db_t *db, mdl_entity_ref_t *ref,
                                      mdl_statement_t statement, apr_pool_t *p)
{
    apr_status_t rv = link_select_one(
        db, ref, p, MDL_Q_AS(statement, LINK_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions, ((const mdl_link_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

apr_status_t mdl_link_create(mdl_db_t *db, apr_pool_t *p, mdl_link_edit_t *edit)
{
    return link_select_one(db, &edit->ref, p,
                           MDL_Q(LINK_INSERT, .shop_id = edit->ref.shop_id, .title = edit->title,
                                 .url = edit->url, .now = apr_time_now()));
}

apr_status_t mdl_link_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    return link_select_known(db, ref, MDL_Q_LINK_BY_ID, p);
}

/* After a change that met no row: there is none, or it has another version. */
static apr_status_t link_refuse_change(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = mdl_link_find(db, p, ref);

    return rv == APR_SUCCESS ? mdl_version_refuse(ref->problem) : rv;
}

apr_status_t mdl_link_change(mdl_db_t *db, apr_pool_t *p, mdl_link_edit_t *edit)
{
    apr_status_t rv;

    if (edit->title == NULL && edit->url == NULL) {
        return mdl_link_find(db, p, &edit->ref);
    }
    rv = link_select_one(db, &edit->ref, p,
                         MDL_Q(LINK_CHANGE, .title = edit->title, .url = edit->url,
                               .now = apr_time_now(), .id = edit->ref.id,
                               .shop_id = edit->ref.shop_id,
                               MDL_VERSION_ARGS(edit->ref.versions, p)));
    return rv == MDL_EPROBLEM && edit->ref.versions != NULL ? link_refuse_change(db, &edit->ref, p)
                                                            : rv;
}

apr_status_t mdl_link_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    static const mdl_reference_query_t references[] = {
        {MDL_Q_LINK_MAPPINGS, MDL_REFERENCE_MAPPING},
        {MDL_Q_LINK_ORDERS, MDL_REFERENCE_ORDER},
        {MDL_Q_LINK_PINNED_ORDERS, MDL_REFERENCE_ORDER}};
    apr_status_t rv = link_select_known(db, ref, MDL_Q_LINK_LOCK, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_references_check(db, ref, references, sizeof references / sizeof *references,
                                  "link_in_use", "link", p);
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(LINK_DELETE, ref->id)) : rv;
}

apr_status_t mdl_link_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(LINK_PAGE, .shop_id = page->shop_id, .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_link_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_link_t *) = link_of_row(rows, p);
    }
    return rv;
}
