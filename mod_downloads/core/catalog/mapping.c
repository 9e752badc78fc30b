#include "core/catalog/mapping.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/crypto.h"
#include "base/text/json.h"
#include "core/ids.h"
#include "core/version.h"
#include "core/search_word.h"

const char *const mdl_download_type_names[] = {
    [MDL_DOWNLOAD_ZIP] = "ZIP", [MDL_DOWNLOAD_FILES] = "FILES", NULL};

const char *const mdl_mapping_content_names[] = {
    [MDL_CONTENT_LIVE] = "live", [MDL_CONTENT_PINNED] = "pinned", NULL};

/* The lists of content of a mapping. */
static const struct {
    const char *member;
    mdl_statement_t known, insert, delete;
} contents[] = {
    {"file_ids", MDL_Q_ASSET_KNOWN, MDL_Q_MAPPING_FILES_INSERT, MDL_Q_MAPPING_FILES_DELETE},
    {"pack_ids", MDL_Q_PACK_KNOWN, MDL_Q_MAPPING_PACKS_INSERT, MDL_Q_MAPPING_PACKS_DELETE},
    {"link_ids", MDL_Q_LINK_KNOWN, MDL_Q_MAPPING_LINKS_INSERT, MDL_Q_MAPPING_LINKS_DELETE},
    {"license_key_tag_ids", MDL_Q_LICENSE_TAG_KNOWN, MDL_Q_MAPPING_LICENSE_TAGS_INSERT,
     MDL_Q_MAPPING_LICENSE_TAGS_DELETE},
};
#define CONTENTS (sizeof contents / sizeof *contents)

/* The list of ids for contents[i]. */
static apr_array_header_t **mapping_list_of(mdl_mapping_t *mapping, apr_size_t i)
{
    apr_array_header_t **lists[CONTENTS] = {&mapping->file_ids, &mapping->pack_ids,
                                            &mapping->link_ids, &mapping->license_key_tag_ids};

    return lists[i];
}

static int mapping_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A hash of the set, independent of order. */
static const char *mapping_variants_hash(const apr_array_header_t *variants, apr_pool_t *p)
{
    apr_array_header_t *sorted = apr_array_copy(p, variants);
    unsigned char digest[MDL_SHA256_LENGTH];
    const char *joined;

    if (variants->nelts == 0) {
        return "";
    }
    qsort(sorted->elts, (size_t)sorted->nelts, sizeof(char *), mapping_compare);
    joined = apr_array_pstrcat(p, sorted, ',');
    mdl_sha256(joined, strlen(joined), digest);
    return mdl_base64url(digest, sizeof digest, p);
}

static apr_status_t mapping_ask_references(mdl_db_t *db, mdl_mapping_put_t *put,
                                           mdl_rows_t *known[CONTENTS], apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t i = 0; rv == APR_SUCCESS && i < CONTENTS; i++) {
        rv = mdl_ids_ask_known(db, contents[i].known, put->shop_id,
                               *mapping_list_of(&put->mapping, i), &known[i], p);
    }
    return rv;
}

static apr_status_t mapping_check_references(mdl_mapping_put_t *put, mdl_rows_t *known[CONTENTS],
                                             apr_pool_t *p)
{
    for (apr_size_t i = 0; i < CONTENTS; i++) {
        mdl_ids_compare_known(known[i], *mapping_list_of(&put->mapping, i), contents[i].member,
                              put->problem, p);
    }
    return put->problem->details != NULL
               ? mdl_problem_set(put->problem, 422, "unknown_reference",
                                 "The mapping names content that this shop does not have.")
               : APR_SUCCESS;
}

static mdl_mapping_t *mapping_without_lists(apr_int64_t id, apr_pool_t *p)
{
    mdl_mapping_t *mapping = apr_pcalloc(p, sizeof *mapping);

    mapping->id = id;
    mapping->storefront_variant_ids = apr_array_make(p, 2, sizeof(const char *));
    mapping->variant_titles = apr_array_make(p, 2, sizeof(const char *));
    for (apr_size_t i = 0; i < CONTENTS; i++) {
        *mapping_list_of(mapping, i) = apr_array_make(p, 2, sizeof(apr_int64_t));
    }
    return mapping;
}

/* Adds an element to a list: 0 is the variants', i + 1 that of contents[i]. */
static void mapping_add_element(mdl_mapping_t *mapping, apr_size_t list, const char *element,
                                const char *title)
{
    if (list == 0) {
        APR_ARRAY_PUSH(mapping->storefront_variant_ids, const char *) = element;
        APR_ARRAY_PUSH(mapping->variant_titles, const char *) = title;
    } else {
        APR_ARRAY_PUSH(*mapping_list_of(mapping, list - 1), apr_int64_t) = apr_atoi64(element);
    }
}

/* Reads the lists of mappings (mdl_mapping_t *) in descending order of ids. */
static apr_status_t mapping_read_lists(mdl_db_t *db, const apr_array_header_t *mappings,
                                       apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, mappings->nelts, sizeof(apr_int64_t));
    int at = 0;
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < mappings->nelts; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = APR_ARRAY_IDX(mappings, i, const mdl_mapping_t *)->id;
    }
    if (ids->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(MAPPING_LISTS, ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        while (APR_ARRAY_IDX(ids, at, apr_int64_t) != MDL_INT(rows, mapping_lists, mapping_id)) {
            at++;
        }
        mapping_add_element(APR_ARRAY_IDX(mappings, at, mdl_mapping_t *),
                            (apr_size_t)MDL_INT(rows, mapping_lists, content),
                            MDL_TEXT(rows, mapping_lists, storefront_variant_id),
                            MDL_TEXT(rows, mapping_lists, title));
    }
    return rv;
}

static const char *variant_title(const mdl_mapping_t *mapping, int i)
{
    return mapping->variant_titles != NULL ? APR_ARRAY_IDX(mapping->variant_titles, i, const char *)
                                           : NULL;
}

/* The variants as a JSON array of [id, title]. */
static const char *mapping_variants_text(const mdl_mapping_t *mapping, apr_pool_t *p)
{
    mdl_json_t *variants = mdl_json_array(p);

    for (int i = 0; i < mapping->storefront_variant_ids->nelts; i++) {
        mdl_json_t *each = mdl_json_add_array(variants, NULL);

        mdl_json_add_string(each, NULL,
                            APR_ARRAY_IDX(mapping->storefront_variant_ids, i, const char *));
        mdl_json_add_string(each, NULL, variant_title(mapping, i));
    }
    return mdl_json_text(variants, NULL, p);
}

static apr_status_t mapping_insert_variants(mdl_db_t *db, const mdl_mapping_t *mapping,
                                            apr_pool_t *p)
{
    return mapping->storefront_variant_ids->nelts == 0
               ? APR_SUCCESS
               : mdl_db_exec(db, NULL, p,
                             MDL_Q(MAPPING_VARIANTS_INSERT, .mapping_id = mapping->id,
                                   .variants = mapping_variants_text(mapping, p)));
}

static apr_status_t mapping_write_variants(mdl_db_t *db, const mdl_mapping_t *before,
                                           const mdl_mapping_t *mapping, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    if (strcmp(mapping_variants_text(before, p), mapping_variants_text(mapping, p)) == 0) {
        return APR_SUCCESS;
    }
    if (before->storefront_variant_ids->nelts > 0) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_VARIANTS_DELETE, mapping->id));
    }
    return rv == APR_SUCCESS ? mapping_insert_variants(db, mapping, p) : rv;
}

/* Writes the list for contents[i], if it differs. */
static apr_status_t mapping_write_list(mdl_db_t *db, mdl_mapping_t *before, mdl_mapping_t *mapping,
                                       apr_size_t i, apr_pool_t *p)
{
    const apr_array_header_t *old = *mapping_list_of(before, i);
    const apr_array_header_t *ids = *mapping_list_of(mapping, i);
    int count = ids != NULL ? ids->nelts : 0;
    apr_status_t rv = APR_SUCCESS;

    if (old->nelts == count &&
        (count == 0 || memcmp(old->elts, ids->elts, (size_t)count * sizeof(apr_int64_t)) == 0)) {
        return APR_SUCCESS;
    }
    if (old->nelts > 0) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q_AS(contents[i].delete, MAPPING_FILES_DELETE, mapping->id));
    }
    return rv == APR_SUCCESS && count > 0
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q_AS(contents[i].insert, MAPPING_FILES_INSERT, .id = mapping->id,
                                      .ids = ids))
               : rv;
}

apr_status_t mdl_mapping_too_large(mdl_problem_t *problem, const char *name, apr_int64_t files,
                                   apr_pool_t *p)
{
    mdl_problem_count(problem, MDL_MAPPING_FILES_MAX, files);
    return mdl_problem_set(problem, 422, "too_many_files",
                           apr_psprintf(p,
                                        "%s would give %" APR_INT64_T_FMT
                                        " files, those of its packs included; a mapping gives %d "
                                        "at most.",
                                        name, files, MDL_MAPPING_FILES_MAX));
}

/* Called after the lists are written.  The packs can't change until the end of the transaction. */
static apr_status_t mapping_check_files(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    if (put->mapping.pack_ids == NULL || put->mapping.pack_ids->nelts == 0) {
        return APR_SUCCESS; /* a request's own list is shorter */
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(MAPPING_COUNT_FILES, put->mapping.id));
    return rv == APR_SUCCESS && mdl_rows_int(row, 0) > MDL_MAPPING_FILES_MAX
               ? mdl_mapping_too_large(put->problem, "The mapping", mdl_rows_int(row, 0), p)
               : rv;
}

/* Writes the lists that differ.  The transaction has locked the mapping's row. */
static apr_status_t mapping_write_lists(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    mdl_mapping_t *before = mapping_without_lists(put->mapping.id, p);
    apr_array_header_t *mappings = apr_array_make(p, 1, sizeof(mdl_mapping_t *));
    apr_status_t rv = APR_SUCCESS;

    if (!put->created) {
        APR_ARRAY_PUSH(mappings, mdl_mapping_t *) = before;
        rv = mapping_read_lists(db, mappings, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mapping_write_variants(db, before, &put->mapping, p);
    }
    for (apr_size_t i = 0; rv == APR_SUCCESS && i < CONTENTS; i++) {
        rv = mapping_write_list(db, before, &put->mapping, i, p);
    }
    return rv == APR_SUCCESS ? mapping_check_files(db, put, p) : rv;
}

/* Stores the words by which the product is found; had are those of a mapping that was there. */
static apr_status_t mapping_store_words(mdl_db_t *db, const mdl_mapping_put_t *put, mdl_rows_t *had,
                                        apr_pool_t *p)
{
    const mdl_mapping_t *mapping = &put->mapping;
    mdl_search_words_t words = mdl_search_words(put->shop_id, p);

    mdl_search_add(&words, MDL_SEARCH_PRODUCT, mapping->id, mapping->storefront_product_id, p);
    mdl_search_add(&words, MDL_SEARCH_PRODUCT, mapping->id, mapping->title, p);
    return put->created ? mdl_search_store(db, &words, p)
                        : mdl_search_renew(db, &words, had, MDL_SEARCH_PRODUCT, mapping->id, p);
}

/* Writes what the mapping's row does not have.  The words are asked for together with the lists. */
static apr_status_t mapping_write_rest(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    mdl_rows_t *had = NULL;
    apr_status_t rv = put->created
                          ? APR_SUCCESS
                          : mdl_search_ask_words(db, MDL_SEARCH_PRODUCT, put->mapping.id, &had, p);

    if (rv == APR_SUCCESS) {
        rv = mapping_write_lists(db, put, p);
    }
    return rv == APR_SUCCESS ? mapping_store_words(db, put, had, p) : rv;
}

static void mapping_read_written(mdl_mapping_put_t *put, const mdl_rows_t *row)
{
    MDL_READ(row, mapping_upsert, &put->mapping, id, created_at, updated_at);
}

apr_status_t mdl_mapping_put(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put)
{
    mdl_mapping_t *mapping = &put->mapping;
    apr_time_t now = apr_time_now();
    mdl_rows_t *known[CONTENTS];
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mapping_ask_references(db, put, known, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(MAPPING_UPSERT, .shop_id = put->shop_id,
              .storefront_product_id = mapping->storefront_product_id,
              .variants_hash = mapping_variants_hash(mapping->storefront_variant_ids, p),
              .title = mapping->title, .note = mapping->note,
              .download_type = mdl_download_type_names[mapping->download_type],
              .is_active = mapping->is_active, .download_limit = mapping->download_limit,
              .access_days = mapping->access_days,
              .content = mdl_mapping_content_names[mapping->content],
              .fresh_downloads = mapping->fresh_downloads, .now = now));
    if (rv != APR_SUCCESS || (rv = mapping_check_references(put, known, p)) != APR_SUCCESS) {
        return rv;
    }
    mapping_read_written(put, row);
    put->created = mapping->updated_at == mapping->created_at;
    return mapping_write_rest(db, put, p);
}

static apr_status_t mapping_not_found(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "mapping_not_found", "There is no such mapping.");
}

/* After a change that met no row: there is none, or it has another version. */
static apr_status_t mapping_refuse_change(mdl_db_t *db, const mdl_mapping_put_t *put, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = put->versions == NULL
                          ? APR_ENOENT
                          : mdl_db_select_one(db, &row, p,
                                              MDL_Q(MAPPING_LOCK, .id = put->mapping.id,
                                                    .shop_id = put->shop_id));

    if (rv == APR_SUCCESS) {
        return mdl_version_refuse(put->problem);
    }
    return rv == APR_ENOENT ? mapping_not_found(put->problem) : rv;
}

static apr_status_t mapping_replace_row(mdl_db_t *db, mdl_mapping_put_t *put, apr_pool_t *p)
{
    const mdl_mapping_t *mapping = &put->mapping;
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(MAPPING_REPLACE, .storefront_product_id = mapping->storefront_product_id,
              .variants_hash = mapping_variants_hash(mapping->storefront_variant_ids, p),
              .title = mapping->title, .note = mapping->note,
              .download_type = mdl_download_type_names[mapping->download_type],
              .is_active = mapping->is_active, .download_limit = mapping->download_limit,
              .access_days = mapping->access_days,
              .content = mdl_mapping_content_names[mapping->content],
              .fresh_downloads = mapping->fresh_downloads, .now = apr_time_now(), .id = mapping->id,
              .shop_id = put->shop_id, MDL_VERSION_ARGS(put->versions, p)));
    if (rv == MDL_DB_EUNIQUE) {
        return mdl_problem_set(put->problem, 409, "mapping_exists",
                               "Another mapping has this product and set of variants.");
    }
    if (rv == APR_SUCCESS) {
        mapping_read_written(put, row);
    }
    return rv == APR_ENOENT ? mapping_refuse_change(db, put, p) : rv;
}

apr_status_t mdl_mapping_replace(mdl_db_t *db, apr_pool_t *p, mdl_mapping_put_t *put)
{
    mdl_rows_t *known[CONTENTS];
    apr_status_t rv;

    put->created = 0;
    if ((rv = mapping_replace_row(db, put, p)) != APR_SUCCESS ||
        (rv = mapping_ask_references(db, put, known, p)) != APR_SUCCESS ||
        (rv = mapping_check_references(put, known, p)) != APR_SUCCESS) {
        return rv;
    }
    return mapping_write_rest(db, put, p);
}

static mdl_mapping_t *mapping_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_mapping_t *mapping = mapping_without_lists(MDL_INT(row, mapping, id), p);

    MDL_READ(row, mapping, mapping, storefront_product_id, title, note, is_active, fresh_downloads,
             created_at, updated_at);
    mapping->download_type = MDL_ENUM(row, mapping, download_type, mdl_download_type_names);
    mapping->download_limit = (int)MDL_INT_OR_NONE(row, mapping, download_limit);
    mapping->access_days = (int)MDL_INT_OR_NONE(row, mapping, access_days);
    mapping->content = MDL_ENUM(row, mapping, content, mdl_mapping_content_names);
    return mapping;
}

apr_status_t mdl_mapping_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find)
{
    apr_array_header_t *mappings = apr_array_make(p, 1, sizeof(mdl_mapping_t *));
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(MAPPING_BY_ID, .id = find->id, .shop_id = find->shop_id));

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? mapping_not_found(find->problem) : rv;
    }
    APR_ARRAY_PUSH(mappings, mdl_mapping_t *) = find->entity = mapping_of_row(row, p);
    return mapping_read_lists(db, mappings, p);
}

apr_status_t mdl_mapping_lock(mdl_db_t *db, const mdl_mapping_put_t *put, mdl_mapping_t **mapping,
                              apr_pool_t *p)
{
    mdl_entity_ref_t find = {
        .shop_id = put->shop_id, .id = put->mapping.id, .problem = put->problem};
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(MAPPING_LOCK, .id = find.id, .shop_id = find.shop_id));

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? mapping_not_found(find.problem) : rv;
    }
    if ((rv = mdl_mapping_find(db, p, &find)) != APR_SUCCESS) {
        return rv;
    }
    *mapping = (mdl_mapping_t *)find.entity;
    return mdl_version_check(put->versions, (*mapping)->updated_at, put->problem);
}

static apr_status_t mapping_delete_lists(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_VARIANTS_DELETE, id));

    for (apr_size_t i = 0; rv == APR_SUCCESS && i < CONTENTS; i++) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q_AS(contents[i].delete, MAPPING_FILES_DELETE, id));
    }
    return rv;
}

/* Keeps the row for the orders that the mapping served, and the lists that orders with live content
   still need. */
static apr_status_t mapping_retire(mdl_db_t *db, apr_int64_t id, int live, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    apr_status_t rv;

    if (!live) {
        rv = mapping_delete_lists(db, id, p);
    } else {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_VARIANTS_DELETE, id));
        if (rv == APR_SUCCESS) {
            rv = mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_LICENSE_TAGS_DELETE, id));
        }
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_RETIRE, .now = now, .id = id))
                             : rv;
}

apr_status_t mdl_mapping_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(MAPPING_LOCK, .id = find->id, .shop_id = find->shop_id));
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? mapping_not_found(find->problem) : rv;
    }
    if ((rv = mdl_version_check(find->versions, mdl_rows_int(row, 0), find->problem)) !=
        APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_search_remove(db, MDL_SEARCH_PRODUCT, find->id, p)) != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p, MDL_Q(MAPPING_ASSIGNED, find->id))) != APR_SUCCESS) {
        return rv;
    }
    if (MDL_INT(row, mapping_assigned, is_assigned)) {
        return mapping_retire(db, find->id, (int)MDL_INT(row, mapping_assigned, is_live), p);
    }
    rv = mapping_delete_lists(db, find->id, p);
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(MAPPING_DELETE, find->id)) : rv;
}

static apr_status_t mapping_select_page(mdl_db_t *db, const mdl_mapping_list_t *list,
                                        mdl_rows_t **rows, apr_pool_t *p)
{
    const mdl_list_page_t *page = &list->page;

    if (list->storefront_product_id != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(MAPPING_PAGE_OF_PRODUCT, .shop_id = page->shop_id,
                                   .storefront_product_id = list->storefront_product_id,
                                   .is_active = list->is_active, .before = page->before,
                                   .limit = page->limit));
    }
    return list->is_active < 0
               ? mdl_db_select(db, rows, p,
                               MDL_Q(MAPPING_PAGE, .shop_id = page->shop_id, .before = page->before,
                                     .limit = page->limit))
               : mdl_db_select(db, rows, p,
                               MDL_Q(MAPPING_PAGE_OF_STATE, .shop_id = page->shop_id,
                                     .is_active = list->is_active, .before = page->before,
                                     .limit = page->limit));
}

apr_status_t mdl_mapping_list(mdl_db_t *db, apr_pool_t *p, mdl_mapping_list_t *list)
{
    apr_array_header_t *found = apr_array_make(p, list->page.limit, sizeof(mdl_mapping_t *));
    mdl_rows_t *rows;
    apr_status_t rv = mapping_select_page(db, list, &rows, p);

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_mapping_t *mapping = mapping_of_row(rows, p);

        if (list->page.summary) {
            mapping->storefront_variant_ids = NULL;
        }
        APR_ARRAY_PUSH(found, mdl_mapping_t *) = mapping;
    }
    list->page.found = found;
    return rv == APR_SUCCESS && !list->page.summary ? mapping_read_lists(db, found, p) : rv;
}

apr_status_t mdl_mapping_ask_match(mdl_db_t *db, apr_int64_t shop_id, const char *product_id,
                                   const char *variant_id, mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(MAPPING_FOR_ITEM, .storefront_variant_id = variant_id,
                               .shop_id = shop_id, .storefront_product_id = product_id));
}

int mdl_mapping_read_match(mdl_rows_t *rows, mdl_mapping_match_t *match)
{
    if (!mdl_rows_next(rows)) {
        return 0;
    }
    MDL_READ(rows, mapping_for_item, match, id, title, has_license_keys, has_links, packs);
    match->content = MDL_ENUM(rows, mapping_for_item, content, mdl_mapping_content_names);
    match->access_days = (int)MDL_INT_OR_NONE(rows, mapping_for_item, access_days);
    match->download_type = MDL_ENUM(rows, mapping_for_item, download_type, mdl_download_type_names);
    match->download_limit = (int)MDL_INT_OR_NONE(rows, mapping_for_item, download_limit);
    match->default_limit = (int)MDL_INT_OR_NONE(rows, mapping_for_item, default_limit);
    return 1;
}
