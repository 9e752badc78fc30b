/*
 * One request and its response on a client's multi handle, under the guards of base/http/client.h:
 * what fetches and posts share.  Private to base/http.
 */
#ifndef MDL_BASE_HTTP_TRANSFER_H
#define MDL_BASE_HTTP_TRANSFER_H

#include <netinet/in.h>

#include <curl/curl.h>

#include "base/http/client.h"

typedef struct mdl_http_transfer_t mdl_http_transfer_t;

struct mdl_http_transfer_t {
    apr_pool_t *pool; /* its own, below the client's; destroyed after on_report */
    mdl_http_client_t *client;
    const mdl_http_policy_t *policy;
    apr_time_t deadline; /* by mdl_clock_monotonic; 0: none */
    CURLU *url;
    const char *host; /* of url, or of a forbidden redirect target; NULL: none that can be shown */
    mdl_http_transfer_t *next_failed;

    /** Whether the body is accepted; called when the final response's headers are complete. */
    int (*on_head)(mdl_http_transfer_t *transfer);
    /** libcurl's write callback, whose baton is the transfer. */
    size_t (*on_body)(char *data, size_t unit, size_t count, void *transfer);
    /** Decides the result once the request has ended, or begins another one. */
    void (*on_ended)(mdl_http_transfer_t *transfer, CURLcode code);
    /** Tells the result to the caller. */
    void (*on_report)(mdl_http_transfer_t *transfer);

    /* Of the running request. */
    CURL *easy;
    struct curl_slist *headers;
    int answered;                      /* the final response's headers are complete */
    char refused_ip[INET6_ADDRSTRLEN]; /* the last address that was refused, or "" */
    apr_size_t header_bytes;

    long status;        /* of the final response; 0: there is none */
    int retry_after_s;  /* of that response; -1: not given */
    const char *reason; /* a sentence about the host, without an address; set with result, NULL
                           while undecided */
    mdl_http_result_t result;
};

/** Initializes a transfer in pool, from mdl_http_transfer_pool, that ends when the pool is
    destroyed.  policy must live as long; NULL: the client's. */
void mdl_http_transfer_init(mdl_http_transfer_t *transfer, mdl_http_client_t *client,
                            const mdl_http_policy_t *policy, apr_pool_t *pool);

/** Makes the pool of a transfer. */
apr_pool_t *mdl_http_transfer_pool(mdl_http_client_t *client, const char *tag);

/** Decides the result, unless it is decided already.  predicate says what the host did, such as
    "broke off". */
void mdl_http_transfer_decide(mdl_http_transfer_t *transfer, mdl_http_result_t result,
                              const char *predicate);

/** The host's name, or "The host" if it can't be shown. */
const char *mdl_http_transfer_host(const mdl_http_transfer_t *transfer);

/** The reason for the operator's log, which includes the forbidden address. */
const char *mdl_http_transfer_detail(const mdl_http_transfer_t *transfer);

/** Decides the result by libcurl's code, unless that is success. */
void mdl_http_transfer_decide_by_code(mdl_http_transfer_t *transfer, CURLcode code);

/** Adds a header to the request that is about to begin; 0 without memory. */
int mdl_http_transfer_header(mdl_http_transfer_t *transfer, const char *line);

/** Begins a request: makes a handle with all guards, which more() completes.  more() returns 0 on
    failure.  A failure decides the result. */
void mdl_http_transfer_begin(mdl_http_transfer_t *transfer,
                             int (*more)(mdl_http_transfer_t *transfer));

/** Ends the running request. */
void mdl_http_transfer_end(mdl_http_transfer_t *transfer);

/** Checks a URL and begins a request to it.  The next mdl_http_client_run reports a failure. */
void mdl_http_transfer_start(mdl_http_transfer_t *transfer, const char *url,
                             int (*more)(mdl_http_transfer_t *transfer));

#endif
