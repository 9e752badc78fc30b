/*
 * What left a client's connection: the bytes that the kernel took, counted from the connection's
 * first one, and how many of those the client's TCP has acknowledged.
 *
 * The first number is known nowhere but in the output filter of httpd's core, which may write long
 * after the handler is done, and keeps what the kernel did not take.  A filter above it sees bytes
 * that are handed over, not bytes that are taken; request_rec's bytes_sent counts those of the
 * response; TCP_INFO does not tell what httpd itself still holds.  The core passes the number after
 * each write to the optional function ap_logio_add_bytes_out, which is mod_logio's if that is
 * loaded; and an optional function has one implementation.  So this file registers its own in its
 * place, for the whole server.
 *
 * It then calls the one that was registered before, with the same arguments: mod_logio's %O, %S and
 * their like stay as they are.  Beside that it costs each connection one allocation of 16 bytes,
 * and each write to a socket one atomic addition.
 */
#ifndef MDL_METERING_SOCKET_BYTES_H
#define MDL_METERING_SOCKET_BYTES_H

#include <httpd.h>

typedef struct mdl_socket_bytes_t mdl_socket_bytes_t;

/** Registers the optional function, in pre_config, after all other modules have registered theirs.
 */
void mdl_socket_bytes_register(void);

/** Begins to count, in pre_connection. */
int mdl_socket_bytes_begin(conn_rec *c, void *socket);

/** The counter of a connection; for an HTTP/2 stream, that of the connection it is on.  NULL for
    none. */
mdl_socket_bytes_t *mdl_socket_bytes_of(conn_rec *c);

/** Bytes that the kernel took so far. */
apr_uint64_t mdl_socket_bytes_out(const mdl_socket_bytes_t *socket_bytes);

/** Adds and drops a reference: the counter may outlive its connection. */
void mdl_socket_bytes_retain(mdl_socket_bytes_t *socket_bytes);
void mdl_socket_bytes_release(mdl_socket_bytes_t *socket_bytes);

/** Where transfer.c keeps the connection's transfers, under its mutex; NULL at first. */
struct mdl_transfer_t **mdl_socket_bytes_transfers(mdl_socket_bytes_t *socket_bytes);

/** The descriptor of a connection's socket; -1 for none. */
int mdl_socket_bytes_socket(conn_rec *c);

/** Sets TCP_NOTSENT_LOWAT, so that the kernel takes little more than it can send. */
void mdl_socket_bytes_set_notsent_lowat(int fd);

/** How far the bytes that the kernel took have come. */
typedef struct {
    apr_uint64_t sent;         /* may have arrived */
    apr_uint64_t acknowledged; /* has arrived */
} mdl_socket_progress_t;

/** Asks for both by TCP_INFO of fd.  APR_ECONNABORTED, with both, when the connection is closed and
    sends no more; another error when the kernel does not tell. */
apr_status_t mdl_socket_bytes_ask(const mdl_socket_bytes_t *socket_bytes, int fd,
                                  mdl_socket_progress_t *progress);

/** Resets a connection: it ends at once, and the kernel drops what it still holds for it. */
void mdl_socket_bytes_reset(int fd);

#endif
