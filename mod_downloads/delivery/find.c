#include "delivery/find.h"

#include <string.h>

#include <apr_strings.h>
#include <http_protocol.h>

#include "base/clock.h"
#include "base/mail/mime.h"
#include "connection.h"
#include "core/order/find_request.h"
#include "delivery/customer.h"
#include "delivery/view.h"
#include "request_body.h"

#define FORM_MAX_LENGTH 4096
#define FORM_MAX_FIELDS 16
#define FULL            apr_time_from_sec(60) /* until a customer may try again */

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *network;
    const char *typed;   /* what was sent and is no address; may be NULL */
    const char *address; /* NULL: none was sent */
    mdl_find_shop_t shop;
} find_t;

MDL_EFFECT(mdl_find_shop, mdl_find_shop_t *)
MDL_EFFECT(mdl_find_request_add, mdl_find_request_t *)

static find_t find_begin(request_rec *r, const mdl_service_t *service, const char *domain)
{
    return (find_t){.r = r,
                    .service = service,
                    .network = mdl_rate_limit_network(r->useragent_ip, r->pool),
                    .shop.domain = domain};
}

static mdl_view_customer_t find_customer(const find_t *find)
{
    return (mdl_view_customer_t){.shop_id = find->shop.id,
                                 .shop_name = find->shop.name,
                                 .shop_domain = find->shop.domain,
                                 .shop_email = find->shop.email,
                                 .brand = &find->shop.brand};
}

static int find_send(const find_t *find, const char *state, int status)
{
    mdl_view_customer_t customer = find_customer(find);
    mdl_json_t *data = mdl_json_object(find->r->pool);

    mdl_json_add_bool(data, state, 1);
    mdl_json_add_string(data, "typed", find->typed);
    mdl_json_add_string(
        data, "action",
        apr_pstrcat(find->r->pool, mdl_view_public_path(), "/find/", find->shop.domain, NULL));
    return mdl_view_find(find->r, status, &customer, data);
}

/* Reads the shop and, if asks, stores the request: the same for every address. */
static apr_status_t find_run(find_t *find, int asks)
{
    mdl_connection_t *connection = NULL;
    mdl_find_request_t request = {.address = find->address, .secret = find->service->secret};
    apr_status_t rv = mdl_connection_run(&connection, find->r, mdl_db_read, mdl_find_shop_effect,
                                         &find->shop);

    if (rv == APR_SUCCESS && find->shop.blocked) {
        rv = APR_EACCES;
    }
    if (rv == APR_SUCCESS && asks && !find->shop.full) {
        request.shop_id = find->shop.id;
        rv = mdl_connection_run(&connection, find->r, mdl_db_write, mdl_find_request_add_effect,
                                &request);
    }
    mdl_connection_close(connection);
    return rv;
}

/* Takes from what a network may ask for; 0, with Retry-After, when there is nothing left. */
static int find_allowed(const find_t *find, mdl_rate_kind_t kind)
{
    mdl_rate_state_t state;

    mdl_rate_limit_take(find->service->rate_limit, kind, find->network, 1, mdl_clock_monotonic(),
                        &state);
    if (!state.allowed) {
        mdl_customer_wait(find->r, state.more_in);
    }
    return state.allowed;
}

int mdl_find_show(request_rec *r, const mdl_service_t *service, const char *domain)
{
    find_t find = find_begin(r, service, domain);
    apr_status_t rv = find_allowed(&find, MDL_RATE_PAGE) ? find_run(&find, 0) : APR_EAGAIN;

    return rv == APR_SUCCESS ? find_send(&find, "asks", HTTP_OK)
                             : mdl_view_failure(r, rv, "page_not_found");
}

static const char *trimmed(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    apr_collapse_spaces(copy, copy); /* no address has any */
    return copy;
}

/* Reads the form's address; returns OK, or the status of the response. */
static int find_read(find_t *find)
{
    apr_table_t *fields;
    int status = mdl_request_body_form(find->r, find->network, FORM_MAX_LENGTH, FORM_MAX_FIELDS,
                                       &fields);
    const char *address = status == OK ? apr_table_get(fields, "email") : NULL;

    if (address != NULL) {
        find->address = mdl_mime_address_of(trimmed(address, find->r->pool), find->r->pool);
    }
    find->typed = find->address == NULL ? address : NULL;
    return status != OK || find->address != NULL ? status : HTTP_BAD_REQUEST;
}

static int find_refuse_full(const find_t *find)
{
    mdl_view_customer_t customer = find_customer(find);

    mdl_customer_wait(find->r, FULL);
    return mdl_view_message(find->r, HTTP_SERVICE_UNAVAILABLE, "try_again", &customer);
}

/* Another site that sends this form for its visitor has only an email sent to the address that it
   names, as it could itself: so the form needs no token. */
int mdl_find_press(request_rec *r, const mdl_service_t *service, const char *domain)
{
    find_t find = find_begin(r, service, domain);
    int status = find_read(&find);
    apr_status_t rv = APR_EAGAIN;

    if (find_allowed(&find, status == OK ? MDL_RATE_FIND : MDL_RATE_PAGE)) {
        rv = find_run(&find, status == OK);
    }
    if (rv != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "page_not_found");
    }
    if (status != OK) {
        return find_send(&find, "wrong", status);
    }
    return find.shop.full ? find_refuse_full(&find) : find_send(&find, "sent", HTTP_OK);
}

int mdl_find_wrong_method(request_rec *r, const mdl_service_t *service, const char *domain)
{
    (void)service;
    (void)domain;
    return mdl_view_message(r, HTTP_METHOD_NOT_ALLOWED, "wrong_method", NULL);
}
