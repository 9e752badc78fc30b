/*
 * What an order gives its customer besides files, as the templates of page and email show it.
 */
#ifndef MDL_CORE_ORDER_CONTENT_H
#define MDL_CORE_ORDER_CONTENT_H

#include "base/json.h"
#include "core/order.h"
#include "core/service.h"

/**
 * Adds to data, of the assignments that are open at that time:
 *
 *   has_links, links               [{"title","url","host"}], no link twice; url is ours and leads
 *                                  there, host is whose page it is
 *   has_license_keys, license_keys [{"license_key"}]; has_license_keys also when all are pending
 *   pending                        keys to come, or null: {"count","one": it is a single one,
 *                                  "more": some have come already}
 *
 * Returns whether there is anything of it.
 */
int mdl_order_content_add(mdl_json_t *data, const mdl_order_t *order, const mdl_service_t *service,
                          apr_time_t now, apr_pool_t *p);

#endif
