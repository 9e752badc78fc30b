#include "core/download/session.h"

#include <apr_strings.h>

const char *const mdl_session_status_names[] = {[MDL_SESSION_OPEN] = "open",
                                                [MDL_SESSION_COUNTED] = "counted",
                                                [MDL_SESSION_RETURNED] = "returned",
                                                NULL};

void mdl_session_read(const mdl_rows_t *row, mdl_session_t *session)
{
    *session = (mdl_session_t){.id = mdl_rows_text(row, 0),
                               .generation = mdl_rows_int(row, 1),
                               .status = mdl_rows_enum(row, 2, mdl_session_status_names),
                               .assignment_id = mdl_rows_int(row, 3),
                               .asset_id = mdl_rows_int(row, 4),
                               .etag = mdl_rows_text(row, 5),
                               .size = mdl_rows_int(row, 6),
                               .files = mdl_rows_text(row, 7),
                               .bytes = mdl_rows_int(row, 8),
                               .opened_at = mdl_rows_int(row, 9),
                               .idle_at = mdl_rows_int(row, 10),
                               .running = (int)mdl_rows_int(row, 11),
                               .running_bytes = mdl_rows_int(row, 12)};
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

        *session = (mdl_session_view_t){.assignment_id = mdl_rows_int(rows, 0),
                                        .asset_id = mdl_rows_int(rows, 1),
                                        .status = mdl_rows_enum(rows, 2, mdl_session_status_names),
                                        .size = mdl_rows_int(rows, 3),
                                        .transfers = mdl_rows_int(rows, 4),
                                        .opened_at = mdl_rows_int(rows, 5),
                                        .updated_at = mdl_rows_int(rows, 6),
                                        .bytes = mdl_rows_int(rows, 7),
                                        .id = mdl_rows_text(rows, 8),
                                        .generation = mdl_rows_int(rows, 9)};
        APR_ARRAY_PUSH(sessions, mdl_session_view_t *) = session;
    }
    return sessions;
}
