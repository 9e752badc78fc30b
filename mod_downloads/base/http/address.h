/*
 * Which IP addresses belong to the public internet, and where a policy lets connections go.
 */
#ifndef MDL_BASE_HTTP_ADDRESS_H
#define MDL_BASE_HTTP_ADDRESS_H

#include <apr_network_io.h>
#include <apr_pools.h>

#include "base/http/policy.h"

/**
 * Whether the address is one of the public internet: all but what the IANA special-purpose
 * registries of IPv4 and IPv6 list (RFC 6890), multicast, reserved space, the prefixes that carry
 * an IPv4 address inside, and the metadata services of cloud providers.  Only an address of
 * APR_INET or APR_INET6 can be public.
 */
int mdl_address_is_public(const apr_sockaddr_t *address);

/**
 * Whether policy lets a connection go to this address: a public one, or one in policy->networks.
 * NAT64, 6to4 and IPv4-mapped addresses pass only when the IPv4 address inside passes as well.
 */
int mdl_http_address_allowed(const mdl_http_policy_t *policy, const apr_sockaddr_t *address);

/**
 * An address in its canonical form, so that equal addresses are equal texts: IPv4 in decimals, IPv6
 * in eight groups of four lower-case digits, and IPv4 inside IPv6 (::ffff:0:0/96) as IPv4.  The
 * first 19 characters are therefore an IPv4 address, or the network of 64 bits of an IPv6 one.
 * NULL when text is no address; zones and brackets are not accepted.
 */
const char *mdl_address_text(const char *text, apr_pool_t *p);

#endif
