/*
 * What a browser's Accept-Language asks for (RFC 9110 section 12.5.4).
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

#endif
