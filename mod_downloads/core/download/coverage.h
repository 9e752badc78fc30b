/*
 * Which bytes of a representation were delivered: a set of ranges.
 *
 * In the database, the set is a text such as "0-99,200-299": both ends belong to the range, as in a
 * Range header; "" is the empty set.
 */
#ifndef MDL_CORE_DOWNLOAD_COVERAGE_H
#define MDL_CORE_DOWNLOAD_COVERAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/** The bytes from "from" to before "to". */
typedef struct {
    apr_int64_t from;
    apr_int64_t to;
} mdl_coverage_range_t;

/** mdl_coverage_range_t, ascending; no range touches the next. */
typedef apr_array_header_t mdl_coverage_t;

#define MDL_COVERAGE_RANGES 256 /* at most; then the narrowest gap counts as delivered */

mdl_coverage_t *mdl_coverage_make(apr_pool_t *p);

/** Reads the text of a set, up to the first character that is not part of one. */
mdl_coverage_t *mdl_coverage_read(const char *text, apr_pool_t *p);

const char *mdl_coverage_text(const mdl_coverage_t *coverage, apr_pool_t *p);

/** Adds the bytes from one offset to before another; an empty or invalid range adds nothing. */
void mdl_coverage_add(mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to);

/** Adds all ranges of other. */
void mdl_coverage_join(mdl_coverage_t *coverage, const mdl_coverage_t *other);

/** The part of the set within a range, with offsets relative to from; NULL: empty. */
mdl_coverage_t *mdl_coverage_part(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to,
                                  apr_pool_t *p);

/** The set without the ranges that end before an offset.  It shares the memory of coverage. */
mdl_coverage_t mdl_coverage_from(const mdl_coverage_t *coverage, apr_int64_t offset);

/** Whether the set has all of a range. */
int mdl_coverage_has(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to);

/** How many bytes the set has. */
apr_int64_t mdl_coverage_bytes(const mdl_coverage_t *coverage);

/** Whether the set has all of a representation of this size. */
int mdl_coverage_is_whole(const mdl_coverage_t *coverage, apr_int64_t size);

#endif
