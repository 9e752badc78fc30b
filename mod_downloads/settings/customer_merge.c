#include <apr_strings.h>

#include "base/text/utf8.h"
#include "core/identifier.h"
#include "core/order/customer.h"
#include "core/order/merge.h"
#include "settings/frame.h"
#include "settings/orders.h"
#include "settings/pages.h"

#define CHOICES 20

/* The customer who goes, and a search for the one who stays. */
typedef struct {
    mdl_entity_ref_t ref;
    mdl_customer_search_t search;
} merging_t;

static apr_status_t merging_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    merging_t *merging = arg;
    const mdl_customer_t *customer;
    apr_status_t rv = mdl_customer_find(db, p, &merging->ref);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    customer = merging->ref.entity;
    if (merging->search.text == NULL) {
        merging->search.text = customer->email != NULL ? customer->email : customer->last_name;
    }
    return mdl_customer_search(db, p, &merging->search);
}

static void customer_add(mdl_json_t *to, const mdl_customer_t *customer, apr_pool_t *p)
{
    mdl_json_add_int(to, "customer", customer->id);
    mdl_orders_add_customer(to, customer->first_name, customer->last_name, customer->email,
                            customer->storefront_customer_id, p);
}

/* The number of the order whose page has led here; NULL: none has. */
static const char *merging_order(const mdl_visit_t *visit)
{
    const char *number = visit->fields != NULL ? mdl_visit_field(visit, "order")
                                               : mdl_visit_parameter(visit, "order");

    return number != NULL && mdl_identifier_is_digits(number) ? number : NULL;
}

static int merging_send(mdl_visit_t *visit, int status)
{
    apr_pool_t *p = visit->r->pool;
    merging_t merging = {
        .ref = {.shop_id = visit->shop->id,
                .id = mdl_identifier_parse(visit->argument),
                .problem = &visit->problem},
        .search = {.shop_id = visit->shop->id,
                   .text = visit->fields == NULL ? mdl_visit_parameter(visit, "q") : NULL,
                   .limit = CHOICES}};
    mdl_json_t *data, *choices;
    apr_status_t rv;

    if (merging.search.text != NULL && !mdl_utf8_is_text(merging.search.text, MDL_NAME_MAX)) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    if ((rv = mdl_visit_read(visit, merging_read, &merging)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    data = mdl_frame_data(visit);
    customer_add(data, merging.ref.entity, p);
    mdl_json_add_string(data, "order_id", merging_order(visit));
    mdl_json_add_string(data, "typed_q", merging.search.text);
    choices = mdl_json_add_array(data, "choices");
    for (int i = 0; i < merging.search.found->nelts; i++) {
        const mdl_customer_t *each = APR_ARRAY_IDX(merging.search.found, i, const mdl_customer_t *);

        if (each->id != merging.ref.id) {
            customer_add(mdl_json_add_object(choices, NULL), each, p);
        }
    }
    mdl_json_add_bool(data, "has_choices", mdl_json_length(choices) > 0);
    return mdl_frame_send(visit, status, "customer_merge.html", data, NULL);
}

static int merging_show(mdl_visit_t *visit)
{
    return merging_send(visit, HTTP_OK);
}

MDL_EFFECT(mdl_customer_merge, mdl_merge_t *)

/* Leads to the one who stays, and keeps the way back to the order. */
static int merging_done(mdl_visit_t *visit, apr_int64_t into_id)
{
    const char *order = merging_order(visit);

    return mdl_frame_redirect(
        visit,
        mdl_frame_path(visit, "%" APR_INT64_T_FMT "/customers/%" APR_INT64_T_FMT "/merge",
                       visit->shop->id, into_id),
        order != NULL ? apr_pstrcat(visit->r->pool, visit->page->done, "&order=", order, NULL)
                      : visit->page->done);
}

static int merging_act(mdl_visit_t *visit)
{
    mdl_merge_t merge = {.ref = {.shop_id = visit->shop->id,
                                 .id = mdl_identifier_parse(visit->argument),
                                 .problem = &visit->problem},
                         .into_id = mdl_identifier_parse(mdl_visit_field(visit, "into"))};
    apr_status_t rv = mdl_visit_write(visit, mdl_customer_merge_effect, &merge);

    if (rv == MDL_EPROBLEM && visit->problem.status != HTTP_NOT_FOUND) {
        return merging_send(visit, visit->problem.status);
    }
    return rv == APR_SUCCESS ? merging_done(visit, merge.into_id) : mdl_frame_failure(visit, rv);
}

const mdl_page_t mdl_customer_merge_pages[] = {
    {"{}/customers/{}/merge", "customer", "merged", .sees = MDL_ROLE_STAFF, .get = merging_show,
     .acts = MDL_ROLE_STAFF, .post = merging_act, .done = "customer_merged"},
    {0},
};
