/*
 * Download sessions: what they take, give back, count and refuse.
 */
#include "t/unit/fixtures.h"

#include "core/meter.h"

#define SIZE 1000
#define IDLE apr_time_from_sec(600)
#define DAY  apr_time_from_sec(86400)

static mdl_db_t *db;
static mdl_secret_t *secret;
static apr_int64_t shop, file;
static const char *etag = "\"one\"";

static mdl_capability_file_t buy(const char *order_id, const char *product, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, product);

    make_mapping(db, new_mapping(shop, product, ids_of(p, 1, file), p), p);
    if (mdl_db_write(db, mdl_order_assign, assign, p) != APR_SUCCESS) {
        printf("Bail out! assign: %s\n", mdl_db_error(db));
        exit(2);
    }
    return (mdl_capability_file_t){
        .assignment_id = APR_ARRAY_IDX(assign->order->assignments, 0, mdl_assignment_t *)->id,
        .asset_id = file};
}

static mdl_capability_file_t *link_to(const mdl_capability_file_t *bought, apr_pool_t *p)
{
    mdl_capability_file_t *link = apr_pmemdup(p, bought, sizeof *bought);

    mdl_capability_file(secret, link, p);
    return link;
}

static mdl_session_begin_t begin(const mdl_capability_file_t *link, int limit, int whole,
                                 apr_pool_t *p)
{
    mdl_session_begin_t session = {.link = link,
                                   .files = ids_of(p, 1, link->asset_id),
                                   .limit = limit,
                                   .etag = etag,
                                   .size = SIZE,
                                   .whole = whole,
                                   .patient = 1,
                                   .lifetime = DAY,
                                   .idle = IDLE,
                                   .meter_id = "meter",
                                   .leased_until = apr_time_now() + MDL_METER_LEASE,
                                   .transfer_id = mdl_random_base62(22, p)};

    if (mdl_session_begin(db, &session, p) != APR_SUCCESS) {
        printf("Bail out! begin: %s\n", mdl_db_error(db));
        exit(2);
    }
    return session;
}

static void settle(const mdl_session_begin_t *session, const char *ranges, apr_int64_t bytes,
                   apr_pool_t *p)
{
    apr_array_header_t *one = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t all = {.deliveries = one, .idle = IDLE};

    APR_ARRAY_PUSH(one, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = session->transfer_id,
        .session_id = session->link->session,
        .generation = session->generation,
        .ranges = ranges,
        .bytes = bytes};
    if (mdl_db_write(db, mdl_session_settle, &all, p) != APR_SUCCESS) {
        printf("Bail out! settle: %s\n", mdl_db_error(db));
        exit(2);
    }
}

/* Begins and ends a transfer; returns the verdict. */
static mdl_session_verdict_t fetch(const mdl_capability_file_t *link, int limit, const char *ranges,
                                   apr_int64_t bytes, apr_pool_t *p)
{
    mdl_session_begin_t session = begin(link, limit, bytes >= SIZE, p);

    if (session.verdict == MDL_SESSION_BEGUN) {
        settle(&session, ranges, bytes, p);
    }
    return session.verdict;
}

static void sweep(apr_pool_t *p)
{
    mdl_session_sweep_t idle = {.limit = 100};

    atomic_fetch_add(&clock_ahead, IDLE + 1);
    mdl_db_write(db, mdl_session_sweep, &idle, p);
}

static mdl_session_status_t status(const mdl_capability_file_t *link, apr_pool_t *p)
{
    mdl_session_t session = {0};

    mdl_session_find(db, link->session, &session, p);
    return session.status;
}

/* How many downloads could be had more, of a limit. */
static int left(const mdl_capability_file_t *bought, int limit, apr_pool_t *p)
{
    int n = 0;

    while (n <= limit && begin(link_to(bought, p), limit, 0, p).verdict == MDL_SESSION_BEGUN) {
        n++;
    }
    return n;
}

static void test_counting(apr_pool_t *p)
{
    mdl_capability_file_t bought = buy("1", PRODUCT("1"), p);
    mdl_capability_file_t *link = link_to(&bought, p);

    is_int(fetch(link, 4, "0-499", 500, p), MDL_SESSION_BEGUN, "a half");
    is_int(status(link, p), MDL_SESSION_OPEN, "leaves its session open");
    fetch(link, 4, "500-999", 500, p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "both are counted");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "for good");
    is_int(begin(link, 4, 0, p).generation, 1, "a part after that is of the same session");
    is_int(begin(link, 4, 1, p).generation, 2, "the whole is another one");
    is_int(left(&bought, 4, p), 2, "two of four are used");
}

static void test_giving_back(apr_pool_t *p)
{
    mdl_capability_file_t bought = buy("2", PRODUCT("2"), p);
    mdl_capability_file_t *first = link_to(&bought, p), *second = link_to(&bought, p);

    fetch(first, 1, "0-899", 900, p);
    is_int(fetch(second, 1, "", 0, p), MDL_SESSION_EXHAUSTED, "an open session holds its download");
    sweep(p);
    is_int(status(first, p), MDL_SESSION_RETURNED, "one that is idle gives it back");
    is_int(fetch(second, 1, "0-99", 100, p), MDL_SESSION_BEGUN, "to another one");
    is_int(fetch(first, 1, "", 0, p), MDL_SESSION_EXHAUSTED, "and does not go on meanwhile");
    sweep(p);
    is_int(fetch(first, 1, "890-999", 110, p), MDL_SESSION_BEGUN, "later it does");
    is_int(status(first, p), MDL_SESSION_COUNTED, "and is whole with what it had given");
    is_int(left(&bought, 1, p), 0, "which uses the download");
}

static void test_joining(apr_pool_t *p)
{
    mdl_capability_file_t bought = buy("3", PRODUCT("3"), p);
    mdl_capability_file_t *last = link_to(&bought, p);

    fetch(link_to(&bought, p), 2, "0-499", 500, p);
    sweep(p);
    etag = "\"two\"";
    fetch(last, 2, "500-999", 500, p);
    is_int(status(last, p), MDL_SESSION_OPEN, "halves of two versions are no whole");
    sweep(p);
    fetch(last, 2, "0-499", 500, p);
    is_int(status(last, p), MDL_SESSION_COUNTED, "halves of one are");
    etag = "\"one\"";
    is_int(left(&bought, 2, p), 1, "and one download");
}

static void test_caps(apr_pool_t *p)
{
    mdl_capability_file_t bought = buy("4", PRODUCT("4"), p);
    mdl_capability_file_t *link = link_to(&bought, p);
    mdl_session_begin_t running;
    int n = 0;

    running = begin(link, 0, 0, p);
    is_int(begin(link, 0, 1, p).verdict, MDL_SESSION_UNSETTLED,
           "the whole waits for what may make it whole");
    settle(&running, "0-9", 10, p);
    while (n < 30 && begin(link, 0, 0, p).verdict == MDL_SESSION_BEGUN) {
        n++;
    }
    is_int(n, MDL_SESSION_TRANSFERS, "so many transfers run at once");
    is_int(begin(link, 0, 0, p).verdict, MDL_SESSION_CROWDED, "one more has to wait");

    link = link_to(&bought, p);
    for (n = 0; n < 10 && fetch(link, 0, "0-898", 899, p) == MDL_SESSION_BEGUN; n++) {
    }
    is_int(n, 4, "a session ends at three times its size");
    is_int(fetch(link, 0, "", 0, p), MDL_SESSION_CAPPED, "and says so");
    atomic_fetch_add(&clock_ahead, DAY);
    is_int(fetch(link, 0, "", 0, p), MDL_SESSION_OVER, "a day later it is over");
}

static void test_lost(apr_pool_t *p)
{
    mdl_capability_file_t bought = buy("5", PRODUCT("5"), p);
    mdl_capability_file_t *link = link_to(&bought, p);
    mdl_session_begin_t lost = begin(link, 1, 1, p);
    apr_array_header_t *moved = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_meter_tick_t tick = {
        .id = "meter", .leased_until = apr_time_now() + MDL_METER_LEASE, .progress = moved};
    mdl_meter_sweep_t settled = {.idle = IDLE, .limit = 100};
    mdl_session_t session = {0};

    APR_ARRAY_PUSH(moved, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = lost.transfer_id, .ranges = "0-799", .bytes = 800};
    mdl_db_write(db, mdl_meter_renew, &tick, p);
    mdl_db_write(db, mdl_meter_sweep, &settled, p);
    mdl_session_find(db, link->session, &session, p);
    is_int(session.bytes, 0, "what a live process sends is left to it");
    atomic_fetch_add(&clock_ahead, MDL_METER_LEASE);
    mdl_db_write(db, mdl_meter_sweep, &settled, p);
    mdl_session_find(db, link->session, &session, p);
    is_str(session.ranges, "0-799", "of a lost one the last progress is settled");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "and given back");
    settle(&lost, "0-999", 1000, p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "one that was not lost after all is counted");
    is_int(left(&bought, 1, p), 0, "and takes its download");
    settle(&lost, "0-999", 1000, p);
    mdl_session_find(db, link->session, &session, p);
    is_int(session.bytes, 800, "what is settled again adds no bytes");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    file = make_asset(db, shop, "a.pdf", 1, p);
    test_counting(p);
    test_giving_back(p);
    test_joining(p);
    test_caps(p);
    test_lost(p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    on_each_database(tests, p);
    return tap_end(p);
}
