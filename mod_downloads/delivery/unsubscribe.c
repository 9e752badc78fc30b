#include "delivery/unsubscribe.h"

#include <apr_strings.h>

#include "connection.h"
#include "core/download/signed_url.h"
#include "core/shop/unsubscribed.h"
#include "delivery/customer.h"
#include "delivery/view.h"

MDL_EFFECT(mdl_unsubscribe_look, mdl_unsubscribe_t *)
MDL_EFFECT(mdl_unsubscribe, mdl_unsubscribe_t *)

static apr_status_t unsubscribe_run(request_rec *r, const mdl_service_t *service, const char *token,
                                    int pressed, mdl_unsubscribe_t *of)
{
    mdl_signed_unsubscribe_t unsubscribe;
    mdl_connection_t *connection = NULL;
    apr_status_t rv;

    if (mdl_signed_url_unsubscribe_read(service->secret, token, &unsubscribe, r->pool) !=
        APR_SUCCESS) {
        mdl_customer_forged(r, service);
        return APR_ENOENT;
    }
    if ((rv = mdl_customer_charge(r, service, token)) != APR_SUCCESS) {
        return rv;
    }
    *of = (mdl_unsubscribe_t){.shop_id = unsubscribe.shop_id,
                              .address_mac = unsubscribe.address_mac};
    rv = pressed ? mdl_connection_run(&connection, r, mdl_db_write, mdl_unsubscribe_effect, of)
                 : mdl_connection_run(&connection, r, mdl_db_read, mdl_unsubscribe_look_effect, of);
    mdl_connection_close(connection);
    return rv;
}

static int unsubscribe_answer(request_rec *r, const mdl_service_t *service, const char *token,
                              int pressed)
{
    mdl_json_t *data = mdl_json_object(r->pool);
    mdl_view_customer_t customer;
    mdl_unsubscribe_t of;
    apr_status_t rv = unsubscribe_run(r, service, token, pressed, &of);

    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    customer = (mdl_view_customer_t){.shop_id = of.shop_id,
                                     .shop_name = of.shop_name,
                                     .shop_domain = of.shop_domain,
                                     .shop_email = of.shop_email,
                                     .brand = &of.brand};
    mdl_json_add_bool(data, pressed || of.before ? "ended" : "asks", 1);
    mdl_json_add_string(data, "action",
                        apr_pstrcat(r->pool, mdl_view_public_path(), "/u/", token, NULL));
    return mdl_view_unsubscribe(r, HTTP_OK, &customer, data);
}

int mdl_unsubscribe_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    return unsubscribe_answer(r, service, token, 0);
}

int mdl_unsubscribe_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    return unsubscribe_answer(r, service, token, 1);
}
