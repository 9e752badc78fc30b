#include "base/http/response.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_date.h>
#include <apr_strings.h>

#define MAX_ETAG         256 /* bytes; no obs-text, because the tag is stored as UTF-8 */
#define MAX_SIZE_DIGITS  18
#define MAX_RETRY_DIGITS 6
#define MAX_RETRY        999999 /* seconds */

const char *mdl_http_response_header(CURL *easy, const char *name, size_t index)
{
    struct curl_header *header;

    return curl_easy_header(easy, name, index, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? header->value
               : NULL;
}

/* Parses digits and moves *text behind them. */
static int size_parse(const char **text, apr_int64_t *size)
{
    const char *start = *text;

    *size = 0;
    while (**text >= '0' && **text <= '9' && *text - start < MAX_SIZE_DIGITS) {
        *size = *size * 10 + (*(*text)++ - '0');
    }
    return *text > start && !(**text >= '0' && **text <= '9');
}

/* The elements of a list header, across all its lines (RFC 9110 section 5.6.1). */
typedef struct {
    const char *name;
    size_t line;
    const char *text; /* the unread rest of that line; NULL: line not begun */
} elements_t;

/* The next element that is not empty, without the blanks around it; NULL after the last. */
static const char *elements_next(CURL *easy, elements_t *elements, apr_size_t *length)
{
    for (;;) {
        const char *element;

        if (elements->text == NULL && (elements->text = mdl_http_response_header(
                                           easy, elements->name, elements->line)) == NULL) {
            return NULL;
        }
        element = elements->text + strspn(elements->text, " \t,");
        if (*element == '\0') {
            elements->text = NULL;
            elements->line++;
            continue;
        }
        *length = strcspn(element, ",");
        elements->text = element + *length;
        while (element[*length - 1] == ' ' || element[*length - 1] == '\t') {
            (*length)--;
        }
        return element;
    }
}

static int element_is(const char *element, apr_size_t length, const char *name)
{
    return strlen(name) == length && apr_cstr_casecmpn(element, name, length) == 0;
}

/* 1 if the only transfer coding is chunked, 0 if there is none, -1 for any other. */
static int response_is_chunked(CURL *easy)
{
    elements_t codings = {.name = "Transfer-Encoding"};
    const char *coding;
    apr_size_t length;
    int chunked = 0;

    while ((coding = elements_next(easy, &codings, &length)) != NULL) {
        if (chunked || !element_is(coding, length, "chunked")) {
            return -1;
        }
        chunked = 1;
    }
    return chunked;
}

int mdl_http_response_length(CURL *easy, apr_int64_t *length)
{
    elements_t lengths = {.name = "Content-Length"};
    const char *text;
    apr_size_t size;
    apr_int64_t one;
    int chunked = response_is_chunked(easy);

    *length = chunked ? -1 : MDL_HTTP_UNTIL_CLOSE;
    while (!chunked && (text = elements_next(easy, &lengths, &size)) != NULL) {
        const char *end = text + size;

        if (!size_parse(&text, &one) || text != end || (*length >= 0 && *length != one)) {
            return 0;
        }
        *length = one;
    }
    /* A Content-Length header without a number is malformed too. */
    return chunked >= 0 && (*length != MDL_HTTP_UNTIL_CLOSE ||
                            mdl_http_response_header(easy, "Content-Length", 0) == NULL);
}

int mdl_http_response_is_encoded(CURL *easy)
{
    elements_t codings = {.name = "Content-Encoding"};
    const char *coding;
    apr_size_t length;

    while ((coding = elements_next(easy, &codings, &length)) != NULL) {
        if (!element_is(coding, length, "identity")) {
            return 1;
        }
    }
    return 0;
}

int mdl_http_response_retry_after(CURL *easy)
{
    const char *text = mdl_http_response_header(easy, "Retry-After", 0);
    const char *date = mdl_http_response_header(easy, "Date", 0);
    apr_size_t digits = text != NULL ? strspn(text, "0123456789") : 0;
    apr_time_t at, now;

    if (digits > 0 && text[digits] == '\0') {
        return digits > MAX_RETRY_DIGITS ? MAX_RETRY : (int)apr_atoi64(text);
    }
    if (text == NULL || (at = apr_date_parse_http(text)) == APR_DATE_BAD) {
        return -1;
    }
    now = date != NULL ? apr_date_parse_http(date) : APR_DATE_BAD;
    if (now == APR_DATE_BAD) {
        now = apr_time_now();
    }
    if (at <= now) {
        return 0;
    }
    return at - now > apr_time_from_sec(MAX_RETRY) ? MAX_RETRY : (int)apr_time_sec(at - now);
}

int mdl_http_etag_is_strong(const char *etag)
{
    apr_size_t length = etag != NULL ? strlen(etag) : 0;

    if (length < 2 || length > MAX_ETAG || etag[0] != '"' || etag[length - 1] != '"') {
        return 0;
    }
    for (apr_size_t i = 1; i < length - 1; i++) {
        unsigned char c = (unsigned char)etag[i];

        if (c <= ' ' || c == '"' || c >= 0x7f) {
            return 0;
        }
    }
    return 1;
}

int mdl_http_response_range(CURL *easy, apr_int64_t *first, apr_int64_t *last, apr_int64_t *total)
{
    const char *range = mdl_http_response_header(easy, "Content-Range", 0);

    if (range == NULL || mdl_http_response_header(easy, "Content-Range", 1) != NULL ||
        apr_cstr_casecmpn(range, "bytes ", 6) != 0) {
        return 0;
    }
    range += 6;
    return size_parse(&range, first) && *range++ == '-' && size_parse(&range, last) &&
           *range++ == '/' && size_parse(&range, total) && *range == '\0' && *last >= *first &&
           *last < *total;
}

int mdl_http_response_is_rest(CURL *easy, apr_int64_t offset, const char *etag, apr_int64_t known,
                              apr_int64_t length, apr_int64_t *total)
{
    const char *now = mdl_http_response_header(easy, "ETag", 0);
    apr_int64_t first, last;

    return now != NULL && strcmp(now, etag) == 0 &&
           mdl_http_response_range(easy, &first, &last, total) && first == offset &&
           last == *total - 1 && (known < 0 || known == *total) &&
           (length < 0 || length == *total - first);
}
