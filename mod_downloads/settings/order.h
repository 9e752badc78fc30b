/*
 * The whole story of one order, and what staff can do about it.
 */
#ifndef MDL_SETTINGS_ORDER_H
#define MDL_SETTINGS_ORDER_H

#include "settings/visit.h"

/** The order whose number the path names. */
int mdl_order_page_show(mdl_visit_t *visit);

/* Forms of that page, each with the field reason (optional). */
int mdl_order_page_revoke(mdl_visit_t *visit);
int mdl_order_page_restore(mdl_visit_t *visit);
int mdl_order_page_approve(mdl_visit_t *visit);
int mdl_order_page_reject(mdl_visit_t *visit);
int mdl_order_page_rotate_link(mdl_visit_t *visit);

/** With the fields downloads, 0 to 1000, and days, 0 to 3650, at least one of them not 0. */
int mdl_order_page_grant(mdl_visit_t *visit);

/** With the field to: another address, or empty for the customer's. */
int mdl_order_page_resend(mdl_visit_t *visit);

#endif
