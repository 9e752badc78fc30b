#include "api/routes.h"

#include "api/list.h"
#include "api/order_view.h"
#include "api/resource.h"
#include "child_storage.h"
#include "core/identifier.h"
#include "core/order/diagnosis.h"

#define MAX_TEXT 255 /* characters of a product's id */

static const char *order_parse_product(mdl_list_t *query)
{
    const char *id = mdl_list_text(query, "storefront_product_id", MAX_TEXT);

    if (id != NULL && !mdl_identifier_is_product(id)) {
        mdl_list_fault(query, "storefront_product_id", "invalid",
                       "This parameter must be like gid://platform/Product/123.");
    }
    return id;
}

static apr_status_t order_parse_list(mdl_request_t *request)
{
    mdl_order_list_t *list = apr_pcalloc(request->r->pool, sizeof *list);
    mdl_order_filter_t *filter = &list->filter;
    mdl_list_t *query = mdl_list_begin(request);
    apr_status_t rv;

    filter->access = mdl_list_choice(query, "status", mdl_order_access_names);
    filter->customer = mdl_list_storefront_id(query, "customer");
    filter->email = mdl_list_text(query, "email", MDL_SEARCH_TEXT_MAX);
    filter->product = order_parse_product(query);
    filter->email_status = mdl_list_choice(query, "email_status", mdl_email_status_names);
    filter->attention = mdl_list_choice(query, "attention", mdl_order_attention_names);
    filter->created_since = mdl_list_time(query, "created_since");
    filter->created_before = mdl_list_time(query, "created_before");
    filter->updated_since = mdl_list_time(query, "updated_since");
    mdl_list_view(query);
    list->default_download_limit = request->service->settings->download_limit;
    filter->default_download_limit = list->default_download_limit;
    request->arg = list;
    if ((rv = mdl_list_end(query, &list->page)) == APR_SUCCESS && list->page.after != NULL) {
        filter->after = list->page.after;
        return mdl_order_place_valid(filter->after) ? APR_SUCCESS : mdl_list_refuse_cursor(query);
    }
    return rv;
}

static const char *order_write_row(mdl_json_t *to, mdl_request_t *request, const void *row)
{
    const mdl_order_t *order = row;

    mdl_order_write(to, request, order);
    return mdl_resource_id(request, order->id);
}

MDL_EFFECT(mdl_order_list, mdl_order_list_t *)

typedef struct {
    mdl_request_t *request;
    mdl_order_find_t find;
} get_t;

static apr_status_t order_parse_get(mdl_request_t *request)
{
    get_t *get = apr_pcalloc(request->r->pool, sizeof *get);

    get->request = request;
    get->find.shop_id = request->caller.shop_id;
    get->find.storefront_order_id = request->parameters[0];
    get->find.default_download_limit = request->service->settings->download_limit;
    get->find.with_timeline = 1;
    request->arg = get;
    return mdl_identifier_is_digits(request->parameters[0])
               ? APR_SUCCESS
               : mdl_order_refuse_unknown(&request->problem);
}

static apr_status_t diagnosis_parse(mdl_request_t *request)
{
    apr_status_t rv = order_parse_get(request);

    ((get_t *)request->arg)->find.with_lookup = 1;
    return rv;
}

static apr_status_t order_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    get_t *get = arg;
    apr_status_t rv = mdl_order_find(db, p, &get->find);

    return rv == APR_ENOENT ? mdl_order_refuse_unknown(&get->request->problem) : rv;
}

static void order_write_get(mdl_request_t *request)
{
    mdl_order_write(request->response, request, ((get_t *)request->arg)->find.order);
}

static void diagnosis_write(mdl_request_t *request)
{
    static const char *const statuses[] = {
        [MDL_CHECK_OK] = "ok", [MDL_CHECK_WARN] = "warn", [MDL_CHECK_FAIL] = "fail"};
    const mdl_order_t *order = ((get_t *)request->arg)->find.order;
    const mdl_diagnosis_t *diagnosis = mdl_diagnosis_make(order, mdl_child_storage(),
                                                          request->r->pool);
    mdl_json_t *checks;

    mdl_json_add_string(request->response, "storefront_order_id", order->storefront_order_id);
    checks = mdl_json_add_array(request->response, "checks");
    for (int i = 0; i < MDL_CHECKS; i++) {
        mdl_json_t *object = mdl_json_add_object(checks, NULL);

        mdl_json_add_string(object, "name", mdl_check_names[i]);
        mdl_json_add_string(object, "status", statuses[diagnosis->checks[i].status]);
        mdl_json_add_string(object, "message", diagnosis->checks[i].message);
    }
    mdl_json_add_string(
        request->response, "first_failure",
        diagnosis->first_failure < MDL_CHECKS ? mdl_check_names[diagnosis->first_failure] : NULL);
}

const mdl_route_t mdl_order_routes[] = {
    {"GET", "/orders", .write_entity = order_write_row, .parse = order_parse_list, .snapshot = 1,
     .effect = mdl_order_list_effect, .write = mdl_list_write},
    {"GET", "/orders/{}", .versioned = 1, .parse = order_parse_get, .snapshot = 1,
     .effect = order_read, .write = order_write_get},
    {"GET", "/orders/{}/diagnosis", .parse = diagnosis_parse, .snapshot = 1, .effect = order_read,
     .write = diagnosis_write},
    {0},
};
