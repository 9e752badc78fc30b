#include "core/license.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "core/ids.h"

static mdl_license_tag_t tag_of_row(const mdl_rows_t *row)
{
    return (mdl_license_tag_t){.id = mdl_rows_int(row, 0),
                               .name = mdl_rows_text(row, 1),
                               .available = mdl_rows_int(row, 2),
                               .assigned = mdl_rows_int(row, 3),
                               .low_stock_threshold = mdl_rows_null(row, 4) ? -1
                                                                            : mdl_rows_int(row, 4),
                               .created_at = mdl_rows_int(row, 5),
                               .updated_at = mdl_rows_int(row, 6)};
}

static mdl_arg_t threshold_or_null(apr_int64_t threshold)
{
    return threshold < 0 ? mdl_null() : mdl_int(threshold);
}

static apr_status_t not_found(mdl_refusal_t *refusal)
{
    return mdl_refuse(refusal, 404, "license_key_tag_not_found",
                      "There is no such license key tag.");
}

apr_status_t mdl_license_tag_create(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_tag_create_t *create = arg;
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, MDL_Q_LICENSE_TAG_INSERT, &row, p,
                           MDL_ARGS(mdl_int(create->shop_id), mdl_text(create->tag.name),
                                    threshold_or_null(create->tag.low_stock_threshold),
                                    mdl_int(now), mdl_int(now)));
    if (rv == APR_SUCCESS) {
        create->tag = tag_of_row(row);
    }
    return rv;
}

apr_status_t mdl_license_tag_list(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_tag_list_t *list = arg;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, MDL_Q_LICENSE_TAG_LIST, &rows, p,
        MDL_ARGS(mdl_int(list->shop_id), mdl_int(list->before), mdl_int(list->limit)));

    list->tags = apr_array_make(p, list->limit, sizeof(mdl_license_tag_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_license_tag_t *tag = apr_palloc(p, sizeof *tag);

        *tag = tag_of_row(rows);
        APR_ARRAY_PUSH(list->tags, mdl_license_tag_t *) = tag;
    }
    return rv;
}

apr_status_t mdl_license_tag_find(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_tag_find_t *find = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_LICENSE_TAG_BY_ID, &row, p,
                                        MDL_ARGS(mdl_int(find->id), mdl_int(find->shop_id)));

    if (rv == APR_SUCCESS) {
        find->tag = tag_of_row(row);
    }
    return rv == APR_ENOENT ? not_found(find->refusal) : rv;
}

apr_status_t mdl_license_tag_change(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_tag_change_t *change = arg;
    mdl_rows_t *row;
    apr_status_t rv;

    if (change->name == NULL && !change->set_threshold) {
        return mdl_license_tag_find(db, p, &change->find);
    }
    rv = mdl_db_select_one(db, MDL_Q_LICENSE_TAG_CHANGE, &row, p,
                           MDL_ARGS(mdl_text(change->name), mdl_int(change->set_threshold),
                                    threshold_or_null(change->low_stock_threshold),
                                    mdl_int(apr_time_now()), mdl_int(change->find.id),
                                    mdl_int(change->find.shop_id)));
    if (rv == APR_SUCCESS) {
        change->find.tag = tag_of_row(row);
    }
    return rv == APR_ENOENT ? not_found(change->find.refusal) : rv;
}

/* Adds a detail for each holder that a statement finds. */
static apr_status_t note_holders(mdl_db_t *db, const mdl_license_tag_find_t *find,
                                 mdl_statement_t statement, const char *code, const char *path,
                                 const char *sentence, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, statement, &rows, p,
                                    MDL_ARGS(mdl_int(find->id), mdl_int(MDL_MAX_DETAILS)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *id = mdl_rows_text(rows, 0);

        mdl_refusal_detail(find->refusal, apr_pstrcat(p, path, id, NULL), code,
                           apr_psprintf(p, sentence, id), p);
    }
    return rv;
}

apr_status_t mdl_license_tag_delete(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_tag_find_t *find = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_license_tag_find(db, p, find);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, MDL_Q_LICENSE_TAG_LOCK_WHOLE, &row, p, MDL_ARGS(mdl_int(find->id)));
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? not_found(find->refusal) : rv;
    }
    if ((rv = note_holders(db, find, MDL_Q_LICENSE_TAG_MAPPINGS, "held_by_mapping", "/mappings/",
                           "Mapping %s holds this license key tag.", p)) != APR_SUCCESS ||
        (rv = note_holders(db, find, MDL_Q_LICENSE_TAG_ORDERS, "held_by_order", "/orders/",
                           "Order %s waits for keys of this license key tag.", p)) != APR_SUCCESS) {
        return rv;
    }
    if (find->refusal->details != NULL) {
        return mdl_refuse(find->refusal, 409, "license_key_tag_in_use",
                          "The license key tag is in use; see details.");
    }
    rv = mdl_db_exec(db, MDL_Q_LICENSE_CLAIMS_CLOSE, NULL, p, MDL_ARGS(mdl_int(find->id)));
    return rv == APR_SUCCESS ? mdl_db_exec(db, MDL_Q_LICENSE_TAG_DELETE, NULL, p,
                                           MDL_ARGS(mdl_int(apr_time_now()), mdl_int(find->id)))
                             : rv;
}

apr_status_t mdl_license_lock(mdl_db_t *db, apr_int64_t order_id,
                              const apr_array_header_t *mapping_ids, apr_array_header_t **tags,
                              apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, MDL_Q_LICENSE_TAGS_OF_ORDER, &rows, p,
        MDL_ARGS(mdl_text(mdl_ids_json(mapping_ids, p)), mdl_int(order_id)));

    *tags = apr_array_make(p, 4, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*tags, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

apr_status_t mdl_license_want(mdl_db_t *db, apr_int64_t assignment_id, apr_int64_t mapping_id,
                              int quantity, const apr_array_header_t *tags, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_LICENSE_CLAIMS_INSERT, NULL, p,
                       MDL_ARGS(mdl_int(assignment_id), mdl_int(quantity), mdl_int(mapping_id),
                                mdl_text(mdl_ids_json(tags, p))));
}

/* Locks a tag; *available gets how many keys it has to give.  APR_ENOENT when it was deleted. */
static apr_status_t lock_tag(mdl_db_t *db, apr_int64_t tag_id, apr_int64_t *available,
                             apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_LICENSE_TAG_LOCK, &row, p,
                                        MDL_ARGS(mdl_int(tag_id)));

    if (rv == APR_SUCCESS) {
        *available = mdl_rows_int(row, 0);
    }
    return rv;
}

static apr_status_t count(mdl_db_t *db, apr_int64_t tag_id, apr_int64_t available,
                          apr_int64_t assigned, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_LICENSE_TAG_COUNT, NULL, p,
                       MDL_ARGS(mdl_int(available), mdl_int(assigned), mdl_int(tag_id)));
}

/* The rows of who gets which key as a JSON object, key → assignment. */
static const char *read_pairs(mdl_rows_t *rows, apr_int64_t *given, apr_pool_t *p)
{
    mdl_json_t *pairs = mdl_json_object(p);

    for (*given = 0; mdl_rows_next(rows); ++*given) {
        mdl_json_add_int(pairs, mdl_rows_text(rows, 0), mdl_rows_int(rows, 1));
    }
    return mdl_json_text(pairs, NULL, p);
}

/* Gives keys of a tag to whom the pairs say. */
static apr_status_t give(mdl_db_t *db, apr_int64_t tag_id, const char *pairs, apr_int64_t given,
                         apr_pool_t *p)
{
    apr_status_t rv;

    if (given == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_exec(db, MDL_Q_LICENSE_KEYS_GIVE, NULL, p,
                     MDL_ARGS(mdl_int(apr_time_now()), mdl_text(pairs)));
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, MDL_Q_LICENSE_CLAIMS_COUNT, NULL, p,
                         MDL_ARGS(mdl_text(pairs), mdl_int(tag_id)));
    }
    return rv == APR_SUCCESS ? count(db, tag_id, -given, given, p) : rv;
}

static apr_status_t fill_order_from(mdl_db_t *db, apr_int64_t order_id, apr_int64_t tag_id,
                                    apr_int64_t *given, apr_pool_t *p)
{
    apr_int64_t available;
    const char *pairs;
    mdl_rows_t *rows;
    apr_status_t rv = lock_tag(db, tag_id, &available, p);

    *given = 0;
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && available == 0)) {
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(
            db, MDL_Q_LICENSE_PAIRS_OF_ORDER, &rows, p,
            MDL_ARGS(mdl_int(order_id), mdl_int(tag_id), mdl_int(available), mdl_int(tag_id)));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    pairs = read_pairs(rows, given, p);
    return give(db, tag_id, pairs, *given, p);
}

apr_status_t mdl_license_fill_order(mdl_db_t *db, apr_int64_t order_id, apr_int64_t *given,
                                    apr_pool_t *p)
{
    mdl_rows_t *tags;
    apr_status_t rv = mdl_db_select(db, MDL_Q_LICENSE_CLAIMS_OF_ORDER, &tags, p,
                                    MDL_ARGS(mdl_int(order_id)));

    *given = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(tags)) {
        apr_int64_t n;

        rv = fill_order_from(db, order_id, mdl_rows_int(tags, 0), &n, p);
        *given += n;
    }
    return rv;
}

/* Gives a tag's keys to all that wait for them, and notes that with their orders. */
static apr_status_t fill_tag(mdl_db_t *db, const mdl_license_add_t *add, apr_int64_t available,
                             apr_pool_t *p)
{
    apr_int64_t given;
    const char *pairs;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, MDL_Q_LICENSE_PAIRS_OF_TAG, &rows, p,
        MDL_ARGS(mdl_int(add->tag_id), mdl_int(available), mdl_int(add->tag_id)));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    pairs = read_pairs(rows, &given, p);
    rv = give(db, add->tag_id, pairs, given, p);
    return rv != APR_SUCCESS || given == 0
               ? rv
               : mdl_db_exec(
                     db, MDL_Q_LICENSE_EVENTS_INSERT, NULL, p,
                     MDL_ARGS(mdl_text(add->key_id), mdl_int(apr_time_now()), mdl_text(pairs)));
}

apr_status_t mdl_license_add(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_license_add_t *add = arg;
    mdl_license_tag_find_t find = {
        .shop_id = add->shop_id, .id = add->tag_id, .refusal = add->refusal};
    apr_int64_t available;
    apr_status_t rv;

    if ((rv = mdl_license_tag_find(db, p, &find)) != APR_SUCCESS ||
        (rv = lock_tag(db, add->tag_id, &available, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? not_found(add->refusal) : rv;
    }
    rv = mdl_db_exec(db, MDL_Q_LICENSE_KEYS_INSERT, &add->added, p,
                     MDL_ARGS(mdl_int(add->tag_id), mdl_int(apr_time_now()),
                              mdl_text(mdl_json_text(add->keys, NULL, p))));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    add->duplicates = (apr_int64_t)mdl_json_length(add->keys) - add->added;
    if (add->added == 0) {
        return APR_SUCCESS;
    }
    rv = count(db, add->tag_id, add->added, 0, p);
    return rv == APR_SUCCESS ? fill_tag(db, add, available + add->added, p) : rv;
}
