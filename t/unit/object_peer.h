/*
 * A server on a free loopback port that gives the canned answers of a script, one after the other,
 * whatever is asked, and keeps what was asked.  A test that knows better than a real object store
 * how a store fails.
 */
#ifndef MDL_T_UNIT_OBJECT_PEER_H
#define MDL_T_UNIT_OBJECT_PEER_H

#include "base/http/object.h"
#include "base/log.h"
#include "t/unit/http_peers.h"

/* Beginnings of answers.  An answer ends with its connection. */
#define OK_LINE            "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define ERROR_LINE(status) "HTTP/1.1 " status " Error\r\nConnection: close\r\n"
#define XML                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define ERROR(status, code)                                                                        \
    ERROR_LINE(status) "\r\n" XML "<Error><Code>" code "</Code><Message>M</Message></Error>"

#define PEER_REQUESTS 16

typedef struct {
    const char *bytes;
    enum {
        PEER_CLOSE,
        PEER_HOLD,
        PEER_LATE,
        PEER_WAIT
    } then; /* HOLD: until the client leaves; LATE: the bytes come a second after a SHORT time,
               WAIT: after peer_release */
} canned_t;

/* The stores' time for an answer: SHORT only where the peer is silent, since the machine may be
   busy. */
#define PEER_SHORT 2
static int peer_timeout_s = 30;

typedef struct {
    mdl_object_store_t *store; /* whose URL is the peer's */
    const char *url;
    int fd, port;
    apr_thread_t *thread;
    apr_thread_mutex_t *mutex; /* guards the members below */
    const canned_t *script;    /* ends with NULL bytes; its last answer serves all later requests */
    int released;
    int count; /* of requests */
    char requests[PEER_REQUESTS][4096];
} peer_t;

/* Reads a request with its body; 0 if there is none. */
static inline int peer_receive(int fd, char *request, apr_size_t room)
{
    apr_size_t length = 0, body;
    const char *end, *header;
    ssize_t got;

    request[0] = '\0';
    do {
        if (length == room - 1 || (got = recv(fd, request + length, room - 1 - length, 0)) <= 0) {
            return 0;
        }
        length += (apr_size_t)got;
        request[length] = '\0';
        end = strstr(request, "\r\n\r\n");
    } while (end == NULL);
    header = strstr(request, "\r\nContent-Length: ");
    body = header != NULL && header < end ? (apr_size_t)atol(header + 18) : 0;
    body += (apr_size_t)(end + 4 - request);
    while (length < body) {
        char bytes[16384];
        /* What does not fit is dropped. */
        char *to = length < room - sizeof bytes ? request + length : bytes;

        if ((got = recv(fd, to, sizeof bytes - 1, 0)) <= 0) {
            return 0;
        }
        length += (apr_size_t)got;
        if (to != bytes) {
            request[length] = '\0';
        }
    }
    return 1;
}

static inline int peer_is_released(peer_t *peer)
{
    int released;

    apr_thread_mutex_lock(peer->mutex);
    released = peer->released;
    apr_thread_mutex_unlock(peer->mutex);
    return released;
}

/** Lets the answers come that wait for it. */
static inline void peer_release(peer_t *peer)
{
    apr_thread_mutex_lock(peer->mutex);
    peer->released = 1;
    apr_thread_mutex_unlock(peer->mutex);
}

static inline void peer_answer(peer_t *peer, int fd)
{
    static char request[65536];
    const canned_t *canned;
    char rest[1024];

    if (!peer_receive(fd, request, sizeof request)) {
        return;
    }
    apr_thread_mutex_lock(peer->mutex);
    apr_cpystrn(peer->requests[peer->count++ % PEER_REQUESTS], request, sizeof peer->requests[0]);
    canned = peer->script;
    if (canned[1].bytes != NULL) {
        peer->script++;
    }
    apr_thread_mutex_unlock(peer->mutex);
    if (canned->then == PEER_LATE) {
        apr_sleep(apr_time_from_sec(PEER_SHORT + 1));
    }
    while (canned->then == PEER_WAIT && !peer_is_released(peer)) {
        apr_sleep(10000);
    }
    mock_send(fd, canned->bytes);
    while (canned->then == PEER_HOLD && recv(fd, rest, sizeof rest, 0) > 0) {
    }
}

static inline void *APR_THREAD_FUNC peer_run(apr_thread_t *thread, void *data)
{
    peer_t *peer = data;
    int fd;

    (void)thread;
    while ((fd = accept(peer->fd, NULL, NULL)) >= 0) {
        peer_answer(peer, fd);
        close(fd);
    }
    return NULL;
}

static inline mdl_object_store_t *peer_store(const char *url, const char *ca_file, apr_pool_t *p)
{
    const mdl_object_config_t config = {.url = url,
                                        .region = "us-east-1",
                                        .access_key = "AKID-OF-TESTS",
                                        .secret_key = "SECRET-OF-TESTS",
                                        .ca_file = ca_file,
                                        .timeout_s = peer_timeout_s};
    mdl_object_store_t *store;
    const char *why;

    if (mdl_object_store_create(&store, &config, &why, p) != APR_SUCCESS) {
        printf("Bail out! %s\n", why);
        exit(2);
    }
    return store;
}

static inline void peer_start(peer_t *peer, apr_pool_t *p)
{
    memset(peer, 0, sizeof *peer);
    peer->fd = peer_listen(AF_INET, &peer->port);
    peer->url = apr_psprintf(p, "http://127.0.0.1:%d/bucket/pre/fix", peer->port);
    if (peer->fd < 0 ||
        apr_thread_mutex_create(&peer->mutex, APR_THREAD_MUTEX_DEFAULT, p) != APR_SUCCESS ||
        apr_thread_create(&peer->thread, NULL, peer_run, peer, p) != APR_SUCCESS) {
        printf("Bail out! no peer\n");
        exit(2);
    }
}

static inline void peer_stop(peer_t *peer)
{
    apr_status_t rv;

    shutdown(peer->fd, SHUT_RDWR);
    apr_thread_join(&rv, peer->thread);
    close(peer->fd);
}

/* Waits until the peer is done with all connections that were made before. */
static inline void peer_finish(const peer_t *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)peer->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        shutdown(fd, SHUT_WR);
        while (recv(fd, &byte, 1, 0) > 0) {
        }
    }
    close(fd);
}

/** Begins another script, with a store that has no history. */
static inline void peer_play(peer_t *peer, const canned_t *script, apr_pool_t *p)
{
    peer_finish(peer);
    apr_thread_mutex_lock(peer->mutex);
    peer->script = script;
    peer->released = 0;
    peer->count = 0;
    memset(peer->requests, 0, sizeof peer->requests);
    apr_thread_mutex_unlock(peer->mutex);
    peer->store = peer_store(peer->url, NULL, p);
}

#define PLAY(peer, p, ...)                                                                         \
    peer_play(peer,                                                                                \
              apr_pmemdup(p, (const canned_t[]){__VA_ARGS__, {NULL, PEER_CLOSE}},                  \
                          sizeof((const canned_t[]){__VA_ARGS__, {NULL, PEER_CLOSE}})),            \
              p)

static inline int peer_count(peer_t *peer)
{
    int count;

    apr_thread_mutex_lock(peer->mutex);
    count = peer->count;
    apr_thread_mutex_unlock(peer->mutex);
    return count;
}

/** Whether the index-th request of the script contains text. */
static inline int peer_was_asked(peer_t *peer, int index, const char *text)
{
    int found;

    apr_thread_mutex_lock(peer->mutex);
    found = strstr(peer->requests[index], text) != NULL;
    apr_thread_mutex_unlock(peer->mutex);
    return found;
}

/* --- the log --- */

static char logged[16384];

static inline void log_sink(const char *file, int line, mdl_log_level_t level, apr_status_t rv,
                            const char *message)
{
    apr_size_t length = strlen(logged);

    (void)file;
    (void)line;
    (void)level;
    (void)rv;
    apr_snprintf(logged + length, sizeof logged - length, "%s\n", message);
}

/** How often the log has this number. */
static inline int log_count(const char *number)
{
    int count = 0;

    for (const char *at = logged; (at = strstr(at, number)) != NULL; at++) {
        count++;
    }
    return count;
}

#endif
