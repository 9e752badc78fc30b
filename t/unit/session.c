/*
 * Download sessions of a file: when they take a download, give it back, count it, or are refused.
 */
#include "t/unit/meeting.h"
#include "t/unit/number.h"
#include "t/unit/sessions.h"

#include "core/ids.h"

#define SIZE 1000

static apr_int64_t file;
static apr_uint64_t sold_version = 1;
static int is_fresh; /* fresh_downloads of the mapping */

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
                                   .is_fresh = is_fresh,
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

    while (n < limit + 10 &&
           begin(link_to(bought, p), limit, 0, p).entitlement == MDL_ENTITLEMENT_OK) {
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

    mdl_session_begin_t running = begin(first, 1, 0, p);

    is_int(fetch(second, 1, "", 0, p), MDL_ENTITLEMENT_RUNNING,
           "a session that sends keeps its download");
    settle(&running, "0-899", 900, p);
    is_int(status(first, p), MDL_SESSION_OPEN, "one that has stopped may go on");
    running = begin(second, 1, 0, p);
    is_int(running.entitlement, MDL_ENTITLEMENT_OK, "unless another takes its download over");
    is_int(status(first, p), MDL_SESSION_RETURNED, "it is given back for that");
    is_int(fetch(first, 1, "", 0, p), MDL_ENTITLEMENT_RUNNING,
           "the first session can't continue meanwhile");
    settle(&running, "0-99", 100, p);
    sweep(p);
    is_int(status(second, p), MDL_SESSION_RETURNED, "an idle session gives its download back");
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

/* How many downloads of a limit are left of another version than was sold last. */
static int left_of_next(const mdl_signed_file_t *bought, int limit, apr_pool_t *p)
{
    sold_version++;
    return left(bought, limit, p);
}

static void test_fresh(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("20", PRODUCT("20"), p), plain = buy("21", PRODUCT("21"), p);
    mdl_signed_file_t early = buy("24", PRODUCT("24"), p);
    mdl_session_begin_t old;

    fetch(link_to(&early, p), 3, "", 0, p);
    is_int(left(&plain, 3, p), 3, "all downloads of a first version");
    is_int(left_of_next(&plain, 3, p), 0,
           "another version brings none, unless the mapping says so");
    is_fresh = 1;
    sold_version--;
    is_int(left(&plain, 3, p), 0, "nor do the same bytes, when the mapping begins to say so");
    is_int(left_of_next(&plain, 3, p), 3, "the next version does");

    sold_version--;
    fetch(link_to(&early, p), 3, "0-999", 1000, p);
    sweep(p);
    is_int(left(&early, 3, p), 2, "a download from before the mapping said so is given back");

    old = begin(link_to(&bought, p), 3, 0, p);
    fetch(link_to(&bought, p), 3, "0-999", 1000, p);
    sold_version++;
    fetch(link_to(&bought, p), 3, "0-999", 1000, p);
    settle(&old, "0-499", 500, p);
    sweep(p);
    is_int(left(&bought, 3, p), 2, "what an earlier version's download gives back is not counted");
    sweep(p);

    sold_version++;
    fetch(link_to(&bought, p), 3, "0-499", 500, p);
    sweep(p);
    is_int(left(&bought, 3, p), 3, "one of the same version gives its download back");
}

/* A link that gives its download back twice is charged once at most. */
static void test_fresh_again(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("22", PRODUCT("22"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    fetch(link, 1, "", 0, p);
    sweep(p);
    fetch(link, 1, "0-99", 100, p);
    sweep(p);
    fetch(link, 1, "", 0, p);
    sweep(p);
    is_int(fetch(link, 1, "100-999", 900, p), MDL_ENTITLEMENT_OK, "it may go on each time");
    is_int(status(link, p), MDL_SESSION_COUNTED, "  until it is whole");
    is_int(left(&bought, 1, p), 0, "  which uses one download");

    sold_version++;
    fetch(link_to(&bought, p), 2, "0-499", 500, p);
    sweep(p);
    sold_version++;
    fetch(link_to(&bought, p), 2, "0-999", 1000, p);
    sold_version--;
    link = link_to(&bought, p);
    fetch(link, 2, "500-999", 500, p);
    is_int(status(link, p), MDL_SESSION_OPEN, "what was kept of a version ends with its allowance");
    is_fresh = 0;
    sold_version = 1;
}

static void grant(const mdl_signed_file_t *bought, int downloads, apr_pool_t *p)
{
    mdl_db_exec(db, NULL, p,
                MDL_Q(ALLOWANCE_GRANT, .downloads_extra = downloads,
                      .pairs = apr_psprintf(p, "[[%" APR_INT64_T_FMT ",%" APR_INT64_T_FMT "]]",
                                            bought->assignment_id, bought->asset_id)));
}

/* Whether there are as many as mdl_allowance_renew says, which the page and the API show. */
static void test_granted(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("23", PRODUCT("23"), p);
    mdl_allowance_t shown;

    is_fresh = 1;
    sold_version = 1;
    grant(&bought, 2, p);
    is_int(left(&bought, 3, p), 5, "two granted beside a limit of three");
    is_int(left_of_next(&bought, 3, p), 3, "are used up with it: the next version has the limit");
    grant(&bought, 5, p);
    fetch(link_to(&bought, p), 3, "0-999", 1000, p);
    fetch(link_to(&bought, p), 3, "0-999", 1000, p);
    shown = (mdl_allowance_t){.used = 5, .extra = 5, .version = "0000000000000002"};
    mdl_allowance_renew(&shown, "0000000000000003", 3);
    is_int(shown.extra, 3, "granted ones that were not used are shown");
    is_int(left_of_next(&bought, 3, p), 6, "  and are there beside the next version's three");
    is_fresh = 0;
    sold_version = 1;
}

/* A link's later sessions give back what they took, too. */
static void test_fresh_next(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("26", PRODUCT("26"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    is_fresh = 1;
    fetch(link, 2, "0-999", 1000, p);
    fetch(link, 2, "", 1000, p);
    sweep(p);
    is_int(last(link, p).generation, 2, "a link that has cost a download begins another");
    is_int(left(&bought, 2, p), 1, "  which is given back");
    bought = buy("27", PRODUCT("27"), p);
    link = link_to(&bought, p);
    fetch(link, 2, "", 0, p);
    sold_version = 2;
    fetch(link, 2, "", 0, p);
    sweep(p);
    is_int(last(link, p).generation, 2, "a link of a former version goes on with the next");
    is_int(left(&bought, 2, p), 2, "  whose download is given back");
    is_fresh = 0;
    sold_version = 1;
}

/* Of an empty file nothing is left to deliver, but it costs nothing until it is delivered. */
static void test_fresh_empty(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("25", PRODUCT("25"), p);
    mdl_layout_file_t files[] = {{.asset_id = MDL_DIRECTORY_ID, .size = 10},
                                 {.asset_id = file, .from = 10, .version = 1}};
    mdl_session_begin_t session = {.link = link_to(&bought, p),
                                   .layout = &(mdl_layout_t){2, files},
                                   .etag = "\"empty\"",
                                   .size = 10,
                                   .limit = 1,
                                   .is_fresh = 1};

    begin_session(&session, p);
    settle(&session, "0-4", 5, p);
    sweep(p);
    is_int(status(session.link, p), MDL_SESSION_RETURNED, "an empty file is given back, too");
    is_int(left(&bought, 1, p), 1, "  for another link");
}

static void test_caps(const database_t *database, apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("4", PRODUCT("4"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t running;
    int n = 0;

    mdl_db_set_request(db, "req_caps");
    running = begin(link, 0, 0, p);
    mdl_db_set_request(db, NULL);
    is_int(
        number_of(database, "SELECT count(*) FROM download_transfer WHERE request_id = 'req_caps'"),
        1, "a transfer has the request that it is");
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

/* Settles the transfers of dead meters, as the background process does. */
static void sweep_lost(mdl_beats_t *beats, apr_pool_t *p)
{
    apr_array_header_t *meters, *lost;

    mdl_db_read(db, mdl_meter_beats_effect, &meters, p);
    lost = mdl_beats_look(beats, meters, p);
    for (int i = 0; i < lost->nelts; i++) {
        mdl_meter_sweep_t sweep = {
            .meter = APR_ARRAY_IDX(lost, i, mdl_beat_t), .idle = IDLE, .limit = 100};

        mdl_db_write(db, mdl_meter_sweep_effect, &sweep, p);
    }
}

static void test_lost(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("5", PRODUCT("5"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t lost = begin(link, 1, 1, p);
    apr_array_header_t *moved = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_meter_tick_t tick = {.id = "meter", .alive_until = 1, .progress = moved};
    mdl_beats_t *beats = mdl_beats_watch(MDL_METER_TIME, p);

    APR_ARRAY_PUSH(moved, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = lost.transfer_id,
        .files = mdl_progress_of(lost.layout, mdl_coverage_read("0-799", p), p),
        .bytes = 800};
    mdl_db_write(db, mdl_meter_renew_effect, &tick, p);
    sweep_lost(beats, p);
    is_int(last(link, p).bytes, 0, "the transfers of a live process are not settled");
    atomic_fetch_add(&clock_ahead, DAY);
    sweep_lost(beats, p);
    is_int(last(link, p).bytes, 0, "nor when the clock is set forward");
    atomic_fetch_add(&monotonic_ahead, MDL_METER_TIME * 2 / 3);
    tick.alive_until = 2;
    mdl_db_write(db, mdl_meter_renew_effect, &tick, p);
    sweep_lost(beats, p);
    atomic_fetch_add(&monotonic_ahead, MDL_METER_TIME * 2 / 3);
    sweep_lost(beats, p);
    is_int(last(link, p).bytes, 0, "nor while it beats");
    atomic_fetch_add(&clock_ahead, -DAY);
    atomic_fetch_add(&monotonic_ahead, MDL_METER_TIME * 2 / 3);
    sweep_lost(beats, p);
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
    mdl_db_write(db, mdl_meter_renew_effect,
                 &(mdl_meter_tick_t){.id = slow.meter_id,
                                     .alive_until = mdl_clock_monotonic() + MDL_METER_TIME,
                                     .progress = ids_of(p, 0)},
                 p);
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "the idle one of a link's two sessions ends");
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(other, p), MDL_SESSION_RETURNED,
           "the sending one does not hold up the sweep of others");
}

static mdl_session_begin_t begin_small(const mdl_signed_file_t *link, apr_int64_t bytes,
                                       apr_pool_t *p)
{
    mdl_session_begin_t session = {.link = link,
                                   .layout = layout_of_file(link->asset_id, SIZE, 1, p),
                                   .etag = "\"one\"",
                                   .size = SIZE,
                                   .bytes = bytes};

    begin_session(&session, p);
    return session;
}

/* Records a transfer's progress, as the sending process does each second. */
static void report(const mdl_session_begin_t *session, const char *ranges, apr_int64_t bytes,
                   apr_pool_t *p)
{
    apr_array_header_t *moved = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_meter_tick_t tick = {.id = session->meter_id,
                             .alive_until = mdl_clock_monotonic() + MDL_METER_TIME,
                             .progress = moved};

    APR_ARRAY_PUSH(moved, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = session->transfer_id,
        .session_id = session->link->session,
        .generation = session->generation,
        .assignment_id = session->link->assignment_id,
        .files = mdl_progress_of(session->layout, mdl_coverage_read(ranges, p), p),
        .bytes = bytes,
        .is_unwritten = session->is_unwritten};
    mdl_db_write(db, mdl_meter_renew_effect, &tick, p);
    is_int(tick.lost->nelts, 0, "a small part that is written down is not lost");
}

static void test_small_parts(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("16", PRODUCT("16"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t small;
    int running;

    is_int(begin_small(link, 10, p).is_unwritten, 0, "the first part opens the session");
    fetch(link, 1, "0-399", 400, p);
    is_int(begin_small(link, SIZE / 64 + 1, p).is_unwritten, 0,
           "a part that is large for its file is written down");
    running = last(link, p).running;
    small = begin_small(link, 10, p);
    is_int(small.is_unwritten, 1, "a small part of an open session is not written down");
    is_int(small.entitlement, MDL_ENTITLEMENT_OK, "it begins");
    is_int(last(link, p).running, running, "it has no row");
    settle(&small, "400-409", 10, p);
    is_int(last(link, p).bytes, 410, "what it delivered is added");

    small = begin_small(link, 10, p);
    report(&small, "410-414", 5, p);
    settle(&small, "410-419", 10, p);
    is_int(last(link, p).bytes, 420, "one that was written down meanwhile is added once");

    fetch(link, 1, "420-519", 100, p);
    is_int(begin_small(link, 10, p).is_unwritten, 0,
           "a part is written down when half the file was sent");
    fetch(link, 1, "520-999", 480, p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "small parts count like others");
    small = begin_small(link, 100, p);
    is_int(small.is_unwritten, 1, "no part of what was counted is written down");
    settle(&small, "0-99", 100, p);
    is_int(last(link, p).bytes, SIZE + 100, "its bytes are added to the limit of the link");
    is_int(left(&bought, 1, p), 0, "one download is used");
}

static void test_small_part_late(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("17", PRODUCT("17"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t late;

    fetch(link, 1, "0-99", 100, p);
    atomic_fetch_add(&clock_ahead, IDLE - apr_time_from_sec(10));
    late = begin_small(link, 10, p);
    is_int(late.is_unwritten, 0, "a part of a session that is nearly idle is written down");
    is_int(begin_small(link, 10, p).is_unwritten, 1, "which keeps the session from being idle");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_OPEN, "as long as it runs");
    settle(&late, "100-109", 10, p);
    is_int(begin_small(link, 10, p).is_unwritten, 1, "and for as long after that");
    sweep(p);
    is_int(begin_small(link, 10, p).is_unwritten, 0, "a part takes its download again, in writing");
}

/* A transfer that begins, in another process, when an effect has done all but its COMMIT. */
typedef struct {
    const database_t *database;
    mdl_effect_fn *first;
    void *first_arg;
    mdl_session_begin_t begin;
    const char *free; /* SQL that must not wait for the transfer, which has no locks yet; or NULL */
    pid_t child;
} beside_t;

static apr_status_t begin_beside(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    beside_t *beside = arg;
    apr_status_t rv = beside->first(on, p, beside->first_arg);

    beside->child = child_begin();
    if (beside->child == 0) {
        mdl_db_t *own = database_open(beside->database, p);

        database_is_patient(own);
        child_end(mdl_session_begin(own, &beside->begin, p) == APR_SUCCESS &&
                  beside->begin.entitlement == MDL_ENTITLEMENT_OK);
    }
    ok(waits_for_lock(beside->database), "a transfer that begins waits for another transaction");
    ok(beside->free == NULL || pgsql_command(beside->database->params, beside->free),
       "  and has not locked what others need");
    return rv;
}

/* Bytes of a link's later session count once, whether it is settled or still running. */
static void test_settled_beside(const database_t *database, apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("18", PRODUCT("18"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    apr_array_header_t *one = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t all = {.meter_id = "meter", .deliveries = one, .idle = IDLE};
    beside_t beside = {.database = database, .first = mdl_session_settle_effect, .first_arg = &all};

    fetch(link, 2, "0-999", 1000, p);
    fetch(link, 2, "0-99", 1200, p);
    beside.begin = begin(link, 2, 0, p);
    is_int(beside.begin.generation, 2, "the link's second session is open");
    report(&beside.begin, "0-899", 900, p);
    APR_ARRAY_PUSH(one, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = beside.begin.transfer_id,
        .session_id = link->session,
        .generation = beside.begin.generation,
        .files = mdl_progress_of(beside.begin.layout, mdl_coverage_read("0-899", p), p),
        .bytes = 900};
    beside.begin.transfer_id = "beside";
    mdl_db_write(db, begin_beside, &beside, p);
    ok(child_good(beside.child), "the bytes that were being settled count once");
}

static apr_status_t take_another(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    const mdl_signed_file_t *bought = arg;
    apr_int64_t taken; /* wanted, so that the statement is sent before the COMMIT */

    return mdl_db_exec(
        on, &taken, p,
        MDL_Q(ALLOWANCE_TAKE, .assignment_id = bought->assignment_id,
              .files = apr_psprintf(p, "[[%" APR_INT64_T_FMT ",\"\"]]", bought->asset_id),
              .is_fresh = 0, .limit = 0));
}

/* All transfers of a process extend its heartbeat, so a transfer that waits for an allowance must
   not lock it. */
static void test_meter_beside(const database_t *database, apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("19", PRODUCT("19"), p);
    beside_t beside = {.database = database,
                       .first = take_another,
                       .first_arg = &bought,
                       .free = "SELECT 1 FROM meter WHERE id = 'meter' FOR UPDATE NOWAIT"};

    beside.begin = begin(link_to(&bought, p), 0, 0, p);
    beside.begin.link = link_to(&bought, p);
    beside.begin.transfer_id = "first of another link";
    mdl_db_write(db, begin_beside, &beside, p);
    ok(child_good(beside.child), "it begins when the allowance is free");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    file = make_asset(db, shop, "a.pdf", 1, p);
    test_counting(p);
    test_giving_back(p);
    test_joining(p);
    test_fresh(p);
    test_fresh_again(p);
    test_granted(p);
    test_fresh_empty(p);
    test_fresh_next(p);
    test_caps(database, p);
    test_lost(p);
    test_late(p);
    test_slow_beside_idle(p);
    test_small_parts(p);
    test_small_part_late(p);
    if (database->dialect == MDL_PGSQL) {
        test_settled_beside(database, p);
        test_meter_beside(database, p);
    }
}

int main(void)
{
    return test_sessions(tests);
}
