/*
 * An order and its assignments as the contract shows them (section 6).
 */
#ifndef MDL_API_ORDER_VIEW_H
#define MDL_API_ORDER_VIEW_H

#include "api/request.h"
#include "core/download/session.h"
#include "core/order/timeline.h"
#include "core/order/order.h"

/** Adds an order's members, with its events and downloads if they were read.  A summary has
    assignment_count in place of assignments, and no signals. */
void mdl_order_write(mdl_json_t *to, mdl_request_t *request, const mdl_order_t *order);

/** Adds an assignment's members. */
void mdl_assignment_write(mdl_json_t *to, const mdl_request_t *request,
                          const mdl_assignment_t *assignment);

/** Add the members of a file, and "access" and "customer" of an order. */
void mdl_order_write_file(mdl_json_t *to, const mdl_order_file_t *file);
void mdl_order_write_access(mdl_json_t *to, const mdl_order_t *order);
void mdl_order_write_customer(mdl_json_t *to, const mdl_order_t *order);

/** Add the members of an email's state, of an entry of the audit trail, and of a download. */
void mdl_order_write_email(mdl_json_t *to, const mdl_email_state_t *email);
void mdl_order_write_entry(mdl_json_t *to, const mdl_timeline_entry_t *entry, apr_pool_t *p);
void mdl_order_write_download(mdl_json_t *to, const mdl_session_view_t *session);

#endif
