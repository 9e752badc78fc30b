/*
 * Parsing Accept-Language (RFC 9110 section 12.5.4), and checking language tags.
 */
#ifndef MDL_BASE_HTTP_ACCEPT_LANGUAGE_H
#define MDL_BASE_HTTP_ACCEPT_LANGUAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/**
 * The language ranges of a header's value (NULL: none) as const char *, in p, by descending weight,
 * in the header's order for equal weights.  "*", ranges of weight 0, malformed ranges, and all
 * after the first 32 are left out.
 */
apr_array_header_t *mdl_accept_language(const char *value, apr_pool_t *p);

/** Whether a text has the form of a language tag (RFC 5646): subtags of 1 to 8 letters and digits,
    the first of letters only, separated by hyphens or, as in de_DE, underscores. */
int mdl_language_tag_valid(const char *text);

#endif
