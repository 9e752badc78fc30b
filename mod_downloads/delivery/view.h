/*
 * The pages that a customer sees: rendering of page.html and message.html (and of find_page.html,
 * unsubscribe_page.html, and of confirm_page.html and help_page.html, which a shop's staff see),
 * and the headers that they have in common.  Their language is the customer's locale, else one that
 * the browser prefers, both if the shop offers them, else the shop's first, else that of the
 * templates without a language in their name.
 */
#ifndef MDL_DELIVERY_VIEW_H
#define MDL_DELIVERY_VIEW_H

#include <httpd.h>

#include "base/text/json.h"
#include "base/text/template.h"
#include "core/service/service.h"
#include "core/shop/brand.h"

/** Reads the templates.  A template that can't be used is logged; pages are then shown in another
    language, or as plain text. */
void mdl_view_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The path part of DownloadsPublicURL, without a slash at its end; "" for none. */
const char *mdl_view_public_path(void);

/** What a page shows of its customer: language, the shop to turn to, the way back. */
typedef struct {
    apr_int64_t shop_id;
    const char *shop_name;
    const char *shop_domain;
    const char *shop_email; /* or NULL, like the rest */
    const mdl_brand_t *brand;
    const char *locale;
    const char *order_id; /* as people call the order */
    const char *page_url;
    int helps;          /* whether the shop may be asked for help with the order */
    const char *reason; /* why the shop revoked or rejected the order */
} mdl_view_customer_t;

/** Sends an order's page.  data and its lists (NULL: none) are what the template gets
   (docs/templates.md); data receives shop and order_id here. */
int mdl_view_page(request_rec *r, int status, const mdl_view_customer_t *customer, mdl_json_t *data,
                  const mdl_template_list_t *lists);

/**
 * Sends the page that message.html has for a state such as "link_old"; docs/templates.md lists
 * them.  customer may be NULL.
 */
int mdl_view_message(request_rec *r, int status, const char *state,
                     const mdl_view_customer_t *customer);

/** A text of a customer's page, rendered in the language of the page, whose tag *language gets, or
   NULL if it is not known.  Returns NULL if the template can't be used. */
const char *mdl_view_text(request_rec *r, const char *name, const mdl_view_customer_t *customer,
                          const char **language);

/** Sends the page on which an address of a shop's staff is confirmed; data has its state
   (docs/templates.md). */
int mdl_view_confirm(request_rec *r, int status, mdl_json_t *data);

/** Sends the page on which a customer ends a shop's emails about new versions; data has its state
   (docs/templates.md). */
int mdl_view_unsubscribe(request_rec *r, int status, const mdl_view_customer_t *customer,
                         mdl_json_t *data);

/** Sends the page on which a shop's staff answer a customer who asks for help; data has its state
    (docs/templates.md). */
int mdl_view_help(request_rec *r, int status, mdl_json_t *data);

/** Sends the page on which customers ask for the links of their orders; data has its state
   (docs/templates.md). */
int mdl_view_find(request_rec *r, int status, const mdl_view_customer_t *customer,
                  mdl_json_t *data);

/** Sends the page for an error: 404 with the state not_found for APR_ENOENT, 429 for APR_EAGAIN,
    403 for APR_EACCES (a blocked shop), 503 when the database is out of reach, else 500, logged. */
int mdl_view_failure(request_rec *r, apr_status_t rv, const char *not_found);

/** The address of an order's page. */
const char *mdl_view_page_url(const mdl_service_t *service, const char *page_id, apr_pool_t *p);

#endif
