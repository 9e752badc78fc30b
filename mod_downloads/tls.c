#include "tls.h"

#include <string.h>
#include <strings.h>

#include <apr_network_io.h>
#include <http_ssl.h>

static const char *const loopback[][2] = {{"127.0.0.0", "8"}, {"::1", "128"}};

static int tls_is_loopback(apr_sockaddr_t *address, apr_pool_t *p)
{
    apr_ipsubnet_t *network;

    for (apr_size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
        if (apr_ipsubnet_create(&network, loopback[i][0], loopback[i][1], p) == APR_SUCCESS &&
            apr_ipsubnet_test(network, address)) {
            return 1;
        }
    }
    return 0;
}

static int header_is_from_proxy(void *found, const char *name, const char *value)
{
    (void)value;
    *(int *)found = strncasecmp(name, "X-Forwarded-", 12) == 0 || strcasecmp(name, "Via") == 0 ||
                    strcasecmp(name, "Forwarded") == 0 || strcasecmp(name, "X-Real-IP") == 0;
    return !*(int *)found;
}

/* mod_remoteip removes the header that it has read and changes the client's address. */
static int tls_is_forwarded(request_rec *r, const conn_rec *c)
{
    int found = 0;

    apr_table_do(header_is_from_proxy, &found, r->headers_in, NULL);
    return found || strcmp(r->useragent_ip, c->client_ip) != 0;
}

static int tls_proxy_vouches(request_rec *r, const conn_rec *c, const apr_array_header_t *proxies)
{
    /* Two headers are joined by httpd, and a list's first value may be the client's own word. */
    const char *scheme = apr_table_get(r->headers_in, "X-Forwarded-Proto");

    for (int i = 0; scheme != NULL && strcasecmp(scheme, "https") == 0 && i < proxies->nelts; i++) {
        if (apr_ipsubnet_test(APR_ARRAY_IDX(proxies, i, apr_ipsubnet_t *), c->client_addr)) {
            return 1;
        }
    }
    return 0;
}

int mdl_tls_admits(request_rec *r, const mdl_settings_t *settings)
{
    /* A stream of HTTP/2 has a connection of its own. */
    conn_rec *c = r->connection->master != NULL ? r->connection->master : r->connection;

    return !settings->require_tls || ap_ssl_conn_is_ssl(c) ||
           tls_proxy_vouches(r, c, settings->tls_proxies) ||
           (tls_is_loopback(c->client_addr, r->pool) && !tls_is_forwarded(r, c));
}
