/*
 * The main requests' reads of large tables: every statement reads few rows and pages, however many
 * there are, with or without PostgreSQL's statistics.  MDL_TEST_ROWS is the number of rows (`make
 * check-plans`: a million).
 */
#include "t/unit/reads.h"

#include <stdlib.h>

#include "core/audit.h"
#include "core/shop/event.h"
#include "core/download/download.h"
#include "core/order/attention.h"
#include "core/order/email_log.h"
#include "core/order/find_request.h"
#include "core/order/history.h"
#include "t/unit/effects.h"

static int analyzed; /* the tables were analyzed */

static const char *numbered(const char *prefix, int n, apr_pool_t *p)
{
    return apr_psprintf(p, "%s%d", prefix, n);
}

static void test_orders(apr_pool_t *p)
{
    mdl_order_find_t live = {.shop_id = 1, .storefront_order_id = numbered("o", rows / 4 * 4, p)};
    mdl_order_find_t pinned = {.shop_id = 1, .storefront_order_id = "o1", .with_timeline = 1};
    mdl_order_find_t page = {.page_id = numbered("page", rows / 2, p)};
    mdl_order_list_t first = {.page = {.shop_id = 1, .limit = 26}};
    mdl_order_list_t last = {.page = {.shop_id = 1, .limit = 26}, .filter = {.after = "10_10"}};
    mdl_order_list_t few = {.page = {.shop_id = 2, .limit = 26}};
    mdl_order_list_t brief = {.page = {.shop_id = 1, .limit = 26, .summary = 1}};

    live.shop_id = rows % 1000 == 0 ? 2 : 1;
    live.with_timeline = live.with_lookup = pinned.with_lookup = 1;
    reads_little(mdl_db_read, mdl_order_find_effect, &live, "an order", p);
    reads_little(mdl_db_read, mdl_order_find_effect, &pinned, "an order with pinned content", p);
    reads_little(mdl_db_read, mdl_order_find_effect, &page, "a page", p);
    reads_little(mdl_db_read, mdl_order_list_effect, &first, "the newest orders", p);
    reads_little(mdl_db_read, mdl_order_list_effect, &last, "the oldest orders", p);
    reads_little(mdl_db_read, mdl_order_list_effect, &few, "the orders of a small shop", p);
    reads_little(mdl_db_read, mdl_order_list_effect, &brief, "a summary of the newest orders", p);
}

/* Customer 1 has a tenth of all orders, a hundredth are revoked, the first text fits a ninth. */
static void test_search(apr_pool_t *p)
{
    static const char *const texts[] = {"o1", "o1001", "c1", "C1@Buyer.test", "nobody@buyer.test"};
    mdl_order_search_t search = {.filter = {.shop_id = 1, .limit = 50}};

    reads_little(mdl_db_read, mdl_order_search_effect, &search, "the newest orders, to look at", p);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        search.text = texts[i];
        reads_little(mdl_db_read, mdl_order_search_effect, &search,
                     apr_pstrcat(p, "orders are found by ", texts[i], NULL), p);
        ok((search.found->nelts > 0) == (texts[i][0] != 'n'), "  if there are any");
    }
    allowance = 20;
    search.filter.access = "revoked";
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        search.text = texts[i];
        reads_little(mdl_db_read, mdl_order_search_effect, &search,
                     apr_pstrcat(p, "those that are revoked, by ", texts[i], NULL), p);
    }
    allowance = 1;
    search.text = NULL;
    search.filter.access = "held";
    reads_little(mdl_db_read, mdl_order_search_effect, &search, "the orders to review: none", p);
}

/* All customers have "buyer.test", of which a thousand are looked at; c1000 is another shop's. */
static void test_find(apr_pool_t *p)
{
    static const char *const found[] = {"o1001",      "o",        "c1@buyer",
                                        "buyer.test", "buyer c1", "buyer.test bu b c buyer"};
    static const char *const absent[] = {"nobody", "buyer.test nobody", "c1000@buyer.test"};
    mdl_find_t find = {.shop_id = 1, .limit = 20};

    allowance = 6;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        find.text = found[i];
        reads_little(mdl_db_read, mdl_find_effect, &find,
                     apr_pstrcat(p, "a search for ", found[i], NULL), p);
        ok(find.orders->nelts > 0, "  it finds orders");
    }
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        find.text = absent[i];
        reads_little(mdl_db_read, mdl_find_effect, &find,
                     apr_pstrcat(p, "a search for ", absent[i], NULL), p);
        ok(find.orders->nelts + find.customers->nelts == 0, "  it finds nothing");
    }
    allowance = 1;
}

static apr_status_t find_orders_effect(mdl_db_t *on, apr_pool_t *p, void *orders)
{
    return mdl_find_orders(on, 1, "C1@buyer.test", MDL_FIND_ORDERS_MAX, orders, p);
}

static apr_status_t find_shop_effect(mdl_db_t *on, apr_pool_t *p, void *shop)
{
    return mdl_find_shop(on, p, shop);
}

static apr_status_t find_request_add_effect(mdl_db_t *on, apr_pool_t *p, void *request)
{
    return mdl_find_request_add(on, p, request);
}

static apr_status_t find_request_serve_effect(mdl_db_t *on, apr_pool_t *p, void *serve)
{
    return mdl_find_request_serve(on, p, serve);
}

/* Every tenth address of the requests had an email, and one in a hundred requests waits. */
static void test_find_requests(apr_pool_t *p)
{
    const mdl_secret_t *secret = mdl_secret_make("secret", 6, p);
    mdl_find_shop_t shop = {.domain = "one.test"};
    mdl_find_request_t request = {.shop_id = 1, .address = "c1@buyer.test", .secret = secret};
    mdl_find_serve_t serve = {.secret = secret, .limit = 20};
    apr_array_header_t *orders;

    reads_little(mdl_db_read, find_shop_effect, &shop, "a shop whose downloads are looked for", p);
    reads_little(mdl_db_write, find_request_add_effect, &request, "a request for them", p);
    reads_little(mdl_db_read, find_orders_effect, &orders, "the orders of an address", p);
    ok(orders->nelts > 40, "  it finds the newest"); /* a few are rows of shop 2 */
    mdl_db_command(db, "DELETE FROM find_request WHERE due_at IS NOT NULL AND address = 'sealed'");
    reads_little(mdl_db_write, find_request_serve_effect, &serve, "a request's email", p);
    is_int(serve.served, 1, "  it is queued");
}

/* Customer 1 has a tenth of all orders, all emails were sent, each order has its own product. */
static void test_filters(apr_pool_t *p)
{
    static const struct {
        const char *name;
        mdl_order_filter_t filter;
        int looks_far; /* it reads orders that don't match */
    } cases[] = {
        {"of a customer", {.customer = "c1"}, 0},
        {"of an address", {.email = "C1@Buyer.test"}, 0},
        {"of a customer that fit another filter", {.customer = "c1", .access = "active"}, 1},
        {"of a product", {.product = PRODUCT("5")}, 0},
        {"that are revoked", {.access = "revoked"}, 0},
        {"that are revoked, of a time", {.access = "revoked", .created_since = 5}, 0},
        {"that are active", {.access = "active"}, 1},
        {"that were changed", {.updated_since = 1}, 0},
        {"of a time", {.created_since = 10, .created_before = 1000}, 0},
        {"whose email failed: none", {.email_status = "failed"}, 1},
        {"whose email was sent", {.email_status = "sent"}, 1},
        {"whose email is held: none", {.email_status = "held"}, 1},
        {"whose access has ended: none", {.attention = "expired"}, 1},
        {"whose limit is reached: none", {.attention = "limit_reached"}, 1},
        {"that wait for files", {.attention = "preparing"}, 1},
        {"that wait for license keys", {.attention = "keys_owed"}, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdl_order_filter_t filter = cases[i].filter;

        filter.shop_id = 1;
        filter.limit = 25;
        allowance = cases[i].looks_far ? 20 : 1;
        reads_little(mdl_db_read, mdl_order_filter_effect, &filter,
                     apr_pstrcat(p, "orders ", cases[i].name, NULL), p);
        allowance = 1;
    }
}

static void test_job_pages(apr_pool_t *p)
{
    mdl_job_page_t page = {.page = {.shop_id = 1, .before_text = "~", .limit = 26}};

    reads_little(mdl_db_read, mdl_job_page_effect, &page, "the newest jobs", p);
    page.asset_id = 5;
    reads_little(mdl_db_read, mdl_job_page_effect, &page, "the jobs of an asset", p);
    page.asset_id = 0;
    page.status = "failed";
    reads_little(mdl_db_read, mdl_job_page_effect, &page, "the jobs that failed", p);
    page.status = "cancelled";
    allowance = 20;
    reads_little(mdl_db_read, mdl_job_page_effect, &page, "the jobs that were cancelled", p);
    allowance = 1;
}

static void test_assignments(apr_pool_t *p)
{
    mdl_order_assign_t *one = new_assignment(1, "new", p, 1, PRODUCT("1"));
    mdl_order_assign_t *more = new_assignment(1, "new", p, 3, PRODUCT("1"), PRODUCT("4"),
                                              PRODUCT("5"));

    one->send_email = more->send_email = 1;
    one->customer.email = "c1@buyer.test";
    one->client_ip = "10.0.0.1";
    reads_little(mdl_db_write, mdl_order_assign_effect, one, "an assignment", p);
    reads_little(mdl_db_write, mdl_order_assign_effect, more, "an assignment of more products", p);
}

static void test_access(apr_pool_t *p)
{
    mdl_access_t revoke = {.shop_id = 1,
                           .storefront_order_id = "o9",
                           .key_id = "key1",
                           .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    mdl_access_t restore = revoke;

    reads_little(mdl_db_write, mdl_access_revoke_effect, &revoke, "access is revoked", p);
    reads_little(mdl_db_write, mdl_access_restore_effect, &restore, "access is restored", p);
}

static mdl_entity_ref_t *entity(apr_int64_t id, apr_pool_t *p)
{
    mdl_entity_ref_t *ref = apr_pcalloc(p, sizeof *ref);

    *ref = (mdl_entity_ref_t){
        .shop_id = 1, .id = id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    return ref;
}

/* Every fourth pack is in its own mapping, the first in every mapping, of which any 500 are
   read. */
static void test_packs(apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_pack_edit_t one = {.ref = {.shop_id = 1, .id = 9, .problem = &problem},
                           .file_ids = ids_of(p, 3, 1LL, 9LL, 5LL)};
    mdl_pack_edit_t every = {.ref = {.shop_id = 1, .id = 1, .problem = &problem},
                             .file_ids = ids_of(p, 2, 1LL, 5LL)};

    reads_little(mdl_db_write, mdl_pack_change_effect, &one, "a pack of one mapping grows", p);
    allowance = 8;
    reads_little(mdl_db_write, mdl_pack_change_effect, &every, "a pack of all mappings grows", p);
    allowance = 1;
}

static void test_catalog(apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(1, PRODUCT("new"), ids_of(p, 2, 3LL, 5LL), p);
    mdl_mapping_put_t *again = new_mapping(1, PRODUCT("new"), ids_of(p, 2, 5LL, 6LL), p);
    mdl_mapping_list_t list = {.page = {.shop_id = 1, .before = APR_INT64_MAX, .limit = 25},
                               .is_active = -1};
    mdl_mapping_list_t of_product = list;
    mdl_mapping_list_t brief = list;

    mapping->mapping.pack_ids = ids_of(p, 1, 3LL);
    mapping->mapping.link_ids = ids_of(p, 1, 3LL);
    mapping->mapping.license_key_tag_ids = ids_of(p, 1, 3LL);
    of_product.storefront_product_id = PRODUCT("1");
    reads_little(mdl_db_write, mdl_mapping_put_effect, mapping, "a mapping", p);
    reads_little(mdl_db_write, mdl_mapping_put_effect, again, "a mapping put again", p);
    reads_little(mdl_db_read, mdl_mapping_list_effect, &list, "a list of mappings", p);
    reads_little(mdl_db_read, mdl_mapping_list_effect, &of_product,
                 "a list of a product's mappings", p);
    brief.page.summary = 1;
    reads_little(mdl_db_read, mdl_mapping_list_effect, &brief, "a summary of mappings", p);
    brief.is_active = 0;
    reads_little(mdl_db_read, mdl_mapping_list_effect, &brief, "a summary of paused mappings", p);
    reads_little(mdl_db_write, mdl_mapping_delete_effect, entity(1, p), "a mapping is deleted", p);
    reads_little(mdl_db_write, mdl_pack_delete_effect, entity(1, p), "deleting a pack is refused",
                 p);
    reads_little(mdl_db_write, mdl_asset_delete_effect, entity(1, p),
                 "deleting an asset is refused", p);
}

static void test_jobs(apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_claim_t claim = {.lane = MDL_LANE_MAIL, .owner = "node", .limit = 16, .look = &look};
    mdl_job_share_t share = {.running = apr_array_make(p, 1, sizeof(apr_int64_t)), .to = 32};
    mdl_job_list_t list = {.shop_id = 1, .limit = 25};
    mdl_job_list_t all = {.limit = 25};

    reads_little(mdl_db_write, mdl_job_claim_effect, &claim, "jobs are claimed", p);
    claim.share = &share;
    reads_little(mdl_db_write, mdl_job_claim_effect, &claim, "slots are shared between shops", p);
    reads_little(mdl_db_read, mdl_job_look_effect, &look, "due jobs are looked for", p);
    reads_little(mdl_db_read, mdl_job_list_effect, &list, "a list of a shop's jobs", p);
    reads_little(mdl_db_read, mdl_job_list_effect, &all, "a list of all jobs", p);
}

/* A tenth of all jobs is due. A thousand and one of a lane are counted. */
static void test_health(apr_pool_t *p)
{
    mdl_queue_t all = {0};
    mdl_queue_t own = {.shop_id = 1};
    mdl_webhook_failing_t failing = {.limit = 21};

    reads_little(mdl_db_read, mdl_webhook_failing_effect, &failing, "endpoints that fail", p);
    is_int(failing.found->nelts, 21, "  there are many");
    allowance = 3;
    reads_little(mdl_db_read, mdl_queue_read_effect, &all, "all that waits", p);
    reads_little(mdl_db_read, mdl_queue_read_effect, &own, "what waits of a shop", p);
    allowance = 1;
}

static apr_status_t audit_list_effect(mdl_db_t *on, apr_pool_t *p, void *list)
{
    return mdl_audit_list(on, p, list);
}

static apr_status_t email_log_effect(mdl_db_t *on, apr_pool_t *p, void *log)
{
    return mdl_email_log(on, p, log);
}

static apr_status_t attention_effect(mdl_db_t *on, apr_pool_t *p, void *attention)
{
    return mdl_attention_read(on, p, attention);
}

/* A tenth of all jobs and emails failed, too long ago to be shown; a quarter of the tags is low. */
static void test_attention(apr_pool_t *p)
{
    mdl_attention_t attention = {.shop_id = 1, .limit = 20};

    reads_little(mdl_db_read, attention_effect, &attention, "what needs somebody", p);
    is_int(attention.imports.found->nelts, 20, "  there are many imports");
    is_int(attention.emails.found->nelts, 20, "  there are many emails");
    is_int(attention.tags.found->nelts, 20, "  there are many tags");
    attention.shop_id = 2;
    reads_little(mdl_db_read, attention_effect, &attention, "what needs a small shop", p);
}

/* A tenth of the emails failed, a tenth waits, and most addresses begin alike. */
static void test_email_log(apr_pool_t *p)
{
    static const struct {
        const char *name;
        mdl_email_log_t log;
        int looks_far;
    } cases[] = {
        {"the newest emails", {.page.shop_id = 1}, 0},
        {"the oldest emails", {.page.shop_id = 1, .page.before = 60}, 0},
        {"emails that were sent", {.page.shop_id = 1, .fate = "sent"}, 0},
        {"emails that failed", {.page.shop_id = 1, .fate = "failed"}, 0},
        {"emails that came back: none", {.page.shop_id = 1, .fate = "bounced"}, 0},
        {"emails of an order", {.page.shop_id = 1, .text = "o5"}, 0},
        {"emails to an address", {.page.shop_id = 1, .text = "C5@buyer"}, 0},
        {"emails of an order to an address",
         {.page.shop_id = 1, .storefront_order_id = "o5", .address = "c"},
         0},
        {"emails to addresses that begin alike", {.page.shop_id = 1, .text = "c"}, 1},
        {"emails of a small shop", {.page.shop_id = 2}, 0},
        {"emails of a small shop that failed: none", {.page.shop_id = 2, .fate = "failed"}, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdl_email_log_t log = cases[i].log;

        log.page.before = log.page.before != 0 ? log.page.before : APR_INT64_MAX;
        log.page.limit = 50;
        allowance = cases[i].looks_far ? 20 : 1;
        reads_little(mdl_db_read, email_log_effect, &log, cases[i].name, p);
        allowance = 1;
    }
}

static void test_audit(apr_pool_t *p)
{
    mdl_audit_list_t list = {.page = {.shop_id = 1, .before = APR_INT64_MAX, .limit = 50}};

    reads_little(mdl_db_read, audit_list_effect, &list, "the newest of the audit", p);
    list.page.before = 10;
    reads_little(mdl_db_read, audit_list_effect, &list, "the oldest of the audit", p);
    list.page.before = APR_INT64_MAX;
    list.who = "nobody";
    reads_little(mdl_db_read, audit_list_effect, &list, "the audit of somebody", p);
    is_int(list.page.found->nelts, 0, "  who did nothing");
    ok(list.page.more, "  as far as was looked");
    list.who = NULL;
    list.page.shop_id = 2;
    reads_little(mdl_db_read, audit_list_effect, &list, "the audit of a small shop", p);
    list.page.shop_id = 0;
    reads_little(mdl_db_read, audit_list_effect, &list, "the audit of all shops", p);
}

/* A batch is 500 rows, whose references are looked up; half of all rows are old. */
static void test_prune(apr_pool_t *p)
{
    static const char *const names[MDL_PRUNE_TABLES] = {
        "old jobs go",      "old uploads go",         "older emails go",  "old events go",
        "old downloads go", "the audit's entries go", "stored answers go"};

    allowance = 4;
    for (mdl_prune_table_t i = 0; i < MDL_PRUNE_TABLES; i++) {
        mdl_prune_t prune = {.table = i, .before = rows / 2};

        reads_little(mdl_db_write, mdl_prune_effect, &prune, names[i], p);
    }
    allowance = 1;
}

static apr_status_t event_list_effect(mdl_db_t *on, apr_pool_t *p, void *list)
{
    return mdl_event_list(on, p, list);
}

static apr_status_t event_number_effect(mdl_db_t *on, apr_pool_t *p, void *number)
{
    return mdl_event_number(on, p, number);
}

static void test_events(apr_pool_t *p)
{
    mdl_event_list_t list = {.shop_id = 1, .limit = 100};
    mdl_event_number_t number = {.from = rows - 1000};

    reads_little(mdl_db_read, event_list_effect, &list, "the oldest events", p);
    is_int(list.found->nelts, 100, "  which are many");
    list.after = rows - 10;
    reads_little(mdl_db_read, event_list_effect, &list, "the newest events", p);
    list.shop_id = 2;
    list.after = 0;
    reads_little(mdl_db_read, event_list_effect, &list, "the events of a small shop", p);
    mdl_db_command(db, "UPDATE event SET number = id WHERE number IS NULL");
    mdl_db_command(db, "UPDATE event SET number = NULL"
                       " WHERE id > (SELECT max(id) - 3 FROM event)");
    reads_little(mdl_db_write, event_number_effect, &number, "the last events get a number", p);
    is_int(number.ids->nelts, 3, "  those that have none");
}

static apr_status_t events_effect(mdl_db_t *on, apr_pool_t *p, void *history)
{
    return mdl_history_timeline(on, p, history);
}

static apr_status_t downloads_effect(mdl_db_t *on, apr_pool_t *p, void *history)
{
    return mdl_history_downloads(on, p, history);
}

static apr_status_t emails_effect(mdl_db_t *on, apr_pool_t *p, void *history)
{
    return mdl_history_emails(on, p, history);
}

/* One order has all the history. */
static void test_history(apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_history_t history = {
        .page = {.shop_id = 1, .before = APR_INT64_MAX, .before_text = "~", .limit = 26},
        .storefront_order_id = "o4",
        .problem = &problem};
    mdl_order_find_t find = {.shop_id = 1, .storefront_order_id = "o4", .with_timeline = 1};

    mdl_db_command(db, "UPDATE order_timeline SET order_id = 4");
    mdl_db_command(db, "UPDATE email SET order_id = 4");
    mdl_db_command(db, "UPDATE download_session SET assignment_id = 4");
    reads_little(mdl_db_read, events_effect, &history, "the events of an order", p);
    is_int(history.page.found->nelts, 26, "  which has many");
    reads_little(mdl_db_read, downloads_effect, &history, "the downloads of an order", p);
    is_int(history.page.found->nelts, 26, "  which has many");
    reads_little(mdl_db_read, emails_effect, &history, "the emails of an order", p);
    is_int(history.page.found->nelts, 26, "  which has many");
    reads_little(mdl_db_read, mdl_order_find_effect, &find, "an order with a long history", p);
    history.page.before = rows / 2;
    history.page.before_text = apr_psprintf(p, "%d_1_link%d", rows / 2, rows / 2);
    reads_little(mdl_db_read, events_effect, &history, "older events", p);
    reads_little(mdl_db_read, downloads_effect, &history, "older downloads", p);
    is_int(APR_ARRAY_IDX(history.page.found, 0, const mdl_session_view_t *)->opened_at,
           rows / 2 - 1, "  the next one first");
    reads_little(mdl_db_read, emails_effect, &history, "older emails", p);
    test_prune(p);
}

static apr_status_t look(mdl_db_t *on, apr_pool_t *p, void *download)
{
    return mdl_download_look(on, download, p);
}

/* The first link is to an asset that is in every mapping and pack, the second to pinned content,
   the third to an archive. */
static void test_downloads(apr_pool_t *p)
{
    mdl_signed_file_t links[] = {
        {.session = "new", .assignment_id = 4, .asset_id = 1},
        {.session = "new", .assignment_id = 13, .asset_id = 2},
        {.session = "new", .assignment_id = 8},
    };
    mdl_session_sweep_t sweep = {.limit = 10};
    mdl_settings_t *settings = mdl_settings_create(p);
    mdl_rate_limit_t *limit;

    settings->rate_parts = 0;
    mdl_rate_limit_create(&limit, settings, p);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        mdl_download_t download = {
            .link = &links[i], .rate_limit = limit, .default_download_limit = 5};

        links[i].expires_at = apr_time_now() + apr_time_from_sec(60);
        reads_little(mdl_db_read, look, &download, numbered("download ", (int)i, p), p);
        is_int(download.entitlement, MDL_ENTITLEMENT_OK, "  the download is allowed");
    }
    reads_little(mdl_db_write, mdl_session_sweep_effect, &sweep, "idle sessions end", p);
}

/* If writes locked their shop's row, its concurrent writes would build up a list of lockers. */
static void test_shop_is_not_locked(const database_t *database)
{
    PGconn *pgsql = PQconnectdb(database->params);
    PGresult *result = PQexec(pgsql, "SELECT xmax FROM shop WHERE id = 1");

    is_str(PQgetvalue(result, 0, 0), "0", "no request has locked the shop's row");
    PQclear(result);
    PQfinish(pgsql);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    seed(database, rows, p);
    db = database_open(database, p);
    if (database->dialect == MDL_PGSQL) {
        begin_pgsql();
    }
    if (analyzed) {
        mdl_db_command(db, "ANALYZE");
    }
    test_orders(p);
    test_search(p);
    test_find(p);
    test_find_requests(p);
    test_filters(p);
    test_job_pages(p);
    test_assignments(p);
    test_access(p);
    test_downloads(p);
    test_catalog(p);
    test_jobs(p);
    test_health(p);
    test_audit(p);
    test_events(p);
    test_attention(p);
    test_email_log(p);
    if (database->dialect == MDL_PGSQL) {
        test_shop_is_not_locked(database);
    }
    test_packs(p);
    test_history(p);
}

int main(void)
{
    const char *many = getenv("MDL_TEST_ROWS");
    const char *server = getenv("MDL_TEST_PGSQL");
    apr_pool_t *p = tap_begin();

    rows = many != NULL ? atoi(many) : 4000;
    on_each_database(tests, p);
    analyzed = 1;
    if (server != NULL) {
        on_pgsql(server, tests, p);
    }
    return tap_end(p);
}
