#include "core/order/trace.h"

#include <string.h>

#include "base/ulid.h"
#include "core/identifier.h"
#include "core/shop/event.h"

/* Clocks of nodes differ, and an id is made before the request is answered. */
#define BEFORE apr_time_from_sec(5)

static apr_status_t trace_audit(mdl_db_t *db, mdl_trace_t *trace, apr_pool_t *p)
{
    mdl_audit_list_t list = {
        .page = {.limit = MDL_TRACE_FOUND}, .request_id = trace->request_id, .for_operator = 1};
    apr_status_t rv = mdl_audit_list(db, p, &list);

    trace->audit = list.page.found;
    return rv;
}

static apr_status_t trace_jobs(mdl_db_t *db, mdl_trace_t *trace, apr_time_t since,
                               apr_array_header_t *email_ids, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(TRACE_JOBS, .from = mdl_ulid_first("job_", since, p),
              .to = mdl_ulid_first("job_", since + BEFORE + MDL_TRACE_WINDOW, p),
              .limit = MDL_TRACE_LOOKED, .request_id = trace->request_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_job_t *job = apr_pcalloc(p, sizeof *job);

        MDL_READ(rows, trace_jobs, job, id, shop_id, asset_id, order_id, email_id, attempts,
                 error_code, error_message, created_at, started_at, finished_at);
        job->type = MDL_ENUM(rows, trace_jobs, type, mdl_job_type_names);
        job->status = MDL_ENUM(rows, trace_jobs, status, mdl_job_status_names);
        APR_ARRAY_PUSH(trace->jobs, mdl_job_t *) = job;
        if (job->email_id != 0) {
            APR_ARRAY_PUSH(email_ids, apr_int64_t) = job->email_id;
        }
    }
    return rv;
}

/* Emails that wait have no job. */
static apr_status_t trace_orders(mdl_db_t *db, const mdl_trace_t *trace,
                                 apr_array_header_t *email_ids, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;
    mdl_rows_t *rows;

    for (int i = 0; rv == APR_SUCCESS && i < trace->audit->nelts; i++) {
        const mdl_audit_t *entry = APR_ARRAY_IDX(trace->audit, i, const mdl_audit_t *);

        if (strcmp(entry->noun, "order") != 0) {
            continue;
        }
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(TRACE_EMAIL_IDS, .shop_id = entry->shop_id,
                                 .storefront_order_id = entry->noun_id,
                                 .request_id = trace->request_id, .limit = MDL_TRACE_FOUND));
        while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
            APR_ARRAY_PUSH(email_ids, apr_int64_t) = mdl_rows_int(rows, 0);
        }
    }
    return rv;
}

static apr_status_t trace_emails(mdl_db_t *db, mdl_trace_t *trace, const apr_array_header_t *ids,
                                 apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(TRACE_EMAILS, .ids = ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_trace_email_t *email = apr_pcalloc(p, sizeof *email);

        MDL_READ(rows, trace_emails, email, id, shop_id, storefront_order_id, recipient, fate,
                 attempts, last_error, response, created_at, sent_at);
        APR_ARRAY_PUSH(trace->emails, mdl_trace_email_t *) = email;
    }
    return rv;
}

static apr_status_t trace_downloads(mdl_db_t *db, mdl_trace_t *trace, apr_time_t since,
                                    apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(TRACE_DOWNLOADS, .since = since, .until = since + BEFORE + MDL_TRACE_WINDOW,
              .limit = MDL_TRACE_LOOKED, .request_id = trace->request_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_trace_download_t *download = apr_pcalloc(p, sizeof *download);

        MDL_READ(rows, trace_downloads, download, shop_id, storefront_order_id, assignment_id,
                 asset_id, status, bytes, size, opened_at, ended_at);
        APR_ARRAY_PUSH(trace->downloads, mdl_trace_download_t *) = download;
    }
    return rv;
}

/* The first id of a time, by halving, because there is no index of times. */
static apr_status_t id_at(mdl_db_t *db, apr_time_t time, int of_events, apr_int64_t *id,
                          apr_pool_t *p)
{
    apr_int64_t low = 1, high = MDL_IDENTIFIER_MAX;
    apr_pool_t *scratch;
    apr_status_t rv = APR_SUCCESS;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_trace");
    while (low < high && (rv == APR_SUCCESS || rv == APR_ENOENT)) {
        apr_int64_t middle = low + (high - low) / 2;
        mdl_rows_t *row;

        apr_pool_clear(scratch);
        rv = of_events ? mdl_db_select_one(db, &row, scratch, MDL_Q(TRACE_EVENT_FROM, middle))
                       : mdl_db_select_one(db, &row, scratch, MDL_Q(TRACE_DELIVERY_FROM, middle));
        if (rv == APR_SUCCESS && MDL_INT(row, trace_event_from, created_at) < time) {
            low = MDL_INT(row, trace_event_from, id) + 1;
        } else {
            high = middle;
        }
    }
    apr_pool_destroy(scratch);
    *id = low;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t trace_events(mdl_db_t *db, mdl_trace_t *trace, apr_time_t since,
                                 apr_array_header_t *ids, apr_pool_t *p)
{
    apr_int64_t id;
    mdl_rows_t *rows;
    apr_status_t rv = id_at(db, since, 1, &id, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(TRACE_EVENTS, .from = id, .limit = MDL_TRACE_LOOKED,
                                 .request_id = trace->request_id));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_trace_event_t *event = apr_pcalloc(p, sizeof *event);

        MDL_READ(rows, trace_events, event, type, number, created_at);
        APR_ARRAY_PUSH(trace->events, mdl_trace_event_t *) = event;
        APR_ARRAY_PUSH(ids, apr_int64_t) = MDL_INT(rows, trace_events, id);
        event->id = mdl_event_id_text(MDL_INT(rows, trace_events, id), p);
    }
    return rv;
}

static apr_status_t trace_deliveries(mdl_db_t *db, mdl_trace_t *trace, apr_time_t since,
                                     apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    apr_int64_t from;
    mdl_rows_t *rows;
    apr_status_t rv = trace_events(db, trace, since, ids, p);

    if (rv != APR_SUCCESS || ids->nelts == 0 ||
        (rv = id_at(db, since, 0, &from, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select(
        db, &rows, p, MDL_Q(TRACE_DELIVERIES, .from = from, .limit = MDL_TRACE_LOOKED, .ids = ids));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_trace_delivery_t *delivery = apr_pcalloc(p, sizeof *delivery);

        MDL_READ(rows, trace_deliveries, delivery, id, endpoint_id, status, attempts,
                 response_status, error, updated_at);
        delivery->event_id = mdl_event_id_text(MDL_INT(rows, trace_deliveries, event_id), p);
        APR_ARRAY_PUSH(trace->deliveries, mdl_trace_delivery_t *) = delivery;
    }
    return rv;
}

/* The time in a request's id: a ULID, or what mod_unique_id has made, which begins with the seconds
   since 1970 in 32 bits, six bits a character.  0 if it is neither. */
static apr_time_t request_time(const char *id)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    apr_time_t bits = 0;

    if (mdl_ulid_valid("req_", id) || strncmp(id, "req_", 4) != 0 || strlen(id) < 4 + 24) {
        return mdl_ulid_time("req_", id);
    }
    for (int i = 4; i < 4 + 6; i++) {
        const char *digit = strchr(digits, id[i]);

        bits = bits << 6 | (digit != NULL ? digit - digits : 0);
    }
    return apr_time_from_sec(bits >> 4);
}

apr_status_t mdl_trace(mdl_db_t *db, apr_pool_t *p, mdl_trace_t *trace)
{
    apr_array_header_t *email_ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    apr_time_t at = request_time(trace->request_id);
    apr_status_t rv = trace_audit(db, trace, p);

    trace->jobs = apr_array_make(p, 4, sizeof(mdl_job_t *));
    trace->emails = apr_array_make(p, 4, sizeof(mdl_trace_email_t *));
    trace->events = apr_array_make(p, 4, sizeof(mdl_trace_event_t *));
    trace->deliveries = apr_array_make(p, 4, sizeof(mdl_trace_delivery_t *));
    trace->downloads = apr_array_make(p, 4, sizeof(mdl_trace_download_t *));
    if (rv != APR_SUCCESS || at == 0) {
        return rv;
    }
    if ((rv = trace_jobs(db, trace, at - BEFORE, email_ids, p)) != APR_SUCCESS ||
        (rv = trace_orders(db, trace, email_ids, p)) != APR_SUCCESS ||
        (rv = trace_emails(db, trace, email_ids, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = trace_downloads(db, trace, at - BEFORE, p);
    return rv == APR_SUCCESS ? trace_deliveries(db, trace, at - BEFORE, p) : rv;
}
