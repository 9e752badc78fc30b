/* Reading an object as a stream from a peer that cuts, stands still and sends what was not asked.
 */
#include <stdlib.h>

#include "base/http/client.h"
#include "base/http/object_reader.h"
#include "t/unit/object_peer.h"
#include "t/unit/tap.h"

#define SECONDS(n) apr_time_from_sec(n)
#define PART(range, n)                                                                             \
    ERROR_LINE("206") "Content-Range: bytes " range "\r\nContent-Length: " n "\r\n\r\n"

static apr_pool_t *p;
static peer_t peer;
static mdl_object_call_t call;
static mdl_object_reader_t *reader;
static apr_pool_t *pool; /* of the reader */

static apr_status_t open_reader(apr_int64_t total, apr_int64_t offset, apr_int64_t length,
                                apr_interval_time_t patience)
{
    apr_pool_clear(pool);
    call = (mdl_object_call_t){.patience = patience, .why = ""};
    return mdl_object_reader_open(&reader, peer.store, "key", total, offset, length, &call, pool);
}

/* All that the reader gives, in pool; *rv gets how it ended. */
static const char *take_all(apr_status_t *rv)
{
    const char *bytes, *all = "";
    apr_size_t length;

    while ((*rv = mdl_object_reader_take(reader, &bytes, &length)) == APR_SUCCESS && length > 0) {
        all = apr_pstrcat(pool, all, apr_pstrmemdup(pool, bytes, length), NULL);
    }
    return all;
}

static void answers_are_compared(void)
{
    static const struct {
        const char *what, *answer;
        apr_status_t rv;
    } rows[] = {
        {"the range that was asked for", PART("2-5/10", "4") "2345", APR_SUCCESS},
        {"an object of another size", PART("2-5/11", "4") "2345", APR_EINCOMPLETE},
        {"an object that is too short", PART("2-3/4", "2") "23", APR_EINCOMPLETE},
        {"one that ends before", ERROR("416", "InvalidRange"), APR_EINCOMPLETE},
        {"another range", PART("3-6/10", "4") "3456", MDL_OBJECT_EBROKEN},
        {"a shorter range", PART("2-4/10", "3") "234", MDL_OBJECT_EBROKEN},
        {"a range of unknown size", PART("2-5/*", "4") "2345", MDL_OBJECT_EBROKEN},
        {"no range at all", ERROR_LINE("206") "Content-Length: 4\r\n\r\n2345", MDL_OBJECT_EBROKEN},
        {"the whole object", OK_LINE "Content-Length: 10\r\n\r\n0123456789", MDL_OBJECT_EBROKEN},
        {"no object", ERROR("404", "NoSuchKey"), APR_ENOENT},
        {"no bucket", ERROR("404", "NoSuchBucket"), MDL_OBJECT_EDENIED},
        {"a store that is busy", ERROR("503", "SlowDown"), MDL_OBJECT_EAWAY},
    };

    for (apr_size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *bytes;
        apr_size_t length;
        apr_status_t rv;

        PLAY(&peer, p, {rows[i].answer, PEER_CLOSE});
        is_int(open_reader(10, 2, 4, 0), APR_SUCCESS, "nothing is waited for");
        is_int(mdl_object_reader_ready(reader), rows[i].rv, rows[i].what);
        is_int(mdl_object_reader_ready(reader), rows[i].rv, "also if it is asked again");
        ok(rows[i].rv == APR_SUCCESS || call.why[strlen(call.why) - 1] == '.', "with a sentence");
        rv = mdl_object_reader_take(reader, &bytes, &length);
        is_int(rv, rows[i].rv, "and of the bytes");
        ok(rv == APR_SUCCESS ? length == 4 && memcmp(bytes, "2345", 4) == 0 : length == 0,
           "which are right, or none");
        is_int(peer_count(&peer), 1, "by one request");
        ok(peer_was_asked(&peer, 0, "\r\nRange: bytes=2-5\r\n"), "for the range");
    }
}

static void the_first_answer_is_awaited(void)
{
    apr_status_t rv;

    peer_timeout_s = PEER_SHORT;
    PLAY(&peer, p, {ERROR("503", "SlowDown"), PEER_CLOSE}, {"", PEER_CLOSE}, {"", PEER_HOLD},
         {PART("0-3/4", "4") "0123", PEER_CLOSE});
    peer_timeout_s = 30;
    open_reader(4, 0, 4, SECONDS(60));
    is_int(mdl_object_reader_ready(reader), APR_SUCCESS, "with patience failures pass");
    is_int(peer_count(&peer), 4, "in several attempts");
    is_str(take_all(&rv), "0123", "and the bytes come");
    PLAY(&peer, p, {"", PEER_CLOSE}, {PART("0-3/4", "4") "0123", PEER_CLOSE});
    open_reader(4, 0, 4, SECONDS(60));
    is_str(take_all(&rv), "0123", "nobody has to call ready");
}

static void a_cut_body_goes_on(void)
{
    apr_status_t rv;

    peer_timeout_s = PEER_SHORT;
    PLAY(&peer, p, {PART("0-9/10", "10") "012", PEER_CLOSE}, {"", PEER_CLOSE},
         {PART("3-9/10", "7") "345", PEER_HOLD}, {PART("6-9/10", "4") "6789", PEER_CLOSE});
    peer_timeout_s = 30;
    open_reader(10, 0, 10, 0);
    is_str(take_all(&rv), "0123456789", "a body that is cut or stands still comes whole");
    is_int(rv, APR_SUCCESS, "without an error");
    ok(peer_was_asked(&peer, 1, "\r\nRange: bytes=3-9\r\n") &&
           peer_was_asked(&peer, 2, "\r\nRange: bytes=3-9\r\n") &&
           peer_was_asked(&peer, 3, "\r\nRange: bytes=6-9\r\n"),
       "each request begins with the next byte");

    PLAY(&peer, p, {PART("0-9/10", "10") "012", PEER_CLOSE},
         {PART("3-9/11", "7") "3456789", PEER_CLOSE});
    open_reader(10, 0, 10, 0);
    is_str(take_all(&rv), "012", "an object that has become another is not mixed in");
    is_int(rv, APR_EINCOMPLETE, "but reported");

    PLAY(&peer, p, {PART("0-9/10", "10") "012", PEER_CLOSE},
         {ERROR("404", "NoSuchKey"), PEER_CLOSE});
    open_reader(10, 0, 10, 0);
    is_str(take_all(&rv), "012", "so is one that has gone,");
    is_int(rv, APR_ENOENT, "behind the bytes that came before");
}

static void more_bytes_than_asked_are_refused(void)
{
    apr_status_t rv;

    PLAY(&peer, p, {ERROR_LINE("206") "Content-Range: bytes 0-3/10\r\n\r\n0123456789", PEER_CLOSE});
    open_reader(10, 0, 4, 0);
    take_all(&rv);
    is_int(rv, MDL_OBJECT_EBROKEN, "more bytes than were asked for are refused");
}

static void an_empty_range_is_looked_at(void)
{
    apr_status_t rv;

    PLAY(&peer, p, {OK_LINE "Content-Length: 0\r\n\r\n", PEER_CLOSE});
    open_reader(0, 0, 0, 0);
    is_int(mdl_object_reader_ready(reader), APR_SUCCESS, "an empty object");
    ok(peer_was_asked(&peer, 0, "HEAD /"), "is looked at");
    is_str(take_all(&rv), "", "and has no bytes");
    PLAY(&peer, p, {OK_LINE "Content-Length: 1\r\n\r\n", PEER_CLOSE});
    open_reader(0, 0, 0, 0);
    is_int(mdl_object_reader_ready(reader), APR_EINCOMPLETE, "one that has some is another");
}

static void large_pieces_are_bounded(void)
{
    const int size = 1000000;
    char *body = apr_palloc(p, (apr_size_t)size + 1);
    apr_size_t length, got = 0;
    const char *bytes;
    int largest = 0, same = 1;

    for (int i = 0; i < size; i++) {
        body[i] = (char)('a' + i % 23 + i / 65536 % 3);
    }
    body[size] = '\0';
    PLAY(&peer, p, {apr_pstrcat(p, PART("0-999999/1000000", "1000000"), body, NULL), PEER_CLOSE});
    open_reader(size, 0, size, 0);
    is_int(mdl_object_reader_ready(reader), APR_SUCCESS, "a large object");
    while (mdl_object_reader_take(reader, &bytes, &length) == APR_SUCCESS && length > 0) {
        same &= memcmp(bytes, body + got, length) == 0;
        largest = (int)length > largest ? (int)length : largest;
        got += length;
    }
    is_int(got, size, "comes whole");
    ok(same, "and unchanged");
    is_int(largest, MDL_OBJECT_READER_PIECE, "in pieces of 64 KiB");
    is_int(peer_count(&peer), 1, "by one request");
}

static int stop_now(void *baton)
{
    (void)baton;
    return 1;
}

static void a_reader_can_be_left(void)
{
    PLAY(&peer, p, {"", PEER_HOLD});
    open_reader(10, 0, 10, SECONDS(600));
    call.stopped = stop_now;
    is_int(mdl_object_reader_ready(reader), APR_EINTR, "a reader can be stopped");
    PLAY(&peer, p, {PART("0-9/10", "10") "012", PEER_HOLD});
    open_reader(10, 0, 10, 0);
    mdl_object_reader_ready(reader);
    mdl_object_reader_close(reader);
    mdl_object_reader_close(reader);
    open_reader(10, 0, 10, 0);
    apr_pool_clear(pool);
    ok(1, "closed early, twice, and by its pool");
}

static void a_reader_may_be_the_one_that_asks(void)
{
    PLAY(&peer, p, {"", PEER_CLOSE});
    for (int i = 0; i < 5; i++) {
        open_reader(4, 0, 4, 0);
        mdl_object_reader_ready(reader);
    }
    ok(mdl_object_store_is_away(peer.store), "five readers find out that a store is away");
    is_int(open_reader(4, 0, 4, 0), APR_SUCCESS, "one more asks it");
    {
        mdl_object_reader_t *other;
        mdl_object_call_t own = {.why = ""};

        is_int(mdl_object_reader_open(&other, peer.store, "key", 4, 0, 4, &own, p),
               MDL_OBJECT_EAWAY, "another is refused at once");
        mdl_object_reader_close(reader);
        is_int(mdl_object_reader_open(&other, peer.store, "key", 4, 0, 4, &own, p), APR_SUCCESS,
               "until the first is closed");
        mdl_object_reader_close(other);
    }
}

int main(void)
{
    p = tap_begin();
    mdl_http_global_init(p);
    apr_pool_create(&pool, p);
    peer_start(&peer, p);
    answers_are_compared();
    the_first_answer_is_awaited();
    a_cut_body_goes_on();
    more_bytes_than_asked_are_refused();
    an_empty_range_is_looked_at();
    large_pieces_are_bounded();
    a_reader_can_be_left();
    a_reader_may_be_the_one_that_asks();
    apr_pool_clear(pool);
    peer_stop(&peer);
    return tap_end(p);
}
