/*
 * An offer as the templates of page and email show it; docs/templates.md has the members.
 */
#ifndef MDL_CORE_ORDER_OFFER_JSON_H
#define MDL_CORE_ORDER_OFFER_JSON_H

#include "base/crypto.h"
#include "base/text/json.h"
#include "base/text/template.h"
#include "core/order/offer.h"

/**
 * Adds to data:
 *
 *   expires                        the date when everything ends, or null where nothing does or
 *                                  where it ends at different times; then files and links have
 *                                  their own
 *   has_files                      whether there are files
 *   complete                       something is offered, no file of it is being prepared, and none
 *                                  has failed
 *   in_preparation                 files to come, or null: {"count","one": it is a single one,
 *                                  "all": there are no others}
 *   has_links, links               [{"title","url","host","expires"}]; url is ours and leads there,
 *                                  host is whose page it is
 *   has_license_keys, license_keys [{"license_key"}]; has_license_keys also when all are pending
 *   pending                        keys to come, among them those that the secret does not open, or
 * null: {"count","one": it is a single one, "more": some have come already}
 */
void mdl_offer_json(mdl_json_t *data, const mdl_offer_t *offer, const mdl_order_t *order,
                    const mdl_secret_t *secret, const char *public_url, apr_pool_t *p);

/** The list "files":
   [{"id","title","filename","size","sha256","limit","expires","ready","preparing",
    "failed","running","exhausted"}].  Read while the offer lives. */
mdl_template_list_t mdl_offer_json_files(const mdl_offer_t *offer);

/**
 * Adds "archives" to data: [{"id","count","size","ready","running","exhausted","contents"}];
 * contents is null where the archive holds every file, else {"title": of its first file, "more":
 * how many others, "one": it is a single other}.
 */
void mdl_offer_json_archives(mdl_json_t *data, const mdl_offer_t *offer);

#endif
