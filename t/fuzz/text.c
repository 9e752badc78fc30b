/*
 * Parsers of what strangers send: an input's first byte chooses one, the rest is its text.  Each
 * must keep its header's promises for any text.
 */
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/http/accept_language.h"
#include "base/http/media_type.h"
#include "base/http/object_xml.h"
#include "base/http/path.h"
#include "base/http/url.h"
#include "base/mail/bounce_report.h"
#include "base/mail/mime.h"
#include "base/text/csv.h"
#include "base/text/filename.h"
#include "base/text/fold.h"
#include "base/text/idn.h"
#include "base/text/json.h"
#include "base/text/parameter.h"
#include "base/text/utf8.h"
#include "base/ulid.h"
#include "base/zip/name.h"
#include "t/fuzz/fuzz.h"

/* text has length bytes, and a NUL behind them. */
typedef void parser_t(const char *text, size_t length, apr_pool_t *p);

static void parse_parameters(const char *text, size_t length, apr_pool_t *p)
{
    const char *at = text + strcspn(text, ";"), *name, *value;

    while (mdl_parameter_next(&at, &name, &value, p)) {
        fuzz_claim(at <= text + length && strpbrk(name, "=; \t") == NULL);
        fuzz_claim(strlen(name) + strlen(value) < length);
    }
    fuzz_claim(*at == '\0');
    mdl_parameter_get(text, "name", p);
}

static void parse_filename(const char *text, size_t length, apr_pool_t *p)
{
    const char *name = mdl_filename_of_disposition(text, p);
    const char *made = mdl_filename_disposition(text, p);
    const char *segment = mdl_filename_segment(text, p);

    fuzz_claim(strspn(made, "\r\n\t") == 0 && strpbrk(made, "\r\n") == NULL);
    fuzz_claim(*segment == '\0' || (*segment == '/' && strpbrk(segment + 1, "/\\?#\" ") == NULL));
    fuzz_claim(strlen(segment) <= 3 * length + 1);
    if (name != NULL) {
        fuzz_claim(*name != '\0' && mdl_utf8_valid(name) && strpbrk(name, "/\\\r\n") == NULL);
        made = mdl_filename_of_disposition(mdl_filename_disposition(name, p), p);
        fuzz_claim(made != NULL && mdl_utf8_length(made) == mdl_utf8_length(name));
    }
}

static void parse_languages(const char *text, size_t length, apr_pool_t *p)
{
    apr_array_header_t *ranges = mdl_accept_language(text, p);
    const char *list = mdl_language_list(text, p);

    fuzz_claim(ranges->nelts <= 32 && (size_t)ranges->nelts <= length);
    for (int i = 0; i < ranges->nelts; i++) {
        fuzz_claim(isalpha((unsigned char)*APR_ARRAY_IDX(ranges, i, const char *)));
        mdl_language_tag_valid(APR_ARRAY_IDX(ranges, i, const char *));
    }
    if (list != NULL) {
        const char *again = mdl_language_list(list, p);

        fuzz_claim(again != NULL && strcmp(again, list) == 0);
        fuzz_claim(strlen(list) < MDL_LANGUAGES_MAX * (MDL_LANGUAGE_MAX + 1));
        mdl_language_offered(list, ranges, p);
    }
}

static void parse_media_type(const char *text, size_t length, apr_pool_t *p)
{
    (void)p;
    mdl_media_type_is(text, "text/html");
    if (mdl_media_type_valid(text)) {
        fuzz_claim(length <= MDL_MEDIA_TYPE_MAX && mdl_utf8_is_ascii(text));
        fuzz_claim(strpbrk(text, "\r\n") == NULL);
    }
}

static void parse_path(const char *text, size_t length, apr_pool_t *p)
{
    const char *parameters[MDL_PATH_PARAMETERS];
    int count = mdl_path_match("/a/{}/b/{}", text, parameters, p);

    fuzz_claim(count == 2 || count == -1);
    if (count == 2) {
        fuzz_claim(strlen(parameters[0]) + strlen(parameters[1]) + 6 == length);
        fuzz_claim(strchr(parameters[0], '/') == NULL && strchr(parameters[1], '/') == NULL);
    }
}

static void parse_utf8(const char *text, size_t length, apr_pool_t *p)
{
    const char *quoted = mdl_utf8_quoted(text, 20, p);
    const char *trimmed = mdl_utf8_trimmed(text, p);

    fuzz_claim(mdl_utf8_valid(quoted) && mdl_utf8_length(quoted) <= 20);
    fuzz_claim(strcmp(mdl_utf8_trimmed(trimmed, p), trimmed) == 0);
    fuzz_claim(strchr(mdl_utf8_lines(text, p), '\r') == NULL);
    mdl_utf8_is_lines(text, 100);
    fuzz_claim(!mdl_utf8_is_name(text, 100) || length <= 100);
    fuzz_claim(!mdl_utf8_is_text(text, 100) || strpbrk(text, "\t\r\n") == NULL);
}

static void parse_fold(const char *text, size_t length, apr_pool_t *p)
{
    const char *search = mdl_text_fold_search(text, p);

    (void)length;
    fuzz_claim(mdl_utf8_valid(search) && (mdl_utf8_valid(text) || *search == '\0'));
    fuzz_claim(!mdl_utf8_valid(text) || mdl_utf8_valid(mdl_text_fold(text, p)));
}

static void parse_csv(const char *text, size_t length, apr_pool_t *p)
{
    const char *const fields[] = {text, NULL, text};
    mdl_text_buffer_t *line = mdl_text_buffer_make(p);
    apr_size_t written;

    mdl_csv_line(line, fields, 3);
    mdl_text_buffer_text(line, &written);
    fuzz_claim(written <= 4 * length + 10);
}

static void parse_zip_name(const char *text, size_t length, apr_pool_t *p)
{
    mdl_zip_names_t *names = mdl_zip_names_begin(2, p);
    const char *first = mdl_zip_names_add(names, text);
    const char *second = mdl_zip_names_add(names, text);

    (void)length;
    fuzz_claim(*first != '\0' && strcmp(first, second) != 0);
    fuzz_claim(strlen(first) <= MDL_ZIP_NAME_MAX && strlen(second) <= MDL_ZIP_NAME_MAX);
    fuzz_claim(mdl_utf8_valid(first) && mdl_utf8_valid(second));
    fuzz_claim(strpbrk(first, "/\\<>:|?*\"\r\n") == NULL && strcmp(first, "..") != 0);
    fuzz_claim(strchr(". ", second[strlen(second) - 1]) == NULL);
    mdl_zip_names_end(names);
}

static void parse_url(const char *text, size_t length, apr_pool_t *p)
{
    const char *host, *filename, *ascii;
    mdl_http_policy_t policy;

    (void)length;
    mdl_http_policy_init(&policy, p);
    policy.allow_http = policy.any_port = 1;
    APR_ARRAY_PUSH(policy.hosts, const char *) = "*.example.com";
    if (mdl_http_url_check(&policy, text, &host, &filename, p) == MDL_HTTP_OK) {
        fuzz_claim(mdl_http_host_valid(host) && strstr(host, ".example.com") != NULL);
        fuzz_claim(filename == NULL || (mdl_utf8_valid(filename) && !strpbrk(filename, "/\r\n")));
    }
    host = mdl_http_url_host(text, p);
    fuzz_claim(host == NULL || mdl_utf8_is_ascii(host));
    if (mdl_http_url_is_https(text)) {
        fuzz_claim(mdl_utf8_is_ascii(text) && strpbrk(text, "\"<> \r\n") == NULL);
    }
    ascii = mdl_idn_ascii(text, p);
    fuzz_claim(ascii == NULL || mdl_utf8_is_ascii(ascii));
}

static void parse_time(const char *text, size_t length, apr_pool_t *p)
{
    enum { SECONDS = 17 };
    apr_time_t time = 0, again = 0;

    if (mdl_clock_parse(&time, text) == APR_SUCCESS) {
        const char *shown = mdl_clock_rfc3339(time, p);
        char *other = apr_pstrdup(p, text);

        fuzz_claim(time >= 0 && length >= strlen("2026-11-21T00:36:20Z"));
        fuzz_claim(mdl_clock_parse(&again, shown) == APR_SUCCESS || time < 1000);
        fuzz_claim(strcmp(mdl_clock_rfc3339(again, p), shown) == 0 || time < 1000);
        memcpy(other + SECONDS, "59", 2);
        fuzz_claim(mdl_clock_parse(&again, other) == APR_SUCCESS || time < apr_time_from_sec(60));
    }
    fuzz_claim(!mdl_ulid_valid("a_", text) || length == 2 + MDL_ULID_LENGTH);
}

/* The names of a message's headers, and that its lines end and are as long as they should. */
static const char *mail_headers(const mdl_mime_mail_t *mail, apr_pool_t *p)
{
    const char *message, *names = "";
    apr_size_t length;
    int in_head = 1;

    fuzz_claim(mdl_mime_build(&message, &length, mail, p) == APR_SUCCESS);
    fuzz_claim(strlen(message) == length && mdl_utf8_is_ascii(message));
    while (*message != '\0') {
        apr_size_t line = strcspn(message, "\r\n");

        fuzz_claim(line <= 78 && message[line] == '\r' && message[line + 1] == '\n');
        in_head = in_head && line > 0;
        if (in_head && *message != ' ' && *message != '\t') {
            names = apr_pstrcat(p, names, apr_pstrndup(p, message, strcspn(message, ":") + 1),
                                NULL);
        }
        message += line + 2;
    }
    return names;
}

static void parse_mail(const char *text, size_t length, apr_pool_t *p)
{
    const mdl_mime_body_t plain = mdl_mime_body_of("text"), body = mdl_mime_body_of(text);
    const mdl_mime_mail_t usual = {.from_name = "a",
                                   .from = "a@b.test",
                                   .to_name = "b",
                                   .to = "c@d.test",
                                   .subject = "e",
                                   .message_id = "f@b.test",
                                   .text = plain,
                                   .html = plain};
    const mdl_mime_mail_t mail = {.from_name = text,
                                  .from = "a@b.test",
                                  .to_name = text,
                                  .to = "c@d.test",
                                  .subject = text,
                                  .message_id = "f@b.test",
                                  .text = body,
                                  .html = body};
    const char *address = mdl_mime_address_of(text, p);

    (void)length;
    fuzz_claim(strcmp(mail_headers(&mail, p), mail_headers(&usual, p)) == 0);
    if (address != NULL) {
        fuzz_claim(mdl_mime_address_valid(address) && strlen(address) <= 254);
        fuzz_claim(strpbrk(address, " \t\r\n\",<>") == NULL);
        fuzz_claim(strchr(address, '@') == strrchr(address, '@'));
        fuzz_claim(mdl_mime_domain_valid(strchr(address, '@') + 1));
    }
}

static void parse_json(const char *text, size_t length, apr_pool_t *p)
{
    mdl_json_t *json = NULL, *again = NULL;
    const char *why = NULL, *made;
    apr_size_t written;

    if (mdl_json_parse(&json, text, length, 1000, &why, p) == APR_SUCCESS) {
        made = mdl_json_text(json, &written, p);
        fuzz_claim(mdl_json_parse(&again, made, written, 1000, &why, p) == APR_SUCCESS);
        fuzz_claim(strcmp(mdl_json_text(again, NULL, p), made) == 0);
    } else if (why != NULL) {
        fuzz_claim(mdl_utf8_is_text(why, 1000) && mdl_utf8_is_ascii(why));
    }
}

static void parse_bounce(const char *text, size_t length, apr_pool_t *p)
{
    mdl_bounce_report_t report;

    mdl_bounce_report_read(&report, text, length, p);
    fuzz_claim(report.addresses->nelts <= 50);
    if (report.reason != NULL) {
        fuzz_claim(strlen(report.reason) <= 500 && mdl_utf8_is_ascii(report.reason));
        fuzz_claim(mdl_utf8_is_name(report.reason, 500));
    }
}

static void parse_xml(const char *text, size_t length, apr_pool_t *p)
{
    const apr_xml_elem *root = mdl_object_xml_parse(text, length, p);

    if (root != NULL) {
        const apr_xml_elem *child = mdl_object_xml_child(root, "Part");

        mdl_object_xml_text(root, "Code", p);
        while (child != NULL) {
            mdl_object_xml_text(child, "ETag", p);
            child = mdl_object_xml_next(child);
        }
    }
}

static const struct {
    parser_t *parse;
    const char *seed;
    int takes_nul; /* others read up to one, which no header has */
} parsers[] = {
    {parse_parameters, "form-data; name=\"a\\\"b\"; c=d", 0},
    {parse_filename, "attachment; filename=\"a.zip\"; filename*=UTF-8''%c3%a4.zip", 0},
    {parse_languages, "de-AT;q=0.8, en, *;q=0.1", 0},
    {parse_media_type, "text/plain; charset=\"utf-8\"", 0},
    {parse_path, "/a/1/b/2", 0},
    {parse_utf8, " \xc3\xa4\r\n\xe2\x80\xae\xf0\x9f\x8e\xb5 ", 0},
    {parse_fold,
     "\xef\xac\x81 STRA\xc3\x9f"
     "E A\xcc\x88",
     0},
    {parse_csv, "=1+\"2\",\r\n", 0},
    {parse_zip_name, "../con.t\xc3\xa4r.gz ", 0},
    {parse_url, "https://a.example.com:8443/b/c%20d.zip?x=1#y", 0},
    {parse_json, "{\"a\":[1,-2.5e3,\"\\u00e4\\ud83c\\udfb5\",null,true,{}]}", 1},
    {parse_bounce,
     "Return-Path: <>\nTo: a@example.com\nFrom: MAILER-DAEMON@b.example\nContent-Type: "
     "multipart/report; report-type=delivery-status; boundary=\"B\"\n\n--B\nContent-Type: "
     "message/delivery-status\n\nReporting-MTA: dns; b.example\n\nFinal-Recipient: rfc822; "
     "c@d.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 no\n\n--B--\n",
     1},
    {parse_bounce,
     "Return-Path: <>\nTo: a@example.com\nContent-Type: text/plain; charset=utf-8\n"
     "Content-Transfer-Encoding: quoted-printable\n\nuser unknown =C3=A4=\n 550 5.1.1 no\n",
     1},
    {parse_xml, "\n<?xml version=\"1.0\"?><R xmlns=\"a\"><Part><ETag>\"b\"</ETag></Part></R>", 1},
    {parse_time, "2026-11-21T00:36:20.123+01:00", 0},
    {parse_time, "2016-12-31T23:59:60Z", 0},
    {parse_mail, "J\xc3\xb6rg, \"a\" <b@c.test>\r\n.=20 \xe2\x80\xa8", 0},
    {parse_mail, "\xc3\xa4@\xc3\xb6.test", 0},
};

static void fuzz_one(const unsigned char *bytes, size_t length, apr_pool_t *p)
{
    const size_t i = length > 0 ? bytes[0] % (sizeof parsers / sizeof *parsers) : 0;

    if (length > 0) {
        char *text = apr_pstrmemdup(p, (const char *)bytes + 1, length - 1);

        if (!parsers[i].takes_nul) {
            length = strlen(text) + 1;
            text = apr_pstrdup(p, text);
        }
        parsers[i].parse(text, length - 1, p);
    }
}

static void fuzz_seeds(void)
{
    for (size_t i = 0; i < sizeof parsers / sizeof *parsers; i++) {
        char seed[1024];
        int length = apr_snprintf(seed, sizeof seed, "%c%s", (int)i + 48, parsers[i].seed);

        seed[0] = (char)i;
        fuzz_seed(apr_itoa(fuzz_pool, (int)i), seed, (size_t)length);
    }
}
