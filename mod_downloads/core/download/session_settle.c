#include "core/download/session_settle.h"

#include <stdlib.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/text/json.h"
#include "core/download/reservation.h"
#include "core/ids.h"
#include "core/metrics.h"
#include "core/shop/event.h"

/* The change to a file's allowance, and the progress kept with it. */
typedef struct {
    apr_int64_t key[2];     /* ids of assignment and asset */
    int taken;              /* downloads; negative: given back */
    mdl_progress_t *kept;   /* progress of earlier sessions; NULL: none */
    apr_int64_t kept_bytes; /* the sum of what each of them delivered */
    apr_uint64_t version;   /* of the file, if is_fresh */
    int is_fresh;           /* whether it began with this version: it knows nothing of others */
    int is_changed;
} allowance_t;

/* A file of a session, before deliveries are added.  Kept small, like mdl_progress_t. */
typedef struct {
    unsigned char charge;       /* mdl_charge_state_t */
    unsigned char is_delivered; /* whether any of it is delivered */
} before_t;

/* A session in a settlement. */
typedef struct {
    mdl_session_t session;
    apr_array_header_t *files; /* mdl_progress_t; NULL: no such session */
    before_t *before;          /* for each of files */
    int is_ended;              /* whether it is idle */
    int is_delivered;          /* whether transfers of it have ended */
    apr_int64_t transfers;     /* number of these that were not settled before */
    apr_int64_t bytes;         /* delivered by these */
    apr_int64_t acknowledged;
    apr_int64_t handed_over;
} settled_t;

typedef struct {
    mdl_db_t *db;
    apr_pool_t *pool;
    apr_time_t now;
    apr_interval_time_t idle;
    int default_download_limit;
    apr_hash_t *wanted;           /* settled_t, by generation and id */
    apr_array_header_t *sessions; /* settled_t *: those of wanted that exist */
    apr_hash_t *allowances;       /* allowance_t, by key */
    apr_array_header_t *counted;  /* mdl_event_download_t: of newly counted sessions */
} settlement_t;

static settlement_t settlement_begin(mdl_db_t *db, apr_interval_time_t idle,
                                     int default_download_limit, apr_pool_t *p)
{
    return (settlement_t){.db = db,
                          .pool = p,
                          .now = apr_time_now(),
                          .idle = idle,
                          .default_download_limit = default_download_limit,
                          .wanted = apr_hash_make(p),
                          .sessions = apr_array_make(p, 16, sizeof(settled_t *)),
                          .allowances = apr_hash_make(p),
                          .counted = apr_array_make(p, 4, sizeof(mdl_event_download_t))};
}

/* The session with this id and generation; added to wanted if needed. */
static settled_t *settlement_session(settlement_t *settlement, const char *id,
                                     apr_int64_t generation)
{
    apr_pool_t *p = settlement->pool;
    const char *key = apr_psprintf(p, "%" APR_INT64_T_FMT " %s", generation, id);
    settled_t *settled = apr_hash_get(settlement->wanted, key, APR_HASH_KEY_STRING);

    if (settled == NULL) {
        settled = apr_pcalloc(p, sizeof *settled);
        settled->session.id = id;
        settled->session.generation = generation;
        apr_hash_set(settlement->wanted, key, APR_HASH_KEY_STRING, settled);
    }
    return settled;
}

static allowance_t *settlement_allowance(settlement_t *settlement, const settled_t *settled,
                                         const mdl_progress_t *file)
{
    apr_int64_t key[2] = {settled->session.assignment_id, file->asset_id};
    allowance_t *allowance = apr_hash_get(settlement->allowances, key, sizeof key);

    if (allowance == NULL) {
        allowance = apr_pcalloc(settlement->pool, sizeof *allowance);
        memcpy(allowance->key, key, sizeof key);
        apr_hash_set(settlement->allowances, allowance->key, sizeof key, allowance);
    }
    return allowance;
}

/* --- reading --- */

static const char *sessions_json(const settlement_t *settlement)
{
    apr_pool_t *p = settlement->pool;
    mdl_json_t *list = mdl_json_array(p);

    for (apr_hash_index_t *i = apr_hash_first(p, settlement->wanted); i != NULL;
         i = apr_hash_next(i)) {
        const settled_t *settled = apr_hash_this_val(i);
        mdl_json_t *each = mdl_json_add_object(list, NULL);

        mdl_json_add_string(each, "id", settled->session.id);
        mdl_json_add_int(each, "generation", settled->session.generation);
    }
    return mdl_json_text(list, NULL, p);
}

static const char *transfers_json(const apr_array_header_t *deliveries, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_array(p);

    for (int i = 0; i < deliveries->nelts; i++) {
        mdl_json_add_string(list, NULL,
                            APR_ARRAY_IDX(deliveries, i, mdl_session_delivery_t).transfer_id);
    }
    return mdl_json_text(list, NULL, p);
}

static mdl_progress_t *settled_file(const settled_t *settled, int i)
{
    return &APR_ARRAY_IDX(settled->files, i, mdl_progress_t);
}

/* Adds an existing session, in its state before the settlement. */
static settled_t *settlement_found(settlement_t *settlement, const mdl_session_t *session)
{
    apr_pool_t *p = settlement->pool;
    settled_t *settled = settlement_session(settlement, session->id, session->generation);

    settled->session = *session;
    settled->files = mdl_progress_read(session->files, p);
    settled->before = apr_pcalloc(p, (apr_size_t)settled->files->nelts * sizeof *settled->before);
    for (int i = 0; i < settled->files->nelts; i++) {
        settled->before[i].charge = (unsigned char)mdl_session_charge(session->status,
                                                                      settled_file(settled, i));
    }
    APR_ARRAY_PUSH(settlement->sessions, settled_t *) = settled;
    return settled;
}

static void settled_add(settled_t *settled, const mdl_session_delivery_t *delivery, apr_pool_t *p)
{
    int next = 0;

    settled->is_delivered = 1;
    for (int i = 0; i < delivery->files->nelts; i++) {
        const mdl_progress_t *more = &APR_ARRAY_IDX(delivery->files, i, mdl_progress_t);
        mdl_progress_t *file = mdl_progress_find(settled->files, more->asset_id, &next);

        if (file != NULL) {
            mdl_progress_add(file, more, p);
            settled->before[file - settled_file(settled, 0)].is_delivered = 1;
        }
    }
}

/* A transfer already settled, because it was taken for lost or a COMMIT's answer was lost, may add
   ranges, never bytes.  A part without a row adds its bytes twice if a COMMIT's answer was lost. */
static void settlement_add_deliveries(settlement_t *settlement, mdl_rows_t *ended_rows,
                                      const apr_array_header_t *deliveries)
{
    apr_hash_t *ended = apr_hash_make(settlement->pool);

    while (mdl_rows_next(ended_rows)) {
        apr_hash_set(ended, mdl_rows_text(ended_rows, 0), APR_HASH_KEY_STRING, settlement);
    }
    for (int i = 0; i < deliveries->nelts; i++) {
        const mdl_session_delivery_t *delivery = &APR_ARRAY_IDX(deliveries, i,
                                                                mdl_session_delivery_t);
        settled_t *settled = settlement_session(settlement, delivery->session_id,
                                                delivery->generation);

        if (settled->files == NULL) {
            continue;
        }
        settled_add(settled, delivery, settlement->pool);
        if (delivery->is_unwritten ||
            apr_hash_get(ended, delivery->transfer_id, APR_HASH_KEY_STRING) != NULL) {
            settled->bytes += delivery->bytes;
            settled->acknowledged += delivery->acknowledged;
            settled->handed_over += delivery->handed_over;
            settled->transfers++;
            mdl_db_count(settlement->db, &mdl_metrics->delivered_bytes[MDL_DELIVERED_HERE],
                         delivery->bytes - delivery->handed_over);
            mdl_db_count(settlement->db, &mdl_metrics->delivered_bytes[MDL_DELIVERED_BY_STORE],
                         delivery->handed_over);
        }
    }
}

/* Locks the sessions before anything else, in the order of their keys, to avoid deadlocks. */
static apr_status_t settlement_read(settlement_t *settlement, const mdl_session_settle_t *all)
{
    mdl_db_t *db = settlement->db;
    apr_pool_t *p = settlement->pool;
    mdl_rows_t *locked, *ended;
    mdl_session_t session;
    apr_status_t rv = mdl_db_select(db, &locked, p,
                                    MDL_Q(DOWNLOAD_SESSIONS_LOCK, sessions_json(settlement)));

    if (rv == APR_SUCCESS && all != NULL) {
        rv = mdl_db_select(db, &ended, p,
                           MDL_Q(TRANSFERS_END, .meter_id = all->meter_id,
                                 .transfers = transfers_json(all->deliveries, p)));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(locked)) {
        mdl_session_read(locked, 0, &session);
        settlement_found(settlement, &session);
    }
    if (rv == APR_SUCCESS && all != NULL) {
        settlement_add_deliveries(settlement, ended, all->deliveries);
    }
    return rv;
}

static apr_status_t settlement_read_allowances(settlement_t *settlement)
{
    apr_pool_t *p = settlement->pool;
    mdl_json_t *list = mdl_json_array(p);
    mdl_rows_t *rows;
    apr_status_t rv;

    if (apr_hash_count(settlement->allowances) == 0) {
        return APR_SUCCESS;
    }
    for (apr_hash_index_t *i = apr_hash_first(p, settlement->allowances); i != NULL;
         i = apr_hash_next(i)) {
        const allowance_t *allowance = apr_hash_this_val(i);
        mdl_json_t *each = mdl_json_add_object(list, NULL);

        mdl_json_add_int(each, "assignment_id", allowance->key[0]);
        mdl_json_add_int(each, "asset_id", allowance->key[1]);
    }
    rv = mdl_db_select(settlement->db, &rows, p,
                       MDL_Q(ALLOWANCES_LOCK, mdl_json_text(list, NULL, p)));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t key[2] = {MDL_INT(rows, allowances_lock, assignment_id),
                              MDL_INT(rows, allowances_lock, asset_id)};
        allowance_t *allowance = apr_hash_get(settlement->allowances, key, sizeof key);
        apr_array_header_t *kept = mdl_progress_read(MDL_TEXT(rows, allowances_lock, kept), p);
        mdl_progress_t *first = kept->nelts > 0 ? &APR_ARRAY_IDX(kept, 0, mdl_progress_t) : NULL;

        allowance->kept = first != NULL && first->part != NULL ? first : NULL;
        allowance->kept_bytes = MDL_INT(rows, allowances_lock, kept_bytes);
        allowance->is_fresh = MDL_INT(rows, allowances_lock, is_fresh) != 0;
        allowance->version = strtoull(MDL_TEXT(rows, allowances_lock, version), NULL, 16);
    }
    return rv;
}

/* --- charging --- */

/* Whether settling a file needs its allowance: not if the session completes a reserved download. */
static int settled_needs_allowance(const settled_t *settled, int i)
{
    const mdl_progress_t *file = settled_file(settled, i);
    const before_t *before = &settled->before[i];

    return (before->is_delivered || settled->is_ended) && before->charge != MDL_CHARGE_CHARGED &&
           file->asset_id != MDL_DIRECTORY_ID &&
           !(before->charge == MDL_CHARGE_RESERVED && file->is_whole);
}

/* Whether the allowance began after the session had taken its download, with another version. */
static int allowance_is_later(const allowance_t *allowance, const mdl_progress_t *file)
{
    return allowance->is_fresh && !file->is_whole &&
           (file->part == NULL || file->part->version != allowance->version);
}

/* What the session goes on with, after what it delivered was kept with the allowance. */
static mdl_progress_part_t *part_without_ranges(const mdl_progress_part_t *part, apr_pool_t *p)
{
    mdl_progress_part_t *rest = apr_pmemdup(p, part, sizeof *part);

    rest->ranges = mdl_coverage_make(p);
    return rest;
}

/* Joins a session's progress of a file with the kept progress.  Returns whether both make a
   download; if not, and the session has no download of it, keeps the session's progress, too. */
static int progress_join_kept(mdl_progress_t *file, allowance_t *allowance, int is_free,
                              apr_pool_t *p)
{
    const mdl_progress_part_t *part = file->part;
    apr_int64_t bytes = mdl_coverage_bytes(part->ranges);
    mdl_progress_t joined = {.asset_id = file->asset_id};

    mdl_progress_add(&joined, file, p);
    if (allowance->kept != NULL && allowance->kept->part->version == part->version) {
        mdl_progress_add(&joined, allowance->kept, p);
        bytes += allowance->kept_bytes;
    }
    if (joined.is_whole || (is_free && bytes >= MDL_DOWNLOAD_FACTOR * part->size)) {
        return 1;
    }
    if (is_free) {
        allowance->kept = apr_pmemdup(p, &joined, sizeof joined);
        allowance->kept_bytes = bytes;
        allowance->is_changed = 1;
        file->part = allowance->is_fresh ? part_without_ranges(file->part, p) : NULL;
    }
    return 0;
}

static void settled_charge(settled_t *settled, int i, allowance_t *allowance, apr_pool_t *p)
{
    mdl_progress_t *file = settled_file(settled, i);
    mdl_charge_state_t state = settled->before[i].charge;
    mdl_charge_event_t event = settled->is_ended ? MDL_CHARGE_IDLE : MDL_CHARGE_PART;
    mdl_charge_t charge = mdl_charge_step(state, event);

    if (allowance_is_later(allowance, file)) {
        return;
    }
    if (!file->is_whole && file->part != NULL && file->part->ranges->nelts > 0) {
        file->is_whole = progress_join_kept(file, allowance, charge.state == MDL_CHARGE_FREE, p);
    }
    if (file->is_whole) {
        /* The kept progress is used up: some of it may be this session's own. */
        allowance->is_changed = 1;
        allowance->kept = NULL;
        charge = mdl_charge_step(state, MDL_CHARGE_WHOLE);
    }
    if (charge.effect != MDL_CHARGE_NOTHING) {
        allowance->taken += charge.effect == MDL_CHARGE_GIVE_BACK ? -1 : 1;
        allowance->is_changed = 1;
    }
}

/* An open session also needs the archive's central directory to be counted: a client that lacks
   only that, and requests the whole again, does not pay twice. */
static mdl_session_status_t settled_status(const settled_t *settled)
{
    const mdl_session_t *session = &settled->session;
    int is_over = settled->is_ended || session->status != MDL_SESSION_OPEN;

    for (int i = 0; i < settled->files->nelts; i++) {
        const mdl_progress_t *file = settled_file(settled, i);

        if (!file->is_whole && !(is_over && file->asset_id == MDL_DIRECTORY_ID)) {
            return is_over ? MDL_SESSION_RETURNED : MDL_SESSION_OPEN;
        }
    }
    return MDL_SESSION_COUNTED;
}

static void settlement_note_allowances(settlement_t *settlement, const settled_t *settled)
{
    for (int i = 0; i < settled->files->nelts; i++) {
        if (settled_needs_allowance(settled, i)) {
            settlement_allowance(settlement, settled, settled_file(settled, i));
        }
    }
}

static void settlement_charge(settlement_t *settlement, settled_t *settled)
{
    mdl_session_t *session = &settled->session;
    mdl_session_status_t before = session->status;

    for (int i = 0; i < settled->files->nelts; i++) {
        if (settled_needs_allowance(settled, i)) {
            settled_charge(settled, i,
                           settlement_allowance(settlement, settled, settled_file(settled, i)),
                           settlement->pool);
        }
    }
    session->status = settled_status(settled);
    if (session->status == MDL_SESSION_RETURNED && before == MDL_SESSION_OPEN) {
        mdl_db_count(settlement->db, &mdl_metrics->downloads[MDL_DOWNLOAD_RETURNED], 1);
    }
    if (session->status == MDL_SESSION_COUNTED && before != MDL_SESSION_COUNTED) {
        mdl_db_count(settlement->db, &mdl_metrics->downloads[MDL_DOWNLOAD_COUNTED], 1);
        APR_ARRAY_PUSH(settlement->counted, mdl_event_download_t) = (mdl_event_download_t){
            session->assignment_id, session->asset_id, session->size};
    }
}

/* --- writing --- */

static const char *allowance_kept_text(const allowance_t *allowance, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 1, sizeof(mdl_progress_t));

    if (allowance->kept != NULL) {
        APR_ARRAY_PUSH(list, mdl_progress_t) = *allowance->kept;
    }
    return mdl_progress_text(list, p);
}

static apr_status_t settlement_write_sessions(const settlement_t *settlement)
{
    apr_pool_t *p = settlement->pool;
    mdl_json_t *list = mdl_json_array(p);

    for (int i = 0; i < settlement->sessions->nelts; i++) {
        const settled_t *settled = APR_ARRAY_IDX(settlement->sessions, i, settled_t *);
        const mdl_session_t *session = &settled->session;
        mdl_json_t *each;

        if (settled->is_ended || settled->is_delivered) {
            each = mdl_json_add_object(list, NULL);
            mdl_json_add_string(each, "id", session->id);
            mdl_json_add_int(each, "generation", session->generation);
            mdl_json_add_string(each, "status", mdl_session_status_names[session->status]);
            mdl_json_add_string(each, "files", mdl_progress_text(settled->files, p));
            mdl_json_add_int(each, "bytes", settled->bytes);
            mdl_json_add_int(each, "acknowledged", settled->acknowledged);
            mdl_json_add_int(each, "handed_over", settled->handed_over);
            mdl_json_add_int(each, "transfers", settled->transfers);
            if (session->status == MDL_SESSION_OPEN) {
                mdl_json_add_int(each, "idle_at", settlement->now + settlement->idle);
            }
        }
    }
    return mdl_json_length(list) > 0
               ? mdl_db_exec(settlement->db, NULL, p,
                             MDL_Q(DOWNLOAD_SESSIONS_SETTLE, .now = settlement->now,
                                   .sessions = mdl_json_text(list, NULL, p)))
               : APR_SUCCESS;
}

static apr_status_t settlement_write_allowances(const settlement_t *settlement)
{
    apr_pool_t *p = settlement->pool;
    mdl_json_t *list = mdl_json_array(p);

    for (apr_hash_index_t *i = apr_hash_first(p, settlement->allowances); i != NULL;
         i = apr_hash_next(i)) {
        const allowance_t *allowance = apr_hash_this_val(i);
        mdl_json_t *each;

        if (!allowance->is_changed) {
            continue;
        }
        each = mdl_json_add_object(list, NULL);
        mdl_json_add_int(each, "assignment_id", allowance->key[0]);
        mdl_json_add_int(each, "asset_id", allowance->key[1]);
        mdl_json_add_int(each, "taken", allowance->taken);
        mdl_json_add_string(each, "kept", allowance_kept_text(allowance, p));
        mdl_json_add_int(each, "kept_bytes", allowance->kept != NULL ? allowance->kept_bytes : 0);
    }
    return mdl_json_length(list) > 0
               ? mdl_db_exec(settlement->db, NULL, p,
                             MDL_Q(ALLOWANCES_SETTLE, mdl_json_text(list, NULL, p)))
               : APR_SUCCESS;
}

/* Charges and writes the sessions that were read. */
static apr_status_t settlement_finish(settlement_t *settlement)
{
    apr_status_t rv;

    for (int i = 0; i < settlement->sessions->nelts; i++) {
        settlement_note_allowances(settlement, APR_ARRAY_IDX(settlement->sessions, i, settled_t *));
    }
    if ((rv = settlement_read_allowances(settlement)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < settlement->sessions->nelts; i++) {
        settlement_charge(settlement, APR_ARRAY_IDX(settlement->sessions, i, settled_t *));
    }
    if ((rv = settlement_write_sessions(settlement)) != APR_SUCCESS ||
        (rv = settlement_write_allowances(settlement)) != APR_SUCCESS) {
        return rv;
    }
    return settlement->counted->nelts > 0
               ? mdl_event_add_downloads(settlement->db, settlement->counted,
                                         settlement->default_download_limit, settlement->pool)
               : APR_SUCCESS;
}

apr_status_t mdl_session_settle(mdl_db_t *db, apr_pool_t *p, const mdl_session_settle_t *all)
{
    settlement_t settlement = settlement_begin(db, all->idle, all->default_download_limit, p);
    apr_status_t rv;

    for (int i = 0; i < all->deliveries->nelts; i++) {
        const mdl_session_delivery_t *delivery = &APR_ARRAY_IDX(all->deliveries, i,
                                                                mdl_session_delivery_t);

        settlement_session(&settlement, delivery->session_id, delivery->generation);
    }
    if (all->deliveries->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = settlement_read(&settlement, all);
    return rv == APR_SUCCESS ? settlement_finish(&settlement) : rv;
}

apr_status_t mdl_session_end(mdl_db_t *db, const mdl_session_t *session, int default_download_limit,
                             apr_array_header_t **files, apr_pool_t *p)
{
    settlement_t settlement = settlement_begin(db, 0, default_download_limit, p);
    settled_t *settled = settlement_found(&settlement, session);

    settled->is_ended = 1;
    *files = settled->files;
    return settlement_finish(&settlement);
}

/* --- idle sessions --- */

/* False if the session has been resumed in the meantime. */
static int session_is_idle(const mdl_session_t *session, apr_time_t at)
{
    return session->idle_at != 0 && session->idle_at <= at && session->running == 0;
}

/* Ends the wanted sessions that are idle at a time; *ended gets how many. */
static apr_status_t settlement_end_idle(settlement_t *settlement, apr_time_t at, int *ended)
{
    apr_status_t rv = settlement_read(settlement, NULL);

    *ended = 0;
    for (int i = 0; i < settlement->sessions->nelts; i++) {
        settled_t *settled = APR_ARRAY_IDX(settlement->sessions, i, settled_t *);

        settled->is_ended = session_is_idle(&settled->session, at);
        *ended += settled->is_ended;
    }
    return rv == APR_SUCCESS ? settlement_finish(settlement) : rv;
}

apr_status_t mdl_session_sweep(mdl_db_t *db, apr_pool_t *p, mdl_session_sweep_t *sweep)
{
    settlement_t settlement = settlement_begin(db, 0, sweep->default_download_limit, p);
    mdl_rows_t *rows;
    int ended;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(DOWNLOAD_SESSIONS_IDLE, .now = settlement.now, .limit = sweep->limit));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        settlement_session(&settlement, MDL_TEXT(rows, download_sessions_idle, id),
                           MDL_INT(rows, download_sessions_idle, generation));
    }
    sweep->settled = (int)apr_hash_count(settlement.wanted);
    return rv == APR_SUCCESS && sweep->settled > 0
               ? settlement_end_idle(&settlement, settlement.now, &ended)
               : rv;
}

apr_status_t mdl_session_release(mdl_db_t *db, apr_pool_t *p, mdl_session_release_t *release)
{
    settlement_t settlement = settlement_begin(db, 0, release->default_download_limit, p);
    apr_array_header_t *reservations;
    apr_status_t rv = mdl_reservations_read(db, mdl_ids_of(release->assignment_id, p),
                                            &reservations, p);

    release->released = release->running = 0;
    for (int i = 0; i < reservations->nelts; i++) {
        const mdl_reservation_t *each = APR_ARRAY_IDX(reservations, i, mdl_reservation_t *);

        if (mdl_reservation_holds(each, release->asset_id)) {
            release->running += each->is_running;
            if (!each->is_running) {
                settlement_session(&settlement, each->session_id, each->generation);
            }
        }
    }
    return rv == APR_SUCCESS && apr_hash_count(settlement.wanted) > 0
               ? settlement_end_idle(&settlement, APR_INT64_MAX, &release->released)
               : rv;
}

apr_status_t mdl_session_set_back(mdl_db_t *db, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(DOWNLOAD_SESSIONS_SET_BACK, apr_time_now()));
}
