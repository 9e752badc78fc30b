#include "core/order/order_size.h"

#include <apr_strings.h>

apr_status_t mdl_order_too_many_files(mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_problem_count(problem, MDL_ORDER_FILES_MAX, -1);
    return mdl_problem_set(problem, 422, "too_many_files",
                           apr_psprintf(p,
                                        "The order would have more than %d files, each counted for "
                                        "every item that gives it; an order has %d at most.",
                                        MDL_ORDER_FILES_MAX, MDL_ORDER_FILES_MAX));
}

apr_status_t mdl_order_too_many_links(mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_problem_count(problem, MDL_ORDER_LINKS_MAX, -1);
    return mdl_problem_set(problem, 422, "too_many_links",
                           apr_psprintf(p,
                                        "The order would have more than %d links, each counted for "
                                        "every item that gives it, or more than %d KiB of them.",
                                        MDL_ORDER_LINKS_MAX, MDL_ORDER_TEXT_MAX / 1024));
}

apr_status_t mdl_order_too_many_license_keys(mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_problem_count(problem, MDL_ORDER_LICENSE_KEYS_MAX, -1);
    return mdl_problem_set(problem, 422, "too_many_license_keys",
                           apr_psprintf(p,
                                        "The order would have more than %d license keys, those to "
                                        "come included, or more than %d KiB of them.",
                                        MDL_ORDER_LICENSE_KEYS_MAX, MDL_ORDER_TEXT_MAX / 1024));
}

/* Whether an order exceeds the limits of license keys, pending keys included. */
static int order_has_many_license_keys(const mdl_order_t *order)
{
    apr_int64_t all = 0;
    apr_size_t bytes = 0;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(order->assignments, i,
                                                           const mdl_assignment_t *);

        all += assignment->license_keys->nelts + assignment->license_keys_pending;
        for (int k = 0; k < assignment->license_keys->nelts; k++) {
            bytes += mdl_license_key_size(
                &APR_ARRAY_IDX(assignment->license_keys, k, mdl_license_key_t));
        }
    }
    return order->license_keys_truncated || all > MDL_ORDER_LICENSE_KEYS_MAX ||
           bytes > MDL_ORDER_TEXT_MAX;
}

apr_status_t mdl_order_check_size(const mdl_order_t *order, mdl_problem_t *problem, apr_pool_t *p)
{
    if (order->assignments->nelts > MDL_ORDER_ITEMS_MAX) {
        mdl_problem_count(problem, MDL_ORDER_ITEMS_MAX, order->assignments->nelts);
        return mdl_problem_set(problem, 422, "too_many_items",
                               apr_psprintf(p,
                                            "The order would have %d items, those of earlier "
                                            "assignments included; an order has %d at most.",
                                            order->assignments->nelts, MDL_ORDER_ITEMS_MAX));
    }
    if (order->files_truncated) {
        return mdl_order_too_many_files(problem, p);
    }
    if (order->links_truncated) {
        return mdl_order_too_many_links(problem, p);
    }
    return order_has_many_license_keys(order) ? mdl_order_too_many_license_keys(problem, p)
                                              : APR_SUCCESS;
}
