/*
 * The pages that a customer sees: rendering of page.html and message.html, and the headers that
 * both have in common.
 */
#ifndef MDL_DELIVERY_VIEW_H
#define MDL_DELIVERY_VIEW_H

#include <httpd.h>

#include "base/json.h"
#include "core/service.h"

/** Reads the templates; without one, its pages are plain text. */
void mdl_view_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The path of DownloadsPublicURL as it stands there, without a slash at its end; "" for none. */
const char *mdl_view_public_path(void);

/** Sends an order's page; page.html says which members data has. */
int mdl_view_page(request_rec *r, int status, const mdl_json_t *data);

/** Sends a page with a title, a sentence or two, and a link to the order's page or NULL. */
int mdl_view_message(request_rec *r, int status, const char *title, const char *text,
                     const char *page_url);

/** The same with the shop's name, and its address or NULL, for the customer to turn to. */
int mdl_view_shop_message(request_rec *r, int status, const char *title, const char *text,
                          const char *page_url, const char *shop_name, const char *shop_email);

/** The same for an error of the database: 503 when it is out of reach, else 500 and a log line. */
int mdl_view_failure(request_rec *r, apr_status_t rv);

/** The address of an order's page. */
const char *mdl_view_page_url(const mdl_service_t *service, const char *page_id, apr_pool_t *p);

#endif
