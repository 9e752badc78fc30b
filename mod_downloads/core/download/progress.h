/*
 * What was delivered of a link's files: of each file, all of it, or which of its bytes.
 *
 * In the database, it is a text: a list, separated by ';', of
 *   "12"                                nothing of asset 12,
 *   "12/0f1e2d3c4b5a6978/4096/0-99"     these ranges (coverage.h) of a version of 4096 bytes,
 *   "12/0f1e2d3c4b5a6978/4096/"         nothing of it,
 *   "12="                               all of it.
 */
#ifndef MDL_CORE_DOWNLOAD_PROGRESS_H
#define MDL_CORE_DOWNLOAD_PROGRESS_H

#include "core/download/coverage.h"

/** An archive's central directory is treated like a file, but costs no download. */
#define MDL_DIRECTORY_ID 0

/** A file's place in the body that a link sends. */
typedef struct {
    apr_int64_t asset_id;
    apr_int64_t from;
    apr_int64_t size;
    apr_uint64_t version; /* the first 8 bytes of its SHA-256 */
} mdl_layout_file_t;

/** A body: one file, or the files of an archive in order. */
typedef struct {
    int count;
    mdl_layout_file_t *files;
} mdl_layout_t;

/** Delivered bytes of one version of a file. */
typedef struct {
    apr_uint64_t version;
    apr_int64_t size;
    mdl_coverage_t *ranges;
} mdl_progress_part_t;

/** Kept small, because a session has one for each file of an archive. */
typedef struct {
    apr_int64_t asset_id;
    mdl_progress_part_t *part; /* NULL if the file is whole; NULL or without ranges if nothing was
                                  delivered */
    int is_whole;
} mdl_progress_t;

/** The files of a layout between two offsets, with at most two neighbours.  Shares its array. */
mdl_layout_t mdl_layout_part(const mdl_layout_t *layout, apr_int64_t from, apr_int64_t to);

/** The version of a file with this SHA-256. */
apr_uint64_t mdl_progress_version(const unsigned char *sha256);

/** It as 16 hexadecimal digits, with which the SHA-256 begins. */
const char *mdl_progress_version_text(apr_uint64_t version, apr_pool_t *p);

/** The progress (mdl_progress_t) of the files in a layout, from the delivered ranges of the body.
    Files of which nothing was delivered are left out.  An empty file is delivered with the byte
    before it. */
apr_array_header_t *mdl_progress_of(const mdl_layout_t *layout, const mdl_coverage_t *delivered,
                                    apr_pool_t *p);

/** The progress (mdl_progress_t) of a new link: nothing of any file; with or without parts that say
    which version it begins. */
apr_array_header_t *mdl_progress_begin(const mdl_layout_t *layout, int with_versions,
                                       apr_pool_t *p);

/** Adds later progress.  Progress of another version replaces the old. */
void mdl_progress_add(mdl_progress_t *progress, const mdl_progress_t *more, apr_pool_t *p);

/** The file with this id in a list; NULL: none.  The search begins at *next, which is then moved
    behind the found file: a search is fast if it follows the list's order. */
mdl_progress_t *mdl_progress_find(const apr_array_header_t *list, apr_int64_t asset_id, int *next);

const char *mdl_progress_text(const apr_array_header_t *list, apr_pool_t *p);

/** Reads the text of a list, up to the first character that is not part of one. */
apr_array_header_t *mdl_progress_read(const char *text, apr_pool_t *p);

#endif
