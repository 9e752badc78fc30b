#include "connection.h"

#include <apr_dbd.h>
#include <apr_optional.h>
#include <http_core.h>
#include <http_main.h>
#include <mod_dbd.h>

#include "config.h"

struct mdl_connection_t {
    ap_dbd_t *dbd;
    mdl_db_t *db;
};

static APR_OPTIONAL_FN_TYPE(ap_dbd_open) * dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) * dbd_close;

void mdl_connection_init(void)
{
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
}

mdl_connection_t *mdl_connection_open(request_rec *r)
{
    mdl_connection_t *connection = apr_pcalloc(r->pool, sizeof *connection);

    connection->dbd = dbd_open(r->pool, ap_server_conf);
    if (connection->dbd == NULL) {
        return NULL;
    }
    if (mdl_db_attach(&connection->db, connection->dbd->driver, connection->dbd->handle,
                      mdl_config(r->server)->db_params, connection->dbd->pool) != APR_SUCCESS) {
        dbd_close(ap_server_conf, connection->dbd);
        return NULL;
    }
    return connection;
}

mdl_db_t *mdl_connection_db(mdl_connection_t *connection)
{
    return connection->db;
}

void mdl_connection_close(mdl_connection_t *connection)
{
    if (connection != NULL) {
        dbd_close(ap_server_conf, connection->dbd);
    }
}
