#include "api/request.h"

apr_status_t mdl_request_run(mdl_request_t *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                             void *arg)
{
    return mdl_connection_run(&request->connection, request->r, how, effect, arg);
}

void mdl_request_release(mdl_request_t *request)
{
    if (request->connection != NULL) {
        request->rows += mdl_connection_rows(request->connection);
        mdl_connection_close(request->connection);
        request->connection = NULL;
    }
}
