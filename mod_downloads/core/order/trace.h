/*
 * What one request has caused, by its id: entries of the audit, jobs, emails, downloads, events and
 * their deliveries.
 *
 * The audit has an index of requests.  The others have none, which each change of them
 * would pay for: jobs and downloads that were made within MDL_TRACE_WINDOW after the request are
 * looked through, MDL_TRACE_LOOKED at most, and as many events and deliveries after it.  The time
 * is in the request's id.  Emails are those of the jobs and of the orders in the audit.
 */
#ifndef MDL_CORE_ORDER_TRACE_H
#define MDL_CORE_ORDER_TRACE_H

#include <apr_tables.h>

#include "core/audit.h"
#include "core/job.h"

#define MDL_TRACE_WINDOW apr_time_from_sec(600)
#define MDL_TRACE_LOOKED 100000
#define MDL_TRACE_FOUND  1000 /* entries of the audit, and emails of an order */

typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    const char *storefront_order_id;
    const char *recipient; /* or NULL, like the next two */
    const char *last_error;
    const char *response; /* of the mail server */
    const char *fate;     /* a name of mdl_email_status_names */
    int attempts;
    apr_time_t created_at;
    apr_time_t sent_at; /* 0: never */
} mdl_trace_email_t;

typedef struct {
    apr_int64_t shop_id;
    const char *storefront_order_id;
    apr_int64_t assignment_id;
    apr_int64_t asset_id; /* 0: the archive */
    const char *status;   /* open, counted or returned */
    apr_int64_t bytes;
    apr_int64_t size;
    apr_time_t opened_at;
    apr_time_t ended_at; /* 0: not yet */
} mdl_trace_download_t;

typedef struct {
    const char *id; /* as in the API, like event_id below */
    const char *type;
    apr_int64_t number; /* 0: none yet */
    apr_time_t created_at;
} mdl_trace_event_t;

typedef struct {
    apr_int64_t id;
    apr_int64_t endpoint_id;
    const char *event_id;
    const char *status; /* a name of mdl_delivery_status_names */
    int attempts;
    int response_status; /* 0: none */
    const char *error;   /* or NULL */
    apr_time_t updated_at;
} mdl_trace_delivery_t;

/** Effect: finds what a request has caused: oldest first, but the audit. */
typedef struct {
    const char *request_id;
    apr_array_header_t *audit;      /* out: mdl_audit_t * */
    apr_array_header_t *jobs;       /* out: mdl_job_t *, with some of their members */
    apr_array_header_t *emails;     /* out: mdl_trace_email_t * */
    apr_array_header_t *downloads;  /* out: mdl_trace_download_t * */
    apr_array_header_t *events;     /* out: mdl_trace_event_t * */
    apr_array_header_t *deliveries; /* out: mdl_trace_delivery_t *, to webhook endpoints */
} mdl_trace_t;
apr_status_t mdl_trace(mdl_db_t *db, apr_pool_t *p, mdl_trace_t *trace);

#endif
