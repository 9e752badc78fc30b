#include "base/text/html_escape.h"

#define REPLACEMENT_MAX 6 /* bytes of "&quot;" */

/* Replaces one or two bytes that are special in HTML or not allowed; NULL: they stay. */
static const char *html_replacement(const unsigned char *at, apr_size_t *length)
{
    *length = 1;
    switch (at[0]) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '\t':
    case '\n':
    case '\r':
        return NULL;
    case 0xc2:
        *length = 2;
        return at[1] >= 0x80 && at[1] < 0xa0 ? "\xef\xbf\xbd" : NULL;
    default:
        return at[0] < 0x20 || at[0] == 0x7f ? "\xef\xbf\xbd" : NULL;
    }
}

void mdl_html_escape(mdl_text_buffer_t *out, const char *text)
{
    char piece[1024];
    apr_size_t filled = 0;

    while (*text != '\0') {
        apr_size_t length;
        const char *instead = html_replacement((const unsigned char *)text, &length);

        if (instead == NULL) {
            piece[filled++] = *text++;
        } else {
            while (*instead != '\0') {
                piece[filled++] = *instead++;
            }
            text += length;
        }
        if (filled > sizeof piece - REPLACEMENT_MAX) {
            mdl_text_buffer_write(out, piece, filled);
            filled = 0;
        }
    }
    mdl_text_buffer_write(out, piece, filled);
}

int mdl_html_is_special(const char *from, const char *to)
{
    apr_size_t length;

    for (; from < to; from++) {
        if (html_replacement((const unsigned char *)from, &length) != NULL) {
            return 1;
        }
    }
    return 0;
}
