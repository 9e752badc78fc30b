#include "core/catalog/storage_status.h"

apr_status_t mdl_storage_read_status(mdl_db_t *db, apr_pool_t *p, mdl_storage_status_t *status)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_STATUS));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, storage_status, status, files, file_bytes, objects, object_bytes, missing,
                 strays, holds);
    }
    return rv;
}
