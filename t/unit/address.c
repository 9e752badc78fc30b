/* The addresses that a fetch may connect to. */
#include <arpa/inet.h>
#include <string.h>

#include <apr_strings.h>

#include "base/http/address.h"
#include "t/unit/tap.h"

typedef struct {
    const char *ip;
    int allowed;
} row_t;

/* The operator allows no network.  Lists the addresses on both sides of each boundary. */
static const row_t by_registry[] = {{"0.0.0.0", 0},
                                    {"0.255.255.255", 0},
                                    {"1.0.0.0", 1},
                                    {"1.1.1.1", 1},
                                    {"8.8.8.8", 1},
                                    {"9.255.255.255", 1},
                                    {"10.0.0.0", 0},
                                    {"10.255.255.255", 0},
                                    {"11.0.0.0", 1},
                                    {"100.63.255.255", 1},
                                    {"100.64.0.0", 0},
                                    {"100.100.100.200", 0},
                                    {"100.127.255.255", 0},
                                    {"100.128.0.0", 1},
                                    {"126.255.255.255", 1},
                                    {"127.0.0.1", 0},
                                    {"127.255.255.255", 0},
                                    {"128.0.0.0", 1},
                                    {"168.63.129.15", 1},
                                    {"168.63.129.16", 0},
                                    {"168.63.129.17", 1},
                                    {"169.253.255.255", 1},
                                    {"169.254.0.0", 0},
                                    {"169.254.169.254", 0},
                                    {"169.254.170.2", 0},
                                    {"169.255.0.0", 1},
                                    {"172.15.255.255", 1},
                                    {"172.16.0.0", 0},
                                    {"172.31.255.255", 0},
                                    {"172.32.0.0", 1},
                                    {"191.255.255.255", 1},
                                    {"192.0.0.9", 0},
                                    {"192.0.0.192", 0},
                                    {"192.0.1.0", 1},
                                    {"192.0.2.1", 0},
                                    {"192.0.3.0", 1},
                                    {"192.31.196.1", 0},
                                    {"192.31.197.0", 1},
                                    {"192.52.193.1", 0},
                                    {"192.52.194.0", 1},
                                    {"192.88.99.1", 0},
                                    {"192.88.100.0", 1},
                                    {"192.167.255.255", 1},
                                    {"192.168.0.0", 0},
                                    {"192.168.255.255", 0},
                                    {"192.169.0.0", 1},
                                    {"192.175.48.6", 0},
                                    {"192.175.49.0", 1},
                                    {"198.17.255.255", 1},
                                    {"198.18.0.0", 0},
                                    {"198.19.255.255", 0},
                                    {"198.20.0.0", 1},
                                    {"198.51.100.7", 0},
                                    {"198.51.101.0", 1},
                                    {"203.0.113.7", 0},
                                    {"203.0.114.0", 1},
                                    {"223.255.255.255", 1},
                                    {"224.0.0.1", 0},
                                    {"239.255.255.255", 0},
                                    {"240.0.0.1", 0},
                                    {"255.255.255.255", 0},
                                    {"::", 0},
                                    {"::1", 0},
                                    {"::2", 0},
                                    {"::7f00:1", 0},
                                    {"::808:808", 0},
                                    {"::ffff:127.0.0.1", 0},
                                    {"::ffff:8.8.8.8", 0},
                                    {"::ffff:0:127.0.0.1", 0},
                                    {"64:ff9b::7f00:1", 0},
                                    {"64:ff9b::808:808", 0},
                                    {"64:ff9b:1::1", 0},
                                    {"100::1", 0},
                                    {"100:0:0:1::1", 0},
                                    {"1fff:ffff::1", 0},
                                    {"2000::1", 1},
                                    {"2001::1", 0},
                                    {"2001:0:808:808::1", 0},
                                    {"2001:2::1", 0},
                                    {"2001:10::1", 0},
                                    {"2001:20::1", 0},
                                    {"2001:1ff:ffff::1", 0},
                                    {"2001:200::1", 1},
                                    {"2001:4860:4860::8888", 1},
                                    {"2001:db7:ffff::1", 1},
                                    {"2001:db8::1", 0},
                                    {"2001:db9::1", 1},
                                    {"2002:7f00:1::1", 0},
                                    {"2002:808:808::1", 0},
                                    {"2003::1", 1},
                                    {"2606:4700::1111", 1},
                                    {"2606:4700::5efe:a00:1", 0},
                                    {"2606:4700::200:5efe:a00:1", 0},
                                    {"2606:4700::1:5efe:a00:1", 1},
                                    {"2620:4f:7fff::1", 1},
                                    {"2620:4f:8000::1", 0},
                                    {"2620:4f:8001::1", 1},
                                    {"3ffe:ffff::1", 1},
                                    {"3fff::1", 0},
                                    {"3fff:fff::1", 0},
                                    {"3fff:1000::1", 1},
                                    {"4000::1", 0},
                                    {"5f00::1", 0},
                                    {"fc00::1", 0},
                                    {"fd00:ec2::254", 0},
                                    {"fd20:ce::254", 0},
                                    {"fe80::1", 0},
                                    {"febf::1", 0},
                                    {"fec0::1", 0},
                                    {"ff02::1", 0},
                                    {"ffff:ffff::1", 0}};

/* With 127.0.0.0/8, 10.1.0.0/16, ::1, 64:ff9b::/96 and 2002::/16 allowed by the operator. */
static const row_t by_operator[] = {{"127.0.0.1", 1},
                                    {"127.255.255.255", 1},
                                    {"126.0.0.1", 1},
                                    {"10.1.0.0", 1},
                                    {"10.1.255.255", 1},
                                    {"10.0.255.255", 0},
                                    {"10.2.0.0", 0},
                                    {"192.168.0.1", 0},
                                    {"169.254.169.254", 0},
                                    {"::1", 1},
                                    {"::2", 0},
                                    {"::ffff:127.0.0.1", 1},
                                    {"::ffff:10.2.0.0", 0},
                                    {"::ffff:8.8.8.8", 0},
                                    {"64:ff9b::808:808", 1},
                                    {"64:ff9b::a01:1", 1},
                                    {"64:ff9b::a02:1", 0},
                                    {"64:ff9b::a9fe:a9fe", 0},
                                    {"2002:808:808::1", 1},
                                    {"2002:a02:1::1", 0},
                                    {"fd00:ec2::254", 0}};

static void parse(const char *ip, apr_sockaddr_t *address)
{
    memset(address, 0, sizeof *address);
    if (strchr(ip, ':') != NULL) {
        address->family = APR_INET6;
        address->ipaddr_ptr = &address->sa.sin6.sin6_addr;
        address->ipaddr_len = sizeof address->sa.sin6.sin6_addr;
        inet_pton(AF_INET6, ip, address->ipaddr_ptr);
    } else {
        address->family = APR_INET;
        address->ipaddr_ptr = &address->sa.sin.sin_addr;
        address->ipaddr_len = sizeof address->sa.sin.sin_addr;
        inet_pton(AF_INET, ip, address->ipaddr_ptr);
    }
}

static void check_all(const mdl_http_policy_t *policy, const row_t *rows, size_t count,
                      const char *whose, apr_pool_t *p)
{
    for (size_t i = 0; i < count; i++) {
        apr_sockaddr_t address;

        parse(rows[i].ip, &address);
        is_int(mdl_http_address_allowed(policy, &address), rows[i].allowed,
               apr_psprintf(p, "%s is %s %s", rows[i].ip, rows[i].allowed ? "allowed" : "refused",
                            whose));
    }
}

static void add_network(apr_array_header_t *networks, const char *ip, const char *mask,
                        apr_pool_t *p)
{
    apr_ipsubnet_t *network;

    ok(apr_ipsubnet_create(&network, ip, mask, p) == APR_SUCCESS, "the network is parsed");
    APR_ARRAY_PUSH(networks, apr_ipsubnet_t *) = network;
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    apr_array_header_t *networks = apr_array_make(p, 5, sizeof(apr_ipsubnet_t *));
    mdl_http_policy_t policy;
    apr_sockaddr_t address;

    memset(&policy, 0, sizeof policy);
    check_all(&policy, by_registry, sizeof by_registry / sizeof by_registry[0],
              "by the special-purpose registries", p);

    add_network(networks, "127.0.0.0", "8", p);
    add_network(networks, "10.1.0.0", "16", p);
    add_network(networks, "::1", "128", p);
    add_network(networks, "64:ff9b::", "96", p);
    add_network(networks, "2002::", "16", p);
    policy.networks = networks;
    check_all(&policy, by_operator, sizeof by_operator / sizeof by_operator[0],
              "with the operator's networks", p);

    is_str(mdl_address_network("203.0.113.77", p), "203.0.113.0/24", "a network of IPv4");
    is_str(mdl_address_network("::ffff:203.0.113.77", p), "203.0.113.0/24", "also when mapped");
    is_str(mdl_address_network("2001:db8:1:2::3", p), "2001:db8:1::/48", "a network of IPv6");
    ok(mdl_address_network("localhost", p) == NULL, "a name has none");

    parse("8.8.8.8", &address);
    address.family = APR_UNIX;
    ok(!mdl_http_address_allowed(&policy, &address), "a local socket is refused");
    ok(!mdl_address_is_public(&address), "a local socket is not public");
    return tap_end(p);
}
