#include "base/http/object_reader.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/http/object.h"
#include "base/http/object_attempts.h"

#define BUFFER_BYTES (256 * 1024)
#define STEP         ((apr_int64_t)64 * 1024 * 1024) /* the most that one request asks for */
#define QUIET        apr_time_from_sec(30)           /* without a byte, then it is given up */
#define SLICE_MS     250

struct mdl_object_reader_t {
    mdl_object_store_t *store;
    mdl_object_call_t *call;
    apr_pool_t *pool;
    apr_pool_t *attempt_pool; /* of the exchange */
    mdl_object_attempts_t attempts;
    mdl_object_request_t request;
    mdl_object_exchange_t exchange;
    char range[64];
    apr_int64_t total;
    apr_int64_t next;     /* the byte that arrives next */
    apr_int64_t step_end; /* of the range that is asked for */
    apr_int64_t end;
    apr_int64_t begun_at; /* next, when the exchange began */
    char *buffer;         /* a ring */
    apr_size_t start;     /* in buffer, of what nobody has taken */
    apr_size_t filled;
    apr_size_t given;   /* by the last take, to be dropped by the next one */
    int checked;        /* the head of the exchange's answer was checked */
    apr_status_t wrong; /* what is wrong with that answer */
    int paused;
    int ready;           /* an answer has been good */
    apr_status_t failed; /* for good */
};

/* --- the answer --- */

static void reader_note_wrong(mdl_object_reader_t *reader, apr_status_t rv, const char *what)
{
    reader->wrong = rv;
    reader->call->why = apr_psprintf(reader->pool, "%s %s.", mdl_object_store_host(reader->store),
                                     what);
}

/* Checks the head of a good answer once, before its first byte is taken. */
static void reader_check(mdl_object_reader_t *reader)
{
    mdl_object_answer_t answer;

    if (reader->checked || reader->exchange.status / 100 != 2) {
        return;
    }
    reader->checked = 1;
    reader->wrong = mdl_object_exchange_result(&reader->exchange, &answer, &reader->call->why,
                                               reader->pool);
    if (reader->wrong != APR_SUCCESS) {
        return;
    }
    if (answer.status != 206) {
        reader_note_wrong(reader, MDL_OBJECT_EBROKEN, "ignored the range that was asked for");
    } else if (answer.total >= 0 && answer.total != reader->total) {
        reader_note_wrong(reader, APR_EINCOMPLETE, "has the object in another size");
    } else if (answer.total < 0 || answer.first != reader->next ||
               answer.last != reader->step_end - 1) {
        reader_note_wrong(reader, MDL_OBJECT_EBROKEN, "sent another range than was asked for");
    } else {
        reader->ready = 1;
        mdl_object_attempts_note(&reader->attempts, APR_SUCCESS);
    }
}

/* The sink of the exchange. */
static int reader_take_in(void *baton, const char *bytes, apr_size_t length)
{
    mdl_object_reader_t *reader = baton;
    apr_size_t to, first;

    reader_check(reader);
    if (reader->wrong == APR_SUCCESS && (apr_int64_t)length > reader->step_end - reader->next) {
        reader_note_wrong(reader, MDL_OBJECT_EBROKEN, "sent more bytes than were asked for");
    }
    if (reader->wrong != APR_SUCCESS) {
        return 1;
    }
    if (length > BUFFER_BYTES - reader->filled) {
        reader->paused = 1;
        return 0;
    }
    to = (reader->start + reader->filled) % BUFFER_BYTES;
    first = length < BUFFER_BYTES - to ? length : BUFFER_BYTES - to;
    memcpy(reader->buffer + to, bytes, first);
    memcpy(reader->buffer, bytes + first, length - first);
    reader->filled += length;
    reader->next += (apr_int64_t)length;
    return 1;
}

/* --- the requests --- */

static void reader_begin(mdl_object_reader_t *reader)
{
    apr_int64_t left = reader->end - reader->next;

    apr_pool_clear(reader->attempt_pool);
    reader->step_end = reader->next + (left < STEP ? left : STEP);
    reader->begun_at = reader->next;
    reader->checked = reader->paused = 0;
    reader->wrong = APR_SUCCESS;
    apr_snprintf(reader->range, sizeof reader->range, "%" APR_INT64_T_FMT "-%" APR_INT64_T_FMT,
                 reader->next, reader->step_end - 1);
    mdl_object_exchange_init(&reader->exchange, reader->store, &reader->request,
                             reader->attempt_pool);
    reader->exchange.sink = reader_take_in;
    reader->exchange.baton = reader;
    mdl_object_exchange_begin(&reader->exchange);
}

/* How the exchange that is done has failed; *answer is empty if it was cut. */
static apr_status_t reader_failure(mdl_object_reader_t *reader, mdl_object_answer_t *answer)
{
    apr_status_t rv = mdl_object_exchange_result(&reader->exchange, answer, &reader->call->why,
                                                 reader->pool);

    if (answer->status == 416) {
        reader_note_wrong(reader, APR_EINCOMPLETE, "has the object in another size");
        return APR_EINCOMPLETE;
    }
    if (rv == APR_SUCCESS) {
        reader_note_wrong(reader, MDL_OBJECT_EAWAY, "broke off");
        return MDL_OBJECT_EAWAY;
    }
    return rv;
}

/* Makes attempts until one may be sent; an error if that can't be awaited. */
static apr_status_t reader_try_again(mdl_object_reader_t *reader, mdl_object_answer_t *answer,
                                     apr_status_t rv)
{
    while (mdl_object_attempts_again(&reader->attempts, answer, &rv)) {
        if (mdl_object_attempts_may(&reader->attempts, reader->pool)) {
            reader_begin(reader);
            return APR_SUCCESS;
        }
        rv = MDL_OBJECT_EAWAY;
    }
    if (rv == MDL_OBJECT_EDENIED) {
        mdl_object_store_log_denied(reader->store, reader->call->why);
    }
    return rv;
}

/* Follows an exchange that is done by the next one, or by none at the end. */
static apr_status_t reader_go_on(mdl_object_reader_t *reader)
{
    mdl_object_answer_t answer = {.code = ""};
    apr_status_t rv = reader->wrong;

    if (rv == APR_SUCCESS && reader->next < reader->step_end) {
        rv = reader_failure(reader, &answer);
    }
    mdl_object_exchange_end(&reader->exchange);
    if (rv == APR_SUCCESS || (rv == MDL_OBJECT_EAWAY && reader->next > reader->begun_at)) {
        /* Whoever is cut after some bytes asks for the rest at once. */
        if (reader->next < reader->end) {
            reader_begin(reader);
        }
        return APR_SUCCESS;
    }
    mdl_object_attempts_note(&reader->attempts, rv);
    return reader_try_again(reader, &answer, rv);
}

/* Runs the exchange until so many bytes can be taken, some if it is done, or none at the end; with
   0 until an answer is good. */
static apr_status_t reader_run(mdl_object_reader_t *reader, apr_size_t wanted)
{
    mdl_object_exchange_t *exchange = &reader->exchange;

    /* Only waits for the store count, not the time since the last call. */
    exchange->moved = mdl_clock_monotonic();
    for (;;) {
        apr_status_t rv = APR_SUCCESS;

        if (exchange->connection != NULL) {
            mdl_object_exchange_perform(exchange);
            reader_check(reader);
        }
        if (wanted == 0 ? reader->ready : reader->filled >= wanted) {
            return APR_SUCCESS;
        }
        if (exchange->done || reader->wrong != APR_SUCCESS) {
            if (reader->filled > 0 || reader->next == reader->end) {
                return APR_SUCCESS;
            }
            rv = reader_go_on(reader);
        } else if (reader->call->stopped != NULL && reader->call->stopped(reader->call->baton)) {
            mdl_object_exchange_end(exchange);
            mdl_object_store_leave(reader->store, &reader->attempts.probe);
            reader->call->why = "Reading from the object store was stopped.";
            rv = APR_EINTR;
        } else {
            mdl_object_exchange_wait(exchange, SLICE_MS);
        }
        if (rv != APR_SUCCESS) {
            return reader->failed = rv;
        }
    }
}

/* --- the interface --- */

static apr_status_t reader_cleanup(void *data)
{
    mdl_object_reader_t *reader = data;

    mdl_object_exchange_end(&reader->exchange);
    mdl_object_store_leave(reader->store, &reader->attempts.probe);
    free(reader->buffer);
    reader->buffer = NULL;
    return APR_SUCCESS;
}

apr_status_t mdl_object_reader_open(mdl_object_reader_t **reader, mdl_object_store_t *store,
                                    const char *key, apr_int64_t total, apr_int64_t offset,
                                    apr_int64_t length, mdl_object_call_t *call, apr_pool_t *p)
{
    mdl_object_reader_t *made = apr_pcalloc(p, sizeof *made);

    made->store = store;
    made->call = call;
    made->pool = p;
    made->total = total;
    made->next = offset;
    made->end = offset + length;
    made->request = (mdl_object_request_t){
        .method = "GET", .key = apr_pstrdup(p, key), .range = made->range};
    mdl_object_attempts_begin(&made->attempts, store, call);
    *reader = made;
    if (length == 0) {
        return APR_SUCCESS;
    }
    if (!mdl_object_attempts_may(&made->attempts, p)) {
        return MDL_OBJECT_EAWAY;
    }
    made->buffer = malloc(BUFFER_BYTES);
    if (made->buffer == NULL) {
        abort();
    }
    apr_pool_create(&made->attempt_pool, p);
    apr_pool_tag(made->attempt_pool, "mdl_object_reader");
    apr_pool_cleanup_register(p, made, reader_cleanup, apr_pool_cleanup_null);
    reader_begin(made);
    mdl_object_exchange_perform(&made->exchange);
    return APR_SUCCESS;
}

/* There is no range of no bytes, so the object is only looked at. */
static apr_status_t reader_look(mdl_object_reader_t *reader)
{
    apr_int64_t size;
    apr_status_t rv = mdl_object_head(reader->store, reader->request.key, &size, reader->call,
                                      reader->pool);

    if (rv == APR_SUCCESS && size != reader->total) {
        reader_note_wrong(reader, APR_EINCOMPLETE, "has the object in another size");
        rv = APR_EINCOMPLETE;
    }
    reader->ready = rv == APR_SUCCESS;
    return reader->failed = rv;
}

apr_status_t mdl_object_reader_ready(mdl_object_reader_t *reader)
{
    if (reader->ready || reader->failed != APR_SUCCESS) {
        return reader->failed;
    }
    if (reader->buffer == NULL) {
        return reader_look(reader);
    }
    mdl_object_attempts_extend(&reader->attempts, reader->call->patience);
    return reader_run(reader, 0);
}

apr_status_t mdl_object_reader_take(mdl_object_reader_t *reader, const char **bytes,
                                    apr_size_t *length)
{
    apr_status_t rv = mdl_object_reader_ready(reader);
    apr_size_t whole;

    *length = 0;
    if (rv != APR_SUCCESS || reader->buffer == NULL) {
        return rv;
    }
    reader->start = (reader->start + reader->given) % BUFFER_BYTES;
    reader->filled -= reader->given;
    reader->given = 0;
    if (reader->paused && reader->filled <= BUFFER_BYTES / 2) {
        reader->paused = 0;
        mdl_object_exchange_resume(&reader->exchange);
    }
    if (reader->filled < MDL_OBJECT_READER_PIECE) {
        mdl_object_attempts_extend(&reader->attempts, QUIET);
        rv = reader_run(reader, MDL_OBJECT_READER_PIECE);
    }
    whole = BUFFER_BYTES - reader->start;
    whole = reader->filled < whole ? reader->filled : whole;
    reader->given = *length = whole < MDL_OBJECT_READER_PIECE ? whole : MDL_OBJECT_READER_PIECE;
    *bytes = reader->buffer + reader->start;
    return rv;
}

void mdl_object_reader_close(mdl_object_reader_t *reader)
{
    apr_pool_cleanup_run(reader->pool, reader, reader_cleanup);
}
