/*
 * Customers who want no emails about new versions from a shop.  Kept is only a MAC of the address,
 * by the data key, which outlives the server's secrets.
 */
#ifndef MDL_CORE_SHOP_UNSUBSCRIBED_H
#define MDL_CORE_SHOP_UNSUBSCRIBED_H

#include "base/crypto.h"
#include "core/shop/brand.h"
#include "db/db.h"

/** The MAC of an address, by the data key (core/shop/data_key.h). */
const char *mdl_unsubscribed_mac(const mdl_secret_t *data_key, const char *address, apr_pool_t *p);

/** Whether a shop's address with this MAC is unsubscribed. */
apr_status_t mdl_unsubscribed_has(mdl_db_t *db, apr_int64_t shop_id, const char *address_mac,
                                  int *has, apr_pool_t *p);

/** Effects: the first reads a shop, and whether an address of it is unsubscribed; the second
    unsubscribes it as well.  APR_ENOENT: no such shop. */
typedef struct {
    apr_int64_t shop_id;
    const char *address_mac;
    const char *shop_name; /* out, like the rest */
    const char *shop_domain;
    const char *shop_email; /* for customers to write to; or NULL */
    mdl_brand_t brand;
    int before; /* whether it was already unsubscribed */
} mdl_unsubscribe_t;
apr_status_t mdl_unsubscribe_look(mdl_db_t *db, apr_pool_t *p, mdl_unsubscribe_t *unsubscribe);
apr_status_t mdl_unsubscribe(mdl_db_t *db, apr_pool_t *p, mdl_unsubscribe_t *unsubscribe);

#endif
