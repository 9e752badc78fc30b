/*
 * How a link's requests use up a file's downloads, every event in every state; and the database's
 * text of the delivered ranges.
 */
#include "t/unit/tap.h"

#include <apr_strings.h>

#include "core/download/charge.h"
#include "core/download/progress.h"

static const char *const states[] = {"free", "reserved", "charged"};
static const char *const events[] = {"request", "part", "whole", "idle"};
static const char *const effects[] = {"nothing", "take", "take anyway", "give back"};

static const struct {
    mdl_charge_state_t from;
    mdl_charge_event_t event;
    mdl_charge_state_t to;
    mdl_charge_effect_t effect;
} steps[] = {
    {MDL_CHARGE_FREE, MDL_CHARGE_REQUEST, MDL_CHARGE_RESERVED, MDL_CHARGE_TAKE},
    {MDL_CHARGE_FREE, MDL_CHARGE_PART, MDL_CHARGE_FREE, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_FREE, MDL_CHARGE_WHOLE, MDL_CHARGE_CHARGED, MDL_CHARGE_TAKE_ANYWAY},
    {MDL_CHARGE_FREE, MDL_CHARGE_IDLE, MDL_CHARGE_FREE, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_RESERVED, MDL_CHARGE_REQUEST, MDL_CHARGE_RESERVED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_RESERVED, MDL_CHARGE_PART, MDL_CHARGE_RESERVED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_RESERVED, MDL_CHARGE_WHOLE, MDL_CHARGE_CHARGED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_RESERVED, MDL_CHARGE_IDLE, MDL_CHARGE_FREE, MDL_CHARGE_GIVE_BACK},
    {MDL_CHARGE_CHARGED, MDL_CHARGE_REQUEST, MDL_CHARGE_CHARGED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_CHARGED, MDL_CHARGE_PART, MDL_CHARGE_CHARGED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_CHARGED, MDL_CHARGE_WHOLE, MDL_CHARGE_CHARGED, MDL_CHARGE_NOTHING},
    {MDL_CHARGE_CHARGED, MDL_CHARGE_IDLE, MDL_CHARGE_CHARGED, MDL_CHARGE_NOTHING},
};

static void test_steps(apr_pool_t *p)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        mdl_charge_t charge = mdl_charge_step(steps[i].from, steps[i].event);
        const char *name = apr_psprintf(p, "%s, %s", states[steps[i].from], events[steps[i].event]);

        is_str(states[charge.state], states[steps[i].to], name);
        is_str(effects[charge.effect], effects[steps[i].effect], name);
    }
    is_int(sizeof steps / sizeof *steps, MDL_CHARGE_STATES * MDL_CHARGE_EVENTS,
           "every event is tried in every state");
}

static void test_text(apr_pool_t *p)
{
    const char *texts[] = {"", "12", "12=", "12/0f1e2d3c4b5a6978/4096/0-99,200-299",
                           "7=;8/0f1e2d3c4b5a6978/10/0-0;9;0"};
    const char *bad[] = {"x", "12/0f1e", "12/0f1e/9", "12/0f1e/x/0-1"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        is_str(mdl_progress_text(mdl_progress_read(texts[i], p), p), texts[i],
               "a progress is written as it was read");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const apr_array_header_t *list = mdl_progress_read(bad[i], p);

        ok(list->nelts == 0 || APR_ARRAY_IDX(list, 0, mdl_progress_t).part == NULL,
           "an invalid progress is read as none");
    }
}

/* Whether the progress of a range differs between the whole layout and the part that it touches. */
static int part_differs(const mdl_layout_t *layout, apr_int64_t from, apr_int64_t to, apr_pool_t *p)
{
    mdl_layout_t part = mdl_layout_part(layout, from, to);
    mdl_coverage_t *range = mdl_coverage_make(p);

    mdl_coverage_add(range, from, to);
    return strcmp(mdl_progress_text(mdl_progress_of(&part, range, p), p),
                  mdl_progress_text(mdl_progress_of(layout, range, p), p)) != 0;
}

static void test_layout(apr_pool_t *p)
{
    int different = 0;
    mdl_layout_file_t files[] = {
        {7, 30, 100, 0xaaaa}, {8, 160, 0, 0xbbbb}, {9, 190, 100, 0xcccc}, {0, 290, 50, 0}};
    const mdl_layout_t layout = {4, files};
    const char *cases[][2] = {
        {"0-29", ""},
        {"0-128", "7/000000000000aaaa/100/0-98"},
        {"30-129", "7="},
        {"0-159", "7=;8="},
        {"100-199", "7/000000000000aaaa/100/70-99;8=;9/000000000000cccc/100/0-9"},
        {"0-49,100-129,200-289", "7/000000000000aaaa/100/0-19,70-99;9/000000000000cccc/100/10-99"},
        {"0-339", "7=;8=;9=;0="}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_str(mdl_progress_text(mdl_progress_of(&layout, mdl_coverage_read(cases[i][0], p), p), p),
               cases[i][1],
               apr_psprintf(p, "the files delivered by bytes %s of an archive", cases[i][0]));
    }
    is_str(mdl_progress_text(mdl_progress_begin(&layout, 0, p), p), "7;8;9;0",
           "no file is delivered at first");
    for (apr_int64_t from = 0; from < 340; from++) {
        for (apr_int64_t to = from + 1; to <= 340; to += 7) {
            different += part_differs(&layout, from, to, p);
        }
    }
    is_int(different, 0, "a part of the layout has all files of a range");
    is_int(mdl_layout_part(&layout, 100, 120).count, 1, "a part of the layout has no other file");
}

static const char *added(const char *text, const char *more, apr_pool_t *p)
{
    apr_array_header_t *list = mdl_progress_read(text, p);

    mdl_progress_add(&APR_ARRAY_IDX(list, 0, mdl_progress_t),
                     &APR_ARRAY_IDX(mdl_progress_read(more, p), 0, mdl_progress_t), p);
    return mdl_progress_text(list, p);
}

static void test_adding(apr_pool_t *p)
{
    is_str(added("7", "7/00000000000000aa/10/0-4", p), "7/00000000000000aa/10/0-4",
           "the first bytes of a file are kept");
    is_str(added("7/00000000000000aa/10/0-4", "7/00000000000000aa/10/2-6", p),
           "7/00000000000000aa/10/0-6", "overlapping bytes are joined");
    is_str(added("7/00000000000000aa/10/0-4", "7/00000000000000aa/10/5-9", p),
           "7=", "the last bytes make a file whole");
    is_str(added("7/00000000000000aa/10/0-4", "7=", p), "7=", "all bytes make a file whole");
    is_str(added("7/00000000000000aa/10/0-4", "7/00000000000000bb/20/5-9", p),
           "7/00000000000000bb/20/5-9", "the bytes of another version replace the earlier ones");
    is_str(added("7=", "7/00000000000000bb/20/5-9", p), "7=", "a whole file stays whole");
    is_str(added("7/00000000000000aa/10/0-4", "7", p), "7/00000000000000aa/10/0-4",
           "adding nothing changes nothing");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_steps(p);
    test_text(p);
    test_layout(p);
    test_adding(p);
    return tap_end(p);
}
