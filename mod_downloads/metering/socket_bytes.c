#include "metering/socket_bytes.h"

#include <stdatomic.h>

#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <apr_optional.h>
#include <apr_portable.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>

APLOG_USE_MODULE(downloads);

#define UNSENT_MAX 131072 /* bytes */
#define CLOSED     7      /* TCP_CLOSE, which <linux/tcp.h> does not define */

struct mdl_socket_bytes_t {
    _Atomic apr_uint64_t out;
    _Atomic int references;
    struct mdl_transfer_t *transfers;
};

static APR_OPTIONAL_FN_TYPE(ap_logio_add_bytes_out) * next; /* registered before ours */

static void socket_bytes_add(conn_rec *c, apr_off_t bytes)
{
    mdl_socket_bytes_t *socket_bytes = ap_get_module_config(c->conn_config, &downloads_module);

    if (socket_bytes != NULL) {
        atomic_fetch_add(&socket_bytes->out, (apr_uint64_t)bytes);
    }
    if (next != NULL) {
        next(c, bytes);
    }
}

void mdl_socket_bytes_register(void)
{
    next = APR_RETRIEVE_OPTIONAL_FN(ap_logio_add_bytes_out);
    apr_dynamic_fn_register("ap_logio_add_bytes_out", (apr_opt_fn_t *)socket_bytes_add);
}

void mdl_socket_bytes_retain(mdl_socket_bytes_t *socket_bytes)
{
    atomic_fetch_add(&socket_bytes->references, 1);
}

void mdl_socket_bytes_release(mdl_socket_bytes_t *socket_bytes)
{
    if (atomic_fetch_sub(&socket_bytes->references, 1) == 1) {
        free(socket_bytes);
    }
}

struct mdl_transfer_t **mdl_socket_bytes_transfers(mdl_socket_bytes_t *socket_bytes)
{
    return &socket_bytes->transfers;
}

static apr_status_t socket_bytes_end(void *data)
{
    conn_rec *c = data;
    mdl_socket_bytes_t *socket_bytes = ap_get_module_config(c->conn_config, &downloads_module);

    ap_set_module_config(c->conn_config, &downloads_module, NULL);
    mdl_socket_bytes_release(socket_bytes);
    return APR_SUCCESS;
}

int mdl_socket_bytes_begin(conn_rec *c, void *socket)
{
    (void)socket;
    if (c->master == NULL) {
        mdl_socket_bytes_t *socket_bytes = ap_calloc(1, sizeof *socket_bytes);

        socket_bytes->references = 1;
        ap_set_module_config(c->conn_config, &downloads_module, socket_bytes);
        apr_pool_pre_cleanup_register(c->pool, c, socket_bytes_end);
    }
    return OK;
}

static conn_rec *master_of(conn_rec *c)
{
    return c->master != NULL ? c->master : c;
}

mdl_socket_bytes_t *mdl_socket_bytes_of(conn_rec *c)
{
    return ap_get_module_config(master_of(c)->conn_config, &downloads_module);
}

apr_uint64_t mdl_socket_bytes_out(const mdl_socket_bytes_t *socket_bytes)
{
    return atomic_load(&socket_bytes->out);
}

int mdl_socket_bytes_socket(conn_rec *c)
{
    apr_socket_t *socket = ap_get_conn_socket(master_of(c));
    int fd;

    return socket != NULL && apr_os_sock_get(&fd, socket) == APR_SUCCESS ? fd : -1;
}

void mdl_socket_bytes_set_notsent_lowat(int fd)
{
    int bytes = UNSENT_MAX;

    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

/* An acknowledgement may be late, or lost by a reset, so sent bytes may have arrived without it. */
apr_status_t mdl_socket_bytes_ask(const mdl_socket_bytes_t *socket_bytes, int fd,
                                  mdl_socket_progress_t *progress)
{
    apr_uint64_t out = mdl_socket_bytes_out(socket_bytes);
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return errno;
    }
    progress->acknowledged = info.tcpi_bytes_acked;
    progress->sent = out > info.tcpi_notsent_bytes ? out - info.tcpi_notsent_bytes : 0;
    if (progress->sent < progress->acknowledged) {
        progress->sent = progress->acknowledged;
    }
    return info.tcpi_state == CLOSED ? APR_ECONNABORTED : APR_SUCCESS;
}

/* shutdown() would let the kernel send its buffer, up to megabytes. */
void mdl_socket_bytes_reset(int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    connect(fd, &none, sizeof none);
}
