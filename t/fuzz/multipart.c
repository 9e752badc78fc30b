/*
 * Bodies of forms with files.  An input is a byte that chooses the cuts, a line with the
 * Content-Type, and the body.  Whole, cut at random and byte by byte it must be read as the same.
 */
#include "base/text/multipart.h"

#include <string.h>

#include "base/text/text_buffer.h"
#include "t/fuzz/fuzz.h"

/* What one reading made of a body. */
typedef struct {
    mdl_multipart_t *multipart;
    mdl_text_buffer_t *read; /* the parts' headers, and all bytes */
    apr_size_t body;
    apr_int64_t told, bytes; /* of the last part: its announced length, and the real one */
    apr_size_t begin;        /* of its bytes in read */
    apr_status_t rv;
    apr_pool_t *pool;
} reading_t;

static apr_status_t reading_part(void *baton, const mdl_multipart_part_t *part)
{
    reading_t *reading = baton;
    const char *type = part->content_type != NULL ? part->content_type : "(none)";

    fuzz_claim(strpbrk(part->disposition, "\r\n") == NULL && strpbrk(type, "\r\n") == NULL);
    fuzz_claim(strlen(part->disposition) < MDL_MULTIPART_HEADERS_MAX);
    reading->told = mdl_multipart_last_length(reading->multipart, (apr_int64_t)reading->body);
    reading->bytes = 0;
    mdl_text_buffer_put(reading->read,
                        apr_psprintf(reading->pool, "\n<%s|%s|%s|%" APR_INT64_T_FMT ">\n",
                                     part->name, part->disposition, type, reading->told));
    mdl_text_buffer_text(reading->read, &reading->begin);
    return APR_SUCCESS;
}

static apr_status_t reading_bytes(void *baton, const char *bytes, apr_size_t length)
{
    reading_t *reading = baton;

    fuzz_claim(length > 0);
    reading->bytes += (apr_int64_t)length;
    mdl_text_buffer_write(reading->read, bytes, length);
    return APR_SUCCESS;
}

/* Pieces have up to `most` bytes, each in memory of its own. */
static void reading_run(reading_t *reading, const char *type, const unsigned char *body,
                        unsigned seed, size_t most)
{
    const mdl_multipart_sink_t sink = {reading_part, reading_bytes, reading};

    reading->read = mdl_text_buffer_make(reading->pool);
    reading->multipart = mdl_multipart_make(type, &sink, reading->pool);
    for (size_t at = 0;
         reading->multipart != NULL && reading->rv == APR_SUCCESS && at < reading->body;) {
        size_t left = reading->body - at, piece;
        char *copy;

        seed = seed * 1664525u + 1013904223u;
        piece = 1 + (seed >> 16) % most;
        piece = piece < left ? piece : left;
        copy = malloc(piece);
        memcpy(copy, body + at, piece);
        reading->rv = mdl_multipart_read(reading->multipart, copy, piece);
        free(copy);
        at += piece;
    }
}

static void claim_same(const reading_t *a, const reading_t *b)
{
    apr_size_t length, other;
    const char *read = mdl_text_buffer_text(a->read, &length);
    const char *compared = mdl_text_buffer_text(b->read, &other);

    fuzz_claim(a->rv == b->rv && (a->rv == APR_SUCCESS || a->rv == APR_EINVAL));
    fuzz_claim(mdl_multipart_is_over(a->multipart) == mdl_multipart_is_over(b->multipart));
    fuzz_claim(a->told == b->told && a->bytes == b->bytes);
    fuzz_claim(length == other && memcmp(read, compared, length) == 0);
}

/* A part ends before its first delimiter; a body that ends as usual has told how long it is. */
static void claim_bounds(const reading_t *reading, const char *type, const unsigned char *body)
{
    const char *boundary = strcasestr(type, "boundary=");
    apr_size_t length;
    const char *read = mdl_text_buffer_text(reading->read, &length);

    if (boundary == NULL || reading->rv != APR_SUCCESS || reading->begin == 0) {
        return;
    }
    if (strspn(boundary + 9, "XY") == strlen(boundary + 9)) {
        const char *delimiter = apr_pstrcat(reading->pool, "\r\n--", boundary + 9, NULL);

        fuzz_claim(memmem(read + reading->begin, length - reading->begin, delimiter,
                          strlen(delimiter)) == NULL);
    }
    if (mdl_multipart_is_over(reading->multipart) &&
        memcmp(body + reading->body - 4, "--\r\n", 4) == 0) {
        fuzz_claim(reading->told == reading->bytes);
    }
}

static void fuzz_one(const unsigned char *bytes, size_t length, apr_pool_t *p)
{
    const unsigned char *end = length > 0 ? memchr(bytes + 1, '\n', length - 1) : NULL;
    reading_t whole = {.pool = p}, cut = {.pool = p}, single = {.pool = p};
    const char *type;

    if (end == NULL) {
        return;
    }
    type = apr_pstrmemdup(p, (const char *)bytes + 1, (size_t)(end - bytes) - 1);
    whole.body = cut.body = single.body = length - (size_t)(end + 1 - bytes);
    reading_run(&whole, type, end + 1, 0, SIZE_MAX);
    reading_run(&cut, type, end + 1, bytes[0], 2 + bytes[0] % 31);
    reading_run(&single, type, end + 1, 0, 1);
    if (whole.multipart != NULL) {
        claim_same(&whole, &cut);
        claim_same(&whole, &single);
        claim_bounds(&whole, type, end + 1);
    }
}

#define TYPE "\7multipart/form-data; boundary="
#define FORM "Content-Disposition: form-data; name="

static void fuzz_seeds(void)
{
    static const char *const seeds[] = {
        (TYPE "XY\n--XY\r\n" FORM "\"file\"; filename=\"a.zip\"\r\nContent-Type: a/b\r\n\r\n"
              "bytes\r\n--XY--\r\n"),
        TYPE "XY\n--XY\r\n" FORM "a\r\n\r\n1\r\n--XY\r\n" FORM "\"b\"\r\n\r\n2\r\n--XY--",
        (TYPE "\"a b\"; charset=x\n--a b\r\nContent-Transfer-Encoding: binary\r\n" FORM
              "f\r\n\r\n\r\n--a\r\n-\r\r\n--a b--\r\n"),
        TYPE "XY\n--XY--\r\n"};

    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        fuzz_seed(apr_itoa(fuzz_pool, (int)i), seeds[i], strlen(seeds[i]));
    }
}
