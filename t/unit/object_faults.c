/* How requests to an object store fail, with a peer that fails on command: every answer that the
   client tells from others, what helps, and when it gives up. */
#include <stdlib.h>

#include "base/http/client.h"
#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "t/unit/object_peer.h"
#include "t/unit/tap.h"

#define SECONDS(n) apr_time_from_sec(n)
#define SHA_OF_DATA                                                                                \
    "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7" /* "data"                   \
                                                                        */
#define GOOD       OK_LINE "Content-Length: 4\r\n\r\ngood"
#define HEAD_OF(n) OK_LINE "Content-Length: " n "\r\n\r\n"
#define PUT_GOOD   OK_LINE "ETag: \"e1\"\r\nContent-Length: 0\r\n\r\n"
#define COMPLETED  OK_LINE "\r\n   \n" XML "<CompleteMultipartUploadResult/>"

static apr_pool_t *p;
static peer_t peer;
static mdl_object_call_t call;

static const mdl_object_body_t data = {.bytes = "data", .length = 4, .sha256 = SHA_OF_DATA};

static apr_status_t get(apr_interval_time_t patience)
{
    const char *bytes;
    apr_size_t length;

    call = (mdl_object_call_t){.patience = patience, .why = ""};
    return mdl_object_get(peer.store, "key", 100, &bytes, &length, &call, p);
}

static apr_status_t put(apr_interval_time_t patience)
{
    call = (mdl_object_call_t){.patience = patience, .why = ""};
    return mdl_object_put(peer.store, "key", &data, &call, p);
}

/* --- the failure table --- */

static const struct {
    const char *what, *answer;
    apr_status_t rv;
    const char *why; /* a part of it */
} failures[] = {
    {"a connection that ends without an answer", "", MDL_OBJECT_EAWAY, "broke off"},
    {"a cut head", OK_LINE, MDL_OBJECT_EAWAY, "broke off"},
    {"a cut body", OK_LINE "Content-Length: 5\r\n\r\ngood", MDL_OBJECT_EAWAY, "broke off"},
    {"a cut chunked body", OK_LINE "Transfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n",
     MDL_OBJECT_EAWAY, "broke off"},
    {"408", ERROR("408", ""), MDL_OBJECT_EAWAY, "answered 408"},
    {"409", ERROR("409", "OperationAborted"), MDL_OBJECT_EAWAY, "409 OperationAborted"},
    {"429", ERROR("429", "TooManyRequests"), MDL_OBJECT_EAWAY, "it is busy"},
    {"500", ERROR("500", "InternalError"), MDL_OBJECT_EAWAY, "500 InternalError"},
    {"502 of a proxy", ERROR_LINE("502") "\r\n<html>Bad Gateway</html>", MDL_OBJECT_EAWAY, "502"},
    {"503 SlowDown", ERROR("503", "SlowDown"), MDL_OBJECT_EAWAY, "503 SlowDown"},
    {"504", ERROR("504", ""), MDL_OBJECT_EAWAY, "504"},
    {"400 RequestTimeout", ERROR("400", "RequestTimeout"), MDL_OBJECT_EAWAY, "in time"},
    {"403 AccessDenied", ERROR("403", "AccessDenied"), MDL_OBJECT_EDENIED, "policy"},
    {"403 SignatureDoesNotMatch", ERROR("403", "SignatureDoesNotMatch"), MDL_OBJECT_EDENIED,
     "DownloadsObjectKeyFile"},
    {"403 InvalidAccessKeyId", ERROR("403", "InvalidAccessKeyId"), MDL_OBJECT_EDENIED,
     "access key"},
    {"403 without a body", ERROR_LINE("403") "Content-Length: 0\r\n\r\n", MDL_OBJECT_EDENIED,
     "answered 403: look at DownloadsObjectStore"},
    {"401", ERROR("401", ""), MDL_OBJECT_EDENIED, "401"},
    {"400 of a wrong region",
     ERROR_LINE("400") "\r\n" XML "<Error><Code>AuthorizationHeaderMalformed</Code>"
                       "<Region>eu-central-1</Region></Error>",
     MDL_OBJECT_EDENIED, "DownloadsObjectRegion is wrong (its region is eu-central-1)."},
    {"301",
     ERROR_LINE("301") "x-amz-bucket-region: eu-west-1\r\nLocation: http://127.0.0.1:1/\r\n\r\n" XML
                       "<Error><Code>PermanentRedirect</Code></Error>",
     MDL_OBJECT_EDENIED, "(its region is eu-west-1)"},
    {"307", ERROR_LINE("307") "Location: http://127.0.0.1:1/\r\n\r\n", MDL_OBJECT_EDENIED,
     "redirects"},
    {"404 NoSuchBucket", ERROR("404", "NoSuchBucket"), MDL_OBJECT_EDENIED, "bucket"},
    {"404 of another server", ERROR_LINE("404") "\r\n<html>Not Found</html>", MDL_OBJECT_EDENIED,
     "DownloadsObjectStore"},
    {"404 NoSuchKey", ERROR("404", "NoSuchKey"), APR_ENOENT, "no such object"},
    {"404 NoSuchUpload", ERROR("404", "NoSuchUpload"), MDL_OBJECT_EBROKEN, "no such upload"},
    {"400 InvalidPart", ERROR("400", "InvalidPart"), MDL_OBJECT_EBROKEN, "a part is gone"},
    {"400 EntityTooSmall", ERROR("400", "EntityTooSmall"), MDL_OBJECT_EBROKEN, "5 MiB"},
    {"501", ERROR("501", "NotImplemented"), MDL_OBJECT_EDENIED, "can't do"},
    {"507", ERROR("507", ""), APR_ENOSPC, "full"},
    {"403 QuotaExceeded", ERROR("403", "QuotaExceeded"), APR_ENOSPC, "quota"},
    {"400 ExpiredToken", ERROR("400", "ExpiredToken"), MDL_OBJECT_EDENIED, "session token"},
    {"a code that is not fit for the log", ERROR("403", "A&#10;MDL9999: forged"),
     MDL_OBJECT_EDENIED, "answered 403: "},
    {"a body without an end", OK_LINE "\r\ngood", MDL_OBJECT_EBROKEN, "how large"},
    {"what is no HTTP", "220 mail.example ESMTP\r\n", MDL_OBJECT_EDENIED, "no answer of HTTP"},
};

static void failures_have_classes(void)
{
    for (apr_size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        int passes = failures[i].rv == MDL_OBJECT_EAWAY;

        PLAY(&peer, p, {failures[i].answer, PEER_CLOSE}, {GOOD, PEER_CLOSE});
        is_int(get(0), failures[i].rv, failures[i].what);
        if (!ok(strstr(call.why, failures[i].why) != NULL, "the reason says it")) {
            printf("#   %s\n", call.why);
        }
        ok(call.why[strlen(call.why) - 1] == '.' && strstr(call.why, "127.0.0.1") != NULL &&
               strstr(call.why, "OF-TESTS") == NULL && strstr(call.why, "ignature=") == NULL &&
               strchr(call.why, '\n') == NULL,
           "in a sentence with the host and without a secret");
        is_int(peer_count(&peer), 1, "without patience it is asked once");

        PLAY(&peer, p, {failures[i].answer, PEER_CLOSE}, {GOOD, PEER_CLOSE});
        is_int(get(SECONDS(60)), passes ? APR_SUCCESS : failures[i].rv,
               passes ? "it passes" : "patience does not help");
        is_int(peer_count(&peer), passes ? 2 : 1, "so it is asked as often as that helps");
    }
}

static void a_host_can_be_silent_or_missing(void)
{
    peer_timeout_s = PEER_SHORT;
    PLAY(&peer, p, {"", PEER_HOLD}, {GOOD, PEER_CLOSE});
    is_int(get(0), MDL_OBJECT_EAWAY, "a store that does not answer within its time is away");
    ok(strstr(call.why, "did not answer in time"), "with the reason");
    PLAY(&peer, p, {OK_LINE "Content-Length: 5\r\n\r\ngood", PEER_HOLD}, {GOOD, PEER_CLOSE});
    is_int(get(SECONDS(60)), APR_SUCCESS, "a body that stands still is asked for again");
    is_int(peer_count(&peer), 2, "once");
    peer_timeout_s = 30;

    PLAY(&peer, p, {GOOD, PEER_CLOSE});
    peer.store = peer_store("http://127.0.0.1:1/bucket", NULL, p);
    is_int(get(0), MDL_OBJECT_EAWAY, "a port where nobody listens is away");
    ok(strstr(call.why, "127.0.0.1:1 refuses connections"), "with the reason");
    peer.store = peer_store("http://nobody.invalid/bucket", NULL, p);
    is_int(get(0), MDL_OBJECT_EAWAY, "so is a name without an address");
    ok(strstr(call.why, "nobody.invalid has no address"), "with the reason");
}

static int stopped_after(void *baton)
{
    int *calls = baton;

    return --*calls < 0;
}

static void a_call_can_be_stopped(void)
{
    const char *bytes;
    apr_size_t length;
    int calls = 3;
    mdl_object_call_t stopping = {
        .patience = SECONDS(600), .stopped = stopped_after, .baton = &calls};

    PLAY(&peer, p, {"", PEER_HOLD});
    is_int(mdl_object_get(peer.store, "key", 100, &bytes, &length, &stopping, p), APR_EINTR,
           "a call can be stopped while it waits for an answer");
    calls = 1;
    PLAY(&peer, p, {ERROR("503", "SlowDown"), PEER_CLOSE});
    is_int(mdl_object_get(peer.store, "key", 100, &bytes, &length, &stopping, p), APR_EINTR,
           "and between two attempts");
}

static void bytes_that_change_are_sent_again(void)
{
    PLAY(&peer, p, {ERROR("400", "BadDigest"), PEER_CLOSE},
         {ERROR("400", "XAmzContentSHA256Mismatch"), PEER_CLOSE}, {PUT_GOOD, PEER_CLOSE});
    is_int(put(0), APR_SUCCESS, "bytes that changed on their way are sent again, twice");
    ok(peer_was_asked(&peer, 0, "PUT /bucket/pre/fix/key HTTP/1.1\r\n"), "under their key");
    ok(peer_was_asked(&peer, 2, "\r\nx-amz-content-sha256: " SHA_OF_DATA "\r\n"),
       "with their hash");
    ok(!peer_was_asked(&peer, 2, "Expect"), "and without an Expect");
    PLAY(&peer, p, {ERROR("400", "BadDigest"), PEER_CLOSE});
    is_int(put(SECONDS(60)), MDL_OBJECT_EBROKEN, "and then given up");
    is_int(peer_count(&peer), 3, "after three attempts");
}

static void clocks_may_differ(void)
{
    static const char *const skewed = ERROR_LINE(
        "403") "Date: Fri, 24 May 2013 00:00:00 GMT\r\n\r\n" XML
               "<Error><Code>RequestTimeTooSkewed</Code></Error>";
    static const char *const dateless = ERROR("403", "RequestTimeTooSkewed");

    logged[0] = '\0';
    PLAY(&peer, p, {skewed, PEER_CLOSE}, {GOOD, PEER_CLOSE});
    is_int(get(0), APR_SUCCESS, "the store's clock is learned from its refusal");
    ok(peer_was_asked(&peer, 1, "\r\nx-amz-date: 20130524T0000"), "and used at once");
    is_int(log_count("MDL0603"), 1, "a large difference is logged");
    is_int(get(0), APR_SUCCESS, "another request");
    ok(peer_was_asked(&peer, 2, "\r\nx-amz-date: 20130524T0000"), "uses it from the beginning");
    ok(strstr(mdl_object_url(peer.store, "key", 60, "attachment", "a/b", p),
              "X-Amz-Date=20130524T0000"),
       "and so does a URL for a client");
    PLAY(&peer, p, {skewed, PEER_CLOSE});
    is_int(get(SECONDS(60)), MDL_OBJECT_EDENIED,
           "a store that refuses its own clock is not asked "
           "for ever");
    is_int(peer_count(&peer), 2, "but twice");
    PLAY(&peer, p, {dateless, PEER_CLOSE});
    is_int(get(SECONDS(60)), MDL_OBJECT_EDENIED, "without a Date nothing can be learned");
    ok(strstr(call.why, "NTP"), "and the reason says what to do");
}

/* --- a store that is away --- */

static void a_store_can_be_away(void)
{
    logged[0] = '\0';
    PLAY(&peer, p, {ERROR("503", "SlowDown"), PEER_CLOSE}, {ERROR("404", "NoSuchKey"), PEER_CLOSE},
         {ERROR("503", "SlowDown"), PEER_CLOSE}, {"", PEER_CLOSE},
         {ERROR("503", "SlowDown"), PEER_CLOSE}, {"", PEER_CLOSE},
         {ERROR("503", "SlowDown"), PEER_CLOSE}, {"", PEER_CLOSE}, {"", PEER_HOLD},
         {GOOD, PEER_CLOSE});
    get(0);
    get(0);
    for (int i = 0; i < 4; i++) {
        get(0);
    }
    ok(!mdl_object_store_is_away(peer.store), "four failures in a row are no absence");
    is_int(log_count("MDL0601"), 0, "nor logged");
    get(0);
    ok(mdl_object_store_is_away(peer.store), "five are");
    is_int(log_count("MDL0601"), 1, "which is logged, with the reason");
    ok(strstr(logged, "503 SlowDown"), "of the last failure");
    is_int(get(0), MDL_OBJECT_EAWAY, "a call asks it nevertheless");
    is_int(peer_count(&peer), 8, "by one request");
    ok(mdl_object_store_is_away(peer.store), "which has failed");
    is_int(log_count("MDL060"), 1, "and is not logged again");
}

typedef struct {
    mdl_object_store_t *store;
    apr_status_t rv;
    volatile int stop;
} asking_t;

static int asking_is_stopped(void *baton)
{
    return ((asking_t *)baton)->stop;
}

static void *APR_THREAD_FUNC ask(apr_thread_t *thread, void *baton)
{
    asking_t *asking = baton;
    mdl_object_call_t own = {
        .patience = SECONDS(600), .stopped = asking_is_stopped, .baton = asking};
    const char *bytes;
    apr_size_t length;
    apr_pool_t *pool;

    (void)thread;
    apr_pool_create(&pool, NULL);
    asking->rv = mdl_object_get(asking->store, "key", 100, &bytes, &length, &own, pool);
    apr_pool_destroy(pool);
    return NULL;
}

static void wait_for_count(int count)
{
    for (int i = 0; i < 9000 && peer_count(&peer) < count; i++) {
        apr_sleep(10000);
    }
}

static void one_call_asks_a_store_that_is_away(void)
{
    asking_t asking = {0};
    apr_thread_t *thread;
    apr_status_t rv;

    logged[0] = '\0';
    PLAY(&peer, p, {"", PEER_CLOSE}, {"", PEER_CLOSE}, {"", PEER_CLOSE}, {"", PEER_CLOSE},
         {"", PEER_CLOSE}, {"", PEER_WAIT}, {GOOD, PEER_CLOSE});
    for (int i = 0; i < 5; i++) {
        get(0);
    }
    asking.store = peer.store;
    apr_thread_create(&thread, NULL, ask, &asking, p);
    wait_for_count(6);
    is_int(get(SECONDS(60)), MDL_OBJECT_EAWAY, "while one call asks, another fails at once");
    ok(strstr(call.why, "is away; another request asks it."), "and says so");
    is_int(peer_count(&peer), 6, "without a request");
    peer_release(&peer);
    apr_thread_join(&rv, thread);
    is_int(asking.rv, APR_SUCCESS, "the one that asks gets the answer, in its second attempt");
    ok(!mdl_object_store_is_away(peer.store), "which ends the absence");
    is_int(log_count("MDL0602"), 1, "and is logged");
    is_int(get(0), APR_SUCCESS, "others are let through again");
}

static void denials_are_logged_now_and_then(void)
{
    logged[0] = '\0';
    PLAY(&peer, p, {ERROR("403", "AccessDenied"), PEER_CLOSE});
    get(0);
    put(0);
    is_int(log_count("MDL0604"), 1, "what the operator has to do is logged once a minute");
}

/* --- HEAD, whose refusals say nothing --- */

static void head_finds_out_why(void)
{
    static const char *const silent = ERROR_LINE("404") "\r\n";
    apr_int64_t size = 0;

    call = (mdl_object_call_t){.why = ""};
    PLAY(&peer, p, {HEAD_OF("12345678901"), PEER_CLOSE});
    is_int(mdl_object_head(peer.store, "key", &size, &call, p), APR_SUCCESS, "HEAD");
    is_int(size, 12345678901, "has the size");
    PLAY(&peer, p, {silent, PEER_CLOSE}, {ERROR("404", "NoSuchKey"), PEER_CLOSE});
    is_int(mdl_object_head(peer.store, "key", &size, &call, p), APR_ENOENT,
           "a missing object is told");
    ok(peer_was_asked(&peer, 1, "GET /") && peer_was_asked(&peer, 1, "\r\nRange: bytes=0-0\r\n"),
       "by GET of its first byte");
    logged[0] = '\0';
    PLAY(&peer, p, {silent, PEER_CLOSE}, {ERROR("404", "NoSuchBucket"), PEER_CLOSE});
    is_int(mdl_object_head(peer.store, "key", &size, &call, p), MDL_OBJECT_EDENIED,
           "from a missing bucket");
    is_int(log_count("MDL0604"), 1, "which is logged once");
    PLAY(&peer, p, {ERROR_LINE("403") "\r\n", PEER_CLOSE},
         {ERROR_LINE("403") "Date: Fri, 24 May 2013 00:00:00 GMT\r\n\r\n" XML
                            "<Error><Code>RequestTimeTooSkewed</Code></Error>",
          PEER_CLOSE},
         {ERROR_LINE("206") "Content-Range: bytes 0-0/77\r\nContent-Length: 1\r\n\r\nx",
          PEER_CLOSE});
    is_int(mdl_object_head(peer.store, "key", &size, &call, p), APR_SUCCESS, "a wrong clock");
    is_int(size, 77, "does not hide the size");
    PLAY(&peer, p, {ERROR_LINE("403") "\r\n", PEER_CLOSE},
         {ERROR("416", "InvalidRange"), PEER_CLOSE});
    is_int(mdl_object_head(peer.store, "key", &size, &call, p), APR_SUCCESS, "an empty object");
    is_int(size, 0, "has no first byte");
}

/* --- bounds --- */

static void answers_have_bounds(void)
{
    char *flood = apr_palloc(p, 200001);

    memset(flood, 'x', 200000);
    flood[200000] = '\0';
    PLAY(&peer, p, {OK_LINE "Content-Length: 110\r\n\r\n" HUNDRED, PEER_CLOSE});
    is_int(get(SECONDS(60)), MDL_OBJECT_EBROKEN, "an object that is larger than allowed");
    ok(strstr(call.why, "too large"), "is refused");
    PLAY(&peer, p,
         {apr_pstrcat(p, OK_LINE "Content-Length: 100\r\n\r\n", flood + 199900, NULL), PEER_CLOSE});
    is_int(get(0), APR_SUCCESS, "one of just that size is not");
    PLAY(&peer, p, {apr_pstrcat(p, OK_LINE "X-Flood: ", flood, "\r\n\r\n", NULL), PEER_CLOSE});
    ok(get(0) != APR_SUCCESS, "headers have a bound");
    PLAY(&peer, p, {apr_pstrcat(p, ERROR_LINE("503") "\r\n", flood, NULL), PEER_CLOSE});
    is_int(get(0), MDL_OBJECT_EAWAY, "an endless error is its status");
}

static void no_proxy_is_used(void)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    PLAY(&peer, p, {GOOD, PEER_CLOSE});
    is_int(get(0), APR_SUCCESS, "the environment's proxy is not used");
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

static void certificates_are_checked(void)
{
    httpd_t httpd;

    if (!httpd_start(&httpd, p)) {
        ok(0, "httpd starts");
        return;
    }
    peer.store = peer_store(apr_pstrcat(p, httpd.tls, "/bucket", NULL),
                            apr_pstrcat(p, httpd.folder, "/other.pem", NULL), p);
    is_int(get(SECONDS(60)), MDL_OBJECT_EDENIED,
           "a certificate for another name is the "
           "operator's");
    ok(strstr(call.why, "certificate for another name"), "with the reason");
    peer.store = peer_store(apr_pstrcat(p, httpd.tls, "/bucket", NULL), NULL, p);
    is_int(get(SECONDS(60)), MDL_OBJECT_EDENIED, "so is one whose issuer is not trusted");
    httpd_stop(&httpd, p);
}

/* --- writing in parts --- */

static apr_status_t complete(apr_interval_time_t patience)
{
    apr_array_header_t *parts = apr_array_make(p, 1, sizeof(mdl_object_part_t));

    APR_ARRAY_PUSH(parts, mdl_object_part_t) = (mdl_object_part_t){1, 5, "\"e<1>\""};
    call = (mdl_object_call_t){.patience = patience, .why = ""};
    return mdl_object_parts_complete(peer.store, "key", "up/1", parts, 5, &call, p);
}

static void parts_are_completed(void)
{
    peer_timeout_s = PEER_SHORT;
    PLAY(&peer, p, {COMPLETED, PEER_LATE}, {HEAD_OF("5"), PEER_CLOSE});
    peer_timeout_s = 30;
    is_int(complete(0), APR_SUCCESS, "Complete may take longer than other answers");
    is_str(call.why, "", "without a failure that the next look makes good");
    ok(peer_was_asked(&peer, 0, "POST /bucket/pre/fix/key?uploadId=up%2F1 HTTP/1.1"), "by POST");
    ok(peer_was_asked(&peer, 0, "<PartNumber>1</PartNumber><ETag>&quot;e&lt;1&gt;&quot;</ETag>"),
       "of the parts' tags");
    ok(peer_was_asked(&peer, 1, "HEAD /bucket/pre/fix/key HTTP/1.1"), "and the size is looked at");
    PLAY(&peer, p, {OK_LINE "\r\n  \n" XML "<Error><Code>InternalError</Code></Error>", PEER_CLOSE},
         {COMPLETED, PEER_CLOSE}, {HEAD_OF("5"), PEER_CLOSE});
    is_int(complete(SECONDS(60)), APR_SUCCESS, "an error in a 200 is no success");
    is_int(peer_count(&peer), 3, "but a failure that passes");
    PLAY(&peer, p, {"", PEER_CLOSE}, {ERROR("404", "NoSuchUpload"), PEER_CLOSE},
         {HEAD_OF("5"), PEER_CLOSE});
    is_int(complete(SECONDS(60)), APR_SUCCESS,
           "an answer that is lost does no harm: the object is there");
    PLAY(&peer, p, {"", PEER_CLOSE}, {HEAD_OF("5"), PEER_CLOSE});
    is_int(complete(0), APR_SUCCESS, "also if there is no time for another attempt");
    PLAY(&peer, p, {"", PEER_CLOSE}, {ERROR("404", "NoSuchUpload"), PEER_CLOSE},
         {HEAD_OF("6"), PEER_CLOSE});
    is_int(complete(SECONDS(60)), MDL_OBJECT_EBROKEN, "an object of another size is not ours");
    PLAY(&peer, p, {ERROR("404", "NoSuchUpload"), PEER_CLOSE},
         {ERROR_LINE("404") "\r\n", PEER_CLOSE}, {ERROR("404", "NoSuchKey"), PEER_CLOSE});
    is_int(complete(SECONDS(60)), MDL_OBJECT_EBROKEN, "an upload that is gone has to begin anew");
    ok(strstr(call.why, "NoSuchUpload"), "with the reason of Complete");
    PLAY(&peer, p, {COMPLETED, PEER_CLOSE}, {HEAD_OF("4"), PEER_CLOSE});
    is_int(complete(0), MDL_OBJECT_EBROKEN, "nor is a success with another size believed");
    PLAY(&peer, p, {ERROR("403", "AccessDenied"), PEER_CLOSE});
    is_int(complete(0), MDL_OBJECT_EDENIED, "a denial");
    is_int(peer_count(&peer), 1, "needs no second look");
}

static void parts_are_put_and_listed(void)
{
    const char *text = NULL;
    apr_array_header_t *parts;

    call = (mdl_object_call_t){.why = ""};
    PLAY(&peer, p, {PUT_GOOD, PEER_CLOSE});
    is_int(mdl_object_parts_put(peer.store, "key", "u", 3, &data, &text, &call, p), APR_SUCCESS,
           "a part");
    is_str(text, "\"e1\"", "has a tag");
    ok(peer_was_asked(&peer, 0, "PUT /bucket/pre/fix/key?partNumber=3&uploadId=u HTTP/1.1"),
       "by its number");
    PLAY(&peer, p, {OK_LINE "Content-Length: 0\r\n\r\n", PEER_CLOSE});
    is_int(mdl_object_parts_put(peer.store, "key", "u", 3, &data, &text, &call, p),
           MDL_OBJECT_EBROKEN, "a part without a tag can't be named later");
    PLAY(&peer, p,
         {OK_LINE "\r\n" XML "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/"
                  "2006-03-01/\"><UploadId>a&amp;b</UploadId></InitiateMultipartUploadResult>",
          PEER_CLOSE});
    is_int(mdl_object_parts_create(peer.store, "key", &text, &call, p), APR_SUCCESS, "an upload");
    is_str(text, "a&b", "has an id");
    PLAY(&peer, p,
         {OK_LINE "\r\n" XML
                  "<ListPartsResult><IsTruncated>true</IsTruncated><Part><PartNumber>1</PartNumber>"
                  "<ETag>&quot;a&quot;</ETag><Size>5242880</Size></Part></ListPartsResult>",
          PEER_CLOSE},
         {OK_LINE
          "\r\n" XML
          "<ListPartsResult><IsTruncated>false</IsTruncated><Part><PartNumber>2</PartNumber>"
          "<ETag>b</ETag><Size>1</Size></Part></ListPartsResult>",
          PEER_CLOSE});
    is_int(mdl_object_parts_list(peer.store, "key", "u", &parts, &call, p), APR_SUCCESS, "parts");
    ok(parts->nelts == 2 && APR_ARRAY_IDX(parts, 0, mdl_object_part_t).size == 5242880 &&
           strcmp(APR_ARRAY_IDX(parts, 0, mdl_object_part_t).etag, "\"a\"") == 0 &&
           APR_ARRAY_IDX(parts, 1, mdl_object_part_t).number == 2,
       "are listed over several answers");
    ok(peer_was_asked(&peer, 1, "part-number-marker=1&"), "each from where the last one ended");
    PLAY(&peer, p, {ERROR("404", "NoSuchUpload"), PEER_CLOSE});
    is_int(mdl_object_parts_abort(peer.store, "key", "u", &call, p), APR_SUCCESS,
           "an upload that is gone need not be aborted");
    is_int(mdl_object_parts_list(peer.store, "key", "u", &parts, &call, p), MDL_OBJECT_EBROKEN,
           "but has no parts to go on with");
    PLAY(&peer, p, {ERROR("404", "NoSuchKey"), PEER_CLOSE});
    is_int(mdl_object_parts_abort(peer.store, "key", "u", &call, p), APR_SUCCESS,
           "Swift says so of a completed one");
    is_int(mdl_object_delete(peer.store, "key", &call, p), APR_SUCCESS,
           "nor need an object that is not there be deleted");
}

/* --- lists --- */

static void lists_are_read(void)
{
    const char *cursor = NULL;
    apr_array_header_t *entries;
    const mdl_object_entry_t *entry;

    call = (mdl_object_call_t){.why = ""};
    PLAY(&peer, p,
         {OK_LINE "Date: Fri, 24 May 2013 00:01:00 GMT\r\n\r\n" XML
                  "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t/1"
                  "</NextContinuationToken><Contents><Key>pre/fix/a&lt;b</Key><Size>7</Size>"
                  "<LastModified>2013-05-24T00:00:00.000Z</LastModified></Contents><Contents>"
                  "<Key>other</Key></Contents></ListBucketResult>",
          PEER_CLOSE},
         {OK_LINE "\r\n" XML "<ListBucketResult/>", PEER_CLOSE}, {GOOD, PEER_CLOSE},
         {OK_LINE "\r\n" XML "<ListBucketResult>", PEER_CLOSE});
    is_int(mdl_object_list(peer.store, "a", &cursor, &entries, &call, p), APR_SUCCESS, "a list");
    ok(peer_was_asked(&peer, 0, "GET /bucket?list-type=2&prefix=pre%2Ffix%2Fa HTTP/1.1"),
       "is of the bucket");
    is_int(entries->nelts, 1, "and of its prefix");
    entry = &APR_ARRAY_IDX(entries, 0, mdl_object_entry_t);
    is_str(entry->key, "a<b", "with keys behind that");
    is_int(entry->size, 7, "sizes");
    is_int(apr_time_sec(entry->age), 60, "and ages by the store's clock");
    is_str(cursor, "t/1", "goes on behind its end");
    is_int(mdl_object_list(peer.store, "a", &cursor, &entries, &call, p), APR_SUCCESS, "there");
    ok(peer_was_asked(&peer, 1, "GET /bucket?continuation-token=t%2F1&list-type=2"), "it does");
    ok(cursor == NULL && entries->nelts == 0, "and ends");
    for (int i = 0; i < 2; i++) {
        is_int(mdl_object_list(peer.store, "a", &cursor, &entries, &call, p), MDL_OBJECT_EDENIED,
               "what is no list of S3 comes from a wrong address");
        ok(strstr(call.why, "DownloadsObjectStore"), "which the reason names");
    }
}

/* --- where the store is --- */

static void urls_are_checked(void)
{
    static const char *const wrong[] = {
        "",
        "https://",
        "ftp://host/bucket",
        "https://host",
        "https://host/",
        "https://host/ab",
        "https://host/Bucket",
        "https://user@host/bucket",
        "https://host/bucket?x=1",
        "https://host/bucket#x",
        "https://host/bucket//x",
        "https://host/bucket/../x",
        "https://host/bucket/a b",
        "host/bucket",
        "https://ho st/bucket",
    };
    static const struct {
        const char *url;
        const char *start;
    } right[] = {
        {"https://S3.Example.NET/bucket", "https://s3.example.net/bucket/key?"},
        {"https://host:443/bucket/", "https://host/bucket/key?"},
        {"http://host:443/bucket/a/b/", "http://host:443/bucket/a/b/key?"},
        {"https://[::1]:9000/bucket", "https://[::1]:9000/bucket/key?"},
    };
    mdl_object_config_t config = {
        .region = "us-east-1", .access_key = "A", .secret_key = "S", .timeout_s = 1};
    mdl_object_store_t *store;
    const char *why;

    for (apr_size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config.url = wrong[i];
        is_int(mdl_object_store_create(&store, &config, &why, p), APR_EINVAL,
               apr_psprintf(p, "refused: \"%s\"", wrong[i]));
        ok(store == NULL && why != NULL && why[strlen(why) - 1] == '.', "with a reason");
    }
    for (apr_size_t i = 0; i < sizeof right / sizeof *right; i++) {
        const char *url;

        config.url = right[i].url;
        is_int(mdl_object_store_create(&store, &config, &why, p), APR_SUCCESS, right[i].url);
        url = mdl_object_url(store, "key", 60, "attachment", "a/b", p);
        is_str(apr_pstrmemdup(p, url, strlen(right[i].start)), right[i].start, "is understood");
    }
    config.url = "http://10.0.0.1/bucket/x";
    config.public_url = "https://Files.example.com/bucket/x";
    is_int(mdl_object_store_create(&store, &config, &why, p), APR_SUCCESS, "a public URL");
    ok(strncmp(mdl_object_url(store, "key", 60, "attachment", "a/b", p),
               "https://files.example.com/bucket/x/key?", 39) == 0,
       "is what clients get");
    config.public_url = "https://files.example.com/";
    is_int(mdl_object_store_create(&store, &config, &why, p), APR_EINVAL, "and checked");
}

int main(void)
{
    p = tap_begin();
    mdl_http_global_init(p);
    mdl_log_set_sink(log_sink);
    peer_start(&peer, p);
    failures_have_classes();
    a_host_can_be_silent_or_missing();
    a_call_can_be_stopped();
    bytes_that_change_are_sent_again();
    clocks_may_differ();
    a_store_can_be_away();
    one_call_asks_a_store_that_is_away();
    denials_are_logged_now_and_then();
    head_finds_out_why();
    answers_have_bounds();
    no_proxy_is_used();
    certificates_are_checked();
    parts_are_completed();
    parts_are_put_and_listed();
    lists_are_read();
    urls_are_checked();
    peer_stop(&peer);
    return tap_end(p);
}
