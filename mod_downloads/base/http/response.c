#include "base/http/response.h"

#include <string.h>

#include <apr_cstr.h>

#define MAX_ETAG        256 /* bytes; without obs-text, for the tag is stored as UTF-8 */
#define MAX_SIZE_DIGITS 18

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

int mdl_http_response_length(CURL *easy, apr_int64_t *length)
{
    const char *coding = mdl_http_response_header(easy, "Transfer-Encoding", 0);
    const char *text;
    apr_int64_t first = -1;

    *length = -1;
    if (coding != NULL) {
        return apr_cstr_casecmp(coding, "chunked") == 0 &&
               mdl_http_response_header(easy, "Transfer-Encoding", 1) == NULL;
    }
    for (size_t i = 0; (text = mdl_http_response_header(easy, "Content-Length", i)) != NULL; i++) {
        if (!size_parse(&text, length) || *text != '\0' || (i > 0 && *length != first)) {
            return 0;
        }
        first = *length;
    }
    return *length >= 0;
}

int mdl_http_response_is_encoded(CURL *easy)
{
    const char *coding;

    for (size_t i = 0; (coding = mdl_http_response_header(easy, "Content-Encoding", i)) != NULL;
         i++) {
        if (apr_cstr_casecmp(coding, "identity") != 0) {
            return 1;
        }
    }
    return 0;
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

int mdl_http_response_is_rest(CURL *easy, apr_int64_t offset, const char *etag, apr_int64_t length,
                              apr_int64_t *total)
{
    const char *range = mdl_http_response_header(easy, "Content-Range", 0);
    const char *now = mdl_http_response_header(easy, "ETag", 0);
    apr_int64_t first, last;

    if (range == NULL || mdl_http_response_header(easy, "Content-Range", 1) != NULL ||
        now == NULL || strcmp(now, etag) != 0 || apr_cstr_casecmpn(range, "bytes ", 6) != 0) {
        return 0;
    }
    range += 6;
    return size_parse(&range, &first) && *range++ == '-' && size_parse(&range, &last) &&
           *range++ == '/' && size_parse(&range, total) && *range == '\0' && first == offset &&
           last >= first && last == *total - 1 && (length < 0 || length == *total - first);
}
