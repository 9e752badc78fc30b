#include "settings/order_address.h"

#include <string.h>

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "core/order/change.h"
#include "core/order/customer.h"

typedef struct {
    mdl_visit_t *visit;
    mdl_order_change_t change;
    int of_customer; /* corrects the customer's address, for all of its orders */
} order_address_t;

/* Whether a box is ticked; as offered, unless the form is shown again. */
static int address_ticked(const mdl_visit_t *visit, int typed, const char *name, int offered)
{
    return typed ? mdl_visit_field(visit, name) != NULL : offered;
}

/* An email that has left is with whoever has the wrong address, and so is the link in it. */
void mdl_order_address_add(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order,
                           const char *meant, int mistaken)
{
    int typed = visit->fields != NULL && strcmp(visit->audit.action, "address_changed") == 0;
    mdl_json_t *form = mdl_json_add_object(to, "address_form");

    mdl_json_add_bool(form, "mistaken", mistaken);
    mdl_json_add_bool(form, "doubted", meant != NULL && !mistaken);
    mdl_json_add_bool(form, "typed", typed);
    mdl_json_add_string(form, "meant", meant);
    mdl_json_add_string(form, "address",
                        typed           ? mdl_visit_field(visit, "to")
                        : meant != NULL ? meant
                                        : order->address);
    mdl_json_add_bool(form, "send", address_ticked(visit, typed, "send", 1));
    mdl_json_add_bool(form, "all", address_ticked(visit, typed, "all", mistaken || meant != NULL));
    mdl_json_add_bool(form, "rotate",
                      address_ticked(visit, typed, "rotate", order->email.sent_at != 0));
    if (typed) {
        mdl_json_add_string(form, "typed_reason", mdl_visit_field(visit, "reason"));
    }
}

void *mdl_order_address_read(mdl_visit_t *visit, const mdl_access_t *access)
{
    apr_pool_t *p = visit->r->pool;
    order_address_t *address = apr_pcalloc(p, sizeof *address);
    mdl_order_change_t *change = &address->change;

    address->visit = visit;
    address->of_customer = mdl_visit_field(visit, "all") != NULL;
    change->access = *access;
    change->email = mdl_mime_address_of(mdl_visit_field(visit, "to"), p);
    change->email_given = !address->of_customer;
    change->rotate_link = mdl_visit_field(visit, "rotate") != NULL;
    change->send_email = mdl_visit_field(visit, "send") != NULL;
    change->mail_host = mdl_settings_public_host(visit->service->settings, p);
    if (change->email == NULL) {
        mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_address",
                        "This is not an email address.");
        return NULL;
    }
    return address;
}

/* Corrects the address of the order's customer, in place of the order's own. */
static apr_status_t address_change_customer(mdl_db_t *db, order_address_t *address, apr_pool_t *p)
{
    const mdl_access_t *access = &address->change.access;
    mdl_audit_t *audit = &address->visit->audit;
    mdl_order_find_t find = {.shop_id = access->shop_id,
                             .storefront_order_id = access->storefront_order_id};
    mdl_customer_change_t customer = {
        .ref = {.shop_id = access->shop_id, .problem = access->problem},
        .email = address->change.email,
        .clear_recipients = 1,
        .rotate_links = address->change.rotate_link,
        .user = access->user,
        .reason = access->reason};
    apr_status_t rv = mdl_order_head(db, p, &find);

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? mdl_order_refuse_unknown(access->problem) : rv;
    }
    customer.ref.id = find.order->customer.id;
    audit->noun = "customer";
    audit->noun_id = apr_psprintf(p, "%" APR_INT64_T_FMT, customer.ref.id);
    return mdl_customer_change(db, p, &customer);
}

apr_status_t mdl_order_address_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    order_address_t *address = arg;
    apr_status_t rv = address->of_customer ? address_change_customer(db, address, p) : APR_SUCCESS;

    return rv == APR_SUCCESS ? mdl_order_change(db, p, &address->change) : rv;
}
