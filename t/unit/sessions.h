/*
 * Shared by the tests of download sessions: a shop, purchases and their links, and the begin,
 * settlement and end of sessions.
 */
#ifndef MDL_T_UNIT_SESSIONS_H
#define MDL_T_UNIT_SESSIONS_H

#include "t/unit/fixtures.h"

#include "base/clock.h"
#include "core/download/meter.h"
#include "core/download/session_begin.h"

#define IDLE apr_time_from_sec(600)
#define DAY  apr_time_from_sec(86400)

static mdl_db_t *db;
static mdl_secret_t *secret;
static apr_int64_t shop;

/** Maps a product to files and assigns it to an order; returns the assignment. */
static inline apr_int64_t buy_all(const char *order_id, const char *product,
                                  apr_array_header_t *files, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, product);

    make_mapping(db, new_mapping(shop, product, files, p), p);
    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        printf("Bail out! assign: %s\n", mdl_db_error(db));
        exit(2);
    }
    return APR_ARRAY_IDX(assign->order->assignments, 0, mdl_assignment_t *)->id;
}

static inline mdl_signed_file_t *link_to(const mdl_signed_file_t *bought, apr_pool_t *p)
{
    mdl_signed_file_t *link = apr_pmemdup(p, bought, sizeof *bought);

    link->page_id = "page";
    mdl_signed_url_file_token(secret, link, p);
    return link;
}

static inline const mdl_layout_t *layout_of_file(apr_int64_t id, apr_int64_t size,
                                                 apr_uint64_t version, apr_pool_t *p)
{
    mdl_layout_t *layout = apr_palloc(p, sizeof *layout);
    mdl_layout_file_t *only = apr_pcalloc(p, sizeof *only);

    *only = (mdl_layout_file_t){.asset_id = id, .size = size, .version = version};
    *layout = (mdl_layout_t){1, only};
    return layout;
}

static inline apr_status_t read_last(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    mdl_session_t *session = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(of, &row, p, MDL_Q(DOWNLOAD_SESSION_LAST, session->id));

    if (rv == APR_SUCCESS) {
        mdl_session_read(row, 0, session);
    }
    return rv;
}

/** The last session of a link; its generation is unset if there is none. */
static inline mdl_session_t last(const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_session_t session = {.id = link->session};

    mdl_db_read(db, read_last, &session, p);
    return session;
}

/** Begins a session whose link, layout, entity tag, size, limit and whole are set, and bytes for a
    small part. */
static inline void begin_session(mdl_session_begin_t *session, apr_pool_t *p)
{
    session->last = last(session->link, p);
    session->bytes = session->bytes != 0 ? session->bytes : session->size * MDL_SESSION_SMALL_PART;
    session->patient = 1;
    session->lifetime = DAY;
    session->idle = IDLE;
    session->meter_id = "meter";
    session->alive_until = mdl_clock_monotonic() + MDL_METER_TIME;
    session->transfer_id = mdl_random_base62(22, p);
    if (!mdl_session_begin_part(session) && mdl_session_begin(db, session, p) != APR_SUCCESS) {
        printf("Bail out! begin: %s\n", mdl_db_error(db));
        exit(2);
    }
}

/** Settles a transfer's delivered ranges of offsets, such as "0-499". */
static inline void settle(const mdl_session_begin_t *session, const char *ranges, apr_int64_t bytes,
                          apr_pool_t *p)
{
    apr_array_header_t *one = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t all = {.meter_id = session->meter_id, .deliveries = one, .idle = IDLE};

    APR_ARRAY_PUSH(one, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = session->transfer_id,
        .session_id = session->link->session,
        .generation = session->generation,
        .files = mdl_progress_of(session->layout, mdl_coverage_read(ranges, p), p),
        .bytes = bytes,
        .is_unwritten = session->is_unwritten};
    if (mdl_db_write(db, mdl_session_settle_effect, &all, p) != APR_SUCCESS) {
        printf("Bail out! settle: %s\n", mdl_db_error(db));
        exit(2);
    }
}

/** Ends idle sessions. */
static inline void sweep(apr_pool_t *p)
{
    mdl_session_sweep_t idle = {.limit = 100};

    atomic_fetch_add(&clock_ahead, IDLE + 1);
    mdl_db_write(db, mdl_session_sweep_effect, &idle, p);
}

static inline mdl_session_status_t status(const mdl_signed_file_t *link, apr_pool_t *p)
{
    return last(link, p).status;
}

/** Runs the tests on each database; main returns the result. */
static inline int test_sessions(database_tests_fn *tests)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    on_each_database(tests, p);
    return tap_end(p);
}

#endif
