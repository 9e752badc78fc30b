#include "base/http/post.h"

#include <string.h>

#include <apr_strings.h>

#include "base/http/response.h"
#include "base/http/transfer.h"

#define FIRST_ROOM 4096

struct mdl_http_post_t {
    mdl_http_transfer_t transfer; /* must be first: post_of converts its address */
    mdl_http_post_done_fn *done;
    void *baton;
    apr_array_header_t *headers;
    const char *request;
    mdl_http_response_t response;
    char *body;
    apr_size_t room; /* of body */
};

static mdl_http_post_t *post_of(mdl_http_transfer_t *transfer)
{
    return (mdl_http_post_t *)(void *)transfer;
}

static int post_on_head(mdl_http_transfer_t *transfer)
{
    if (transfer->status >= 300 && transfer->status < 400) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_REFUSED,
                                 "answered with a redirect, which is not followed");
    } else if (mdl_http_response_is_encoded(transfer->easy)) {
        mdl_http_transfer_decide(transfer, MDL_HTTP_REFUSED, "sent an encoded answer");
    }
    return 1;
}

/* Grows the body's buffer to at least needed bytes and a NUL. */
static void post_make_room(mdl_http_post_t *post, apr_size_t needed)
{
    char *larger;

    if (needed < post->room) {
        return;
    }
    while (needed >= post->room) {
        post->room = post->room ? post->room * 2 : FIRST_ROOM;
    }
    larger = apr_palloc(post->transfer.pool, post->room);
    if (post->body != NULL) {
        memcpy(larger, post->body, post->response.length);
    }
    post->body = larger;
}

static size_t post_on_body(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_post_t *post = baton;
    size_t size = unit * count;
    size_t left = (size_t)post->transfer.policy->max_size - post->response.length;
    size_t taken = size < left ? size : left;

    post_make_room(post, post->response.length + taken);
    memcpy(post->body + post->response.length, data, taken);
    post->response.length += taken;
    if (taken < size) {
        mdl_http_transfer_decide(&post->transfer, MDL_HTTP_TOO_LARGE, "sent too large an answer");
        return 0;
    }
    return size;
}

static void post_on_ended(mdl_http_transfer_t *transfer, CURLcode code)
{
    mdl_http_transfer_decide_by_code(transfer, code);
    mdl_http_transfer_decide(transfer, MDL_HTTP_OK, "has answered");
}

static void post_on_report(mdl_http_transfer_t *transfer)
{
    mdl_http_post_t *post = post_of(transfer);

    post->response.result = transfer->result;
    post->response.reason = transfer->reason;
    post->response.detail = mdl_http_transfer_detail(transfer);
    post->response.status = (int)transfer->status;
    post->response.retry_after_s = transfer->retry_after_s;
    if (post->body != NULL) {
        post->body[post->response.length] = '\0';
        post->response.body = post->body;
    }
    post->done(post->baton, &post->response);
}

static int set_headers(mdl_http_transfer_t *transfer, const apr_array_header_t *lines)
{
    int done = 1;

    for (int i = 0; i < lines->nelts && done; i++) {
        done = mdl_http_transfer_header(transfer, APR_ARRAY_IDX(lines, i, const char *));
    }
    return done;
}

/* "Expect:" without a value keeps libcurl from waiting for a 100. */
static int set_post(mdl_http_transfer_t *transfer)
{
    const mdl_http_post_t *post = post_of(transfer);

    return mdl_http_transfer_header(transfer, "Content-Type: application/json") &&
           mdl_http_transfer_header(transfer, "Accept: application/json") &&
           mdl_http_transfer_header(transfer, "Expect:") && set_headers(transfer, post->headers) &&
           curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                            (curl_off_t)strlen(post->request)) == CURLE_OK &&
           curl_easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, post->request) == CURLE_OK;
}

mdl_http_post_t *mdl_http_post(mdl_http_client_t *client, const mdl_http_policy_t *policy,
                               const mdl_http_post_request_t *request, mdl_http_post_done_fn *done,
                               void *baton)
{
    apr_pool_t *pool = mdl_http_transfer_pool(client, "mdl_http_post");
    mdl_http_post_t *post = apr_pcalloc(pool, sizeof *post);
    mdl_http_transfer_t *transfer = &post->transfer;

    mdl_http_transfer_init(transfer, client, policy, pool);
    transfer->on_head = post_on_head;
    transfer->on_body = post_on_body;
    transfer->on_ended = post_on_ended;
    transfer->on_report = post_on_report;
    post->done = done;
    post->baton = baton;
    post->headers = apr_array_make(pool, request->headers->nelts, sizeof(const char *));
    for (int i = 0; i < request->headers->nelts; i++) {
        APR_ARRAY_PUSH(post->headers, const char *) = apr_pstrdup(
            pool, APR_ARRAY_IDX(request->headers, i, const char *));
    }
    post->request = apr_pstrdup(pool, request->body);
    post->response.body = "";
    mdl_http_transfer_start(transfer, request->url, set_post);
    return post;
}

void mdl_http_post_cancel(mdl_http_post_t *post)
{
    apr_pool_destroy(post->transfer.pool);
}
