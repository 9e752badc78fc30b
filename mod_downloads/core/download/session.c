#include "core/download/session.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "core/ids.h"

const char *const mdl_session_status_names[] = {[MDL_SESSION_OPEN] = "open",
                                                [MDL_SESSION_COUNTED] = "counted",
                                                [MDL_SESSION_RETURNED] = "returned",
                                                NULL};

static void session_read(mdl_rows_t *row, const char *id, mdl_session_t *session)
{
    *session = (mdl_session_t){.id = id,
                               .generation = mdl_rows_int(row, 0),
                               .status = mdl_rows_enum(row, 1, mdl_session_status_names),
                               .ranges = mdl_rows_text(row, 4),
                               .bytes = mdl_rows_int(row, 5),
                               .idle_at = mdl_rows_int(row, 10)};
    session->reserved = (mdl_reservation_t){.etag = mdl_rows_text(row, 2),
                                            .size = mdl_rows_int(row, 3),
                                            .assignment_id = mdl_rows_int(row, 6),
                                            .asset_id = mdl_rows_int(row, 7),
                                            .files = mdl_rows_text(row, 8),
                                            .opened_at = mdl_rows_int(row, 9),
                                            .charged_places = mdl_rows_text(row, 11)};
}

apr_status_t mdl_session_find(mdl_db_t *db, const char *id, mdl_session_t *session, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_FIND, &row, p,
                                        MDL_ARGS(mdl_text(id)));

    if (rv == APR_SUCCESS) {
        session_read(row, id, session);
    }
    return rv;
}

static apr_status_t session_lock(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_LOCK, &row, p, MDL_ARGS(mdl_text(id)));
}

static int id_compare(const void *one, const void *other)
{
    apr_int64_t a = *(const apr_int64_t *)one, b = *(const apr_int64_t *)other;

    return (a > b) - (a < b);
}

/* Locks the sessions of ids, which are sorted, and then their assignments in the order of theirs:
   so two transactions never wait for each other. */
static apr_status_t session_lock_all(mdl_db_t *db, const apr_array_header_t *ids, apr_pool_t *p)
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
    qsort(assignments->elts, (size_t)assignments->nelts, sizeof(apr_int64_t), id_compare);
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

/* --- allowances --- */

static apr_status_t allowance_take(mdl_db_t *db, apr_int64_t assignment_id,
                                   const apr_array_header_t *files, int limit, apr_int64_t *taken,
                                   apr_pool_t *p)
{
    return mdl_db_exec(
        db, MDL_Q_ALLOWANCE_TAKE, taken, p,
        MDL_ARGS(mdl_int(assignment_id), mdl_ids(files), mdl_int(limit), mdl_int(limit)));
}

/* Takes one download of each file, or refuses: the error rolls back what was taken. */
static apr_status_t allowance_take_all(mdl_db_t *db, mdl_session_begin_t *begin,
                                       const apr_array_header_t *files, apr_pool_t *p)
{
    apr_int64_t taken;
    apr_status_t rv = allowance_take(db, begin->link->assignment_id, files, begin->limit, &taken,
                                     p);

    if (rv == APR_SUCCESS && taken != files->nelts) {
        begin->entitlement = MDL_ENTITLEMENT_EXHAUSTED;
        return APR_EGENERAL;
    }
    return rv;
}

static apr_status_t allowance_give_back(mdl_db_t *db, apr_int64_t assignment_id,
                                        const apr_array_header_t *files, apr_pool_t *p)
{
    return files->nelts > 0 ? mdl_db_exec(db, MDL_Q_ALLOWANCE_GIVE_BACK, NULL, p,
                                          MDL_ARGS(mdl_int(assignment_id), mdl_ids(files)))
                            : APR_SUCCESS;
}

/* --- the end --- */

static apr_status_t session_store(mdl_db_t *db, const mdl_session_t *session,
                                  const mdl_coverage_t *coverage, apr_int64_t bytes,
                                  apr_time_t until, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_SETTLE, NULL, p,
                       MDL_ARGS(mdl_text(mdl_session_status_names[session->status]),
                                mdl_text(mdl_coverage_text(coverage, p)), mdl_int(bytes),
                                mdl_int(apr_time_now()), mdl_int(until), mdl_text(session->id),
                                mdl_int(session->generation)));
}

static apr_status_t session_set_charged(mdl_db_t *db, const char *id, apr_int64_t generation,
                                        const mdl_coverage_t *places, apr_pool_t *p)
{
    return mdl_db_exec(
        db, MDL_Q_DOWNLOAD_SESSION_SET_CHARGED, NULL, p,
        MDL_ARGS(mdl_text(mdl_coverage_text(places, p)), mdl_text(id), mdl_int(generation)));
}

/* Settles a session that is over.  What it delivered is no longer its own when something is given
   back, so delivered is emptied then. */
static apr_status_t session_close(mdl_db_t *db, mdl_session_t *session, mdl_coverage_t *delivered,
                                  mdl_settlement_t *settlement, apr_pool_t *p)
{
    apr_status_t rv = mdl_settlement_of(db, &session->reserved, delivered, settlement, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    session->status = settlement->returned->nelts == 0 ? MDL_SESSION_COUNTED : MDL_SESSION_RETURNED;
    if (session->status == MDL_SESSION_RETURNED) {
        apr_array_clear(delivered);
    }
    return session_set_charged(db, session->id, session->generation, settlement->charged_places, p);
}

/* Ends an open session and gives back what it reserved for nothing.  *charged gets the places in
   its files of those that are charged. */
static apr_status_t session_end(mdl_db_t *db, mdl_session_t *session, apr_time_t until,
                                const mdl_coverage_t **charged, apr_pool_t *p)
{
    mdl_coverage_t *delivered = mdl_coverage_read(session->ranges, p);
    mdl_settlement_t settlement;
    apr_status_t rv;

    if ((rv = session_close(db, session, delivered, &settlement, p)) != APR_SUCCESS ||
        (rv = allowance_give_back(db, session->reserved.assignment_id, settlement.returned, p)) !=
            APR_SUCCESS) {
        return rv;
    }
    *charged = settlement.charged_places;
    return session_store(db, session, delivered, 0, until, p);
}

/* --- the beginning --- */

static apr_time_t session_idle_at(const mdl_session_begin_t *begin, apr_time_t now)
{
    return now + (begin->idle < begin->lifetime ? begin->idle : begin->lifetime);
}

/* *opened tells whether there was no session of this generation yet. */
static apr_status_t session_open(mdl_db_t *db, const mdl_session_begin_t *begin,
                                 apr_int64_t *opened, apr_time_t now, apr_pool_t *p)
{
    const mdl_signed_file_t *link = begin->link;

    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_OPEN, opened, p,
                       MDL_ARGS(mdl_text(link->session), mdl_int(begin->generation),
                                mdl_int(link->assignment_id), mdl_int_or_null(link->asset_id),
                                mdl_text(mdl_ids_json(begin->files, p)), mdl_text(begin->etag),
                                mdl_int(begin->size), mdl_int(now), mdl_int(now),
                                mdl_int(session_idle_at(begin, now))));
}

static apr_status_t session_resume(mdl_db_t *db, const mdl_session_begin_t *begin,
                                   mdl_session_status_t status, apr_time_t now, apr_pool_t *p)
{
    return mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_RESUME, NULL, p,
                       MDL_ARGS(mdl_text(mdl_session_status_names[status]), mdl_int(now),
                                mdl_int(session_idle_at(begin, now)),
                                mdl_text(begin->link->session), mdl_int(begin->generation)));
}

/* The files of an archive's session that were charged, once it has ended. */
static apr_status_t session_charged_files(mdl_db_t *db, const mdl_session_t *last, apr_time_t now,
                                          apr_array_header_t **charged, apr_pool_t *p)
{
    const apr_array_header_t *files = mdl_ids_read(last->reserved.files, p);
    const mdl_coverage_t *places = mdl_coverage_read(last->reserved.charged_places, p);
    mdl_session_t session = *last;
    apr_status_t rv = APR_SUCCESS;

    if (session.status == MDL_SESSION_OPEN) {
        rv = session_end(db, &session, now, &places, p);
    }
    *charged = apr_array_make(p, files->nelts, sizeof(apr_int64_t));
    for (int i = 0; rv == APR_SUCCESS && i < files->nelts; i++) {
        if (mdl_coverage_has(places, i, i + 1)) {
            APR_ARRAY_PUSH(*charged, apr_int64_t) = APR_ARRAY_IDX(files, i, apr_int64_t);
        }
    }
    return rv;
}

/* Another archive may be of other files: it needs a download of each but those that the last one's
   session was charged for, whose places in the new archive go to charged_places. */
static apr_status_t session_exchange(mdl_db_t *db, mdl_session_begin_t *begin,
                                     const mdl_session_t *last, mdl_coverage_t *charged_places,
                                     apr_time_t now, apr_pool_t *p)
{
    apr_array_header_t *charged;
    apr_array_header_t *wanted = apr_array_make(p, begin->files->nelts, sizeof(apr_int64_t));
    apr_status_t rv = session_charged_files(db, last, now, &charged, p);

    for (int i = 0; rv == APR_SUCCESS && i < begin->files->nelts; i++) {
        apr_int64_t id = APR_ARRAY_IDX(begin->files, i, apr_int64_t);

        if (mdl_ids_has(charged, id)) {
            mdl_coverage_add(charged_places, i, i + 1);
        } else {
            APR_ARRAY_PUSH(wanted, apr_int64_t) = id;
        }
    }
    return rv == APR_SUCCESS ? allowance_take_all(db, begin, wanted, p) : rv;
}

/* Ends the session of a file's last version; the download that it reserved passes on to the next
   session. */
static apr_status_t session_pass_on(mdl_db_t *db, const mdl_session_t *last, apr_time_t now,
                                    apr_pool_t *p)
{
    mdl_session_t session = *last;

    session.status = MDL_SESSION_RETURNED;
    return session_store(db, &session, mdl_coverage_read(last->ranges, p), 0, now, p);
}

/* Opens the link's next session.  The reservation of one that is still open passes on to it, and so
   does what an archive was charged. */
static apr_status_t session_open_next(mdl_db_t *db, mdl_session_begin_t *begin,
                                      const mdl_session_t *last, apr_time_t now, apr_pool_t *p)
{
    mdl_coverage_t *charged_places = mdl_coverage_make(p);
    apr_int64_t opened;
    apr_status_t rv;

    begin->generation = last->generation + 1;
    begin->why = last->status == MDL_SESSION_OPEN
                     ? "not counted, its session goes on with the file's new version"
                     : "counted, another download by the same link";
    if (last->reserved.asset_id == 0 && last->status != MDL_SESSION_COUNTED) {
        rv = session_exchange(db, begin, last, charged_places, now, p);
    } else if (last->status == MDL_SESSION_OPEN) {
        rv = session_pass_on(db, last, now, p);
    } else {
        rv = allowance_take_all(db, begin, begin->files, p);
    }
    if (rv == APR_SUCCESS) {
        rv = session_open(db, begin, &opened, now, p);
    }
    return rv == APR_SUCCESS && charged_places->nelts > 0
               ? session_set_charged(db, last->id, begin->generation, charged_places, p)
               : rv;
}

/* The files of which a session that was returned has no download any more. */
static apr_array_header_t *session_returned_files(const mdl_session_begin_t *begin,
                                                  const mdl_session_t *last, apr_pool_t *p)
{
    const mdl_coverage_t *charged = mdl_coverage_read(last->reserved.charged_places, p);
    apr_array_header_t *files = apr_array_make(p, begin->files->nelts, sizeof(apr_int64_t));

    for (int i = 0; i < begin->files->nelts; i++) {
        if (!mdl_coverage_has(charged, i, i + 1)) {
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

/* Whether the request needs a session of its own: the file has changed, or it was counted and the
   whole is asked for again. */
static int session_needs_next(const mdl_session_begin_t *begin, const mdl_session_t *last)
{
    return strcmp(last->reserved.etag, begin->etag) != 0 ||
           (last->status == MDL_SESSION_COUNTED && begin->whole);
}

/* Whether a request may go on with the session that there is.  That is unsettled as long as running
   transfers may end: then there is room, or the session is whole and the whole is another download.
 */
static mdl_entitlement_t session_entitlement(const mdl_session_begin_t *begin,
                                             const mdl_session_t *last, const running_t *running,
                                             apr_time_t now)
{
    apr_int64_t size = last->reserved.size;
    int is_next = session_needs_next(begin, last);

    if (last->reserved.opened_at + begin->lifetime <= now) {
        return MDL_ENTITLEMENT_LINK_OLD;
    }
    if (running->count >= MDL_SESSION_TRANSFERS) {
        return begin->patient ? MDL_ENTITLEMENT_UNSETTLED : MDL_ENTITLEMENT_CROWDED;
    }
    if (!is_next && size > 0 && last->bytes + running->bytes >= size * MDL_DOWNLOAD_FACTOR) {
        return MDL_ENTITLEMENT_CAPPED;
    }
    if (!is_next && last->status == MDL_SESSION_OPEN && begin->whole && running->count > 0 &&
        begin->patient) {
        return MDL_ENTITLEMENT_UNSETTLED;
    }
    return MDL_ENTITLEMENT_OK;
}

/* Goes on with the same session. */
static apr_status_t session_rejoin(mdl_db_t *db, mdl_session_begin_t *begin,
                                   const mdl_session_t *last, apr_time_t now, apr_pool_t *p)
{
    mdl_session_status_t status = last->status;
    apr_status_t rv;

    begin->generation = last->generation;
    if (status == MDL_SESSION_RETURNED) {
        rv = allowance_take_all(db, begin, session_returned_files(begin, last, p), p);
        if (rv != APR_SUCCESS) {
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

static apr_status_t session_continue(mdl_db_t *db, mdl_session_begin_t *begin, apr_time_t now,
                                     apr_pool_t *p)
{
    mdl_session_t last;
    running_t running;
    apr_status_t rv;

    if ((rv = session_lock(db, begin->link->session, p)) != APR_SUCCESS ||
        (rv = mdl_session_find(db, begin->link->session, &last, p)) != APR_SUCCESS ||
        (rv = find_running(db, &last, now, &running, p)) != APR_SUCCESS) {
        return rv;
    }
    begin->entitlement = session_entitlement(begin, &last, &running, now);
    if (begin->entitlement != MDL_ENTITLEMENT_OK) {
        return APR_EGENERAL;
    }
    return session_needs_next(begin, &last) ? session_open_next(db, begin, &last, now, p)
                                            : session_rejoin(db, begin, &last, now, p);
}

static apr_status_t begin_transfer(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_session_begin_t *begin = arg;
    const mdl_signed_file_t *link = begin->link;
    apr_time_t now = apr_time_now();
    apr_int64_t opened;
    apr_status_t rv;

    begin->entitlement = MDL_ENTITLEMENT_OK;
    begin->generation = 1;
    rv = session_open(db, begin, &opened, now, p);
    if (rv == APR_SUCCESS && opened) {
        begin->why = "counted";
        rv = allowance_take_all(db, begin, begin->files, p);
    } else if (rv == APR_SUCCESS) {
        rv = session_continue(db, begin, now, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, MDL_Q_TRANSFER_BEGIN, NULL, p,
                         MDL_ARGS(mdl_text(begin->transfer_id), mdl_text(link->session),
                                  mdl_int(begin->generation), mdl_int(link->assignment_id),
                                  mdl_text(begin->lease_id)));
    }
    if (rv == APR_SUCCESS && begin->leased_until != 0) {
        rv = mdl_db_exec(db, MDL_Q_LEASE_RENEW, NULL, p,
                         MDL_ARGS(mdl_text(begin->lease_id), mdl_int(begin->leased_until)));
    }
    return rv;
}

apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_write(db, begin_transfer, begin, p);

    return rv == APR_EGENERAL && begin->entitlement != MDL_ENTITLEMENT_OK ? APR_SUCCESS : rv;
}

/* --- what transfers delivered --- */

/* A transfer that was given up as lost and ends after all finds its session returned: what it makes
   whole has to be taken all the same, even beyond the limit. */
static apr_status_t session_close_again(mdl_db_t *db, mdl_session_t *session,
                                        mdl_coverage_t *delivered, apr_pool_t *p)
{
    mdl_settlement_t settlement;
    apr_int64_t taken;
    apr_status_t rv = session_close(db, session, delivered, &settlement, p);

    return rv == APR_SUCCESS && settlement.charged->nelts > 0
               ? allowance_take(db, session->reserved.assignment_id, settlement.charged, 0, &taken,
                                p)
               : rv;
}

static apr_status_t session_add(mdl_db_t *db, mdl_session_t *session,
                                const mdl_session_delivery_t *delivery, apr_time_t until,
                                apr_pool_t *p)
{
    mdl_coverage_t *delivered = mdl_coverage_read(session->ranges, p);
    int whole = 0;
    apr_status_t rv = APR_SUCCESS;

    mdl_coverage_join(delivered, delivery->coverage);
    if (session->status == MDL_SESSION_OPEN) {
        rv = mdl_settlement_is_whole(db, &session->reserved, delivered, &whole, p);
    } else if (session->status == MDL_SESSION_RETURNED) {
        rv = session_close_again(db, session, delivered, p);
    }
    if (whole) {
        session->status = MDL_SESSION_COUNTED;
    }
    return rv == APR_SUCCESS ? session_store(db, session, delivered, delivery->bytes, until, p)
                             : rv;
}

static apr_status_t session_get(mdl_db_t *db, const char *id, apr_int64_t generation,
                                mdl_session_t *session, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_GET, &row, p,
                                        MDL_ARGS(mdl_text(id), mdl_int(generation)));

    if (rv == APR_SUCCESS) {
        session_read(row, id, session);
    }
    return rv;
}

/* A transfer that was settled before, because it was taken for lost or because the answer to a
   COMMIT was, adds its ranges, which may be more by now, but no bytes. */
static apr_status_t transfer_settle(mdl_db_t *db, const mdl_session_delivery_t *delivery,
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
    return rv == APR_SUCCESS ? session_add(db, &session, &rest, until, p) : rv;
}

/* Locks all sessions before anything else. */
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
    if ((rv = session_lock_all(db, ids, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < all->deliveries->nelts; i++) {
        rv = transfer_settle(db, &APR_ARRAY_IDX(all->deliveries, i, mdl_session_delivery_t), until,
                             p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* --- idle sessions --- */

/* Whether a transfer of this very session runs: those of the link's other sessions don't keep it
   open. */
static apr_status_t session_is_running(mdl_db_t *db, const mdl_session_t *session, int *running,
                                       apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, MDL_Q_TRANSFER_OF_SESSION, &row, p,
        MDL_ARGS(mdl_text(session->id), mdl_int(session->generation)));

    *running = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t session_end_idle(mdl_db_t *db, const mdl_session_t *idle, apr_time_t now,
                                     apr_pool_t *p)
{
    mdl_session_t session;
    const mdl_coverage_t *charged;
    int running;
    apr_status_t rv;

    if ((rv = session_lock(db, idle->id, p)) != APR_SUCCESS ||
        (rv = session_get(db, idle->id, idle->generation, &session, p)) != APR_SUCCESS ||
        (rv = session_is_running(db, &session, &running, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    if (session.status != MDL_SESSION_OPEN || session.idle_at > now || running) {
        return APR_SUCCESS; /* it was resumed meanwhile */
    }
    return session_end(db, &session, session.idle_at, &charged, p);
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

static int session_compare(const void *one, const void *other)
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
    qsort(sessions->elts, (size_t)sessions->nelts, sizeof(mdl_session_t), session_compare);
    for (int i = 0; i < sessions->nelts; i++) {
        APR_ARRAY_PUSH(ids, const char *) = APR_ARRAY_IDX(sessions, i, mdl_session_t).id;
    }
    rv = rv == APR_SUCCESS ? session_lock_all(db, ids, p) : rv;
    apr_pool_create(&each, p);
    for (int i = 0; i < sessions->nelts && rv == APR_SUCCESS; i++) {
        apr_pool_clear(each);
        rv = session_end_idle(db, &APR_ARRAY_IDX(sessions, i, mdl_session_t), now, each);
    }
    apr_pool_destroy(each);
    return rv;
}

apr_status_t mdl_session_ask_list(mdl_db_t *db, apr_int64_t order_id, int limit, mdl_rows_t **rows,
                                  apr_pool_t *p)
{
    return mdl_db_select(db, MDL_Q_DOWNLOAD_SESSIONS_OF_ORDER, rows, p,
                         MDL_ARGS(mdl_int(order_id), mdl_int(limit)));
}

apr_array_header_t *mdl_session_read_list(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *sessions = apr_array_make(p, 8, sizeof(mdl_session_view_t));

    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(sessions, mdl_session_view_t) = (mdl_session_view_t){
            .assignment_id = mdl_rows_int(rows, 0),
            .asset_id = mdl_rows_int(rows, 1),
            .status = mdl_rows_enum(rows, 2, mdl_session_status_names),
            .size = mdl_rows_int(rows, 3),
            .transfers = mdl_rows_int(rows, 4),
            .opened_at = mdl_rows_int(rows, 5),
            .updated_at = mdl_rows_int(rows, 6),
            .bytes = mdl_rows_int(rows, 7)};
    }
    return sessions;
}
