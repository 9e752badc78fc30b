#include "settings/orders.h"

#include <string.h>

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/present.h"
#include "core/order/search.h"
#include "settings/frame.h"

#define LINES 50

void mdl_orders_add_customer(mdl_json_t *to, const char *first_name, const char *last_name,
                             const char *email, const char *id, apr_pool_t *p)
{
    const char *name = first_name != NULL && last_name != NULL
                           ? apr_pstrcat(p, first_name, " ", last_name, NULL)
                       : first_name != NULL ? first_name
                                            : last_name;

    mdl_json_add_string(to, "customer_name", name);
    mdl_json_add_string(to, "customer_email", email);
    mdl_json_add_string(to, "customer_id", id);
}

static void orders_add_line(mdl_json_t *to, const mdl_order_line_t *line, apr_pool_t *p)
{
    mdl_json_add_string(to, "order_id", line->storefront_order_id);
    mdl_frame_add_choice(to, mdl_order_access_names, (int)line->access);
    mdl_frame_add_choice(mdl_json_add_object(to, "email"), mdl_email_status_names,
                         (int)line->email_status);
    mdl_present_date(to, "created", line->created_at);
    mdl_orders_add_customer(to, line->first_name, line->last_name, line->email,
                            line->storefront_customer_id, p);
}

void mdl_orders_add_lines(mdl_json_t *to, const char *name, const apr_array_header_t *lines,
                          apr_pool_t *p)
{
    mdl_json_t *array = mdl_json_add_array(to, name);

    for (int i = 0; i < lines->nelts; i++) {
        orders_add_line(mdl_json_add_object(array, NULL),
                        APR_ARRAY_IDX(lines, i, const mdl_order_line_t *), p);
    }
}

static apr_status_t order_search_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_order_search(db, p, arg);
}

int mdl_orders_show(mdl_visit_t *visit)
{
    const char *state = mdl_visit_parameter(visit, "state");
    int access = mdl_names_find(mdl_order_access_names, state);
    mdl_order_search_t search = {.shop_id = visit->shop->id,
                                 .text = mdl_visit_parameter(visit, "q"),
                                 .access = access > 0 ? (mdl_order_access_t)access
                                                      : MDL_ORDER_ACTIVE,
                                 .before = mdl_visit_before(visit),
                                 .limit = LINES};
    mdl_json_t *data;
    apr_status_t rv;

    if (search.text != NULL && strlen(search.text) > MDL_SEARCH_TEXT_MAX) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, order_search_effect, &search)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "on_orders", 1);
    mdl_json_add_string(data, "q", search.text);
    mdl_frame_add_choice(mdl_json_add_object(data, "chosen"), mdl_order_access_names,
                         (int)search.access);
    mdl_json_add_bool(data, "filtered", search.text != NULL || search.access != MDL_ORDER_ACTIVE);
    mdl_json_add_bool(data, "has_orders", search.found->nelts > 0);
    mdl_orders_add_lines(data, "orders", search.found, visit->r->pool);
    if (search.more && search.text != NULL) {
        mdl_json_add_bool(data, "too_many", 1);
    } else if (search.more) {
        mdl_json_t *next = mdl_json_add_object(data, "next");

        mdl_json_add_string(next, "state", mdl_order_access_names[search.access]);
        mdl_json_add_int(
            next, "before",
            APR_ARRAY_IDX(search.found, search.found->nelts - 1, const mdl_order_line_t *)->id);
    }
    return mdl_frame_send(visit, HTTP_OK, "orders.html", data, NULL);
}
