#include "core/shop/unsubscribed.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#define PURPOSE "unsubscribed"

/* Ada@ and ada@ are the same mailbox. */
const char *mdl_unsubscribed_mac(const mdl_secret_t *data_key, const char *address, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];
    char *folded = apr_pstrdup(p, address);

    for (char *c = folded; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    mdl_secret_mac(data_key, PURPOSE, folded, strlen(folded), mac);
    return mdl_hex(mac, sizeof mac, p);
}

apr_status_t mdl_unsubscribed_has(mdl_db_t *db, apr_int64_t shop_id, const char *address_mac,
                                  int *has, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(UNSUBSCRIBED_FIND, .shop_id = shop_id, .address_mac = address_mac));

    *has = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_unsubscribe_look(mdl_db_t *db, apr_pool_t *p, mdl_unsubscribe_t *unsubscribe)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(UNSUBSCRIBED_SHOP,
                                              .address_mac = unsubscribe->address_mac,
                                              .id = unsubscribe->shop_id));

    if (rv == APR_SUCCESS) {
        unsubscribe->shop_name = MDL_TEXT(row, unsubscribed_shop, name);
        unsubscribe->shop_domain = MDL_TEXT(row, unsubscribed_shop, domain);
        unsubscribe->shop_email = MDL_TEXT(row, unsubscribed_shop, shop_email);
        MDL_READ(row, unsubscribed_shop, &unsubscribe->brand, accent, languages, logo_sha256,
                 logo_width, logo_height);
        unsubscribe->before = !MDL_NULL(row, unsubscribed_shop, is_there);
    }
    return rv;
}

apr_status_t mdl_unsubscribe(mdl_db_t *db, apr_pool_t *p, mdl_unsubscribe_t *unsubscribe)
{
    apr_status_t rv = mdl_unsubscribe_look(db, p, unsubscribe);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(UNSUBSCRIBED_INSERT, .shop_id = unsubscribe->shop_id,
                                   .address_mac = unsubscribe->address_mac))
               : rv;
}
