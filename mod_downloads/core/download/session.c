#include "core/download/session.h"

#include <apr_strings.h>

const char *const mdl_session_status_names[] = {[MDL_SESSION_OPEN] = "open",
                                                [MDL_SESSION_COUNTED] = "counted",
                                                [MDL_SESSION_RETURNED] = "returned",
                                                NULL};

void mdl_session_read(const mdl_rows_t *row, int column, mdl_session_t *session)
{
    *session = (mdl_session_t){
        .id = mdl_rows_text(row, column + mdl_c_download_session_last_id),
        .generation = mdl_rows_int(row, column + mdl_c_download_session_last_generation),
        .status = mdl_rows_enum(row, column + mdl_c_download_session_last_status,
                                mdl_session_status_names),
        .assignment_id = mdl_rows_int(row, column + mdl_c_download_session_last_assignment_id),
        .asset_id = mdl_rows_int(row, column + mdl_c_download_session_last_asset_id),
        .etag = mdl_rows_text(row, column + mdl_c_download_session_last_etag),
        .size = mdl_rows_int(row, column + mdl_c_download_session_last_size),
        .files = mdl_rows_text(row, column + mdl_c_download_session_last_files),
        .bytes = mdl_rows_int(row, column + mdl_c_download_session_last_bytes),
        .opened_at = mdl_rows_int(row, column + mdl_c_download_session_last_opened_at),
        .idle_at = mdl_rows_int(row, column + mdl_c_download_session_last_idle_at),
        .running = (int)mdl_rows_int(row, column + mdl_c_download_session_last_running),
        .running_bytes = mdl_rows_int(row, column + mdl_c_download_session_last_running_bytes)};
}

mdl_charge_state_t mdl_session_charge(mdl_session_status_t status, const mdl_progress_t *file)
{
    if (file->is_whole) {
        return MDL_CHARGE_CHARGED;
    }
    return status == MDL_SESSION_OPEN ? MDL_CHARGE_RESERVED : MDL_CHARGE_FREE;
}

const char *mdl_session_place(const mdl_session_view_t *session, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT "_%" APR_INT64_T_FMT "_%s", session->opened_at,
                        session->generation, session->id);
}

apr_status_t mdl_session_ask_list(mdl_db_t *db, apr_int64_t order_id, const char *place, int limit,
                                  mdl_rows_t **rows, apr_pool_t *p)
{
    apr_int64_t opened_at = APR_INT64_MAX, generation = 0;
    const char *id = "";
    char *end;

    if (place != NULL) {
        opened_at = apr_strtoi64(place, &end, 10);
        generation = *end == '_' ? apr_strtoi64(end + 1, &end, 10) : 0;
        id = *end == '_' ? end + 1 : "";
    }
    return mdl_db_select(db, rows, p,
                         MDL_Q(DOWNLOAD_SESSIONS_OF_ORDER, .order_id = order_id,
                               .opened_at = opened_at, .id = id, .generation = generation,
                               .limit = limit));
}

apr_array_header_t *mdl_session_read_list(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *sessions = apr_array_make(p, 8, sizeof(mdl_session_view_t *));

    while (mdl_rows_next(rows)) {
        mdl_session_view_t *session = apr_palloc(p, sizeof *session);

        *session = (mdl_session_view_t){
            .status = MDL_ENUM(rows, session_view, status, mdl_session_status_names)};
        MDL_READ(rows, session_view, session, assignment_id, asset_id, size, transfers, opened_at,
                 updated_at, bytes, id, generation, acknowledged, handed_over, version, network,
                 etag, ended_at, filename);
        APR_ARRAY_PUSH(sessions, mdl_session_view_t *) = session;
    }
    return sessions;
}
