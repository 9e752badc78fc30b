#include "request_body.h"

#include <string.h>

#include <ap_mpm.h>
#include <apr_poll.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <http_core.h>
#include <http_protocol.h>

#include "base/clock.h"
#include "base/http/media_type.h"

#define FORM_TYPE     "application/x-www-form-urlencoded"
#define WORTH_READING 65536 /* bytes that cost less than another connection */
#define READ_SIZE     65536

#define SHARES      8 /* one owner's bodies may hold an eighth of a process's threads */
#define LEAST_SHARE 2
#define IMPATIENCE  apr_time_from_sec(1)
#define STREAM_STEP apr_time_from_msec(5)

apr_off_t mdl_request_body_length(request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return length != NULL ? (apr_off_t)apr_atoi64(length) : -1;
}

int mdl_request_body_is_encoded(request_rec *r)
{
    const char *codings = apr_table_get(r->headers_in, "Content-Encoding");
    const char *coding;

    while (codings != NULL && (coding = ap_get_list_item(r->pool, &codings)) != NULL) {
        if (strcmp(coding, "identity") != 0) {
            return 1;
        }
    }
    return 0;
}

/* Reads what has arrived, without waiting and up to WORTH_READING; true at the end of the body. */
static int request_body_drain(request_rec *r)
{
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_off_t length, taken = 0;
    int ended = 0;

    while (!ended && taken <= WORTH_READING &&
           ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_NONBLOCK_READ,
                          WORTH_READING) == APR_SUCCESS &&
           !APR_BRIGADE_EMPTY(brigade) && apr_brigade_length(brigade, 1, &length) == APR_SUCCESS) {
        ended = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));
        taken += length;
        apr_brigade_cleanup(brigade);
    }
    return ended;
}

void mdl_request_body_discard(request_rec *r)
{
    if (ap_request_has_body(r) && (r->expecting_100 || mdl_request_body_length(r) > WORTH_READING ||
                                   !request_body_drain(r))) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}

/* A thread that waits for more of a body, on its own stack. */
typedef struct waiter_t {
    const char *owner;
    struct waiter_t *next;
} waiter_t;

/* The threads of this process that wait for bodies. */
static struct {
    apr_thread_mutex_t *lock; /* guards the list */
    waiter_t *first;
    int share; /* threads that one owner may hold */
} waiting;

void mdl_request_body_child_init(apr_pool_t *p)
{
    int threads = 0;

    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    waiting.share = threads > LEAST_SHARE * SHARES ? threads / SHARES : LEAST_SHARE;
    waiting.first = NULL;
    apr_thread_mutex_create(&waiting.lock, APR_THREAD_MUTEX_DEFAULT, p);
}

static void waiter_begin(waiter_t *waiter)
{
    apr_thread_mutex_lock(waiting.lock);
    waiter->next = waiting.first;
    waiting.first = waiter;
    apr_thread_mutex_unlock(waiting.lock);
}

static void waiter_end(const waiter_t *waiter)
{
    waiter_t **at = &waiting.first;

    apr_thread_mutex_lock(waiting.lock);
    while (*at != waiter) {
        at = &(*at)->next;
    }
    *at = waiter->next;
    apr_thread_mutex_unlock(waiting.lock);
}

static int waiter_is_of_many(const waiter_t *waiter)
{
    int count = 0;

    apr_thread_mutex_lock(waiting.lock);
    for (const waiter_t *other = waiting.first; other != NULL; other = other->next) {
        count += strcmp(other->owner, waiter->owner) == 0;
    }
    apr_thread_mutex_unlock(waiting.lock);
    return count > waiting.share;
}

/* A body that is read, and for how long a thread has waited for it. */
typedef struct {
    request_rec *r;
    waiter_t waiter;
    apr_interval_time_t waited;
} reader_t;

/* A stream of HTTP/2 has no socket of its own: another thread reads its frames. */
static apr_status_t reader_poll(const reader_t *reader, apr_interval_time_t timeout)
{
    apr_pollfd_t socket = {.p = reader->r->pool,
                           .desc_type = APR_POLL_SOCKET,
                           .reqevents = APR_POLLIN,
                           .desc.s = ap_get_conn_socket(reader->r->connection)};
    apr_int32_t ready;
    apr_status_t rv;

    if (reader->r->connection->master != NULL) {
        apr_sleep(timeout < STREAM_STEP ? timeout : STREAM_STEP);
        return APR_SUCCESS;
    }
    rv = apr_poll(&socket, 1, &ready, timeout);
    return APR_STATUS_IS_TIMEUP(rv) || APR_STATUS_IS_EINTR(rv) ? APR_SUCCESS : rv;
}

/* Waits for more, for as long as httpd's Timeout; each read checks the limits of mod_reqtimeout. */
static apr_status_t reader_wait(reader_t *reader, apr_time_t since)
{
    apr_time_t began = mdl_clock_monotonic();
    apr_interval_time_t left = since + reader->r->server->timeout - began;
    apr_status_t rv;

    if (left <= 0 || (reader->waited >= IMPATIENCE && waiter_is_of_many(&reader->waiter))) {
        return APR_TIMEUP;
    }
    rv = reader_poll(reader, left < IMPATIENCE ? left : IMPATIENCE);
    reader->waited += mdl_clock_monotonic() - began;
    return rv;
}

/* What has arrived; EAGAIN for nothing. */
static apr_status_t reader_get(const reader_t *reader, apr_bucket_brigade *brigade)
{
    apr_status_t rv = ap_get_brigade(reader->r->input_filters, brigade, AP_MODE_READBYTES,
                                     APR_NONBLOCK_READ, READ_SIZE);

    return rv == APR_SUCCESS && APR_BRIGADE_EMPTY(brigade) ? APR_EAGAIN : rv;
}

/* Sends 100 Continue to a client that expects it (RFC 9110, section 10.1.1); httpd does so only
   before a read that blocks. */
static void reader_welcome(request_rec *r)
{
    int status = r->status;

    if (r->expecting_100) {
        r->status = HTTP_CONTINUE;
        ap_send_interim_response(r, 0);
        r->status = status;
    }
}

/* Fills an empty brigade as ap_get_brigade does. */
static apr_status_t reader_next(reader_t *reader, apr_bucket_brigade *brigade)
{
    apr_time_t since = mdl_clock_monotonic();
    apr_status_t rv;

    rv = reader_get(reader, brigade);
    if (!APR_STATUS_IS_EAGAIN(rv)) {
        return rv;
    }
    reader_welcome(reader->r);
    waiter_begin(&reader->waiter);
    while (APR_STATUS_IS_EAGAIN(rv)) {
        rv = reader_wait(reader, since);
        rv = rv == APR_SUCCESS ? reader_get(reader, brigade) : rv;
    }
    waiter_end(&reader->waiter);
    return rv;
}

/* Adds a brigade's bytes to a body of room bytes. */
static apr_status_t body_append(apr_bucket_brigade *brigade, char *body, apr_size_t room,
                                apr_size_t *length, int *ended)
{
    for (apr_bucket *b = APR_BRIGADE_FIRST(brigade); b != APR_BRIGADE_SENTINEL(brigade);
         b = APR_BUCKET_NEXT(b)) {
        const char *data;
        apr_size_t got;
        apr_status_t rv;

        *ended = *ended || APR_BUCKET_IS_EOS(b);
        if (APR_BUCKET_IS_METADATA(b)) {
            continue;
        }
        if ((rv = apr_bucket_read(b, &data, &got, APR_BLOCK_READ)) != APR_SUCCESS) {
            return rv;
        }
        if (got > room - *length) {
            return APR_ENOSPC;
        }
        memcpy(body + *length, data, got);
        *length += got;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_request_body_read(request_rec *r, const char *owner, apr_size_t max, char **body,
                                   apr_size_t *length)
{
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_off_t announced = mdl_request_body_length(r);
    apr_size_t room = announced >= 0 ? (apr_size_t)announced : max;
    reader_t reader = {.r = r, .waiter = {.owner = owner}};
    apr_status_t rv = APR_SUCCESS;
    int ended = 0;

    if (room > max) {
        return APR_ENOSPC;
    }
    *body = apr_palloc(r->pool, room + 1);
    *length = 0;
    while (!ended && rv == APR_SUCCESS) {
        rv = reader_next(&reader, brigade);
        if (rv == APR_SUCCESS) {
            rv = body_append(brigade, *body, room, length, &ended);
        }
        apr_brigade_cleanup(brigade);
    }
    (*body)[*length] = '\0';
    return rv;
}

/* Checks a form before its body is read. */
static int form_check(request_rec *r, apr_size_t max_length)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");
    apr_off_t length = mdl_request_body_length(r);

    if (type == NULL || !mdl_media_type_is(type, FORM_TYPE) || mdl_request_body_is_encoded(r)) {
        return HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    if (length < 0) {
        return HTTP_LENGTH_REQUIRED;
    }
    return length > (apr_off_t)max_length ? HTTP_REQUEST_ENTITY_TOO_LARGE : OK;
}

/* Parses a form's body in place. */
static int form_parse(char *text, apr_size_t max_fields, apr_table_t *fields)
{
    char *value, *rest;

    for (char *name = apr_strtok(text, "&", &rest); name != NULL;
         name = apr_strtok(NULL, "&", &rest)) {
        value = name + strcspn(name, "=");
        if (*value != '\0') {
            *value++ = '\0';
        }
        if (max_fields-- == 0 || ap_unescape_urlencoded(name) != OK ||
            ap_unescape_urlencoded(value) != OK) {
            return HTTP_BAD_REQUEST;
        }
        apr_table_addn(fields, name, value);
    }
    return OK;
}

int mdl_request_body_form(request_rec *r, const char *owner, apr_size_t max_length,
                          apr_size_t max_fields, apr_table_t **fields)
{
    int status = form_check(r, max_length);
    apr_size_t length;
    char *text;
    apr_status_t rv;

    if (status != OK) {
        return status;
    }
    rv = mdl_request_body_read(r, owner, max_length, &text, &length);
    if (rv != APR_SUCCESS) {
        r->connection->keepalive = AP_CONN_CLOSE;
        return APR_STATUS_IS_TIMEUP(rv) ? HTTP_REQUEST_TIME_OUT : HTTP_BAD_REQUEST;
    }
    *fields = apr_table_make(r->pool, 8);
    return strlen(text) == length ? form_parse(text, max_fields, *fields) : HTTP_BAD_REQUEST;
}
