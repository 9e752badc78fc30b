/* Fetching from a real server: files, ranges, redirects, callbacks, addresses. */
#include <fcntl.h>

#include "base/http/fetch.h"
#include "t/unit/http_peers.h"
#include "t/unit/http_take.h"
#include "t/unit/tap.h"

static httpd_t httpd;
static mock_t mock;
static mdl_http_policy_t policy;

static const route_t routes[] = {
    {"/chunked", ANY,
     OK_HEAD "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n"
             "X-Trailer: 1\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/announced", ANY, OK_HEAD "Content-Length: 5000000000000\r\n\r\n", THEN_HOLD, NULL},
    {"/endless", ANY, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", THEN_FLOOD,
     "6e\r\n" HUNDRED "\r\n"},
    {"/rest-large", ANY,
     "HTTP/1.1 206 Part\r\nETag: " TAG "\r\n"
     "Content-Range: bytes 10-299999/300000\r\n"
     "Content-Length: 299990\r\n\r\n",
     THEN_HOLD, NULL},
    {"/stall", ANY, OK_HEAD "Content-Length: 100\r\n\r\n0123456789", THEN_HOLD, NULL},
    {NULL, ANY, NULL, THEN_CLOSE, NULL}};

static int is_plain_bin(const take_t *take)
{
    return take->offset + (apr_int64_t)take->length == (apr_int64_t)httpd.length &&
           memcmp(take->data, httpd.bytes + take->offset, take->length) == 0;
}

/* --- a real server --- */

static void a_file_arrives_whole(mdl_http_client_t *client)
{
    take_t take = {0};

    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_OK, "a file is fetched");
    is_str(take.detail, "localhost has sent all of the file.",
           "the detail says that the body is complete");
    is_int(take.heads, 1, "head() is called once");
    is_int(take.dones, 1, "done() is called once");
    is_int(take.offset, 0, "it is fetched from its beginning");
    is_int(take.total, (long long)httpd.length, "its size is reported");
    is_str(take.type, "none", "a missing type is NULL");
    ok(take.etag[0] == '"', "its entity tag is reported, with quotes");
    ok(is_plain_bin(&take), "its bytes are right");
    ok(take.largest <= 16384, "no call of body() has more than 16 KiB");

    take_all(client, at(httpd.base, "/empty.txt"), &take);
    is_int(take.result, MDL_HTTP_OK, "an empty file is fetched");
    is_int(take.heads, 1, "head() is called for an empty body too");
    is_int(take.bodies, 0, "body() is not called for an empty body");
    is_int(take.total, 0, "an empty file's size is 0");
    is_str(take.type, "text/plain", "its media type is reported");
    free(take.data);
}

static void a_fetch_is_resumed(mdl_http_client_t *client)
{
    take_t take = {0};
    char etag[100];

    take_all(client, at(httpd.base, "/plain.bin"), &take);
    apr_cpystrn(etag, take.etag, sizeof etag);

    take_rest(client, at(httpd.base, "/plain.bin"), 100001, etag, &take);
    is_int(take.result, MDL_HTTP_OK, "a file is resumed");
    is_int(take.offset, 100001, "it continues at the requested offset");
    is_int(take.total, (long long)httpd.length, "the whole file's size is reported");
    ok(is_plain_bin(&take), "the bytes of the rest are right");
    is_str(take.etag, etag, "the entity tag is reported again");

    take_rest(client, at(httpd.base, "/hop2"), (apr_int64_t)httpd.length - 1, etag, &take);
    is_int(take.result, MDL_HTTP_OK, "the last byte is fetched, over two redirects");
    is_int(take.length, 1, "no other byte is fetched");
    ok(is_plain_bin(&take), "the last byte is right");

    take_rest(client, at(httpd.base, "/plain.bin"), 100001, "\"another\"", &take);
    is_int(take.result, MDL_HTTP_OK, "a file that has changed is fetched");
    is_int(take.offset, 0, "it is fetched from its beginning");
    ok(is_plain_bin(&take), "all its bytes are right");

    take_rest(client, at(httpd.base, "/plain.bin"), (apr_int64_t)httpd.length, etag, &take);
    is_int(take.result, MDL_HTTP_OK,
           "a file is fetched again if the range is not satisfiable (416)");
    is_int(take.heads, 1, "head() is called once");
    ok(is_plain_bin(&take), "the whole file is fetched");
    free(take.data);
}

static void redirects_are_followed(mdl_http_client_t *client, apr_pool_t *p)
{
    take_t take = {0};

    for (int status = 300; status <= 308; status += status == 305 ? 2 : 1) {
        int followed = status != 300 && (status < 304 || status > 305);

        take_all(client, at(httpd.base, apr_psprintf(p, "/r%d", status)), &take);
        is_int(take.result, followed ? MDL_HTTP_OK : MDL_HTTP_REFUSED,
               apr_psprintf(p, "%d is %sfollowed", status, followed ? "" : "not "));
        is_int(take.heads, followed, "head() is called for a file only");
    }
    take_all(client, at(httpd.base, "/hop3"), &take);
    is_int(take.result, MDL_HTTP_OK, "as many redirects as the policy allows are followed");
    ok(is_plain_bin(&take), "they lead to the file");
    take_all(client, at(httpd.base, "/hop4"), &take);
    is_int(take.result, MDL_HTTP_REDIRECTS, "one more is too many");
    is_str(take.reason, "localhost redirects again, after 3 redirects.", "the reason says so");
    take_all(client, at(httpd.base, "/to-ip"), &take);
    is_int(take.result, MDL_HTTP_URL_INVALID, "a redirect to an IP literal is refused");
    is_str(take.reason,
           "localhost redirects to an address without a host's name, where imports may not go.",
           "the reason does not name it");
    take_all(client, at(httpd.base, "/to-user"), &take);
    is_int(take.result, MDL_HTTP_URL_INVALID, "a redirect with a user name is refused");
    take_all(client, at(httpd.base, "/to-foreign"), &take);
    is_int(take.result, MDL_HTTP_HOST_NOT_ALLOWED, "a redirect to an unlisted host is refused");
    ok(strncmp(take.reason, "localhost redirects to ", 23) == 0 && strchr(take.reason, '/') == NULL,
       "the reason names that host and no more of the URL");
    take_all(client, at(httpd.base, "/to-ftp"), &take);
    is_int(take.result, MDL_HTTP_HOST_NOT_ALLOWED, "a redirect to another scheme is refused");
    free(take.data);
}

static void statuses_become_results(mdl_http_client_t *client, apr_pool_t *p)
{
    take_t take = {0};

    take_all(client, at(httpd.base, "/missing"), &take);
    is_int(take.result, MDL_HTTP_NOT_FOUND, "404 means not found");
    is_str(take.detail, "localhost answered with status 404.", "the detail names the status");
    is_int(take.heads + take.bodies, 0, "an error's body is not handed over");
    take_all(client, at(httpd.base, "/gone"), &take);
    is_int(take.result, MDL_HTTP_NOT_FOUND, "410 means not found");
    take_all(client, at(httpd.base, "/closed/a.txt"), &take);
    is_int(take.result, MDL_HTTP_REFUSED, "403 is refused");
    take_all(client, at(httpd.base, "/picky"), &take);
    is_int(take.result, MDL_HTTP_REFUSED, "406 is refused");
    take_all(client, at(httpd.base, "/late"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "408 is temporary");
    take_all(client, at(httpd.base, "/early"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "425 is temporary");
    take_all(client, at(httpd.base, "/hurry"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "429 is temporary");
    take_all(client, at(httpd.base, "/broken"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "500 is temporary");
    take_all(client, at(httpd.base, "/busy"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "503 is temporary");
    take_all(client, at(httpd.base, "/packed.gz"), &take);
    is_int(take.result, MDL_HTTP_REFUSED, "an encoded body is refused");
    is_int(take.heads, 0, "it is refused before head() is called");
    take_all(client, at(httpd.tls, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_CERTIFICATE, "an untrusted certificate is not accepted");
    is_str(take.reason, "localhost shows a certificate whose issuer is not trusted.",
           "the reason says why");
    is_int(take.heads, 0, "nothing is read from that server");
    policy.ca_file = apr_pstrcat(p, httpd.folder, "/other.pem", NULL);
    take_all(client, at(httpd.tls, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_CERTIFICATE, "nor is one of another name");
    is_str(take.reason, "localhost shows a certificate for another name.", "the reason says so");
    policy.ca_file = apr_pstrcat(p, httpd.folder, "/expired.pem", NULL);
    take_all(client, at(httpd.tls_expired, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_CERTIFICATE, "nor is one that has expired");
    is_str(take.reason, "localhost shows a certificate that has expired.", "the reason says so");
    policy.ca_file = NULL;
    take_all(client, "https://localhost:1/", &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "a closed port is something else");
    is_str(take.reason, "localhost refuses connections on that port.", "and its reason, too");
    free(take.data);
}

static void sizes_are_limited(mdl_http_client_t *client)
{
    take_t take = {0};

    policy.max_size = (apr_int64_t)httpd.length;
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_OK, "a file as large as the limit is fetched");
    policy.max_size--;
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_TOO_LARGE, "a file of one byte more is too large");
    is_int(take.heads + take.bodies, 0, "an announced size is refused before head()");
    take_all(client, at(mock.base, "/announced"), &take);
    is_int(take.result, MDL_HTTP_TOO_LARGE, "an announced size is refused before the body comes");
    take_rest(client, at(mock.base, "/rest-large"), 10, TAG, &take);
    is_int(take.result, MDL_HTTP_TOO_LARGE, "the limit applies to the whole file, not to the part");
    take_all(client, at(mock.base, "/endless"), &take);
    is_int(take.result, MDL_HTTP_TOO_LARGE, "an endless body is cut off at the limit");
    ok((apr_int64_t)take.length <= policy.max_size, "no byte over the limit is handed over");
    policy.max_size = apr_time_from_sec(1);
    free(take.data);
}

/* --- the caller's side --- */

static void the_caller_stops(mdl_http_client_t *client)
{
    mdl_http_fetch_t *fetch;
    take_t take = {0}, other = {0};

    take.head_says = APR_EGENERAL;
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_STOPPED, "head() stops a fetch");
    is_int(take.bodies, 0, "body() is not called then");
    take_all(client, at(httpd.base, "/empty.txt"), &take);
    is_int(take.result, MDL_HTTP_STOPPED, "head() stops a fetch of an empty file, too");
    take.head_says = APR_SUCCESS;
    take.body_says = APR_EGENERAL;
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_STOPPED, "body() stops a fetch");
    is_int(take.bodies, 1, "body() is not called again");

    free(take.data);
    memset(&take, 0, sizeof take);
    fetch = mdl_http_fetch(client, at(mock.base, "/stall"), NULL, &callbacks, &take);
    while (!take.bodies && !take.dones) {
        mdl_http_client_run(client, 1000);
    }
    mdl_http_fetch_cancel(fetch);
    fetch = mdl_http_fetch(client, "no URL", NULL, &callbacks, &take);
    mdl_http_fetch_cancel(fetch);
    take_all(client, at(httpd.base, "/plain.bin"), &other);
    is_int(take.dones, 0, "done() is not called for a cancelled fetch");
    ok(is_plain_bin(&other), "the next fetch succeeds");
    free(take.data);
    free(other.data);
}

static void fetches_begin_fetches(mdl_http_client_t *client)
{
    take_t first = {0}, second = {0}, third = {0};

    first.client = second.client = client;
    first.then_url = "http://not listed/";
    first.then = &second;
    second.then_url = at(httpd.base, "/plain.bin");
    second.then = &third;
    mdl_http_fetch(client, at(httpd.base, "/plain.bin"), NULL, &callbacks, &first);
    run_until_done(client, &first);
    is_int(first.result, MDL_HTTP_OK, "the first fetch succeeds");
    is_int(second.dones, 0, "a fetch begun in its done() does not end before the next run");
    run_until_done(client, &second);
    is_int(second.result, MDL_HTTP_URL_INVALID, "the second fetch fails because of its URL");
    run_until_done(client, &third);
    ok(is_plain_bin(&third), "a fetch begun in the done() of a failed one succeeds");
    free(first.data);
    free(third.data);
}

static void fetches_run_at_once(mdl_http_client_t *client)
{
    take_t takes[12];

    memset(takes, 0, sizeof takes);
    for (int i = 0; i < 12; i++) {
        mdl_http_fetch(client, at(httpd.base, i % 2 ? "/hop1" : "/plain.bin"), NULL, &callbacks,
                       &takes[i]);
    }
    for (int i = 0; i < 12; i++) {
        run_until_done(client, &takes[i]);
        ok(takes[i].dones == 1 && is_plain_bin(&takes[i]), "each of twelve fetches is right");
        free(takes[i].data);
    }
}

static void *APR_THREAD_FUNC waker(apr_thread_t *thread, void *client)
{
    (void)thread;
    mdl_http_client_wake(client);
    return NULL;
}

static void a_wait_is_ended(mdl_http_client_t *client, apr_pool_t *p)
{
    apr_time_t begin = apr_time_now();
    apr_thread_t *thread;
    apr_status_t rv;

    apr_thread_create(&thread, NULL, waker, client, p);
    mdl_http_client_run(client, 60000);
    ok(apr_time_now() - begin < apr_time_from_sec(30), "another thread ends the wait");
    apr_thread_join(&rv, thread);
}

static void a_client_ends_with_its_pool(apr_pool_t *p)
{
    take_t take = {0};
    mdl_http_client_t *client;
    apr_pool_t *pool;

    apr_pool_create(&pool, p);
    mdl_http_client_create(&client, &policy, pool);
    mdl_http_fetch(client, "no URL", NULL, &callbacks, &take);
    mdl_http_fetch(client, at(mock.base, "/stall"), NULL, &callbacks, &take);
    mdl_http_fetch(client, at(httpd.base, "/plain.bin"), NULL, &callbacks, &take);
    apr_pool_destroy(pool);
    is_int(take.dones, 0,
           "the pool of a client with running fetches can end, and done() is not called");
}

/* --- addresses --- */

static void addresses_are_checked(apr_pool_t *p)
{
    apr_array_header_t *both = policy.networks;
    mdl_http_client_t *client;
    take_t take = {0};
    int fd, port;

    mdl_http_client_create(&client, &policy, p);
    policy.networks = NULL;
    fd = peer_listen(AF_INET, &port);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    take_all(client, apr_psprintf(p, "http://localhost:%d/", port), &take);
    is_int(take.result, MDL_HTTP_ADDRESS_FORBIDDEN, "a name that resolves to loopback is refused");
    is_str(take.reason, "localhost leads to an address that is not allowed.",
           "the reason names no address");
    ok(strstr(take.detail, " (127.0.0.1)") || strstr(take.detail, " (::1)"),
       "the detail names the address");
    is_int(accept(fd, NULL, NULL), -1, "no connection is made");
    close(fd);
    policy.networks = networks(1, 0, p);
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_OK, "a network that the operator allows can be connected to");
    policy.networks = NULL;
    take_all(client, at(httpd.base, "/plain.bin"), &take);
    is_int(take.result, MDL_HTTP_ADDRESS_FORBIDDEN,
           "the address is checked again when a connection is reused");
    is_int(take.heads, 0, "no request is sent over it");
    policy.networks = networks(0, 1, p);
    take_all(client, at(mock.base, "/chunked"), &take);
    is_int(take.result, MDL_HTTP_ADDRESS_FORBIDDEN,
           "a name with an unreachable and a refused address counts as refused");
    fd = peer_listen(AF_INET6, &port);
    if (fd >= 0) {
        policy.total_timeout_s = 1;
        take_all(client, apr_psprintf(p, "http://localhost:%d/", port), &take);
        is_int(take.result, MDL_HTTP_TIMEOUT,
               "a name with a connected and a refused address is not refused");
        policy.total_timeout_s = 60;
        close(fd);
    }
    policy.networks = both;
    take_all(client, at(httpd.base, "/to-port"), &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "a failed connection is temporary");
    free(take.data);
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    mdl_http_client_t *client;

    signal(SIGPIPE, SIG_IGN);
    policy_for_tests(&policy, p);
    ok(mdl_http_global_init(p) == APR_SUCCESS, "the library starts");
    ok(mdl_http_client_create(&client, &policy, p) == APR_SUCCESS, "a client is made");
    ok(mock_start(&mock, routes, p), "the mock listens");
    if (ok(httpd_start(&httpd, p), "a real server listens")) {
        a_file_arrives_whole(client);
        a_fetch_is_resumed(client);
        redirects_are_followed(client, p);
        statuses_become_results(client, p);
        sizes_are_limited(client);
        the_caller_stops(client);
        fetches_begin_fetches(client);
        fetches_run_at_once(client);
        a_wait_is_ended(client, p);
        a_client_ends_with_its_pool(p);
        addresses_are_checked(p);
    }
    mock_stop(&mock);
    httpd_stop(&httpd, p);
    return tap_end(p);
}
