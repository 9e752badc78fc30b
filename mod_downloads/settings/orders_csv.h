/*
 * The orders of a filtered list as a file for spreadsheets.
 */
#ifndef MDL_SETTINGS_ORDERS_CSV_H
#define MDL_SETTINGS_ORDERS_CSV_H

#include "core/order/search.h"
#include "settings/visit.h"

/** Sends what a search finds as CSV, 100,000 orders at most, and notes that in the audit.  It is
    read and sent piece by piece, so that neither memory nor a connection is held. */
int mdl_orders_csv_send(mdl_visit_t *visit, const mdl_order_search_t *search);

#endif
