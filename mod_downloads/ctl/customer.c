#include "ctl/customer.h"

#include <stddef.h>

#include "core/order/customer.h"
#include "core/order/search.h"
#include "ctl/listing.h"

#define ORDERS_SHOWN 1000

static const mdl_field_t fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_customer_t, id), 1, NULL},
    {"storefront_customer_id", MDL_FIELD_TEXT, offsetof(mdl_customer_t, storefront_customer_id), 1,
     NULL},
    {"email", MDL_FIELD_TEXT, offsetof(mdl_customer_t, email), 1, NULL},
    {"first_name", MDL_FIELD_TEXT, offsetof(mdl_customer_t, first_name), 1, NULL},
    {"last_name", MDL_FIELD_TEXT, offsetof(mdl_customer_t, last_name), 1, NULL},
    {"locale", MDL_FIELD_TEXT, offsetof(mdl_customer_t, locale), 0, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_customer_t, created_at), 1, NULL},
    {"updated_at", MDL_FIELD_TIME, offsetof(mdl_customer_t, updated_at), 0, NULL},
    {0},
};

static const mdl_field_t order_fields[] = {
    {"storefront_order_id", MDL_FIELD_TEXT, offsetof(mdl_order_line_t, storefront_order_id), 1,
     NULL},
    {"name", MDL_FIELD_TEXT, offsetof(mdl_order_line_t, name), 1, NULL},
    {"access", MDL_FIELD_ENUM, offsetof(mdl_order_line_t, access), 1, mdl_order_access_names},
    {"email", MDL_FIELD_TEXT, offsetof(mdl_order_line_t, email), 1, NULL},
    {"email_status", MDL_FIELD_ENUM, offsetof(mdl_order_line_t, email_status), 1,
     mdl_email_status_names},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_order_line_t, created_at), 1, NULL},
    {0},
};

MDL_EFFECT(mdl_customer_list, mdl_customer_list_t *)

int mdl_ctl_customer_list(mdl_ctl_t *ctl)
{
    mdl_customer_list_t list = {.email = ctl->email};

    return mdl_ctl_list(ctl, mdl_customer_list_effect, &list.page, fields,
                        "No customer was found.");
}

typedef struct {
    mdl_entity_ref_t ref;
    apr_array_header_t *orders; /* out: mdl_order_line_t * */
} customer_find_t;

static apr_status_t customer_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    customer_find_t *find = arg;
    apr_array_header_t *ids = NULL;
    apr_status_t rv = mdl_customer_find(db, p, &find->ref);

    if (rv == APR_SUCCESS) {
        rv = mdl_customer_orders(db, find->ref.id, ORDERS_SHOWN, &ids, p);
    }
    return rv == APR_SUCCESS ? mdl_order_lines(db, ids, &find->orders, p) : rv;
}

int mdl_ctl_customer_show(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p), *list;
    mdl_problem_t problem = {0};
    customer_find_t find = {.ref = {.problem = &problem}};
    int failed = mdl_ctl_find(ctl, customer_find_effect, &find.ref);

    if (failed) {
        return failed;
    }
    if (!mdl_printer_is_json(ctl->output)) {
        mdl_printer_record(ctl->output, fields, find.ref.entity);
        mdl_printer_line(ctl->output, "%s", "");
        mdl_printer_list(ctl->output, order_fields, find.orders, "The customer has no order.");
        if (find.orders->nelts == ORDERS_SHOWN) {
            mdl_printer_line(ctl->output, "(no more than %d orders are shown)", ORDERS_SHOWN);
        }
        return MDL_EXIT_DONE;
    }
    mdl_printer_fill(document, fields, find.ref.entity);
    list = mdl_json_add_array(document, "orders");
    for (int i = 0; i < find.orders->nelts; i++) {
        mdl_printer_fill(mdl_json_add_object(list, NULL), order_fields,
                         APR_ARRAY_IDX(find.orders, i, const mdl_order_line_t *));
    }
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}
