#include "ctl/config.h"

#include <stddef.h>
#include <string.h>

#include <apr_strings.h>

#define HIDDEN "***"

typedef struct {
    const char *directive;
    const char *value;
    const char *origin; /* "file:line", or "default" */
    const char *standard;
    const char *file; /* NULL: not given */
    int line;         /* -1: not given */
} explained_t;

static const mdl_field_t fields[] = {
    {"directive", MDL_FIELD_TEXT, offsetof(explained_t, directive), 1, NULL},
    {"value", MDL_FIELD_TEXT, offsetof(explained_t, value), 1, NULL},
    {"origin", MDL_FIELD_TEXT, offsetof(explained_t, origin), 1, NULL},
    {"file", MDL_FIELD_TEXT, offsetof(explained_t, file), 0, NULL},
    {"line", MDL_FIELD_INT, offsetof(explained_t, line), 0, NULL},
    {"default", MDL_FIELD_TEXT, offsetof(explained_t, standard), 1, NULL},
    {0},
};

/* The length of a password: up to a space or, quoted as libpq has it, to the quote. */
static apr_size_t password_length(const char *text)
{
    apr_size_t length = *text == '\'';

    if (*text != '\'') {
        return strcspn(text, " \t");
    }
    while (text[length] != '\0' && text[length] != '\'') {
        length += text[length] == '\\' && text[length + 1] != '\0' ? 2 : 1;
    }
    return length + (text[length] == '\'');
}

/* Masks a password of libpq: password=… or, in a URL, behind the user. */
static const char *params_masked(const char *text, apr_pool_t *p)
{
    const char *done = "", *url = strstr(text, "://"), *at, *colon;

    if (url != NULL && (at = strrchr(url, '@')) != NULL &&
        (colon = memchr(url + 3, ':', (apr_size_t)(at - url - 3))) != NULL) {
        text = apr_pstrcat(p, apr_pstrmemdup(p, text, (apr_size_t)(colon + 1 - text)), HIDDEN, at,
                           NULL);
    }
    for (const char *found; (found = strstr(text, "password")) != NULL;) {
        const char *value = found + strlen("password");

        value += strspn(value, " \t=");
        done = apr_pstrcat(p, done, apr_pstrmemdup(p, text, (apr_size_t)(value - text)), HIDDEN,
                           NULL);
        text = value + password_length(value);
    }
    return apr_pstrcat(p, done, text, NULL);
}

static void explain(mdl_ctl_t *ctl, apr_array_header_t *lines, const char *name,
                    const char *standard, const mdl_settings_given_t *given)
{
    explained_t *line = apr_pcalloc(ctl->p, sizeof *line);

    *line = (explained_t){.directive = name,
                          .value = standard,
                          .origin = standard != NULL ? "default" : NULL,
                          .standard = standard,
                          .line = -1};
    if (given != NULL) {
        line->value = strcmp(name, "DBDParams") == 0 ? params_masked(given->value, ctl->p)
                                                     : given->value;
        line->file = given->file;
        line->line = given->line;
        line->origin = apr_psprintf(ctl->p, "%s:%d", given->file, given->line);
    }
    APR_ARRAY_PUSH(lines, explained_t *) = line;
}

int mdl_ctl_config_explain(mdl_ctl_t *ctl)
{
    const apr_array_header_t *given = ctl->settings->given;
    apr_array_header_t *lines = apr_array_make(ctl->p, 80, sizeof(explained_t *));
    const char *name, *standard;
    int is_list;

    for (apr_size_t i = 0; mdl_settings_directive(i, &name, &standard, &is_list); i++) {
        const mdl_settings_given_t *last = NULL;
        int listed = 0;

        for (int j = 0; j < given->nelts; j++) {
            const mdl_settings_given_t *each = &APR_ARRAY_IDX(given, j, mdl_settings_given_t);

            if (strcasecmp(each->name, name) == 0 && is_list) {
                explain(ctl, lines, name, standard, each);
                listed = 1;
            } else if (strcasecmp(each->name, name) == 0) {
                last = each;
            }
        }
        if (!listed) {
            explain(ctl, lines, name, standard, last);
        }
    }
    mdl_printer_list(ctl->output, fields, lines, "");
    return MDL_EXIT_DONE;
}
