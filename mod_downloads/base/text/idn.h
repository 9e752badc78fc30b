/*
 * Internationalised domain names (IDNA2008, RFC 5891, with the mapping of UTS #46), by libidn2.
 */
#ifndef MDL_BASE_TEXT_IDN_H
#define MDL_BASE_TEXT_IDN_H

#include <apr_pools.h>

/**
 * The name of a host or domain, given in UTF-8, as DNS has it: what is not ASCII alone becomes its
 * xn-- form, in lower case, whatever the locale; ASCII stays as it is.  Allocated from p; NULL for
 * what can't be a name.  The result is to be checked like any other: of fullwidth digits it is an
 * IP address.
 */
const char *mdl_idn_ascii(const char *name, apr_pool_t *p);

#endif
