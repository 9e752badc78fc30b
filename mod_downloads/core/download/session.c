#include "core/download/session.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "core/download/delivered.h"
#include "core/download/division.h"
#include "core/ids.h"

static const char *const names[] = {"open", "counted", "returned"};

static apr_status_t read_session(mdl_rows_t *row, const char *id, mdl_session_t *session)
{
    const char *status = mdl_rows_text(row, 1);

    *session = (mdl_session_t){.id = id,
                               .generation = mdl_rows_int(row, 0),
                               .etag = mdl_rows_text(row, 2),
                               .size = mdl_rows_int(row, 3),
                               .ranges = mdl_rows_text(row, 4),
                               .bytes = mdl_rows_int(row, 5),
                               .assignment_id = mdl_rows_int(row, 6),
                               .asset_id = mdl_rows_int(row, 7),
                               .taken = mdl_rows_text(row, 8),
                               .opened_at = mdl_rows_int(row, 9),
                               .idle_at = mdl_rows_int(row, 10),
                               .kept = mdl_rows_text(row, 11)};
    while (strcmp(names[session->status], status) != 0) {
        session->status++;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_session_find(mdl_db_t *db, const char *id, mdl_session_t *session, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_FIND, &row, p,
                                        MDL_ARGS(mdl_text(id)));

    return rv == APR_SUCCESS ? read_session(row, id, session) : rv;
}

static apr_status_t session_lock(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_LOCK, &row, p, MDL_ARGS(mdl_text(id)));
}

static int by_number(const void *one, const void *other)
{
    apr_int64_t a = *(const apr_int64_t *)one, b = *(const apr_int64_t *)other;

    return (a > b) - (a < b);
}

/* Sessions, by their ids, and then their assignments: so two of these can't wait for each other. */
static apr_status_t lock_all(mdl_db_t *db, const apr_array_header_t *ids, apr_pool_t *p)
{
    apr_array_header_t *assignments = apr_array_make(p, ids->nelts, sizeof(apr_int64_t));
    apr_status_t rv = APR_SUCCESS;
    mdl_rows_t *row;

    for (int i = 0; i < ids->nelts; i++) {
        rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_LOCK, &row, p,
                               MDL_ARGS(mdl_text(APR_ARRAY_IDX(ids, i, const char *))));
        if (rv == APR_SUCCESS) {
            APR_ARRAY_PUSH(assignments, apr_int64_t) = mdl_rows_int(row, 0);
        } else if (rv != APR_ENOENT) {
            return rv;
        }
    }
    qsort(assignments->elts, (size_t)assignments->nelts, sizeof(apr_int64_t), by_number);
    for (int i = 0; i < assignments->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(assignments, i, apr_int64_t);

        if (i > 0 && APR_ARRAY_IDX(assignments, i - 1, apr_int64_t) == id) {
            continue;
        }
        rv = mdl_db_select_one(db, MDL_Q_ASSIGNMENT_LOCK, &row, p, MDL_ARGS(mdl_int(id)));
        if (rv != APR_SUCCESS && rv != APR_ENOENT) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* Allowances. */

static apr_status_t session_take(mdl_db_t *db, apr_int64_t assignment_id, const char *ids,
                                 int limit, apr_int64_t *taken, apr_pool_t *p)
{
    return mdl_db_exec(
        db, MDL_Q_ALLOWANCE_TAKE, taken, p,
        MDL_ARGS(mdl_int(assignment_id), mdl_text(ids), mdl_int(limit), mdl_int(limit)));
}

/* All or none: an error rolls back. */
static apr_status_t take_all(mdl_db_t *db, mdl_session_begin_t *begin,
                             const apr_array_header_t *files, apr_pool_t *p)
{
    apr_int64_t taken;
    apr_status_t rv = session_take(db, begin->link->assignment_id, mdl_ids_json(files, p),
                                   begin->limit, &taken, p);

    if (rv == APR_SUCCESS && taken != files->nelts) {
        begin->verdict = MDL_SESSION_EXHAUSTED;
        return APR_EGENERAL;
    }
    return rv;
}

/* Ending. */

static apr_status_t session_store(mdl_db_t *db, const mdl_session_t *session,
                                  const mdl_coverage_t *coverage, apr_int64_t bytes,
                                  apr_time_t until, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_SETTLE, NULL, p,
                       MDL_ARGS(mdl_text(names[session->status]),
                                mdl_text(mdl_coverage_text(coverage, p)), mdl_int(bytes),
                                mdl_int(apr_time_now()), mdl_int(until), mdl_text(session->id),
                                mdl_int(session->generation)));
}

/* Ends a session; what it has delivered is divided up, and is its own no more. */
static apr_status_t close_session(mdl_db_t *db, mdl_session_t *session, mdl_coverage_t *coverage,
                                  mdl_division_t *division, apr_pool_t *p)
{
    apr_status_t rv = mdl_divide(db, session, coverage, division, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    session->status = division->returned->nelts == 0 ? MDL_SESSION_COUNTED : MDL_SESSION_RETURNED;
    if (session->status == MDL_SESSION_RETURNED) {
        apr_array_clear(coverage);
    }
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_KEEP, NULL, p,
                       MDL_ARGS(mdl_text(mdl_coverage_text(division->kept, p)),
                                mdl_text(session->id), mdl_int(session->generation)));
}

/* Gives back what a session holds that has not become a download; *kept are the places in taken of
   what has. */
static apr_status_t end_session(mdl_db_t *db, mdl_session_t *session, apr_time_t until,
                                const mdl_coverage_t **kept, apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_read(session->ranges, p);
    mdl_division_t division;
    apr_status_t rv = close_session(db, session, coverage, &division, p);

    *kept = division.kept;
    if (rv == APR_SUCCESS && division.returned->nelts > 0) {
        rv = mdl_db_exec(db, MDL_Q_ALLOWANCE_GIVE_BACK, NULL, p,
                         MDL_ARGS(mdl_int(session->assignment_id),
                                  mdl_text(mdl_ids_json(division.returned, p))));
    }
    return rv == APR_SUCCESS ? session_store(db, session, coverage, 0, until, p) : rv;
}

/* Beginning. */

static apr_time_t idle_at(const mdl_session_begin_t *begin, apr_time_t now)
{
    return now + (begin->idle < begin->lifetime ? begin->idle : begin->lifetime);
}

static apr_status_t open_generation(mdl_db_t *db, mdl_session_begin_t *begin, const char *taken,
                                    apr_int64_t *opened, apr_time_t now, apr_pool_t *p)
{
    const mdl_signed_file_t *link = begin->link;

    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_OPEN, opened, p,
                       MDL_ARGS(mdl_text(link->session), mdl_int(begin->generation),
                                mdl_int(link->assignment_id), mdl_int_or_null(link->asset_id),
                                mdl_text(taken), mdl_text(begin->etag), mdl_int(begin->size),
                                mdl_int(now), mdl_int(now), mdl_int(idle_at(begin, now))));
}

static apr_status_t session_resume(mdl_db_t *db, const mdl_session_begin_t *begin,
                                   mdl_session_status_t status, apr_time_t now, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_RESUME, NULL, p,
                       MDL_ARGS(mdl_text(names[status]), mdl_int(now), mdl_int(idle_at(begin, now)),
                                mdl_text(begin->link->session), mdl_int(begin->generation)));
}

static int has_id(const apr_array_header_t *ids, apr_int64_t id)
{
    for (int i = 0; i < ids->nelts; i++) {
        if (APR_ARRAY_IDX(ids, i, apr_int64_t) == id) {
            return 1;
        }
    }
    return 0;
}

/* Another archive may be of other files: what the last one's session holds is given back, and what
   the new one needs is taken, but for the files that count. */
static apr_status_t session_exchange(mdl_db_t *db, mdl_session_begin_t *begin,
                                     const mdl_session_t *last, mdl_coverage_t *kept,
                                     apr_time_t now, apr_pool_t *p)
{
    const apr_array_header_t *taken = mdl_ids_read(last->taken, p);
    apr_array_header_t *counted = apr_array_make(p, taken->nelts, sizeof(apr_int64_t));
    apr_array_header_t *wanted = apr_array_make(p, begin->files->nelts, sizeof(apr_int64_t));
    mdl_session_t session = *last;
    const mdl_coverage_t *earlier = mdl_coverage_read(last->kept, p);
    apr_status_t rv;

    if (session.status == MDL_SESSION_OPEN &&
        (rv = end_session(db, &session, now, &earlier, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < taken->nelts; i++) {
        if (mdl_coverage_has(earlier, i, i + 1)) {
            APR_ARRAY_PUSH(counted, apr_int64_t) = APR_ARRAY_IDX(taken, i, apr_int64_t);
        }
    }
    for (int i = 0; i < begin->files->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(begin->files, i, apr_int64_t);

        if (has_id(counted, id)) {
            mdl_coverage_add(kept, i, i + 1);
        } else {
            APR_ARRAY_PUSH(wanted, apr_int64_t) = id;
        }
    }
    return take_all(db, begin, wanted, p);
}

/* What the file's last version has taken stands for the new one. */
static apr_status_t hand_on(mdl_db_t *db, const mdl_session_t *last, apr_time_t now, apr_pool_t *p)
{
    mdl_session_t session = *last;

    session.status = MDL_SESSION_RETURNED;
    return session_store(db, &session, mdl_coverage_read(last->ranges, p), 0, now, p);
}

/* The link's next session; what is taken of the last one stands for it when that is still open, and
   of an archive's what counts. */
static apr_status_t open_next(mdl_db_t *db, mdl_session_begin_t *begin, const mdl_session_t *last,
                              apr_time_t now, apr_pool_t *p)
{
    mdl_coverage_t *kept = mdl_coverage_make(p);
    apr_int64_t opened;
    apr_status_t rv;

    begin->generation = last->generation + 1;
    begin->why = last->status == MDL_SESSION_OPEN
                     ? "not counted, its session goes on with the file's new version"
                     : "counted, another download by the same link";
    if (last->asset_id == 0 && last->status != MDL_SESSION_COUNTED) {
        rv = session_exchange(db, begin, last, kept, now, p);
    } else if (last->status == MDL_SESSION_OPEN) {
        rv = hand_on(db, last, now, p);
    } else {
        rv = take_all(db, begin, begin->files, p);
    }
    if (rv == APR_SUCCESS) {
        rv = open_generation(db, begin, mdl_ids_json(begin->files, p), &opened, now, p);
    }
    return rv == APR_SUCCESS && kept->nelts > 0
               ? mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_KEEP, NULL, p,
                             MDL_ARGS(mdl_text(mdl_coverage_text(kept, p)), mdl_text(last->id),
                                      mdl_int(begin->generation)))
               : rv;
}

/* The files of which a session that goes on has no download any more. */
static apr_array_header_t *given_back(const mdl_session_begin_t *begin, const mdl_session_t *last,
                                      apr_pool_t *p)
{
    const mdl_coverage_t *kept = mdl_coverage_read(last->kept, p);
    apr_array_header_t *files = apr_array_make(p, begin->files->nelts, sizeof(apr_int64_t));

    for (int i = 0; i < begin->files->nelts; i++) {
        if (!mdl_coverage_has(kept, i, i + 1)) {
            APR_ARRAY_PUSH(files, apr_int64_t) = APR_ARRAY_IDX(begin->files, i, apr_int64_t);
        }
    }
    return files;
}

typedef struct {
    apr_int64_t count;
    apr_int64_t bytes;
} running_t;

static apr_status_t find_running(mdl_db_t *db, const mdl_session_t *last, apr_time_t now,
                                 running_t *running, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, MDL_Q_TRANSFERS_OF_SESSION, &row, p,
        MDL_ARGS(mdl_int(last->generation), mdl_text(last->id), mdl_int(now)));

    if (rv == APR_SUCCESS) {
        running->count = mdl_rows_int(row, 0);
        running->bytes = mdl_rows_int(row, 1);
    }
    return rv;
}

/* Whether it may go on with the session that there is; BEGUN when it may. */
static mdl_session_verdict_t session_judge(const mdl_session_begin_t *begin,
                                           const mdl_session_t *last, const running_t *running,
                                           apr_time_t now)
{
    int is_another = strcmp(last->etag, begin->etag) != 0 ||
                     (last->status == MDL_SESSION_COUNTED && begin->whole);

    if (last->opened_at + begin->lifetime <= now) {
        return MDL_SESSION_OVER;
    }
    if (running->count >= MDL_SESSION_TRANSFERS) {
        return begin->patient ? MDL_SESSION_UNSETTLED : MDL_SESSION_CROWDED;
    }
    if (!is_another && last->size > 0 &&
        last->bytes + running->bytes >= last->size * MDL_SESSION_FACTOR) {
        return MDL_SESSION_CAPPED;
    }
    if (!is_another && last->status == MDL_SESSION_OPEN && begin->whole && running->count > 0 &&
        begin->patient) {
        return MDL_SESSION_UNSETTLED;
    }
    return MDL_SESSION_BEGUN;
}

static apr_status_t go_on(mdl_db_t *db, mdl_session_begin_t *begin, apr_time_t now, apr_pool_t *p)
{
    mdl_session_status_t status;
    mdl_session_t last;
    running_t running;
    apr_status_t rv;

    if ((rv = session_lock(db, begin->link->session, p)) != APR_SUCCESS ||
        (rv = mdl_session_find(db, begin->link->session, &last, p)) != APR_SUCCESS ||
        (rv = find_running(db, &last, now, &running, p)) != APR_SUCCESS) {
        return rv;
    }
    begin->verdict = session_judge(begin, &last, &running, now);
    if (begin->verdict != MDL_SESSION_BEGUN) {
        return APR_EGENERAL;
    }
    if (strcmp(last.etag, begin->etag) != 0 ||
        (last.status == MDL_SESSION_COUNTED && begin->whole)) {
        return open_next(db, begin, &last, now, p);
    }
    begin->generation = last.generation;
    status = last.status;
    if (status == MDL_SESSION_RETURNED) {
        if ((rv = take_all(db, begin, given_back(begin, &last, p), p)) != APR_SUCCESS) {
            return rv;
        }
        status = MDL_SESSION_OPEN;
        begin->why = "counted, its session goes on after it had given its download back";
    } else {
        begin->why = status == MDL_SESSION_OPEN ? "not counted, its session is open"
                                                : "not counted, a part of what was counted";
    }
    return session_resume(db, begin, status, now, p);
}

static apr_status_t begin_transfer(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_session_begin_t *begin = arg;
    const mdl_signed_file_t *link = begin->link;
    apr_time_t now = apr_time_now();
    apr_int64_t opened;
    apr_status_t rv;

    begin->verdict = MDL_SESSION_BEGUN;
    begin->generation = 1;
    rv = open_generation(db, begin, mdl_ids_json(begin->files, p), &opened, now, p);
    if (rv == APR_SUCCESS && opened) {
        begin->why = "counted";
        rv = take_all(db, begin, begin->files, p);
    } else if (rv == APR_SUCCESS) {
        rv = go_on(db, begin, now, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, MDL_Q_TRANSFER_BEGIN, NULL, p,
                         MDL_ARGS(mdl_text(begin->transfer_id), mdl_text(link->session),
                                  mdl_int(begin->generation), mdl_int(link->assignment_id),
                                  mdl_text(begin->meter_id)));
    }
    if (rv == APR_SUCCESS && begin->leased_until != 0) {
        rv = mdl_db_exec(db, MDL_Q_METER_RENEW, NULL, p,
                         MDL_ARGS(mdl_text(begin->meter_id), mdl_int(begin->leased_until)));
    }
    return rv;
}

apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_write(db, begin_transfer, begin, p);

    return rv == APR_EGENERAL && begin->verdict != MDL_SESSION_BEGUN ? APR_SUCCESS : rv;
}

/* Settling. */

/* Whether the session is whole by what it delivered, or together with what others gave back. */
static apr_status_t is_whole(mdl_db_t *db, const mdl_session_t *session,
                             const mdl_coverage_t *coverage, int *whole, apr_pool_t *p)
{
    mdl_delivered_t file = {.assignment_id = session->assignment_id,
                            .asset_id = session->asset_id,
                            .etag = session->etag,
                            .size = session->size};

    if (session->asset_id == 0) {
        *whole = mdl_coverage_is_whole(coverage, session->size);
        return APR_SUCCESS;
    }
    return mdl_delivered_complete(db, &file, coverage, whole, p);
}

/* A transfer that was given up on and ends after all finds its session returned: what it made whole
   has to be taken all the same. */
static apr_status_t close_again(mdl_db_t *db, mdl_session_t *session, mdl_coverage_t *coverage,
                                apr_pool_t *p)
{
    mdl_division_t division;
    apr_int64_t taken;
    apr_status_t rv = close_session(db, session, coverage, &division, p);

    return rv == APR_SUCCESS && division.counted->nelts > 0
               ? session_take(db, session->assignment_id, mdl_ids_json(division.counted, p), 0,
                              &taken, p)
               : rv;
}

static apr_status_t add_delivery(mdl_db_t *db, mdl_session_t *session,
                                 const mdl_session_delivery_t *delivery, apr_time_t until,
                                 apr_pool_t *p)
{
    mdl_coverage_t *coverage = mdl_coverage_read(session->ranges, p);
    int whole = 0;
    apr_status_t rv = APR_SUCCESS;

    mdl_coverage_join(coverage, mdl_coverage_read(delivery->ranges, p));
    if (session->status == MDL_SESSION_OPEN) {
        rv = is_whole(db, session, coverage, &whole, p);
    } else if (session->status == MDL_SESSION_RETURNED) {
        rv = close_again(db, session, coverage, p);
    }
    if (whole) {
        session->status = MDL_SESSION_COUNTED;
    }
    return rv == APR_SUCCESS ? session_store(db, session, coverage, delivery->bytes, until, p) : rv;
}

static apr_status_t session_get(mdl_db_t *db, const char *id, apr_int64_t generation,
                                mdl_session_t *session, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_GET, &row, p,
                                        MDL_ARGS(mdl_text(id), mdl_int(generation)));

    return rv == APR_SUCCESS ? read_session(row, id, session) : rv;
}

/* One that was settled before, by who took it for lost or by a COMMIT whose answer was, adds its
   ranges, which may be more by now, and no bytes. */
static apr_status_t session_settle(mdl_db_t *db, const mdl_session_delivery_t *delivery,
                                   apr_time_t until, apr_pool_t *p)
{
    mdl_session_delivery_t rest = *delivery;
    mdl_session_t session;
    apr_int64_t ended;
    apr_status_t rv = mdl_db_exec(db, MDL_Q_TRANSFER_END, &ended, p,
                                  MDL_ARGS(mdl_text(delivery->transfer_id)));

    if (rv == APR_SUCCESS) {
        rv = session_get(db, delivery->session_id, delivery->generation, &session, p);
    }
    if (rv == APR_ENOENT) {
        return APR_SUCCESS;
    }
    rest.bytes = ended ? delivery->bytes : 0;
    return rv == APR_SUCCESS ? add_delivery(db, &session, &rest, until, p) : rv;
}

/* All sessions are locked before anything else is: so two of these can't wait for each other. */
apr_status_t mdl_session_settle(mdl_db_t *db, apr_pool_t *p, const mdl_session_settle_t *all)
{
    apr_time_t until = apr_time_now() + all->idle;
    apr_array_header_t *ids = apr_array_make(p, all->deliveries->nelts, sizeof(const char *));
    apr_status_t rv;

    for (int i = 0; i < all->deliveries->nelts; i++) {
        APR_ARRAY_PUSH(
            ids,
            const char *) = APR_ARRAY_IDX(all->deliveries, i, mdl_session_delivery_t).session_id;
    }
    if ((rv = lock_all(db, ids, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < all->deliveries->nelts; i++) {
        rv = session_settle(db, &APR_ARRAY_IDX(all->deliveries, i, mdl_session_delivery_t), until,
                            p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* Sessions that are idle. */

/* Whether a transfer of it is there; those of the link's other sessions don't keep it open. */
static apr_status_t is_running(mdl_db_t *db, const mdl_session_t *session, int *running,
                               apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, MDL_Q_TRANSFER_OF_SESSION, &row, p,
        MDL_ARGS(mdl_text(session->id), mdl_int(session->generation)));

    *running = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t end_idle(mdl_db_t *db, const mdl_session_t *idle, apr_time_t now, apr_pool_t *p)
{
    mdl_session_t session;
    const mdl_coverage_t *kept;
    int running;
    apr_status_t rv;

    if ((rv = session_lock(db, idle->id, p)) != APR_SUCCESS ||
        (rv = session_get(db, idle->id, idle->generation, &session, p)) != APR_SUCCESS ||
        (rv = is_running(db, &session, &running, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    if (session.status != MDL_SESSION_OPEN || session.idle_at > now || running) {
        return APR_SUCCESS; /* it was resumed meanwhile */
    }
    return end_session(db, &session, session.idle_at, &kept, p);
}

static apr_status_t find_idle(mdl_db_t *db, int limit, apr_time_t now, apr_array_header_t *sessions,
                              apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_DOWNLOAD_SESSIONS_IDLE, &rows, p,
                                    MDL_ARGS(mdl_int(now), mdl_int(limit)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(sessions, mdl_session_t) = (mdl_session_t){
            .id = mdl_rows_text(rows, 0), .generation = mdl_rows_int(rows, 1)};
    }
    return rv;
}

static int by_id(const void *one, const void *other)
{
    return strcmp(((const mdl_session_t *)one)->id, ((const mdl_session_t *)other)->id);
}

apr_status_t mdl_session_sweep(mdl_db_t *db, apr_pool_t *p, mdl_session_sweep_t *sweep)
{
    apr_array_header_t *sessions = apr_array_make(p, sweep->limit, sizeof(mdl_session_t));
    apr_array_header_t *ids = apr_array_make(p, sweep->limit, sizeof(const char *));
    apr_time_t now = apr_time_now();
    apr_pool_t *each;
    apr_status_t rv = find_idle(db, sweep->limit, now, sessions, p);

    sweep->settled = sessions->nelts;
    qsort(sessions->elts, (size_t)sessions->nelts, sizeof(mdl_session_t), by_id);
    for (int i = 0; i < sessions->nelts; i++) {
        APR_ARRAY_PUSH(ids, const char *) = APR_ARRAY_IDX(sessions, i, mdl_session_t).id;
    }
    rv = rv == APR_SUCCESS ? lock_all(db, ids, p) : rv;
    apr_pool_create(&each, p);
    for (int i = 0; i < sessions->nelts && rv == APR_SUCCESS; i++) {
        apr_pool_clear(each);
        rv = end_idle(db, &APR_ARRAY_IDX(sessions, i, mdl_session_t), now, each);
    }
    apr_pool_destroy(each);
    return rv;
}

apr_status_t mdl_session_list(mdl_db_t *db, apr_int64_t order_id, int limit,
                              apr_array_header_t **sessions, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, MDL_Q_DOWNLOAD_SESSIONS_OF_ORDER, &rows, p,
                                    MDL_ARGS(mdl_int(order_id), mdl_int(limit)));

    *sessions = apr_array_make(p, 8, sizeof(mdl_session_view_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*sessions, mdl_session_view_t) = (mdl_session_view_t){
            .assignment_id = mdl_rows_int(rows, 0),
            .asset_id = mdl_rows_int(rows, 1),
            .status = mdl_rows_text(rows, 2),
            .size = mdl_rows_int(rows, 3),
            .transfers = mdl_rows_int(rows, 4),
            .opened_at = mdl_rows_int(rows, 5),
            .updated_at = mdl_rows_int(rows, 6),
            .bytes = mdl_rows_int(rows, 7)};
    }
    return rv;
}
