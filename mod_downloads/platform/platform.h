/*
 * A platform whose storefronts are asked for what they know of an order.  Each has a file in this
 * room; Shopify's shape is the one that there is.
 */
#ifndef MDL_PLATFORM_PLATFORM_H
#define MDL_PLATFORM_PLATFORM_H

#include "base/http/post.h"
#include "platform/risk.h"

/** What to ask a storefront for.  Ids are digits. */
typedef struct {
    const char *url;   /* the base of its API, without a slash at its end */
    const char *token; /* its access token */
    const char *customer_id;
    const char *order_id;
    int with_order; /* the order's risk and IP address are wanted, too */
} mdl_platform_question_t;

/** What a storefront knows; NULL for what it does not, and for what can't be used. */
typedef struct {
    const char *email; /* one that can be written to */
    const char *first_name;
    const char *last_name;
    const char *locale;
    const char *client_ip; /* as mdl_address_text writes it */
    int rated;             /* whether it knows the order's risk */
    mdl_risk_t risk;
} mdl_platform_found_t;

typedef enum {
    MDL_PLATFORM_ANSWERED,
    MDL_PLATFORM_LATER, /* to be asked again */
    MDL_PLATFORM_REFUSED
} mdl_platform_outcome_t;

typedef struct {
    mdl_platform_outcome_t outcome;
    const char *code;                /* NULL when ANSWERED, like the message */
    const char *message;             /* a sentence that contains nothing of the response */
    apr_interval_time_t retry_after; /* 0: not given */
    mdl_platform_found_t found;      /* in part also when it was not ANSWERED */
} mdl_platform_answer_t;

typedef struct {
    /** Makes the request, in p. */
    void (*ask)(mdl_http_post_request_t *request, const mdl_platform_question_t *question,
                apr_pool_t *p);
    /** Reads the response, none of which is trusted; the answer is in p. */
    void (*read)(mdl_platform_answer_t *answer, const mdl_http_response_t *http, int with_order,
                 apr_pool_t *p);
} mdl_platform_t;

extern const mdl_platform_t mdl_shopify; /* its Admin GraphQL API */

#endif
