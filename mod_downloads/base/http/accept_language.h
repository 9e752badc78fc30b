/*
 * A browser's Accept-Language (RFC 9110 section 12.5.4).
 */
#ifndef MDL_BASE_HTTP_ACCEPT_LANGUAGE_H
#define MDL_BASE_HTTP_ACCEPT_LANGUAGE_H

#include <apr_pools.h>
#include <apr_tables.h>

/**
 * The language ranges of a header's value (NULL: none) as const char *, the most wanted first and
 * those of equal weight in their order.  What has weight 0, "*", and what is not well-formed is
 * left out; of a header with more than 32 ranges the rest is.
 */
apr_array_header_t *mdl_accept_language(const char *value, apr_pool_t *p);

#endif
