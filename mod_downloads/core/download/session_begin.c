#include "core/download/session_begin.h"

#include <string.h>

#include "base/text/json.h"
#include "core/download/session_settle.h"

#define SMALL_PARTS 64                    /* a small part is at most this fraction of the file */
#define WRITTEN_IN  apr_time_from_sec(10) /* longer than a meter's heartbeat interval */

/* --- statements --- */

/* Takes one download of each file, for a new session or one that has given its downloads back.
   MDL_DB_ENULL if a file has none left; usually not reported before the COMMIT. */
static apr_status_t allowances_take(mdl_db_t *db, const mdl_session_begin_t *begin,
                                    const apr_array_header_t *files, apr_pool_t *p)
{
    mdl_json_t *taken = mdl_json_array(p);
    int any = 0, next = 0;

    for (int i = 0; i < begin->layout->count; i++) {
        const mdl_layout_file_t *of = &begin->layout->files[i];
        const mdl_progress_t *file = mdl_progress_find(files, of->asset_id, &next);

        if (file != NULL && file->asset_id != MDL_DIRECTORY_ID &&
            mdl_charge_step(mdl_session_charge(MDL_SESSION_RETURNED, file), MDL_CHARGE_REQUEST)
                    .effect == MDL_CHARGE_TAKE) {
            mdl_json_t *each = mdl_json_add_array(taken, NULL);

            mdl_json_add_int(each, NULL, of->asset_id);
            mdl_json_add_string(each, NULL, mdl_progress_version_text(of->version, p));
            any = 1;
        }
    }
    return any ? mdl_db_exec(db, NULL, p,
                             MDL_Q(ALLOWANCE_TAKE, .assignment_id = begin->link->assignment_id,
                                   .files = mdl_json_text(taken, NULL, p),
                                   .is_fresh = begin->is_fresh, .limit = begin->limit))
               : APR_SUCCESS;
}

/* Opens a session of begin's generation, and takes its downloads.  MDL_DB_ENULL if it exists
   already, or as above. */
static apr_status_t session_open(mdl_db_t *db, const mdl_session_begin_t *begin,
                                 const apr_array_header_t *files, apr_pool_t *p)
{
    const mdl_signed_file_t *link = begin->link;
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(DOWNLOAD_SESSION_OPEN, .id = link->session, .generation = begin->generation,
              .assignment_id = link->assignment_id, .asset_id = link->asset_id,
              .files = mdl_progress_text(files, p), .etag = begin->etag, .size = begin->size,
              .version = begin->version, .request_id = mdl_db_request(db),
              .network = begin->network, .now = apr_time_now()));

    return rv == APR_SUCCESS ? allowances_take(db, begin, files, p) : rv;
}

static apr_status_t transfer_open(mdl_db_t *db, const mdl_session_begin_t *begin, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(TRANSFER_BEGIN, .id = begin->transfer_id, .session_id = begin->link->session,
              .generation = begin->generation, .assignment_id = begin->link->assignment_id,
              .meter_id = begin->meter_id, .request_id = mdl_db_request(db)));

    return rv == APR_SUCCESS && begin->alive_until != 0
               ? mdl_db_exec(
                     db, NULL, p,
                     MDL_Q(METER_RENEW, .id = begin->meter_id, .alive_until = begin->alive_until))
               : rv;
}

/* --- the first transfer --- */

static apr_status_t begin_first(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_session_begin_t *begin = arg;
    apr_status_t rv;

    begin->entitlement = MDL_ENTITLEMENT_OK;
    begin->generation = 1;
    rv = session_open(db, begin, mdl_progress_begin(begin->layout, begin->is_fresh, p), p);
    if (rv == APR_SUCCESS && (rv = transfer_open(db, begin, p)) == APR_SUCCESS) {
        begin->why = "counted";
    }
    return rv;
}

/* --- the next ones --- */

/* Whether the request needs another session: the content has changed, or the whole is requested
   again after it was counted. */
static int session_needs_next(const mdl_session_begin_t *begin, const mdl_session_t *last)
{
    return strcmp(last->etag, begin->etag) != 0 ||
           (last->status == MDL_SESSION_COUNTED && begin->whole);
}

/* Whether a request may go on after the last session.  UNSETTLED while the end of a running
   transfer may change the answer: it makes room, or the session becomes counted and the whole
   another download. */
static mdl_entitlement_t session_entitlement(const mdl_session_begin_t *begin,
                                             const mdl_session_t *last, apr_time_t now)
{
    int is_next = session_needs_next(begin, last);

    if (last->opened_at + begin->lifetime <= now) {
        return MDL_ENTITLEMENT_LINK_OLD;
    }
    if (last->running >= MDL_SESSION_TRANSFERS) {
        return begin->patient ? MDL_ENTITLEMENT_UNSETTLED : MDL_ENTITLEMENT_CROWDED;
    }
    if (!is_next && last->size > 0 &&
        last->bytes + last->running_bytes >= last->size * MDL_DOWNLOAD_FACTOR) {
        return MDL_ENTITLEMENT_CAPPED;
    }
    if (!is_next && last->status == MDL_SESSION_OPEN && begin->whole && last->running > 0 &&
        begin->patient) {
        return MDL_ENTITLEMENT_UNSETTLED;
    }
    return MDL_ENTITLEMENT_OK;
}

/* The files of the link's next body.  Files that a session was charged for before it was counted
   are not charged again. */
static apr_array_header_t *session_next_files(const mdl_session_begin_t *begin,
                                              const apr_array_header_t *last_files, apr_pool_t *p)
{
    apr_array_header_t *files = mdl_progress_begin(begin->layout, begin->is_fresh, p);
    int next = 0;

    for (int i = 0; i < files->nelts; i++) {
        mdl_progress_t *file = &APR_ARRAY_IDX(files, i, mdl_progress_t);
        const mdl_progress_t *before = mdl_progress_find(last_files, file->asset_id, &next);

        file->is_whole = before != NULL && before->is_whole && file->asset_id != MDL_DIRECTORY_ID;
    }
    return files;
}

/* Opens the link's next session.  If the last one is open, it gives its downloads back, for the
   next one to take. */
static apr_status_t session_open_next(mdl_db_t *db, mdl_session_begin_t *begin,
                                      const mdl_session_t *last, apr_pool_t *p)
{
    apr_array_header_t *files;
    apr_status_t rv = APR_SUCCESS;

    switch (last->status) {
    case MDL_SESSION_OPEN:
        rv = mdl_session_end(db, last, begin->default_download_limit, &files, p);
        files = session_next_files(begin, files, p);
        break;
    case MDL_SESSION_RETURNED:
        files = session_next_files(begin, mdl_progress_read(last->files, p), p);
        break;
    case MDL_SESSION_COUNTED:
        files = mdl_progress_begin(begin->layout, begin->is_fresh, p);
    }
    begin->generation = last->generation + 1;
    return rv == APR_SUCCESS ? session_open(db, begin, files, p) : rv;
}

/* Resumes the last session. */
static apr_status_t session_rejoin(mdl_db_t *db, mdl_session_begin_t *begin,
                                   const mdl_session_t *last, apr_pool_t *p)
{
    int is_returned = last->status == MDL_SESSION_RETURNED;
    mdl_session_status_t status = is_returned ? MDL_SESSION_OPEN : last->status;
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(DOWNLOAD_SESSION_RESUME, .status = mdl_session_status_names[status],
              .now = apr_time_now(), .id = last->id, .generation = last->generation));

    begin->generation = last->generation;
    return rv == APR_SUCCESS && is_returned
               ? allowances_take(db, begin, mdl_progress_read(last->files, p), p)
               : rv;
}

/* How a request counts, by the link's last session before it. */
static const char *session_why(const mdl_session_t *last, int is_next)
{
    if (is_next) {
        return last->status == MDL_SESSION_OPEN
                   ? "not counted, its session goes on with the file's new version"
                   : "counted, another download by the same link";
    }
    switch (last->status) {
    case MDL_SESSION_OPEN:
        return "not counted, its session is open";
    case MDL_SESSION_COUNTED:
        return "not counted, a part of what was counted";
    case MDL_SESSION_RETURNED:
        break;
    }
    return "counted, its session goes on after it had given its download back";
}

/* Whether the part, if it still runs, gets a row before its session can become idle. */
static int session_outlives_part(const mdl_session_begin_t *begin, apr_time_t now)
{
    apr_time_t idle_at = begin->last.idle_at;

    return (idle_at != 0 ? idle_at - now : begin->idle) > WRITTEN_IN;
}

/*
 * Whether other requests of the link need not know of a part at once.  A counted session stays
 * counted.  An open session is far from complete while it has sent less than half its size, and
 * must not become idle before the part has a row.
 */
static int session_takes_part(const mdl_session_begin_t *begin, apr_time_t now)
{
    const mdl_session_t *last = &begin->last;

    return last->status == MDL_SESSION_COUNTED ||
           (last->status == MDL_SESSION_OPEN && last->bytes < last->size / 2 &&
            begin->bytes <= last->size / SMALL_PARTS && session_outlives_part(begin, now));
}

int mdl_session_begin_part(mdl_session_begin_t *begin)
{
    const mdl_session_t *last = &begin->last;
    apr_time_t now = apr_time_now();

    begin->is_unwritten = last->generation != 0 && !begin->whole &&
                          begin->bytes <= MDL_SESSION_SMALL_PART &&
                          !session_needs_next(begin, last) && session_takes_part(begin, now) &&
                          session_entitlement(begin, last, now) == MDL_ENTITLEMENT_OK;
    if (begin->is_unwritten) {
        begin->entitlement = MDL_ENTITLEMENT_OK;
        begin->generation = last->generation;
        begin->why = session_why(last, 0);
    }
    return begin->is_unwritten;
}

/* Reads the link's last session, locked against all other requests and settlements. */
static apr_status_t session_lock_last(mdl_db_t *db, const char *link, mdl_session_t *last,
                                      apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select(db, &row, p, MDL_Q(DOWNLOAD_SESSION_LOCK, link));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(db, &row, p, MDL_Q(DOWNLOAD_SESSION_LAST, link));
    }
    if (rv == APR_SUCCESS) {
        mdl_session_read(row, 0, last);
    }
    return rv;
}

static apr_status_t begin_next(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_session_begin_t *begin = arg;
    const mdl_session_t *last = &begin->last;
    const char *why;
    int is_next;
    apr_status_t rv = session_lock_last(db, begin->link->session, &begin->last, p);

    if (rv != APR_SUCCESS || mdl_session_begin_part(begin)) {
        return rv;
    }
    begin->entitlement = session_entitlement(begin, last, apr_time_now());
    if (begin->entitlement != MDL_ENTITLEMENT_OK) {
        return APR_EGENERAL;
    }
    is_next = session_needs_next(begin, last);
    why = session_why(last, is_next);
    rv = is_next ? session_open_next(db, begin, last, p) : session_rejoin(db, begin, last, p);
    if (rv == APR_SUCCESS && (rv = transfer_open(db, begin, p)) == APR_SUCCESS) {
        begin->why = why;
    }
    return rv;
}

/* If the link's first transfer can't begin, another request of the link was faster, or no download
   is left. */
static apr_status_t begin_any(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p)
{
    int is_known = begin->last.generation != 0;
    apr_status_t rv = is_known ? MDL_DB_ENULL : mdl_db_write(db, begin_first, begin, p);

    if (rv == MDL_DB_ENULL) {
        begin->why = NULL;
        rv = mdl_db_write(db, begin_next, begin, p);
    }
    if (rv == MDL_DB_ENULL || (rv == APR_ENOENT && !is_known)) {
        begin->why = NULL;
        begin->entitlement = MDL_ENTITLEMENT_EXHAUSTED;
        return APR_SUCCESS;
    }
    return rv == APR_EGENERAL && begin->entitlement != MDL_ENTITLEMENT_OK ? APR_SUCCESS : rv;
}

MDL_EFFECT(mdl_session_release, mdl_session_release_t *)

/* If no download is left, ends sessions without a transfer as if they were idle, and retries. */
apr_status_t mdl_session_begin(mdl_db_t *db, mdl_session_begin_t *begin, apr_pool_t *p)
{
    mdl_session_release_t release = {.assignment_id = begin->link->assignment_id,
                                     .asset_id = begin->link->asset_id,
                                     .default_download_limit = begin->default_download_limit};
    apr_status_t rv = begin_any(db, begin, p);

    if (rv != APR_SUCCESS || begin->entitlement != MDL_ENTITLEMENT_EXHAUSTED) {
        return rv;
    }
    rv = mdl_db_write(db, mdl_session_release_effect, &release, p);
    if (rv == APR_SUCCESS && release.released > 0) {
        rv = begin_any(db, begin, p);
    }
    if (rv == APR_SUCCESS && begin->entitlement == MDL_ENTITLEMENT_EXHAUSTED &&
        release.running > 0) {
        begin->entitlement = MDL_ENTITLEMENT_RUNNING;
    }
    return rv;
}
