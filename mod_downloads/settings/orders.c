#include "settings/orders.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/present.h"
#include "core/order/search.h"
#include "settings/filter.h"
#include "settings/frame.h"
#include "settings/orders_csv.h"
#include "settings/pages.h"

#define LINES 50
#define DAY   apr_time_from_sec(86400)

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
    mdl_json_add_string(to, "order_name", line->name);
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

MDL_EFFECT(mdl_order_search, mdl_order_search_t *)

/* What can have become of the email of an order that somebody looks for. */
static const char *const email_fates[] = {"failed", "no_recipient",  "bounced",
                                          "held",   "not_requested", NULL};

/* Active orders can't be asked for: nearly all are. */
static const mdl_filter_field_t fields[] = {
    {"q", .max = MDL_SEARCH_TEXT_MAX},
    {"state", .names = mdl_order_access_names + 1},
    {"email", .names = email_fates},
    {"attention", .names = mdl_order_attention_names},
    {"product", .max = MDL_SEARCH_TEXT_MAX},
    {"from", .is_day = 1},
    {"to", .is_day = 1},
    {0},
};

static mdl_order_search_t orders_search(const mdl_visit_t *visit, const mdl_filter_t *filter)
{
    const char *before = mdl_visit_parameter(visit, "before");
    apr_time_t to = mdl_filter_day(filter, "to");

    return (mdl_order_search_t){
        .text = mdl_filter_value(filter, "q"),
        .filter = {.shop_id = visit->shop->id,
                   .access = mdl_filter_value(filter, "state"),
                   .email_status = mdl_filter_value(filter, "email"),
                   .attention = mdl_filter_value(filter, "attention"),
                   .default_download_limit = visit->service->settings->download_limit,
                   .product = mdl_filter_value(filter, "product"),
                   .created_since = mdl_filter_day(filter, "from"),
                   .created_before = to != 0 ? to + DAY : 0,
                   .after = before != NULL && mdl_order_place_valid(before) ? before : NULL,
                   .limit = LINES}};
}

/* All parameters of the query are optional. */
static int orders_show(mdl_visit_t *visit)
{
    mdl_order_search_t search;
    mdl_filter_t filter;
    mdl_json_t *data;
    apr_status_t rv;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    search = orders_search(visit, &filter);
    if ((rv = mdl_visit_read(visit, mdl_order_search_effect, &search)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    mdl_json_add_bool(data, "has_orders", search.found->nelts > 0);
    mdl_orders_add_lines(data, "orders", search.found, visit->r->pool);
    mdl_json_add_bool(data, "too_many", search.more);
    mdl_json_add_string(data, "before", search.filter.next);
    return mdl_frame_send(visit, HTTP_OK, "orders.html", data, NULL);
}

/* The list's query is in the path of the form. */
static int orders_export(mdl_visit_t *visit)
{
    mdl_order_search_t search;
    mdl_filter_t filter;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    search = orders_search(visit, &filter);
    search.filter.after = NULL;
    return mdl_orders_csv_send(visit, &search);
}

const mdl_page_t mdl_order_list_pages[] = {
    {"{}/orders", .sees = MDL_ROLE_READ_ONLY, .get = orders_show},
    {"{}/orders/csv", "order", "exported", .acts = MDL_ROLE_STAFF, .post = orders_export},
    {0},
};
