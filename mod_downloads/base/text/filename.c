#include "base/text/filename.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "base/text/parameter.h"
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

/* --- parsing a Content-Disposition --- */

/* Converts ISO-8859-1 to UTF-8. */
static const char *latin1_to_utf8(const char *text, apr_pool_t *p)
{
    char *out = apr_palloc(p, 2 * strlen(text) + 1);
    char *to = out;

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c >= 0x80) {
            *to++ = (char)(0xc0 | c >> 6);
            c = 0x80 | (c & 0x3f);
        }
        *to++ = (char)c;
    }
    *to = '\0';
    return out;
}

/* The last segment, or NULL if it can't be a file's name. */
static const char *filename_last_segment(const char *text)
{
    const char *name = text;

    for (; *text != '\0'; text++) {
        if (*text == '/' || *text == '\\') {
            name = text + 1;
        }
    }
    if (name[strspn(name, ". ")] == '\0') {
        return NULL;
    }
    for (text = name; *text != '\0';) {
        apr_uint32_t c;

        text += mdl_utf8_read(text, &c);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            return NULL;
        }
    }
    return name;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes charset'language'percent-encoded; NULL if text is malformed. */
static const char *extended_value(const char *text, apr_pool_t *p)
{
    const char *language = strchr(text, '\'');
    const char *value = language != NULL ? strchr(language + 1, '\'') : NULL;
    apr_size_t charset = language != NULL ? (apr_size_t)(language - text) : 0;
    char *out, *to;

    if (value == NULL) {
        return NULL;
    }
    out = to = apr_palloc(p, strlen(value));
    for (value++; *value != '\0'; value++) {
        int high = *value == '%' ? hex_digit(value[1]) : 0;
        int low = *value == '%' && high >= 0 ? hex_digit(value[2]) : 0;

        if (high < 0 || low < 0 || (*value == '%' && high == 0 && low == 0)) {
            return NULL;
        }
        *to++ = (char)(*value == '%' ? high << 4 | low : *value);
        value += *value == '%' ? 2 : 0;
    }
    *to = '\0';
    if (charset == 10 && apr_cstr_casecmpn(text, "iso-8859-1", charset) == 0) {
        return latin1_to_utf8(out, p);
    }
    return charset == 5 && apr_cstr_casecmpn(text, "utf-8", charset) == 0 && mdl_utf8_valid(out)
               ? out
               : NULL;
}

const char *mdl_filename_of_disposition(const char *disposition, apr_pool_t *p)
{
    const char *text = disposition != NULL ? disposition + strcspn(disposition, ";") : "";
    const char *plain = NULL, *extended = NULL;
    const char *name, *value;

    while (mdl_parameter_next(&text, &name, &value, p)) {
        if (extended == NULL && apr_cstr_casecmp(name, "filename*") == 0) {
            extended = extended_value(value, p);
        } else if (plain == NULL && apr_cstr_casecmp(name, "filename") == 0) {
            plain = mdl_utf8_valid(value) ? value : latin1_to_utf8(value, p);
        }
    }
    extended = extended != NULL ? filename_last_segment(extended) : NULL;
    return extended != NULL || plain == NULL ? extended : filename_last_segment(plain);
}
