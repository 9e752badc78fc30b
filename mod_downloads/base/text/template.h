/*
 * Templates: a subset of mustache(5).
 *
 *   {{name}}              the value, escaped for HTML; control characters become U+FFFD
 *   {{{name}}}            the value as it is
 *   {{#name}}…{{/name}}   repeats for each element of an array, or shows when the value is true
 *   {{^name}}…{{/name}}   shows when the value is absent, null, false, or an empty array or string
 *   {{> name}}            the partial of that name, without the line end at its file's end; escaped
 *                         as the template around it is
 *   {{@word}}             a word in the reader's language (base/text/words.h)
 *   {{@word name}}        the same, in the form that fits the value
 *   {{{@word}}}           the same, with markup: a name in the word for which there is a partial is
 *                         that partial, and any other text value is within <bdi>
 *   {{! comment }}        nothing
 *
 * A word is escaped like a value, and may contain {{name}}, {{@word}} and {{@word name}}.  Names
 * have letters, digits and underscores; a name is looked up in the innermost section first.  A
 * section or comment tag alone on its line leaves no empty line.
 */
#ifndef MDL_BASE_TEXT_TEMPLATE_H
#define MDL_BASE_TEXT_TEMPLATE_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/text/json.h"
#include "base/text/plural.h"
#include "base/text/text_buffer.h"

typedef struct mdl_template_t mdl_template_t;

typedef enum { MDL_TEMPLATE_HTML, MDL_TEMPLATE_TEXT } mdl_template_kind_t;

/** A file's text; the path is for messages. */
typedef struct {
    const char *path;
    const char *text;
} mdl_template_file_t;

/** A word in one language: a single form with the name "", or several named forms. */
typedef struct {
    const char *key;
    mdl_plural_rule_t *plural; /* of its language */
    apr_array_header_t *forms; /* mdl_word_form_t */
} mdl_word_t;

typedef struct {
    const char *name;
    mdl_template_file_t file;
} mdl_word_form_t;

/** Checks that a word's text has only tags allowed in words; else APR_EINVAL and why. */
apr_status_t mdl_template_check_word(const mdl_template_file_t *file, int line, const char **why,
                                     apr_pool_t *p);

/** The names of a file's tags (const char *) except partials, each once, in p; words begin with
    "@".  Stops at the first invalid tag. */
apr_array_header_t *mdl_template_names(const mdl_template_file_t *file, apr_pool_t *p);

/** Resolves the tags of a template. */
typedef struct {
    /* The file of a partial; NULL when there is none. */
    const mdl_template_file_t *(*partial)(void *baton, const char *name);
    /* A word; NULL when there is none, then its key is shown. */
    const mdl_word_t *(*word)(void *baton, const char *key);
    void *baton;
} mdl_template_finder_t;

/** Reads a file of at most 1 MiB into p.  On an error, APR_EINVAL if it is larger or not text, *why
    is a sentence that names it. */
apr_status_t mdl_template_read(mdl_template_file_t *file, const char *path, const char **why,
                               apr_pool_t *p);

/**
 * Parses a template into p.  The texts of the template, its partials and words must live as long.
 * In a text template {{name}} is not escaped.  Returns APR_EINVAL and in *why a sentence with file
 * and line for an unclosed tag or section, a section closed out of order or more than 16 deep, a
 * partial that does not exist or includes itself, a word of several forms without a value, any tag
 * but a partial or comment within a <style> or <script> element of an HTML template, and unknown
 * tags.
 */
apr_status_t mdl_template_parse(mdl_template_t **t, mdl_template_kind_t kind,
                                const mdl_template_file_t *file,
                                const mdl_template_finder_t *finder, const char **why,
                                apr_pool_t *p);

typedef enum {
    MDL_TEMPLATE_STYLE,
    MDL_TEMPLATE_SCRIPT,
    MDL_TEMPLATE_ELEMENTS /* how many there are */
} mdl_template_element_t;

/** The hashes of a template's elements of a kind, for a Content-Security-Policy (CSP Level 3,
    section 2.3.1): " 'sha256-…'" for each, "" for none.  Values never occur within such an element
    and cannot make one. */
const char *mdl_template_hashes(const mdl_template_t *t, mdl_template_element_t kind);

/** A long array among the data, whose elements are made one at a time. */
typedef struct mdl_template_list_t {
    const char *name;
    int length;
    /** Adds an element's members to to; p and to are cleared once it is rendered. */
    void (*element)(const void *baton, int index, mdl_json_t *to, apr_pool_t *p);
    const void *baton;
    /** Long arrays among an element's members, in p; NULL: there are none. */
    const struct mdl_template_list_t *(*lists)(const void *baton, int index, apr_pool_t *p);
    const struct mdl_template_list_t *next; /* a further one beside it; or NULL */
} mdl_template_list_t;

/**
 * Renders a template with the members of data, and lists (or NULL) as further members, and appends
 * to out.  Strings, integers and booleans are shown; unknown names and other values are
 * not.  The same data gives the same bytes.
 */
void mdl_template_write(const mdl_template_t *t, const mdl_json_t *data,
                        const mdl_template_list_t *lists, mdl_text_buffer_t *out, apr_pool_t *p);

/** Renders without a list and returns a text in p. */
const char *mdl_template_render(const mdl_template_t *t, const mdl_json_t *data, apr_pool_t *p);

#endif
