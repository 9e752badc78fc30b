#include "settings/orders.h"

#include <string.h>

#include <apr_strings.h>

#include "base/clock.h"
#include "base/names.h"
#include "base/text/present.h"
#include "core/order/search.h"
#include "settings/frame.h"
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

/* The beginning of a day, as <input type="date"> writes it, in UTC; 0 for none. */
static apr_time_t orders_day(const mdl_visit_t *visit, const char *name)
{
    const char *text = mdl_visit_parameter(visit, name);
    apr_time_t time = 0;

    if (text != NULL) {
        mdl_clock_parse(&time, apr_pstrcat(visit->r->pool, text, "T00:00:00Z", NULL));
    }
    return time;
}

/* Ignores invalid parameters. */
static void orders_read_query(mdl_visit_t *visit, mdl_order_search_t *search)
{
    mdl_order_filter_t *filter = &search->filter;
    const char *before = mdl_visit_parameter(visit, "before");
    int access = mdl_names_find(mdl_order_access_names, mdl_visit_parameter(visit, "state"));

    search->text = mdl_visit_parameter(visit, "q");
    filter->shop_id = visit->shop->id;
    filter->access = access > 0 ? mdl_order_access_names[access] : NULL;
    filter->product = mdl_visit_parameter(visit, "product");
    filter->created_since = orders_day(visit, "from");
    filter->created_before = orders_day(visit, "to");
    if (filter->created_before != 0) {
        filter->created_before += DAY;
    }
    filter->after = before != NULL && mdl_order_place_valid(before) ? before : NULL;
    filter->limit = LINES;
}

static int is_too_long(const char *text)
{
    return text != NULL && strlen(text) > MDL_SEARCH_TEXT_MAX;
}

static void orders_add_escaped(mdl_json_t *to, const mdl_visit_t *visit, const char *name,
                               const char *text)
{
    mdl_json_add_string(to, name, text != NULL ? ap_escape_urlencoded(visit->r->pool, text) : NULL);
}

/* Adds the search's terms, for the form and for the next page's query. */
static void orders_add_query(mdl_json_t *to, const mdl_visit_t *visit,
                             const mdl_order_search_t *search)
{
    const mdl_order_filter_t *filter = &search->filter;
    int from = filter->created_since != 0, until = filter->created_before != 0;

    mdl_json_add_string(to, "q", search->text);
    orders_add_escaped(to, visit, "q_escaped", search->text);
    mdl_frame_add_choice(mdl_json_add_object(to, "chosen"), mdl_order_access_names,
                         mdl_names_find(mdl_order_access_names, filter->access));
    mdl_json_add_string(to, "state", filter->access);
    mdl_json_add_string(to, "product", filter->product);
    orders_add_escaped(to, visit, "product_escaped", filter->product);
    mdl_json_add_string(to, "from", from ? mdl_visit_parameter(visit, "from") : NULL);
    mdl_json_add_string(to, "to", until ? mdl_visit_parameter(visit, "to") : NULL);
    mdl_json_add_bool(to, "filtered",
                      search->text != NULL || filter->access != NULL || filter->product != NULL ||
                          from || until);
}

/* The parameters q (a number or an address), state, product, from, to and before are optional. */
static int orders_show(mdl_visit_t *visit)
{
    mdl_order_search_t search = {.text = NULL};
    mdl_json_t *data;
    apr_status_t rv;

    orders_read_query(visit, &search);
    if (is_too_long(search.text) || is_too_long(search.filter.product)) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, mdl_order_search_effect, &search)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "on_orders", 1);
    orders_add_query(data, visit, &search);
    mdl_json_add_bool(data, "has_orders", search.found->nelts > 0);
    mdl_orders_add_lines(data, "orders", search.found, visit->r->pool);
    mdl_json_add_bool(data, "too_many", search.more);
    mdl_json_add_string(data, "before", search.filter.next);
    return mdl_frame_send(visit, HTTP_OK, "orders.html", data, NULL);
}

const mdl_page_t mdl_order_list_pages[] = {
    {"{}/orders", .sees = MDL_ROLE_READ_ONLY, .get = orders_show},
    {0},
};
