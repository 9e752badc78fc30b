/*
 * The parts of the fraud check that no request can test: the wait for the storefront's answer, and
 * orders that are checked at the same time.  t/api/fraud.t tests what a shop sees.
 */
#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"

#include "base/http/address.h"
#include "core/order/access.h"
#include "core/order/timeline.h"
#include "core/order/fraud.h"
#include "core/catalog/license.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static apr_int64_t shop;
static mdl_fraud_rules_t rules;

static void command(const char *sql)
{
    if (mdl_db_command(db, sql) != APR_SUCCESS) {
        printf("Bail out! %s: %s\n", sql, mdl_db_error(db));
        exit(2);
    }
}

static mdl_order_assign_t *to_check(const char *order_id, const char *customer_id,
                                    const char *email, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, PRODUCT("1"));

    assign->customer = (mdl_customer_t){.storefront_customer_id = customer_id, .email = email};
    assign->fraud_check = 1;
    assign->fraud_rules = &rules;
    assign->send_email = 1;
    return assign;
}

static mdl_order_t *checked(const char *order_id, const char *customer_id, const char *email,
                            apr_pool_t *p)
{
    mdl_order_assign_t *assign = to_check(order_id, customer_id, email, p);

    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        printf("Bail out! order %s: %s\n", order_id, mdl_db_error(db));
        exit(2);
    }
    return assign->order;
}

static mdl_order_t *find(const char *order_id, apr_pool_t *p)
{
    mdl_order_find_t find = {.shop_id = shop, .storefront_order_id = order_id, .with_timeline = 1};

    return mdl_db_read(db, mdl_order_find_effect, &find, p) == APR_SUCCESS ? find.order : NULL;
}

static int assignment_keys(const mdl_order_t *order)
{
    return APR_ARRAY_IDX(order->assignments, 0, mdl_assignment_t *)->license_keys->nelts;
}

/* "access decision level codes … events …", the events newest first. */
static const char *state(const char *order_id, apr_pool_t *p)
{
    mdl_order_t *order = find(order_id, p);
    mdl_json_t *signals;
    const char *why;
    char *text = apr_pstrcat(p, mdl_order_access_names[order->state.access], " ",
                             mdl_fraud_decision_names[order->state.decision], " ",
                             mdl_risk_names[order->fraud_level], NULL);

    mdl_json_parse(&signals, order->fraud_signals, strlen(order->fraud_signals),
                   MDL_JSON_MAX_VALUES, &why, p);
    for (apr_size_t i = 0; i < mdl_json_length(signals); i++) {
        text = apr_pstrcat(p, text, " ",
                           mdl_json_string(mdl_json_member(mdl_json_element(signals, i), "code")),
                           NULL);
    }
    text = apr_pstrcat(p, text, " /", NULL);
    for (int i = 0; i < order->timeline->nelts; i++) {
        text = apr_pstrcat(p, text, " ",
                           APR_ARRAY_IDX(order->timeline, i, mdl_timeline_entry_t *)->action, NULL);
    }
    return text;
}

static apr_status_t recheck(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_fraud_recheck(in, &rules, *(apr_int64_t *)arg, p);
}

/* The storefront's answer about an order: "'low'", or "NULL" if there will be none. */
static void answer(const mdl_order_t *order, const char *risk, apr_pool_t *p)
{
    apr_int64_t id = order->id;

    command(apr_psprintf(p, "UPDATE orders SET storefront_risk = %s WHERE id = %" APR_INT64_T_FMT,
                         risk, id));
    is_int(mdl_db_write(db, recheck, &id, p), APR_SUCCESS, "the order is checked again");
}

static apr_status_t decide(mdl_effect_fn *effect, const char *order_id, apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_access_t access = {
        .shop_id = shop, .storefront_order_id = order_id, .key_id = "key", .problem = &problem};

    return mdl_db_write(db, effect, &access, p);
}

static void test_wait(apr_pool_t *p)
{
    mdl_order_t *order;

    command("UPDATE shop SET storefront_url = 'https://shopfront.test'");
    order = checked("10", "10", "ten@example.test", p);
    is_str(state("10", p), "held held none risk_pending / fraud_held assigned",
           "an order waits for the storefront's answer");
    is_int(order->email.status, MDL_EMAIL_HELD, "its email is held, too");
    is_int(assignment_keys(order), 0, "it has no license key yet");
    answer(order, "'low'", p);
    is_str(state("10", p), "active passed low storefront_risk / fraud_passed fraud_held assigned",
           "a low risk releases it");
    order = find("10", p);
    is_int(order->email.status, MDL_EMAIL_QUEUED, "its email is queued");
    is_int(assignment_keys(order), 1, "it gets its license key");
    answer(order, "'high'", p);
    is_str(state("10", p), "active passed low storefront_risk / fraud_passed fraud_held assigned",
           "a second answer changes nothing");

    order = checked("11", "11", "eleven@example.test", p);
    answer(order, "'high'", p);
    is_str(state("11", p), "held held high storefront_risk / fraud_held fraud_held assigned",
           "a high risk keeps an order held");
    is_int(find("11", p)->email.status, MDL_EMAIL_HELD, "a high risk keeps its email held");

    order = checked("12", "12", "twelve@example.test", p);
    answer(order, "'none'", p);
    is_str(state("12", p), "active passed none / fraud_passed fraud_held assigned",
           "the risk \"none\" gives no signal");
    order = checked("13", "13", "thirteen@example.test", p);
    answer(order, "NULL", p);
    is_str(state("13", p), "active passed low risk_unknown / fraud_passed fraud_held assigned",
           "a missing answer gives a low level");
}

/* Someone else decides while the order waits for the storefront's answer. */
static void test_meanwhile(apr_pool_t *p)
{
    mdl_order_t *order = checked("20", "20", "twenty@example.test", p);

    decide(mdl_access_approve_effect, "20", p);
    answer(order, "'high'", p);
    is_str(state("20", p), "active approved high storefront_risk / approved fraud_held assigned",
           "an approved order stays approved");
    checked("20", "20", NULL, p);
    is_str(state("20", p), "active approved high storefront_risk / approved fraud_held assigned",
           "an approved order stays approved when it is assigned again");

    order = checked("21", "21", "one@example.test", p);
    decide(mdl_access_reject_effect, "21", p);
    answer(order, "'none'", p);
    is_str(state("21", p), "rejected rejected none / rejected fraud_held assigned",
           "a rejected order stays rejected");

    order = checked("22", "22", "two@example.test", p);
    decide(mdl_access_revoke_effect, "22", p);
    answer(order, "'none'", p);
    is_str(state("22", p), "revoked passed none / fraud_passed revoked fraud_held assigned",
           "a revoked order passes the check, and stays revoked");
    is_int(find("22", p)->email.status, MDL_EMAIL_HELD, "its email stays held");
    decide(mdl_access_restore_effect, "22", p);
    is_str(state("22", p), "active passed none / restored fraud_passed revoked fraud_held assigned",
           "restoring the order makes it active");
    is_int(find("22", p)->email.status, MDL_EMAIL_QUEUED, "restoring the order queues its email");
}

/* The number of emails that became due since the last call. */
static int new_jobs(apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_claim_t claim = {.lane = MDL_LANE_MAIL, .owner = "test", .limit = 100, .look = &look};
    int jobs = 0;

    if (mdl_db_write(db, mdl_job_claim_effect, &claim, p) != APR_SUCCESS) {
        return -1;
    }
    for (int i = 0; i < claim.jobs->nelts; i++) {
        jobs += APR_ARRAY_IDX(claim.jobs, i, mdl_job_t *)->attempts == 1;
    }
    return jobs;
}

/* A later check holds an order that had passed: its unsent email waits. */
static void test_held_later(apr_pool_t *p)
{
    mdl_order_assign_t *assign;

    command("UPDATE shop SET storefront_url = NULL");
    new_jobs(p);
    checked("30", "30", "thirty@example.test", p);
    is_str(state("30", p), "active passed none / fraud_passed assigned",
           "an order passes the check");
    command("UPDATE orders SET storefront_risk = 'high' WHERE storefront_order_id = '30'");
    assign = to_check("30", "30", NULL, p);
    mdl_db_write(db, mdl_order_assign_effect, assign, p);
    is_str(state("30", p), "held held high storefront_risk / fraud_held fraud_passed assigned",
           "the order is held when it is checked again");
    is_int(assign->order->email.status, MDL_EMAIL_HELD, "its queued email is held");
    is_int(new_jobs(p), 0, "a held email is not sent");
    command("UPDATE orders SET storefront_risk = 'none' WHERE storefront_order_id = '30'");
    checked("30", "30", NULL, p);
    is_str(state("30", p), "held held high storefront_risk / fraud_held fraud_passed assigned",
           "a later check does not release a held order");
    decide(mdl_access_approve_effect, "30", p);
    is_int(new_jobs(p), 1, "approving the order sends its email once");
}

static void test_addresses(apr_pool_t *p)
{
    is_str(mdl_address_text("192.0.2.7", p), "192.0.2.7", "an IPv4 address stays unchanged");
    is_str(mdl_address_text("::ffff:192.0.2.7", p), "192.0.2.7",
           "an IPv4-mapped IPv6 address becomes the IPv4 address");
    is_str(mdl_address_text("2001:DB8::1", p), "2001:0db8:0000:0000:0000:0000:0000:0001",
           "an IPv6 address is written out");
    ok(mdl_address_text("192.0.2", p) == NULL && mdl_address_text("192.0.2.256", p) == NULL &&
           mdl_address_text("", p) == NULL && mdl_address_text("fe80::1%eth0", p) == NULL &&
           mdl_address_text("[::1]", p) == NULL && mdl_address_text(" ::1", p) == NULL,
       "anything but an address is refused");
}

/* On PostgreSQL the second of two orders waits for the first, whichever value they share. */
static void test_at_once(const database_t *database, apr_pool_t *p)
{
    static const struct {
        const char *name;
        const char *customers[2];
        const char *emails[2];
        const char *ips[2];
        const char *state;
    } pairs[] = {
        {"a customer",
         {"50", "50"},
         {"a@one.test", NULL},
         {NULL, NULL},
         "customer_orders "
         "address_orders"},
        {"an email address",
         {"51", "52"},
         {"x@TWO.test", "X@two.test"},
         {NULL, NULL},
         "address_orders"},
        {"an IP address",
         {"53", "54"},
         {"b@one.test", "c@one.test"},
         {"192.0.2.1", "192.0.2.1"},
         "ip_orders"},
        {"a network",
         {"55", "56"},
         {"d@one.test", "e@one.test"},
         {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:0db8:0000:0000:ffff:0000:0000:0001"},
         "ip_orders"},
    };
    mdl_settings_t strict = *rules.settings;
    const mdl_settings_t *before = rules.settings;

    strict.fraud_customer_orders = strict.fraud_address_orders = strict.fraud_ip_orders = 1;
    rules.settings = &strict;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mdl_order_assign_t *assign[2];
        const char *last = "";

        for (int j = 0; j < 2; j++) {
            last = apr_psprintf(p, "%d", (int)(50 + 2 * i) + j);
            assign[j] = to_check(last, pairs[i].customers[j], pairs[i].emails[j], p);
            assign[j]->client_ip = pairs[i].ips[j];
        }
        if (database->dialect == MDL_PGSQL) {
            meets(db,
                  (meeting_t){database, mdl_order_assign_effect, assign[0], mdl_order_assign_effect,
                              assign[1], APR_SUCCESS, NULL, 0},
                  apr_pstrcat(p, "two orders share ", pairs[i].name, NULL), p);
        } else {
            mdl_db_write(db, mdl_order_assign_effect, assign[0], p);
            mdl_db_write(db, mdl_order_assign_effect, assign[1], p);
        }
        is_str(state(last, p),
               apr_pstrcat(p, "active passed medium ", pairs[i].state, " / fraud_passed assigned",
                           NULL),
               apr_pstrcat(p, "the second order of ", pairs[i].name, " counts the first", NULL));
    }
    rules.settings = before;
}

static void make_stock(apr_pool_t *p)
{
    mdl_license_tag_edit_t edit = {
        .ref = {.shop_id = shop, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))},
        .name = "stock",
        .low_stock_threshold = -1};
    mdl_license_add_t add = {.secret = make_secret('s', p), .keys = mdl_json_array(p)};
    mdl_mapping_put_t *put = new_mapping(shop, PRODUCT("1"), ids_of(p, 0), p);
    apr_int64_t tag;

    mdl_db_write(db, mdl_license_tag_create_effect, &edit, p);
    tag = ((mdl_license_tag_t *)edit.ref.entity)->id;
    for (int i = 0; i < 100; i++) {
        mdl_json_add_string((mdl_json_t *)add.keys, NULL, apr_psprintf(p, "KEY-%d", i));
    }
    add.ref = (mdl_entity_ref_t){
        .shop_id = shop, .id = tag, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    mdl_db_write(db, mdl_license_add_effect, &add, p);
    put->mapping.license_key_tag_ids = ids_of(p, 1, tag);
    make_mapping(db, put, p);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    rules = (mdl_fraud_rules_t){.settings = mdl_settings_create(p)};
    make_stock(p);
    test_wait(p);
    test_meanwhile(p);
    test_held_later(p);
    test_at_once(database, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_addresses(p);
    on_each_database(tests, p);
    return tap_end(p);
}
