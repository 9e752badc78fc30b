/*
 * Deliveries to webhook endpoints: a delivery sends an event to an endpoint.  It is made when the
 * event gets its number, and retried with growing delays for three days.  It carries the event's
 * id, by which a receiver recognizes repetitions.
 */
#ifndef MDL_CORE_SHOP_WEBHOOK_DELIVERY_H
#define MDL_CORE_SHOP_WEBHOOK_DELIVERY_H

#include "core/shop/webhook.h"

#define MDL_WEBHOOK_ROUND 8 /* deliveries sent to an endpoint at once */

typedef enum {
    MDL_DELIVERY_PENDING,
    MDL_DELIVERY_SUCCEEDED,
    MDL_DELIVERY_FAILED
} mdl_delivery_status_t;
extern const char *const mdl_delivery_status_names[];

typedef struct {
    apr_int64_t id;
    apr_int64_t event_id;
    const char *type; /* of the event; NULL once it is pruned */
    mdl_delivery_status_t status;
    int attempts;
    apr_time_t due_at;         /* of the next attempt; 0: none */
    int response_status;       /* of the last attempt; 0: no response */
    const char *response_body; /* its beginning, or NULL */
    const char *error;         /* why the last attempt failed, or NULL */
    apr_time_t created_at;
    apr_time_t updated_at; /* of the last attempt, if any */
} mdl_webhook_delivery_t;

/** Queues newly numbered events (apr_int64_t) for the endpoints that want them; *queued: whether
    any does. */
apr_status_t mdl_webhook_queue(mdl_db_t *db, const apr_array_header_t *event_ids, int *queued,
                               apr_pool_t *p);

/** Effect: reads a page (mdl_webhook_delivery_t) of an endpoint's deliveries.  Refused with 404
    webhook_endpoint_not_found. */
typedef struct {
    mdl_list_page_t page;
    mdl_entity_ref_t ref; /* of the endpoint */
} mdl_webhook_delivery_page_t;
apr_status_t mdl_webhook_delivery_page(mdl_db_t *db, apr_pool_t *p,
                                       mdl_webhook_delivery_page_t *list);

/** Effect: starts a delivery over, with the same id.  Refused: 404 webhook_endpoint_not_found and
    webhook_delivery_not_found, 409 webhook_endpoint_inactive. */
typedef struct {
    mdl_entity_ref_t ref; /* of the endpoint */
    apr_int64_t id;
    mdl_webhook_delivery_t *delivery; /* out */
} mdl_webhook_resend_t;
apr_status_t mdl_webhook_resend(mdl_db_t *db, apr_pool_t *p, mdl_webhook_resend_t *resend);

/* --- for the endpoint's job --- */

/** A delivery to send. */
typedef struct {
    apr_int64_t id; /* of the delivery */
    int attempts;   /* before this one */
    const char *event_id;
    const char *body;
} mdl_webhook_message_t;

/** What to send to an endpoint now. */
typedef struct {
    apr_int64_t endpoint_id; /* 0: it no longer exists */
    apr_int64_t shop_id;
    const char *url;
    const char *secrets[2]; /* MDL_WEBHOOK_SECRET_SIZE bytes each; NULL: none, or can't be opened */
    apr_array_header_t *messages; /* mdl_webhook_message_t */
} mdl_webhook_round_t;

/** Reads what to send to the endpoint of a job now, MDL_WEBHOOK_ROUND deliveries at most. */
apr_status_t mdl_webhook_round(mdl_db_t *db, const mdl_secret_t *secret, const char *job_id,
                               mdl_webhook_round_t *round, apr_pool_t *p);

/** The header lines (const char *) of an attempt now: webhook-id, webhook-timestamp, and
    webhook-signature with each of the secrets. */
apr_array_header_t *mdl_webhook_headers(const mdl_webhook_round_t *round,
                                        const mdl_webhook_message_t *message, apr_pool_t *p);

/** The first bytes of a response's body, as valid text for the database; NULL: none. */
const char *mdl_webhook_excerpt(const char *body, apr_size_t length, apr_pool_t *p);

/** The result of an attempt. */
typedef struct {
    const mdl_webhook_message_t *message;
    int succeeded;
    int response_status;
    const char *response_body; /* or NULL */
    const char *error;         /* or NULL */
} mdl_webhook_result_t;

/** Records the results (mdl_webhook_result_t) of a round.  Disables an endpoint that has failed for
    five days, or whose last answer was 410, with an event and an email to the staff; *disabled:
    whether it did. */
apr_status_t mdl_webhook_settle(mdl_db_t *db, const mdl_webhook_round_t *round,
                                const apr_array_header_t *results, int *disabled, apr_pool_t *p);

/** Sets when the queued job of an endpoint runs next: at *due_at or, if 0, when it is woken. */
apr_status_t mdl_webhook_schedule(mdl_db_t *db, apr_int64_t endpoint_id, const char *job_id,
                                  apr_time_t *due_at, apr_pool_t *p);

/** Effect for a clock that was set back: deliveries made in the future wait from now on. */
apr_status_t mdl_webhook_set_back(mdl_db_t *db, apr_pool_t *p);

#endif
