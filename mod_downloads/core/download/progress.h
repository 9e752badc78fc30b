/*
 * What was delivered of a link's files: of each, whether it is whole, or else which of its bytes.
 *
 * As text, which the database keeps, it is a list by ';' of
 *   "12"                                nothing of asset 12,
 *   "12/0f1e2d3c4b5a6978/4096/0-99"     these ranges (coverage.h) of a version of 4096 bytes,
 *   "12="                               all of it.
 */
#ifndef MDL_CORE_DOWNLOAD_PROGRESS_H
#define MDL_CORE_DOWNLOAD_PROGRESS_H

#include "core/download/coverage.h"

/** The archive's end, its central directory, takes part like a file, but no download of it is
    taken. */
#define MDL_DIRECTORY_ID 0

/** Where a file is in the body that a link sends. */
typedef struct {
    apr_int64_t asset_id;
    apr_int64_t from;
    apr_int64_t size;
    apr_uint64_t version; /* the first digits of its SHA-256 */
} mdl_layout_file_t;

/** A body: one file, or the files of an archive in their order. */
typedef struct {
    int count;
    mdl_layout_file_t *files;
} mdl_layout_t;

/** Which bytes of a version of a file. */
typedef struct {
    apr_uint64_t version;
    apr_int64_t size;
    mdl_coverage_t *ranges;
} mdl_progress_part_t;

/** Small, since a session has one for each of an archive's files. */
typedef struct {
    apr_int64_t asset_id;
    mdl_progress_part_t *part; /* NULL if it is whole or nothing was delivered */
    int is_whole;
} mdl_progress_t;

/** The files in a layout that have bytes between two offsets, or end there, and no more than two
    others: a part of its array. */
mdl_layout_t mdl_layout_part(const mdl_layout_t *layout, apr_int64_t from, apr_int64_t to);

/** The version of a file, by its SHA-256. */
apr_uint64_t mdl_progress_version(const unsigned char *sha256);

/** What of the files in a layout was delivered (mdl_progress_t), by what of the body was: only
   files of which something was.  An empty file was delivered with what comes before it. */
apr_array_header_t *mdl_progress_of(const mdl_layout_t *layout, const mdl_coverage_t *delivered,
                                    apr_pool_t *p);

/** What was delivered when a link begins: nothing of each of these files (mdl_progress_t). */
apr_array_header_t *mdl_progress_begin(const mdl_layout_t *layout, apr_pool_t *p);

/** Adds what was delivered later.  Of another version, it takes the place of what there was. */
void mdl_progress_add(mdl_progress_t *progress, const mdl_progress_t *more, apr_pool_t *p);

/** The file of that id in a list; NULL if it is not there.  The search begins at *next, which is
   set to the place behind it: lists are in the same order. */
mdl_progress_t *mdl_progress_find(const apr_array_header_t *list, apr_int64_t asset_id, int *next);

const char *mdl_progress_text(const apr_array_header_t *list, apr_pool_t *p);

/** Reads that text, up to the first character that does not belong to one. */
apr_array_header_t *mdl_progress_read(const char *text, apr_pool_t *p);

#endif
