/*
 * What the templates of emails are given (docs/templates.md): of an order, and of a sample for
 * those who look at the emails of their shop.
 */
#ifndef MDL_CORE_ORDER_EMAIL_DATA_H
#define MDL_CORE_ORDER_EMAIL_DATA_H

#include "base/text/letter.h"
#include "core/order/order.h"
#include "core/settings/settings.h"
#include "core/shop/shop.h"

/** Sets the language of an order's emails: the customer's, if the shop offers it, else the shop's
    first; source->other is what comes after it.  Both may be NULL. */
void mdl_email_choose_language(mdl_letter_source_t *source, const mdl_order_t *order,
                               apr_pool_t *p);

/** The data of an order's delivery email (docs/templates.md). */
mdl_json_t *mdl_email_data(const mdl_order_t *order, const mdl_secret_t *secret,
                           const char *public_url, apr_pool_t *p);

/** Adds what every email to staff shows and is not queued with it: the shop, and the URL of its
   settings (settings_url may be NULL). */
void mdl_email_add_shop(mdl_json_t *data, const mdl_shop_t *shop, const char *settings_url,
                        apr_pool_t *p);

/** The emails that a shop can send: names of templates; those to customers first, and the delivery
    email before the others. */
extern const char *const mdl_email_sample_names[];

/** Whether one of these is for customers, in the shop's languages. */
int mdl_email_sample_is_customers(const char *template);

/**
 * Fills source with one of these emails, and what it would be given for an order, a license key and
 * addresses that do not exist: its links lead nowhere.  Keeps source->locale.
 */
void mdl_email_sample(mdl_letter_source_t *source, const char *template, const mdl_shop_t *shop,
                      const mdl_secret_t *secret, const mdl_settings_t *settings, apr_pool_t *p);

#endif
