/*
 * Download sessions of a file: when they take a download, give it back, count it, or are refused.
 */
#include "t/unit/sessions.h"

#define SIZE 1000

static apr_int64_t file;
static apr_uint64_t sold_version = 1;

static mdl_signed_file_t buy(const char *order_id, const char *product, apr_pool_t *p)
{
    return (mdl_signed_file_t){.assignment_id = buy_all(order_id, product, ids_of(p, 1, file), p),
                               .asset_id = file};
}

static mdl_session_begin_t begin(const mdl_signed_file_t *link, int limit, int whole, apr_pool_t *p)
{
    mdl_session_begin_t session = {.link = link,
                                   .layout = layout_of_file(link->asset_id, SIZE, sold_version, p),
                                   .etag = sold_version == 1 ? "\"one\"" : "\"two\"",
                                   .size = SIZE,
                                   .limit = limit,
                                   .whole = whole};

    begin_session(&session, p);
    return session;
}

/* Begins and ends a transfer; returns the entitlement. */
static mdl_entitlement_t fetch(const mdl_signed_file_t *link, int limit, const char *ranges,
                               apr_int64_t bytes, apr_pool_t *p)
{
    mdl_session_begin_t session = begin(link, limit, bytes >= SIZE, p);

    if (session.entitlement == MDL_ENTITLEMENT_OK) {
        settle(&session, ranges, bytes, p);
    }
    return session.entitlement;
}

/* The number of downloads of a limit that are left; uses them up. */
static int left(const mdl_signed_file_t *bought, int limit, apr_pool_t *p)
{
    int n = 0;

    while (n <= limit && begin(link_to(bought, p), limit, 0, p).entitlement == MDL_ENTITLEMENT_OK) {
        n++;
    }
    return n;
}

static void test_counting(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("1", PRODUCT("1"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    is_int(fetch(link, 4, "0-499", 500, p), MDL_ENTITLEMENT_OK, "a half can be downloaded");
    is_int(status(link, p), MDL_SESSION_OPEN, "a half leaves its session open");
    fetch(link, 4, "500-999", 500, p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "a session with both halves is counted");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "a counted session stays counted when it is idle");
    is_int(begin(link, 4, 0, p).generation, 1, "a later part belongs to the same session");
    is_int(begin(link, 4, 1, p).generation, 2, "downloading the whole again is another session");
    is_int(left(&bought, 4, p), 2, "two of four downloads are used");
}

static void test_giving_back(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("2", PRODUCT("2"), p);
    mdl_signed_file_t *first = link_to(&bought, p), *second = link_to(&bought, p);

    fetch(first, 1, "0-899", 900, p);
    is_int(fetch(second, 1, "", 0, p), MDL_ENTITLEMENT_EXHAUSTED,
           "an open session keeps its download");
    sweep(p);
    is_int(status(first, p), MDL_SESSION_RETURNED, "an idle session gives its download back");
    is_int(fetch(second, 1, "0-99", 100, p), MDL_ENTITLEMENT_OK,
           "another session can take that download");
    is_int(fetch(first, 1, "", 0, p), MDL_ENTITLEMENT_EXHAUSTED,
           "the first session can't continue meanwhile");
    sweep(p);
    is_int(fetch(first, 1, "890-999", 110, p), MDL_ENTITLEMENT_OK,
           "the first session can continue when the download is given back");
    is_int(status(first, p), MDL_SESSION_COUNTED, "it is whole together with its earlier bytes");
    is_int(left(&bought, 1, p), 0, "it has used the download");
}

static void test_joining(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("3", PRODUCT("3"), p);
    mdl_signed_file_t *later = link_to(&bought, p);

    fetch(link_to(&bought, p), 2, "0-499", 500, p);
    sweep(p);
    sold_version = 2;
    fetch(later, 2, "500-999", 500, p);
    is_int(status(later, p), MDL_SESSION_OPEN, "halves of two versions do not make a whole");
    sweep(p);
    fetch(later, 2, "0-499", 500, p);
    is_int(status(later, p), MDL_SESSION_COUNTED, "halves of one version make a whole");
    sold_version = 1;
    is_int(left(&bought, 2, p), 1, "they use one download");
}

static void test_caps(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("4", PRODUCT("4"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t running;
    int n = 0;

    running = begin(link, 0, 0, p);
    is_int(begin(link, 0, 1, p).entitlement, MDL_ENTITLEMENT_UNSETTLED,
           "a request for the whole waits while a running transfer may complete it");
    settle(&running, "0-9", 10, p);
    while (n < 30 && begin(link, 0, 0, p).entitlement == MDL_ENTITLEMENT_OK) {
        n++;
    }
    is_int(n, MDL_SESSION_TRANSFERS, "the number of simultaneous transfers is limited");
    is_int(begin(link, 0, 0, p).entitlement, MDL_ENTITLEMENT_UNSETTLED,
           "a further transfer has to wait");

    link = link_to(&bought, p);
    for (n = 0; n < 10 && fetch(link, 0, "0-898", 899, p) == MDL_ENTITLEMENT_OK; n++) {
    }
    is_int(n, 4, "a session may send three times the size");
    is_int(fetch(link, 0, "", 0, p), MDL_ENTITLEMENT_CAPPED,
           "a request beyond that is refused as capped");
    atomic_fetch_add(&clock_ahead, DAY);
    is_int(fetch(link, 0, "", 0, p), MDL_ENTITLEMENT_LINK_OLD, "the link is too old after a day");
}

static void test_lost(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("5", PRODUCT("5"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t lost = begin(link, 1, 1, p);
    apr_array_header_t *moved = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_lease_tick_t tick = {
        .id = "lease", .leased_until = apr_time_now() + MDL_LEASE_TIME, .progress = moved};
    mdl_lease_sweep_t settled = {.idle = IDLE, .limit = 100};

    APR_ARRAY_PUSH(moved, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = lost.transfer_id,
        .files = mdl_progress_of(lost.layout, mdl_coverage_read("0-799", p), p),
        .bytes = 800};
    mdl_db_write(db, mdl_lease_renew_effect, &tick, p);
    mdl_db_write(db, mdl_lease_sweep_effect, &settled, p);
    is_int(last(link, p).bytes, 0, "the transfers of a live process are not settled");
    atomic_fetch_add(&clock_ahead, MDL_LEASE_TIME);
    mdl_db_write(db, mdl_lease_sweep_effect, &settled, p);
    is_str(mdl_coverage_text(
               APR_ARRAY_IDX(mdl_progress_read(last(link, p).files, p), 0, mdl_progress_t)
                   .part->ranges,
               p),
           "0-799", "the last progress of a lost transfer is settled");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "the lost transfer's download is given back");
    settle(&lost, "0-999", 1000, p);
    is_int(status(link, p), MDL_SESSION_COUNTED,
           "a transfer that was not lost after all is counted");
    is_int(left(&bought, 1, p), 0, "it takes its download again");
    settle(&lost, "0-999", 1000, p);
    is_int(last(link, p).bytes, 800, "settling a transfer again adds no bytes");
}

static void test_late(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("13", PRODUCT("13"), p);
    mdl_signed_file_t *other = link_to(&bought, p);
    mdl_session_begin_t slow = begin(link_to(&bought, p), 0, 1, p);

    settle(&slow, "0-799", 800, p);
    sweep(p);
    settle(&slow, "0-999", 1000, p);
    is_int(status(slow.link, p), MDL_SESSION_COUNTED,
           "a transfer that is completed late is counted");
    fetch(other, 0, "800-999", 200, p);
    sweep(p);
    is_int(status(other, p), MDL_SESSION_RETURNED,
           "the bytes it had given back do not complete another session");
}

/* An earlier session of a link keeps sending while its later one is idle. */
static void test_slow_beside_idle(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("15", PRODUCT("15"), p);
    mdl_signed_file_t *link = link_to(&bought, p), *other = link_to(&bought, p);
    mdl_session_begin_t slow = begin(link, 0, 0, p);
    mdl_session_sweep_t one = {.limit = 1};

    fetch(link, 0, "0-499", 500, p);
    fetch(link, 0, "500-999", 500, p);
    fetch(link, 0, "0-9", SIZE, p);
    atomic_fetch_add(&clock_ahead, 1);
    fetch(other, 0, "0-9", 10, p);
    atomic_fetch_add(&clock_ahead, IDLE + 1);
    mdl_db_write(db, mdl_lease_renew_effect,
                 &(mdl_lease_tick_t){.id = slow.lease_id,
                                     .leased_until = apr_time_now() + MDL_LEASE_TIME,
                                     .progress = ids_of(p, 0)},
                 p);
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "the idle one of a link's two sessions ends");
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(other, p), MDL_SESSION_RETURNED,
           "the sending one does not hold up the sweep of others");
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
    test_late(p);
    test_slow_beside_idle(p);
}

int main(void)
{
    return test_sessions(tests);
}
