#include "core/catalog/license_key.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/json.h"
#include "core/catalog/license.h"
#include "core/shop/data_key.h"

const char *const mdl_license_status_names[] = {"available", "assigned", "withdrawn", NULL};

static mdl_license_status_t license_key_status(int assigned, int withdrawn)
{
    return !assigned    ? MDL_LICENSE_AVAILABLE
           : !withdrawn ? MDL_LICENSE_ASSIGNED
                        : MDL_LICENSE_WITHDRAWN;
}

static mdl_license_entry_t *license_key_of_row(const mdl_rows_t *row, apr_int64_t tag_id,
                                               apr_pool_t *p)
{
    mdl_license_entry_t *entry = apr_pcalloc(p, sizeof *entry);

    MDL_READ(row, license_key_page, entry, id, assignment_id, assigned_at, withdrawn_at, created_at,
             storefront_order_id, customer);
    entry->key = (mdl_license_key_t){.tag_id = tag_id,
                                     .text = MDL_TEXT(row, license_key_page, license_key),
                                     .data_key = MDL_TEXT(row, license_key_page, data_key)};
    entry->status = license_key_status(entry->assignment_id != 0, entry->withdrawn_at != 0);
    return entry;
}

static int license_key_asks(const mdl_license_page_t *list, mdl_license_status_t status)
{
    return list->status == NULL || strcmp(list->status, mdl_license_status_names[status]) == 0;
}

apr_status_t mdl_license_page(mdl_db_t *db, apr_pool_t *p, mdl_license_page_t *list)
{
    mdl_list_page_t *page = &list->page;
    mdl_rows_t *rows;
    apr_status_t rv;

    page->found = apr_array_make(p, page->limit, sizeof(mdl_license_entry_t *));
    if ((rv = mdl_license_tag_find(db, p, &list->ref)) != APR_SUCCESS ||
        (rv = mdl_db_select(
             db, &rows, p,
             MDL_Q(LICENSE_KEY_PAGE, .tag_id = list->ref.id, .before = page->before,
                   .available = license_key_asks(list, MDL_LICENSE_AVAILABLE), .limit = page->limit,
                   .assigned = license_key_asks(list, MDL_LICENSE_ASSIGNED),
                   .withdrawn = license_key_asks(list, MDL_LICENSE_WITHDRAWN)))) != APR_SUCCESS) {
        return rv;
    }
    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_license_entry_t *) = license_key_of_row(rows, list->ref.id,
                                                                                p);
    }
    return rv;
}

apr_status_t mdl_license_find(mdl_db_t *db, apr_pool_t *p, mdl_license_find_t *find)
{
    mdl_license_page_t list = {.ref = find->ref, .page = {.limit = 1}};
    mdl_secret_t *data_key;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mdl_data_key_find(db, find->secret, &data_key, p)) != APR_SUCCESS ||
        (rv = mdl_db_select_one(
             db, &row, p,
             MDL_Q(LICENSE_KEY_BY_TEXT, .tag_id = find->ref.id,
                   .license_key = mdl_license_key_seal(data_key, find->ref.id, find->text, p)))) !=
            APR_SUCCESS) {
        return rv;
    }
    list.page.before = mdl_rows_int(row, 0) + 1;
    if ((rv = mdl_license_page(db, p, &list)) != APR_SUCCESS) {
        return rv;
    }
    find->found = APR_ARRAY_IDX(list.page.found, 0, mdl_license_entry_t *);
    return APR_SUCCESS;
}

/* A key is sealed for its tag: the text is sealed for each.  *pairs is NULL if there is no tag or
 * no data key. */
static apr_status_t license_search_seal(mdl_db_t *db, const mdl_license_search_t *search,
                                        const char **pairs, apr_pool_t *p)
{
    apr_array_header_t *tags = apr_array_make(p, 8, sizeof(apr_int64_t));
    mdl_json_t *sealed = mdl_json_object(p);
    const char *data_key_text = NULL;
    mdl_secret_t *data_key;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(LICENSE_TAGS_SEARCHED, .shop_id = search->shop_id,
                                          .limit = MDL_LICENSE_TAGS_SEARCHED));

    *pairs = NULL;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(tags, apr_int64_t) = mdl_rows_int(rows, 0);
        data_key_text = MDL_TEXT(rows, license_tags_searched, data_key);
    }
    if (rv != APR_SUCCESS || data_key_text == NULL ||
        (rv = mdl_data_key_open(search->secret, data_key_text, &data_key, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < tags->nelts; i++) {
        apr_int64_t tag = APR_ARRAY_IDX(tags, i, apr_int64_t);

        mdl_json_add_string(sealed, apr_psprintf(p, "%" APR_INT64_T_FMT, tag),
                            mdl_license_key_seal(data_key, tag, search->text, p));
    }
    *pairs = mdl_json_text(sealed, NULL, p);
    return APR_SUCCESS;
}

/* With a data key that can't be opened no key is found, but all else is. */
apr_status_t mdl_license_search(mdl_db_t *db, apr_pool_t *p, mdl_license_search_t *search)
{
    const char *pairs;
    mdl_rows_t *rows;
    apr_status_t rv = license_search_seal(db, search, &pairs, p);

    search->found = apr_array_make(p, 4, sizeof(mdl_license_found_t *));
    if (rv != APR_SUCCESS || pairs == NULL) {
        return rv == APR_EINVAL ? APR_SUCCESS : rv;
    }
    rv = mdl_db_select(db, &rows, p,
                       MDL_Q(LICENSE_KEYS_BY_TEXT, .pairs = pairs, .limit = search->limit));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_license_found_t *found = apr_pcalloc(p, sizeof *found);

        MDL_READ(rows, license_keys_by_text, found, id, tag_id, tag, storefront_order_id);
        found->status = license_key_status(!MDL_NULL(rows, license_keys_by_text, assignment_id),
                                           !MDL_NULL(rows, license_keys_by_text, withdrawn_at));
        APR_ARRAY_PUSH(search->found, mdl_license_found_t *) = found;
    }
    return rv;
}

apr_status_t mdl_license_owed(mdl_db_t *db, const apr_array_header_t *tag_ids, apr_int64_t **owed,
                              apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(LICENSE_ORDERS_WAITING, .limit = MDL_LICENSE_OWED_MAX + 1, .ids = tag_ids));

    *owed = apr_pcalloc(p, ((apr_size_t)tag_ids->nelts + 1) * sizeof **owed);
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        for (int i = 0; i < tag_ids->nelts; i++) {
            if (APR_ARRAY_IDX(tag_ids, i, apr_int64_t) == mdl_rows_int(rows, 0)) {
                (*owed)[i] = mdl_rows_int(rows, 1);
            }
        }
    }
    return rv;
}

/* Checks that a key of a locked tag may be deleted.  *assigned: whether it counts as given away. */
static apr_status_t license_key_check(mdl_db_t *db, const mdl_license_delete_t *removal,
                                      int *assigned, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(LICENSE_KEY_OF_TAG, .id = removal->id, .tag_id = removal->ref.id));

    if (rv == APR_ENOENT) {
        return mdl_problem_set(removal->ref.problem, 404, "license_key_not_found",
                               "The tag has no such license key.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *assigned = !MDL_NULL(row, license_key_of_tag, assignment_id);
    return *assigned && MDL_NULL(row, license_key_of_tag, withdrawn_at)
               ? mdl_problem_set(removal->ref.problem, 409, "license_key_assigned",
                                 "A customer has this license key.")
               : APR_SUCCESS;
}

apr_status_t mdl_license_delete(mdl_db_t *db, apr_pool_t *p, mdl_license_delete_t *removal)
{
    const mdl_license_tag_t *tag;
    int assigned;
    apr_status_t rv;

    if ((rv = mdl_license_tag_lock(db, p, &removal->ref)) != APR_SUCCESS ||
        (rv = license_key_check(db, removal, &assigned, p)) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(LICENSE_KEY_DELETE, removal->id))) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(LICENSE_TAG_COUNT, .available = assigned - 1, .assigned = -assigned,
                                .id = removal->ref.id))) != APR_SUCCESS) {
        return rv;
    }
    tag = removal->ref.entity;
    return !assigned && tag->available - 1 == tag->low_stock_threshold
               ? mdl_license_warn(db, tag->id, p)
               : APR_SUCCESS;
}
