#include "core/order/evidence.h"

#include <apr_strings.h>

#include "base/sha256.h"
#include "core/order/history.h"
#include "core/order/timeline.h"
#include "core/order/visit.h"

#define ASKED (MDL_EVIDENCE_MAX + 1) /* one more shows that there are more */

static mdl_evidence_list_t list_of(const mdl_evidence_t *evidence, apr_array_header_t *rows,
                                   apr_interval_time_t kept)
{
    mdl_evidence_list_t list = {.rows = rows, .has_more = rows->nelts > MDL_EVIDENCE_MAX};

    if (list.has_more) {
        rows->nelts = MDL_EVIDENCE_MAX;
    }
    if (kept != MDL_KEEP_FOREVER && evidence->order->created_at < evidence->made_at - kept) {
        list.gone_before = evidence->made_at - kept;
    }
    return list;
}

apr_status_t mdl_evidence(mdl_db_t *db, apr_pool_t *p, mdl_evidence_t *evidence)
{
    mdl_order_find_t find = {.shop_id = evidence->shop_id,
                             .storefront_order_id = evidence->storefront_order_id,
                             .default_download_limit = evidence->default_download_limit};
    apr_status_t rv = mdl_order_find(db, p, &find);
    mdl_rows_t *events, *emails, *visits, *downloads;
    apr_int64_t id;

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? mdl_order_refuse_unknown(evidence->problem) : rv;
    }
    evidence->made_at = apr_time_now();
    evidence->order = find.order;
    id = find.order->id;
    if ((rv = mdl_timeline_ask_list(db, id, APR_INT64_MAX, ASKED, &events, p)) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &emails, p,
                            MDL_Q(EMAILS_OF_ORDER, .order_id = id, .before = APR_INT64_MAX,
                                  .limit = ASKED))) != APR_SUCCESS ||
        (rv = mdl_order_visit_ask_list(db, id, ASKED, &visits, p)) != APR_SUCCESS ||
        (rv = mdl_session_ask_list(db, id, NULL, ASKED, &downloads, p)) != APR_SUCCESS) {
        return rv;
    }
    evidence->events = list_of(evidence, mdl_timeline_read_all(events, p), MDL_KEEP_FOREVER);
    evidence->emails = list_of(evidence, mdl_email_views(emails, p), evidence->keep->emails);
    evidence->visits = list_of(evidence, mdl_order_visit_read_list(visits, p),
                               evidence->keep->downloads);
    evidence->downloads = list_of(evidence, mdl_session_read_list(downloads, p),
                                  evidence->keep->downloads);
    return APR_SUCCESS;
}

const char *mdl_evidence_sha256(const mdl_session_view_t *download, apr_pool_t *p)
{
    return download->asset_id != 0 && download->etag[0] == '"'
               ? apr_pstrndup(p, download->etag + 1, 2 * MDL_SHA256_LENGTH)
               : NULL;
}
