/*
 * A relay to PostgreSQL that passes whole messages of the protocol (PostgreSQL's documentation,
 * "Message Formats") in both directions and, when asked to, closes a connection after a number of
 * messages.  It serves one connection at a time.
 */
#ifndef MDL_T_UNIT_RELAY_H
#define MDL_T_UNIT_RELAY_H

#include "t/unit/database.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RELAY_SOCKET "/.s.PGSQL.5432"

typedef struct {
    const char *folder; /* of its socket, given to libpq as host */
    struct sockaddr_un server;
    int listener;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the next three */
    int left;              /* messages until it closes the connection; negative: never */
    int refuses;           /* refuse connections after closing it */
    int refusing;          /* refusing connections now */
} relay_t;

/** Closes the open connection, or else the next one, after a number of messages. */
static inline void relay_arm(relay_t *relay, int messages, int refuses)
{
    pthread_mutex_lock(&relay->mutex);
    relay->left = messages;
    relay->refuses = refuses;
    pthread_mutex_unlock(&relay->mutex);
}

/** Passes all messages from now on.  True if a connection was closed. */
static inline int relay_disarm(relay_t *relay)
{
    int cut;

    pthread_mutex_lock(&relay->mutex);
    cut = relay->left <= 0;
    relay->left = -1;
    relay->refusing = 0;
    pthread_mutex_unlock(&relay->mutex);
    return cut;
}

/* Counts a message; returns how many were left before it. */
static inline int relay_count(relay_t *relay)
{
    int left;

    pthread_mutex_lock(&relay->mutex);
    left = relay->left;
    relay->left -= left > 0;
    pthread_mutex_unlock(&relay->mutex);
    return left;
}

static inline void relay_note_closed(relay_t *relay)
{
    pthread_mutex_lock(&relay->mutex);
    if (relay->left == 0) {
        relay->refusing = relay->refuses;
        relay->left = -1;
    }
    pthread_mutex_unlock(&relay->mutex);
}

static inline int relay_is_refusing(relay_t *relay)
{
    int refusing;

    pthread_mutex_lock(&relay->mutex);
    refusing = relay->refusing;
    pthread_mutex_unlock(&relay->mutex);
    return refusing;
}

/** One direction of a connection. */
typedef struct {
    int from;
    int to;
    int greeted; /* the client's first message has no type */
    apr_size_t length;
    char bytes[1 << 17];
} relay_way_t;

/* The length of the first message, 0 while it is not complete. */
static inline apr_size_t relay_message(const relay_way_t *way)
{
    apr_size_t type = way->greeted ? 1 : 0;
    uint32_t length;

    if (way->length < type + sizeof length) {
        return 0;
    }
    memcpy(&length, way->bytes + type, sizeof length);
    length = ntohl(length);
    return way->length >= type + length ? type + length : 0;
}

/* Passes whole messages on.  False if the connection is to be closed. */
static inline int relay_pass(relay_t *relay, relay_way_t *way)
{
    ssize_t got = read(way->from, way->bytes + way->length, sizeof way->bytes - way->length);
    apr_size_t size;

    if (got <= 0) {
        return 0;
    }
    way->length += (apr_size_t)got;
    while ((size = relay_message(way)) > 0) {
        int left = relay_count(relay);

        if (left == 0 || send(way->to, way->bytes, size, MSG_NOSIGNAL) != (ssize_t)size) {
            return 0;
        }
        way->greeted = 1;
        way->length -= size;
        memmove(way->bytes, way->bytes + size, way->length);
        if (left == 1) {
            return 0;
        }
    }
    return 1;
}

static inline void relay_serve(relay_t *relay, int client, int server)
{
    relay_way_t *ways = calloc(2, sizeof *ways);
    struct pollfd ends[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    int open = 1;

    ways[0].from = ways[1].to = client;
    ways[0].to = ways[1].from = server;
    ways[1].greeted = 1;
    while (open && poll(ends, 2, -1) > 0) {
        for (int i = 0; i < 2 && open; i++) {
            open = ends[i].revents == 0 || relay_pass(relay, &ways[i]);
        }
    }
    relay_note_closed(relay);
    free(ways);
}

static inline void *relay_run(void *data)
{
    relay_t *relay = data;
    int client;

    while ((client = accept(relay->listener, NULL, NULL)) >= 0) {
        int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (!relay_is_refusing(relay) &&
            connect(server, (struct sockaddr *)&relay->server, sizeof relay->server) == 0) {
            relay_serve(relay, client, server);
        }
        close(server);
        close(client);
    }
    return NULL;
}

static inline void relay_socket(struct sockaddr_un *address, const char *folder)
{
    address->sun_family = AF_UNIX;
    apr_snprintf(address->sun_path, sizeof address->sun_path, "%s" RELAY_SOCKET, folder);
}

/** Starts a relay to the server of params, whose host must be the folder of a socket. */
static inline void relay_start(relay_t *relay, const char *params, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    const char *host = strstr(params, "host=/") + strlen("host=");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-relay.XXXXXX", NULL);
    struct sockaddr_un own;

    *relay = (relay_t){.left = -1, .folder = mkdtemp(folder), .mutex = PTHREAD_MUTEX_INITIALIZER};
    relay_socket(&relay->server, apr_pstrndup(p, host, strcspn(host, " ")));
    relay_socket(&own, folder);
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(relay->listener, (struct sockaddr *)&own, sizeof own) != 0 ||
        listen(relay->listener, 8) != 0 ||
        pthread_create(&relay->thread, NULL, relay_run, relay) != 0) {
        printf("Bail out! no relay in %s\n", folder);
        exit(2);
    }
}

/** Stops the relay; no connection through it may be open. */
static inline void relay_stop(relay_t *relay, apr_pool_t *p)
{
    shutdown(relay->listener, SHUT_RDWR);
    pthread_join(relay->thread, NULL);
    close(relay->listener);
    remove_files(relay->folder, p);
}

#endif
