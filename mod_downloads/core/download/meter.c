#include "core/download/meter.h"

#include <apr_hash.h>

#include "base/text/json.h"
#include "core/download/signed_url.h"

static const char *meter_progress_json(const apr_array_header_t *progress, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_array(p);

    for (int i = 0; i < progress->nelts; i++) {
        const mdl_session_delivery_t *moved = &APR_ARRAY_IDX(progress, i, mdl_session_delivery_t);
        mdl_json_t *each = mdl_json_add_object(list, NULL);

        mdl_json_add_string(each, "id", moved->transfer_id);
        mdl_json_add_string(each, "files", mdl_progress_text(moved->files, p));
        mdl_json_add_int(each, "bytes", moved->bytes);
        mdl_json_add_int(each, "acknowledged", moved->acknowledged);
        mdl_json_add_int(each, "handed_over", moved->handed_over);
    }
    return mdl_json_text(list, NULL, p);
}

/* Writes rows for small parts that take longer than expected. */
static apr_status_t meter_write_small(mdl_db_t *db, const mdl_meter_tick_t *tick, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < tick->progress->nelts && rv == APR_SUCCESS; i++) {
        const mdl_session_delivery_t *moved = &APR_ARRAY_IDX(tick->progress, i,
                                                             mdl_session_delivery_t);

        if (moved->is_unwritten) {
            rv = mdl_db_exec(db, NULL, p,
                             MDL_Q(TRANSFER_BEGIN, .id = moved->transfer_id,
                                   .session_id = moved->session_id, .generation = moved->generation,
                                   .assignment_id = moved->assignment_id, .meter_id = tick->id,
                                   .request_id = NULL));
        }
    }
    return rv;
}

/* The transfers that made progress but no longer have a row. */
static apr_array_header_t *meter_find_lost(const apr_array_header_t *progress, mdl_rows_t *rows,
                                           apr_pool_t *p)
{
    apr_array_header_t *lost = apr_array_make(p, 4, sizeof(const char *));
    apr_hash_t *known = apr_hash_make(p);

    while (mdl_rows_next(rows)) {
        apr_hash_set(known, mdl_rows_text(rows, 0), APR_HASH_KEY_STRING, known);
    }
    for (int i = 0; i < progress->nelts; i++) {
        const char *id = APR_ARRAY_IDX(progress, i, mdl_session_delivery_t).transfer_id;

        if (apr_hash_get(known, id, APR_HASH_KEY_STRING) == NULL) {
            APR_ARRAY_PUSH(lost, const char *) = id;
        }
    }
    return lost;
}

apr_status_t mdl_meter_renew(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_exec(
        db, NULL, p, MDL_Q(METER_RENEW, .id = tick->id, .alive_until = tick->alive_until));

    tick->lost = apr_array_make(p, 0, sizeof(const char *));
    if (rv == APR_SUCCESS) {
        rv = meter_write_small(db, tick, p);
    }
    if (rv == APR_SUCCESS && tick->progress->nelts > 0) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(TRANSFERS_PROGRESS, .meter_id = tick->id,
                                 .progress = meter_progress_json(tick->progress, p)));
        tick->lost = rv == APR_SUCCESS ? meter_find_lost(tick->progress, rows, p) : tick->lost;
    }
    return rv;
}

apr_status_t mdl_meter_forbidden(mdl_db_t *db, apr_pool_t *p, mdl_meter_tick_t *tick)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(TRANSFERS_FORBIDDEN, .now = apr_time_now(),
                                          .factor = MDL_DOWNLOAD_FACTOR, .meter_id = tick->id));

    tick->forbidden = apr_array_make(p, 4, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *page_id = MDL_TEXT(rows, transfers_forbidden, page_id);

        if (page_id == NULL ||
            !mdl_signed_url_session_of(
                tick->secret, MDL_TEXT(rows, transfers_forbidden, session_id), page_id, p)) {
            APR_ARRAY_PUSH(tick->forbidden, const char *) = MDL_TEXT(rows, transfers_forbidden, id);
        }
    }
    return rv;
}

static apr_status_t meter_settle(mdl_db_t *db, const char *meter_id, mdl_meter_sweep_t *sweep,
                                 apr_pool_t *p)
{
    apr_array_header_t *lost = apr_array_make(p, 16, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t settle = {.meter_id = meter_id,
                                   .deliveries = lost,
                                   .idle = sweep->idle,
                                   .default_download_limit = sweep->default_download_limit};
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(TRANSFERS_OF_METER, .meter_id = meter_id, .limit = sweep->limit));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(lost, mdl_session_delivery_t) = (mdl_session_delivery_t){
            .transfer_id = MDL_TEXT(rows, transfers_of_meter, id),
            .session_id = MDL_TEXT(rows, transfers_of_meter, session_id),
            .generation = MDL_INT(rows, transfers_of_meter, generation),
            .files = mdl_progress_read(MDL_TEXT(rows, transfers_of_meter, files), p),
            .bytes = MDL_INT(rows, transfers_of_meter, bytes),
            .acknowledged = MDL_INT(rows, transfers_of_meter, acknowledged),
            .handed_over = MDL_INT(rows, transfers_of_meter, handed_over)};
    }
    sweep->more = lost->nelts == sweep->limit;
    return rv == APR_SUCCESS ? mdl_session_settle(db, p, &settle) : rv;
}

apr_status_t mdl_meter_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats)
{
    return mdl_beats_read(db, MDL_Q_METER_BEATS, beats, p);
}

/* Removes the meter's row with its last transfer. */
apr_status_t mdl_meter_sweep(mdl_db_t *db, apr_pool_t *p, mdl_meter_sweep_t *sweep)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(METER_LOCK, .id = sweep->meter.id, .alive_until = sweep->meter.beat));

    sweep->more = 0;
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    rv = meter_settle(db, sweep->meter.id, sweep, p);
    return rv == APR_SUCCESS && !sweep->more
               ? mdl_db_exec(db, NULL, p, MDL_Q(METER_REMOVE, sweep->meter.id))
               : rv;
}
