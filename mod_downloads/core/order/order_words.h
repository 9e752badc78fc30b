/*
 * The words by which orders and customers are found (core/search_word.h).
 */
#ifndef MDL_CORE_ORDER_ORDER_WORDS_H
#define MDL_CORE_ORDER_ORDER_WORDS_H

#include "core/order/buyer.h"
#include "core/search_word.h"

/** Adds the words of an order: its number, its name and its own address; NULL has none. */
void mdl_order_words(mdl_search_words_t *words, apr_int64_t id, const char *storefront_order_id,
                     const char *name, const char *address, apr_pool_t *p);

/** Replaces the words of an order that has changed by those that the database has now. */
apr_status_t mdl_order_store_words(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

/** Adds the words of a customer: number, names and email address. */
void mdl_customer_words(mdl_search_words_t *words, const mdl_customer_t *customer, apr_pool_t *p);

/** Replaces the words of a customer who has changed by those that the database has now. */
apr_status_t mdl_customer_store_words(mdl_db_t *db, apr_int64_t id, apr_pool_t *p);

#endif
