/*
 * Delivery emails that bounce.  Each email has its own sender address (VERP): after a "+" comes a
 * token that names the email, authenticated by HMAC.  The token is hexadecimal, so a mail server
 * may change its case.
 */
#ifndef MDL_CORE_ORDER_BOUNCE_H
#define MDL_CORE_ORDER_BOUNCE_H

#include <apr_tables.h>

#include "base/crypto.h"
#include "db/db.h"

/** The address that an email bounces to: "shop+<token>@example.com" for shop@example.com. */
const char *mdl_bounce_address(const mdl_secret_t *secret, const char *mail_from,
                               apr_int64_t email_id, apr_pool_t *p);

/** The same for an email that tells of new versions, by one of its orders and the address it goes
    to. */
const char *mdl_bounce_address_of_news(const mdl_secret_t *secret, const char *mail_from,
                                       apr_int64_t order_id, const char *to, apr_pool_t *p);

/** The id of the email that an address belongs to; 0 when its token is not authentic. */
apr_int64_t mdl_bounce_email_id(const mdl_secret_t *secret, const char *address);

/** Effect: records that an email bounced, and why.  Only its first bounce counts; an unknown email
    is ignored. */
typedef struct {
    apr_int64_t email_id;
    const char *reason; /* from the mail server */
} mdl_bounce_t;
apr_status_t mdl_bounce_note(mdl_db_t *db, apr_pool_t *p, const mdl_bounce_t *bounce);

/** Effect: unsubscribes who a bounced email told of new versions (core/shop/unsubscribed.h), unless
    the order has had another address since. */
typedef struct {
    const mdl_secret_t *secret;
    const apr_array_header_t *addresses; /* const char *, where the bounce went */
    apr_int64_t order_id;                /* out; 0: it is about no such email */
} mdl_bounce_news_t;
apr_status_t mdl_bounce_note_news(mdl_db_t *db, apr_pool_t *p, mdl_bounce_news_t *bounce);

#endif
