/*
 * What a browser's Accept-Language asks for (RFC 9110 section 12.5.4), and the tags of languages.
 */
#ifndef MDL_BASE_HTTP_ACCEPT_LANGUAGE_H
#define MDL_BASE_HTTP_ACCEPT_LANGUAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/**
 * The language ranges of a header's value (NULL: none) as const char *, in p, the one with the most
 * weight first and those of equal weight in their order.  "*", ranges of weight 0 and malformed
 * ones are left out, and so is everything behind the first 32.
 */
apr_array_header_t *mdl_accept_language(const char *value, apr_pool_t *p);

/** Whether a text has the form of a language tag (RFC 5646): subtags of 1 to 8 letters and digits,
    the first of letters alone, with a hyphen between them or, as in de_DE, an underscore. */
int mdl_language_tag_valid(const char *text);

#endif
