#include "core/order/quantity.h"

#include "base/text/json.h"
#include "core/catalog/license.h"
#include "core/ids.h"
#include "core/order/timeline.h"

static apr_status_t quantity_add_entry(mdl_db_t *db, const mdl_quantity_t *change, apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_timeline_entry_t entry = {
        .action = "quantity_changed",
        .key_id = change->key_id,
        .user = change->user,
        .reason = change->reason,
        .assignment_ids = mdl_ids_json(mdl_ids_of(change->assignment_id, p), p)};

    mdl_json_add_int(details, "quantity_before", change->before);
    mdl_json_add_int(details, "quantity", change->quantity);
    entry.details = mdl_json_text(details, NULL, p);
    return mdl_timeline_add(db, change->order_id, &entry, p);
}

apr_status_t mdl_quantity_set(mdl_db_t *db, const mdl_quantity_t *change, apr_pool_t *p)
{
    apr_int64_t given;
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(ASSIGNMENT_SET_QUANTITY, .quantity = change->quantity, .id = change->assignment_id));

    if (rv != APR_SUCCESS ||
        (rv = mdl_license_set_quantity(db, change->assignment_id, change->quantity, change->key_id,
                                       p)) != APR_SUCCESS ||
        (rv = mdl_license_fill_order(db, change->order_id, &given, p)) != APR_SUCCESS) {
        return rv;
    }
    return quantity_add_entry(db, change, p);
}
