/*
 * Which IP addresses belong to the public internet, and which a policy allows.
 */
#ifndef MDL_BASE_HTTP_ADDRESS_H
#define MDL_BASE_HTTP_ADDRESS_H

#include <apr_network_io.h>
#include <apr_pools.h>

#include "base/http/policy.h"

/**
 * Whether an address belongs to the public internet: any but those in the IANA special-purpose
 * registries of IPv4 and IPv6 (RFC 6890), multicast, reserved space, prefixes that embed an IPv4
 * address, and the metadata services of cloud providers.  Only APR_INET and APR_INET6 addresses can
 * be public.
 */
int mdl_address_is_public(const apr_sockaddr_t *address);

/**
 * Whether policy allows a connection to this address: it is public or in policy->networks.  NAT64,
 * 6to4 and IPv4-mapped addresses are allowed only if the embedded IPv4 address is allowed too.
 */
int mdl_http_address_allowed(const mdl_http_policy_t *policy, const apr_sockaddr_t *address);

/**
 * The canonical text of an address, in p, so that equal addresses have equal texts: IPv4 in
 * decimals, IPv6 in eight groups of four lower-case digits, IPv4-mapped addresses (::ffff:0:0/96)
 * as IPv4.  The first 19 characters are the IPv4 address, or the /64 network of the IPv6 address.
 * NULL if text is no address; zones and brackets are not accepted.
 */
const char *mdl_address_text(const char *text, apr_pool_t *p);

/** The network of an address, in p, to keep in its place: "203.0.113.0/24", or "2001:db8:1::/48"
    (RFC 5952).  NULL if text is no address. */
const char *mdl_address_network(const char *text, apr_pool_t *p);

#endif
