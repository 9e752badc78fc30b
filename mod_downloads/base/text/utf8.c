#include "base/text/utf8.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

apr_size_t mdl_utf8_read(const char *text, apr_uint32_t *c)
{
    static const apr_uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *from = (const unsigned char *)text;
    apr_size_t length = *from < 0x80 ? 1 : *from >= 0xf0 ? 4 : *from >= 0xe0 ? 3 : 2;
    apr_uint32_t value = length == 1 ? *from : *from & (0x7fu >> length);

    *c = 0xfffd;
    if (*from >= 0xf8 || (*from >= 0x80 && *from < 0xc0)) {
        return 1;
    }
    for (apr_size_t i = 1; i < length; i++) {
        if ((from[i] & 0xc0) != 0x80) {
            return 1;
        }
        value = value << 6 | (from[i] & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        return 1;
    }
    *c = value;
    return length;
}

int mdl_utf8_valid(const char *text)
{
    while (*text != '\0') {
        apr_uint32_t c;
        apr_size_t length = mdl_utf8_read(text, &c);

        if (c == 0xfffd && length == 1) {
            return 0;
        }
        text += length;
    }
    return 1;
}

int mdl_utf8_is_ascii(const char *text)
{
    while (*text != '\0' && (unsigned char)*text < 0x80) {
        text++;
    }
    return *text == '\0';
}

apr_size_t mdl_utf8_length(const char *text)
{
    apr_size_t length = 0;

    for (; *text != '\0'; text++) {
        length += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return length;
}

int mdl_utf8_is_name(const char *text, apr_size_t max)
{
    apr_size_t length = strlen(text);

    if (length == 0 || length > max) {
        return 0;
    }
    for (; *text != '\0'; text++) {
        if (apr_iscntrl(*text)) {
            return 0;
        }
    }
    return 1;
}

int mdl_utf8_is_text(const char *text, apr_size_t max)
{
    return mdl_utf8_is_name(text, strlen(text)) && mdl_utf8_length(text) <= max;
}

int mdl_utf8_is_lines(const char *text, apr_size_t max)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (((unsigned char)*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f) {
            return 0;
        }
    }
    return *text != '\0' && mdl_utf8_length(text) <= max;
}

static int is_between(apr_uint32_t c, apr_uint32_t first, apr_uint32_t last)
{
    return c >= first && c <= last;
}

/* White space (Unicode's property White_Space), and characters without width: U+00AD, U+061C,
   U+180E, U+200B to U+200F, marks of direction, U+2060 to U+2064, U+FEFF.  Joiners are among them:
   at an end they join nothing. */
static int is_unseen(apr_uint32_t c)
{
    return is_between(c, 0x09, 0x0d) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0xad ||
           c == 0x061c || c == 0x1680 || c == 0x180e || is_between(c, 0x2000, 0x200f) ||
           is_between(c, 0x2028, 0x202f) || is_between(c, 0x205f, 0x2064) ||
           is_between(c, 0x2066, 0x2069) || c == 0x3000 || c == 0xfeff;
}

const char *mdl_utf8_trimmed(const char *text, apr_pool_t *p)
{
    const char *end = NULL;
    apr_uint32_t c;
    apr_size_t length;

    for (; *text != '\0'; text += length) {
        length = mdl_utf8_read(text, &c);
        if (!is_unseen(c)) {
            break;
        }
    }
    for (const char *at = text; *at != '\0'; at += length) {
        length = mdl_utf8_read(at, &c);
        if (!is_unseen(c)) {
            end = at + length;
        }
    }
    return end == NULL || *end == '\0' ? text : apr_pstrmemdup(p, text, (apr_size_t)(end - text));
}

const char *mdl_utf8_lines(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, mdl_utf8_trimmed(text, p)), *to = copy;

    for (const char *at = copy; *at != '\0'; at++) {
        if (*at != '\r') {
            *to++ = *at;
        } else if (at[1] != '\n') {
            *to++ = '\n';
        }
    }
    *to = '\0';
    return copy;
}

int mdl_utf8_disturbs(apr_uint32_t c)
{
    return c < 0x20 || is_between(c, 0x7f, 0x9f) || is_between(c, 0x2028, 0x202e) ||
           is_between(c, 0x2066, 0x2069);
}

int mdl_utf8_disturbs_filename(apr_uint32_t c)
{
    return mdl_utf8_disturbs(c) || c == 0x061c || is_between(c, 0x200e, 0x200f) || c == 0xfeff;
}

const char *mdl_utf8_quoted(const char *text, apr_size_t max, apr_pool_t *p)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    char *quoted = apr_palloc(p, strlen(text) + sizeof ellipsis);
    char *end = quoted, *cut = quoted; /* where an ellipsis as the last of max characters goes */

    for (apr_size_t i = 0; *text != '\0'; i++) {
        apr_uint32_t c;
        apr_size_t length = mdl_utf8_read(text, &c);

        if (i == max) {
            memcpy(cut, ellipsis, sizeof ellipsis);
            return quoted;
        }
        if (i + 1 == max) {
            cut = end;
        }
        if (mdl_utf8_disturbs_filename(c) || (c == 0xfffd && length == 1)) {
            *end++ = ' ';
        } else {
            memcpy(end, text, length);
            end += length;
        }
        text += length;
    }
    *end = '\0';
    return quoted;
}
