#include "core/order/fraud.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "core/catalog/license.h"
#include "core/order/email.h"
#include "core/order/timeline.h"
#include "core/order/state.h"
#include "core/shop/event.h"
#include "core/shop/notice.h"
#include "platform/risk.h"

#define REVOKED_MEDIUM 1

/* An order and all that the check looks at. */
typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    mdl_order_state_t state;
    const char *signals; /* of the previous check, or NULL */
    int rated;           /* whether the storefront has rated the risk */
    mdl_risk_t risk;
    const char *email; /* or NULL */
    mdl_risk_t hold_at;
    int has_storefront;
    int pending; /* whether the previous check waits for the storefront */
    int orders_of_customer;
    int orders_of_address;
    int orders_of_ip;
    int orders_refused;
} fraud_order_t;

/* The result of the check. */
typedef struct {
    mdl_json_t *signals;
    mdl_risk_t level;
    int pending;
    apr_pool_t *pool;
} fraud_result_t;

static apr_status_t open_domains(mdl_domains_t **domains, const char *directive, const char *path,
                                 const char **why, apr_pool_t *p)
{
    char reason[120];
    apr_status_t rv = path != NULL ? mdl_domains_open(domains, path, p) : APR_SUCCESS;

    if (rv != APR_SUCCESS) {
        *why = apr_psprintf(p, "%s: the file %s can't be read: %s.", directive, path,
                            apr_strerror(rv, reason, sizeof reason));
    }
    return rv;
}

apr_status_t mdl_fraud_rules_open(const mdl_fraud_rules_t **rules, const mdl_settings_t *settings,
                                  const char **why, apr_pool_t *p)
{
    mdl_fraud_rules_t *made = apr_pcalloc(p, sizeof *made);
    apr_status_t rv;

    made->settings = settings;
    if ((rv = open_domains(&made->disposable, "DownloadsFraudDisposableDomains",
                           settings->fraud_disposable_domains, why, p)) != APR_SUCCESS ||
        (rv = open_domains(&made->blocked, "DownloadsFraudBlockedDomains",
                           settings->fraud_blocked_domains, why, p)) != APR_SUCCESS) {
        return rv;
    }
    *rules = made;
    return APR_SUCCESS;
}

static apr_status_t fraud_read_order(mdl_db_t *db, fraud_order_t *order, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(FRAUD_SUBJECT, order->id));

    if (rv == APR_SUCCESS) {
        order->shop_id = MDL_INT(row, fraud_subject, shop_id);
        order->state.access = MDL_ENUM(row, fraud_subject, access_status, mdl_order_access_names);
        order->state.decision = MDL_ENUM(row, fraud_subject, fraud_decision,
                                         mdl_fraud_decision_names);
        order->signals = MDL_TEXT(row, fraud_subject, fraud_signals);
        order->rated = !MDL_NULL(row, fraud_subject, storefront_risk);
        if (order->rated) {
            order->risk = MDL_ENUM(row, fraud_subject, storefront_risk, mdl_risk_names);
        }
        order->email = MDL_TEXT(row, fraud_subject, email);
        order->hold_at = MDL_ENUM(row, fraud_subject, hold_at, mdl_risk_names);
        order->has_storefront = MDL_INT(row, fraud_subject, has_storefront) != 0;
        order->pending = MDL_INT(row, fraud_subject, risk_pending) != 0;
    }
    return rv;
}

/* Counting stops at twice the number: more makes no difference. */
static apr_int64_t fraud_most(int number)
{
    return 2 * (apr_int64_t)number;
}

static apr_status_t fraud_count(mdl_db_t *db, const mdl_settings_t *settings, fraud_order_t *order,
                                apr_pool_t *p)
{
    apr_time_t since = apr_time_now() - settings->fraud_window;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(FRAUD_COUNTS, .since = since,
              .most_of_customer = fraud_most(settings->fraud_customer_orders),
              .most_of_address = fraud_most(settings->fraud_address_orders),
              .most_of_network = fraud_most(settings->fraud_ip_orders),
              .most_revoked = fraud_most(REVOKED_MEDIUM), .id = order->id));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, fraud_counts, order, orders_of_customer, orders_of_address, orders_of_ip,
                 orders_refused);
    }
    return rv;
}

static void fraud_add(fraud_result_t *result, const char *code, mdl_risk_t level,
                      const char *message)
{
    mdl_json_t *signal = mdl_json_add_object(result->signals, NULL);

    mdl_json_add_string(signal, "code", code);
    mdl_json_add_string(signal, "level", mdl_risk_names[level]);
    mdl_json_add_string(signal, "message", message);
    if (level > result->level) {
        result->level = level;
    }
}

static const char *window_text(apr_interval_time_t window, apr_pool_t *p)
{
    static const struct {
        int seconds;
        const char *name;
    } units[] = {{3600, "hour"}, {60, "minute"}, {1, "second"}};
    int seconds = (int)apr_time_sec(window), unit = 0;

    while (seconds % units[unit].seconds != 0) {
        unit++;
    }
    seconds /= units[unit].seconds;
    return seconds == 1 ? apr_pstrcat(p, "the last ", units[unit].name, NULL)
                        : apr_psprintf(p, "the last %d %ss", seconds, units[unit].name);
}

/* "5 other orders", "10 or more other orders": the beginning of a sentence. */
static const char *orders_text(int orders, int number, apr_pool_t *p)
{
    return apr_psprintf(p, "%d%s other order%s", orders,
                        orders == fraud_most(number) ? " or more" : "", orders == 1 ? "" : "s");
}

static void look_at_count(fraud_result_t *result, const char *code, int orders, int number,
                          const char *whose, apr_interval_time_t window)
{
    apr_pool_t *p = result->pool;

    if (number > 0 && orders >= number) {
        fraud_add(result, code, orders >= fraud_most(number) ? MDL_RISK_HIGH : MDL_RISK_MEDIUM,
                  apr_psprintf(p, "%s %s in %s.", orders_text(orders, number, p), whose,
                               window_text(window, p)));
    }
}

static void look_at_counts(fraud_result_t *result, const mdl_settings_t *settings,
                           const fraud_order_t *order)
{
    apr_interval_time_t window = settings->fraud_window;
    int refused = order->orders_refused;

    look_at_count(result, "customer_orders", order->orders_of_customer,
                  settings->fraud_customer_orders, "of this customer", window);
    look_at_count(result, "address_orders", order->orders_of_address,
                  settings->fraud_address_orders, "with this email address", window);
    look_at_count(result, "ip_orders", order->orders_of_ip, settings->fraud_ip_orders,
                  "from this IP address", window);
    if (refused >= REVOKED_MEDIUM) {
        fraud_add(result, "revoked_orders",
                  refused >= fraud_most(REVOKED_MEDIUM) ? MDL_RISK_HIGH : MDL_RISK_MEDIUM,
                  apr_psprintf(result->pool, "%s of this customer %s revoked or rejected.",
                               orders_text(refused, REVOKED_MEDIUM, result->pool),
                               refused == 1 ? "was" : "were"));
    }
}

static void look_at_domain(fraud_result_t *result, const mdl_fraud_rules_t *rules,
                           const fraud_order_t *order)
{
    const char *domain = order->email != NULL ? strchr(order->email, '@') : NULL;
    apr_pool_t *p = result->pool;

    if (domain == NULL) {
        return;
    }
    domain++;
    if (rules->disposable != NULL && mdl_domains_has(rules->disposable, domain)) {
        fraud_add(
            result, "disposable_domain", MDL_RISK_MEDIUM,
            apr_pstrcat(p, "Email addresses of ", domain, " are thrown away after use.", NULL));
    }
    if (rules->blocked != NULL && mdl_domains_has(rules->blocked, domain)) {
        fraud_add(result, "blocked_domain", MDL_RISK_HIGH,
                  apr_pstrcat(p, "The domain ", domain, " of the email address is blocked.", NULL));
    }
}

static void look_at_risk(fraud_result_t *result, const fraud_order_t *order, int asked)
{
    if (order->rated) {
        if (order->risk != MDL_RISK_NONE) {
            fraud_add(result, "storefront_risk", order->risk,
                      apr_psprintf(result->pool, "The storefront rates the order's risk as %s.",
                                   mdl_risk_names[order->risk]));
        }
    } else if (asked) {
        fraud_add(result, "risk_unknown", MDL_RISK_LOW,
                  "The storefront did not tell the order's risk.");
    } else if (order->has_storefront) {
        result->pending = 1;
        fraud_add(result, "risk_pending", MDL_RISK_NONE,
                  "The storefront's rating of the order's risk is awaited.");
    }
}

static apr_status_t fraud_inspect(mdl_db_t *db, const mdl_fraud_rules_t *rules,
                                  fraud_order_t *order, int asked, fraud_result_t *result,
                                  apr_pool_t *p)
{
    apr_status_t rv = fraud_count(db, rules->settings, order, p);

    if (rv == APR_SUCCESS) {
        *result = (fraud_result_t){.signals = mdl_json_array(p), .pool = p};
        look_at_risk(result, order, asked);
        look_at_counts(result, rules->settings, order);
        look_at_domain(result, rules, order);
    }
    return rv;
}

static apr_status_t fraud_add_entry(mdl_db_t *db, const fraud_order_t *order,
                                    const fraud_result_t *result, const char *key_id,
                                    apr_int64_t license_keys, apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_timeline_entry_t entry = {
        .action = order->state.decision == MDL_FRAUD_HELD ? "fraud_held" : "fraud_passed",
        .key_id = key_id};

    mdl_json_add_string(details, "level", mdl_risk_names[result->level]);
    mdl_json_add_copy(details, "signals", result->signals);
    if (license_keys > 0) {
        mdl_json_add_int(details, "license_keys", license_keys);
    }
    entry.details = mdl_json_text(details, NULL, p);
    return mdl_timeline_add(db, order->id, &entry, p);
}

/* Tells the shop's system that the order is held, or no longer held. */
static apr_status_t fraud_notify(mdl_db_t *db, const fraud_order_t *order, mdl_event_type_t type,
                                 const fraud_result_t *result, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = order->shop_id, .type = type, .order_id = order->id};

    mdl_json_add_string(data, "access_status", mdl_order_access_names[order->state.access]);
    mdl_json_add_string(data, "fraud_level", mdl_risk_names[result->level]);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

/* Stores the order's new state and the result. */
static apr_status_t fraud_store(mdl_db_t *db, const fraud_order_t *order,
                                const fraud_result_t *result, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(FRAUD_RESULT,
                             .access_status = mdl_order_access_names[order->state.access],
                             .fraud_decision = mdl_fraud_decision_names[order->state.decision],
                             .fraud_level = mdl_risk_names[result->level],
                             .fraud_signals = mdl_json_text(result->signals, NULL, p),
                             .risk_pending = result->pending, .id = order->id));
}

static int is_to_be_held(const fraud_order_t *order, const fraud_result_t *result)
{
    return result->pending || result->level >= order->hold_at;
}

static int result_is_new(const fraud_order_t *order, const fraud_result_t *result,
                         const mdl_order_state_t *state, apr_pool_t *p)
{
    return order->state.decision != state->decision || order->signals == NULL ||
           strcmp(order->signals, mdl_json_text(result->signals, NULL, p)) != 0;
}

/* A result that mdl_fraud_tell reports. */
struct mdl_fraud_report_t {
    fraud_order_t order;
    fraud_result_t result;
    int is_hold; /* whether the order was not held before */
};

static mdl_fraud_report_t *report_make(const fraud_order_t *order, const fraud_result_t *result,
                                       int is_hold, apr_pool_t *p)
{
    mdl_fraud_report_t *report = apr_palloc(p, sizeof *report);

    *report = (mdl_fraud_report_t){.order = *order, .result = *result, .is_hold = is_hold};
    return report;
}

static apr_status_t fraud_decide(mdl_db_t *db, mdl_fraud_check_t *check, fraud_order_t *order,
                                 const fraud_result_t *result, apr_pool_t *p)
{
    int holds = is_to_be_held(order, result);
    int was_held = order->state.access == MDL_ORDER_HELD;
    mdl_order_state_t state = order->state;
    apr_status_t rv;

    mdl_order_step(&state, holds ? MDL_ORDER_CHECK_HOLDS : MDL_ORDER_CHECK_PASSES, NULL);
    check->held = state.access == MDL_ORDER_HELD;
    check->pending = result->pending;
    if ((was_held && !holds) || !result_is_new(order, result, &state, p)) {
        return APR_SUCCESS;
    }
    order->state = state;
    check->report = report_make(order, result, check->held && !was_held, p);
    rv = fraud_store(db, order, result, p);
    return rv == APR_SUCCESS && holds && !was_held ? mdl_email_hold(db, order->id, p) : rv;
}

apr_status_t mdl_fraud_check(mdl_db_t *db, mdl_fraud_check_t *check, apr_pool_t *p)
{
    fraud_order_t order = {.id = check->order_id};
    fraud_result_t result;
    apr_status_t rv;

    check->held = check->pending = 0;
    check->report = NULL;
    if ((rv = fraud_read_order(db, &order, p)) != APR_SUCCESS) {
        return rv;
    }
    if (order.state.decision == MDL_FRAUD_APPROVED) {
        return APR_SUCCESS;
    }
    rv = fraud_inspect(db, check->rules, &order, 0, &result, p);
    return rv == APR_SUCCESS ? fraud_decide(db, check, &order, &result, p) : rv;
}

apr_status_t mdl_fraud_tell(mdl_db_t *db, const mdl_fraud_check_t *check, apr_pool_t *p)
{
    const mdl_fraud_report_t *report = check->report;
    apr_status_t rv;

    if (report == NULL) {
        return APR_SUCCESS;
    }
    rv = fraud_add_entry(db, &report->order, &report->result, check->key_id, 0, p);
    if (rv != APR_SUCCESS || !report->is_hold) {
        return rv;
    }
    rv = fraud_notify(db, &report->order, MDL_EVENT_ORDER_HELD, &report->result, p);
    return rv == APR_SUCCESS ? mdl_notice_add(db, MDL_NOTICE_HELD, report->order.shop_id, p) : rv;
}

/* Other signals may keep the order held, until somebody decides. */
static apr_status_t end_wait(mdl_db_t *db, fraud_order_t *order, const fraud_result_t *result,
                             apr_pool_t *p)
{
    int was_held = order->state.decision == MDL_FRAUD_HELD;
    apr_int64_t given = 0;
    apr_status_t rv;

    if (!is_to_be_held(order, result)) {
        mdl_order_step(&order->state, MDL_ORDER_ANSWER_PASSES, NULL);
    }
    if ((rv = fraud_store(db, order, result, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!was_held) {
        return mdl_timeline_touch(db, order->id, p);
    }
    if (order->state.access == MDL_ORDER_ACTIVE &&
        (rv = mdl_email_release(db, order->shop_id, order->id, p)) == APR_SUCCESS) {
        rv = mdl_license_fill_order(db, order->id, &given, p);
    }
    if (rv == APR_SUCCESS) {
        rv = fraud_add_entry(db, order, result, NULL, given, p);
    }
    return rv == APR_SUCCESS && order->state.access == MDL_ORDER_ACTIVE
               ? fraud_notify(db, order, MDL_EVENT_ORDER_APPROVED, result, p)
               : rv;
}

apr_status_t mdl_fraud_recheck(mdl_db_t *db, const mdl_fraud_rules_t *rules, apr_int64_t order_id,
                               apr_pool_t *p)
{
    fraud_order_t order = {.id = order_id};
    fraud_result_t result;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_LOCK_BY_ID, order_id))) != APR_SUCCESS ||
        (rv = fraud_read_order(db, &order, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!order.pending) {
        return APR_SUCCESS;
    }
    rv = fraud_inspect(db, rules, &order, 1, &result, p);
    return rv == APR_SUCCESS ? end_wait(db, &order, &result, p) : rv;
}
