/*
 * A customer's declaration that the delivery may begin before the right of withdrawal has ended,
 * and that it ends by that (directive 2011/83/EU, article 16(m)).  An order that waits for it gives
 * nothing.
 */
#ifndef MDL_CORE_ORDER_DECLARATION_H
#define MDL_CORE_ORDER_DECLARATION_H

#include "db/db.h"

/** Effect: releases an order that waits for its declaration, adds the timeline entry "declared"
   with the text and its language, and queues the email that confirms it, if the order has an
   address. Nothing happens to an order that does not wait, or whose access is not active. */
typedef struct {
    const char *page_id;
    const char *text;      /* as the customer saw it */
    const char *language;  /* its tag, or NULL */
    const char *mail_host; /* right side of the Message-ID */
} mdl_declaration_t;
apr_status_t mdl_order_declare(mdl_db_t *db, apr_pool_t *p, mdl_declaration_t *declaration);

#endif
