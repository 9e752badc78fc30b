/* Heartbeats: a changing number shows who is alive, never a clock, which can be set. */
#include "core/beat.h"

#include "t/unit/database.h"

#define PATIENCE apr_time_from_sec(10)
#define SECOND   apr_time_from_sec(1)

/* The lost owners after heartbeats a of "a", and b of "b" unless 0. */
static const char *lost(mdl_beats_t *beats, apr_int64_t a, apr_int64_t b, apr_pool_t *p)
{
    apr_array_header_t *now = apr_array_make(p, 2, sizeof(mdl_beat_t)), *found;
    const char *text = "";

    APR_ARRAY_PUSH(now, mdl_beat_t) = (mdl_beat_t){.id = "a", .beat = a};
    if (b != 0) {
        APR_ARRAY_PUSH(now, mdl_beat_t) = (mdl_beat_t){.id = "b", .beat = b};
    }
    found = mdl_beats_look(beats, now, p);
    for (int i = 0; i < found->nelts; i++) {
        const mdl_beat_t *one = &APR_ARRAY_IDX(found, i, mdl_beat_t);

        text = apr_psprintf(p, "%s%s%" APR_INT64_T_FMT, text, one->id, one->beat);
    }
    return text;
}

static void wait_s(int seconds)
{
    atomic_fetch_add(&monotonic_ahead, seconds * SECOND);
}

static void test_lost(apr_pool_t *p)
{
    mdl_beats_t *beats = mdl_beats_watch(PATIENCE, p);

    is_str(lost(beats, 1, 1, p), "", "at first nobody is lost");
    wait_s(6);
    is_str(lost(beats, 2, 1, p), "", "nor after a while");
    wait_s(6);
    is_str(lost(beats, 2, 1, p), "b1", "whose beat has stayed the same for long is lost");
    is_str(lost(beats, 2, 1, p), "b1", "and stays so");
    is_str(lost(beats, 2, 2, p), "", "until it beats again");
    wait_s(6);
    is_str(lost(beats, 1, 2, p), "", "a beat can be any number");
    is_str(lost(beats, 1, 0, p), "", "one that is there no longer is not lost");
    wait_s(6);
    is_str(lost(beats, 1, 2, p), "", "and is a new one when it comes back");
}

static void test_clock(apr_pool_t *p)
{
    mdl_beats_t *beats = mdl_beats_watch(PATIENCE, p);

    lost(beats, 1, 0, p);
    atomic_fetch_add(&clock_ahead, 3600 * SECOND);
    is_str(lost(beats, 1, 0, p), "", "nobody is lost when the clock is set forward");
    atomic_fetch_add(&clock_ahead, -7200 * SECOND);
    wait_s(6);
    lost(beats, 1, 0, p);
    wait_s(6);
    is_str(lost(beats, 1, 0, p), "a1", "who is lost is lost although it is set back");
}

static void test_outage(apr_pool_t *p)
{
    mdl_beats_t *beats = mdl_beats_watch(PATIENCE, p);

    lost(beats, 1, 0, p);
    wait_s(6);
    mdl_beats_look(beats, NULL, p);
    wait_s(6);
    is_str(lost(beats, 1, 0, p), "", "after an outage of the database time counts anew");
    wait_s(30);
    is_str(lost(beats, 1, 0, p), "", "so it does when nobody has looked for long");
    wait_s(6);
    lost(beats, 1, 0, p);
    wait_s(6);
    is_str(lost(beats, 1, 0, p), "a1", "from then on");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_lost(p);
    test_clock(p);
    test_outage(p);
    return tap_end(p);
}
