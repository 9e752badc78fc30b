#include "delivery/help.h"

#include "child_storage.h"
#include "connection.h"
#include "core/order/help_first.h"

MDL_EFFECT(mdl_order_find, mdl_order_find_t *)
MDL_EFFECT(mdl_help_first, mdl_help_first_t *)

apr_status_t mdl_help_press(request_rec *r, const mdl_service_t *service, const mdl_order_t *order,
                            mdl_help_outcome_t *outcome)
{
    mdl_order_find_t find = {.id = order->id,
                             .default_download_limit = service->settings->download_limit,
                             .with_lookup = 1};
    mdl_help_first_t first = {
        .ask = {.shop_id = order->shop_id, .storefront_order_id = order->storefront_order_id},
        .default_download_limit = service->settings->download_limit};
    mdl_connection_t *connection = mdl_connection_open(r);
    apr_status_t rv;

    if (connection == NULL) {
        return MDL_DB_EGONE;
    }
    rv = mdl_db_snapshot(mdl_connection_db(connection), mdl_order_find_effect, &find, r->pool);
    if (rv == APR_SUCCESS) {
        first.ask.finding = mdl_help_finding(
            mdl_diagnosis_make(find.order, mdl_child_storage(), r->pool));
        rv = mdl_db_write(mdl_connection_db(connection), mdl_help_first_effect, &first, r->pool);
        mdl_service_wake(service, mdl_db_take_due(mdl_connection_db(connection)));
    }
    mdl_connection_close(connection);
    *outcome = first.ask.outcome;
    return rv;
}
