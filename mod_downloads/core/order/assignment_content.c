#include "core/order/assignment_content.h"

#include <string.h>

#include <apr_hash.h>

static apr_status_t content_ask(mdl_db_t *db, const mdl_statement_t statements[MDL_CONTENTS],
                                const apr_array_header_t *ids, mdl_content_read_t *read,
                                apr_pool_t *p)
{
    const int max[MDL_CONTENTS] = {read->max_files, MDL_ORDER_LINKS_MAX,
                                   MDL_ORDER_LICENSE_KEYS_MAX};
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < MDL_CONTENTS; i++) {
        read->rows[i] = NULL;
        if (rv == APR_SUCCESS && !read->none[i]) {
            rv = mdl_db_select(db, statements[i], &read->rows[i], p,
                               MDL_ARGS(mdl_ids(ids), mdl_int(max[i] + 1)));
        }
    }
    return rv;
}

apr_status_t mdl_content_ask_of_orders(mdl_db_t *db, const apr_array_header_t *ids,
                                       mdl_content_read_t *read, apr_pool_t *p)
{
    static const mdl_statement_t statements[MDL_CONTENTS] = {
        [MDL_CONTENT_FILES] = MDL_Q_FILES_OF_ORDERS,
        [MDL_CONTENT_LINKS] = MDL_Q_LINKS_OF_ORDERS,
        [MDL_CONTENT_LICENSE_KEYS] = MDL_Q_LICENSE_KEYS_OF_ORDERS};

    return content_ask(db, statements, ids, read, p);
}

apr_status_t mdl_content_ask(mdl_db_t *db, const apr_array_header_t *ids, mdl_content_read_t *read,
                             apr_pool_t *p)
{
    static const mdl_statement_t statements[MDL_CONTENTS] = {
        [MDL_CONTENT_FILES] = MDL_Q_FILES_OF_ASSIGNMENTS,
        [MDL_CONTENT_LINKS] = MDL_Q_LINKS_OF_ASSIGNMENTS,
        [MDL_CONTENT_LICENSE_KEYS] = MDL_Q_LICENSE_KEYS_OF_ASSIGNMENTS};

    return content_ask(db, statements, ids, read, p);
}

/* Whom a row's first column names: NULL for one made since. */
static mdl_assignment_t *assignment_of(apr_hash_t *by_id, const mdl_rows_t *row)
{
    apr_int64_t id = mdl_rows_int(row, 0);

    return apr_hash_get(by_id, &id, sizeof id);
}

/* Adds rows to their assignments, as many as an order may have; returns the assignment of the first
   one that is left off, or NULL. */
static const mdl_assignment_t *links_read(mdl_rows_t *rows, apr_hash_t *by_id, apr_pool_t *p)
{
    const mdl_assignment_t *last = NULL;
    apr_size_t bytes = 0;

    for (int n = 0; mdl_rows_next(rows); n++) {
        mdl_assignment_t *assignment = assignment_of(by_id, rows);
        mdl_order_link_t *link = apr_pcalloc(p, sizeof *link);

        link->link_id = mdl_rows_int(rows, 1);
        link->title = mdl_rows_text(rows, 2);
        link->url = mdl_rows_text(rows, 3);
        bytes += strlen(link->title) + strlen(link->url);
        last = assignment != NULL ? assignment : last;
        if (n == MDL_ORDER_LINKS_MAX || bytes > MDL_ORDER_TEXT_MAX) {
            return last;
        }
        if (assignment != NULL) {
            APR_ARRAY_PUSH(assignment->links, mdl_order_link_t *) = link;
        }
    }
    return NULL;
}

/* The same of license keys. */
static const mdl_assignment_t *license_keys_read(mdl_rows_t *rows, apr_hash_t *by_id)
{
    const mdl_assignment_t *last = NULL;

    for (int n = 0; mdl_rows_next(rows); n++) {
        mdl_assignment_t *assignment = assignment_of(by_id, rows);

        last = assignment != NULL ? assignment : last;
        if (n == MDL_ORDER_LICENSE_KEYS_MAX) {
            return last;
        }
        if (assignment != NULL) {
            APR_ARRAY_PUSH(assignment->license_keys, mdl_license_key_t) = (mdl_license_key_t){
                mdl_rows_int(rows, 1), mdl_rows_text(rows, 2), mdl_rows_text(rows, 3)};
        }
    }
    return NULL;
}

apr_status_t mdl_content_read(mdl_db_t *db, mdl_content_read_t *read,
                              const apr_array_header_t *assignments, apr_pool_t *p)
{
    mdl_rows_t *links = read->rows[MDL_CONTENT_LINKS];
    mdl_rows_t *license_keys = read->rows[MDL_CONTENT_LICENSE_KEYS];
    apr_hash_t *by_id = apr_hash_make(p);
    int whole = 0;
    apr_status_t rv;

    for (int i = 0; i < assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(assignments, i, mdl_assignment_t *);

        apr_hash_set(by_id, &assignment->id, sizeof assignment->id, assignment);
    }
    rv = mdl_assignment_files_read(db, read->rows[MDL_CONTENT_FILES], assignments,
                                   read->default_download_limit, read->max_files, &whole, p);
    read->cut[MDL_CONTENT_FILES] = whole < assignments->nelts
                                       ? APR_ARRAY_IDX(assignments, whole, mdl_assignment_t *)
                                       : NULL;
    read->cut[MDL_CONTENT_LINKS] = links != NULL ? links_read(links, by_id, p) : NULL;
    read->cut[MDL_CONTENT_LICENSE_KEYS] = license_keys != NULL
                                              ? license_keys_read(license_keys, by_id)
                                              : NULL;
    return rv;
}
