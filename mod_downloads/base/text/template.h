/*
 * Templates: a subset of mustache(5).  {{name}} escapes for HTML, where a control character
 * becomes U+FFFD, {{{name}}} does not, {{#name}}…{{/name}} repeats over an array or shows when
 * true,
 * {{^name}}…{{/name}} shows when absent, null, false or an empty array or string, {{! comment }}.
 * Names are of letters, digits and underscores; a name is looked up in the innermost section first.
 * {{> name}} puts in what stands in the partial of that name, without the line's end that its file
 * ends with; what it shows is escaped as the template around it says.
 * A section or comment tag that stands alone on its line leaves no empty line behind.
 */
#ifndef MDL_BASE_TEXT_TEMPLATE_H
#define MDL_BASE_TEXT_TEMPLATE_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/text/json.h"

typedef struct mdl_template_t mdl_template_t;

typedef enum { MDL_TEMPLATE_HTML, MDL_TEMPLATE_TEXT } mdl_template_kind_t;

/** What stands in a file; the path is for what *why says. */
typedef struct {
    const char *path;
    const char *text;
} mdl_template_file_t;

/** The file of the partial that a tag names, NULL: there is none. */
typedef const mdl_template_file_t *mdl_template_partial_t(void *baton, const char *name);

/** Reads a file of at most 1 MiB.  *why names it. */
apr_status_t mdl_template_read(mdl_template_file_t *file, const char *path, const char **why,
                               apr_pool_t *p);

/**
 * Parses a template, whose text and whose partials' have to last as long; in a text template
 * {{name}} is not escaped.  Returns APR_EINVAL and in *why a sentence with file and line: an
 * unclosed tag or section, a section closed out of order or 16 deep, a partial that there is not
 * or that is inside of itself, a tag that is none of the above.
 */
apr_status_t mdl_template_parse(mdl_template_t **t, mdl_template_kind_t kind,
                                const mdl_template_file_t *file, mdl_template_partial_t *partial,
                                void *baton, const char **why, apr_pool_t *p);

/**
 * Renders with the members of an object; strings, integers and booleans render, an unknown name and
 * anything else as nothing.
 */
const char *mdl_template_render(const mdl_template_t *t, const mdl_json_t *data, apr_pool_t *p);

#endif
