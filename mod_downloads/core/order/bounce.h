/*
 * Delivery emails that come back.  Each goes out under a sender's address of its own (VERP): behind
 * a "+" stands which email it is, authenticated by HMAC, in characters that survive a change of
 * case on the way.
 */
#ifndef MDL_CORE_ORDER_BOUNCE_H
#define MDL_CORE_ORDER_BOUNCE_H

#include "base/crypto.h"
#include "db/db.h"

/** The address that an email comes back to: "shop+<token>@example.com" for shop@example.com. */
const char *mdl_bounce_address(const mdl_secret_t *secret, const char *mail_from,
                               apr_int64_t email_id, apr_pool_t *p);

/** The email that an address is of; 0 when its token is not one of ours. */
apr_int64_t mdl_bounce_email_id(const mdl_secret_t *secret, const char *address);

/** Effect: notes that an email came back, and why; the first time counts.  One that is not there
    is passed over. */
typedef struct {
    apr_int64_t email_id;
    const char *reason; /* of the failure, from the mail server */
} mdl_bounce_t;
apr_status_t mdl_bounce_note(mdl_db_t *db, apr_pool_t *p, const mdl_bounce_t *bounce);

#endif
