#include "delivery/range.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "core/coverage.h"

/* Reads digits into *number, which stays at its largest once it is out of bounds. */
static const char *read_number(const char *text, apr_int64_t *number)
{
    *number = 0;
    for (; apr_isdigit(*text); text++) {
        *number = *number > (APR_INT64_MAX - 9) / 10 ? APR_INT64_MAX : *number * 10 + *text - '0';
    }
    return text;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* "a-" or "a-b" with a at or behind the end; NULL for anything else, else what follows it. */
static const char *pass_spec(const char *text, apr_int64_t size)
{
    apr_int64_t first, last;
    const char *end = read_number(text, &first);

    if (end == text || *end != '-' || first < size) {
        return NULL;
    }
    text = end + 1;
    end = read_number(text, &last);
    return end > text && last < first ? NULL : end;
}

int mdl_range_is_unsatisfiable(request_rec *r, apr_int64_t size, const char *etag)
{
    const char *text = apr_table_get(r->headers_in, "Range");
    const char *condition = apr_table_get(r->headers_in, "If-Range");

    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0 ||
        (condition != NULL && strcmp(condition, etag) != 0)) {
        return 0;
    }
    text += 6;
    do {
        text = pass_spec(skip_blanks(text), size);
        if (text == NULL) {
            return 0;
        }
        text = skip_blanks(text);
    } while (*text++ == ',');
    return text[-1] == '\0';
}

/* "a-b", "a-" or "-n": adds it to coverage and returns what follows; NULL for anything else. */
static const char *read_spec(const char *text, apr_int64_t size, mdl_coverage_t *coverage)
{
    apr_int64_t first, last;
    const char *end = read_number(text, &first);
    int is_suffix = end == text;

    if (*end != '-') {
        return NULL;
    }
    text = end + 1;
    end = read_number(text, &last);
    if (end == text) {
        last = APR_INT64_MAX;
        if (is_suffix) {
            return NULL;
        }
    }
    if (is_suffix) {
        first = last < size ? size - last : 0;
        last = APR_INT64_MAX;
    }
    if (last < first) {
        return NULL;
    }
    mdl_coverage_add(coverage, first, last < size ? last + 1 : size);
    return end;
}

int mdl_range_is_whole(request_rec *r, apr_int64_t size, const char *etag)
{
    const char *text = apr_table_get(r->headers_in, "Range");
    const char *condition = apr_table_get(r->headers_in, "If-Range");
    mdl_coverage_t *coverage = mdl_coverage_make(r->pool);

    if (text == NULL || strncasecmp(text, "bytes=", 6) != 0 ||
        (condition != NULL && strcmp(condition, etag) != 0)) {
        return 1;
    }
    text += 6;
    do {
        text = read_spec(skip_blanks(text), size, coverage);
        if (text == NULL) {
            return 1;
        }
        text = skip_blanks(text);
    } while (*text++ == ',');
    return text[-1] != '\0' || mdl_coverage_is_whole(coverage, size);
}
