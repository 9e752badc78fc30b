#include "base/http/transfer.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/http/address.h"
#include "base/http/url.h"

#define USER_AGENT        "mod_downloads"
#define BUFFER_BYTES      16384L
#define MAX_HEADER_BYTES  (64 * 1024)
#define STALL_BYTES_PER_S 1024L
#define KEEPALIVE_S       60L

struct mdl_http_client_t {
    apr_pool_t *pool;
    const mdl_http_policy_t *policy;
    CURLM *multi;
    mdl_http_transfer_t *failed; /* could not begin; reported by the next run, oldest first */
};

/* --- the address --- */

static int ip_allowed(const mdl_http_policy_t *policy, int family, const void *ip)
{
    apr_sockaddr_t address;

    memset(&address, 0, sizeof address);
    if (family == AF_INET) {
        address.family = APR_INET;
        address.ipaddr_ptr = &address.sa.sin.sin_addr;
        address.ipaddr_len = sizeof address.sa.sin.sin_addr;
    } else if (family == AF_INET6) {
        address.family = APR_INET6;
        address.ipaddr_ptr = &address.sa.sin6.sin6_addr;
        address.ipaddr_len = sizeof address.sa.sin6.sin6_addr;
    } else {
        return 0;
    }
    memcpy(address.ipaddr_ptr, ip, (apr_size_t)address.ipaddr_len);
    return mdl_http_address_allowed(policy, &address);
}

static curl_socket_t on_open_socket(void *baton, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    mdl_http_transfer_t *transfer = baton;
    const void *ip = address->family == AF_INET6
                         ? (const void *)&((struct sockaddr_in6 *)&address->addr)->sin6_addr
                         : (const void *)&((struct sockaddr_in *)&address->addr)->sin_addr;

    if (purpose != CURLSOCKTYPE_IPCXN || !ip_allowed(transfer->policy, address->family, ip)) {
        if (inet_ntop(address->family, ip, transfer->refused_ip, sizeof transfer->refused_ip) ==
            NULL) {
            strcpy(transfer->refused_ip, "?");
        }
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void mdl_http_transfer_decide(mdl_http_transfer_t *transfer, mdl_http_result_t result,
                              const char *detail)
{
    if (transfer->detail == NULL) {
        transfer->result = result;
        transfer->detail = detail;
    }
}

static void transfer_decide_forbidden(mdl_http_transfer_t *transfer, const char *ip)
{
    char *host = NULL;

    curl_url_get(transfer->url, CURLUPART_HOST, &host, 0);
    mdl_http_transfer_decide(transfer, MDL_HTTP_ADDRESS_FORBIDDEN,
                             apr_psprintf(transfer->pool, "%s leads to %s, which is not allowed.",
                                          host != NULL ? host : "The name", ip));
    curl_free(host);
}

/* The socket callback is not called for a connection that is used again; this one is. */
static int on_connected(void *baton, char *remote, char *local, int remote_port, int local_port)
{
    mdl_http_transfer_t *transfer = baton;
    unsigned char ip[sizeof(struct in6_addr)];
    int family = strchr(remote, ':') != NULL ? AF_INET6 : AF_INET;

    (void)local;
    (void)remote_port;
    (void)local_port;
    if (inet_pton(family, remote, ip) != 1 || !ip_allowed(transfer->policy, family, ip)) {
        transfer_decide_forbidden(transfer, remote);
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* --- one request and its answer --- */

/*
 * Returning less than size ends the transfer.  That closes the connection, but the body of an error
 * or of a redirect may be endless.
 */
static size_t on_header(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_transfer_t *transfer = baton;
    size_t size = unit * count;
    long status = 0;

    transfer->header_bytes += size;
    if (transfer->header_bytes > MAX_HEADER_BYTES) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_REFUSED, "The source sent too many headers.");
        return 0;
    }
    if (transfer->answered || size == 0 || (data[0] != '\r' && data[0] != '\n')) {
        return size;
    }
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) {
        return size;
    }
    transfer->answered = 1;
    return transfer->on_head(transfer) && transfer->detail == NULL ? size : 0;
}

void mdl_http_transfer_end(mdl_http_transfer_t *transfer)
{
    if (transfer->easy != NULL) {
        curl_multi_remove_handle(transfer->client->multi, transfer->easy);
        curl_easy_cleanup(transfer->easy);
        transfer->easy = NULL;
    }
    curl_slist_free_all(transfer->headers);
    transfer->headers = NULL;
}

int mdl_http_transfer_header(mdl_http_transfer_t *transfer, const char *line)
{
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);

    if (longer != NULL) {
        transfer->headers = longer;
    }
    return longer != NULL;
}

static int transfer_set_guards(CURL *easy, mdl_http_transfer_t *transfer)
{
    const char *schemes = transfer->policy->allow_http ? "http,https" : "https";

    /* NULL would use a proxy from the environment, which would connect where we must not. */
    return curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           (transfer->policy->ca_file == NULL ||
            curl_easy_setopt(easy, CURLOPT_CAINFO, transfer->policy->ca_file) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer) == CURLE_OK;
}

static int transfer_set_limits(CURL *easy, mdl_http_transfer_t *transfer)
{
    const mdl_http_policy_t *policy = transfer->policy;
    long left = transfer->deadline ? (long)((transfer->deadline - mdl_clock_monotonic()) / 1000)
                                   : 0;

    /* 0 is libcurl's "no limit". */
    if (transfer->deadline && left < 1) {
        left = 1;
    }
    /* Without QUICK_EXIT a silent name server would hold up all transfers of this thread. */
    return curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, left) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)policy->connect_timeout_s) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES_PER_S) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)policy->stall_timeout_s) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S) == CURLE_OK;
}

static int transfer_set_request(CURL *easy, mdl_http_transfer_t *transfer)
{
    return curl_easy_setopt(easy, CURLOPT_CURLU, transfer->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, transfer->on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK;
}

/* A new handle each time: one that is used again keeps parts of the previous URL. */
void mdl_http_transfer_begin(mdl_http_transfer_t *transfer,
                             int (*more)(mdl_http_transfer_t *transfer))
{
    transfer->answered = 0;
    transfer->refused_ip[0] = '\0';
    transfer->header_bytes = 0;
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL || !transfer_set_guards(transfer->easy, transfer) ||
        !transfer_set_limits(transfer->easy, transfer) ||
        !transfer_set_request(transfer->easy, transfer) || !more(transfer) ||
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers) != CURLE_OK ||
        curl_multi_add_handle(transfer->client->multi, transfer->easy) != CURLM_OK) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_UNAVAILABLE, "A transfer could not be set up.");
    }
}

void mdl_http_transfer_decide_by_code(mdl_http_transfer_t *transfer, CURLcode code)
{
    const char *detail = curl_easy_strerror(code);
    curl_off_t connected = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &connected);
    /* To libcurl a connection that is cut within the headers is no error. */
    if (code == CURLE_OK && !transfer->answered) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_UNAVAILABLE, "The source's answer was cut.");
    } else if (code == CURLE_OK) {
        return;
    } else if (transfer->refused_ip[0] != '\0' && connected == 0) {
        transfer_decide_forbidden(transfer, transfer->refused_ip);
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_TIMEOUT, detail);
    } else if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY ||
               code == CURLE_BAD_CONTENT_ENCODING) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_REFUSED, detail);
    } else {
        mdl_http_transfer_decide(transfer, MDL_HTTP_UNAVAILABLE, detail);
    }
}

static void transfer_report(mdl_http_transfer_t *transfer)
{
    mdl_http_transfer_end(transfer);
    transfer->on_report(transfer);
    apr_pool_destroy(transfer->pool);
}

static apr_status_t transfer_cleanup(void *data)
{
    mdl_http_transfer_t *transfer = data;
    mdl_http_transfer_t **link = &transfer->client->failed;

    while (*link != NULL && *link != transfer) {
        link = &(*link)->next_failed;
    }
    if (*link != NULL) {
        *link = transfer->next_failed;
    }
    mdl_http_transfer_end(transfer);
    curl_url_cleanup(transfer->url);
    return APR_SUCCESS;
}

apr_pool_t *mdl_http_transfer_pool(mdl_http_client_t *client, const char *tag)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, client->pool);
    apr_pool_tag(pool, tag);
    return pool;
}

void mdl_http_transfer_init(mdl_http_transfer_t *transfer, mdl_http_client_t *client,
                            const mdl_http_policy_t *policy, apr_pool_t *pool)
{
    transfer->pool = pool;
    transfer->client = client;
    transfer->policy = policy != NULL ? policy : client->policy;
    if (transfer->policy->total_timeout_s > 0) {
        transfer->deadline = mdl_clock_monotonic() +
                             apr_time_from_sec(transfer->policy->total_timeout_s);
    }
    apr_pool_cleanup_register(pool, transfer, transfer_cleanup, apr_pool_cleanup_null);
}

static void transfer_append_failed(mdl_http_transfer_t *transfer)
{
    mdl_http_transfer_t **end = &transfer->client->failed;

    while (*end != NULL) {
        end = &(*end)->next_failed;
    }
    *end = transfer;
}

void mdl_http_transfer_start(mdl_http_transfer_t *transfer, const char *url,
                             int (*more)(mdl_http_transfer_t *transfer))
{
    const char *host;
    mdl_http_result_t result = mdl_http_url_parse(transfer->policy, NULL, url, &transfer->url,
                                                  &host, transfer->pool);

    if (result == MDL_HTTP_OK) {
        mdl_http_transfer_begin(transfer, more);
    } else {
        mdl_http_transfer_decide(transfer, result, "The URL is not one that may be called.");
    }
    if (transfer->detail != NULL) {
        transfer_append_failed(transfer);
    }
}

/* --- the client --- */

static apr_status_t global_cleanup(void *data)
{
    (void)data;
    curl_global_cleanup();
    return APR_SUCCESS;
}

apr_status_t mdl_http_global_init(apr_pool_t *p)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return APR_EGENERAL;
    }
    apr_pool_cleanup_register(p, NULL, global_cleanup, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

static apr_status_t client_cleanup(void *data)
{
    mdl_http_client_t *client = data;

    curl_multi_cleanup(client->multi);
    return APR_SUCCESS;
}

apr_status_t mdl_http_client_create(mdl_http_client_t **client, const mdl_http_policy_t *policy,
                                    apr_pool_t *p)
{
    apr_pool_t *pool;
    CURLM *multi = curl_multi_init();

    if (multi == NULL) {
        return APR_ENOMEM;
    }
    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_http_client");
    *client = apr_pcalloc(pool, sizeof **client);
    (*client)->pool = pool;
    (*client)->policy = policy;
    (*client)->multi = multi;
    apr_pool_cleanup_register(pool, *client, client_cleanup, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* A done() may begin a transfer that fails as well: that one is the next run's. */
static void client_report_failed(mdl_http_client_t *client)
{
    mdl_http_transfer_t *failed = client->failed;

    client->failed = NULL;
    while (failed != NULL) {
        mdl_http_transfer_t *transfer = failed;

        failed = transfer->next_failed;
        transfer->next_failed = NULL;
        transfer_report(transfer);
    }
}

void mdl_http_client_run(mdl_http_client_t *client, int timeout_ms)
{
    CURLMsg *message;
    int running, left;

    curl_multi_poll(client->multi, NULL, 0, client->failed != NULL ? 0 : timeout_ms, NULL);
    client_report_failed(client);
    curl_multi_perform(client->multi, &running);
    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        char *found = NULL;
        CURLcode code = message->data.result;

        if (message->msg == CURLMSG_DONE) {
            mdl_http_transfer_t *transfer;

            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
            transfer = (mdl_http_transfer_t *)(void *)found;
            transfer->on_ended(transfer, code);
            if (transfer->detail != NULL) {
                transfer_report(transfer);
            }
        }
    }
}

void mdl_http_client_wake(mdl_http_client_t *client)
{
    curl_multi_wakeup(client->multi);
}
