#include "base/text/filename.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "base/text/utf8.h"

/* The name with "_" for separators and for characters that end a line or turn its direction. */
static char *filename_safe(const char *filename, apr_pool_t *p)
{
    char *name = apr_palloc(p, strlen(filename) + 1);
    char *to = name;

    while (*filename != '\0') {
        apr_uint32_t c;
        apr_size_t length = mdl_utf8_read(filename, &c);

        if (c == '/' || c == '\\' || mdl_utf8_disturbs_filename(c)) {
            *to++ = '_';
        } else {
            memcpy(to, filename, length);
            to += length;
        }
        filename += length;
    }
    *to = '\0';
    return name;
}

/* Percent-encodes all but letters, digits and the given marks. */
static const char *filename_encode(const char *text, const char *marks, apr_pool_t *p)
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

/* The name with "_" for each character that is not ASCII or that clients interpret differently. */
static const char *filename_ascii(const char *name, apr_pool_t *p)
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
    const char *name = filename_safe(filename, p);

    return apr_pstrcat(p, "attachment; filename=\"", filename_ascii(name, p),
                       "\"; filename*=UTF-8''", filename_encode(name, "!#$&+-.^_`|~", p), NULL);
}

const char *mdl_filename_segment(const char *filename, apr_pool_t *p)
{
    const char *name = filename_safe(filename, p);

    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return "";
    }
    return apr_pstrcat(p, "/", filename_encode(name, "-._~", p), NULL);
}
