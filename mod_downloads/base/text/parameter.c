#include "base/text/parameter.h"

#include <string.h>

#include <apr_cstr.h>
#include <apr_strings.h>

/* Reads a token or a quoted string and moves *text behind it. */
static const char *parameter_value(const char **text, apr_pool_t *p)
{
    const char *from = *text;
    char *value = apr_palloc(p, strlen(from) + 1);
    char *to = value;

    if (*from != '"') {
        apr_size_t length = strcspn(from, "; \t");

        *text = from + length;
        return apr_pstrmemdup(p, from, length);
    }
    for (from++; *from != '\0' && *from != '"'; from++) {
        if (*from == '\\' && (from[1] == '"' || from[1] == '\\')) {
            from++; /* not before other characters, where many senders mean a path's backslash */
        }
        *to++ = *from;
    }
    *to = '\0';
    *text = from + (*from == '"');
    return value;
}

int mdl_parameter_next(const char **text, const char **name, const char **value, apr_pool_t *p)
{
    int found = 0;

    while (!found && **text == ';') {
        const char *from = *text + 1 + strspn(*text + 1, " \t");
        apr_size_t length = strcspn(from, "=; \t");

        *text = from + length + strspn(from + length, " \t");
        if (**text == '=') {
            *text += 1 + strspn(*text + 1, " \t");
            *name = apr_pstrmemdup(p, from, length);
            *value = parameter_value(text, p);
            found = 1;
        }
        *text += strcspn(*text, ";");
    }
    return found;
}

const char *mdl_parameter_get(const char *header, const char *name, apr_pool_t *p)
{
    const char *text = header + strcspn(header, ";");
    const char *found, *value;

    while (mdl_parameter_next(&text, &found, &value, p)) {
        if (apr_cstr_casecmp(found, name) == 0) {
            return value;
        }
    }
    return NULL;
}
