/*
 * An offer as JSON for the templates of the page and the email; docs/templates.md has the members.
 */
#ifndef MDL_CORE_ORDER_OFFER_JSON_H
#define MDL_CORE_ORDER_OFFER_JSON_H

#include "base/crypto.h"
#include "base/text/json.h"
#include "base/text/template.h"
#include "core/order/offer.h"

#define MDL_OFFER_FEW 3 /* downloads left that are worth a word */

/**
 * Adds to data:
 *
 *   expires                        the date when all access ends; null if it never ends, or ends at
 *                                  different times: then each file and link has its own date
 *   ordered                        when the order came
 *   limited                        whether any file has a limit of downloads
 *   has_files                      whether there are files
 *   complete                       something is offered, and no file is being prepared or failed
 *   in_preparation                 files not ready yet, or null: {"count", "all": no other files}
 *   files_truncated                whether the order has more files than are listed
 *   has_links, links               [{"title","product","url","host","expires"}]; url is ours and
 *                                  redirects, host is the target's
 *   links_truncated                whether the order has more links than are listed
 *   has_license_keys, license_keys [{"license_key"}]; has_license_keys also when all are pending
 *   pending                        keys to come, and keys that the secret does not open, or null:
 *                                  {"count", "more": license_keys has some}
 *
 * Returns the list "products", and after it "files".  A product has what it gives itself, by the
 * same names: "title" or "contents" ({"title": of its first file or link, "more"}), "notes"
 * ([{"lines"}]), "license_keys" and "pending", "archives", "links", "expires" (only if not
 * everything in the order ends at the same time), "has_files", "single", "several", "count" (of
 * files), "folded" (its files are behind its archive, because the order has many), "more"
 * ({"count"} of "more_files", or null), and the lists "files" (all), "first_files" and
 * "more_files", whose elements have "titled" (their title is not what the product is called), and
 * "expires" only if they end at different times.
 */
const mdl_template_list_t *mdl_offer_json(mdl_json_t *data, const mdl_offer_t *offer,
                                          const mdl_order_t *order, const mdl_secret_t *secret,
                                          const char *public_url, apr_pool_t *p);

/** The list "files":
   [{"id","title","product","filename","size","sha256","limit","expires","ready","preparing",
    "failed","running","exhausted"}]; limit is {"left","total","few"}.  The offer must live until it
   is read. */
mdl_template_list_t mdl_offer_json_files(const mdl_offer_t *offer);

/**
 * Adds "archives" to data: [{"id","count","size","ready","running","exhausted","contents"}];
 * contents is null if the archive has every file, else {"title": of its first file, "more": the
 * number of others}.
 */
void mdl_offer_json_archives(mdl_json_t *data, const mdl_offer_t *offer);

#endif
