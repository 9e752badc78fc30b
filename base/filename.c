#include "base/filename.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

/* The bytes of a character that no name may have, which would be a path, the end of a header's
   line, or turn the direction of text so that "exe" reads as if it ended in "pdf"; 0 for any other.
 */
static apr_size_t unsafe_length(const unsigned char *at)
{
    if (at[0] < 0x20 || at[0] == 0x7f || at[0] == '/' || at[0] == '\\') {
        return 1;
    }
    if ((at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c)) {
        return 2; /* U+0080 to U+009F; U+061C */
    }
    if (at[0] == 0xe2 && at[1] == 0x80) {
        /* U+200E, U+200F, U+2028 to U+202E */
        return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
    }
    if (at[0] == 0xe2 && at[1] == 0x81) {
        return at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0; /* U+2066 to U+2069 */
    }
    return at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf ? 3 : 0; /* U+FEFF */
}

static char *safe(const char *filename, apr_pool_t *p)
{
    char *name = apr_palloc(p, strlen(filename) + 1);
    char *to = name;

    while (*filename != '\0') {
        apr_size_t length = unsafe_length((const unsigned char *)filename);

        *to++ = length > 0 ? '_' : *filename;
        filename += length > 0 ? length : 1;
    }
    *to = '\0';
    return name;
}

/* Percent-encodes all but letters, digits and the marks given. */
static const char *encode(const char *text, const char *marks, apr_pool_t *p)
{
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = apr_palloc(p, 3 * strlen(text) + 1);
    char *to = encoded;

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x80 && (apr_isalnum(c) || strchr(marks, c) != NULL)) {
            *to++ = (char)c;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    *to = '\0';
    return encoded;
}

/* One "_" for each character that is not ASCII, and for those that clients read in several ways. */
static const char *ascii(const char *name, apr_pool_t *p)
{
    char *fallback = apr_palloc(p, strlen(name) + 1);
    char *to = fallback;

    for (; *name != '\0'; name++) {
        unsigned char c = (unsigned char)*name;

        if ((c & 0xc0) != 0x80) {
            *to++ = c >= 0x80 || strchr("\"%", c) != NULL ? '_' : (char)c;
        }
    }
    *to = '\0';
    return fallback;
}

const char *mdl_filename_disposition(const char *filename, apr_pool_t *p)
{
    const char *name = safe(filename, p);

    return apr_pstrcat(p, "attachment; filename=\"", ascii(name, p), "\"; filename*=UTF-8''",
                       encode(name, "!#$&+-.^_`|~", p), NULL);
}

const char *mdl_filename_segment(const char *filename, apr_pool_t *p)
{
    const char *name = safe(filename, p);

    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return "";
    }
    return apr_pstrcat(p, "/", encode(name, "-._~", p), NULL);
}
