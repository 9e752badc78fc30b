#include "core/download/coverage.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

static mdl_coverage_range_t *range_at(const mdl_coverage_t *coverage, int i)
{
    return &APR_ARRAY_IDX(coverage, i, mdl_coverage_range_t);
}

mdl_coverage_t *mdl_coverage_make(apr_pool_t *p)
{
    return apr_array_make(p, 4, sizeof(mdl_coverage_range_t));
}

mdl_coverage_t *mdl_coverage_read(const char *text, apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_make(p);

    while (apr_isdigit(*text)) {
        char *end;
        apr_int64_t first = apr_strtoi64(text, &end, 10);
        apr_int64_t last = *end == '-' ? apr_strtoi64(end + 1, &end, 10) : -1;

        mdl_coverage_add(coverage, first, last + 1);
        text = *end == ',' ? end + 1 : end;
    }
    return coverage;
}

const char *mdl_coverage_text(const mdl_coverage_t *coverage, apr_pool_t *p)
{
    apr_array_header_t *ranges = apr_array_make(p, coverage->nelts, sizeof(const char *));

    for (int i = 0; i < coverage->nelts; i++) {
        APR_ARRAY_PUSH(ranges, const char *) = apr_psprintf(
            p, "%" APR_INT64_T_FMT "-%" APR_INT64_T_FMT, range_at(coverage, i)->from,
            range_at(coverage, i)->to - 1);
    }
    return apr_array_pstrcat(p, ranges, ',');
}

/* Removes the ranges from index from to the one before to. */
static void remove_ranges(mdl_coverage_t *coverage, int from, int to)
{
    if (to > from) {
        memmove(range_at(coverage, from), range_at(coverage, to),
                (apr_size_t)(coverage->nelts - to) * sizeof(mdl_coverage_range_t));
        coverage->nelts -= to - from;
    }
}

static void close_narrowest_gap(mdl_coverage_t *coverage)
{
    int narrowest = 0;

    for (int i = 1; i + 1 < coverage->nelts; i++) {
        if (range_at(coverage, i + 1)->from - range_at(coverage, i)->to <
            range_at(coverage, narrowest + 1)->from - range_at(coverage, narrowest)->to) {
            narrowest = i;
        }
    }
    range_at(coverage, narrowest)->to = range_at(coverage, narrowest + 1)->to;
    remove_ranges(coverage, narrowest + 1, narrowest + 2);
}

static void coverage_insert(mdl_coverage_t *coverage, int at, apr_int64_t from, apr_int64_t to)
{
    apr_array_push(coverage);
    memmove(range_at(coverage, at + 1), range_at(coverage, at),
            (apr_size_t)(coverage->nelts - 1 - at) * sizeof(mdl_coverage_range_t));
    *range_at(coverage, at) = (mdl_coverage_range_t){.from = from, .to = to};
    if (coverage->nelts > MDL_COVERAGE_RANGES) {
        close_narrowest_gap(coverage);
    }
}

void mdl_coverage_add(mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to)
{
    int first = 0, last;

    if (from < 0 || to <= from) {
        return;
    }
    while (first < coverage->nelts && range_at(coverage, first)->to < from) {
        first++;
    }
    last = first;
    while (last < coverage->nelts && range_at(coverage, last)->from <= to) {
        last++;
    }
    if (last == first) {
        coverage_insert(coverage, first, from, to);
        return;
    }
    if (range_at(coverage, first)->from > from) {
        range_at(coverage, first)->from = from;
    }
    if (range_at(coverage, last - 1)->to > to) {
        to = range_at(coverage, last - 1)->to;
    }
    range_at(coverage, first)->to = to;
    remove_ranges(coverage, first + 1, last);
}

void mdl_coverage_join(mdl_coverage_t *coverage, const mdl_coverage_t *other)
{
    for (int i = 0; i < other->nelts; i++) {
        mdl_coverage_add(coverage, range_at(other, i)->from, range_at(other, i)->to);
    }
}

int mdl_coverage_is_whole(const mdl_coverage_t *coverage, apr_int64_t size)
{
    return size == 0 || (coverage->nelts == 1 && range_at(coverage, 0)->from == 0 &&
                         range_at(coverage, 0)->to >= size);
}

mdl_coverage_t *mdl_coverage_part(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to,
                                  apr_pool_t *p)
{
    mdl_coverage_t *part = NULL;

    for (int i = 0; i < coverage->nelts && range_at(coverage, i)->from < to; i++) {
        const mdl_coverage_range_t *range = range_at(coverage, i);

        if (range->to > from) {
            part = part != NULL ? part : mdl_coverage_make(p);
            mdl_coverage_add(part, range->from > from ? range->from - from : 0,
                             (range->to < to ? range->to : to) - from);
        }
    }
    return part;
}

mdl_coverage_t mdl_coverage_from(const mdl_coverage_t *coverage, apr_int64_t offset)
{
    mdl_coverage_t rest = *coverage;

    while (rest.nelts > 0 && range_at(&rest, 0)->to < offset) {
        rest.elts += rest.elt_size;
        rest.nelts--;
    }
    return rest;
}

int mdl_coverage_has(const mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to)
{
    int i = 0;

    while (i < coverage->nelts && range_at(coverage, i)->to < to) {
        i++;
    }
    return i < coverage->nelts && range_at(coverage, i)->from <= from;
}

apr_int64_t mdl_coverage_bytes(const mdl_coverage_t *coverage)
{
    apr_int64_t bytes = 0;

    for (int i = 0; i < coverage->nelts; i++) {
        bytes += range_at(coverage, i)->to - range_at(coverage, i)->from;
    }
    return bytes;
}
