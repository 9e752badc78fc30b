#include "settings/pages.h"

#include "base/text/present.h"
#include "core/order/email_log.h"
#include "core/order/search.h"
#include "settings/filter.h"
#include "settings/frame.h"

#define LINES 50

MDL_EFFECT(mdl_email_log, mdl_email_log_t *)

/* What can have become of an email that there is. */
static const mdl_filter_field_t fields[] = {
    {"q", .max = MDL_SEARCH_TEXT_MAX},
    {"fate", .names = mdl_email_status_names + MDL_EMAIL_QUEUED},
    {0},
};

/* Whether the email did not reach its customer, and another address may help. */
static int email_is_lost(mdl_email_status_t status)
{
    return status == MDL_EMAIL_FAILED || status == MDL_EMAIL_BOUNCED ||
           status == MDL_EMAIL_NO_RECIPIENT;
}

static void emails_add_line(mdl_json_t *to, const mdl_email_line_t *line)
{
    const mdl_email_state_t *state = &line->state;

    mdl_frame_add_choice(mdl_json_add_object(to, "became"), mdl_email_status_names,
                         (int)state->status);
    mdl_json_add_bool(to, "lost", email_is_lost(state->status));
    mdl_json_add_bool(to, "sendable", state->sent_at != 0 || state->status == MDL_EMAIL_FAILED);
    mdl_json_add_bool(to, "earlier", line->earlier);
    mdl_json_add_string(to, "to", state->to);
    mdl_json_add_string(to, "last_error",
                        state->status != MDL_EMAIL_SENT ? state->last_error : NULL);
    mdl_json_add_string(to, "order_id", line->storefront_order_id);
    mdl_json_add_string(to, "order_name", line->order_name);
    mdl_present_date(to, "at", state->sent_at != 0 ? state->sent_at : line->created_at);
}

/* All parameters of the query are optional. */
static int emails_show(mdl_visit_t *visit)
{
    mdl_email_log_t log = {.page = {.shop_id = visit->shop->id,
                                    .before = mdl_visit_before(visit),
                                    .limit = LINES + 1}};
    const mdl_email_line_t *const *lines;
    mdl_filter_t filter;
    mdl_json_t *data, *emails;
    apr_status_t rv;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    log.text = mdl_filter_value(&filter, "q");
    log.fate = mdl_filter_value(&filter, "fate");
    if ((rv = mdl_visit_read(visit, mdl_email_log_effect, &log)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    lines = (const void *)log.page.found->elts;
    mdl_json_add_bool(data, "has_emails", log.page.found->nelts > 0);
    if (log.page.found->nelts > LINES) {
        mdl_json_add_int(data, "before", lines[LINES - 1]->id);
    }
    emails = mdl_json_add_array(data, "emails");
    for (int i = 0; i < log.page.found->nelts && i < LINES; i++) {
        emails_add_line(mdl_json_add_object(emails, NULL), lines[i]);
    }
    return mdl_frame_send(visit, HTTP_OK, "emails.html", data, NULL);
}

const mdl_page_t mdl_email_pages[] = {
    {"{}/emails", .sees = MDL_ROLE_READ_ONLY, .get = emails_show},
    {0},
};
