#include "base/http/fetch.h"

#include <apr_strings.h>

#include "base/http/response.h"
#include "base/http/transfer.h"
#include "base/http/url.h"

/* What follows the transfer that is running. */
typedef enum { NEXT_FINISH, NEXT_REDIRECT, NEXT_RESTART } next_t;

struct mdl_http_fetch_t {
    mdl_http_transfer_t transfer; /* must be first: fetch_of converts its address */
    mdl_http_callbacks_t callbacks;
    void *baton;
    int redirects;

    const char *etag; /* NULL: from the beginning */
    apr_int64_t offset;
    apr_int64_t received; /* of the body that was accepted */
    apr_int64_t total;
    next_t next;
};

static mdl_http_fetch_t *fetch_of(mdl_http_transfer_t *transfer)
{
    return (mdl_http_fetch_t *)(void *)transfer;
}

static void fetch_decide(mdl_http_fetch_t *fetch, mdl_http_result_t result, const char *detail)
{
    mdl_http_transfer_decide(&fetch->transfer, result, detail);
}

/* --- the response --- */

static int is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void fetch_decide_by_status(mdl_http_fetch_t *fetch, long status)
{
    const char *detail = apr_psprintf(fetch->transfer.pool, "The source answered with status %ld.",
                                      status);

    if (status == 404 || status == 410) {
        fetch_decide(fetch, MDL_HTTP_NOT_FOUND, detail);
    } else if (status >= 500 || status == 408 || status == 425 || status == 429) {
        fetch_decide(fetch, MDL_HTTP_UNAVAILABLE, detail);
    } else {
        fetch_decide(fetch, MDL_HTTP_REFUSED, detail);
    }
}

static void head_hand_over(mdl_http_fetch_t *fetch)
{
    const char *etag = mdl_http_response_header(fetch->transfer.easy, "ETag", 0);
    mdl_http_head_t head;

    head.offset = fetch->offset;
    head.total = fetch->total;
    head.etag = mdl_http_etag_is_strong(etag) ? apr_pstrdup(fetch->transfer.pool, etag) : NULL;
    head.content_type = apr_pstrdup(
        fetch->transfer.pool, mdl_http_response_header(fetch->transfer.easy, "Content-Type", 0));
    if (fetch->callbacks.head(fetch->baton, &head) != APR_SUCCESS) {
        fetch_decide(fetch, MDL_HTTP_STOPPED, "The caller stopped it.");
    }
}

/* Decides, once the headers are complete, whether the body is accepted. */
static void response_judge(mdl_http_fetch_t *fetch)
{
    apr_int64_t length;
    long status = 0;

    curl_easy_getinfo(fetch->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (is_redirect(status)) {
        fetch->next = NEXT_REDIRECT;
    } else if (status == 416 && fetch->etag != NULL) {
        fetch->next = NEXT_RESTART;
    } else if (status != 200 && !(status == 206 && fetch->etag != NULL)) {
        fetch_decide_by_status(fetch, status);
    } else if (mdl_http_response_is_encoded(fetch->transfer.easy)) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "The source sent an encoded body.");
    } else if (!mdl_http_response_length(fetch->transfer.easy, &length)) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "The source sent a body without a length.");
    } else if (status == 206 && !mdl_http_response_is_rest(fetch->transfer.easy, fetch->offset,
                                                           fetch->etag, length, &fetch->total)) {
        fetch->next = NEXT_RESTART;
    } else {
        if (status == 200) {
            fetch->offset = 0;
            fetch->total = length;
        }
        if (fetch->total > fetch->transfer.policy->max_size) {
            fetch_decide(fetch, MDL_HTTP_TOO_LARGE, "The source announced more than the limit.");
            return;
        }
        head_hand_over(fetch);
    }
}

static int fetch_on_head(mdl_http_transfer_t *transfer)
{
    response_judge(fetch_of(transfer));
    return fetch_of(transfer)->next == NEXT_FINISH;
}

static size_t fetch_on_body(char *data, size_t unit, size_t count, void *baton)
{
    mdl_http_fetch_t *fetch = baton;
    size_t size = unit * count;

    fetch->received += (apr_int64_t)size;
    if (fetch->offset + fetch->received > fetch->transfer.policy->max_size) {
        fetch_decide(fetch, MDL_HTTP_TOO_LARGE, "The source sent more than the limit.");
    } else if (fetch->total >= 0 && fetch->offset + fetch->received > fetch->total) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "The source sent more than it announced.");
    } else if (fetch->callbacks.body(fetch->baton, data, size) != APR_SUCCESS) {
        fetch_decide(fetch, MDL_HTTP_STOPPED, "The caller stopped it.");
    }
    return fetch->transfer.detail != NULL ? 0 : size;
}

/* --- A fetch: transfers until there is a result --- */

static int set_range(mdl_http_transfer_t *transfer)
{
    const mdl_http_fetch_t *fetch = fetch_of(transfer);

    return fetch->etag == NULL ||
           (mdl_http_transfer_header(transfer, apr_psprintf(transfer->pool,
                                                            "Range: bytes=%" APR_INT64_T_FMT "-",
                                                            fetch->offset)) &&
            mdl_http_transfer_header(transfer,
                                     apr_psprintf(transfer->pool, "If-Range: %s", fetch->etag)));
}

static void fetch_begin(mdl_http_fetch_t *fetch)
{
    fetch->next = NEXT_FINISH;
    fetch->received = 0;
    fetch->total = -1;
    mdl_http_transfer_begin(&fetch->transfer, set_range);
}

static void follow_redirect(mdl_http_fetch_t *fetch)
{
    const char *location = mdl_http_response_header(fetch->transfer.easy, "Location", 0);
    const char *host;
    CURLU *url;
    mdl_http_result_t result;

    if (location == NULL) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "The source sent a redirect without a target.");
        return;
    }
    if (fetch->redirects++ >= fetch->transfer.policy->max_redirects) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "The source sent too many redirects.");
        return;
    }
    result = mdl_http_url_parse(fetch->transfer.policy, fetch->transfer.url, location, &url, &host,
                                fetch->transfer.pool);
    if (result != MDL_HTTP_OK) {
        fetch_decide(fetch, result, "The source redirects to where fetches may not go.");
        return;
    }
    mdl_http_transfer_end(&fetch->transfer);
    curl_url_cleanup(fetch->transfer.url);
    fetch->transfer.url = url;
    fetch_begin(fetch);
}

static void restart_from_zero(mdl_http_fetch_t *fetch)
{
    mdl_http_transfer_end(&fetch->transfer);
    fetch->etag = NULL;
    fetch->offset = 0;
    fetch_begin(fetch);
}

static void fetch_on_ended(mdl_http_transfer_t *transfer, CURLcode code)
{
    mdl_http_fetch_t *fetch = fetch_of(transfer);

    if (transfer->detail == NULL && fetch->next == NEXT_REDIRECT) {
        follow_redirect(fetch);
        return;
    }
    if (transfer->detail == NULL && fetch->next == NEXT_RESTART) {
        restart_from_zero(fetch);
        return;
    }
    mdl_http_transfer_decide_by_code(transfer, code);
    if (transfer->detail == NULL && fetch->total >= 0 &&
        fetch->offset + fetch->received != fetch->total) {
        fetch_decide(fetch, MDL_HTTP_UNAVAILABLE, "The source sent less than it announced.");
    }
    fetch_decide(fetch, MDL_HTTP_OK, "The body is complete.");
}

static void fetch_on_report(mdl_http_transfer_t *transfer)
{
    mdl_http_fetch_t *fetch = fetch_of(transfer);

    fetch->callbacks.done(fetch->baton, transfer->result, transfer->detail);
}

mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url, apr_int64_t offset,
                                 const char *etag, const mdl_http_callbacks_t *callbacks,
                                 void *baton)
{
    apr_pool_t *pool = mdl_http_transfer_pool(client, "mdl_http_fetch");
    mdl_http_fetch_t *fetch = apr_pcalloc(pool, sizeof *fetch);
    mdl_http_transfer_t *transfer = &fetch->transfer;

    mdl_http_transfer_init(transfer, client, NULL, pool);
    transfer->on_head = fetch_on_head;
    transfer->on_body = fetch_on_body;
    transfer->on_ended = fetch_on_ended;
    transfer->on_report = fetch_on_report;
    fetch->callbacks = *callbacks;
    fetch->baton = baton;
    if (offset > 0 && mdl_http_etag_is_strong(etag)) {
        fetch->offset = offset;
        fetch->etag = apr_pstrdup(pool, etag);
    }
    fetch->total = -1;
    mdl_http_transfer_start(transfer, url, set_range);
    return fetch;
}

void mdl_http_fetch_cancel(mdl_http_fetch_t *fetch)
{
    apr_pool_destroy(fetch->transfer.pool);
}
