#include "core/order/assignment_files.h"

#include <stdlib.h>

#include <apr_hash.h>
#include <apr_strings.h>

#define PACKS_AT_ONCE  250
#define PACK_FILES_MAX 250000 /* of all packs read, however many assignments give them */

typedef struct {
    mdl_db_t *db;
    const apr_array_header_t *assignments; /* mdl_assignment_t * */
    int default_limit;
    apr_array_header_t **wanted; /* per assignment: ids of its packs' files; or NULL */
    apr_hash_t *mappings;        /* the same by mapping: its assignments share it */
    apr_hash_t *packs;           /* by pack: ids of its files, separated by commas */
    int pack_files;              /* number of files in packs */
    int left;                    /* files that may still be read */
    apr_pool_t *pool;
} reading_t;

mdl_assignment_t *mdl_assignment_make(apr_pool_t *p)
{
    mdl_assignment_t *assignment = apr_pcalloc(p, sizeof *assignment);

    assignment->files = apr_array_make(p, 4, sizeof(mdl_order_file_t *));
    assignment->links = apr_array_make(p, 0, sizeof(mdl_order_link_t *));
    assignment->license_keys = apr_array_make(p, 0, sizeof(mdl_license_key_t));
    return assignment;
}

static mdl_assignment_t *assignment_at(const reading_t *reading, int i)
{
    return APR_ARRAY_IDX(reading->assignments, i, mdl_assignment_t *);
}

/* Takes the next id from a list of ids; false at its end. */
static int id_next(const char **text, apr_int64_t *id)
{
    char *end;

    if (*text == NULL || **text == '\0') {
        return 0;
    }
    *id = apr_strtoi64(*text, &end, 10);
    *text = *end == ',' ? end + 1 : end;
    return 1;
}

/* --- files --- */

static void file_set_limit(mdl_order_file_t *file, const mdl_assignment_t *assignment,
                           int default_limit, mdl_allowance_t allowance)
{
    int limit = assignment->quantity *
                (assignment->download_limit < 0 ? default_limit : assignment->download_limit);

    if (assignment->fresh_downloads) {
        mdl_allowance_renew(&allowance, file->sha256, limit);
    }
    file->downloads.used = allowance.used;
    file->download_limit = limit > 0 ? limit + allowance.extra : 0;
}

static mdl_order_file_t *file_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_order_file_t *file = apr_pcalloc(p, sizeof *file);

    MDL_READ(row, files_of_orders, file, assignment_id, position, filename, title, sha256, size,
             updated_at);
    file->asset_id = MDL_INT(row, files_of_orders, id);
    file->status = MDL_ENUM(row, files_of_orders, status, mdl_asset_status_names);
    return file;
}

static apr_hash_t *assignments_by_id(const reading_t *reading)
{
    apr_hash_t *by_id = apr_hash_make(reading->pool);

    for (int i = 0; i < reading->assignments->nelts; i++) {
        mdl_assignment_t *assignment = assignment_at(reading, i);

        apr_hash_set(by_id, &assignment->id, sizeof assignment->id, assignment);
    }
    return by_id;
}

static int positions_compare(const void *a, const void *b)
{
    const mdl_order_file_t *const *left = a, *const *right = b;

    return ((*left)->position > (*right)->position) - ((*left)->position < (*right)->position);
}

/* The rows have no order: SQLite would sort them a second time, with all their columns. */
static void files_read_own(const reading_t *reading, mdl_rows_t *rows)
{
    apr_hash_t *by_id = assignments_by_id(reading);

    while (mdl_rows_next(rows)) {
        mdl_order_file_t *file = file_of_row(rows, reading->pool);
        mdl_assignment_t *assignment = apr_hash_get(by_id, &file->assignment_id,
                                                    sizeof file->assignment_id);

        if (assignment != NULL) { /* NULL: made since */
            file_set_limit(
                file, assignment, reading->default_limit,
                (mdl_allowance_t){.used = (int)MDL_INT(rows, files_of_orders, downloads_used),
                                  .extra = (int)MDL_INT(rows, files_of_orders, downloads_extra),
                                  .version = MDL_TEXT(rows, files_of_orders, version)});
            APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = file;
        }
    }
    for (int i = 0; i < reading->assignments->nelts; i++) {
        apr_array_header_t *files = assignment_at(reading, i)->files;

        qsort(files->elts, (size_t)files->nelts, sizeof(mdl_order_file_t *), positions_compare);
    }
}

/* --- packs --- */

/* The unread packs of an assignment, and some of the assignments after it. */
static apr_array_header_t *packs_unread(reading_t *reading, int from)
{
    apr_array_header_t *ids = apr_array_make(reading->pool, 4, sizeof(apr_int64_t));

    for (int i = from; i < reading->assignments->nelts; i++) {
        const char *text = assignment_at(reading, i)->packs;
        apr_int64_t id;

        while ((i == from || ids->nelts < PACKS_AT_ONCE) && id_next(&text, &id)) {
            if (apr_hash_get(reading->packs, &id, sizeof id) == NULL) {
                apr_hash_set(reading->packs, apr_pmemdup(reading->pool, &id, sizeof id), sizeof id,
                             "");
                APR_ARRAY_PUSH(ids, apr_int64_t) = id;
            }
        }
    }
    return ids;
}

/* Reads the packs of an assignment, unless they were read with those of an earlier one. */
static apr_status_t packs_read(reading_t *reading, int i)
{
    const char *text = assignment_at(reading, i)->packs;
    const apr_array_header_t *ids;
    apr_int64_t id;
    mdl_rows_t *rows;
    apr_status_t rv;
    int unread = 0;

    while (!unread && id_next(&text, &id)) {
        unread = apr_hash_get(reading->packs, &id, sizeof id) == NULL;
    }
    if (!unread) {
        return APR_SUCCESS;
    }
    ids = packs_unread(reading, i);
    rv = mdl_db_select(reading->db, &rows, reading->pool, MDL_Q(PACK_LISTS, ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *list = mdl_rows_text(rows, 1);

        id = mdl_rows_int(rows, 0);
        if (list != NULL) {
            apr_hash_set(reading->packs, apr_pmemdup(reading->pool, &id, sizeof id), sizeof id,
                         list);
            while (id_next(&list, &id)) {
                reading->pack_files++;
                mdl_db_count_rows(reading->db, 1);
            }
        }
    }
    return rv;
}

/* The files of an assignment's packs, each once, without those that it has itself. */
static apr_array_header_t *files_of_packs(const reading_t *reading,
                                          const mdl_assignment_t *assignment)
{
    apr_array_header_t *wanted = apr_array_make(reading->pool, 16, sizeof(apr_int64_t));
    const char *packs = assignment->packs;
    apr_int64_t pack, id;
    apr_pool_t *scratch;
    apr_hash_t *seen;

    apr_pool_create(&scratch, reading->pool);
    apr_pool_tag(scratch, "mdl_files_of_packs");
    seen = apr_hash_make(scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *);

        apr_hash_set(seen, &file->asset_id, sizeof file->asset_id, file);
    }
    while (id_next(&packs, &pack)) {
        const char *files = apr_hash_get(reading->packs, &pack, sizeof pack);

        while (wanted->nelts <= reading->left && id_next(&files, &id)) {
            if (apr_hash_get(seen, &id, sizeof id) == NULL) {
                apr_hash_set(seen, apr_pmemdup(scratch, &id, sizeof id), sizeof id, wanted);
                APR_ARRAY_PUSH(wanted, apr_int64_t) = id;
            }
        }
    }
    apr_pool_destroy(scratch);
    return wanted;
}

/* --- the limit --- */

/* Subtracts the files of an assignment from those left to read; *all: whether all of them fit. */
static apr_status_t files_count(reading_t *reading, int i, int *all)
{
    mdl_assignment_t *assignment = assignment_at(reading, i);
    apr_array_header_t *own = assignment->files, *wanted = NULL;
    apr_status_t rv;

    *all = own->nelts <= reading->left;
    own->nelts = *all ? own->nelts : reading->left;
    reading->left -= own->nelts;
    if (!*all || assignment->packs == NULL) {
        return APR_SUCCESS;
    }
    if ((rv = packs_read(reading, i)) != APR_SUCCESS) {
        return rv;
    }
    wanted = apr_hash_get(reading->mappings, &assignment->mapping_id,
                          sizeof assignment->mapping_id);
    if (wanted == NULL) {
        wanted = files_of_packs(reading, assignment);
        apr_hash_set(reading->mappings, &assignment->mapping_id, sizeof assignment->mapping_id,
                     wanted);
    }
    *all = wanted->nelts <= reading->left && reading->pack_files <= PACK_FILES_MAX;
    reading->wanted[i] = apr_array_copy(reading->pool, wanted);
    if (wanted->nelts > reading->left) {
        reading->wanted[i]->nelts = reading->left;
    }
    reading->left -= reading->wanted[i]->nelts;
    return APR_SUCCESS;
}

static apr_status_t files_count_all(reading_t *reading, int *whole)
{
    int all = 1;
    apr_status_t rv = APR_SUCCESS;

    for (*whole = 0; rv == APR_SUCCESS && all && *whole < reading->assignments->nelts;) {
        rv = files_count(reading, *whole, &all);
        *whole += all;
    }
    for (int i = *whole; i < reading->assignments->nelts; i++) {
        assignment_at(reading, i)->files_truncated = 1;
        if (i > *whole) {
            assignment_at(reading, i)->files->nelts = 0;
        }
    }
    return rv;
}

/* --- the files of packs --- */

static apr_status_t files_read_wanted(const reading_t *reading, apr_hash_t *files)
{
    apr_array_header_t *ids = apr_array_make(reading->pool, 16, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < reading->assignments->nelts; i++) {
        for (int j = 0; reading->wanted[i] != NULL && j < reading->wanted[i]->nelts; j++) {
            apr_int64_t *id = &APR_ARRAY_IDX(reading->wanted[i], j, apr_int64_t);

            if (apr_hash_get(files, id, sizeof *id) == NULL) {
                apr_hash_set(files, id, sizeof *id, id);
                APR_ARRAY_PUSH(ids, apr_int64_t) = *id;
            }
        }
    }
    apr_hash_clear(files);
    rv = mdl_db_select(reading->db, &rows, reading->pool, MDL_Q(FILES_BY_ID, ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const mdl_order_file_t *file = file_of_row(rows, reading->pool);

        apr_hash_set(files, &file->asset_id, sizeof file->asset_id, file);
    }
    return rv;
}

static void file_add(const reading_t *reading, mdl_assignment_t *assignment,
                     const mdl_order_file_t *file, apr_hash_t *by_pair)
{
    mdl_order_file_t *own = apr_pmemdup(reading->pool, file, sizeof *file);
    apr_int64_t *pair = apr_palloc(reading->pool, 2 * sizeof *pair);

    own->assignment_id = pair[0] = assignment->id;
    pair[1] = own->asset_id;
    file_set_limit(own, assignment, reading->default_limit, (mdl_allowance_t){.version = ""});
    APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = own;
    apr_hash_set(by_pair, pair, 2 * sizeof *pair, own);
}

static apr_status_t files_read_allowances(const reading_t *reading, const apr_array_header_t *ids,
                                          apr_hash_t *by_pair)
{
    apr_hash_t *by_id = assignments_by_id(reading);
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(reading->db, &rows, reading->pool,
                                    MDL_Q(ALLOWANCES_OF_ASSIGNMENTS, ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t pair[] = {MDL_INT(rows, allowances_of_assignments, assignment_id),
                              MDL_INT(rows, allowances_of_assignments, asset_id)};
        mdl_order_file_t *file = apr_hash_get(by_pair, pair, sizeof pair);

        if (file != NULL) {
            file_set_limit(
                file, apr_hash_get(by_id, &pair[0], sizeof pair[0]), reading->default_limit,
                (mdl_allowance_t){
                    .used = (int)MDL_INT(rows, allowances_of_assignments, downloads_used),
                    .extra = (int)MDL_INT(rows, allowances_of_assignments, downloads_extra),
                    .version = MDL_TEXT(rows, allowances_of_assignments, version)});
        }
    }
    return rv;
}

static apr_status_t files_read_of_packs(const reading_t *reading)
{
    apr_array_header_t *with_packs = apr_array_make(reading->pool, 4, sizeof(apr_int64_t));
    apr_hash_t *files = apr_hash_make(reading->pool), *by_pair = apr_hash_make(reading->pool);
    apr_status_t rv;

    for (int i = 0; i < reading->assignments->nelts; i++) {
        if (reading->wanted[i] != NULL && reading->wanted[i]->nelts > 0) {
            APR_ARRAY_PUSH(with_packs, apr_int64_t) = assignment_at(reading, i)->id;
        }
    }
    if (with_packs->nelts == 0) {
        return APR_SUCCESS;
    }
    if ((rv = files_read_wanted(reading, files)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < reading->assignments->nelts; i++) {
        for (int j = 0; reading->wanted[i] != NULL && j < reading->wanted[i]->nelts; j++) {
            const mdl_order_file_t *file = apr_hash_get(
                files, &APR_ARRAY_IDX(reading->wanted[i], j, apr_int64_t), sizeof(apr_int64_t));

            if (file != NULL) {
                file_add(reading, assignment_at(reading, i), file, by_pair);
            }
        }
    }
    return files_read_allowances(reading, with_packs, by_pair);
}

apr_status_t mdl_assignment_files_read(mdl_db_t *db, mdl_rows_t *own,
                                       const apr_array_header_t *assignments, int default_limit,
                                       int max, int *whole, apr_pool_t *p)
{
    reading_t reading = {.db = db,
                         .assignments = assignments,
                         .default_limit = default_limit,
                         .wanted = apr_pcalloc(p, ((apr_size_t)assignments->nelts + 1) *
                                                      sizeof(apr_array_header_t *)),
                         .mappings = apr_hash_make(p),
                         .packs = apr_hash_make(p),
                         .left = max,
                         .pool = p};
    apr_status_t rv;

    files_read_own(&reading, own);
    rv = files_count_all(&reading, whole);
    return rv == APR_SUCCESS ? files_read_of_packs(&reading) : rv;
}

/* --- objects --- */

/* Adds the files of an assignment, each to those of the same asset that were added before. */
static void files_group(const mdl_assignment_t *assignment, apr_hash_t *groups,
                        apr_array_header_t *ids, apr_pool_t *p)
{
    for (int i = 0; i < assignment->files->nelts; i++) {
        mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i, mdl_order_file_t *);
        apr_array_header_t *group = apr_hash_get(groups, &file->asset_id, sizeof file->asset_id);

        if (group == NULL) {
            group = apr_array_make(p, 1, sizeof(mdl_order_file_t *));
            apr_hash_set(groups, &file->asset_id, sizeof file->asset_id, group);
            APR_ARRAY_PUSH(ids, apr_int64_t) = file->asset_id;
        }
        APR_ARRAY_PUSH(group, mdl_order_file_t *) = file;
    }
}

apr_status_t mdl_assignment_files_locate(mdl_db_t *db, const apr_array_header_t *assignments,
                                         apr_pool_t *p)
{
    apr_hash_t *groups = apr_hash_make(p);
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < assignments->nelts; i++) {
        files_group(APR_ARRAY_IDX(assignments, i, mdl_assignment_t *), groups, ids, p);
    }
    if (ids->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(FILES_IN_OBJECTS, ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t id = mdl_rows_int(rows, 0);
        const apr_array_header_t *group = apr_hash_get(groups, &id, sizeof id);

        for (int i = 0; i < group->nelts; i++) {
            mdl_order_file_t *file = APR_ARRAY_IDX(group, i, mdl_order_file_t *);

            file->is_object = 1;
            file->is_missing = !mdl_rows_null(rows, 1);
        }
    }
    return rv;
}
