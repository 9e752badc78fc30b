/*
 * Reading what a storefront answers (core/shop/storefront.h): HTTP's status, GraphQL's errors, and
 * the data, each part of which may be of any type and length.
 */
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/accept_language.h"
#include "base/http/address.h"
#include "base/text/json.h"
#include "base/mail/mime.h"
#include "base/names.h"
#include "base/text/utf8.h"
#include "core/shop/storefront.h"

#define MAX_NAME   100 /* characters, as in a request */
#define MAX_LOCALE 35
#define MIN_WAIT_S 1
#define MAX_WAIT_S 3600

static void storefront_response_later(mdl_storefront_response_t *response, const char *code,
                                      const char *message)
{
    response->outcome = MDL_STOREFRONT_LATER;
    response->code = code;
    response->message = message;
}

static void storefront_response_refused(mdl_storefront_response_t *response, const char *code,
                                        const char *message)
{
    response->outcome = MDL_STOREFRONT_REFUSED;
    response->code = code;
    response->message = message;
}

static void storefront_response_invalid(mdl_storefront_response_t *response)
{
    storefront_response_later(response, "storefront_invalid",
                              "The storefront's answer is not one of its Admin GraphQL API.");
}

static void token_refused(mdl_storefront_response_t *response)
{
    storefront_response_refused(
        response, "storefront_refused",
        "The storefront refuses the access token, or the token may not read customers and "
        "orders: the operator has to set a new one.");
}

static apr_interval_time_t storefront_response_bounded(double seconds)
{
    if (seconds >= MAX_WAIT_S) {
        return apr_time_from_sec(MAX_WAIT_S);
    }
    return seconds <= MIN_WAIT_S ? apr_time_from_sec(MIN_WAIT_S)
                                 : (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
}

/* Returns whether the HTTP status alone decides the outcome. */
static int storefront_response_read_status(mdl_storefront_response_t *response,
                                           const mdl_http_response_t *http)
{
    int status = http->status;

    if (status == 200) {
        return 0;
    }
    response->retry_after = http->retry_after_s >= 0
                                ? storefront_response_bounded(http->retry_after_s)
                                : 0;
    if (status == 429) {
        storefront_response_later(response, "storefront_throttled",
                                  "The storefront wants fewer requests.");
    } else if (status >= 500 || status == 408 || status == 425) {
        storefront_response_later(response, "storefront_unavailable",
                                  "The storefront can't answer now.");
    } else if (status == 401 || status == 403) {
        token_refused(response);
    } else if (status == 404) {
        storefront_response_refused(
            response, "storefront_not_found",
            "There is no Admin GraphQL API at the storefront's URL: the operator has to "
            "correct it.");
    } else {
        storefront_response_refused(response, "storefront_refused",
                                    "The storefront refuses the request.");
    }
    return 1;
}

/* Returns whether there was no usable response, which decides the outcome. */
static int storefront_response_read_result(mdl_storefront_response_t *response,
                                           const mdl_http_response_t *http, apr_pool_t *p)
{
    switch (http->result) {
    case MDL_HTTP_OK:
        return 0;
    case MDL_HTTP_ADDRESS_FORBIDDEN:
        storefront_response_refused(
            response, "storefront_address_forbidden",
            "The storefront's name leads to an address that is not allowed.");
        break;
    case MDL_HTTP_HOST_NOT_ALLOWED:
    case MDL_HTTP_URL_INVALID:
        storefront_response_refused(
            response, "storefront_not_allowed",
            "The storefront's URL is not allowed any more: the operator has to correct it.");
        break;
    case MDL_HTTP_TIMEOUT:
        storefront_response_later(response, "storefront_timeout", "The storefront took too long.");
        break;
    case MDL_HTTP_TOO_LARGE:
    case MDL_HTTP_REFUSED:
        storefront_response_invalid(response);
        break;
    default:
        storefront_response_later(response, "storefront_unavailable", apr_pstrdup(p, http->reason));
    }
    return 1;
}

/* How long the storefront needs to have what the query costs. */
static apr_interval_time_t storefront_response_restoring(const mdl_json_t *document)
{
    const mdl_json_t *cost = mdl_json_member(mdl_json_member(document, "extensions"), "cost");
    const mdl_json_t *throttle = mdl_json_member(cost, "throttleStatus");
    double asked = mdl_json_number(mdl_json_member(cost, "requestedQueryCost"));
    double there = mdl_json_number(mdl_json_member(throttle, "currentlyAvailable"));
    double rate = mdl_json_number(mdl_json_member(throttle, "restoreRate"));

    return rate > 0 ? storefront_response_bounded((asked - there) / rate) : 0;
}

static int storefront_response_is(const char *text, const char *other)
{
    return text != NULL && strcmp(text, other) == 0;
}

/* One of GraphQL's errors: throttling outweighs all others, and a passing fault a lasting one. */
static void storefront_response_read_error(mdl_storefront_response_t *response,
                                           const mdl_json_t *document, const mdl_json_t *error)
{
    const char *code = mdl_json_string(
        mdl_json_member(mdl_json_member(error, "extensions"), "code"));

    if (storefront_response_is(response->code, "storefront_throttled")) {
        return;
    }
    if (storefront_response_is(code, "THROTTLED") ||
        (code == NULL &&
         storefront_response_is(mdl_json_string(mdl_json_member(error, "message")), "Throttled"))) {
        storefront_response_later(response, "storefront_throttled",
                                  "The storefront wants fewer requests.");
        response->retry_after = storefront_response_restoring(document);
    } else if (storefront_response_is(code, "INTERNAL_SERVER_ERROR")) {
        storefront_response_later(response, "storefront_unavailable",
                                  "The storefront can't answer now.");
    } else if (response->outcome != MDL_STOREFRONT_LATER &&
               storefront_response_is(code, "ACCESS_DENIED")) {
        token_refused(response);
    } else if (response->outcome == MDL_STOREFRONT_ANSWERED) {
        storefront_response_refused(response, "storefront_refused",
                                    "The storefront refuses the request.");
    }
}

/* Whether a member is a string, or null or absent: what a nullable one may be. */
static int storefront_response_is_text(const mdl_json_t *object, const char *name)
{
    mdl_json_type_t type = mdl_json_type(mdl_json_member(object, name));

    return type == MDL_JSON_STRING || type == MDL_JSON_NULL || type == MDL_JSON_ABSENT;
}

static int storefront_response_is_object(const mdl_json_t *json)
{
    mdl_json_type_t type = mdl_json_type(json);

    return type == MDL_JSON_OBJECT || type == MDL_JSON_NULL || type == MDL_JSON_ABSENT;
}

static const char *storefront_response_text_of(const mdl_json_t *object, const char *name,
                                               apr_size_t max, apr_pool_t *p)
{
    const char *text = mdl_json_string(mdl_json_member(object, name));

    text = text != NULL ? mdl_utf8_trimmed(text, p) : NULL;
    return text != NULL && mdl_utf8_is_text(text, max) ? apr_pstrdup(p, text) : NULL;
}

static int storefront_response_read_customer(mdl_storefront_found_t *found,
                                             const mdl_json_t *customer, apr_pool_t *p)
{
    const mdl_json_t *address = mdl_json_member(customer, "defaultEmailAddress");
    const char *email = mdl_json_string(mdl_json_member(address, "emailAddress"));
    const char *locale;

    if (!storefront_response_is_object(customer) || !storefront_response_is_object(address) ||
        !storefront_response_is_text(address, "emailAddress") ||
        !storefront_response_is_text(customer, "firstName") ||
        !storefront_response_is_text(customer, "lastName") ||
        !storefront_response_is_text(customer, "locale")) {
        return 0;
    }
    found->email = email != NULL ? mdl_mime_address_of(mdl_utf8_trimmed(email, p), p) : NULL;
    found->first_name = storefront_response_text_of(customer, "firstName", MAX_NAME, p);
    found->last_name = storefront_response_text_of(customer, "lastName", MAX_NAME, p);
    locale = storefront_response_text_of(customer, "locale", MAX_LOCALE, p);
    found->locale = locale != NULL && mdl_language_tag_valid(locale) ? locale : NULL;
    return 1;
}

/* The worst of the assessments; *pending when one is still under way. */
static int storefront_response_read_risk(mdl_storefront_found_t *found, const mdl_json_t *risk,
                                         int *pending)
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

        if (level < 0 && !storefront_response_is(name, "PENDING")) {
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

static int storefront_response_read_order(mdl_storefront_found_t *found, const mdl_json_t *order,
                                          int *pending, apr_pool_t *p)
{
    const char *ip;

    if (!storefront_response_is_object(order) || !storefront_response_is_text(order, "clientIp")) {
        return 0;
    }
    if (mdl_json_type(order) != MDL_JSON_OBJECT) {
        return 1;
    }
    ip = mdl_json_string(mdl_json_member(order, "clientIp"));
    found->client_ip = ip != NULL ? mdl_address_text(ip, p) : NULL;
    return storefront_response_read_risk(found, mdl_json_member(order, "risk"), pending);
}

static void storefront_response_read_data(mdl_storefront_response_t *response,
                                          const mdl_json_t *data, int with_order, apr_pool_t *p)
{
    int pending = 0;

    if (mdl_json_type(data) != MDL_JSON_OBJECT ||
        !storefront_response_read_customer(&response->found, mdl_json_member(data, "customer"),
                                           p) ||
        (with_order && !storefront_response_read_order(
                           &response->found, mdl_json_member(data, "order"), &pending, p))) {
        response->found = (mdl_storefront_found_t){0};
        if (response->outcome == MDL_STOREFRONT_ANSWERED) {
            storefront_response_invalid(response);
        }
    } else if (pending && response->outcome == MDL_STOREFRONT_ANSWERED) {
        storefront_response_later(response, "storefront_risk_pending",
                                  "The storefront has not assessed the order's risk yet.");
    }
}

void mdl_storefront_read(mdl_storefront_response_t *response, const mdl_http_response_t *http,
                         int with_order, apr_pool_t *p)
{
    const mdl_json_t *errors;
    mdl_json_t *document;
    const char *why;

    *response = (mdl_storefront_response_t){.outcome = MDL_STOREFRONT_ANSWERED};
    if (storefront_response_read_result(response, http, p) ||
        storefront_response_read_status(response, http)) {
        return;
    }
    if (mdl_json_parse(&document, http->body, http->length, MDL_JSON_MAX_VALUES, &why, p) !=
            APR_SUCCESS ||
        mdl_json_type(document) != MDL_JSON_OBJECT) {
        storefront_response_invalid(response);
        return;
    }
    errors = mdl_json_member(document, "errors");
    for (apr_size_t i = 0; i < mdl_json_length(errors); i++) {
        storefront_response_read_error(response, document, mdl_json_element(errors, i));
    }
    storefront_response_read_data(response, mdl_json_member(document, "data"), with_order, p);
}
