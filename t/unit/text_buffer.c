#include "base/text/text_buffer.h"

#include <apr_strings.h>

#include "tap.h"

static void is_text(const mdl_text_buffer_t *buffer, const char *expected, const char *name)
{
    apr_size_t length;
    const char *text = mdl_text_buffer_text(buffer, &length);

    is_str(text, expected, name);
    is_int(length, strlen(expected), "its length is given");
}

static void test_pieces(apr_pool_t *p)
{
    mdl_text_buffer_t *buffer = mdl_text_buffer_make(p);

    is_text(buffer, "", "a new text is empty");
    mdl_text_buffer_put(buffer, "");
    is_text(buffer, "", "so it is when nothing is put into it");
    mdl_text_buffer_write(buffer, "one, two", 5);
    is_text(buffer, "one, ", "of bytes as many are written as the length says");
    mdl_text_buffer_write(buffer, "", 0);
    mdl_text_buffer_put(buffer, "two");
    mdl_text_buffer_put(buffer, ", three");
    is_text(buffer, "one, two, three", "texts are written one after the other");
    is_str(mdl_text_buffer_text(buffer, NULL), "one, two, three",
           "the length need not be asked for");
}

static void test_zero_bytes(apr_pool_t *p)
{
    mdl_text_buffer_t *buffer = mdl_text_buffer_make(p);
    apr_size_t length;

    mdl_text_buffer_write(buffer, "a\0b", 3);
    ok(memcmp(mdl_text_buffer_text(buffer, &length), "a\0b", 4) == 0, "a NUL is a byte as others");
    is_int(length, 3, "and counted as they are");
}

/* Every size around the buffer's growth, written at once and byte by byte. */
static void test_growth(apr_pool_t *p)
{
    enum { MOST = 5000 };
    char *expected = apr_pcalloc(p, MOST + 1);
    mdl_text_buffer_t *grown = mdl_text_buffer_make(p);
    int same = 1;

    for (int i = 0; i < MOST; i++) {
        mdl_text_buffer_t *whole = mdl_text_buffer_make(p);

        same = same && strcmp(mdl_text_buffer_text(grown, NULL), expected) == 0;
        mdl_text_buffer_write(whole, expected, (apr_size_t)i);
        mdl_text_buffer_put(whole, "!");
        same = same && strncmp(mdl_text_buffer_text(whole, NULL), expected, (size_t)i) == 0 &&
               strcmp(mdl_text_buffer_text(whole, NULL) + i, "!") == 0;
        expected[i] = (char)('a' + i % 26);
        mdl_text_buffer_write(grown, expected + i, 1);
    }
    ok(same, "a text keeps what it has while it grows");
    is_text(grown, expected, "up to its end");
}

/* The pieces of a text. */
typedef struct {
    mdl_text_buffer_t *all;
    apr_size_t first;
    apr_size_t longest;
    int ends;
} pieces_t;

/* Leaves three bytes of each piece but the last. */
static apr_size_t piece_take(void *baton, const char *bytes, apr_size_t length, int last)
{
    pieces_t *pieces = baton;

    pieces->first = pieces->first == 0 ? length : pieces->first;
    pieces->longest = length > pieces->longest ? length : pieces->longest;
    pieces->ends += last;
    length -= last ? 0 : 3;
    mdl_text_buffer_write(pieces->all, bytes, length);
    return length;
}

static void test_passing(apr_pool_t *p)
{
    pieces_t pieces = {.all = mdl_text_buffer_make(p)};
    mdl_text_buffer_t *whole = mdl_text_buffer_make(p);
    mdl_text_buffer_t *buffer = mdl_text_buffer_make_passing(piece_take, &pieces, p);

    for (int i = 0; i < 50000; i++) {
        const char *text = apr_itoa(p, i);

        mdl_text_buffer_put(whole, text);
        mdl_text_buffer_put(buffer, text);
    }
    mdl_text_buffer_end(buffer);
    ok(strcmp(mdl_text_buffer_text(pieces.all, NULL), mdl_text_buffer_text(whole, NULL)) == 0,
       "a text that is passed on in pieces arrives whole, with what was left of one before the "
       "next");
    ok(pieces.first >= MDL_TEXT_BUFFER_FIRST && pieces.first < MDL_TEXT_BUFFER_FIRST + 100,
       "the first piece is short");
    ok(pieces.longest < MDL_TEXT_BUFFER_PIECE + 100, "no more than a piece is kept");
    is_int(pieces.ends, 1, "its end is told once");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_pieces(p);
    test_zero_bytes(p);
    test_growth(p);
    test_passing(p);
    return tap_end(p);
}
