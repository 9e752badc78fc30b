#include "core/catalog/link.h"

#include <apr_time.h>

#include "core/catalog/references.h"

static mdl_web_link_t *link_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_web_link_t *link = apr_pcalloc(p, sizeof *link);

    link->id = mdl_rows_int(row, 0);
    link->title = mdl_rows_text(row, 1);
    link->url = mdl_rows_text(row, 2);
    link->created_at = mdl_rows_int(row, 3);
    link->updated_at = mdl_rows_int(row, 4);
    return link;
}

/* Runs a statement that gives the link. */
static apr_status_t select_one(mdl_db_t *db, mdl_one_t *one, mdl_statement_t statement,
                               apr_pool_t *p, const mdl_arg_t *args, apr_size_t nargs)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, statement, &row, p, args, nargs);

    if (rv == APR_ENOENT) {
        return mdl_refuse(one->refusal, 404, "link_not_found", "There is no such link.");
    }
    if (rv == APR_SUCCESS) {
        one->found = link_of_row(row, p);
    }
    return rv;
}

apr_status_t mdl_web_link_create(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_web_link_edit_t *edit = arg;
    mdl_arg_t now = mdl_int(apr_time_now());

    return select_one(
        db, &edit->one, MDL_Q_LINK_INSERT, p,
        MDL_ARGS(mdl_int(edit->one.shop_id), mdl_text(edit->title), mdl_text(edit->url), now, now));
}

apr_status_t mdl_web_link_find(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_one_t *one = arg;

    return select_one(db, one, MDL_Q_LINK_BY_ID, p,
                      MDL_ARGS(mdl_int(one->id), mdl_int(one->shop_id)));
}

apr_status_t mdl_web_link_change(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_web_link_edit_t *edit = arg;

    if (edit->title == NULL && edit->url == NULL) {
        return mdl_web_link_find(db, p, &edit->one);
    }
    return select_one(db, &edit->one, MDL_Q_LINK_CHANGE, p,
                      MDL_ARGS(mdl_text(edit->title), mdl_text(edit->url), mdl_int(apr_time_now()),
                               mdl_int(edit->one.id), mdl_int(edit->one.shop_id)));
}

apr_status_t mdl_web_link_delete(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    static const mdl_holder_t holders[] = {{MDL_Q_LINK_MAPPINGS, MDL_HOLDER_MAPPING},
                                           {MDL_Q_LINK_ORDERS, MDL_HOLDER_ORDER},
                                           {MDL_Q_LINK_PINNED_ORDERS, MDL_HOLDER_ORDER}};
    mdl_one_t *one = arg;
    apr_status_t rv = select_one(db, one, MDL_Q_LINK_LOCK, p,
                                 MDL_ARGS(mdl_int(one->id), mdl_int(one->shop_id)));

    if (rv == APR_SUCCESS) {
        rv = mdl_holder_check(db, one, holders, sizeof holders / sizeof *holders, "link_in_use",
                              "link", p);
    }
    return rv == APR_SUCCESS
               ? mdl_db_exec(db, MDL_Q_LINK_DELETE, NULL, p, MDL_ARGS(mdl_int(one->id)))
               : rv;
}

apr_status_t mdl_web_link_page(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_page_t *page = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, MDL_Q_LINK_PAGE, &rows, p,
        MDL_ARGS(mdl_int(page->shop_id), mdl_int(page->before), mdl_int(page->rows)));

    page->found = apr_array_make(p, page->rows, sizeof(mdl_web_link_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_web_link_t *) = link_of_row(rows, p);
    }
    return rv;
}
