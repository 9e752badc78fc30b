#include "settings/overview_days.h"

#include "base/text/present.h"
#include "settings/frame.h"

#define HEIGHT 48 /* of a plot, in its own units */
#define STEP   10 /* from one bar to the next */

/* The count of a day's kind; 0 on a day without any. */
static apr_int64_t days_count(const apr_array_header_t *days, apr_int64_t day, int kind)
{
    for (int i = 0; i < days->nelts; i++) {
        const mdl_day_count_t *each = APR_ARRAY_IDX(days, i, const mdl_day_count_t *);

        if (each->day == day) {
            return each->counts[kind];
        }
    }
    return 0;
}

/* Bytes are shown as a size, others as a number. */
static void value_add(mdl_json_t *to, int kind, apr_int64_t n)
{
    if (kind == MDL_DAY_BYTES) {
        mdl_present_size(to, "size", n);
    } else {
        mdl_json_add_int(to, "count", n);
        mdl_json_add_null(to, "size");
    }
}

static void value_add_named(mdl_json_t *to, int kind, apr_int64_t n)
{
    mdl_frame_add_choice(mdl_json_add_object(to, "plot"), mdl_day_kind_names, kind);
    value_add(to, kind, n);
}

static void bar_add(mdl_json_t *bars, int x, apr_int64_t day, int kind, apr_int64_t n,
                    apr_int64_t most, apr_pool_t *p)
{
    /* a bar of what happened is never invisible; no product that could overflow */
    int height = n > 0 ? 1 + (int)((double)n / (double)most * (HEIGHT - 1)) : 0;
    mdl_json_t *to = mdl_json_add_object(bars, NULL);

    mdl_json_add_int(to, "x", x);
    mdl_json_add_int(to, "y", HEIGHT - height);
    mdl_json_add_int(to, "height", height);
    mdl_json_add_string(to, "day", mdl_day_text(day, p));
    value_add(to, kind, n);
}

static void plot_add(mdl_json_t *plots, const apr_array_header_t *days, apr_int64_t today, int kind,
                     apr_pool_t *p)
{
    mdl_json_t *to = mdl_json_add_object(plots, NULL), *bars;
    apr_int64_t first = today - MDL_OVERVIEW_DAYS + 1, most = 0, total = 0;

    for (apr_int64_t day = first; day <= today; day++) {
        apr_int64_t n = days_count(days, day, kind);

        most = n > most ? n : most;
        total += n;
    }
    value_add_named(to, kind, total);
    bars = mdl_json_add_array(to, "bars");
    for (apr_int64_t day = first; day <= today; day++) {
        bar_add(bars, (int)(day - first) * STEP, day, kind, days_count(days, day, kind), most, p);
    }
}

/* A row of the table. */
static void day_add(mdl_json_t *to, const mdl_day_count_t *day, apr_pool_t *p)
{
    mdl_json_t *counts;

    mdl_json_add_string(to, "day", mdl_day_text(day->day, p));
    counts = mdl_json_add_array(to, "counts");
    for (int kind = 0; kind < MDL_DAY_KINDS; kind++) {
        value_add_named(mdl_json_add_object(counts, NULL), kind, day->counts[kind]);
    }
}

void mdl_overview_add_days(mdl_json_t *data, const apr_array_header_t *days, apr_time_t now,
                           apr_pool_t *p)
{
    mdl_json_t *plots = mdl_json_add_array(data, "plots"),
               *table = mdl_json_add_array(data, "days");
    apr_int64_t today = mdl_day_of(now);
    int any = 0;

    for (int kind = 0; kind < MDL_DAY_KINDS; kind++) {
        plot_add(plots, days, today, kind, p);
    }
    for (int i = 0; i < days->nelts; i++) {
        const mdl_day_count_t *each = APR_ARRAY_IDX(days, i, const mdl_day_count_t *);

        if (each->day > today - MDL_OVERVIEW_DAYS) {
            day_add(mdl_json_add_object(table, NULL), each, p);
            any = 1;
        }
    }
    mdl_json_add_bool(data, "has_days", any);
}
