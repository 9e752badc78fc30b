/*
 * Which IP addresses belong to the public internet: everything but what the IANA special-purpose
 * registries of IPv4 and IPv6 name (RFC 6890), multicast, reserved space, the prefixes that carry
 * an IPv4 address inside, and the metadata services of cloud providers.  address.c holds
 * mdl_http_address_allowed of base/http/client.h as well: it needs nothing of libcurl.
 */
#ifndef MDL_BASE_HTTP_ADDRESS_H
#define MDL_BASE_HTTP_ADDRESS_H

#include <apr_network_io.h>

/** Whether any host on the internet may be meant.  Only APR_INET and APR_INET6 can be public. */
int mdl_address_is_public(const apr_sockaddr_t *address);

/**
 * An address in the one form in which equal ones are equal text: IPv4 in decimals, IPv6 in eight
 * groups of four lower-case digits, and IPv4 inside of IPv6 (::ffff:0:0/96) as IPv4.  So the first
 * 19 characters are an IPv4 address, or an IPv6 one's network of 64 bits.  NULL when text is none;
 * zones and brackets are not taken.
 */
const char *mdl_address_text(const char *text, apr_pool_t *p);

#endif
