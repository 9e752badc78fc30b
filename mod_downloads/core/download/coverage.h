/*
 * Which bytes of a representation were delivered: a set of ranges.
 *
 * Its text, which the database keeps, is "0-99,200-299": both ends belong to the range, as in a
 * Range header; "" for nothing.
 */
#ifndef MDL_CORE_DOWNLOAD_COVERAGE_H
#define MDL_CORE_DOWNLOAD_COVERAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/** From the first byte to the one after the last. */
typedef struct {
    apr_int64_t from;
    apr_int64_t to;
} mdl_coverage_range_t;

/** mdl_coverage_range_t, ascending, none touches the next. */
typedef apr_array_header_t mdl_coverage_t;

#define MDL_COVERAGE_RANGES 256 /* with one more, the narrowest gap counts as delivered, too */

mdl_coverage_t *mdl_coverage_make(apr_pool_t *p);

/** Reads its text, up to the first character that does not belong to one. */
mdl_coverage_t *mdl_coverage_read(const char *text, apr_pool_t *p);

const char *mdl_coverage_text(const mdl_coverage_t *coverage, apr_pool_t *p);

/** Adds the range from one byte to before another; an empty range adds nothing. */
void mdl_coverage_add(mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to);

/** Adds all of other. */
void mdl_coverage_join(mdl_coverage_t *coverage, const mdl_coverage_t *other);

/** The part of it in that range, with offsets that begin there; NULL for nothing. */
mdl_coverage_t *mdl_coverage_part(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to,
                                  apr_pool_t *p);

/** Its ranges without those that end before an offset; they stay coverage's. */
mdl_coverage_t mdl_coverage_from(const mdl_coverage_t *coverage, apr_int64_t offset);

/** Whether all of that range is in it. */
int mdl_coverage_has(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to);

/** How many bytes it has. */
apr_int64_t mdl_coverage_bytes(const mdl_coverage_t *coverage);

/** Whether it is all of a representation of that size. */
int mdl_coverage_is_whole(const mdl_coverage_t *coverage, apr_int64_t size);

#endif
