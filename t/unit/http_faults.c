/* Fetching from a mock of servers that misbehave: cut bodies, wrong ranges, silence. */
#include "base/http/fetch.h"
#include "t/unit/http_peers.h"
#include "t/unit/http_take.h"
#include "t/unit/tap.h"

#define PART_HEAD "HTTP/1.1 206 Part\r\nConnection: close\r\nETag: " TAG "\r\n"
#define TEN       "Content-Length: 10\r\n\r\n0123456789"
#define BUSY_HEAD "HTTP/1.1 503 Busy\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define REST      "Content-Length: 5\r\n\r\n56789"

static mock_t mock;
static mdl_http_policy_t policy;

static const route_t routes[] = {
    {"/chunked", ANY,
     OK_HEAD "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n"
             "X-Trailer: 1\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/hints", ANY, "HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\n\r\n" OK_HEAD TEN,
     THEN_CLOSE, NULL},
    {"/identity", ANY, OK_HEAD "Content-Encoding: identity\r\n" TEN, THEN_CLOSE, NULL},
    {"/weak", ANY, OK_HEAD "ETag: W/" TAG "\r\n" TEN, THEN_CLOSE, NULL},
    {"/http10", ANY, "HTTP/1.0 200 OK\r\n" TEN, THEN_CLOSE, NULL},
    {"/cut", ANY, OK_HEAD "Content-Length: 11\r\n\r\n0123456789", THEN_CLOSE, NULL},
    {"/cut-chunked", ANY, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n", THEN_CLOSE,
     NULL},
    {"/cut-head", ANY, OK_HEAD, THEN_CLOSE, NULL},
    {"/cut-now", ANY, "", THEN_CLOSE, NULL},
    {"/no-length", ANY, OK_HEAD "\r\n0123456789", THEN_CLOSE, NULL},
    {"/no-length-10", ANY, "HTTP/1.0 200 OK\r\n\r\n0123456789", THEN_CLOSE, NULL},
    {"/two-lengths", ANY, OK_HEAD "Content-Length: 9\r\n" TEN, THEN_CLOSE, NULL},
    {"/same-lengths", ANY, OK_HEAD "Content-Length: 10\r\n" TEN, THEN_CLOSE, NULL},
    {"/list-length", ANY, OK_HEAD "Content-Length: 10, 10\r\n\r\n0123456789", THEN_CLOSE, NULL},
    {"/list-lengths", ANY, OK_HEAD "Content-Length: 10, 9\r\n\r\n0123456789", THEN_CLOSE, NULL},
    {"/list-no-length", ANY, OK_HEAD "Content-Length: ,\r\n\r\n0123456789", THEN_CLOSE, NULL},
    {"/identities", ANY, OK_HEAD "Content-Encoding: identity , Identity\r\n" TEN, THEN_CLOSE, NULL},
    {"/gzip-in-list", ANY, OK_HEAD "Content-Encoding: identity, gzip\r\n" TEN, THEN_CLOSE, NULL},
    {"/chunked-list", ANY,
     OK_HEAD "Transfer-Encoding: chunked ,\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", THEN_CLOSE, NULL},
    {"/chunked-twice", ANY,
     OK_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n"
             "0\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/busy-seconds", ANY, BUSY_HEAD "Retry-After: 7200\r\n\r\n", THEN_CLOSE, NULL},
    {"/busy-date", ANY, BUSY_HEAD "Retry-After: Sun, 06 Nov 1994 09:49:37 GMT\r\n\r\n", THEN_CLOSE,
     NULL},
    {"/busy-past", ANY, BUSY_HEAD "Retry-After: Sun, 06 Nov 1994 07:49:37 GMT\r\n\r\n", THEN_CLOSE,
     NULL},
    {"/busy-odd", ANY, BUSY_HEAD "Retry-After: soon\r\n\r\n", THEN_CLOSE, NULL},
    {"/named", ANY,
     OK_HEAD "Content-Disposition: attachment; filename=\"a.zip\"; "
             "filename*=UTF-8''%e2%82%ac.zip\r\n" TEN,
     THEN_CLOSE, NULL},
    {"/odd-length", ANY, OK_HEAD "Content-Length: 99999999999999999999\r\n\r\n0123456789",
     THEN_CLOSE, NULL},
    {"/gzip", ANY, OK_HEAD "Content-Encoding: gzip\r\n" TEN, THEN_CLOSE, NULL},
    {"/gzip-second", ANY, OK_HEAD "Content-Encoding: identity\r\nContent-Encoding: br\r\n" TEN,
     THEN_CLOSE, NULL},
    {"/gzip-transfer", ANY, OK_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", THEN_CLOSE,
     NULL},
    {"/unasked", ANY, PART_HEAD "Content-Range: bytes 0-9/10\r\n" TEN, THEN_CLOSE, NULL},
    {"/unasked-416", ANY, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n", THEN_CLOSE, NULL},
    {"/no-content", ANY, "HTTP/1.1 204 None\r\n\r\n", THEN_CLOSE, NULL},
    {"/not-http", ANY, "220 mail.example ESMTP\r\n", THEN_CLOSE, NULL},
    {"/no-target", ANY, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", THEN_CLOSE, NULL},
    {"/headers", ANY, OK_HEAD, THEN_FLOOD, "X-Flood: " HUNDRED "\r\n"},
    {"/relative", ANY, "HTTP/1.1 302 Found\r\nLocation: chunked\r\nSet-Cookie: a=b\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/raw", ANY, "HTTP/1.1 302 Found\r\nLocation: /caf\xc3\xa9 1?a b\r\n\r\n", THEN_CLOSE, NULL},
    {"/caf%C3%A9%201?a+b", ANY, OK_HEAD TEN, THEN_CLOSE, NULL},
    {"/caf%c3%a9%201?a+b", ANY, OK_HEAD TEN, THEN_CLOSE, NULL},
    {"/network-path", ANY, "HTTP/1.1 302 Found\r\nLocation: //a:b@localhost/\r\n\r\n", THEN_CLOSE,
     NULL},
    {"/unicode-host", ANY, "HTTP/1.1 302 Found\r\nLocation: http://loc\xc3\xa0lhost/\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/redirect-flood", ANY, "HTTP/1.1 302 Found\r\nLocation: /chunked\r\n\r\n", THEN_FLOOD,
     HUNDRED},
    {"/stall", ANY, OK_HEAD "Content-Length: 100\r\n\r\n0123456789", THEN_HOLD, NULL},
    {"/silent", ANY, "", THEN_HOLD, NULL},

    {"/rest", WITH_RANGE, PART_HEAD "Content-Range: bytes 5-9/10\r\n" REST, THEN_CLOSE, NULL},
    {"/rest-chunked", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 5-9/10\r\n"
               "Transfer-Encoding: chunked\r\n\r\n5\r\n56789\r\n0\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/rest-short", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 5-9/10\r\n"
               "Transfer-Encoding: chunked\r\n\r\n4\r\n5678\r\n0\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/rest-long", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 5-9/10\r\n"
               "Transfer-Encoding: chunked\r\n\r\n6\r\n56789X\r\n0\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/stubborn", WITH_RANGE, PART_HEAD "Content-Range: bytes 4-9/10\r\n" REST, THEN_CLOSE, NULL},
    {"/stubborn", WITHOUT_RANGE, PART_HEAD "Content-Range: bytes 0-9/10\r\n" TEN, THEN_CLOSE, NULL},
    {"/wrong/none", WITH_RANGE, PART_HEAD REST, THEN_CLOSE, NULL},
    {"/wrong/start", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n456789", THEN_CLOSE, NULL},
    {"/wrong/part", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 5-9/11\r\n"
               "Transfer-Encoding: chunked\r\n\r\n5\r\n56789\r\n0\r\n\r\n",
     THEN_CLOSE, NULL},
    {"/wrong/size", WITH_RANGE, PART_HEAD "Content-Range: bytes 5-9/10\r\n" REST, THEN_CLOSE, NULL},
    {"/wrong/star", WITH_RANGE, PART_HEAD "Content-Range: bytes 5-9/*\r\n" REST, THEN_CLOSE, NULL},
    {"/wrong/unit", WITH_RANGE, PART_HEAD "Content-Range: lines 5-9/10\r\n" REST, THEN_CLOSE, NULL},
    {"/wrong/garbage", WITH_RANGE, PART_HEAD "Content-Range: bytes 5-9/10x\r\n" REST, THEN_CLOSE,
     NULL},
    {"/wrong/length", WITH_RANGE, PART_HEAD "Content-Range: bytes 5-9/10\r\n" TEN, THEN_CLOSE,
     NULL},
    {"/wrong/twice", WITH_RANGE,
     PART_HEAD "Content-Range: bytes 5-9/10\r\n"
               "Content-Range: bytes 0-4/10\r\n" REST,
     THEN_CLOSE, NULL},
    {"/wrong/tag", WITH_RANGE,
     "HTTP/1.1 206 Part\r\nETag: \"v2\"\r\nContent-Range: bytes 5-9/10\r\n" REST, THEN_CLOSE, NULL},
    {"/wrong/tagless", WITH_RANGE, "HTTP/1.1 206 Part\r\nContent-Range: bytes 5-9/10\r\n" REST,
     THEN_CLOSE, NULL},
    {"/wrong/416", WITH_RANGE, "HTTP/1.1 416 No\r\nContent-Range: bytes */4\r\n\r\n", THEN_CLOSE,
     NULL},
    {"/ignored", WITH_RANGE, OK_HEAD TEN, THEN_CLOSE, NULL},
    {"/wrong/*", WITHOUT_RANGE, OK_HEAD TEN, THEN_CLOSE, NULL},
    {NULL, ANY, NULL, THEN_CLOSE, NULL}};

static void odd_responses_are_classified(mdl_http_client_t *client, apr_pool_t *p)
{
    static const struct {
        const char *path;
        mdl_http_result_t result;
        const char *what;
    } rows[] = {
        {"/chunked", MDL_HTTP_OK, "a chunked body is accepted"},
        {"/hints", MDL_HTTP_OK, "an interim response is skipped"},
        {"/identity", MDL_HTTP_OK, "the content coding \"identity\" is accepted"},
        {"/weak", MDL_HTTP_OK, "a response with a weak entity tag is accepted"},
        {"/http10", MDL_HTTP_OK, "an HTTP/1.0 response with a length is accepted"},
        {"/same-lengths", MDL_HTTP_OK, "the same length in two headers is accepted"},
        {"/cut", MDL_HTTP_UNAVAILABLE, "a cut body is temporary"},
        {"/cut-chunked", MDL_HTTP_UNAVAILABLE, "a cut chunked body is temporary"},
        {"/cut-head", MDL_HTTP_UNAVAILABLE, "a cut head is temporary"},
        {"/cut-now", MDL_HTTP_UNAVAILABLE, "no answer at all is temporary"},
        {"/no-length", MDL_HTTP_OK, "a body without a length is handed over"},
        {"/no-length-10", MDL_HTTP_OK, "a body without a length is handed over from HTTP/1.0"},
        {"/list-length", MDL_HTTP_OK, "the same length twice in one header is accepted"},
        {"/list-lengths", MDL_HTTP_REFUSED, "two different lengths in one header are refused"},
        {"/list-no-length", MDL_HTTP_REFUSED, "an empty length is refused"},
        {"/identities", MDL_HTTP_OK, "a list of the coding \"identity\" is accepted"},
        {"/gzip-in-list", MDL_HTTP_REFUSED, "a content coding behind \"identity\" is refused"},
        {"/chunked-list", MDL_HTTP_OK, "empty elements beside \"chunked\" are none"},
        {"/chunked-twice", MDL_HTTP_REFUSED, "chunks in chunks are refused"},
        {"/two-lengths", MDL_HTTP_REFUSED, "two different lengths are refused"},
        {"/odd-length", MDL_HTTP_REFUSED, "a length of twenty digits is refused"},
        {"/gzip", MDL_HTTP_REFUSED, "the content coding gzip is refused"},
        {"/gzip-second", MDL_HTTP_REFUSED, "a content coding in a second header is refused"},
        {"/gzip-transfer", MDL_HTTP_REFUSED, "a transfer coding other than chunked is refused"},
        {"/unasked", MDL_HTTP_REFUSED, "an unrequested 206 is refused"},
        {"/unasked-416", MDL_HTTP_REFUSED, "an unrequested 416 is refused"},
        {"/no-content", MDL_HTTP_REFUSED, "204 is refused"},
        {"/not-http", MDL_HTTP_REFUSED, "a response that is not HTTP is refused"},
        {"/no-target", MDL_HTTP_REFUSED, "a redirect without a target is refused"},
        {"/headers", MDL_HTTP_REFUSED, "endless headers are refused"},
        {"/relative", MDL_HTTP_OK, "a relative redirect is followed"},
        {"/raw", MDL_HTTP_OK, "non-ASCII bytes in a redirect's path are encoded"},
        {"/network-path", MDL_HTTP_URL_INVALID,
         "a redirect with a user name but no scheme is refused"},
        {"/unicode-host", MDL_HTTP_HOST_NOT_ALLOWED, "a redirect's host beyond ASCII is another"},
        {"/redirect-flood", MDL_HTTP_OK, "the body of a redirect is not read"}};
    take_t take = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int taken = rows[i].result == MDL_HTTP_OK;

        take_all(client, at(mock.base, rows[i].path), &take);
        if (!is_int(take.result, rows[i].result, rows[i].what)) {
            printf("#   %s\n", take.detail);
        }
        ok(!taken || (is_text(&take, "0123456789") && take.heads == 1 && take.offset == 0),
           apr_psprintf(p, "%s: its bytes are right", rows[i].what));
        is_int(take.dones, 1, "done() is called once");
    }
    take_all(client, at(mock.base, "/chunked"), &take);
    is_int(take.total, -1, "the size of a chunked body is unknown");
    is_int(take.until_close, 0, "its end can be told");
    take_all(client, at(mock.base, "/no-length-10"), &take);
    is_int(take.until_close, 1, "the end of a body without a length can't be told");
    is_int(take.total, -1, "nor its size");
    take_all(client, at(mock.base, "/named"), &take);
    is_str(take.filename, "\xe2\x82\xac.zip", "the source's name of the file is reported");
    take_all(client, at(mock.base, "/weak"), &take);
    is_str(take.filename, "none", "a source that gives no name has none");
    is_str(take.etag, "none", "a weak entity tag is not reported");
    free(take.data);
}

static void a_source_asks_to_wait(mdl_http_client_t *client)
{
    static const struct {
        const char *path;
        int seconds;
    } rows[] = {
        {"/busy-seconds", 7200}, {"/busy-date", 3600}, {"/busy-past", 0}, {"/busy-odd", -1}};
    take_t take = {0};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        take_all(client, at(mock.base, rows[i].path), &take);
        is_int(take.result, MDL_HTTP_UNAVAILABLE, "503 is temporary");
        is_int(take.status, 503, "the status is reported");
        is_int(take.retry_after_s, rows[i].seconds, rows[i].path);
    }
    free(take.data);
}

static void the_request_has_no_needless_headers(mdl_http_client_t *client)
{
    take_t take = {0};

    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    mock_forget(&mock);
    take_all(client, at(mock.base, "/relative"), &take);
    is_int(take.result, MDL_HTTP_OK, "a proxy in the environment is not used");
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    is_int(mock_count(&mock), 2, "a redirect is two requests");
    ok(mock_was_asked(&mock, 0, "GET /relative HTTP/1.1\r\n"), "the first request is HTTP/1.1");
    ok(!mock_was_asked(&mock, 0, "Encoding"), "it has no Accept-Encoding");
    ok(!mock_was_asked(&mock, 0, "Range"), "it has no Range");
    ok(mock_was_asked(&mock, 1, "GET /chunked HTTP/1.1\r\n"),
       "the second request is for the target");
    ok(!mock_was_asked(&mock, 1, "Cookie"), "it does not send the cookie of the first response");
    ok(!mock_was_asked(&mock, 1, "Referer"), "it has no Referer");
    free(take.data);
}

static void wrong_parts_are_fetched_again(mdl_http_client_t *client, apr_pool_t *p)
{
    static const char *const wrong[] = {"/wrong/none",    "/wrong/start", "/wrong/part",
                                        "/wrong/star",    "/wrong/unit",  "/wrong/garbage",
                                        "/wrong/length",  "/wrong/twice", "/wrong/tag",
                                        "/wrong/tagless", "/wrong/416"};
    take_t take = {0};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mock_forget(&mock);
        take_rest(client, at(mock.base, wrong[i]), 5, TAG, &take);
        ok(take.result == MDL_HTTP_OK && is_text(&take, "0123456789") && take.heads == 1 &&
               take.offset == 0 && take.total == 10,
           apr_psprintf(p, "%s: the whole file is fetched after a wrong response to a range",
                        wrong[i]));
        is_int(mock_count(&mock), 2, "one more request is made");
        ok(mock_was_asked(&mock, 0, "\r\nRange: bytes=5-\r\nIf-Range: " TAG "\r\n"),
           "the first request is for the rest, with If-Range");
        ok(!mock_was_asked(&mock, 1, "Range"), "the second request is for the whole file");
    }
    mock_forget(&mock);
    take_part(client, at(mock.base, "/wrong/size"),
              &(mdl_http_part_t){.offset = 5, .total = 11, .etag = TAG}, &take);
    ok(take.result == MDL_HTTP_OK && is_text(&take, "0123456789"),
       "the rest of a file that had another size is not taken, whatever its entity tag");
    is_int(mock_count(&mock), 2, "one more request is made");
    take_part(client, at(mock.base, "/rest"),
              &(mdl_http_part_t){.offset = 5, .total = 10, .etag = TAG}, &take);
    ok(take.result == MDL_HTTP_OK && is_text(&take, "56789"), "one of the same size is");
    mock_forget(&mock);
    take_rest(client, at(mock.base, "/stubborn"), 5, TAG, &take);
    is_int(take.result, MDL_HTTP_REFUSED, "a source that answers wrongly twice is refused");
    is_int(mock_count(&mock), 2, "two requests are made");
    is_int(take.heads, 0, "head() is not called");
    take_rest(client, at(mock.base, "/unasked-416"), 5, TAG, &take);
    is_int(take.result, MDL_HTTP_REFUSED, "a source that always answers 416 is refused");
    free(take.data);
}

static void right_parts_are_accepted(mdl_http_client_t *client)
{
    static const char *const weak[] = {NULL,      "", "v1", "W/" TAG, "\"v1", "\"v\r\nX: 1\"",
                                       "\"a\"b\""};
    take_t take = {0};

    take_rest(client, at(mock.base, "/rest"), 5, TAG, &take);
    ok(take.result == MDL_HTTP_OK && is_text(&take, "56789"), "the rest is accepted");
    is_int(take.offset, 5, "it begins at the requested offset");
    is_int(take.total, 10, "the file's size is reported");
    take_rest(client, at(mock.base, "/rest-chunked"), 5, TAG, &take);
    ok(take.result == MDL_HTTP_OK && is_text(&take, "56789"), "a chunked rest is accepted");
    take_rest(client, at(mock.base, "/rest-short"), 5, TAG, &take);
    is_int(take.result, MDL_HTTP_UNAVAILABLE, "a body shorter than its range is temporary");
    take_rest(client, at(mock.base, "/rest-long"), 5, TAG, &take);
    is_int(take.result, MDL_HTTP_REFUSED, "a body longer than its range is refused");
    take_rest(client, at(mock.base, "/ignored"), 5, TAG, &take);
    ok(take.result == MDL_HTTP_OK && is_text(&take, "0123456789"),
       "the whole file is accepted from a 200");
    is_int(take.offset, 0, "it begins at the file's beginning");
    for (size_t i = 0; i < sizeof weak / sizeof weak[0]; i++) {
        mock_forget(&mock);
        take_rest(client, at(mock.base, "/chunked"), 5, weak[i], &take);
        is_int(take.offset, 0, "without a strong entity tag the whole file is fetched");
        ok(!mock_was_asked(&mock, 0, "Range") && !mock_was_asked(&mock, 0, "X:"),
           "the request has no Range");
    }
    take_rest(client, at(mock.base, "/chunked"), 0, TAG, &take);
    is_int(take.result, MDL_HTTP_OK, "an entity tag with offset 0 gives no range");
    free(take.data);
}

static void times_are_limited(mdl_http_client_t *client)
{
    apr_time_t begin = apr_time_now();
    take_t take = {0};

    policy.total_timeout_s = 1;
    take_all(client, at(mock.base, "/silent"), &take);
    is_int(take.result, MDL_HTTP_TIMEOUT, "the total time is limited");
    ok(apr_time_now() - begin < apr_time_from_sec(25), "the limit is the policy's");
    policy.total_timeout_s = 60;
    policy.stall_timeout_s = 1;
    begin = apr_time_now();
    take_all(client, at(mock.base, "/stall"), &take);
    is_int(take.result, MDL_HTTP_TIMEOUT, "a body that stalls is abandoned");
    ok(apr_time_now() - begin < apr_time_from_sec(30),
       "it is abandoned long before the total time has passed");
    is_int(take.length, 10, "the bytes before the stall were handed over");
    policy.stall_timeout_s = 30;
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
    odd_responses_are_classified(client, p);
    a_source_asks_to_wait(client);
    the_request_has_no_needless_headers(client);
    right_parts_are_accepted(client);
    wrong_parts_are_fetched_again(client, p);
    times_are_limited(client);
    mock_stop(&mock);
    return tap_end(p);
}
