#include "core/order/assignment_content.h"

#include <string.h>

#include <apr_hash.h>

static apr_status_t content_ask(mdl_db_t *db, const mdl_content_read_t *read, mdl_content_t what,
                                int max, mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(
        db, rows, p,
        MDL_Q_AS(read->statements[what], FILES_OF_ORDERS, .ids = read->ids, .limit = max + 1));
}

static apr_status_t content_begin(mdl_db_t *db, mdl_content_read_t *read,
                                  const mdl_statement_t statements[MDL_CONTENTS],
                                  const apr_array_header_t *ids, apr_pool_t *p)
{
    read->statements = statements;
    read->ids = ids;
    return content_ask(db, read, MDL_CONTENT_FILES, read->max_files, &read->files, p);
}

apr_status_t mdl_content_ask_of_orders(mdl_db_t *db, const apr_array_header_t *ids,
                                       mdl_content_read_t *read, apr_pool_t *p)
{
    static const mdl_statement_t statements[MDL_CONTENTS] = {
        [MDL_CONTENT_FILES] = MDL_Q_FILES_OF_ORDERS,
        [MDL_CONTENT_LINKS] = MDL_Q_LINKS_OF_ORDERS,
        [MDL_CONTENT_LICENSE_KEYS] = MDL_Q_LICENSE_KEYS_OF_ORDERS};

    return content_begin(db, read, statements, ids, p);
}

apr_status_t mdl_content_ask(mdl_db_t *db, const apr_array_header_t *ids, mdl_content_read_t *read,
                             apr_pool_t *p)
{
    static const mdl_statement_t statements[MDL_CONTENTS] = {
        [MDL_CONTENT_FILES] = MDL_Q_FILES_OF_ASSIGNMENTS,
        [MDL_CONTENT_LINKS] = MDL_Q_LINKS_OF_ASSIGNMENTS,
        [MDL_CONTENT_LICENSE_KEYS] = MDL_Q_LICENSE_KEYS_OF_ASSIGNMENTS};

    return content_begin(db, read, statements, ids, p);
}

/* The assignment named by a row's first column; NULL: it was made since. */
static mdl_assignment_t *assignment_of(apr_hash_t *by_id, const mdl_rows_t *row)
{
    apr_int64_t id = mdl_rows_int(row, 0);

    return apr_hash_get(by_id, &id, sizeof id);
}

/* Adds links to their assignments, up to the limits of an order.  Returns the assignment of the
   first link left out, or NULL. */
static const mdl_assignment_t *links_read(mdl_rows_t *rows, apr_hash_t *by_id, apr_pool_t *p)
{
    const mdl_assignment_t *last = NULL;
    apr_size_t bytes = 0;

    for (int n = 0; mdl_rows_next(rows); n++) {
        mdl_assignment_t *assignment = assignment_of(by_id, rows);
        mdl_order_link_t *link = apr_pcalloc(p, sizeof *link);

        link->link_id = MDL_INT(rows, links_of_orders, id);
        MDL_READ(rows, links_of_orders, link, title, url);
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

/* The same for license keys. */
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
                MDL_INT(rows, license_keys_of_orders, tag_id),
                MDL_TEXT(rows, license_keys_of_orders, license_key),
                MDL_TEXT(rows, license_keys_of_orders, data_key)};
        }
    }
    return NULL;
}

apr_status_t mdl_content_read(mdl_db_t *db, mdl_content_read_t *read,
                              const apr_array_header_t *assignments, apr_pool_t *p)
{
    mdl_rows_t *links = NULL, *license_keys = NULL;
    int has_links = 0, has_license_keys = 0, whole = 0;
    apr_hash_t *by_id = apr_hash_make(p);
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(assignments, i, mdl_assignment_t *);

        apr_hash_set(by_id, &assignment->id, sizeof assignment->id, assignment);
        has_links |= assignment->has_links;
        has_license_keys |= assignment->has_license_keys;
    }
    if (has_links) {
        rv = content_ask(db, read, MDL_CONTENT_LINKS, MDL_ORDER_LINKS_MAX, &links, p);
    }
    if (rv == APR_SUCCESS && has_license_keys) {
        rv = content_ask(db, read, MDL_CONTENT_LICENSE_KEYS, MDL_ORDER_LICENSE_KEYS_MAX,
                         &license_keys, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_assignment_files_read(db, read->files, assignments, read->default_download_limit,
                                       read->max_files, &whole, p);
    }
    read->cut[MDL_CONTENT_FILES] = whole < assignments->nelts
                                       ? APR_ARRAY_IDX(assignments, whole, mdl_assignment_t *)
                                       : NULL;
    read->cut[MDL_CONTENT_LINKS] = links != NULL ? links_read(links, by_id, p) : NULL;
    read->cut[MDL_CONTENT_LICENSE_KEYS] = license_keys != NULL
                                              ? license_keys_read(license_keys, by_id)
                                              : NULL;
    return rv;
}
