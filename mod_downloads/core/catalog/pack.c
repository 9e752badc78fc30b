#include "core/catalog/pack.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "core/catalog/mapping.h"
#include "core/catalog/references.h"
#include "core/ids.h"
#include "core/shop/shop.h"
#include "core/version.h"

static mdl_pack_t *pack_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_pack_t *pack = apr_pcalloc(p, sizeof *pack);

    MDL_READ(row, pack, pack, id, name, created_at, updated_at);
    pack->file_ids = apr_array_make(p, 8, sizeof(apr_int64_t));
    return pack;
}

/* Reads the files of packs (mdl_pack_t *) in descending order of ids. */
static apr_status_t pack_read_files(mdl_db_t *db, const apr_array_header_t *packs, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, packs->nelts, sizeof(apr_int64_t));
    int at = 0;
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < packs->nelts; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = APR_ARRAY_IDX(packs, i, const mdl_pack_t *)->id;
    }
    if (ids->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(PACK_FILES, ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        while (APR_ARRAY_IDX(ids, at, apr_int64_t) != MDL_INT(rows, pack_files, pack_id)) {
            at++;
        }
        APR_ARRAY_PUSH(APR_ARRAY_IDX(packs, at, mdl_pack_t *)->file_ids,
                       apr_int64_t) = MDL_INT(rows, pack_files, asset_id);
    }
    return rv;
}

/* Runs a statement that selects the pack, without its files. */
static apr_status_t pack_select_one(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p,
                                    mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "pack_not_found", "There is no such pack.");
    }
    if (rv == APR_SUCCESS) {
        ref->entity = pack_of_row(row, p);
    }
    return rv;
}

/* The same by id and shop, and checks the caller's version. */
static apr_status_t pack_select_known(mdl_db_t *db, mdl_entity_ref_t *ref,
                                      mdl_statement_t statement, apr_pool_t *p)
{
    apr_status_t rv = pack_select_one(
        db, ref, p, MDL_Q_AS(statement, PACK_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions, ((const mdl_pack_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

static apr_status_t pack_put_files(mdl_db_t *db, const mdl_pack_edit_t *edit, apr_pool_t *p)
{
    const mdl_pack_t *pack = edit->ref.entity;
    apr_status_t rv = mdl_ids_check(db, MDL_Q_ASSET_KNOWN, edit->ref.shop_id, edit->file_ids,
                                    "file_ids", edit->ref.problem, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (edit->ref.problem->details != NULL) {
        return mdl_problem_set(edit->ref.problem, 422, "unknown_reference",
                               "The pack names files that this shop does not have.");
    }
    if (edit->file_ids == NULL || edit->file_ids->nelts == 0) {
        return APR_SUCCESS;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(PACK_FILES_INSERT, .id = pack->id, .ids = edit->file_ids));
}

/* Reads the current files of a pack. */
static apr_status_t pack_complete(mdl_db_t *db, const mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_array_header_t *packs = apr_array_make(p, 1, sizeof(mdl_pack_t *));
    mdl_pack_t *pack = ref->entity;

    apr_array_clear(pack->file_ids);
    APR_ARRAY_PUSH(packs, mdl_pack_t *) = pack;
    return pack_read_files(db, packs, p);
}

apr_status_t mdl_pack_create(mdl_db_t *db, apr_pool_t *p, mdl_pack_edit_t *edit)
{
    apr_status_t rv = pack_select_one(db, &edit->ref, p,
                                      MDL_Q(PACK_INSERT, .shop_id = edit->ref.shop_id,
                                            .name = edit->name, .now = apr_time_now()));

    if (rv == APR_SUCCESS && (rv = pack_put_files(db, edit, p)) == APR_SUCCESS) {
        rv = pack_complete(db, &edit->ref, p);
    }
    return rv;
}

apr_status_t mdl_pack_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    apr_status_t rv = pack_select_known(db, ref, MDL_Q_PACK_BY_ID, p);

    return rv == APR_SUCCESS ? pack_complete(db, ref, p) : rv;
}

/* After a change that met no row: there is none, or it has another version. */
static apr_status_t pack_refuse_change(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = mdl_pack_find(db, p, ref);

    return rv == APR_SUCCESS ? mdl_version_refuse(ref->problem) : rv;
}

static int pack_grows(const mdl_pack_t *pack, const apr_array_header_t *file_ids)
{
    for (int i = 0; i < file_ids->nelts; i++) {
        if (!mdl_ids_has(pack->file_ids, APR_ARRAY_IDX(file_ids, i, apr_int64_t))) {
            return 1;
        }
    }
    return 0;
}

/* Locks the shop, so that packs grow one after the other: a mapping may have two of them. */
static apr_status_t pack_check_mappings(mdl_db_t *db, const mdl_entity_ref_t *ref, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_shop_lock(db, ref->shop_id, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(
            db, &row, p,
            MDL_Q(PACK_MAPPING_TOO_LARGE, .pack_id = ref->id, .most = MDL_MAPPING_FILES_MAX));
    }
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    return mdl_mapping_too_large(ref->problem,
                                 apr_psprintf(p, "Mapping %" APR_INT64_T_FMT,
                                              MDL_INT(row, pack_mapping_too_large, mapping_id)),
                                 MDL_INT(row, pack_mapping_too_large, files), p);
}

static apr_status_t pack_replace_files(mdl_db_t *db, const mdl_pack_edit_t *edit, apr_pool_t *p)
{
    apr_status_t rv = pack_complete(db, &edit->ref, p);
    int grows = rv == APR_SUCCESS && pack_grows(edit->ref.entity, edit->file_ids);

    if (rv != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(PACK_FILES_DELETE, edit->ref.id))) != APR_SUCCESS ||
        (rv = pack_put_files(db, edit, p)) != APR_SUCCESS) {
        return rv;
    }
    return grows ? pack_check_mappings(db, &edit->ref, p) : APR_SUCCESS;
}

apr_status_t mdl_pack_change(mdl_db_t *db, apr_pool_t *p, mdl_pack_edit_t *edit)
{
    apr_status_t rv;

    if (edit->name == NULL && edit->file_ids == NULL) {
        return mdl_pack_find(db, p, &edit->ref);
    }
    rv = pack_select_one(db, &edit->ref, p,
                         MDL_Q(PACK_CHANGE, .name = edit->name, .now = apr_time_now(),
                               .id = edit->ref.id, .shop_id = edit->ref.shop_id,
                               MDL_VERSION_ARGS(edit->ref.versions, p)));
    if (rv == MDL_EPROBLEM && edit->ref.versions != NULL) {
        return pack_refuse_change(db, &edit->ref, p);
    }
    if (rv == APR_SUCCESS && edit->file_ids != NULL) {
        rv = pack_replace_files(db, edit, p);
    }
    return rv == APR_SUCCESS ? pack_complete(db, &edit->ref, p) : rv;
}

apr_status_t mdl_pack_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    static const mdl_reference_query_t references[] = {{MDL_Q_PACK_MAPPINGS, MDL_REFERENCE_MAPPING},
                                                       {MDL_Q_PACK_ORDERS, MDL_REFERENCE_ORDER}};
    apr_status_t rv;

    if ((rv = pack_select_known(db, ref, MDL_Q_PACK_LOCK, p)) != APR_SUCCESS ||
        (rv = mdl_references_check(db, ref, references, sizeof references / sizeof *references,
                                   "pack_in_use", "pack", p)) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(PACK_FILES_DELETE, ref->id))) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p, MDL_Q(PACK_DELETE, ref->id));
}

apr_status_t mdl_pack_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(PACK_PAGE, .shop_id = page->shop_id, .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_pack_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_pack_t *pack = pack_of_row(rows, p);

        pack->file_ids = page->summary ? NULL : pack->file_ids;
        APR_ARRAY_PUSH(page->found, mdl_pack_t *) = pack;
    }
    return rv == APR_SUCCESS && !page->summary ? pack_read_files(db, page->found, p) : rv;
}
