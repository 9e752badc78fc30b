#include "worker/turn.h"

#include "core/node.h"

int mdl_turn_is_over(apr_time_t began)
{
    return mdl_clock_monotonic() - began >= MDL_TURN;
}

MDL_EFFECT(mdl_node_time, apr_time_t *)

apr_status_t mdl_turn_now(mdl_reconnect_t *database, apr_time_t *now, apr_pool_t *p)
{
    return mdl_reconnect_read(database, mdl_node_time_effect, now, p);
}
