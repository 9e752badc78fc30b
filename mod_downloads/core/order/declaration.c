#include "core/order/declaration.h"

#include <apr_time.h>

#include "core/order/email.h"
#include "core/order/timeline.h"

apr_status_t mdl_order_declare(mdl_db_t *db, apr_pool_t *p, mdl_declaration_t *declaration)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_timeline_entry_t entry = {.action = "declared"};
    mdl_email_new_t email = {.host = declaration->mail_host, .at_once = 1};
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(ORDER_DECLARE, .now = apr_time_now(), .page_id = declaration->page_id));

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    email.shop_id = MDL_INT(row, order_declare, shop_id);
    email.order_id = MDL_INT(row, order_declare, id);
    email.to = MDL_TEXT(row, order_declare, address);
    mdl_json_add_string(details, "text", declaration->text);
    mdl_json_add_string(details, "language", declaration->language);
    entry.details = mdl_json_text(details, NULL, p);
    rv = mdl_timeline_add(db, email.order_id, &entry, p);
    return rv == APR_SUCCESS && email.to != NULL ? mdl_email_queue(db, &email, p) : rv;
}
