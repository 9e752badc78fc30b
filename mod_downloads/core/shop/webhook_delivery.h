/*
 * What is sent to webhook endpoints: a delivery is an event on its way to one of them.  It is made
 * when the event gets its number, tried again after growing times for three days, and keeps the id
 * of its event, by which a receiver knows what it has already.
 */
#ifndef MDL_CORE_SHOP_WEBHOOK_DELIVERY_H
#define MDL_CORE_SHOP_WEBHOOK_DELIVERY_H

#include "core/shop/webhook.h"

#define MDL_WEBHOOK_ROUND 8 /* deliveries to an endpoint at once */

typedef enum {
    MDL_DELIVERY_PENDING,
    MDL_DELIVERY_SUCCEEDED,
    MDL_DELIVERY_FAILED
} mdl_delivery_status_t;
extern const char *const mdl_delivery_status_names[];

typedef struct {
    apr_int64_t id;
    apr_int64_t event_id;
    const char *type; /* of the event; NULL once that is gone */
    mdl_delivery_status_t status;
    int attempts;
    apr_time_t due_at;         /* of the next attempt; 0: there is none */
    int response_status;       /* of the last attempt; 0: there was no response */
    const char *response_body; /* its beginning, or NULL */
    const char *error;         /* why the last attempt was no success, or NULL */
    apr_time_t created_at;
    apr_time_t updated_at; /* of the last attempt, if there is one */
} mdl_webhook_delivery_t;

/** Queues events (apr_int64_t) for the endpoints that want them, when they have got their numbers;
 *queued tells whether there is one. */
apr_status_t mdl_webhook_queue(mdl_db_t *db, const apr_array_header_t *event_ids, int *queued,
                               apr_pool_t *p);

/** Effect that reads a page of the deliveries (mdl_webhook_delivery_t) to an endpoint.  Refused:
   404 webhook_endpoint_not_found. */
typedef struct {
    mdl_list_page_t page;
    mdl_entity_ref_t ref; /* of the endpoint */
} mdl_webhook_delivery_page_t;
apr_status_t mdl_webhook_delivery_page(mdl_db_t *db, apr_pool_t *p,
                                       mdl_webhook_delivery_page_t *list);

/** Effect: has a delivery begin anew, with the same id.  Refused: 404 webhook_endpoint_not_found
   and webhook_delivery_not_found, 409 webhook_endpoint_inactive. */
typedef struct {
    mdl_entity_ref_t ref; /* of the endpoint */
    apr_int64_t id;
    mdl_webhook_delivery_t *delivery; /* out */
} mdl_webhook_resend_t;
apr_status_t mdl_webhook_resend(mdl_db_t *db, apr_pool_t *p, mdl_webhook_resend_t *resend);

/* --- for the endpoint's job --- */

/** What is to be sent. */
typedef struct {
    apr_int64_t id; /* of the delivery */
    int attempts;   /* before */
    const char *event_id;
    const char *body;
} mdl_webhook_message_t;

/** What an endpoint is to be sent now. */
typedef struct {
    apr_int64_t endpoint_id; /* 0: there is none any more */
    apr_int64_t shop_id;
    const char *url;
    const char *secrets[2]; /* MDL_WEBHOOK_SECRET_SIZE bytes each; NULL: none, or it can't be opened
                             */
    apr_array_header_t *messages; /* mdl_webhook_message_t */
} mdl_webhook_round_t;

/** Reads what the endpoint of a job is to be sent now, MDL_WEBHOOK_ROUND at most. */
apr_status_t mdl_webhook_round(mdl_db_t *db, const mdl_secret_t *secret, const char *job_id,
                               mdl_webhook_round_t *round, apr_pool_t *p);

/** The header lines (const char *) of an attempt now: webhook-id, webhook-timestamp, and
    webhook-signature by each of the secrets. */
apr_array_header_t *mdl_webhook_headers(const mdl_webhook_round_t *round,
                                        const mdl_webhook_message_t *message, apr_pool_t *p);

/** The first bytes of a response's body, as text that the database takes; NULL: it has none. */
const char *mdl_webhook_excerpt(const char *body, apr_size_t length, apr_pool_t *p);

/** What came of an attempt. */
typedef struct {
    const mdl_webhook_message_t *message;
    int succeeded;
    int response_status;
    const char *response_body; /* or NULL */
    const char *error;         /* or NULL */
} mdl_webhook_result_t;

/** Writes down what came of a round (mdl_webhook_result_t); an endpoint that has failed for five
    days, or answered 410 at last, is switched off, of which an event and an email to the staff
   tell, and so does *disabled.
 */
apr_status_t mdl_webhook_settle(mdl_db_t *db, const mdl_webhook_round_t *round,
                                const apr_array_header_t *results, int *disabled, apr_pool_t *p);

/** Sets when the job of an endpoint, which is queued, looks again; *due_at gets the time, 0: when
    it is woken. */
apr_status_t mdl_webhook_schedule(mdl_db_t *db, apr_int64_t endpoint_id, const char *job_id,
                                  apr_time_t *due_at, apr_pool_t *p);

/** Effect, for when the clock was set back: deliveries of a time that has not come wait from now
 * on.
 */
apr_status_t mdl_webhook_set_back(mdl_db_t *db, apr_pool_t *p);

#endif
