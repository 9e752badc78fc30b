/*
 * The pages that a customer sees: rendering of page.html and message.html, and the headers that
 * both have in common.  Which language they are in: the customer's locale, else what his browser
 * asks for, else that of the templates without one.
 */
#ifndef MDL_DELIVERY_VIEW_H
#define MDL_DELIVERY_VIEW_H

#include <httpd.h>

#include "base/text/json.h"
#include "core/service.h"

/** Reads the templates; for one that can't be used another language's is shown, or plain text. */
void mdl_view_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The path of DownloadsPublicURL as it stands there, without a slash at its end; "" for none. */
const char *mdl_view_public_path(void);

/** Whom an answer is for: his language, the shop that he can turn to, the way back. */
typedef struct {
    apr_int64_t shop_id;
    const char *shop_name;
    const char *shop_email; /* or NULL, as all below */
    const char *locale;
    const char *order_id; /* the storefront's */
    const char *page_url;
    const char *reason; /* the shop's own words, for revoked and rejected */
} mdl_view_customer_t;

/** Sends an order's page of this data, to which shop and order_id are added: docs/templates.md. */
int mdl_view_page(request_rec *r, int status, const mdl_view_customer_t *customer,
                  mdl_json_t *data);

/**
 * Sends the page that message.html has for a state by its name ("link_old"); customer may be NULL.
 * docs/templates.md lists the states.
 */
int mdl_view_message(request_rec *r, int status, const char *state,
                     const mdl_view_customer_t *customer);

/** The same for an error of the database: 503 when it is out of reach, else 500 and a log line. */
int mdl_view_failure(request_rec *r, apr_status_t rv);

/** The address of an order's page. */
const char *mdl_view_page_url(const mdl_service_t *service, const char *page_id, apr_pool_t *p);

#endif
