#include "core/download/reservation.h"

apr_status_t mdl_reservations_read(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                   apr_array_header_t **reservations, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(DOWNLOAD_SESSIONS_OPEN, assignment_ids));

    *reservations = apr_array_make(p, 4, sizeof(mdl_reservation_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_reservation_t *reservation = apr_palloc(p, sizeof *reservation);

        *reservation = (mdl_reservation_t){
            .assignment_id = MDL_INT(rows, held, assignment_id),
            .session_id = MDL_TEXT(rows, held, id),
            .generation = MDL_INT(rows, held, generation),
            .files = mdl_progress_read(MDL_TEXT(rows, held, files), p),
            .is_running = MDL_NULL(rows, held, idle_at) || MDL_INT(rows, held, running) > 0};
        APR_ARRAY_PUSH(*reservations, mdl_reservation_t *) = reservation;
    }
    return rv;
}

int mdl_reservation_holds(const mdl_reservation_t *reservation, apr_int64_t asset_id)
{
    for (int i = 0; i < reservation->files->nelts; i++) {
        const mdl_progress_t *file = &APR_ARRAY_IDX(reservation->files, i, mdl_progress_t);

        if (!file->is_whole && file->asset_id != MDL_DIRECTORY_ID &&
            (asset_id == 0 || file->asset_id == asset_id)) {
            return 1;
        }
    }
    return 0;
}
