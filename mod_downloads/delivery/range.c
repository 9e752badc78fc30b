#include "delivery/range.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>

#include "core/download/coverage.h"

/* Reads digits into *number, APR_INT64_MAX for a larger number: httpd ignores such a header. */
static const char *read_number(const char *text, apr_int64_t *number, int *ignored)
{
    char *end = (char *)text;

    *number = 0;
    if (apr_isdigit(*text)) {
        errno = 0;
        *number = apr_strtoi64(text, &end, 10);
        *ignored |= errno != 0;
    }
    return end;
}

static const char *range_skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* What the ranges of a header ask for, so far. */
typedef struct {
    apr_int64_t size;
    mdl_coverage_t *asked;
    mdl_range_t range;
    int count;
    int any;     /* one of them is satisfiable (RFC 9110 section 14.1.2) */
    int ignored; /* httpd ignores the whole header for one of them */
} reading_t;

static void reading_add(reading_t *reading, apr_int64_t from, apr_int64_t to)
{
    reading->count++;
    mdl_coverage_add(reading->asked, from, to);
    if (reading->range.length == 0 && from < to) {
        reading->range.first = from;
        reading->range.length = to - from;
    } else {
        reading->range.is_several = 1;
    }
}

/* Adds "a-b", "a-" or "-n" to what is asked for, and returns what follows; NULL for anything
   else. */
static const char *read_spec(const char *text, reading_t *reading)
{
    apr_int64_t first, last, size = reading->size;
    const char *dash = read_number(text, &first, &reading->ignored);
    const char *end;

    if (*dash != '-') {
        return NULL;
    }
    end = read_number(dash + 1, &last, &reading->ignored);
    if (dash == text) {
        if (end == dash + 1) {
            return NULL;
        }
        reading->any |= last > 0;
        reading->ignored |= last == 0;
        reading_add(reading, last < size ? size - last : 0, size);
        return end;
    }
    if (end == dash + 1) {
        last = APR_INT64_MAX;
    }
    if (last < first) {
        return NULL;
    }
    reading->any |= first < size;
    reading_add(reading, first, last < size ? last + 1 : size);
    return end;
}

/* Reads all ranges; false if the header is not well-formed. */
static int reading_all(reading_t *reading, const char *text)
{
    do {
        text = read_spec(range_skip_blanks(text), reading);
        if (text == NULL) {
            return 0;
        }
        text = range_skip_blanks(text);
    } while (*text++ == ',');
    return text[-1] == '\0';
}

mdl_range_t mdl_range_read(request_rec *r, apr_int64_t size, int most)
{
    const char *text = apr_table_get(r->headers_in, "Range");
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    const mdl_range_t whole = {.kind = MDL_RANGE_WHOLE, .length = size};
    reading_t reading = {.size = size, .asked = mdl_coverage_make(r->pool)};

    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0 ||
        ap_condition_if_range(r, r->headers_out) == AP_CONDITION_NOMATCH) {
        return whole;
    }
    text += 6;
    reading.ignored = strpbrk(text, " \t") != NULL || core->max_ranges == AP_MAXRANGES_NORANGES;
    if (!reading_all(&reading, text)) {
        return whole;
    }
    if (reading.count > most) {
        apr_table_unset(r->headers_in, "Range"); /* for the byterange filter, too */
        return whole;
    }
    if (reading.any && (reading.ignored || mdl_coverage_is_whole(reading.asked, size))) {
        return whole;
    }
    reading.range.kind = reading.any ? MDL_RANGE_PART : MDL_RANGE_BEYOND;
    return reading.range;
}
