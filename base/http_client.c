#include "base/http_client.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>
#include <curl/curl.h>

#include "base/http_response.h"
#include "base/http_url.h"

#define USER_AGENT        "mod_downloads"
#define BUFFER_BYTES      16384L
#define MAX_HEADER_BYTES  (64 * 1024)
#define STALL_BYTES_PER_S 1024L
#define KEEPALIVE_S       60L

struct mdl_http_client_t {
    apr_pool_t *pool;
    const mdl_http_policy_t *policy;
    CURLM *multi;
    mdl_http_fetch_t *failed; /* could not begin; reported by the next run, oldest first */
};

/* What the response headers, or a callback, made of the transfer that is running. */
typedef enum { NEXT_FINISH, NEXT_REDIRECT, NEXT_RESTART } next_t;

struct mdl_http_fetch_t {
    apr_pool_t *pool;
    mdl_http_client_t *client;
    mdl_http_fetch_t *next_failed;
    mdl_http_callbacks_t callbacks;
    void *baton;
    apr_time_t deadline; /* 0: none */
    int redirects;

    const char *etag; /* NULL: from the beginning */
    apr_int64_t offset;
    apr_int64_t received; /* of the body that was accepted */
    apr_int64_t total;

    CURLU *url;
    CURL *easy;
    struct curl_slist *headers;
    next_t next;
    int answered; /* the final response's headers are complete */
    int address_refused;
    apr_size_t header_bytes;

    const char *detail; /* set together with result; NULL while nothing is decided */
    mdl_http_result_t result;
};

/* --- The address --------------------------------------------------------------------------- */

static int ip_allowed(const mdl_http_policy_t *policy, int family, const void *ip)
{
    apr_sockaddr_t address;

    memset(&address, 0, sizeof(address));
    if (family == AF_INET) {
        address.family = APR_INET;
        address.ipaddr_ptr = &address.sa.sin.sin_addr;
        address.ipaddr_len = sizeof(address.sa.sin.sin_addr);
    } else if (family == AF_INET6) {
        address.family = APR_INET6;
        address.ipaddr_ptr = &address.sa.sin6.sin6_addr;
        address.ipaddr_len = sizeof(address.sa.sin6.sin6_addr);
    } else {
        return 0;
    }
    memcpy(address.ipaddr_ptr, ip, (apr_size_t)address.ipaddr_len);
    return mdl_http_address_allowed(policy, &address);
}

static curl_socket_t on_open_socket(void *baton, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    mdl_http_fetch_t *fetch = baton;
    const void *ip = address->family == AF_INET6
                         ? (const void *)&((struct sockaddr_in6 *)&address->addr)->sin6_addr
                         : (const void *)&((struct sockaddr_in *)&address->addr)->sin_addr;

    if (purpose != CURLSOCKTYPE_IPCXN || !ip_allowed(fetch->client->policy, address->family, ip)) {
        fetch->address_refused = 1;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void decide(mdl_http_fetch_t *fetch, mdl_http_result_t result, const char *detail)
{
    if (!fetch->detail) {
        fetch->result = result;
        fetch->detail = detail;
    }
}

/* The socket callback is silent on a connection that is used again; this one is not. */
static int on_connected(void *baton, char *remote, char *local, int remote_port, int local_port)
{
    mdl_http_fetch_t *fetch = baton;
    unsigned char ip[sizeof(struct in6_addr)];
    int family = strchr(remote, ':') ? AF_INET6 : AF_INET;

    (void)local;
    (void)remote_port;
    (void)local_port;
    if (inet_pton(family, remote, ip) != 1 || !ip_allowed(fetch->client->policy, family, ip)) {
        decide(fetch, MDL_HTTP_ADDRESS_FORBIDDEN, "The connection leads to a refused address.");
        return CURL_PREREQFUNC_ABORT;
    }
    return CURL_PREREQFUNC_OK;
}

/* --- The response -------------------------------------------------------------------------- */

static int is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void decide_by_status(mdl_http_fetch_t *fetch, long status)
{
    const char *detail = apr_psprintf(fetch->pool, "The source answered with status %ld.", status);

    if (status == 404 || status == 410) {
        decide(fetch, MDL_HTTP_NOT_FOUND, detail);
    } else if (status >= 500 || status == 408 || status == 425 || status == 429) {
        decide(fetch, MDL_HTTP_UNAVAILABLE, detail);
    } else {
        decide(fetch, MDL_HTTP_REFUSED, detail);
    }
}

static void hand_over_head(mdl_http_fetch_t *fetch)
{
    const char *etag = mdl_http_response_header(fetch->easy, "ETag", 0);
    mdl_http_head_t head;

    head.offset = fetch->offset;
    head.total = fetch->total;
    head.etag = mdl_http_etag_is_strong(etag) ? apr_pstrdup(fetch->pool, etag) : NULL;
    head.content_type = apr_pstrdup(fetch->pool,
                                    mdl_http_response_header(fetch->easy, "Content-Type", 0));
    if (fetch->callbacks.head(fetch->baton, &head) != APR_SUCCESS) {
        decide(fetch, MDL_HTTP_STOPPED, "The caller stopped it.");
    }
}

/* Decides, once the headers are complete, whether the body is taken. */
static void judge_response(mdl_http_fetch_t *fetch)
{
    apr_int64_t length;
    long status = 0;

    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    if (is_redirect(status)) {
        fetch->next = NEXT_REDIRECT;
    } else if (status == 416 && fetch->etag) {
        fetch->next = NEXT_RESTART;
    } else if (status != 200 && !(status == 206 && fetch->etag)) {
        decide_by_status(fetch, status);
    } else if (mdl_http_response_is_encoded(fetch->easy)) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent an encoded body.");
    } else if (!mdl_http_response_length(fetch->easy, &length)) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent a body without a length.");
    } else if (status == 206 && !mdl_http_response_is_rest(fetch->easy, fetch->offset, fetch->etag,
                                                           length, &fetch->total)) {
        fetch->next = NEXT_RESTART;
    } else {
        if (status == 200) {
            fetch->offset = 0;
            fetch->total = length;
        }
        if (fetch->total > fetch->client->policy->max_size) {
            decide(fetch, MDL_HTTP_TOO_LARGE, "The source announced more than the limit.");
            return;
        }
        hand_over_head(fetch);
    }
}

/*
 * Returning less than size ends the transfer.  That costs the connection, but the body of an error
 * or of a redirect may be endless.
 */
static size_t on_header(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_fetch_t *fetch = baton;
    size_t size = unit * count;
    long status = 0;

    fetch->header_bytes += size;
    if (fetch->header_bytes > MAX_HEADER_BYTES) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent too many headers.");
        return 0;
    }
    if (fetch->answered || size == 0 || (data[0] != '\r' && data[0] != '\n')) {
        return size;
    }
    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) {
        return size;
    }
    fetch->answered = 1;
    judge_response(fetch);
    return fetch->detail || fetch->next != NEXT_FINISH ? 0 : size;
}

static size_t on_body(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_fetch_t *fetch = baton;
    size_t size = unit * count;

    fetch->received += (apr_int64_t)size;
    if (fetch->offset + fetch->received > fetch->client->policy->max_size) {
        decide(fetch, MDL_HTTP_TOO_LARGE, "The source sent more than the limit.");
    } else if (fetch->total >= 0 && fetch->offset + fetch->received > fetch->total) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent more than it announced.");
    } else if (fetch->callbacks.body(fetch->baton, data, size) != APR_SUCCESS) {
        decide(fetch, MDL_HTTP_STOPPED, "The caller stopped it.");
    }
    return fetch->detail ? 0 : size;
}

/* --- One transfer: a request and its answer ------------------------------------------------ */

static void transfer_end(mdl_http_fetch_t *fetch)
{
    if (fetch->easy) {
        curl_multi_remove_handle(fetch->client->multi, fetch->easy);
        curl_easy_cleanup(fetch->easy);
        curl_slist_free_all(fetch->headers);
        fetch->easy = NULL;
        fetch->headers = NULL;
    }
}

static int set_range(mdl_http_fetch_t *fetch)
{
    const char *lines[] = {
        apr_psprintf(fetch->pool, "Range: bytes=%" APR_INT64_T_FMT "-", fetch->offset),
        apr_psprintf(fetch->pool, "If-Range: %s", fetch->etag)};

    for (size_t i = 0; i < 2; i++) {
        struct curl_slist *longer = curl_slist_append(fetch->headers, lines[i]);

        if (!longer) {
            return 0;
        }
        fetch->headers = longer;
    }
    return curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers) == CURLE_OK;
}

static int set_guards(CURL *easy, mdl_http_fetch_t *fetch)
{
    const char *schemes = fetch->client->policy->allow_http ? "http,https" : "https";

    /* NULL would take a proxy from the environment, and a proxy would connect for us. */
    return curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, schemes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQDATA, fetch) == CURLE_OK;
}

static int set_limits(CURL *easy, mdl_http_fetch_t *fetch)
{
    const mdl_http_policy_t *policy = fetch->client->policy;
    long left = fetch->deadline ? (long)((fetch->deadline - apr_time_now()) / 1000) : 0;

    /* 0 is libcurl's "no limit". */
    if (fetch->deadline && left < 1) {
        left = 1;
    }
    /* Without QUICK_EXIT a name server that is silent holds up every transfer of this thread. */
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

static int set_request(CURL *easy, mdl_http_fetch_t *fetch)
{
    return curl_easy_setopt(easy, CURLOPT_CURLU, fetch->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, fetch) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch) == CURLE_OK;
}

/* A new handle each time: one that is used again keeps parts of the URL before. */
static void transfer_begin(mdl_http_fetch_t *fetch)
{
    fetch->next = NEXT_FINISH;
    fetch->answered = 0;
    fetch->address_refused = 0;
    fetch->header_bytes = 0;
    fetch->received = 0;
    fetch->total = -1;
    fetch->easy = curl_easy_init();
    if (!fetch->easy || !set_guards(fetch->easy, fetch) || !set_limits(fetch->easy, fetch) ||
        !set_request(fetch->easy, fetch) || (fetch->etag && !set_range(fetch)) ||
        curl_multi_add_handle(fetch->client->multi, fetch->easy) != CURLM_OK) {
        decide(fetch, MDL_HTTP_UNAVAILABLE, "A transfer could not be set up.");
    }
}

/* --- A fetch: transfers until there is a result -------------------------------------------- */

static void follow_redirect(mdl_http_fetch_t *fetch)
{
    const char *location = mdl_http_response_header(fetch->easy, "Location", 0);
    const char *host;
    CURLU *url;
    mdl_http_result_t result;

    if (!location) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent a redirect without a target.");
        return;
    }
    if (fetch->redirects++ >= fetch->client->policy->max_redirects) {
        decide(fetch, MDL_HTTP_REFUSED, "The source sent too many redirects.");
        return;
    }
    result = mdl_http_url_parse(fetch->client->policy, fetch->url, location, &url, &host,
                                fetch->pool);
    if (result != MDL_HTTP_OK) {
        decide(fetch, result, "The source redirects to where fetches may not go.");
        return;
    }
    transfer_end(fetch);
    curl_url_cleanup(fetch->url);
    fetch->url = url;
    transfer_begin(fetch);
}

static void restart_from_zero(mdl_http_fetch_t *fetch)
{
    transfer_end(fetch);
    fetch->etag = NULL;
    fetch->offset = 0;
    transfer_begin(fetch);
}

static void decide_by_code(mdl_http_fetch_t *fetch, CURLcode code)
{
    const char *detail = curl_easy_strerror(code);
    curl_off_t connected = 0;

    curl_easy_getinfo(fetch->easy, CURLINFO_CONNECT_TIME_T, &connected);
    /* A connection that is cut within the headers is no error to libcurl. */
    if (code == CURLE_OK && !fetch->answered) {
        decide(fetch, MDL_HTTP_UNAVAILABLE, "The source's answer was cut.");
    } else if (code == CURLE_OK && fetch->total >= 0 &&
               fetch->offset + fetch->received != fetch->total) {
        decide(fetch, MDL_HTTP_UNAVAILABLE, "The source sent less than it announced.");
    } else if (code == CURLE_OK) {
        decide(fetch, MDL_HTTP_OK, "The body is complete.");
    } else if (fetch->address_refused && connected == 0) {
        decide(fetch, MDL_HTTP_ADDRESS_FORBIDDEN, "The name leads to a refused address.");
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        decide(fetch, MDL_HTTP_TIMEOUT, detail);
    } else if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY ||
               code == CURLE_BAD_CONTENT_ENCODING) {
        decide(fetch, MDL_HTTP_REFUSED, detail);
    } else {
        decide(fetch, MDL_HTTP_UNAVAILABLE, detail);
    }
}

static void fetch_done(mdl_http_fetch_t *fetch)
{
    transfer_end(fetch);
    fetch->callbacks.done(fetch->baton, fetch->result, fetch->detail);
    apr_pool_destroy(fetch->pool);
}

static void transfer_done(mdl_http_fetch_t *fetch, CURLcode code)
{
    if (!fetch->detail && fetch->next == NEXT_REDIRECT) {
        follow_redirect(fetch);
    } else if (!fetch->detail && fetch->next == NEXT_RESTART) {
        restart_from_zero(fetch);
    } else {
        decide_by_code(fetch, code);
    }
    if (fetch->detail) {
        fetch_done(fetch);
    }
}

static apr_status_t fetch_cleanup(void *data)
{
    mdl_http_fetch_t *fetch = data;
    mdl_http_fetch_t **link = &fetch->client->failed;

    while (*link && *link != fetch) {
        link = &(*link)->next_failed;
    }
    if (*link) {
        *link = fetch->next_failed;
    }
    transfer_end(fetch);
    curl_url_cleanup(fetch->url);
    return APR_SUCCESS;
}

mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url, apr_int64_t offset,
                                 const char *etag, const mdl_http_callbacks_t *callbacks,
                                 void *baton)
{
    mdl_http_result_t result;
    mdl_http_fetch_t **end = &client->failed;
    mdl_http_fetch_t *fetch;
    const char *host;
    apr_pool_t *pool;

    apr_pool_create(&pool, client->pool);
    apr_pool_tag(pool, "mdl_http_fetch");
    fetch = apr_pcalloc(pool, sizeof(*fetch));
    fetch->pool = pool;
    fetch->client = client;
    fetch->callbacks = *callbacks;
    fetch->baton = baton;
    if (client->policy->total_timeout_s > 0) {
        fetch->deadline = apr_time_now() + apr_time_from_sec(client->policy->total_timeout_s);
    }
    if (offset > 0 && mdl_http_etag_is_strong(etag)) {
        fetch->offset = offset;
        fetch->etag = apr_pstrdup(pool, etag);
    }
    apr_pool_cleanup_register(pool, fetch, fetch_cleanup, apr_pool_cleanup_null);

    result = mdl_http_url_parse(client->policy, NULL, url, &fetch->url, &host, pool);
    if (result == MDL_HTTP_OK) {
        transfer_begin(fetch);
    } else {
        decide(fetch, result, "The URL is not one that may be fetched.");
    }
    if (fetch->detail) {
        while (*end) {
            end = &(*end)->next_failed;
        }
        *end = fetch;
    }
    return fetch;
}

void mdl_http_cancel(mdl_http_fetch_t *fetch)
{
    apr_pool_destroy(fetch->pool);
}

/* --- The client ---------------------------------------------------------------------------- */

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

    if (!multi) {
        return APR_ENOMEM;
    }
    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_http_client");
    *client = apr_pcalloc(pool, sizeof(**client));
    (*client)->pool = pool;
    (*client)->policy = policy;
    (*client)->multi = multi;
    apr_pool_cleanup_register(pool, *client, client_cleanup, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* A done() may begin a fetch that fails as well: that one is the next run's. */
static void report_failed(mdl_http_client_t *client)
{
    mdl_http_fetch_t *failed = client->failed;

    client->failed = NULL;
    while (failed) {
        mdl_http_fetch_t *fetch = failed;

        failed = fetch->next_failed;
        fetch->next_failed = NULL;
        fetch_done(fetch);
    }
}

void mdl_http_client_run(mdl_http_client_t *client, int timeout_ms)
{
    CURLMsg *message;
    int running, left;

    curl_multi_poll(client->multi, NULL, 0, client->failed ? 0 : timeout_ms, NULL);
    report_failed(client);
    curl_multi_perform(client->multi, &running);
    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        char *fetch = NULL;
        CURLcode code = message->data.result;

        if (message->msg == CURLMSG_DONE) {
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &fetch);
            transfer_done((mdl_http_fetch_t *)(void *)fetch, code);
        }
    }
}

void mdl_http_client_wake(mdl_http_client_t *client)
{
    curl_multi_wakeup(client->multi);
}
