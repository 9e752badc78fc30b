#include "api/request.h"

apr_status_t mdl_request_run(mdl_request_t *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                             void *arg)
{
    if (request->connection == NULL) {
        request->connection = mdl_connection_open(request->r);
    }
    return request->connection != NULL
               ? how(mdl_connection_db(request->connection), effect, arg, request->r->pool)
               : MDL_DB_EGONE;
}

void mdl_request_release(mdl_request_t *request)
{
    if (request->connection != NULL) {
        request->rows += mdl_connection_rows(request->connection);
        mdl_connection_close(request->connection);
        request->connection = NULL;
    }
}
