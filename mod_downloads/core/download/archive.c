#include "core/download/archive.h"

#include <string.h>

#include <apr_strings.h>

#define BATCH 500 /* files whose rows are in memory at once */

/* Part of every tag.  Change the number when the same files make other bytes than before. */
#define FORMAT "mod_downloads zip 1\n"

/* --- which files --- */

static int count_ids(const char *list)
{
    int n = *list != '\0';

    while ((list = strchr(list, ',')) != NULL) {
        list++;
        n++;
    }
    return n;
}

/* Adds an id to a set with open addressing; no id is 0.  False if the set has it already. */
static int id_set_add(apr_int64_t *set, apr_size_t mask, apr_int64_t id)
{
    apr_size_t i = (apr_size_t)id & mask;

    while (set[i] != 0 && set[i] != id) {
        i = (i + 1) & mask;
    }
    if (set[i] == id) {
        return 0;
    }
    set[i] = id;
    return 1;
}

/* Adds the ids of all lists, each once, in the order of their first appearance. */
static void add_ids(apr_array_header_t *ids, const apr_array_header_t *lists, apr_pool_t *p)
{
    apr_size_t size = 64;
    apr_int64_t *set;

    while (size * 3 / 4 < (apr_size_t)ids->nalloc) {
        size *= 2;
    }
    set = apr_pcalloc(p, size * sizeof *set);
    for (int i = 0; i < lists->nelts; i++) {
        const char *text = APR_ARRAY_IDX(lists, i, const char *);

        while (*text != '\0') {
            char *end;
            apr_int64_t id = apr_strtoi64(text, &end, 10);

            if (id_set_add(set, size - 1, id)) {
                APR_ARRAY_PUSH(ids, apr_int64_t) = id;
            }
            text = *end == ',' ? end + 1 : "";
        }
    }
}

static apr_status_t read_ids(mdl_db_t *db, apr_int64_t assignment_id, apr_array_header_t **ids,
                             apr_pool_t *p)
{
    apr_array_header_t *lists;
    apr_pool_t *scratch;
    int count = 0;
    mdl_rows_t *rows;
    apr_status_t rv;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_archive_ids");
    lists = apr_array_make(scratch, 64, sizeof(const char *));
    rv = mdl_db_select(db, &rows, scratch, MDL_Q(ARCHIVE_LISTS, assignment_id));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *list = mdl_rows_text(rows, 1);

        if (list != NULL) {
            APR_ARRAY_PUSH(lists, const char *) = list;
            count += count_ids(list);
        }
    }
    *ids = apr_array_make(p, count, sizeof(apr_int64_t));
    add_ids(*ids, lists, scratch);
    apr_pool_destroy(scratch);
    return rv;
}

/* --- their contents --- */

typedef struct {
    mdl_archive_t *archive;
    const int *fresh_limit;
    mdl_sha256_t *tag;
} building_t;

/* A row of archive_files; rows come in any order. */
typedef struct {
    mdl_archive_file_t file;
    const char *filename;
    apr_uint32_t crc32;
    apr_time_t updated_at;
    mdl_allowance_t allowance;
    int is_missing;
} row_t;

static void read_row(const mdl_rows_t *rows, const int *fresh_limit, row_t *row)
{
    row->file.asset_id = MDL_INT(rows, archive_files, id);
    MDL_READ(rows, archive_files, row, filename, updated_at);
    row->allowance = (mdl_allowance_t){.used = (int)MDL_INT(rows, archive_files, downloads_used),
                                       .extra = (int)MDL_INT(rows, archive_files, downloads_extra),
                                       .version = MDL_TEXT(rows, archive_files, version)};
    if (fresh_limit != NULL) {
        mdl_allowance_renew(&row->allowance, MDL_TEXT(rows, archive_files, sha256), *fresh_limit);
    }
    /* An invalid digest stays all zeros: the storage has no such file. */
    mdl_hex_decode(row->file.sha256, sizeof row->file.sha256,
                   MDL_TEXT(rows, archive_files, sha256));
    row->file.size = MDL_INT(rows, archive_files, size);
    row->file.object = MDL_TEXT(rows, archive_files, object);
    row->is_missing = !MDL_NULL(rows, archive_files, missing_at);
    row->crc32 = (apr_uint32_t)MDL_INT(rows, archive_files, crc32);
}

static void archive_add(building_t *building, const row_t *row)
{
    mdl_archive_t *archive = building->archive;
    mdl_archive_file_t *file;
    apr_int64_t numbers[] = {row->file.size, row->crc32, row->updated_at};
    const char *name;

    mdl_zip_add(archive->zip, row->filename, row->file.size, row->crc32, row->updated_at);
    name = mdl_zip_name(archive->zip, archive->files->nelts);
    if (row->is_missing) {
        archive->missing = archive->files->nelts;
    }
    file = apr_array_push(archive->files);
    *file = row->file;
    file->object = apr_pstrdup(archive->files->pool, row->file.object);
    if (row->updated_at > archive->updated_at) {
        archive->updated_at = row->updated_at;
    }
    if (archive->files->nelts == 1 ||
        row->allowance.used - row->allowance.extra > archive->fewest.used - archive->fewest.extra) {
        archive->fewest = (mdl_allowance_t){.used = row->allowance.used,
                                            .extra = row->allowance.extra};
    }
    mdl_sha256_update(building->tag, name, strlen(name) + 1);
    mdl_sha256_update(building->tag, row->file.sha256, sizeof row->file.sha256);
    mdl_sha256_update(building->tag, numbers, sizeof numbers);
}

/* Adds the files with these ids, in this order. */
static apr_status_t add_batch(mdl_db_t *db, building_t *building, apr_int64_t assignment_id,
                              const apr_array_header_t *ids, apr_pool_t *p)
{
    row_t *rows_of = apr_pcalloc(p, (apr_size_t)ids->nelts * sizeof *rows_of);
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(ARCHIVE_FILES, .ids = ids, .assignment_id = assignment_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        read_row(rows, building->fresh_limit, &rows_of[mdl_rows_int(rows, 0)]);
    }
    for (int i = 0; rv == APR_SUCCESS && i < ids->nelts; i++) {
        if (rows_of[i].filename != NULL) {
            archive_add(building, &rows_of[i]);
        }
    }
    return rv;
}

static apr_status_t archive_make(mdl_db_t *db, apr_int64_t assignment_id,
                                 const apr_array_header_t *ids, const int *fresh_limit,
                                 mdl_archive_t *archive, apr_pool_t *p)
{
    building_t building = {.archive = archive, .fresh_limit = fresh_limit};
    unsigned char digest[MDL_SHA256_LENGTH];
    apr_pool_t *scratch, *batch;
    apr_status_t rv = APR_SUCCESS;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_archive");
    apr_pool_create(&batch, scratch);
    *archive = (mdl_archive_t){.zip = mdl_zip_begin(ids->nelts, p), .missing = -1};
    archive->files = apr_array_make(p, ids->nelts, sizeof(mdl_archive_file_t));
    building.tag = mdl_sha256_begin(scratch);
    mdl_sha256_update(building.tag, FORMAT, strlen(FORMAT));
    for (int i = 0; rv == APR_SUCCESS && i < ids->nelts; i += BATCH) {
        apr_array_header_t some = *ids;

        some.elts += i * ids->elt_size;
        some.nelts = ids->nelts - i < BATCH ? ids->nelts - i : BATCH;
        rv = add_batch(db, &building, assignment_id, &some, batch);
        apr_pool_clear(batch);
    }
    mdl_zip_end(archive->zip);
    mdl_sha256_end(building.tag, digest);
    archive->tag = mdl_hex(digest, sizeof digest, p);
    apr_pool_destroy(scratch);
    return rv;
}

apr_status_t mdl_archive_read(mdl_db_t *db, apr_int64_t assignment_id, const int *fresh_limit,
                              mdl_archive_t *archive, apr_pool_t *p)
{
    apr_array_header_t *ids;
    apr_pool_t *scratch;
    apr_status_t rv;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_archive_read");
    rv = read_ids(db, assignment_id, &ids, scratch);
    if (rv == APR_SUCCESS) {
        rv = archive_make(db, assignment_id, ids, fresh_limit, archive, p);
    }
    apr_pool_destroy(scratch);
    return rv;
}

const char *mdl_archive_filename(const char *storefront_order_id, apr_pool_t *p)
{
    return apr_pstrcat(p, "order-", storefront_order_id, ".zip", NULL);
}
