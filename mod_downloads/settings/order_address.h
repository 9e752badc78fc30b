/*
 * The form by which the staff correct where an order's emails go.
 */
#ifndef MDL_SETTINGS_ORDER_ADDRESS_H
#define MDL_SETTINGS_ORDER_ADDRESS_H

#include "base/text/json.h"
#include "core/order/access.h"
#include "settings/visit.h"

/** Adds "address_form", with what was typed into it.  If the address is mistaken, because nothing
    arrives there, or doubted, because another was probably meant (else NULL), the form offers to
    correct it in all orders. */
void mdl_order_address_add(mdl_json_t *to, const mdl_visit_t *visit, const mdl_order_t *order,
                           const char *meant, int mistaken);

/** What the form asks for, allocated in the visit's pool; access begins it.  NULL: the address that
    was typed is none, and visit->problem says so. */
void *mdl_order_address_read(mdl_visit_t *visit, const mdl_access_t *access);

/** Effect: does what mdl_order_address_read returned. */
apr_status_t mdl_order_address_effect(mdl_db_t *db, apr_pool_t *p, void *arg);

#endif
