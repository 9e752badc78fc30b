/*
 * Internationalised domain names (IDNA2008, RFC 5891, with the mapping of UTS #46), by libidn2.
 */
#ifndef MDL_BASE_TEXT_IDN_H
#define MDL_BASE_TEXT_IDN_H

#include <apr_pools.h>

/**
 * Converts a host or domain name in UTF-8 to its DNS form, in p: a name that is not ASCII becomes
 * its xn-- form in lower case, whatever the locale; ASCII is unchanged.  NULL if that is
 * impossible.  Check the result as any other name: fullwidth digits can become an IP address.
 */
const char *mdl_idn_ascii(const char *name, apr_pool_t *p);

#endif
