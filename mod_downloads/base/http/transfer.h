/*
 * One request and its answer on a client's multi handle, under the guards of base/http/client.h:
 * what fetches and posts have in common.  For base/http_*.c alone.
 */
#ifndef MDL_BASE_HTTP_TRANSFER_H
#define MDL_BASE_HTTP_TRANSFER_H

#include <netinet/in.h>

#include <curl/curl.h>

#include "base/http/client.h"

typedef struct mdl_http_transfer_t mdl_http_transfer_t;

struct mdl_http_transfer_t {
    apr_pool_t *pool; /* its own, of the client; destroyed behind report */
    mdl_http_client_t *client;
    const mdl_http_policy_t *policy;
    apr_time_t deadline; /* 0: none */
    CURLU *url;
    mdl_http_transfer_t *next_failed;

    /** The headers of the final response are complete: whether the body is taken. */
    int (*judge)(mdl_http_transfer_t *transfer);
    /** libcurl's write callback, whose baton is the transfer. */
    size_t (*body)(char *data, size_t unit, size_t count, void *transfer);
    /** It has ended: decides, or begins anew. */
    void (*ended)(mdl_http_transfer_t *transfer, CURLcode code);
    /** Tells the caller the result. */
    void (*report)(mdl_http_transfer_t *transfer);

    /* Of the request that is under way. */
    CURL *easy;
    struct curl_slist *headers;
    int answered;                      /* the final response's headers are complete */
    char refused_ip[INET6_ADDRSTRLEN]; /* the last address that was not connected to, or "" */
    apr_size_t header_bytes;

    const char *detail; /* set together with result; NULL while nothing is decided */
    mdl_http_result_t result;
};

/** Fills in a transfer that lives in pool (a pool of the client's that it is to own), which from
    then on ends with it. */
void mdl_http_transfer_init(mdl_http_transfer_t *transfer, mdl_http_client_t *client,
                            const mdl_http_policy_t *policy, apr_pool_t *pool);

/** A pool for a transfer. */
apr_pool_t *mdl_http_transfer_pool(mdl_http_client_t *client, const char *tag);

/** Decides the result, unless that was done before. */
void mdl_http_transfer_decide(mdl_http_transfer_t *transfer, mdl_http_result_t result,
                              const char *detail);

/** Decides by what libcurl says, when it was no success. */
void mdl_http_transfer_decide_by_code(mdl_http_transfer_t *transfer, CURLcode code);

/** Adds a request header before a begin. */
int mdl_http_transfer_header(mdl_http_transfer_t *transfer, const char *line);

/** Makes the handle, with every guard, and hands it to more for what is the request's own; then it
    runs.  Decides when that fails. */
void mdl_http_transfer_begin(mdl_http_transfer_t *transfer,
                             int (*more)(mdl_http_transfer_t *transfer));

/** Ends the request that is under way. */
void mdl_http_transfer_end(mdl_http_transfer_t *transfer);

/** Checks a URL and begins with it.  What that decides already is reported by the next run. */
void mdl_http_transfer_start(mdl_http_transfer_t *transfer, const char *url,
                             int (*more)(mdl_http_transfer_t *transfer));

#endif
