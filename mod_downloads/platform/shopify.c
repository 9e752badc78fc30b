/*
 * Shopify's Admin GraphQL API.  Every part of a response (HTTP status, GraphQL errors, data) may
 * have any type and length.
 */
#include "platform/platform.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/accept_language.h"
#include "base/http/address.h"
#include "base/text/json.h"
#include "base/mail/mime.h"
#include "base/names.h"
#include "base/text/utf8.h"

/* A version is supported for a year; afterwards the oldest supported version answers. */
#define API_VERSION "2026-10"
#define MAX_NAME    100 /* characters, as in a request */
#define MAX_LOCALE  35
#define MIN_WAIT_S  1
#define MAX_WAIT_S  3600

/* The order is included only if its risk is wanted, so that a shop without fraud checks needs a
   token only for customers. */
static const char query[] =
    "query Lookup($customer: ID!, $order: ID!, $withOrder: Boolean!) {"
    " customer(id: $customer) { firstName lastName locale defaultEmailAddress { emailAddress } }"
    " order(id: $order) @include(if: $withOrder) { clientIp risk { assessments { riskLevel } } } "
    "}";

/* For a guest: the order has what the buyer typed. */
static const char guest_query[] =
    "query Lookup($order: ID!, $withOrder: Boolean!) {"
    " order(id: $order) { email customerLocale billingAddress { firstName lastName }"
    " clientIp @include(if: $withOrder) risk @include(if: $withOrder) { assessments { riskLevel } "
    "} "
    "} }";

static void shopify_ask(mdl_http_post_request_t *request, const mdl_platform_question_t *question,
                        apr_pool_t *p)
{
    mdl_json_t *document = mdl_json_object(p);
    mdl_json_t *variables;
    apr_array_header_t *headers = apr_array_make(p, 1, sizeof(const char *));

    mdl_json_add_string(document, "query", question->customer_id != NULL ? query : guest_query);
    variables = mdl_json_add_object(document, "variables");
    if (question->customer_id != NULL) {
        mdl_json_add_string(variables, "customer",
                            apr_pstrcat(p, "gid://shopify/Customer/", question->customer_id, NULL));
    }
    mdl_json_add_string(variables, "order",
                        apr_pstrcat(p, "gid://shopify/Order/", question->order_id, NULL));
    mdl_json_add_bool(variables, "withOrder", question->with_order);
    request->url = apr_pstrcat(p, question->url, "/admin/api/" API_VERSION "/graphql.json", NULL);
    APR_ARRAY_PUSH(headers, const char *) = apr_pstrcat(
        p, "X-Shopify-Access-Token: ", question->token, NULL);
    request->headers = headers;
    request->body = mdl_json_text(document, NULL, p);
}

static void shopify_later(mdl_platform_answer_t *answer, const char *code, const char *message)
{
    answer->outcome = MDL_PLATFORM_LATER;
    answer->code = code;
    answer->message = message;
}

static void shopify_refused(mdl_platform_answer_t *answer, const char *code, const char *message)
{
    answer->outcome = MDL_PLATFORM_REFUSED;
    answer->code = code;
    answer->message = message;
}

static void shopify_invalid(mdl_platform_answer_t *answer)
{
    shopify_later(answer, "storefront_invalid",
                  "The storefront's answer is not one of its Admin GraphQL API.");
}

static void shopify_token_refused(mdl_platform_answer_t *answer)
{
    shopify_refused(
        answer, "storefront_refused",
        "The storefront refuses the access token, or the token may not read customers and "
        "orders: the operator has to set a new one.");
}

static apr_interval_time_t shopify_bounded(double seconds)
{
    if (seconds >= MAX_WAIT_S) {
        return apr_time_from_sec(MAX_WAIT_S);
    }
    return seconds <= MIN_WAIT_S ? apr_time_from_sec(MIN_WAIT_S)
                                 : (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
}

/* Returns whether the HTTP status alone decides the outcome. */
static int shopify_read_status(mdl_platform_answer_t *answer, const mdl_http_response_t *http)
{
    int status = http->status;

    if (status == 200) {
        return 0;
    }
    answer->retry_after = http->retry_after_s >= 0 ? shopify_bounded(http->retry_after_s) : 0;
    if (status == 429) {
        shopify_later(answer, "storefront_throttled", "The storefront wants fewer requests.");
    } else if (status >= 500 || status == 408 || status == 425) {
        shopify_later(answer, "storefront_unavailable", "The storefront can't answer now.");
    } else if (status == 401 || status == 403) {
        shopify_token_refused(answer);
    } else if (status == 404) {
        shopify_refused(
            answer, "storefront_not_found",
            "There is no Admin GraphQL API at the storefront's URL: the operator has to "
            "correct it.");
    } else {
        shopify_refused(answer, "storefront_refused", "The storefront refuses the request.");
    }
    return 1;
}

/* Returns whether there was no usable answer, which decides the outcome. */
static int shopify_read_result(mdl_platform_answer_t *answer, const mdl_http_response_t *http,
                               apr_pool_t *p)
{
    switch (http->result) {
    case MDL_HTTP_OK:
        return 0;
    case MDL_HTTP_ADDRESS_FORBIDDEN:
        shopify_refused(answer, "storefront_address_forbidden",
                        "The storefront's name leads to an address that is not allowed.");
        break;
    case MDL_HTTP_HOST_NOT_ALLOWED:
    case MDL_HTTP_URL_INVALID:
        shopify_refused(
            answer, "storefront_not_allowed",
            "The storefront's URL is not allowed any more: the operator has to correct it.");
        break;
    case MDL_HTTP_TIMEOUT:
        shopify_later(answer, "storefront_timeout", "The storefront took too long.");
        break;
    case MDL_HTTP_TOO_LARGE:
    case MDL_HTTP_REFUSED:
        shopify_invalid(answer);
        break;
    default:
        shopify_later(answer, "storefront_unavailable", apr_pstrdup(p, http->reason));
    }
    return 1;
}

/* How long it takes until the rate limit has restored the query's cost. */
static apr_interval_time_t shopify_restoring(const mdl_json_t *document)
{
    const mdl_json_t *cost = mdl_json_member(mdl_json_member(document, "extensions"), "cost");
    const mdl_json_t *throttle = mdl_json_member(cost, "throttleStatus");
    double asked = mdl_json_number(mdl_json_member(cost, "requestedQueryCost"));
    double there = mdl_json_number(mdl_json_member(throttle, "currentlyAvailable"));
    double rate = mdl_json_number(mdl_json_member(throttle, "restoreRate"));

    return rate > 0 ? shopify_bounded((asked - there) / rate) : 0;
}

static int shopify_is(const char *text, const char *other)
{
    return text != NULL && strcmp(text, other) == 0;
}

/* Reads a GraphQL error: throttling outweighs all others, a temporary fault a permanent one. */
static void shopify_read_error(mdl_platform_answer_t *answer, const mdl_json_t *document,
                               const mdl_json_t *error)
{
    const char *code = mdl_json_string(
        mdl_json_member(mdl_json_member(error, "extensions"), "code"));

    if (shopify_is(answer->code, "storefront_throttled")) {
        return;
    }
    if (shopify_is(code, "THROTTLED") ||
        (code == NULL &&
         shopify_is(mdl_json_string(mdl_json_member(error, "message")), "Throttled"))) {
        shopify_later(answer, "storefront_throttled", "The storefront wants fewer requests.");
        answer->retry_after = shopify_restoring(document);
    } else if (shopify_is(code, "INTERNAL_SERVER_ERROR")) {
        shopify_later(answer, "storefront_unavailable", "The storefront can't answer now.");
    } else if (answer->outcome != MDL_PLATFORM_LATER && shopify_is(code, "ACCESS_DENIED")) {
        shopify_token_refused(answer);
    } else if (answer->outcome == MDL_PLATFORM_ANSWERED) {
        shopify_refused(answer, "storefront_refused", "The storefront refuses the request.");
    }
}

/* Whether a nullable member is a string, null or absent. */
static int shopify_is_text(const mdl_json_t *object, const char *name)
{
    mdl_json_type_t type = mdl_json_type(mdl_json_member(object, name));

    return type == MDL_JSON_STRING || type == MDL_JSON_NULL || type == MDL_JSON_ABSENT;
}

static int shopify_is_object(const mdl_json_t *json)
{
    mdl_json_type_t type = mdl_json_type(json);

    return type == MDL_JSON_OBJECT || type == MDL_JSON_NULL || type == MDL_JSON_ABSENT;
}

static const char *shopify_text_of(const mdl_json_t *object, const char *name, apr_size_t max,
                                   apr_pool_t *p)
{
    const char *text = mdl_json_string(mdl_json_member(object, name));

    text = text != NULL ? mdl_utf8_trimmed(text, p) : NULL;
    return text != NULL && mdl_utf8_is_text(text, max) ? apr_pstrdup(p, text) : NULL;
}

/* The members of an address, a person's names and a language; faulty ones are left out. */
static void shopify_take_person(mdl_platform_found_t *found, const char *email,
                                const mdl_json_t *names, const char *locale, apr_pool_t *p)
{
    found->email = email != NULL ? mdl_mime_address_of(mdl_utf8_trimmed(email, p), p) : NULL;
    found->first_name = shopify_text_of(names, "firstName", MAX_NAME, p);
    found->last_name = shopify_text_of(names, "lastName", MAX_NAME, p);
    found->locale = locale != NULL && mdl_language_tag_valid(locale) ? locale : NULL;
}

static int shopify_read_customer(mdl_platform_found_t *found, const mdl_json_t *customer,
                                 apr_pool_t *p)
{
    const mdl_json_t *address = mdl_json_member(customer, "defaultEmailAddress");

    if (!shopify_is_object(customer) || !shopify_is_object(address) ||
        !shopify_is_text(address, "emailAddress") || !shopify_is_text(customer, "firstName") ||
        !shopify_is_text(customer, "lastName") || !shopify_is_text(customer, "locale")) {
        return 0;
    }
    shopify_take_person(found, mdl_json_string(mdl_json_member(address, "emailAddress")), customer,
                        shopify_text_of(customer, "locale", MAX_LOCALE, p), p);
    return 1;
}

static int shopify_read_guest(mdl_platform_found_t *found, const mdl_json_t *order, apr_pool_t *p)
{
    const mdl_json_t *names = mdl_json_member(order, "billingAddress");

    if (!shopify_is_object(order) || !shopify_is_object(names) ||
        !shopify_is_text(order, "email") || !shopify_is_text(order, "customerLocale") ||
        !shopify_is_text(names, "firstName") || !shopify_is_text(names, "lastName")) {
        return 0;
    }
    shopify_take_person(found, mdl_json_string(mdl_json_member(order, "email")), names,
                        shopify_text_of(order, "customerLocale", MAX_LOCALE, p), p);
    return 1;
}

/* Reads the worst of the assessments; *pending is set if one is unfinished. */
static int shopify_read_risk(mdl_platform_found_t *found, const mdl_json_t *risk, int *pending)
{
    static const char *const levels[] = {[MDL_RISK_NONE] = "NONE",
                                         [MDL_RISK_LOW] = "LOW",
                                         [MDL_RISK_MEDIUM] = "MEDIUM",
                                         [MDL_RISK_HIGH] = "HIGH",
                                         NULL};
    const mdl_json_t *assessments = mdl_json_member(risk, "assessments");
    int worst = MDL_RISK_NONE;

    if (mdl_json_type(assessments) != MDL_JSON_ARRAY) {
        return 0;
    }
    for (apr_size_t i = 0; i < mdl_json_length(assessments); i++) {
        const char *name = mdl_json_string(
            mdl_json_member(mdl_json_element(assessments, i), "riskLevel"));
        int level = mdl_names_find(levels, name);

        if (level < 0 && !shopify_is(name, "PENDING")) {
            return 0;
        }
        *pending |= level < 0;
        worst = level > worst ? level : worst;
    }
    *pending &= worst < MDL_RISK_HIGH; /* it can't become worse */
    found->rated = !*pending;
    found->risk = (mdl_risk_t)worst;
    return 1;
}

static int shopify_read_order(mdl_platform_found_t *found, const mdl_json_t *order, int *pending,
                              apr_pool_t *p)
{
    const char *ip;

    if (!shopify_is_object(order) || !shopify_is_text(order, "clientIp")) {
        return 0;
    }
    if (mdl_json_type(order) != MDL_JSON_OBJECT) {
        return 1;
    }
    ip = mdl_json_string(mdl_json_member(order, "clientIp"));
    found->client_ip = ip != NULL ? mdl_address_text(ip, p) : NULL;
    return shopify_read_risk(found, mdl_json_member(order, "risk"), pending);
}

static int shopify_read_buyer(mdl_platform_found_t *found, const mdl_json_t *data,
                              const mdl_platform_question_t *question, apr_pool_t *p)
{
    return question->customer_id != NULL
               ? shopify_read_customer(found, mdl_json_member(data, "customer"), p)
               : shopify_read_guest(found, mdl_json_member(data, "order"), p);
}

static void shopify_read_data(mdl_platform_answer_t *answer, const mdl_json_t *data,
                              const mdl_platform_question_t *question, apr_pool_t *p)
{
    int pending = 0;

    if (mdl_json_type(data) != MDL_JSON_OBJECT ||
        !shopify_read_buyer(&answer->found, data, question, p) ||
        (question->with_order &&
         !shopify_read_order(&answer->found, mdl_json_member(data, "order"), &pending, p))) {
        answer->found = (mdl_platform_found_t){0};
        if (answer->outcome == MDL_PLATFORM_ANSWERED) {
            shopify_invalid(answer);
        }
    } else if (pending && answer->outcome == MDL_PLATFORM_ANSWERED) {
        shopify_later(answer, "storefront_risk_pending",
                      "The storefront has not assessed the order's risk yet.");
    }
}

static void shopify_read(mdl_platform_answer_t *answer, const mdl_http_response_t *http,
                         const mdl_platform_question_t *question, apr_pool_t *p)
{
    const mdl_json_t *errors;
    mdl_json_t *document;
    const char *why;

    *answer = (mdl_platform_answer_t){.outcome = MDL_PLATFORM_ANSWERED};
    if (shopify_read_result(answer, http, p) || shopify_read_status(answer, http)) {
        return;
    }
    if (mdl_json_parse(&document, http->body, http->length, MDL_JSON_MAX_VALUES, &why, p) !=
            APR_SUCCESS ||
        mdl_json_type(document) != MDL_JSON_OBJECT) {
        shopify_invalid(answer);
        return;
    }
    errors = mdl_json_member(document, "errors");
    for (apr_size_t i = 0; i < mdl_json_length(errors); i++) {
        shopify_read_error(answer, document, mdl_json_element(errors, i));
    }
    shopify_read_data(answer, mdl_json_member(document, "data"), question, p);
}

const mdl_platform_t mdl_shopify = {.ask = shopify_ask, .read = shopify_read};
