/*
 * The folder of templates: the general ones, in several languages, and those of single shops.
 *
 *   page.html          without a language: what is used when no language fits
 *   page.de.html       for customers who read German; any tag of RFC 5646, "de-AT" as well
 *   shop-7/page.html   instead of all of the general ones, for shop 7
 *   shop-7/page.de.html  where shop-7 has no page.html: instead of that one general file
 *   month.mustache     a partial, {{> month}}: chosen in the same way, so that shop 7's own is also
 *   month.de.mustache  in what it gets of the general templates
 *
 * What each template is given: docs/templates.md.
 */
#ifndef MDL_BASE_TEXT_TEMPLATES_H
#define MDL_BASE_TEXT_TEMPLATES_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/text/template.h"

typedef struct mdl_templates_t mdl_templates_t;

/**
 * Reads a folder's templates of these names (ended by NULL; "….html" is HTML, all else text) and
 * its partials, into p; other files are passed over.  For each that can't be used, and for each of
 * the names without a language that is not there, a sentence (const char *) is appended to problems
 * that says what is wrong and where; the rest of the set is good all the same.  It doesn't change
 * any more and can be used by several threads.
 */
mdl_templates_t *mdl_templates_read(const char *folder, const char *const *names,
                                    apr_array_header_t *problems, apr_pool_t *p);

/**
 * The template of that name ("page.html") for a customer of a shop (0: of none that is known) in
 * the first of the languages (const char *, tags of RFC 5646 in either case, also with "_") that
 * there is; RFC 4647's look-up: "de-AT" is also served by "de".  NULL when there is none of them.
 * *language gets the tag of what was found, as its file has it.
 */
const mdl_template_t *mdl_templates_match(const mdl_templates_t *templates, const char *name,
                                          apr_int64_t shop_id, const apr_array_header_t *languages,
                                          const char **language, apr_pool_t *p);

/**
 * The same, with the template without a language where none fits; NULL when that one could not be
 * read.  *language is then what its html element says, or "".  languages may be NULL.
 */
const mdl_template_t *mdl_templates_get(const mdl_templates_t *templates, const char *name,
                                        apr_int64_t shop_id, const apr_array_header_t *languages,
                                        const char **language, apr_pool_t *p);

#endif
