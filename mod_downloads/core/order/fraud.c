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
#include "platform/risk.h"

#define REVOKED_MEDIUM 1

/* An order and all that a check looks at. */
typedef struct {
    apr_int64_t id;
    apr_int64_t shop_id;
    mdl_order_state_t state;
    const char *signals; /* of the check before, or NULL */
    int rated;           /* whether the storefront has told its opinion: risk */
    mdl_risk_t risk;
    const char *email; /* or NULL */
    mdl_risk_t hold_at;
    int has_storefront;
    int pending; /* the check before waited for it */
    int orders_of_customer;
    int orders_of_address;
    int orders_of_ip;
    int orders_refused;
} subject_t;

/* What it comes to. */
typedef struct {
    mdl_json_t *signals;
    mdl_risk_t level;
    int pending;
    apr_pool_t *pool;
} finding_t;

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

static apr_status_t read_subject(mdl_db_t *db, subject_t *subject, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(FRAUD_SUBJECT, subject->id));

    if (rv == APR_SUCCESS) {
        subject->shop_id = MDL_INT(row, fraud_subject, shop_id);
        subject->state.access = MDL_ENUM(row, fraud_subject, access_status, mdl_order_access_names);
        subject->state.decision = MDL_ENUM(row, fraud_subject, fraud_decision,
                                           mdl_fraud_decision_names);
        subject->signals = MDL_TEXT(row, fraud_subject, fraud_signals);
        subject->rated = !MDL_NULL(row, fraud_subject, storefront_risk);
        if (subject->rated) {
            subject->risk = MDL_ENUM(row, fraud_subject, storefront_risk, mdl_risk_names);
        }
        subject->email = MDL_TEXT(row, fraud_subject, email);
        subject->hold_at = MDL_ENUM(row, fraud_subject, hold_at, mdl_risk_names);
        subject->has_storefront = MDL_INT(row, fraud_subject, has_storefront) != 0;
        subject->pending = MDL_INT(row, fraud_subject, risk_pending) != 0;
    }
    return rv;
}

/* Nobody needs to know how far beyond twice the number a count goes. */
static apr_int64_t fraud_most(int number)
{
    return 2 * (apr_int64_t)number;
}

static apr_status_t fraud_count(mdl_db_t *db, const mdl_settings_t *settings, subject_t *subject,
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
              .most_revoked = fraud_most(REVOKED_MEDIUM), .id = subject->id));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, fraud_counts, subject, orders_of_customer, orders_of_address, orders_of_ip,
                 orders_refused);
    }
    return rv;
}

static void fraud_add(finding_t *finding, const char *code, mdl_risk_t level, const char *message)
{
    mdl_json_t *signal = mdl_json_add_object(finding->signals, NULL);

    mdl_json_add_string(signal, "code", code);
    mdl_json_add_string(signal, "level", mdl_risk_names[level]);
    mdl_json_add_string(signal, "message", message);
    if (level > finding->level) {
        finding->level = level;
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

/* "5 other orders", "10 or more other orders": what is behind it is the sentence's. */
static const char *orders_text(int orders, int number, apr_pool_t *p)
{
    return apr_psprintf(p, "%d%s other order%s", orders,
                        orders == fraud_most(number) ? " or more" : "", orders == 1 ? "" : "s");
}

static void look_at_count(finding_t *finding, const char *code, int orders, int number,
                          const char *whose, apr_interval_time_t window)
{
    apr_pool_t *p = finding->pool;

    if (number > 0 && orders >= number) {
        fraud_add(finding, code, orders >= fraud_most(number) ? MDL_RISK_HIGH : MDL_RISK_MEDIUM,
                  apr_psprintf(p, "%s %s in %s.", orders_text(orders, number, p), whose,
                               window_text(window, p)));
    }
}

static void look_at_counts(finding_t *finding, const mdl_settings_t *settings,
                           const subject_t *subject)
{
    apr_interval_time_t window = settings->fraud_window;
    int refused = subject->orders_refused;

    look_at_count(finding, "customer_orders", subject->orders_of_customer,
                  settings->fraud_customer_orders, "of this customer", window);
    look_at_count(finding, "address_orders", subject->orders_of_address,
                  settings->fraud_address_orders, "with this email address", window);
    look_at_count(finding, "ip_orders", subject->orders_of_ip, settings->fraud_ip_orders,
                  "from this IP address", window);
    if (refused >= REVOKED_MEDIUM) {
        fraud_add(finding, "revoked_orders",
                  refused >= fraud_most(REVOKED_MEDIUM) ? MDL_RISK_HIGH : MDL_RISK_MEDIUM,
                  apr_psprintf(finding->pool, "%s of this customer %s revoked or rejected.",
                               orders_text(refused, REVOKED_MEDIUM, finding->pool),
                               refused == 1 ? "was" : "were"));
    }
}

static void look_at_domain(finding_t *finding, const mdl_fraud_rules_t *rules,
                           const subject_t *subject)
{
    const char *domain = subject->email != NULL ? strchr(subject->email, '@') : NULL;
    apr_pool_t *p = finding->pool;

    if (domain == NULL) {
        return;
    }
    domain++;
    if (rules->disposable != NULL && mdl_domains_has(rules->disposable, domain)) {
        fraud_add(
            finding, "disposable_domain", MDL_RISK_MEDIUM,
            apr_pstrcat(p, "Email addresses of ", domain, " are thrown away after use.", NULL));
    }
    if (rules->blocked != NULL && mdl_domains_has(rules->blocked, domain)) {
        fraud_add(finding, "blocked_domain", MDL_RISK_HIGH,
                  apr_pstrcat(p, "The domain ", domain, " of the email address is blocked.", NULL));
    }
}

static void look_at_risk(finding_t *finding, const subject_t *subject, int asked)
{
    if (subject->rated) {
        if (subject->risk != MDL_RISK_NONE) {
            fraud_add(finding, "storefront_risk", subject->risk,
                      apr_psprintf(finding->pool, "The storefront rates the order's risk as %s.",
                                   mdl_risk_names[subject->risk]));
        }
    } else if (asked) {
        fraud_add(finding, "risk_unknown", MDL_RISK_LOW,
                  "The storefront did not tell the order's risk.");
    } else if (subject->has_storefront) {
        finding->pending = 1;
        fraud_add(finding, "risk_pending", MDL_RISK_NONE,
                  "The storefront's rating of the order's risk is awaited.");
    }
}

static apr_status_t fraud_inspect(mdl_db_t *db, const mdl_fraud_rules_t *rules, subject_t *subject,
                                  int asked, finding_t *finding, apr_pool_t *p)
{
    apr_status_t rv = fraud_count(db, rules->settings, subject, p);

    if (rv == APR_SUCCESS) {
        *finding = (finding_t){.signals = mdl_json_array(p), .pool = p};
        look_at_risk(finding, subject, asked);
        look_at_counts(finding, rules->settings, subject);
        look_at_domain(finding, rules, subject);
    }
    return rv;
}

static apr_status_t fraud_add_entry(mdl_db_t *db, const subject_t *subject,
                                    const finding_t *finding, const char *key_id,
                                    apr_int64_t license_keys, apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_timeline_entry_t entry = {
        .action = subject->state.decision == MDL_FRAUD_HELD ? "fraud_held" : "fraud_passed",
        .key_id = key_id};

    mdl_json_add_string(details, "level", mdl_risk_names[finding->level]);
    mdl_json_add_copy(details, "signals", finding->signals);
    if (license_keys > 0) {
        mdl_json_add_int(details, "license_keys", license_keys);
    }
    entry.details = mdl_json_text(details, NULL, p);
    return mdl_timeline_add(db, subject->id, &entry, p);
}

/* That the order is held, or not any more. */
static apr_status_t fraud_notify(mdl_db_t *db, const subject_t *subject, mdl_event_type_t type,
                                 const finding_t *finding, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = subject->shop_id, .type = type, .order_id = subject->id};

    mdl_json_add_string(data, "access_status", mdl_order_access_names[subject->state.access]);
    mdl_json_add_string(data, "fraud_level", mdl_risk_names[finding->level]);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

/* Stores the subject as it is to be, with what was found. */
static apr_status_t fraud_store(mdl_db_t *db, const subject_t *subject, const finding_t *finding,
                                apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(FRAUD_RESULT,
                             .access_status = mdl_order_access_names[subject->state.access],
                             .fraud_decision = mdl_fraud_decision_names[subject->state.decision],
                             .fraud_level = mdl_risk_names[finding->level],
                             .fraud_signals = mdl_json_text(finding->signals, NULL, p),
                             .risk_pending = finding->pending, .id = subject->id));
}

static int is_to_be_held(const subject_t *subject, const finding_t *finding)
{
    return finding->pending || finding->level >= subject->hold_at;
}

static int is_news(const subject_t *subject, const finding_t *finding,
                   const mdl_order_state_t *state, apr_pool_t *p)
{
    return subject->state.decision != state->decision || subject->signals == NULL ||
           strcmp(subject->signals, mdl_json_text(finding->signals, NULL, p)) != 0;
}

/* What is to be told of a check. */
struct mdl_fraud_news_t {
    subject_t subject;
    finding_t finding;
    int is_hold; /* that of an order which was not held before */
};

static mdl_fraud_news_t *news_make(const subject_t *subject, const finding_t *finding, int is_hold,
                                   apr_pool_t *p)
{
    mdl_fraud_news_t *news = apr_palloc(p, sizeof *news);

    *news = (mdl_fraud_news_t){.subject = *subject, .finding = *finding, .is_hold = is_hold};
    return news;
}

static apr_status_t fraud_decide(mdl_db_t *db, mdl_fraud_check_t *check, subject_t *subject,
                                 const finding_t *finding, apr_pool_t *p)
{
    int holds = is_to_be_held(subject, finding);
    int was_held = subject->state.access == MDL_ORDER_HELD;
    mdl_order_state_t state = subject->state;
    apr_status_t rv;

    mdl_order_step(&state, holds ? MDL_ORDER_CHECK_HOLDS : MDL_ORDER_CHECK_PASSES, NULL);
    check->held = state.access == MDL_ORDER_HELD;
    check->pending = finding->pending;
    if ((was_held && !holds) || !is_news(subject, finding, &state, p)) {
        return APR_SUCCESS;
    }
    subject->state = state;
    check->news = news_make(subject, finding, check->held && !was_held, p);
    rv = fraud_store(db, subject, finding, p);
    return rv == APR_SUCCESS && holds && !was_held ? mdl_email_hold(db, subject->id, p) : rv;
}

apr_status_t mdl_fraud_check(mdl_db_t *db, mdl_fraud_check_t *check, apr_pool_t *p)
{
    subject_t subject = {.id = check->order_id};
    finding_t finding;
    apr_status_t rv;

    check->held = check->pending = 0;
    check->news = NULL;
    if ((rv = read_subject(db, &subject, p)) != APR_SUCCESS) {
        return rv;
    }
    if (subject.state.decision == MDL_FRAUD_APPROVED) {
        return APR_SUCCESS;
    }
    rv = fraud_inspect(db, check->rules, &subject, 0, &finding, p);
    return rv == APR_SUCCESS ? fraud_decide(db, check, &subject, &finding, p) : rv;
}

apr_status_t mdl_fraud_tell(mdl_db_t *db, const mdl_fraud_check_t *check, apr_pool_t *p)
{
    const mdl_fraud_news_t *news = check->news;
    apr_status_t rv;

    if (news == NULL) {
        return APR_SUCCESS;
    }
    rv = fraud_add_entry(db, &news->subject, &news->finding, check->key_id, 0, p);
    return rv == APR_SUCCESS && news->is_hold
               ? fraud_notify(db, &news->subject, MDL_EVENT_ORDER_HELD, &news->finding, p)
               : rv;
}

/* A hold by the rest of the signals stays, until somebody decides. */
static apr_status_t end_wait(mdl_db_t *db, subject_t *subject, const finding_t *finding,
                             apr_pool_t *p)
{
    int was_held = subject->state.decision == MDL_FRAUD_HELD;
    apr_int64_t given = 0;
    apr_status_t rv;

    if (!is_to_be_held(subject, finding)) {
        mdl_order_step(&subject->state, MDL_ORDER_ANSWER_PASSES, NULL);
    }
    if ((rv = fraud_store(db, subject, finding, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!was_held) {
        return mdl_timeline_touch(db, subject->id, p);
    }
    if (subject->state.access == MDL_ORDER_ACTIVE &&
        (rv = mdl_email_release(db, subject->shop_id, subject->id, p)) == APR_SUCCESS) {
        rv = mdl_license_fill_order(db, subject->id, &given, p);
    }
    if (rv == APR_SUCCESS) {
        rv = fraud_add_entry(db, subject, finding, NULL, given, p);
    }
    return rv == APR_SUCCESS && subject->state.access == MDL_ORDER_ACTIVE
               ? fraud_notify(db, subject, MDL_EVENT_ORDER_APPROVED, finding, p)
               : rv;
}

apr_status_t mdl_fraud_recheck(mdl_db_t *db, const mdl_fraud_rules_t *rules, apr_int64_t order_id,
                               apr_pool_t *p)
{
    subject_t subject = {.id = order_id};
    finding_t finding;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mdl_db_select_one(db, &row, p, MDL_Q(ORDER_LOCK_BY_ID, order_id))) != APR_SUCCESS ||
        (rv = read_subject(db, &subject, p)) != APR_SUCCESS) {
        return rv;
    }
    if (!subject.pending) {
        return APR_SUCCESS;
    }
    rv = fraud_inspect(db, rules, &subject, 1, &finding, p);
    return rv == APR_SUCCESS ? end_wait(db, &subject, &finding, p) : rv;
}
