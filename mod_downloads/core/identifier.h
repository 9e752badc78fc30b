/*
 * Identifiers in a request's path, query or body (contract, section 1).
 */
#ifndef MDL_CORE_IDENTIFIER_H
#define MDL_CORE_IDENTIFIER_H

#include <apr_pools.h>

/* The largest id: 2^53 - 1, which JavaScript's numbers hold exactly. */
#define MDL_IDENTIFIER_MAX ((APR_INT64_C(1) << 53) - 1)

/** Whether text is a storefront's order or customer: 1 to 20 digits without a leading zero. */
int mdl_identifier_is_digits(const char *text);

/** Parses an id of the service: from 1 to MDL_IDENTIFIER_MAX, without a leading zero.  0 for any
    other text, and for NULL. */
apr_int64_t mdl_identifier_parse(const char *text);

/** Whether text is gid://<platform>/Product/<n>. */
int mdl_identifier_is_product(const char *text);

/**
 * The gid of a variant, which text gives as gid://<platform>/ProductVariant/<n> or as a bare
 * number; NULL when it is neither, or of another platform than the product.  Text itself if product
 * is no gid.
 */
const char *mdl_identifier_variant(const char *text, const char *product, apr_pool_t *p);

#endif
