/*
 * What left a client's connection: the bytes that the kernel took, counted from the connection's
 * first one, and how many of those the client's TCP has acknowledged.
 */
#ifndef MDL_METERING_SOCKET_BYTES_H
#define MDL_METERING_SOCKET_BYTES_H

#include <httpd.h>

typedef struct mdl_socket_bytes_t mdl_socket_bytes_t;

/** Takes over mod_logio's optional function, which httpd's core calls after each write; in
    pre_config, behind mod_logio, whose own goes on being called. */
void mdl_socket_bytes_take_over(void);

/** Begins to count, in pre_connection. */
int mdl_socket_bytes_begin(conn_rec *c, void *socket);

/** The connection's; that of the whole connection for an HTTP/2 stream; NULL when none counts. */
mdl_socket_bytes_t *mdl_socket_bytes_of(conn_rec *c);

/** Bytes that the kernel took so far. */
apr_uint64_t mdl_socket_bytes_out(const mdl_socket_bytes_t *socket_bytes);

/** Holds it beyond its connection, and lets it go. */
void mdl_socket_bytes_retain(mdl_socket_bytes_t *socket_bytes);
void mdl_socket_bytes_release(mdl_socket_bytes_t *socket_bytes);

/** The descriptor of its socket, -1 for none. */
int mdl_socket_bytes_socket(conn_rec *c);

/** Lets the kernel hold little that it has not sent, so that what it took has nearly left. */
void mdl_socket_bytes_set_notsent_lowat(int fd);

/** How far what the kernel took has come. */
typedef struct {
    apr_uint64_t sent;         /* may have arrived */
    apr_uint64_t acknowledged; /* has arrived */
} mdl_socket_progress_t;

/** Asks for both, of the connection of fd; APR_ECONNABORTED, with them, when no more is sent, and
    another error when it can't be told. */
apr_status_t mdl_socket_bytes_ask(const mdl_socket_bytes_t *socket_bytes, int fd,
                                  mdl_socket_progress_t *progress);

/** Ends a connection at once, with all that the kernel still holds for it. */
void mdl_socket_bytes_reset(int fd);

#endif
