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

/* Adds "a-b", "a-" or "-n" to what is asked for, and returns what follows; NULL for anything else.
   *any becomes true when it is satisfiable (RFC 9110 section 14.1.2), *ignored when httpd ignores
   the whole header for it. */
static const char *read_spec(const char *text, apr_int64_t size, mdl_coverage_t *asked, int *any,
                             int *ignored)
{
    apr_int64_t first, last;
    const char *dash = read_number(text, &first, ignored);
    const char *end;

    if (*dash != '-') {
        return NULL;
    }
    end = read_number(dash + 1, &last, ignored);
    if (dash == text) {
        if (end == dash + 1) {
            return NULL;
        }
        *any |= last > 0;
        *ignored |= last == 0;
        mdl_coverage_add(asked, last < size ? size - last : 0, size);
        return end;
    }
    if (end == dash + 1) {
        last = APR_INT64_MAX;
    }
    if (last < first) {
        return NULL;
    }
    *any |= first < size;
    mdl_coverage_add(asked, first, last < size ? last + 1 : size);
    return end;
}

mdl_range_t mdl_range_read(request_rec *r, apr_int64_t size, apr_int64_t *bytes)
{
    const char *text = apr_table_get(r->headers_in, "Range");
    mdl_coverage_t *asked = mdl_coverage_make(r->pool);
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    int specs = 0, any = 0, ignored;

    *bytes = size;
    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0 ||
        ap_condition_if_range(r, r->headers_out) == AP_CONDITION_NOMATCH) {
        return MDL_RANGE_WHOLE;
    }
    text += 6;
    ignored = strpbrk(text, " \t") != NULL || core->max_ranges == AP_MAXRANGES_NORANGES;
    do {
        specs++;
        text = read_spec(range_skip_blanks(text), size, asked, &any, &ignored);
        if (text == NULL) {
            return MDL_RANGE_WHOLE;
        }
        text = range_skip_blanks(text);
    } while (*text++ == ',');
    if (text[-1] != '\0') {
        return MDL_RANGE_WHOLE;
    }
    if (!any) {
        return MDL_RANGE_BEYOND;
    }
    if (ignored || mdl_coverage_is_whole(asked, size)) {
        return MDL_RANGE_WHOLE;
    }
    /* httpd sends the whole file in place of ranges that are too many, overlap or go backwards. */
    if (specs == 1) {
        *bytes = mdl_coverage_bytes(asked);
    }
    return MDL_RANGE_PART;
}
