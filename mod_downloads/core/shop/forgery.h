/*
 * Keys, signed links and passwords that are not ours: each is counted for the network that it came
 * from, and logged in a form that conf/fail2ban knows.
 */
#ifndef MDL_CORE_SHOP_FORGERY_H
#define MDL_CORE_SHOP_FORGERY_H

#include "core/shop/rate_limit.h"

/** Notes that a client has presented what ("key", "link", "upload link" or "password") in vain;
    address is the client's, as text.  True, and one line of the log, as long as its network has not
    done so too often; else state->more_in is until it may again. */
int mdl_forgery_note(mdl_rate_limit_t *limit, const char *what, const char *address,
                     mdl_rate_state_t *state, apr_pool_t *p);

#endif
