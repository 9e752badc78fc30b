/*
 * Counts the bytes of a client's connection: those that the kernel has taken since its beginning,
 * and how many of them the client's TCP has acknowledged.
 *
 * Only the output filter of httpd's core knows the first number: it may write long after the
 * handler has ended, and buffers bytes that the kernel does not take.  A filter above it sees bytes
 * passed, not taken; request_rec's bytes_sent counts the response; TCP_INFO does not include
 * httpd's buffers.  After each write the core passes the number to the optional function
 * ap_logio_add_bytes_out, normally mod_logio's.  An optional function has only one implementation,
 * so this file registers its own instead, for the whole server.
 *
 * That then calls the previously registered function, so mod_logio's %O, %S and the like are
 * unaffected.  The cost is an allocation of 16 bytes for each connection, and an atomic addition
 * for each write to a socket.
 */
#ifndef MDL_METERING_SOCKET_BYTES_H
#define MDL_METERING_SOCKET_BYTES_H

#include <httpd.h>

typedef struct mdl_socket_bytes_t mdl_socket_bytes_t;

/** Registers the optional function, in pre_config, after all other modules have registered. */
void mdl_socket_bytes_register(void);

/** Begins to count; for pre_connection. */
int mdl_socket_bytes_begin(conn_rec *c, void *socket);

/** The counter of a connection; for an HTTP/2 stream, that of its connection.  NULL: none. */
mdl_socket_bytes_t *mdl_socket_bytes_of(conn_rec *c);

/** The bytes that the kernel has taken so far. */
apr_uint64_t mdl_socket_bytes_out(const mdl_socket_bytes_t *socket_bytes);

/** Add and drop a reference: the counter may outlive its connection. */
void mdl_socket_bytes_retain(mdl_socket_bytes_t *socket_bytes);
void mdl_socket_bytes_release(mdl_socket_bytes_t *socket_bytes);

/** The head of transfer.c's list of the connection's transfers, under its mutex; NULL at first. */
struct mdl_transfer_t **mdl_socket_bytes_transfers(mdl_socket_bytes_t *socket_bytes);

/** The descriptor of a connection's socket; -1 if there is none. */
int mdl_socket_bytes_socket(conn_rec *c);

/** Sets TCP_NOTSENT_LOWAT, so that the kernel takes little more than it can send. */
void mdl_socket_bytes_set_notsent_lowat(int fd);

/** The progress of the bytes that the kernel has taken. */
typedef struct {
    apr_uint64_t sent;         /* may have arrived */
    apr_uint64_t acknowledged; /* has arrived */
} mdl_socket_progress_t;

/** Reads the progress by fd's TCP_INFO.  APR_ECONNABORTED, with the progress, if the connection is
    closed and sends no more; another error if the kernel does not tell. */
apr_status_t mdl_socket_bytes_ask(const mdl_socket_bytes_t *socket_bytes, int fd,
                                  mdl_socket_progress_t *progress);

/** Resets a connection: it ends at once, and the kernel drops its unsent bytes. */
void mdl_socket_bytes_reset(int fd);

#endif
