#include "base/words.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

int mdl_words_is_name(const char *text, apr_size_t max)
{
    apr_size_t length = strlen(text);

    if (length == 0 || length > max) {
        return 0;
    }
    for (; *text != '\0'; text++) {
        if (apr_iscntrl(*text)) {
            return 0;
        }
    }
    return 1;
}

const char *mdl_words_size(apr_int64_t bytes, apr_pool_t *p)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;

    /* 999.95 would be printed as 1000.0 */
    while (value >= (unit == 0 ? 1000 : 999.95)) {
        value /= 1000;
        unit++;
    }
    if (unit == 0) {
        return bytes == 1 ? "1 byte" : apr_psprintf(p, "%d bytes", (int)bytes);
    }
    return apr_psprintf(p, value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

const char *mdl_words_date(apr_time_t when, apr_pool_t *p)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    apr_time_exp_t t;

    apr_time_exp_gmt(&t, when);
    return apr_psprintf(p, "%d %s %d", t.tm_mday, months[t.tm_mon], t.tm_year + 1900);
}
