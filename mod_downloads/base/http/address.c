#include "base/http/address.h"

#include <arpa/inet.h>
#include <string.h>

#include <apr_strings.h>

#define IPV4_LENGTH 4
#define IPV6_LENGTH 16

typedef struct {
    unsigned char prefix[IPV6_LENGTH];
    unsigned int bits;
} range_t;

/* All of the IANA IPv4 special-purpose registry, then other ranges without public web servers. */
static const range_t special_ipv4[] = {
    {{0}, 8},                /* this network */
    {{10}, 8},               /* private */
    {{100, 64}, 10},         /* carrier-grade NAT; also 100.100.100.200, a metadata service */
    {{127}, 8},              /* loopback */
    {{169, 254}, 16},        /* link-local; also 169.254.169.254 */
    {{172, 16}, 12},         /* private */
    {{192, 0, 0}, 24},       /* protocol assignments; also 192.0.0.192, a metadata service */
    {{192, 0, 2}, 24},       /* documentation */
    {{192, 31, 196}, 24},    /* AS112 */
    {{192, 52, 193}, 24},    /* automatic multicast tunnelling */
    {{192, 88, 99}, 24},     /* 6to4 relay anycast */
    {{192, 168}, 16},        /* private */
    {{192, 175, 48}, 24},    /* AS112 */
    {{198, 18}, 15},         /* benchmarking */
    {{198, 51, 100}, 24},    /* documentation */
    {{203, 0, 113}, 24},     /* documentation */
    {{224}, 4},              /* multicast */
    {{240}, 4},              /* reserved, and broadcast */
    {{168, 63, 129, 16}, 32} /* a metadata service in public space */
};

/* Ranges within 2000::/3; no global unicast address has been assigned outside of it. */
static const range_t special_ipv6[] = {
    {{0x20, 0x01, 0x00}, 23},                   /* protocol assignments: Teredo, ORCHID, … */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},             /* documentation */
    {{0x20, 0x02}, 16},                         /* 6to4 */
    {{0x26, 0x20, 0x00, 0x4f, 0x80, 0x00}, 48}, /* AS112 */
    {{0x3f, 0xff, 0x00}, 20}                    /* documentation */
};

static const range_t global_unicast = {{0x20}, 3};

/* Prefixes that are followed by an embedded IPv4 address. */
static const range_t translated[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96}, /* v4-mapped */
    {{0x00, 0x64, 0xff, 0x9b}, 96},                   /* NAT64, RFC 6052 */
    {{0x20, 0x02}, 16}                                /* 6to4 */
};

static int in_range(const unsigned char *ip, const range_t *range)
{
    unsigned int whole = range->bits / 8;
    unsigned int rest = range->bits % 8;

    if (memcmp(ip, range->prefix, whole) != 0) {
        return 0;
    }
    return rest == 0 || (ip[whole] >> (8 - rest)) == (range->prefix[whole] >> (8 - rest));
}

static int in_any_range(const unsigned char *ip, const range_t *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (in_range(ip, &ranges[i])) {
            return 1;
        }
    }
    return 0;
}

/* An ISATAP interface identifier (RFC 5214) carries an IPv4 address under any prefix. */
static int is_isatap(const unsigned char *ip)
{
    return (ip[8] & 0xfd) == 0 && ip[9] == 0 && ip[10] == 0x5e && ip[11] == 0xfe;
}

int mdl_address_is_public(const apr_sockaddr_t *address)
{
    const unsigned char *ip = address->ipaddr_ptr;

    if (address->family == APR_INET) {
        return !in_any_range(ip, special_ipv4, sizeof special_ipv4 / sizeof special_ipv4[0]);
    }
    if (address->family == APR_INET6) {
        return in_range(ip, &global_unicast) && !is_isatap(ip) &&
               !in_any_range(ip, special_ipv6, sizeof special_ipv6 / sizeof special_ipv6[0]);
    }
    return 0;
}

/* Whether address embeds an IPv4 address, which *inside then gets. */
static int embedded_ipv4(const apr_sockaddr_t *address, apr_sockaddr_t *inside)
{
    const unsigned char *ip = address->ipaddr_ptr;

    if (address->family != APR_INET6) {
        return 0;
    }
    for (size_t i = 0; i < sizeof translated / sizeof translated[0]; i++) {
        if (in_range(ip, &translated[i])) {
            memset(inside, 0, sizeof *inside);
            inside->family = APR_INET;
            inside->ipaddr_ptr = &inside->sa.sin.sin_addr;
            inside->ipaddr_len = IPV4_LENGTH;
            memcpy(inside->ipaddr_ptr, ip + translated[i].bits / 8, IPV4_LENGTH);
            return 1;
        }
    }
    return 0;
}

static int in_networks(const apr_array_header_t *networks, const apr_sockaddr_t *address)
{
    /* apr_ipsubnet_test only reads, but its parameters aren't const. */
    for (int i = 0; networks != NULL && i < networks->nelts; i++) {
        apr_ipsubnet_t *network = APR_ARRAY_IDX(networks, i, apr_ipsubnet_t *);

        if (apr_ipsubnet_test(network, (apr_sockaddr_t *)address)) {
            return 1;
        }
    }
    return 0;
}

int mdl_http_address_allowed(const mdl_http_policy_t *policy, const apr_sockaddr_t *address)
{
    apr_sockaddr_t inside;

    if (!mdl_address_is_public(address) && !in_networks(policy->networks, address)) {
        return 0;
    }
    /* An allowed NAT64 or 6to4 network does not make the embedded private addresses allowed. */
    return !embedded_ipv4(address, &inside) || mdl_http_address_allowed(policy, &inside);
}

const char *mdl_address_text(const char *text, apr_pool_t *p)
{
    static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    unsigned char b[IPV6_LENGTH];

    if (inet_pton(AF_INET, text, b) == 1) {
        return apr_psprintf(p, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
    }
    if (inet_pton(AF_INET6, text, b) != 1) {
        return NULL;
    }
    if (memcmp(b, mapped, sizeof mapped) == 0) {
        return apr_psprintf(p, "%d.%d.%d.%d", b[12], b[13], b[14], b[15]);
    }
    return apr_psprintf(
        p, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1],
        b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

const char *mdl_address_network(const char *text, apr_pool_t *p)
{
    const char *address = mdl_address_text(text, p);
    char network[INET6_ADDRSTRLEN];
    unsigned char b[IPV6_LENGTH];
    int is_ipv6;

    if (address == NULL) {
        return NULL;
    }
    is_ipv6 = inet_pton(AF_INET6, address, b) == 1;
    if (!is_ipv6) {
        inet_pton(AF_INET, address, b);
    }
    memset(b + (is_ipv6 ? 6 : 3), 0, is_ipv6 ? IPV6_LENGTH - 6 : 1);
    inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, b, network, sizeof network);
    return apr_pstrcat(p, network, is_ipv6 ? "/48" : "/24", NULL);
}
