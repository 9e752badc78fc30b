#include "settings/overview.h"

#include "core/order/search.h"
#include "settings/frame.h"
#include "settings/orders.h"

#define LINES 10

static apr_status_t order_search_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_order_search(db, p, arg);
}

int mdl_overview_show(mdl_visit_t *visit)
{
    mdl_order_search_t held = {.shop_id = visit->shop->id,
                               .access = MDL_ORDER_HELD,
                               .before = APR_INT64_MAX,
                               .limit = LINES};
    apr_status_t rv = mdl_visit_read(visit, order_search_effect, &held);
    mdl_json_t *data;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "on_overview", 1);
    mdl_json_add_bool(data, "has_held", held.found->nelts > 0);
    mdl_json_add_bool(data, "more_held", held.more);
    mdl_orders_add_lines(data, "held_orders", held.found, visit->r->pool);
    return mdl_frame_send(visit, HTTP_OK, "overview.html", data, NULL);
}
