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

/* Replaces the ranges from index first to before behind, maybe none, by one range. */
static void coverage_replace(mdl_coverage_t *coverage, int first, int behind,
                             mdl_coverage_range_t range)
{
    int left = coverage->nelts - behind;

    if (first == behind) {
        apr_array_push(coverage);
    }
    memmove(range_at(coverage, first + 1), range_at(coverage, behind),
            (apr_size_t)left * sizeof(mdl_coverage_range_t));
    *range_at(coverage, first) = range;
    coverage->nelts = first + 1 + left;
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
    coverage_replace(coverage, narrowest, narrowest + 2,
                     (mdl_coverage_range_t){.from = range_at(coverage, narrowest)->from,
                                            .to = range_at(coverage, narrowest + 1)->to});
}

void mdl_coverage_add(mdl_coverage_t *coverage, apr_int64_t from, apr_int64_t to)
{
    mdl_coverage_range_t range = {.from = from, .to = to};
    int first = 0, behind;

    if (from < 0 || to <= from) {
        return;
    }
    while (first < coverage->nelts && range_at(coverage, first)->to < from) {
        first++;
    }
    for (behind = first; behind < coverage->nelts && range_at(coverage, behind)->from <= to;
         behind++) {
        const mdl_coverage_range_t *touched = range_at(coverage, behind);

        range.from = touched->from < range.from ? touched->from : range.from;
        range.to = touched->to > range.to ? touched->to : range.to;
    }
    coverage_replace(coverage, first, behind, range);
    if (coverage->nelts > MDL_COVERAGE_RANGES) {
        close_narrowest_gap(coverage);
    }
}

void mdl_coverage_join(mdl_coverage_t *coverage, const mdl_coverage_t *other)
{
    for (int i = 0; i < other->nelts; i++) {
        mdl_coverage_add(coverage, range_at(other, i)->from, range_at(other, i)->to);
    }
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

int mdl_coverage_is_whole(const mdl_coverage_t *coverage, apr_int64_t size)
{
    return size == 0 || mdl_coverage_has(coverage, 0, size);
}

apr_int64_t mdl_coverage_bytes(const mdl_coverage_t *coverage)
{
    apr_int64_t bytes = 0;

    for (int i = 0; i < coverage->nelts; i++) {
        bytes += range_at(coverage, i)->to - range_at(coverage, i)->from;
    }
    return bytes;
}
