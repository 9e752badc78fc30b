#include "base/http/transfer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/http/address.h"
#include "base/http/easy.h"
#include "base/http/response.h"
#include "base/http/url.h"

#define BUFFER_BYTES      16384L
#define STALL_BYTES_PER_S 1024L

struct mdl_http_client_t {
    apr_pool_t *pool;
    const mdl_http_policy_t *policy;
    CURLM *multi;
    mdl_http_transfer_t *failed; /* transfers that could not begin; the next run reports them,
                                    oldest first */
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

const char *mdl_http_transfer_host(const mdl_http_transfer_t *transfer)
{
    return transfer->host != NULL ? transfer->host : "The host";
}

void mdl_http_transfer_decide(mdl_http_transfer_t *transfer, mdl_http_result_t result,
                              const char *predicate)
{
    if (transfer->reason == NULL) {
        transfer->result = result;
        transfer->reason = apr_pstrcat(transfer->pool, mdl_http_transfer_host(transfer), " ",
                                       predicate, ".", NULL);
    }
}

const char *mdl_http_transfer_detail(const mdl_http_transfer_t *transfer)
{
    return transfer->result == MDL_HTTP_ADDRESS_FORBIDDEN
               ? apr_pstrcat(transfer->pool, transfer->reason, " (", transfer->refused_ip, ")",
                             NULL)
               : transfer->reason;
}

static void transfer_decide_forbidden(mdl_http_transfer_t *transfer)
{
    mdl_http_transfer_decide(transfer, MDL_HTTP_ADDRESS_FORBIDDEN,
                             "leads to an address that is not allowed");
}

/* Unlike the socket callback, this is also called for a reused connection. */
static int on_connected(void *baton, char *remote, char *local, int remote_port, int local_port)
{
    mdl_http_transfer_t *transfer = baton;
    unsigned char ip[sizeof(struct in6_addr)];
    int family = strchr(remote, ':') != NULL ? AF_INET6 : AF_INET;

    (void)local;
    (void)remote_port;
    (void)local_port;
    if (inet_pton(family, remote, ip) != 1 || !ip_allowed(transfer->policy, family, ip)) {
        apr_cpystrn(transfer->refused_ip, remote, sizeof transfer->refused_ip);
        transfer_decide_forbidden(transfer);
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* --- one request and its response --- */

/*
 * Returning less than size ends the transfer and closes the connection: the body of an error or
 * redirect may be endless.
 */
static size_t on_header(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_transfer_t *transfer = baton;
    size_t size = unit * count;

    transfer->header_bytes += size;
    if (transfer->header_bytes > MDL_HTTP_MAX_HEADERS) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_REFUSED, "sent too many headers");
        return 0;
    }
    if (transfer->answered || size == 0 || (data[0] != '\r' && data[0] != '\n')) {
        return size;
    }
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &transfer->status);
    if (transfer->status < 200) {
        transfer->status = 0;
        return size;
    }
    transfer->answered = 1;
    transfer->retry_after_s = mdl_http_response_retry_after(transfer->easy);
    return transfer->on_head(transfer) && transfer->reason == NULL ? size : 0;
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
    return mdl_http_easy_guard(easy, transfer->policy->allow_http, transfer->policy->ca_file) &&
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
    return curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, left) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)policy->connect_timeout_s) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES_PER_S) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)policy->stall_timeout_s) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES) == CURLE_OK;
}

static int transfer_set_request(CURL *easy, mdl_http_transfer_t *transfer)
{
    return curl_easy_setopt(easy, CURLOPT_CURLU, transfer->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, transfer->on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK;
}

/* Uses a new handle each time: a reused handle keeps parts of the previous URL. */
void mdl_http_transfer_begin(mdl_http_transfer_t *transfer,
                             int (*more)(mdl_http_transfer_t *transfer))
{
    transfer->answered = 0;
    transfer->status = 0;
    transfer->retry_after_s = -1;
    transfer->refused_ip[0] = '\0';
    transfer->header_bytes = 0;
    transfer->easy = curl_easy_init();
    if (transfer->easy == NULL || !transfer_set_guards(transfer->easy, transfer) ||
        !transfer_set_limits(transfer->easy, transfer) ||
        !transfer_set_request(transfer->easy, transfer) || !more(transfer) ||
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers) != CURLE_OK ||
        curl_multi_add_handle(transfer->client->multi, transfer->easy) != CURLM_OK) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_UNAVAILABLE, "could not be called");
    }
}

/* --- libcurl's result --- */

typedef struct {
    mdl_http_result_t result;
    const char *predicate;
} failure_t;

static const char *timeout_fault(const mdl_http_transfer_t *transfer, int began)
{
    if (!began) {
        return "took no connection in time";
    }
    if (!transfer->answered) {
        return "did not answer in time";
    }
    return transfer->deadline != 0 && mdl_clock_monotonic() >= transfer->deadline
               ? "did not send everything in time"
               : "sent too slowly";
}

static failure_t failure_of(const mdl_http_transfer_t *transfer, CURLcode code)
{
    long error = 0;
    curl_off_t began = 0; /* also set for a reused connection */

    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &began);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return (failure_t){MDL_HTTP_NAME_UNKNOWN, "has no address: the name can't be resolved"};
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &error);
        return (failure_t){MDL_HTTP_UNAVAILABLE, error == ECONNREFUSED
                                                     ? "refuses connections on that port"
                                                     : "can't be reached"};
    case CURLE_PEER_FAILED_VERIFICATION:
        return (failure_t){MDL_HTTP_CERTIFICATE, mdl_http_easy_certificate_fault(transfer->easy)};
    case CURLE_SSL_CONNECT_ERROR:
        return (failure_t){MDL_HTTP_UNAVAILABLE, "failed in the TLS handshake"};
    case CURLE_OPERATION_TIMEDOUT:
        return (failure_t){MDL_HTTP_TIMEOUT, timeout_fault(transfer, began != 0)};
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return (failure_t){MDL_HTTP_REFUSED, "sent what is no answer of HTTP"};
    default:
        return (failure_t){MDL_HTTP_UNAVAILABLE, began != 0 ? "broke off" : "can't be reached"};
    }
}

void mdl_http_transfer_decide_by_code(mdl_http_transfer_t *transfer, CURLcode code)
{
    curl_off_t connected = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &connected);
    /* libcurl reports no error when the connection is cut within the headers. */
    if (code == CURLE_OK && !transfer->answered) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_UNAVAILABLE, "broke off");
    } else if (code != CURLE_OK && transfer->refused_ip[0] != '\0' && connected == 0) {
        transfer_decide_forbidden(transfer);
    } else if (code != CURLE_OK) {
        failure_t failure = failure_of(transfer, code);

        mdl_http_transfer_decide(transfer, failure.result, failure.predicate);
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
    transfer->retry_after_s = -1;
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
    mdl_http_result_t result = mdl_http_url_parse(transfer->policy, NULL, url, &transfer->url,
                                                  &transfer->host, transfer->pool);

    if (result == MDL_HTTP_OK) {
        mdl_http_transfer_begin(transfer, more);
    } else {
        mdl_http_transfer_decide(transfer, result, "is not one that may be called");
    }
    if (transfer->reason != NULL) {
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

/* A done() may begin another transfer that fails; the next run reports it. */
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
            if (transfer->reason != NULL) {
                transfer_report(transfer);
            }
        }
    }
}

void mdl_http_client_wake(mdl_http_client_t *client)
{
    curl_multi_wakeup(client->multi);
}
