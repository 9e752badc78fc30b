/*
 * The plan of a ZIP archive (PKWARE's APPNOTE.TXT 6.3) of stored entries.  Their names, sizes,
 * checksums and times give the archive's length and its bytes at any offset, so any part can be
 * produced without the parts before it.  ZIP64 fields (section 4.5.3) are used only where a number
 * needs them.  The same entries in the same order give the same bytes.
 */
#ifndef MDL_BASE_ZIP_ZIP_H
#define MDL_BASE_ZIP_ZIP_H

#include <apr_pools.h>
#include <apr_time.h>

#include "base/zip/name.h"

typedef struct mdl_zip_t mdl_zip_t;

/** Begins a plan of about entries entries.  It lives in p and takes some 50 bytes for each entry,
    and its name. */
mdl_zip_t *mdl_zip_begin(int entries, apr_pool_t *p);

/**
 * Adds an entry for a file, under the name that mdl_zip_names_add returns.  modified_at is stored
 * in UTC, rounded to two seconds and clamped to 1980 to 2107.
 */
void mdl_zip_add(mdl_zip_t *zip, const char *filename, apr_int64_t size, apr_uint32_t crc32,
                 apr_time_t modified_at);

/** Ends the plan.  It is immutable afterwards and may be read by several threads. */
void mdl_zip_end(mdl_zip_t *zip);

/** The archive's length in bytes. */
apr_int64_t mdl_zip_size(const mdl_zip_t *zip);

/** The name of an entry, counted from 0, in the archive. */
const char *mdl_zip_name(const mdl_zip_t *zip, int entry);

/** The offset of an entry's file in the archive. */
apr_int64_t mdl_zip_data(const mdl_zip_t *zip, int entry);

/** The largest header: that of the central directory, with the longest name and a ZIP64 field. */
#define MDL_ZIP_HEADER_MAX (46 + MDL_ZIP_NAME_MAX + 28)

/** A run of bytes of one entry's file or one header. */
typedef struct {
    int entry;          /* of the file; -1: a header */
    apr_int64_t offset; /* in the file */
    apr_int64_t length; /* up to the end of the file or header; never 0 */
    unsigned char header[MDL_ZIP_HEADER_MAX];
} mdl_zip_piece_t;

/** The piece that begins at an offset, which is less than the archive's length. */
void mdl_zip_piece(const mdl_zip_t *zip, apr_int64_t offset, mdl_zip_piece_t *piece);

#endif
