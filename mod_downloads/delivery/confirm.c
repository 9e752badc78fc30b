#include "delivery/confirm.h"

#include <apr_strings.h>
#include <apr_time.h>
#include <http_log.h>

#include "connection.h"
#include "core/download/signed_url.h"
#include "core/shop/staff_address.h"
#include "delivery/customer.h"
#include "delivery/view.h"

APLOG_USE_MODULE(downloads);

MDL_EFFECT(mdl_staff_address_find, mdl_staff_address_t *)
MDL_EFFECT(mdl_staff_address_confirm, mdl_staff_address_t *)

/* Reads the address of a token, and confirms it if the button was pressed.  APR_ENOENT when the
   token is forged or its address is no longer anybody's, APR_TIMEUP when it is too old. */
static apr_status_t confirm_run(request_rec *r, const mdl_service_t *service, const char *token,
                                int pressed, mdl_staff_address_t *of)
{
    mdl_signed_confirm_t confirm;
    mdl_connection_t *connection;
    apr_status_t rv;

    if (mdl_signed_url_confirm_read(service->secret, token, &confirm, r->pool) != APR_SUCCESS) {
        mdl_customer_forged(r, service);
        return APR_ENOENT;
    }
    if ((rv = mdl_customer_charge(r, service, token)) != APR_SUCCESS) {
        return rv;
    }
    if (confirm.expires_at <= apr_time_now()) {
        return APR_TIMEUP;
    }
    *of = (mdl_staff_address_t){.shop_id = confirm.shop_id, .address = confirm.address};
    if ((connection = mdl_connection_open(r)) == NULL) {
        return MDL_DB_EGONE;
    }
    rv = pressed ? mdl_db_write(mdl_connection_db(connection), mdl_staff_address_confirm_effect, of,
                                r->pool)
                 : mdl_db_read(mdl_connection_db(connection), mdl_staff_address_find_effect, of,
                               r->pool);
    mdl_connection_close(connection);
    return rv;
}

static int confirm_answer(request_rec *r, const mdl_service_t *service, const char *token,
                          int pressed)
{
    mdl_json_t *data = mdl_json_object(r->pool);
    mdl_staff_address_t of;
    apr_status_t rv = confirm_run(r, service, token, pressed, &of);

    if (rv == APR_ENOENT || rv == APR_TIMEUP) {
        mdl_json_add_bool(data, rv == APR_ENOENT ? "unknown" : "old", 1);
        return mdl_view_confirm(r, rv == APR_ENOENT ? HTTP_NOT_FOUND : HTTP_GONE, data);
    }
    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    if (pressed && of.confirmed_at == 0) {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                      "MDL0374: an address of the staff of shop %" APR_INT64_T_FMT " was confirmed",
                      of.shop_id);
    }
    mdl_json_add_bool(data, pressed || of.confirmed_at != 0 ? "confirmed" : "asks", 1);
    mdl_json_add_string(data, "shop_name", of.shop_name);
    mdl_json_add_string(data, "shop_domain", of.shop_domain);
    mdl_json_add_string(data, "address", of.address);
    mdl_json_add_string(data, "action",
                        apr_pstrcat(r->pool, mdl_view_public_path(), "/c/", token, NULL));
    return mdl_view_confirm(r, HTTP_OK, data);
}

int mdl_confirm_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    return confirm_answer(r, service, token, 0);
}

int mdl_confirm_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    return confirm_answer(r, service, token, 1);
}

int mdl_confirm_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    (void)service;
    (void)token;
    return mdl_view_message(r, HTTP_METHOD_NOT_ALLOWED, "wrong_method", NULL);
}
