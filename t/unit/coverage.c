/*
 * The delivered bytes of a file, as a set of ranges.
 */
#include "t/unit/tap.h"

#include "core/download/coverage.h"

static const char *text_after(const char *before, apr_int64_t from, apr_int64_t to, apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_read(before, p);

    mdl_coverage_add(coverage, from, to);
    return mdl_coverage_text(coverage, p);
}

static void test_adding(apr_pool_t *p)
{
    is_str(text_after("", 0, 100, p), "0-99", "the first range is added");
    is_str(text_after("0-99", 200, 300, p), "0-99,200-299", "a range after the others is added");
    is_str(text_after("200-299", 0, 100, p), "0-99,200-299",
           "a range before the others is inserted");
    is_str(text_after("0-9,40-49", 20, 30, p), "0-9,20-29,40-49",
           "a range between two others is inserted");
    is_str(text_after("0-99", 100, 200, p), "0-199",
           "a range is joined with the one that ends where it begins");
    is_str(text_after("100-199", 0, 100, p), "0-199",
           "a range is joined with the one that begins where it ends");
    is_str(text_after("0-99,200-299", 100, 200, p), "0-299",
           "a range that closes a gap joins both its neighbours");
    is_str(text_after("0-9,20-29,40-49,90-99", 5, 45, p), "0-49,90-99",
           "a range that overlaps several others is joined with them");
    is_str(text_after("10-19", 0, 100, p), "0-99", "a range that contains another replaces it");
    is_str(text_after("0-99", 10, 20, p), "0-99", "a range inside another changes nothing");
    is_str(text_after("0-99", 50, 50, p), "0-99", "an empty range changes nothing");
    is_str(text_after("0-99", 60, 50, p), "0-99",
           "a range that ends before it begins changes nothing");
    is_str(text_after("", 8589934592, 8589934593, p), "8589934592-8589934592",
           "a byte after the first 8 GB is added");
}

static void test_whole(apr_pool_t *p)
{
    ok(mdl_coverage_is_whole(mdl_coverage_read("0-99", p), 100), "a set of all bytes is whole");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("0-98", p), 100),
       "a set without the last byte is not whole");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("1-99", p), 100),
       "a set without the first byte is not whole");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("0-49,51-99", p), 100),
       "a set with a gap is not whole");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("", p), 100), "an empty set is not whole");
    ok(mdl_coverage_is_whole(mdl_coverage_read("", p), 0),
       "an empty set of an empty file is whole");
}

static void test_parts(apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_read("0-9,20-29,50-59", p);
    mdl_coverage_t rest;

    is_str(mdl_coverage_text(mdl_coverage_part(coverage, 5, 55, p), p), "0-4,15-24,45-49",
           "the offsets of a part begin at its start");
    ok(mdl_coverage_part(coverage, 10, 20, p) == NULL, "an empty part yields NULL");
    rest = mdl_coverage_from(coverage, 30);
    is_str(mdl_coverage_text(&rest, p), "20-29,50-59", "a range that ends at an offset is kept");
    rest = mdl_coverage_from(coverage, 31);
    is_str(mdl_coverage_text(&rest, p), "50-59", "a range that ends before it is not");
    ok(mdl_coverage_has(coverage, 20, 30) && mdl_coverage_has(coverage, 53, 54),
       "a set contains the bytes inside its ranges");
    ok(!mdl_coverage_has(coverage, 19, 30) && !mdl_coverage_has(coverage, 20, 31) &&
           !mdl_coverage_has(coverage, 5, 25) && !mdl_coverage_has(coverage, 70, 71),
       "a set does not contain bytes outside its ranges");
    is_int(mdl_coverage_bytes(coverage), 30, "the bytes of a set are counted");
    is_int(mdl_coverage_bytes(mdl_coverage_make(p)), 0, "an empty set has no bytes");
}

/* Every added byte stays, in any order, and the text stays short. */
static void test_many(apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_make(p);
    mdl_coverage_t *other;
    apr_int64_t covered = 0;
    int lost = 0;

    for (int i = 0; i < 2000; i++) {
        apr_int64_t from = (apr_int64_t)(i * 7919 % 2000) * 10;

        mdl_coverage_add(coverage, from, from + 3);
    }
    ok(coverage->nelts <= MDL_COVERAGE_RANGES, "the number of ranges is limited");
    for (int i = 0; i < 2000; i++) {
        other = mdl_coverage_read(mdl_coverage_text(coverage, p), p);
        mdl_coverage_add(other, i * 10, i * 10 + 3);
        lost += strcmp(mdl_coverage_text(other, p), mdl_coverage_text(coverage, p)) != 0;
    }
    is_int(lost, 0, "no byte that was added is lost");
    for (int i = 0; i < coverage->nelts; i++) {
        const mdl_coverage_range_t *range = &APR_ARRAY_IDX(coverage, i, mdl_coverage_range_t);

        covered += range->to - range->from;
    }
    ok(covered < 20000, "not all gaps are filled");
    other = mdl_coverage_read("3-9", p);
    mdl_coverage_join(other, mdl_coverage_read("0-2,10-19,30-39", p));
    is_str(mdl_coverage_text(other, p), "0-19,30-39", "two sets are joined");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_adding(p);
    test_whole(p);
    test_parts(p);
    test_many(p);
    return tap_end(p);
}
