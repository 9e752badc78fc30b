#include "core/archive.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/json.h"

#define BATCH 200 /* files whose rows are held at once */

/* Another way to make the bytes of an archive needs another number here. */
#define FORMAT "mod_downloads zip 1\n"

/* --- which files -------------------------------------------------------------------------------
 */

typedef struct {
    apr_int64_t id;
    int place;
} place_t;

static int by_id_and_place(const void *one, const void *other)
{
    const place_t *a = one, *b = other;

    return a->id != b->id ? (a->id < b->id ? -1 : 1) : a->place - b->place;
}

/* Sets every id to 0 that was there before. */
static void drop_doubles(apr_array_header_t *ids, apr_pool_t *p)
{
    place_t *places = apr_palloc(p, (apr_size_t)ids->nelts * sizeof *places);

    for (int i = 0; i < ids->nelts; i++) {
        places[i] = (place_t){APR_ARRAY_IDX(ids, i, apr_int64_t), i};
    }
    qsort(places, (apr_size_t)ids->nelts, sizeof *places, by_id_and_place);
    for (int i = 1; i < ids->nelts; i++) {
        if (places[i].id == places[i - 1].id) {
            APR_ARRAY_IDX(ids, places[i].place, apr_int64_t) = 0;
        }
    }
}

static int count_of(const char *text)
{
    int n = *text != '\0';

    while ((text = strchr(text, ',')) != NULL) {
        text++;
        n++;
    }
    return n;
}

static apr_status_t read_ids(mdl_db_t *db, apr_int64_t assignment_id, apr_array_header_t **ids,
                             apr_pool_t *p)
{
    const char *given = apr_psprintf(p, "[%" APR_INT64_T_FMT "]", assignment_id);
    const char *text = NULL;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_ASSETS_OF_ASSIGNMENT, &row, p,
                                        MDL_ARGS(mdl_text(given)));

    if (rv == APR_SUCCESS) {
        text = mdl_rows_text(row, 0);
    }
    text = text != NULL ? text : "";
    *ids = apr_array_make(p, count_of(text), sizeof(apr_int64_t));
    while (*text != '\0') {
        char *end;

        APR_ARRAY_PUSH(*ids, apr_int64_t) = apr_strtoi64(text, &end, 10);
        text = *end == ',' ? end + 1 : "";
    }
    drop_doubles(*ids, p);
    return rv;
}

/* --- what is in them ---------------------------------------------------------------------------
 */

typedef struct {
    mdl_archive_t *archive;
    mdl_sha256_t *tag;
} building_t;

/* A row of archive_files, kept until its place among the others has come. */
typedef struct {
    mdl_archive_file_t file;
    const char *filename;
    apr_uint32_t crc32;
    apr_time_t updated_at;
    int downloads_used;
    int downloads_extra;
} row_t;

static row_t *row_of(const mdl_rows_t *rows, apr_pool_t *p)
{
    row_t *row = apr_pcalloc(p, sizeof *row);

    row->file.asset_id = mdl_rows_int(rows, 0);
    row->filename = mdl_rows_text(rows, 1);
    /* What is no digest stays one of zeros, and is missing from the storage. */
    mdl_hex_decode(row->file.sha256, sizeof row->file.sha256, mdl_rows_text(rows, 2));
    row->file.size = mdl_rows_int(rows, 3);
    row->crc32 = (apr_uint32_t)mdl_rows_int(rows, 4);
    row->updated_at = mdl_rows_int(rows, 5);
    row->downloads_used = (int)mdl_rows_int(rows, 6);
    row->downloads_extra = (int)mdl_rows_int(rows, 7);
    return row;
}

static void add(building_t *building, const row_t *row)
{
    mdl_archive_t *archive = building->archive;
    apr_int64_t numbers[] = {row->file.size, row->crc32, row->updated_at};
    const char *name;

    mdl_zip_add(archive->zip, row->filename, row->file.size, row->crc32, row->updated_at);
    name = mdl_zip_name(archive->zip, archive->files->nelts);
    APR_ARRAY_PUSH(archive->files, mdl_archive_file_t) = row->file;
    if (row->updated_at > archive->updated_at) {
        archive->updated_at = row->updated_at;
    }
    if (archive->files->nelts == 1 || row->downloads_used - row->downloads_extra >
                                          archive->downloads_used - archive->downloads_extra) {
        archive->downloads_used = row->downloads_used;
        archive->downloads_extra = row->downloads_extra;
    }
    mdl_sha256_update(building->tag, name, strlen(name) + 1);
    mdl_sha256_update(building->tag, row->file.sha256, sizeof row->file.sha256);
    mdl_sha256_update(building->tag, numbers, sizeof numbers);
}

/* Adds the files of n ids, in their order. */
static apr_status_t add_batch(mdl_db_t *db, building_t *building, apr_int64_t assignment_id,
                              const apr_int64_t *ids, int n, apr_pool_t *p)
{
    mdl_json_t *given = mdl_json_array(p);
    apr_hash_t *by_id = apr_hash_make(p);
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < n; i++) {
        mdl_json_add_int(given, NULL, ids[i]);
    }
    rv = mdl_db_select(db, MDL_Q_ARCHIVE_FILES, &rows, p,
                       MDL_ARGS(mdl_int(assignment_id), mdl_text(mdl_json_text(given, NULL, p))));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        row_t *row = row_of(rows, p);

        apr_hash_set(by_id, &row->file.asset_id, sizeof row->file.asset_id, row);
    }
    for (int i = 0; rv == APR_SUCCESS && i < n; i++) {
        const row_t *row = apr_hash_get(by_id, &ids[i], sizeof ids[i]);

        if (row != NULL) {
            add(building, row);
        }
    }
    return rv;
}

apr_status_t mdl_archive_read(mdl_db_t *db, apr_int64_t assignment_id, mdl_archive_t *archive,
                              apr_pool_t *p)
{
    building_t building = {archive, NULL};
    unsigned char digest[MDL_SHA256_LENGTH];
    apr_pool_t *scratch, *batch;
    apr_array_header_t *ids;
    apr_status_t rv;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_archive");
    apr_pool_create(&batch, scratch);
    rv = read_ids(db, assignment_id, &ids, scratch);
    *archive = (mdl_archive_t){.zip = mdl_zip_begin(ids->nelts, p)};
    archive->files = apr_array_make(p, ids->nelts, sizeof(mdl_archive_file_t));
    building.tag = mdl_sha256_begin(scratch);
    mdl_sha256_update(building.tag, FORMAT, strlen(FORMAT));
    for (int i = 0; rv == APR_SUCCESS && i < ids->nelts; i += BATCH) {
        int n = ids->nelts - i < BATCH ? ids->nelts - i : BATCH;

        rv = add_batch(db, &building, assignment_id, &APR_ARRAY_IDX(ids, i, apr_int64_t), n, batch);
        apr_pool_clear(batch);
    }
    mdl_zip_end(archive->zip);
    mdl_sha256_end(building.tag, digest);
    archive->tag = mdl_hex(digest, sizeof digest, p);
    apr_pool_destroy(scratch);
    return rv;
}

/* --- what is offered ---------------------------------------------------------------------------
 */

apr_int64_t mdl_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p)
{
    apr_int64_t size = 0;
    apr_pool_t *scratch;
    mdl_zip_t *zip;
    int ready = 0;

    if (strcmp(assignment->download_type, "ZIP") != 0) {
        return 0;
    }
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_archive_size");
    zip = mdl_zip_begin(assignment->files->nelts, scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i,
                                                     const mdl_order_file_t *);

        if (strcmp(file->status, "ready") == 0) {
            mdl_zip_add(zip, file->filename, file->size, 0, file->updated_at);
            ready++;
        }
    }
    mdl_zip_end(zip);
    size = ready >= 2 ? mdl_zip_size(zip) : 0;
    apr_pool_destroy(scratch);
    return size;
}

const char *mdl_archive_filename(const char *storefront_order_id, apr_pool_t *p)
{
    return apr_pstrcat(p, "order-", storefront_order_id, ".zip", NULL);
}
