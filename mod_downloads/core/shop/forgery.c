#include "core/shop/forgery.h"

#include "base/clock.h"
#include "base/log.h"

int mdl_forgery_note(mdl_rate_limit_t *limit, const char *what, const char *address,
                     mdl_rate_state_t *state, apr_pool_t *p)
{
    mdl_rate_limit_take(limit, MDL_RATE_FORGED, mdl_rate_limit_network(address, p), 1,
                        mdl_clock_monotonic(), state);
    if (state->allowed) {
        mdl_log(MDL_LOG_WARNING, 0, "MDL0220: refused %s from %s", what, address);
    }
    return state->allowed;
}
