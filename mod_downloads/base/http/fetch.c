#include "base/http/fetch.h"

#include <apr_strings.h>

#include "base/http/response.h"
#include "base/http/transfer.h"
#include "base/http/url.h"
#include "base/text/filename.h"

/* What to do after the running transfer. */
typedef enum { NEXT_FINISH, NEXT_REDIRECT, NEXT_RESTART } next_t;

struct mdl_http_fetch_t {
    mdl_http_transfer_t transfer; /* must be first: fetch_of converts its address */
    mdl_http_callbacks_t callbacks;
    void *baton;
    int redirects;

    mdl_http_part_t part; /* without etag: the fetch starts at 0 */
    apr_int64_t received; /* bytes of the accepted body */
    apr_int64_t total;
    next_t next;
};

static mdl_http_fetch_t *fetch_of(mdl_http_transfer_t *transfer)
{
    return (mdl_http_fetch_t *)(void *)transfer;
}

static void fetch_decide(mdl_http_fetch_t *fetch, mdl_http_result_t result, const char *predicate)
{
    mdl_http_transfer_decide(&fetch->transfer, result, predicate);
}

/* --- the response --- */

static int is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void fetch_decide_by_status(mdl_http_fetch_t *fetch, long status)
{
    const char *predicate = apr_psprintf(fetch->transfer.pool, "answered with status %ld", status);

    if (status == 404 || status == 410) {
        fetch_decide(fetch, MDL_HTTP_NOT_FOUND, predicate);
    } else if (status >= 500 || status == 408 || status == 425 || status == 429) {
        fetch_decide(fetch, MDL_HTTP_UNAVAILABLE, predicate);
    } else {
        fetch_decide(fetch, MDL_HTTP_REFUSED, predicate);
    }
}

static const char *header_copy(mdl_http_fetch_t *fetch, const char *name)
{
    return apr_pstrdup(fetch->transfer.pool,
                       mdl_http_response_header(fetch->transfer.easy, name, 0));
}

static void head_hand_over(mdl_http_fetch_t *fetch, apr_int64_t length)
{
    const char *etag = header_copy(fetch, "ETag");
    const char *disposition = header_copy(fetch, "Content-Disposition");
    mdl_http_head_t head = {
        .offset = fetch->part.offset,
        .total = fetch->total,
        .until_close = fetch->total < 0 && length == MDL_HTTP_UNTIL_CLOSE,
        .etag = mdl_http_etag_is_strong(etag) ? etag : NULL,
        .content_type = header_copy(fetch, "Content-Type"),
        .filename = mdl_filename_of_disposition(disposition, fetch->transfer.pool)};

    if (fetch->callbacks.head(fetch->baton, &head) != APR_SUCCESS) {
        fetch_decide(fetch, MDL_HTTP_STOPPED, "was left by the caller");
    }
}

/* Decides, once the headers are complete, whether the body is accepted. */
static void response_judge(mdl_http_fetch_t *fetch)
{
    CURL *easy = fetch->transfer.easy;
    long status = fetch->transfer.status;
    apr_int64_t length;

    if (is_redirect(status)) {
        fetch->next = NEXT_REDIRECT;
    } else if (status == 416 && fetch->part.etag != NULL) {
        fetch->next = NEXT_RESTART;
    } else if (status != 200 && !(status == 206 && fetch->part.etag != NULL)) {
        fetch_decide_by_status(fetch, status);
    } else if (mdl_http_response_is_encoded(easy)) {
        fetch_decide(fetch, MDL_HTTP_REFUSED,
                     "sent the file encoded (Content-Encoding), though that was not asked for");
    } else if (!mdl_http_response_length(easy, &length)) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "sent lengths that make no sense");
    } else if (status == 206 &&
               !mdl_http_response_is_rest(easy, fetch->part.offset, fetch->part.etag,
                                          fetch->part.total, length, &fetch->total)) {
        fetch->next = NEXT_RESTART;
    } else {
        if (status == 200) {
            fetch->part.offset = 0;
            fetch->total = length >= 0 ? length : -1;
        }
        if (fetch->total > fetch->transfer.policy->max_size) {
            fetch_decide(fetch, MDL_HTTP_TOO_LARGE, "announced more than the limit");
            return;
        }
        head_hand_over(fetch, length);
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
    if (fetch->part.offset + fetch->received > fetch->transfer.policy->max_size) {
        fetch_decide(fetch, MDL_HTTP_TOO_LARGE, "sent more than the limit");
    } else if (fetch->total >= 0 && fetch->part.offset + fetch->received > fetch->total) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "sent more than it announced");
    } else if (fetch->callbacks.body(fetch->baton, data, size) != APR_SUCCESS) {
        fetch_decide(fetch, MDL_HTTP_STOPPED, "was left by the caller");
    }
    return fetch->transfer.reason != NULL ? 0 : size;
}

/* --- a fetch: transfers until there is a result --- */

static int set_range(mdl_http_transfer_t *transfer)
{
    const mdl_http_fetch_t *fetch = fetch_of(transfer);

    return fetch->part.etag == NULL ||
           (mdl_http_transfer_header(transfer, apr_psprintf(transfer->pool,
                                                            "Range: bytes=%" APR_INT64_T_FMT "-",
                                                            fetch->part.offset)) &&
            mdl_http_transfer_header(
                transfer, apr_psprintf(transfer->pool, "If-Range: %s", fetch->part.etag)));
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
    int most = fetch->transfer.policy->max_redirects;
    const char *host;
    CURLU *url;
    mdl_http_result_t result;

    if (location == NULL) {
        fetch_decide(fetch, MDL_HTTP_REFUSED, "sent a redirect without a target");
        return;
    }
    if (fetch->redirects++ >= most) {
        fetch_decide(
            fetch, MDL_HTTP_REDIRECTS,
            apr_psprintf(fetch->transfer.pool, "redirects again, after %d redirects", most));
        return;
    }
    result = mdl_http_url_parse(fetch->transfer.policy, fetch->transfer.url, location, &url, &host,
                                fetch->transfer.pool);
    if (result != MDL_HTTP_OK) {
        fetch_decide(fetch, result,
                     apr_pstrcat(fetch->transfer.pool, "redirects to ",
                                 host != NULL ? host : "an address without a host's name",
                                 ", where imports may not go", NULL));
        return;
    }
    fetch->transfer.host = host;
    mdl_http_transfer_end(&fetch->transfer);
    curl_url_cleanup(fetch->transfer.url);
    fetch->transfer.url = url;
    fetch_begin(fetch);
}

static void restart_from_zero(mdl_http_fetch_t *fetch)
{
    mdl_http_transfer_end(&fetch->transfer);
    fetch->part = (mdl_http_part_t){.total = -1};
    fetch_begin(fetch);
}

static void fetch_on_ended(mdl_http_transfer_t *transfer, CURLcode code)
{
    mdl_http_fetch_t *fetch = fetch_of(transfer);

    if (transfer->reason == NULL && fetch->next == NEXT_REDIRECT) {
        follow_redirect(fetch);
        return;
    }
    if (transfer->reason == NULL && fetch->next == NEXT_RESTART) {
        restart_from_zero(fetch);
        return;
    }
    mdl_http_transfer_decide_by_code(transfer, code);
    if (transfer->reason == NULL && fetch->total >= 0 &&
        fetch->part.offset + fetch->received != fetch->total) {
        fetch_decide(fetch, MDL_HTTP_UNAVAILABLE, "sent less than it announced");
    }
    fetch_decide(fetch, MDL_HTTP_OK, "has sent all of the file");
}

static void fetch_on_report(mdl_http_transfer_t *transfer)
{
    mdl_http_fetch_t *fetch = fetch_of(transfer);
    const mdl_http_end_t end = {.result = transfer->result,
                                .host = mdl_http_transfer_host(transfer),
                                .reason = transfer->reason,
                                .detail = mdl_http_transfer_detail(transfer),
                                .status = (int)transfer->status,
                                .retry_after_s = transfer->retry_after_s};

    fetch->callbacks.done(fetch->baton, &end);
}

mdl_http_fetch_t *mdl_http_fetch(mdl_http_client_t *client, const char *url,
                                 const mdl_http_part_t *part, const mdl_http_callbacks_t *callbacks,
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
    fetch->part.total = fetch->total = -1;
    if (part != NULL && part->offset > 0 && mdl_http_etag_is_strong(part->etag)) {
        fetch->part = *part;
        fetch->part.etag = apr_pstrdup(pool, part->etag);
    }
    mdl_http_transfer_start(transfer, url, set_range);
    return fetch;
}

void mdl_http_fetch_cancel(mdl_http_fetch_t *fetch)
{
    apr_pool_destroy(fetch->transfer.pool);
}
