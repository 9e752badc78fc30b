/*
 * What an order gives its customer, as the templates of page and email show it.
 */
#ifndef MDL_CORE_ORDER_OFFER_H
#define MDL_CORE_ORDER_OFFER_H

#include "base/crypto.h"
#include "base/text/json.h"
#include "core/order/order.h"

/** Whether a file can be had by an assignment that is open, and if not, why: MDL_ENTITLEMENT_OK,
    …_NOT_READY, …_FAILED or …_EXHAUSTED. */
mdl_entitlement_t mdl_offer_file_entitlement(const mdl_order_file_t *file);

/** What the page's button for a file sends: "{assignment id}-{asset id}". */
const char *mdl_offer_file_id(const mdl_order_file_t *file, apr_pool_t *p);

/** The length of an assignment's archive; 0 when none is offered, because its files are offered one
    by one or fewer than two are ready. */
apr_int64_t mdl_offer_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p);

/**
 * Adds to data, of the assignments that are open at that time:
 *
 *   expires                        the date when all of them end, or null where none does or where
 *                                  they end at different times; then files and links have their own
 *   has_files, files               [{"id","title","filename","size","sha256","limit","expires",
 *                                  "ready","preparing","failed","exhausted"}]; what several
 *                                  assignments give up to the same minute is there once, with the
 *                                  sum of their downloads and the id of the one with most left, for
 *                                  an archive to last longest
 *   complete                       no file is being prepared, and none has failed
 *   in_preparation                 files to come, or null: {"count","one": it is a single one,
 *                                  "all": there are no others}
 *   has_links, links               [{"title","url","host","expires"}], no link twice; url is ours
 *                                  and leads there, host is whose page it is
 *   has_license_keys, license_keys [{"license_key"}]; has_license_keys also when all are pending
 *   pending                        keys to come, or null: {"count","one": it is a single one,
 *                                  "more": some have come already}
 *
 * Returns whether there is anything of it.
 */
int mdl_offer_add(mdl_json_t *data, const mdl_order_t *order, const mdl_secret_t *secret,
                  const char *public_url, apr_time_t now, apr_pool_t *p);

#endif
