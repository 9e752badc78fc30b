#include "api/etag.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <http_protocol.h>

#include "api/resource.h"
#include "base/crypto.h"
#include "core/version.h"

#define TIME_DIGITS   17 /* year to milliseconds */
#define DIGEST_LENGTH 12 /* bytes */
#define MAX_TAGS      100

static int etag_number(const char *digits, int length)
{
    int number = 0;

    for (int i = 0; i < length; i++) {
        number = 10 * number + digits[i] - '0';
    }
    return number;
}

/* Parses 17 digits such as 20261123070501123; false if they are no time. */
static int etag_read_time(const char *digits, apr_time_t *when)
{
    apr_time_exp_t exploded = {0};

    for (int i = 0; i < TIME_DIGITS; i++) {
        if (!apr_isdigit(digits[i])) {
            return 0;
        }
    }
    exploded.tm_year = etag_number(digits, 4) - 1900;
    exploded.tm_mon = etag_number(digits + 4, 2) - 1;
    exploded.tm_mday = etag_number(digits + 6, 2);
    exploded.tm_hour = etag_number(digits + 8, 2);
    exploded.tm_min = etag_number(digits + 10, 2);
    exploded.tm_sec = etag_number(digits + 12, 2);
    exploded.tm_usec = etag_number(digits + 14, 3) * 1000;
    return apr_time_exp_gmt_get(when, &exploded) == APR_SUCCESS;
}

/* Adds the version that a tag of this entity names.  Any other tag names none. */
static void etag_add_version(apr_array_header_t *versions, const char *id, const char *tag,
                             apr_size_t length)
{
    apr_size_t prefix = strlen(id);
    apr_time_t when;

    if (length > prefix + 1 + TIME_DIGITS && memcmp(tag, id, prefix) == 0 && tag[prefix] == '-' &&
        tag[prefix + 1 + TIME_DIGITS] == '.' && etag_read_time(tag + prefix + 1, &when)) {
        APR_ARRAY_PUSH(versions, apr_int64_t) = mdl_version(when);
    }
}

/* The length of an entity tag without its quotes; tag begins after the first.  -1: malformed. */
static apr_ssize_t etag_length(const char *tag)
{
    apr_ssize_t length = 0;

    while (tag[length] != '"') {
        unsigned char c = (unsigned char)tag[length++];

        if (c <= ' ' || c == 0x7f) {
            return -1;
        }
    }
    return length;
}

/* Reads a list of entity tags; a weak one never matches.  False if it is malformed. */
static int etag_parse_list(apr_array_header_t *versions, const char *id, const char *list)
{
    int tags = 0;

    while (*(list += strspn(list, " \t,")) != '\0') {
        int weak = strncmp(list, "W/", 2) == 0;
        const char *tag = list + (weak ? 2 : 0) + 1;
        apr_ssize_t length = tag[-1] == '"' ? etag_length(tag) : -1;

        if (length < 0 || ++tags > MAX_TAGS) {
            return 0;
        }
        if (!weak) {
            etag_add_version(versions, id, tag, (apr_size_t)length);
        }
        list = tag + length + 1;
        list += strspn(list, " \t");
        if (*list != '\0' && *list != ',') {
            return 0;
        }
    }
    return tags > 0;
}

apr_status_t mdl_etag_parse(mdl_request_t *request)
{
    const char *header = apr_table_get(request->r->headers_in, "If-Match");
    apr_array_header_t *versions;

    if (header == NULL) {
        return APR_SUCCESS;
    }
    if (!request->route->versioned || request->parameters[0] == NULL) {
        return mdl_problem_set(&request->problem, 400, "invalid_request",
                               "This path has no version that If-Match could name.");
    }
    if (strcmp(header, "*") == 0) {
        return APR_SUCCESS;
    }
    versions = apr_array_make(request->r->pool, 1, sizeof(apr_int64_t));
    if (!etag_parse_list(versions, request->parameters[0], header)) {
        return mdl_problem_set(&request->problem, 400, "invalid_request",
                               "If-Match must be * or a list of ETags, each in its quotes, 100 at "
                               "most.");
    }
    request->versions = versions;
    return APR_SUCCESS;
}

static const char *etag_digits(const char *text, apr_pool_t *p)
{
    char *digits = apr_palloc(p, strlen(text) + 1);
    char *end = digits;

    for (; *text != '\0'; text++) {
        if (apr_isdigit(*text)) {
            *end++ = *text;
        }
    }
    *end = '\0';
    return digits;
}

const char *mdl_etag_of(const mdl_request_t *request, const char *text)
{
    apr_pool_t *p = request->r->pool;
    const mdl_json_t *entity = mdl_resource_entity(request);
    const char *updated_at = mdl_json_string(mdl_json_member(entity, "updated_at"));
    unsigned char digest[MDL_SHA256_LENGTH];

    if (!request->route->versioned || updated_at == NULL) {
        return NULL;
    }
    if (entity != request->response) {
        text = mdl_json_text(entity, NULL, p);
    }
    mdl_sha256(text, strlen(text), digest);
    return apr_pstrcat(p, "\"", request->entity_id, "-", etag_digits(updated_at, p), ".",
                       mdl_base64url(digest, DIGEST_LENGTH, p), "\"", NULL);
}

/* Strips the suffixes of mod_deflate and mod_brotli from a list of entity tags. */
static const char *etag_unmark(const char *list, apr_pool_t *p)
{
    static const char *const marks[] = {"-gzip\"", "-br\""};
    char *plain = apr_pstrdup(p, list);

    for (apr_size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        for (char *at = plain; (at = strstr(at, marks[i])) != NULL;) {
            const char *rest = at + strlen(marks[i]) - 1;

            memmove(at, rest, strlen(rest) + 1);
        }
    }
    return plain;
}

int mdl_etag_known(const mdl_request_t *request)
{
    request_rec *r = request->r;
    const char *list = apr_table_get(r->headers_in, "If-None-Match");

    if (list != NULL) {
        apr_table_setn(r->headers_in, "If-None-Match", etag_unmark(list, r->pool));
    }
    return ap_condition_if_none_match(r, r->headers_out) >= AP_CONDITION_WEAK;
}
