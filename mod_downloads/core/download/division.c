#include "core/download/division.h"

#include <string.h>

#include <apr_strings.h>

#include "core/download/archive.h"
#include "core/download/delivered.h"
#include "core/ids.h"

/* The archive that the session was of, from the files that it has taken: names and sizes say where
   each is in it.  APR_ENOENT when one of them has changed: then nothing can be told. */
static apr_status_t find_archive(mdl_db_t *db, const mdl_session_t *session,
                                 const apr_array_header_t *taken, mdl_archive_t *archive,
                                 apr_pool_t *p)
{
    apr_status_t rv = mdl_archive_of(db, session->assignment_id, taken, archive, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return archive->files->nelts == taken->nelts && mdl_zip_size(archive->zip) == session->size
               ? APR_SUCCESS
               : APR_ENOENT;
}

static apr_status_t division_add_file(mdl_db_t *db, const mdl_session_t *session,
                                      const mdl_coverage_t *coverage, int *counts, apr_pool_t *p)
{
    mdl_delivered_t file = {.assignment_id = session->assignment_id,
                            .asset_id = session->asset_id,
                            .etag = session->etag,
                            .size = session->size};

    return mdl_delivered_add(db, &file, coverage, counts, p);
}

/* Whether the bytes that were sent are those that the file has: in another archive of the same size
   it may have got others. */
static int is_unchanged(const mdl_session_t *session, const mdl_archive_t *archive,
                        const mdl_archive_file_t *entry, apr_pool_t *p)
{
    return entry->updated_at <= session->opened_at ||
           strcmp(session->etag, apr_pstrcat(p, "\"", archive->tag, "\"", NULL)) == 0;
}

/* An empty file is there once its header is. */
static apr_status_t add_entry(mdl_db_t *db, const mdl_session_t *session,
                              const mdl_archive_t *archive, int place,
                              const mdl_coverage_t *coverage, int *counts, apr_pool_t *p)
{
    const mdl_archive_file_t *entry = &APR_ARRAY_IDX(archive->files, place, mdl_archive_file_t);
    apr_int64_t from = mdl_zip_data(archive->zip, place), to = from + entry->size;
    mdl_delivered_t file = {
        .assignment_id = session->assignment_id, .asset_id = entry->asset_id, .size = entry->size};
    mdl_coverage_t *part;

    *counts = mdl_coverage_has(coverage, entry->size > 0 ? from : from - 1, to);
    part = *counts ? NULL : mdl_coverage_part(coverage, from, to, p);
    if (*counts || part->nelts == 0 || !is_unchanged(session, archive, entry, p)) {
        return APR_SUCCESS;
    }
    file.etag = apr_pstrcat(p, "\"", mdl_hex(entry->sha256, sizeof entry->sha256, p), "\"", NULL);
    return mdl_delivered_add(db, &file, part, counts, p);
}

apr_status_t mdl_divide(mdl_db_t *db, const mdl_session_t *session, const mdl_coverage_t *coverage,
                        mdl_division_t *division, apr_pool_t *p)
{
    const apr_array_header_t *taken = mdl_ids_read(session->taken, p);
    const mdl_coverage_t *earlier = mdl_coverage_read(session->kept, p);
    int is_archive = session->asset_id == 0, known;
    mdl_archive_t archive;
    apr_status_t rv = APR_SUCCESS;

    if (is_archive && coverage->nelts > 0) {
        rv = find_archive(db, session, taken, &archive, p);
    }
    known = rv == APR_SUCCESS && coverage->nelts > 0;
    division->counted = apr_array_make(p, taken->nelts, sizeof(apr_int64_t));
    division->returned = apr_array_make(p, taken->nelts, sizeof(apr_int64_t));
    division->kept = mdl_coverage_read(session->kept, p);
    for (int i = 0; i < taken->nelts && known; i++) {
        int counts = 1;

        if (!mdl_coverage_has(earlier, i, i + 1)) {
            rv = is_archive ? add_entry(db, session, &archive, i, coverage, &counts, p)
                            : division_add_file(db, session, coverage, &counts, p);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (counts) {
            mdl_coverage_add(division->kept, i, i + 1);
        }
    }
    /* By what is kept of the places, which may be rounded up. */
    for (int i = 0; i < taken->nelts; i++) {
        if (!mdl_coverage_has(earlier, i, i + 1)) {
            apr_array_header_t *those = mdl_coverage_has(division->kept, i, i + 1)
                                            ? division->counted
                                            : division->returned;

            APR_ARRAY_PUSH(those, apr_int64_t) = APR_ARRAY_IDX(taken, i, apr_int64_t);
        }
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}
