/*
 * The interface to storefront platforms: looking up an order's customer and risk.  Each platform
 * has a file in this room; Shopify is the only one so far.
 */
#ifndef MDL_PLATFORM_PLATFORM_H
#define MDL_PLATFORM_PLATFORM_H

#include "base/http/post.h"
#include "platform/risk.h"

/** A look-up.  Ids are decimal digits. */
typedef struct {
    const char *url;         /* the storefront's API, without a trailing slash */
    const char *token;       /* the access token */
    const char *customer_id; /* NULL: a guest, whom only the order knows */
    const char *order_id;
    int with_order; /* also look up the order's risk and IP address */
} mdl_platform_question_t;

/** The result of a look-up; NULL for unknown or unusable values. */
typedef struct {
    const char *email; /* valid for sending */
    const char *first_name;
    const char *last_name;
    const char *locale;
    const char *client_ip; /* in mdl_address_text's form */
    int rated;             /* the storefront has rated the order's risk */
    mdl_risk_t risk;
} mdl_platform_found_t;

typedef enum {
    MDL_PLATFORM_ANSWERED,
    MDL_PLATFORM_LATER, /* ask again later */
    MDL_PLATFORM_REFUSED
} mdl_platform_outcome_t;

typedef struct {
    mdl_platform_outcome_t outcome;
    const char *code;                /* NULL when ANSWERED, like the message */
    const char *message;             /* a sentence that quotes nothing of the response */
    apr_interval_time_t retry_after; /* 0: not given */
    mdl_platform_found_t found;      /* may be set in part if not ANSWERED */
} mdl_platform_answer_t;

typedef struct {
    /** Builds the request, in p. */
    void (*ask)(mdl_http_post_request_t *request, const mdl_platform_question_t *question,
                apr_pool_t *p);
    /** Parses the untrusted response; the answer is in p. */
    void (*read)(mdl_platform_answer_t *answer, const mdl_http_response_t *http,
                 const mdl_platform_question_t *question, apr_pool_t *p);
} mdl_platform_t;

extern const mdl_platform_t mdl_shopify; /* its Admin GraphQL API */

#endif
