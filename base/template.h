/*
 * Templates: a subset of mustache(5).  {{name}} escapes for HTML, where a control character
 * becomes U+FFFD, {{{name}}} does not, {{#name}}…{{/name}} repeats over an array or shows when
 * true,
 * {{^name}}…{{/name}} shows when absent, null, false or an empty array or string, {{! comment }}.
 * Names are of letters, digits and underscores; a name is looked up in the innermost section first.
 * A section or comment tag that stands alone on its line leaves no empty line behind.
 */
#ifndef MDL_BASE_TEMPLATE_H
#define MDL_BASE_TEMPLATE_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "base/json.h"

typedef struct mdl_template_t mdl_template_t;

typedef enum { MDL_TEMPLATE_HTML, MDL_TEMPLATE_TEXT } mdl_template_kind_t;

/**
 * Parses a template; in a text template {{name}} is not escaped.  Returns APR_EINVAL and in *why a
 * sentence with the line: an unclosed tag or section, a section closed out of order or
 * 16 deep, a tag that is none of the above.
 */
apr_status_t mdl_template_parse(mdl_template_t **t, mdl_template_kind_t kind, const char *text,
                                const char **why, apr_pool_t *p);

/** Reads and parses a file of at most 1 MiB.  *why names the file. */
apr_status_t mdl_template_read(mdl_template_t **t, mdl_template_kind_t kind, const char *path,
                               const char **why, apr_pool_t *p);

/**
 * Renders with the members of an object; strings, integers and booleans render, an unknown name and
 * anything else as nothing.
 */
const char *mdl_template_render(const mdl_template_t *t, const mdl_json_t *data, apr_pool_t *p);

#endif
