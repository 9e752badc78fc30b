#include "core/order/help_first.h"

#include <apr_time.h>

#include "core/order/access.h"
#include "core/order/help_answer.h"

apr_status_t mdl_help_first(mdl_db_t *db, apr_pool_t *p, mdl_help_first_t *first)
{
    mdl_help_ask_t *ask = &first->ask;
    mdl_problem_t problem = {0};
    mdl_order_find_t find = {.shop_id = ask->shop_id,
                             .storefront_order_id = ask->storefront_order_id,
                             .default_download_limit = first->default_download_limit};
    mdl_access_grant_t grant = {.access = {.shop_id = ask->shop_id,
                                           .storefront_order_id = ask->storefront_order_id,
                                           .default_download_limit = first->default_download_limit,
                                           .problem = &problem},
                                .downloads = 1,
                                .extend_days = MDL_HELP_EXTEND_DAYS};
    apr_status_t rv = mdl_order_lock(db, &find, &problem, p);

    if (rv == MDL_EPROBLEM) {
        ask->outcome = MDL_HELP_NO_ORDER;
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    ask->needed = mdl_help_needed(find.order, apr_time_now());
    ask->only_ended = mdl_help_only_ended(find.order, apr_time_now());
    rv = mdl_help_ask(db, p, ask);
    return rv == APR_SUCCESS && ask->by_itself && ask->outcome == MDL_HELP_IS_ASKED
               ? mdl_access_grant(db, p, &grant)
               : rv;
}
