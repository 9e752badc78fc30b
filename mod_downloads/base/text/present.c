#include "base/text/present.h"

#include <apr_strings.h>

#include "base/clock.h"

void mdl_present_size(mdl_json_t *to, const char *name, apr_int64_t bytes)
{
    static const char *const units[] = {"byte", "kB", "MB", "GB", "TB", "PB", "EB"};
    mdl_json_t *size = mdl_json_add_object(to, name);
    double value = (double)bytes;
    int unit = 0, tenths;

    /* 999.5 would be shown as 1000. */
    while (value >= (unit == 0 ? 1000 : 999.5)) {
        value /= 1000;
        unit++;
    }
    tenths = unit > 0 && value < 99.95;
    value += tenths ? 0.05 : unit > 0 ? 0.5 : 0;
    mdl_json_add_int(size, "bytes", bytes);
    mdl_json_add_int(size, "whole", (apr_int64_t)value);
    if (tenths) {
        mdl_json_add_int(size, "tenth", (apr_int64_t)(value * 10) % 10);
    } else {
        mdl_json_add_null(size, "tenth");
    }
    mdl_json_add_string(size, "unit", units[unit]);
}

void mdl_present_date(mdl_json_t *to, const char *name, apr_time_t when)
{
    mdl_json_t *date;
    apr_time_exp_t t;
    char text[8];

    if (when == 0) {
        mdl_json_add_null(to, name);
        return;
    }
    apr_time_exp_gmt(&t, when);
    date = mdl_json_add_object(to, name);
    mdl_json_add_int(date, "year", t.tm_year + 1900);
    apr_snprintf(text, sizeof text, "%02d", t.tm_mon + 1);
    mdl_json_add_string(date, "month", text);
    apr_snprintf(text, sizeof text, "%02d", t.tm_mday);
    mdl_json_add_string(date, "day", text);
    mdl_json_add_int(date, "day_number", t.tm_mday);
    apr_snprintf(text, sizeof text, "%02d:%02d", t.tm_hour, t.tm_min);
    mdl_json_add_string(date, "time", text);
    mdl_json_add_time(date, "rfc3339", when);
}

const char *mdl_present_date_text(apr_time_t when, apr_pool_t *p)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, when);
    return apr_psprintf(p, "%d %s %d", t.tm_mday, months[t.tm_mon], t.tm_year + 1900);
}
