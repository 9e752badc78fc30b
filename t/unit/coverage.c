/*
 * Sets of ranges.
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
    is_str(text_after("", 0, 100, p), "0-99", "the first range");
    is_str(text_after("0-99", 200, 300, p), "0-99,200-299", "one behind it");
    is_str(text_after("200-299", 0, 100, p), "0-99,200-299", "one before it");
    is_str(text_after("0-9,40-49", 20, 30, p), "0-9,20-29,40-49", "one in between");
    is_str(text_after("0-99", 100, 200, p), "0-199", "one that touches its end");
    is_str(text_after("100-199", 0, 100, p), "0-199", "one that touches its beginning");
    is_str(text_after("0-99,200-299", 100, 200, p), "0-299", "one that closes a gap");
    is_str(text_after("0-9,20-29,40-49,90-99", 5, 45, p), "0-49,90-99", "one over several");
    is_str(text_after("10-19", 0, 100, p), "0-99", "one around it");
    is_str(text_after("0-99", 10, 20, p), "0-99", "one inside of it");
    is_str(text_after("0-99", 50, 50, p), "0-99", "an empty one");
    is_str(text_after("0-99", 60, 50, p), "0-99", "one with its ends the wrong way round");
    is_str(text_after("", 8589934592, 8589934593, p), "8589934592-8589934592",
           "a byte behind 8 GB");
}

static void test_whole(apr_pool_t *p)
{
    ok(mdl_coverage_is_whole(mdl_coverage_read("0-99", p), 100), "all of it is whole");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("0-98", p), 100),
       "without the last byte it is not");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("1-99", p), 100), "nor without the first");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("0-49,51-99", p), 100), "nor with a gap");
    ok(!mdl_coverage_is_whole(mdl_coverage_read("", p), 100), "nor is nothing");
    ok(mdl_coverage_is_whole(mdl_coverage_read("", p), 0), "unless there is nothing to have");
}

static void test_parts(apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_read("0-9,20-29,50-59", p);
    mdl_coverage_t rest;

    is_str(mdl_coverage_text(mdl_coverage_part(coverage, 5, 55, p), p), "0-4,15-24,45-49",
           "a part is counted from where it begins");
    ok(mdl_coverage_part(coverage, 10, 20, p) == NULL, "and may be nothing");
    rest = mdl_coverage_from(coverage, 30);
    is_str(mdl_coverage_text(&rest, p), "20-29,50-59", "a range that ends at an offset is kept");
    rest = mdl_coverage_from(coverage, 31);
    is_str(mdl_coverage_text(&rest, p), "50-59", "one that ends before it is not");
    ok(mdl_coverage_has(coverage, 20, 30) && mdl_coverage_has(coverage, 53, 54),
       "a range has what lies in it");
    ok(!mdl_coverage_has(coverage, 19, 30) && !mdl_coverage_has(coverage, 20, 31) &&
           !mdl_coverage_has(coverage, 5, 25) && !mdl_coverage_has(coverage, 70, 71),
       "and nothing else");
    is_int(mdl_coverage_bytes(coverage), 30, "its bytes are counted");
    is_int(mdl_coverage_bytes(mdl_coverage_make(p)), 0, "down to none");
}

/* Every byte that was added stays, in whatever order they came, and the text stays short. */
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
    ok(coverage->nelts <= MDL_COVERAGE_RANGES, "a set has an end");
    for (int i = 0; i < 2000; i++) {
        other = mdl_coverage_read(mdl_coverage_text(coverage, p), p);
        mdl_coverage_add(other, i * 10, i * 10 + 3);
        lost += strcmp(mdl_coverage_text(other, p), mdl_coverage_text(coverage, p)) != 0;
    }
    is_int(lost, 0, "and has lost nothing that was added");
    for (int i = 0; i < coverage->nelts; i++) {
        const mdl_coverage_range_t *range = &APR_ARRAY_IDX(coverage, i, mdl_coverage_range_t);

        covered += range->to - range->from;
    }
    ok(covered < 20000, "nor is it all of what lies between");
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
