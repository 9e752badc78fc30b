#include "core/catalog/blob_place.h"

#include <string.h>

#include <apr_time.h>

apr_status_t mdl_blob_missed(mdl_db_t *db, apr_pool_t *p, mdl_blob_missed_t *missed)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_PLACE, missed->sha256));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    missed->place = mdl_rows_text(row, 0);
    missed->has_moved = missed->place == NULL || strcmp(missed->place, missed->object) != 0;
    return missed->has_moved
               ? APR_SUCCESS
               : mdl_db_exec(db, NULL, p,
                             MDL_Q(BLOB_MISSED, .now = apr_time_now(), .object = missed->object));
}

apr_status_t mdl_blob_found(mdl_db_t *db, apr_pool_t *p, const char *object)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(BLOB_FOUND, object));
}
