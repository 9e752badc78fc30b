/*
 * Shared by the tests of the HTTP client: a policy for loopback, and callbacks that keep the
 * response.
 */
#ifndef MDL_T_UNIT_HTTP_TAKE_H
#define MDL_T_UNIT_HTTP_TAKE_H

#include <stdlib.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/fetch.h"
#include "t/unit/tap.h"

#define TAG      "\"v1\""
#define PATIENCE apr_time_from_sec(90)

typedef struct take_t take_t;

/* A fetch's received data, and its callbacks' results. */
struct take_t {
    int heads, bodies, dones;
    apr_int64_t offset, total;
    int until_close;
    char etag[100], type[100], filename[300];
    char *data;
    apr_size_t length, largest;
    mdl_http_result_t result;
    int status, retry_after_s;
    char reason[300], detail[300];
    apr_status_t head_says, body_says;
    mdl_http_client_t *client; /* of then_url */
    const char *then_url;      /* a fetch that done() begins */
    take_t *then;
};

static inline apr_status_t on_head(void *baton, const mdl_http_head_t *head)
{
    take_t *take = baton;

    take->heads++;
    take->offset = head->offset;
    take->total = head->total;
    take->until_close = head->until_close;
    apr_cpystrn(take->filename, head->filename ? head->filename : "none", sizeof take->filename);
    apr_cpystrn(take->etag, head->etag ? head->etag : "none", sizeof take->etag);
    apr_cpystrn(take->type, head->content_type ? head->content_type : "none", sizeof take->type);
    return take->head_says;
}

static inline apr_status_t on_body(void *baton, const char *data, apr_size_t length)
{
    take_t *take = baton;

    take->bodies++;
    take->data = realloc(take->data, take->length + length);
    memcpy(take->data + take->length, data, length);
    take->length += length;
    take->largest = length > take->largest ? length : take->largest;
    return take->body_says;
}

static const mdl_http_callbacks_t callbacks;

static inline void on_done(void *baton, const mdl_http_end_t *end)
{
    take_t *take = baton;

    take->dones++;
    take->result = end->result;
    take->status = end->status;
    take->retry_after_s = end->retry_after_s;
    apr_cpystrn(take->reason, end->reason, sizeof take->reason);
    apr_cpystrn(take->detail, end->detail, sizeof take->detail);
    if (take->then_url) {
        mdl_http_fetch(take->client, take->then_url, NULL, &callbacks, take->then);
    }
}

static const mdl_http_callbacks_t callbacks = {on_head, on_body, on_done};

static inline void run_until_done(mdl_http_client_t *client, const take_t *take)
{
    apr_time_t end = apr_time_now() + PATIENCE;

    while (!take->dones && apr_time_now() < end) {
        mdl_http_client_run(client, 1000);
    }
}

static inline void take_part(mdl_http_client_t *client, const char *url,
                             const mdl_http_part_t *part, take_t *take)
{
    apr_status_t head_says = take->head_says, body_says = take->body_says;

    free(take->data);
    memset(take, 0, sizeof *take);
    take->head_says = head_says;
    take->body_says = body_says;
    mdl_http_fetch(client, url, part, &callbacks, take);
    if (take->dones) {
        ok(0, "done() is not called from mdl_http_fetch");
    }
    run_until_done(client, take);
}

static inline void take_rest(mdl_http_client_t *client, const char *url, apr_int64_t offset,
                             const char *etag, take_t *take)
{
    const mdl_http_part_t part = {.offset = offset, .total = -1, .etag = etag};

    take_part(client, url, &part, take);
}

static const char *at(const char *base, const char *path)
{
    static char url[4][300];
    static int turn;

    turn = (turn + 1) % 4;
    apr_snprintf(url[turn], sizeof url[turn], "%s%s", base, path);
    return url[turn];
}

static inline void take_all(mdl_http_client_t *client, const char *url, take_t *take)
{
    take_rest(client, url, 0, NULL, take);
}

static inline int is_text(const take_t *take, const char *text)
{
    return take->length == strlen(text) && memcmp(take->data, text, take->length) == 0;
}

/* A list of 127.0.0.0/8, of ::1, or of both. */
static inline apr_array_header_t *networks(int v4, int v6, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 2, sizeof(apr_ipsubnet_t *));

    if (v4) {
        apr_ipsubnet_create(&APR_ARRAY_PUSH(list, apr_ipsubnet_t *), "127.0.0.0", "8", p);
    }
    if (v6) {
        apr_ipsubnet_create(&APR_ARRAY_PUSH(list, apr_ipsubnet_t *), "::1", "128", p);
    }
    return list;
}

/** A policy for loopback: host localhost, http, any port. */
static inline void policy_for_tests(mdl_http_policy_t *policy, apr_pool_t *p)
{
    apr_array_header_t *hosts = apr_array_make(p, 1, sizeof(const char *));

    APR_ARRAY_PUSH(hosts, const char *) = "localhost";
    memset(policy, 0, sizeof *policy);
    policy->hosts = hosts;
    policy->networks = networks(1, 1, p);
    policy->any_port = policy->allow_http = 1;
    policy->max_redirects = 3;
    policy->connect_timeout_s = 10;
    policy->stall_timeout_s = 30;
    policy->total_timeout_s = 60;
    policy->max_size = 1000000;
}

#endif
