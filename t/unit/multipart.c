/* Bodies of forms with files: what is read from them, however they are cut, and what is refused. */
#include "base/text/multipart.h"

#include <stdlib.h>

#include <apr_strings.h>

#include "base/text/parameter.h"
#include "t/unit/tap.h"

#define TYPE       "multipart/form-data; boundary=XY"
#define PART(name) "Content-Disposition: form-data; name=\"" name "\"\r\n\r\n"

/* What was read: a line "<name|type:" and then "bytes>" for each part. */
typedef struct {
    apr_pool_t *pool;
    const char *read;
    apr_size_t bytes;
    int refuses;
} reader_t;

static apr_status_t take_part(void *baton, const mdl_multipart_part_t *part)
{
    reader_t *reader = baton;

    reader->read = apr_pstrcat(reader->pool, reader->read, "<", part->name, "|",
                               part->content_type != NULL ? part->content_type : "", ":", NULL);
    return reader->refuses ? APR_EGENERAL : APR_SUCCESS;
}

static apr_status_t take_bytes(void *baton, const char *bytes, apr_size_t length)
{
    reader_t *reader = baton;

    reader->read = apr_pstrcat(reader->pool, reader->read,
                               apr_pstrmemdup(reader->pool, bytes, length), NULL);
    reader->bytes += length;
    return APR_SUCCESS;
}

/* Reads a body in pieces of step bytes; NULL unless it is well-formed and over. */
static const char *read_body(const char *body, apr_size_t length, apr_size_t step, apr_pool_t *p)
{
    reader_t reader = {.pool = p, .read = ""};
    const mdl_multipart_sink_t sink = {.part = take_part, .bytes = take_bytes, .baton = &reader};
    mdl_multipart_t *multipart = mdl_multipart_make(TYPE, &sink, p);
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t at = 0; at < length && rv == APR_SUCCESS; at += step) {
        /* A copy of its own, so that a sanitizer sees reads beyond it. */
        apr_size_t piece = length - at < step ? length - at : step;
        char *copy = malloc(piece);

        memcpy(copy, body + at, piece);
        rv = mdl_multipart_read(multipart, copy, piece);
        free(copy);
    }
    return rv == APR_SUCCESS && mdl_multipart_is_over(multipart) ? reader.read : NULL;
}

static void check(const char *body, const char *expected, const char *name, apr_pool_t *parent)
{
    apr_size_t length = strlen(body);
    const char *got = expected;
    apr_pool_t *p;

    apr_pool_create(&p, parent);
    for (apr_size_t step = 1; step <= length + 1; step++) {
        const char *read;

        read = read_body(body, length, step, p);
        if ((read == NULL) != (expected == NULL) || (read != NULL && strcmp(read, expected) != 0)) {
            got = read != NULL ? apr_pstrdup(parent, read) : "(refused)";
            break;
        }
    }
    is_str(got, expected, name);
    apr_pool_destroy(p);
}

static void check_bodies(apr_pool_t *p)
{
    static const struct {
        const char *body, *read, *name;
    } cases[] = {
        {"--XY\r\n" PART("file") "bytes\r\n--XY--\r\n", "<file|:bytes", "a part is read"},
        {"--XY\r\n" PART("file") "bytes\r\n--XY--", "<file|:bytes", "without a last line's end"},
        {"--XY\r\n" PART("file") "\r\n--XY--\r\n", "<file|:", "it may be empty"},
        {"--XY\r\n" PART("a") "1\r\n--XY\r\n" PART("b") "2\r\n--XY--\r\n", "<a|:1<b|:2",
         "parts come in their order"},
        {"--XY\r\nCONTENT-disposition:form-data;name=file\r\nContent-Type:  a/b\r\nX-Y: z\r\n\r\nb"
         "\r\n--XY--\r\n",
         "<file|a/b:b", "headers are written in several ways"},
        {"--XY\r\n" PART("f") "\r\n--X\r\n-\r\r\n--X\r\n--\r\r\n--XZ\r\n\r\n--XY--\r\n",
         "<f|:\r\n--X\r\n-\r\r\n--X\r\n--\r\r\n--XZ\r\n",
         "what only begins like a boundary is a part's"},
        {"--XY\r\n" PART("f") "--XY--\n--XY\r--XY\r\n--XY--\r\n", "<f|:--XY--\n--XY\r--XY",
         "a boundary stands at the beginning of a line"},
        {"--XY\r\nContent-Disposition: form-data; name=\"a;name=b\"; filename=\"\r\n\r\n\r\n--XY--",
         "<a;name=b|:", "a name may look like another parameter"},
        {"--XY\r\nContent-Disposition: form-data; filename=\"a\\\"; name=\\\"x\"; "
         "name=\"f\"\r\n\r\n"
         "\r\n--XY--",
         "<f|:", "so may a file's"},
        {"", NULL, "an empty body is refused"},
        {"--XY--\r\n", "", "no part at all is none"},
        {"x--XY\r\n" PART("f") "\r\n--XY--\r\n", NULL, "bytes before the first boundary are"},
        {"\r\n--XY\r\n" PART("f") "\r\n--XY--\r\n", NULL, "even a line's end"},
        {"--XY \r\n" PART("f") "\r\n--XY--\r\n", NULL, "space behind a boundary is"},
        {"--XYZ\r\n" PART("f") "\r\n--XY--\r\n", NULL, "another boundary is"},
        {"--XY\r\n" PART("f") "a\r\n--XYb\r\n--XY--\r\n", NULL, "also in a part"},
        {"--XY\n" PART("f") "\r\n--XY--\r\n", NULL, "a bare LF is"},
        {"--XY\rX" PART("f") "\r\n--XY--\r\n", NULL, "so is a bare CR"},
        {"--XY\r\n" PART("f") "\r\n--XY-\r\n", NULL, "half a last boundary is"},
        {"--XY\r\n" PART("f") "bytes", NULL, "no last boundary is"},
        {"--XY\r\n" PART("f") "bytes\r\n--XY", NULL, "wherever it is cut"},
        {"--XY\r\n" PART("f") "bytes\r\n--XY\r\n", NULL, "or begins another part"},
        {"--XY\r\n" PART("f") "\r\n--XY--\r\nx", NULL, "bytes behind the last boundary are"},
        {"--XY\r\n" PART("f") "\r\n--XY--x", NULL, "wherever they stand"},
        {"--XY\r\n" PART("f") "\r\n--XY--\r\n--XY\r\n" PART("g") "\r\n--XY--\r\n", NULL,
         "also another part"},
        {"--XY\r\n\r\n\r\n--XY--\r\n", NULL, "a part without headers is"},
        {"--XY\r\nContent-Type: a/b\r\n\r\n\r\n--XY--\r\n", NULL, "or without a name"},
        {"--XY\r\nContent-Disposition: form-data; filename=f\r\n\r\n\r\n--XY--\r\n", NULL,
         "even with a file's"},
        {"--XY\r\nContent-Disposition: attachment; name=f\r\n\r\n\r\n--XY--\r\n", NULL,
         "another disposition is"},
        {"--XY\r\nContent-Disposition: form-data; name=f\r\nContent-Disposition: form-data; "
         "name=g\r\n\r\n\r\n--XY--\r\n",
         NULL, "two of them are"},
        {"--XY\r\nContent-Disposition: form-data;\r\n name=f\r\n\r\n\r\n--XY--\r\n", NULL,
         "a folded header is"},
        {"--XY\r\nContent-Disposition : form-data; name=f\r\n\r\n\r\n--XY--\r\n", NULL,
         "space before its colon is"},
        {"--XY\r\nContent-Disposition form-data\r\n\r\n\r\n--XY--\r\n", NULL, "no colon is"},
        {"--XY\r\nContent-Disposition: form-data; name=\"f\n\"\r\n\r\n\r\n--XY--\r\n", NULL,
         "a line's end in a name is"},
        {"--XY\r\nContent-Transfer-Encoding: base64\r\n" PART("f") "\r\n--XY--\r\n", NULL,
         "an encoded part is"},
        {"--XY\r\nContent-Transfer-Encoding: binary\r\n" PART("f") "\r\n--XY--\r\n",
         "<f|:", "one that says it is not encoded is read"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(cases[i].body, cases[i].read, cases[i].name, p);
    }
}

static void check_bounds(apr_pool_t *p)
{
    static const char start[] = "--XY\r\nX: ";
    apr_size_t most = MDL_MULTIPART_HEADERS_MAX - strlen("X: ") - strlen(PART("f")) - 2;
    char *fill = apr_palloc(p, most + 2);
    const char *body;

    memset(fill, 'x', most + 1);
    fill[most] = '\0';
    body = apr_pstrcat(p, start, fill, "\r\n" PART("f") "b\r\n--XY--\r\n", NULL);
    is_str(read_body(body, strlen(body), 1000, p), "<f|:b", "headers of 8 KB are read");
    fill[most] = 'x';
    fill[most + 1] = '\0';
    body = apr_pstrcat(p, start, fill, "\r\n" PART("f") "b\r\n--XY--\r\n", NULL);
    ok(read_body(body, strlen(body), 1000, p) == NULL, "longer ones are refused");
    ok(read_body("--XY\r\nX: \0\r\n" PART("f") "\r\n--XY--\r\n", 80, 80, p) == NULL,
       "a NUL in them is refused");
    ok(read_body(apr_pstrcat(p, start, fill, fill, fill, NULL), 20000, 1, p) == NULL,
       "headers without an end are refused");
}

static int makes(const char *type, apr_pool_t *p)
{
    static const mdl_multipart_sink_t sink = {0};

    return mdl_multipart_make(type, &sink, p) != NULL;
}

static void check_types(apr_pool_t *p)
{
    static const char *const good[] = {
        "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
        "multipart/form-data; boundary=\"a b:c\"", "Multipart/Form-Data;charset=utf-8;BOUNDARY=a",
        ("multipart/form-data; boundary="
         "1234567890123456789012345678901234567890123456789012345678901234567890")};
    static const char *const bad[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=a",
        "multipart/form-datax; boundary=a",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=a\xc3\xa4",
        "multipart/form-data; boundary=\"a\\\"b\"",
        "multipart/form-data; boundary=\"a\tb\"",
        "multipart/form-data; xboundary=a",
        ("multipart/form-data; boundary="
         "12345678901234567890123456789012345678901234567890123456789012345678901")};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ok(makes(good[i], p), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(!makes(bad[i], p), "a type without such a boundary is none of a form");
    }
    ok(!makes(NULL, p), "no type is none");
    is_str(mdl_parameter_get("a/b; c; d=\"e;f=g\"; F=h", "f", p), "h",
           "a parameter's name is found behind others");
}

/* The length that is announced: that of the last part, if the body ends as browsers end it. */
typedef struct {
    mdl_multipart_t *multipart;
    apr_int64_t body, told;
} lengths_t;

static apr_status_t tell_length(void *baton, const mdl_multipart_part_t *part)
{
    lengths_t *lengths = baton;

    (void)part;
    lengths->told = mdl_multipart_last_length(lengths->multipart, lengths->body);
    return APR_SUCCESS;
}

static apr_status_t skip_bytes(void *baton, const char *bytes, apr_size_t length)
{
    (void)baton;
    (void)bytes;
    (void)length;
    return APR_SUCCESS;
}

static void check_length(apr_pool_t *p)
{
    static const char body[] = "--XY\r\n" PART("a") "12345\r\n--XY\r\n" PART(
        "f") "1234567\r\n--XY--\r\n";

    for (apr_size_t step = 1; step < 40; step += 13) {
        lengths_t lengths = {.body = (apr_int64_t)strlen(body)};
        const mdl_multipart_sink_t sink = {
            .part = tell_length, .bytes = skip_bytes, .baton = &lengths};

        lengths.multipart = mdl_multipart_make(TYPE, &sink, p);
        for (apr_size_t at = 0; at < strlen(body); at += step) {
            apr_size_t left = strlen(body) - at;

            mdl_multipart_read(lengths.multipart, body + at, left < step ? left : step);
        }
        is_int(lengths.told, 7, "the length of the last part is known when it begins");
        is_int(mdl_multipart_last_length(lengths.multipart, 10), -1,
               "unless the body is too short for it");
    }
}

static void check_refusal(apr_pool_t *p)
{
    reader_t reader = {.pool = p, .read = "", .refuses = 1};
    const mdl_multipart_sink_t sink = {.part = take_part, .bytes = take_bytes, .baton = &reader};
    mdl_multipart_t *multipart = mdl_multipart_make(TYPE, &sink, p);
    static const char body[] = "--XY\r\n" PART("f") "bytes";

    is_int(mdl_multipart_read(multipart, body, strlen(body)), APR_EGENERAL,
           "what refuses a part ends the reading");
    is_int(reader.bytes, 0, "before its bytes");
}

/* A generator of its own: the same bodies on each machine. */
static unsigned random_next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Bytes that are likely to look like a boundary. */
static apr_size_t random_bytes(char *to, apr_size_t room, unsigned *state)
{
    static const char *const pieces[] = {"\r", "\n",     "\r\n", "-",  "--", "--X", "\r\n--X",
                                         "Y",  "\r\n--", "a",    "XY", "\0", "\xff"};
    apr_size_t length = 0;

    for (unsigned count = random_next(state) % 40; count > 0; count--) {
        unsigned i = random_next(state) % (sizeof pieces / sizeof *pieces);
        apr_size_t size = i == 11 ? 1 : strlen(pieces[i]);

        if (length + size <= room) {
            memcpy(to + length, pieces[i], size);
            length += size;
        }
    }
    return length;
}

static int has_boundary(const char *bytes, apr_size_t length)
{
    for (apr_size_t i = 0; i + 6 <= length; i++) {
        if (memcmp(bytes + i, "\r\n--XY", 6) == 0) {
            return 1;
        }
    }
    return 0;
}

static int read_at_random(const char *body, apr_size_t length, reader_t *reader, unsigned *state)
{
    const mdl_multipart_sink_t sink = {.part = take_part, .bytes = take_bytes, .baton = reader};
    mdl_multipart_t *multipart = mdl_multipart_make(TYPE, &sink, reader->pool);
    apr_status_t rv = APR_SUCCESS;

    for (apr_size_t at = 0; at < length && rv == APR_SUCCESS;) {
        apr_size_t piece = 1 + random_next(state) % 9;

        piece = piece < length - at ? piece : length - at;
        rv = mdl_multipart_read(multipart, body + at, piece);
        at += piece;
    }
    return rv == APR_SUCCESS && mdl_multipart_is_over(multipart);
}

/* A part of random bytes comes back as long as it was; mutilated bodies end in no crash. */
static void check_random(apr_pool_t *parent)
{
    unsigned state = 44;
    int lost = 0, kept = 0;
    apr_pool_t *p;

    apr_pool_create(&p, parent);
    for (int i = 0; i < 20000; i++) {
        static const char start[] = "--XY\r\n" PART("f") "\r\n", end[] = "\r\n--XY--\r\n";
        char body[512];
        apr_size_t at = strlen(start), length;
        reader_t reader = {.pool = p, .read = ""};

        apr_pool_clear(p);
        memcpy(body, start, at);
        length = random_bytes(body + at, sizeof body - at - sizeof end, &state);
        memcpy(body + at + length, end, strlen(end));
        if (!has_boundary(body + at - 2, length + 2)) {
            kept++;
            lost += !read_at_random(body, at + length + strlen(end), &reader, &state) ||
                    reader.bytes != length + 2;
        }
        body[random_next(&state) % (at + length + strlen(end))] = (char)random_next(&state);
        reader.read = "";
        read_at_random(body, at + length + strlen(end), &reader, &state);
    }
    ok(kept > 1000, "many random parts have no boundary");
    is_int(lost, 0, "each of them comes back whole");
    apr_pool_destroy(p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    check_bodies(p);
    check_bounds(p);
    check_types(p);
    check_length(p);
    check_refusal(p);
    check_random(p);
    return tap_end(p);
}
