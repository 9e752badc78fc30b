/*
 * Which IP addresses belong to the public internet: everything but what the IANA special-purpose
 * registries of IPv4 and IPv6 name (RFC 6890), multicast, reserved space, the prefixes that carry
 * an IPv4 address inside, and the metadata services of cloud providers.  address.c holds
 * mdl_http_address_allowed of base/http_client.h as well: it needs nothing of libcurl.
 */
#ifndef MDL_BASE_ADDRESS_H
#define MDL_BASE_ADDRESS_H

#include <apr_network_io.h>

/** Whether any host on the internet may be meant.  Only APR_INET and APR_INET6 can be public. */
int mdl_address_is_public(const apr_sockaddr_t *address);

#endif
