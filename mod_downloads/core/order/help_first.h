/*
 * A customer asks for help, and the first request of an order may be granted without the shop.
 */
#ifndef MDL_CORE_ORDER_HELP_FIRST_H
#define MDL_CORE_ORDER_HELP_FIRST_H

#include "core/order/help.h"

/**
 * Effect: asks for help with an order.  If the shop has it so, and the order has only ended, grants
 * the order's first request: one more download and seven more days.  Nobody is named as the one who
 * decided; the timeline has an entry without a key and a member.
 */
typedef struct {
    mdl_help_ask_t ask; /* needed and only_ended are found by the effect */
    int default_download_limit;
} mdl_help_first_t;
apr_status_t mdl_help_first(mdl_db_t *db, apr_pool_t *p, mdl_help_first_t *first);

#endif
