#include "core/download/settlement.h"

#include <string.h>

#include <apr_strings.h>

#include "core/download/archive.h"
#include "core/ids.h"

/* --- what earlier sessions delivered of a file that they gave back --- */

/* A file of an assignment, in the version that the entity tag names. */
typedef struct {
    apr_int64_t assignment_id;
    apr_int64_t asset_id;
    const char *etag;
    apr_int64_t size;
} file_version_t;

typedef struct {
    mdl_coverage_t *coverage;
    apr_int64_t bytes; /* the sum of what each session covered */
} partial_t;

static apr_status_t partial_find(mdl_db_t *db, const file_version_t *file, partial_t *partial,
                                 apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_ASSIGNMENT_LOCK, &row, p,
                                        MDL_ARGS(mdl_int(file->assignment_id)));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(
            db, MDL_Q_DOWNLOAD_PARTIAL_FIND, &row, p,
            MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id), mdl_text(file->etag)));
    }
    partial->coverage = mdl_coverage_read(rv == APR_SUCCESS ? mdl_rows_text(row, 0) : "", p);
    partial->bytes = rv == APR_SUCCESS ? mdl_rows_int(row, 1) : 0;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t partial_remove(mdl_db_t *db, const file_version_t *file, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_PARTIAL_REMOVE, NULL, p,
                       MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id)));
}

static apr_status_t partial_keep(mdl_db_t *db, const file_version_t *file, const partial_t *partial,
                                 apr_pool_t *p)
{
    return mdl_db_exec(
        db, MDL_Q_DOWNLOAD_PARTIAL_KEEP, NULL, p,
        MDL_ARGS(mdl_int(file->assignment_id), mdl_int(file->asset_id), mdl_text(file->etag),
                 mdl_text(mdl_coverage_text(partial->coverage, p)), mdl_int(partial->bytes)));
}

/* Adds what a session delivered.  Once all of it is a download, what was remembered goes: some of
   it may be this session's own. */
static apr_status_t partial_add(mdl_db_t *db, const file_version_t *file,
                                const mdl_coverage_t *delivered, int *is_charged, apr_pool_t *p)
{
    partial_t partial;
    apr_status_t rv;

    *is_charged = mdl_coverage_is_whole(delivered, file->size);
    if (*is_charged || delivered->nelts == 0) {
        return *is_charged ? partial_remove(db, file, p) : APR_SUCCESS;
    }
    if ((rv = partial_find(db, file, &partial, p)) != APR_SUCCESS) {
        return rv;
    }
    mdl_coverage_join(partial.coverage, delivered);
    partial.bytes += mdl_coverage_bytes(delivered);
    *is_charged = mdl_coverage_is_whole(partial.coverage, file->size) ||
                  partial.bytes >= MDL_DOWNLOAD_FACTOR * file->size;
    return *is_charged ? partial_remove(db, file, p) : partial_keep(db, file, &partial, p);
}

/* --- settling --- */

static file_version_t file_of(const mdl_reservation_t *reservation)
{
    return (file_version_t){.assignment_id = reservation->assignment_id,
                            .asset_id = reservation->asset_id,
                            .etag = reservation->etag,
                            .size = reservation->size};
}

/* The archive that was sent, from the files that it had: names and sizes say where each is in it.
   APR_ENOENT when one of them has changed, for then nothing can be told. */
static apr_status_t find_archive(mdl_db_t *db, const mdl_reservation_t *reservation,
                                 const apr_array_header_t *files, mdl_archive_t *archive,
                                 apr_pool_t *p)
{
    apr_status_t rv = mdl_archive_of(db, reservation->assignment_id, files, archive, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return archive->files->nelts == files->nelts && mdl_zip_size(archive->zip) == reservation->size
               ? APR_SUCCESS
               : APR_ENOENT;
}

/* Whether the bytes that were sent are those that the file has now: an archive of other bytes may
   have the same size. */
static int entry_unchanged(const mdl_reservation_t *reservation, const mdl_archive_t *archive,
                           const mdl_archive_file_t *entry, apr_pool_t *p)
{
    return entry->updated_at <= reservation->opened_at ||
           strcmp(reservation->etag, apr_pstrcat(p, "\"", archive->tag, "\"", NULL)) == 0;
}

/* An empty file is delivered once its header is. */
static apr_status_t settle_entry(mdl_db_t *db, const mdl_reservation_t *reservation,
                                 const mdl_archive_t *archive, int place,
                                 const mdl_coverage_t *delivered, int *is_charged, apr_pool_t *p)
{
    const mdl_archive_file_t *entry = &APR_ARRAY_IDX(archive->files, place, mdl_archive_file_t);
    apr_int64_t from = mdl_zip_data(archive->zip, place), to = from + entry->size;
    file_version_t file = {.assignment_id = reservation->assignment_id,
                           .asset_id = entry->asset_id,
                           .size = entry->size};
    mdl_coverage_t *part;

    *is_charged = mdl_coverage_has(delivered, entry->size > 0 ? from : from - 1, to);
    part = *is_charged ? NULL : mdl_coverage_part(delivered, from, to, p);
    if (*is_charged || part->nelts == 0 || !entry_unchanged(reservation, archive, entry, p)) {
        return APR_SUCCESS;
    }
    file.etag = apr_pstrcat(p, "\"", mdl_hex(entry->sha256, sizeof entry->sha256, p), "\"", NULL);
    return partial_add(db, &file, part, is_charged, p);
}

static apr_status_t settle_archive(mdl_db_t *db, const mdl_reservation_t *reservation,
                                   const apr_array_header_t *files, const mdl_coverage_t *delivered,
                                   mdl_coverage_t *charged_places, apr_pool_t *p)
{
    const mdl_coverage_t *before = mdl_coverage_read(reservation->charged_places, p);
    mdl_archive_t archive;
    int is_charged;
    apr_status_t rv = find_archive(db, reservation, files, &archive, p);

    for (int i = 0; rv == APR_SUCCESS && i < files->nelts; i++) {
        if (mdl_coverage_has(before, i, i + 1)) {
            continue;
        }
        rv = settle_entry(db, reservation, &archive, i, delivered, &is_charged, p);
        if (rv == APR_SUCCESS && is_charged) {
            mdl_coverage_add(charged_places, i, i + 1);
        }
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t settle_file(mdl_db_t *db, const mdl_reservation_t *reservation,
                                const mdl_coverage_t *delivered, mdl_coverage_t *charged_places,
                                apr_pool_t *p)
{
    file_version_t file = file_of(reservation);
    int is_charged;
    apr_status_t rv = partial_add(db, &file, delivered, &is_charged, p);

    if (rv == APR_SUCCESS && is_charged) {
        mdl_coverage_add(charged_places, 0, 1);
    }
    return rv;
}

apr_status_t mdl_settlement_of(mdl_db_t *db, const mdl_reservation_t *reservation,
                               const mdl_coverage_t *delivered, mdl_settlement_t *settlement,
                               apr_pool_t *p)
{
    const apr_array_header_t *files = mdl_ids_read(reservation->files, p);
    const mdl_coverage_t *before = mdl_coverage_read(reservation->charged_places, p);
    mdl_coverage_t *places = mdl_coverage_read(reservation->charged_places, p);
    apr_status_t rv = APR_SUCCESS;

    if (delivered->nelts > 0) {
        rv = reservation->asset_id == 0
                 ? settle_archive(db, reservation, files, delivered, places, p)
                 : settle_file(db, reservation, delivered, places, p);
    }
    *settlement = (mdl_settlement_t){
        .charged = apr_array_make(p, files->nelts, sizeof(apr_int64_t)),
        .returned = apr_array_make(p, files->nelts, sizeof(apr_int64_t)),
        .charged_places = places};
    /* By places, which a coverage of very many ranges rounds up. */
    for (int i = 0; rv == APR_SUCCESS && i < files->nelts; i++) {
        if (!mdl_coverage_has(before, i, i + 1)) {
            apr_array_header_t *side = mdl_coverage_has(places, i, i + 1) ? settlement->charged
                                                                          : settlement->returned;

            APR_ARRAY_PUSH(side, apr_int64_t) = APR_ARRAY_IDX(files, i, apr_int64_t);
        }
    }
    return rv;
}

apr_status_t mdl_settlement_is_whole(mdl_db_t *db, const mdl_reservation_t *reservation,
                                     const mdl_coverage_t *delivered, int *whole, apr_pool_t *p)
{
    file_version_t file = file_of(reservation);
    partial_t partial;
    apr_status_t rv;

    *whole = mdl_coverage_is_whole(delivered, reservation->size);
    if (*whole || reservation->asset_id == 0) {
        return APR_SUCCESS;
    }
    if ((rv = partial_find(db, &file, &partial, p)) != APR_SUCCESS) {
        return rv;
    }
    mdl_coverage_join(partial.coverage, delivered);
    *whole = mdl_coverage_is_whole(partial.coverage, file.size);
    return *whole ? partial_remove(db, &file, p) : APR_SUCCESS;
}
