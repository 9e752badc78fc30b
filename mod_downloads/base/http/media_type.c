#include "base/http/media_type.h"

#include <string.h>
#include <strings.h>

#include <apr.h>

static const char *skip_token(const char *text)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "!#$%&'*+-.^_`|~";
    apr_size_t length = strspn(text, token);

    return length > 0 ? text + length : NULL;
}

/* A quoted string without escapes, which no parameter of a media type needs. */
static const char *skip_quoted(const char *text)
{
    for (text++; *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\'; text++) {
    }
    return *text == '"' ? text + 1 : NULL;
}

static const char *skip_parameter(const char *text)
{
    text += strspn(text, " \t");
    if (*text != ';') {
        return NULL;
    }
    text++;
    text = skip_token(text + strspn(text, " \t"));
    if (text == NULL || *text != '=') {
        return NULL;
    }
    return text[1] == '"' ? skip_quoted(text + 1) : skip_token(text + 1);
}

int mdl_media_type_is(const char *text, const char *type)
{
    apr_size_t length = strlen(type);

    return strncasecmp(text, type, length) == 0 &&
           (text[length] == '\0' || strchr("; \t", text[length]) != NULL);
}

int mdl_media_type_valid(const char *text)
{
    const char *at = text;

    if (strlen(text) > MDL_MEDIA_TYPE_MAX || strncasecmp(text, "multipart/", 10) == 0 ||
        (at = skip_token(at)) == NULL || *at != '/' || (at = skip_token(at + 1)) == NULL) {
        return 0;
    }
    while (at != NULL && *at != '\0') {
        at = skip_parameter(at);
    }
    return at != NULL;
}
