/*
 * Email addresses that were probably mistyped: their domain is one letter beside a big provider's.
 */
#ifndef MDL_BASE_MAIL_LIKELY_TYPO_H
#define MDL_BASE_MAIL_LIKELY_TYPO_H

#include <apr_pools.h>

/** The address that was probably meant, in p; NULL when nothing suggests another.  One letter is
    missing, too many, wrong, or changed places with its neighbour.  A big provider's own domain is
    never taken for another's. */
const char *mdl_likely_typo(const char *address, apr_pool_t *p);

#endif
