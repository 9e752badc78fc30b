/*
 * What happened to an order: who did what, and what became of its emails.
 */
#ifndef MDL_SETTINGS_ORDER_STORY_H
#define MDL_SETTINGS_ORDER_STORY_H

#include "base/text/json.h"
#include "core/order/order.h"

/** Adds "events", the newest first: the timeline of an order, and its emails (mdl_email_view_t *).
 */
void mdl_order_story_add(mdl_json_t *to, const mdl_order_t *order, const apr_array_header_t *emails,
                         apr_pool_t *p);

#endif
