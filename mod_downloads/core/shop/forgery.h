/*
 * Invalid keys, signed links and passwords: each is counted against the client's network, and
 * logged in the form that conf/fail2ban expects.
 */
#ifndef MDL_CORE_SHOP_FORGERY_H
#define MDL_CORE_SHOP_FORGERY_H

#include "core/shop/rate_limit.h"

/** Records an invalid what ("key", "link", "upload link" or "password") from a client's address.
    True, with a line in the log, while the client's network is within its limit; else
    state->more_in is the time until it may try again. */
int mdl_forgery_note(mdl_rate_limit_t *limit, const char *what, const char *address,
                     mdl_rate_state_t *state, apr_pool_t *p);

#endif
