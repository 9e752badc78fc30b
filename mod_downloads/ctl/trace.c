#include "ctl/trace.h"

#include <stddef.h>
#include <string.h>

#include <apr_strings.h>

#include "core/order/trace.h"

static const mdl_field_t audit_fields[] = {
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_audit_t, created_at), 1, NULL},
    {"shop_id", MDL_FIELD_ID, offsetof(mdl_audit_t, shop_id), 1, NULL},
    {"noun", MDL_FIELD_TEXT, offsetof(mdl_audit_t, noun), 1, NULL},
    {"noun_id", MDL_FIELD_TEXT, offsetof(mdl_audit_t, noun_id), 1, NULL},
    {"action", MDL_FIELD_TEXT, offsetof(mdl_audit_t, action), 1, NULL},
    {"via", MDL_FIELD_ENUM, offsetof(mdl_audit_t, via), 1, mdl_via_names},
    {"user", MDL_FIELD_TEXT, offsetof(mdl_audit_t, user), 1, NULL},
    {"key_id", MDL_FIELD_TEXT, offsetof(mdl_audit_t, key_id), 1, NULL},
    {"detail", MDL_FIELD_TEXT, offsetof(mdl_audit_t, detail), 1, NULL},
    {0},
};

static const mdl_field_t job_fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_job_t, id), 1, NULL},
    {"type", MDL_FIELD_ENUM, offsetof(mdl_job_t, type), 1, mdl_job_type_names},
    {"status", MDL_FIELD_ENUM, offsetof(mdl_job_t, status), 1, mdl_job_status_names},
    {"shop_id", MDL_FIELD_NUMBER, offsetof(mdl_job_t, shop_id), 1, NULL},
    {"asset_id", MDL_FIELD_ID, offsetof(mdl_job_t, asset_id), 1, NULL},
    {"email_id", MDL_FIELD_ID, offsetof(mdl_job_t, email_id), 1, NULL},
    {"attempts", MDL_FIELD_INT, offsetof(mdl_job_t, attempts), 1, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_job_t, created_at), 0, NULL},
    {"started_at", MDL_FIELD_TIME, offsetof(mdl_job_t, started_at), 0, NULL},
    {"finished_at", MDL_FIELD_TIME, offsetof(mdl_job_t, finished_at), 1, NULL},
    {"error_code", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_code), 1, NULL},
    {"error_message", MDL_FIELD_TEXT, offsetof(mdl_job_t, error_message), 1, NULL},
    {0},
};

static const mdl_field_t email_fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_trace_email_t, id), 1, NULL},
    {"storefront_order_id", MDL_FIELD_TEXT, offsetof(mdl_trace_email_t, storefront_order_id), 1,
     NULL},
    {"to", MDL_FIELD_TEXT, offsetof(mdl_trace_email_t, recipient), 1, NULL},
    {"status", MDL_FIELD_TEXT, offsetof(mdl_trace_email_t, fate), 1, NULL},
    {"attempts", MDL_FIELD_INT, offsetof(mdl_trace_email_t, attempts), 1, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_trace_email_t, created_at), 0, NULL},
    {"sent_at", MDL_FIELD_TIME, offsetof(mdl_trace_email_t, sent_at), 1, NULL},
    {"last_error", MDL_FIELD_TEXT, offsetof(mdl_trace_email_t, last_error), 1, NULL},
    {"response", MDL_FIELD_TEXT, offsetof(mdl_trace_email_t, response), 1, NULL},
    {0},
};

static const mdl_field_t download_fields[] = {
    {"opened_at", MDL_FIELD_TIME, offsetof(mdl_trace_download_t, opened_at), 1, NULL},
    {"ended_at", MDL_FIELD_TIME, offsetof(mdl_trace_download_t, ended_at), 1, NULL},
    {"storefront_order_id", MDL_FIELD_TEXT, offsetof(mdl_trace_download_t, storefront_order_id), 1,
     NULL},
    {"assignment_id", MDL_FIELD_NUMBER, offsetof(mdl_trace_download_t, assignment_id), 1, NULL},
    {"asset_id", MDL_FIELD_ID, offsetof(mdl_trace_download_t, asset_id), 1, NULL},
    {"status", MDL_FIELD_TEXT, offsetof(mdl_trace_download_t, status), 1, NULL},
    {"bytes", MDL_FIELD_NUMBER, offsetof(mdl_trace_download_t, bytes), 1, NULL},
    {"size", MDL_FIELD_NUMBER, offsetof(mdl_trace_download_t, size), 1, NULL},
    {0},
};

static const mdl_field_t event_fields[] = {
    {"id", MDL_FIELD_TEXT, offsetof(mdl_trace_event_t, id), 1, NULL},
    {"type", MDL_FIELD_TEXT, offsetof(mdl_trace_event_t, type), 1, NULL},
    {"number", MDL_FIELD_ID, offsetof(mdl_trace_event_t, number), 1, NULL},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_trace_event_t, created_at), 1, NULL},
    {0},
};

static const mdl_field_t delivery_fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_trace_delivery_t, id), 1, NULL},
    {"endpoint_id", MDL_FIELD_NUMBER, offsetof(mdl_trace_delivery_t, endpoint_id), 1, NULL},
    {"event_id", MDL_FIELD_TEXT, offsetof(mdl_trace_delivery_t, event_id), 1, NULL},
    {"status", MDL_FIELD_TEXT, offsetof(mdl_trace_delivery_t, status), 1, NULL},
    {"attempts", MDL_FIELD_INT, offsetof(mdl_trace_delivery_t, attempts), 1, NULL},
    {"response_status", MDL_FIELD_INT, offsetof(mdl_trace_delivery_t, response_status), 1, NULL},
    {"error", MDL_FIELD_TEXT, offsetof(mdl_trace_delivery_t, error), 1, NULL},
    {"updated_at", MDL_FIELD_TIME, offsetof(mdl_trace_delivery_t, updated_at), 1, NULL},
    {0},
};

MDL_EFFECT(mdl_trace, mdl_trace_t *)

/* Prints a table below its name, or adds the list to the document of --json. */
static int section_print(mdl_ctl_t *ctl, mdl_json_t *document, const char *name,
                         const mdl_field_t *fields, const apr_array_header_t *records)
{
    mdl_json_t *list = mdl_json_add_array(document, name);

    for (int i = 0; i < records->nelts; i++) {
        mdl_printer_fill(mdl_json_add_object(list, NULL), fields,
                         APR_ARRAY_IDX(records, i, const void *));
    }
    if (records->nelts > 0 && !mdl_printer_is_json(ctl->output)) {
        mdl_printer_line(ctl->output, "%s:", name);
        mdl_printer_list(ctl->output, fields, records, "");
        mdl_printer_line(ctl->output, "%s", "");
    }
    return records->nelts;
}

/* What to look for in the error log: the request, and its jobs, whose lines have both ids. */
static const char *log_pattern(const mdl_trace_t *trace, apr_pool_t *p)
{
    const char *pattern = trace->request_id;

    for (int i = 0; i < trace->jobs->nelts && i < 10; i++) {
        pattern = apr_pstrcat(p, pattern, "|", APR_ARRAY_IDX(trace->jobs, i, const mdl_job_t *)->id,
                              NULL);
    }
    return pattern;
}

int mdl_ctl_trace(mdl_ctl_t *ctl)
{
    mdl_json_t *document = mdl_json_object(ctl->p);
    mdl_trace_t trace = {.request_id = ctl->arguments[0]};
    int failed = mdl_ctl_read(ctl, mdl_trace_effect, &trace, NULL);
    const char *pattern;
    int found;

    if (failed) {
        return failed;
    }
    mdl_json_add_string(document, "request_id", trace.request_id);
    found = section_print(ctl, document, "audit", audit_fields, trace.audit);
    found += section_print(ctl, document, "jobs", job_fields, trace.jobs);
    found += section_print(ctl, document, "emails", email_fields, trace.emails);
    found += section_print(ctl, document, "downloads", download_fields, trace.downloads);
    found += section_print(ctl, document, "events", event_fields, trace.events);
    found += section_print(ctl, document, "webhook_deliveries", delivery_fields, trace.deliveries);
    if (found == 0) {
        return mdl_ctl_fail(
            ctl, MDL_EXIT_ABSENT, "not_found",
            apr_psprintf(ctl->p,
                         "%s has changed nothing, or what it has caused was removed.  Its lines "
                         "in httpd's error log have its id.",
                         trace.request_id));
    }
    pattern = log_pattern(&trace, ctl->p);
    mdl_printer_line(ctl->output, "in httpd's error log: grep -E '%s'", pattern);
    mdl_json_add_string(document, "log_pattern", pattern);
    mdl_printer_document(ctl->output, document);
    return MDL_EXIT_DONE;
}
