#include "core/upload.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/json.h"
#include "base/ulid.h"

static mdl_upload_t *upload_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_upload_t *upload = apr_pcalloc(p, sizeof *upload);

    upload->id = mdl_rows_text(row, 0);
    upload->shop_id = mdl_rows_int(row, 1);
    upload->status = mdl_rows_text(row, 2);
    upload->filename = mdl_rows_text(row, 3);
    upload->title = mdl_rows_text(row, 4);
    upload->content_type = mdl_rows_text(row, 5);
    upload->category_id = mdl_rows_int(row, 6);
    upload->size = mdl_rows_null(row, 7) ? -1 : mdl_rows_int(row, 7);
    upload->expected_sha256 = mdl_rows_text(row, 8);
    upload->sha256 = mdl_rows_text(row, 9);
    upload->asset_id = mdl_rows_int(row, 10);
    upload->created_at = mdl_rows_int(row, 11);
    upload->expires_at = mdl_rows_int(row, 12);
    return upload;
}

static apr_status_t not_found(mdl_refusal_t *refusal)
{
    return mdl_refuse(refusal, 404, "upload_not_found", "There is no such upload.");
}

apr_status_t mdl_upload_begin(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_begin_t *begin = arg;
    mdl_upload_t *upload = &begin->upload;

    upload->id = mdl_ulid("upl_", p);
    upload->status = MDL_UPLOAD_OPEN;
    upload->created_at = apr_time_now();
    upload->expires_at = upload->created_at + begin->lifetime;
    return mdl_db_exec(db, MDL_Q_UPLOAD_INSERT, NULL, p,
                       MDL_ARGS(mdl_text(upload->id), mdl_int(upload->shop_id),
                                mdl_text(upload->filename), mdl_text(upload->title),
                                mdl_text(upload->content_type),
                                mdl_int_or_null(upload->category_id),
                                upload->size < 0 ? mdl_null() : mdl_int(upload->size),
                                mdl_text(upload->expected_sha256), mdl_int(upload->created_at),
                                mdl_int(upload->expires_at)));
}

apr_status_t mdl_upload_find(mdl_db_t *db, const char *id, mdl_upload_t **upload, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_UPLOAD_BY_ID, &row, p, MDL_ARGS(mdl_text(id)));

    if (rv == APR_SUCCESS) {
        *upload = upload_of_row(row, p);
    }
    return rv;
}

static int is(const mdl_upload_t *upload, const char *status)
{
    return strcmp(upload->status, status) == 0;
}

int mdl_upload_expired(const mdl_upload_t *upload)
{
    return !is(upload, MDL_UPLOAD_COMPLETED) && upload->expires_at <= apr_time_now();
}

apr_status_t mdl_upload_offset(mdl_storage_t *storage, const mdl_upload_t *upload,
                               apr_int64_t *offset, apr_pool_t *p)
{
    apr_status_t rv;

    *offset = 0;
    if (is(upload, MDL_UPLOAD_ABORTED)) {
        return APR_SUCCESS;
    }
    if (upload->sha256 != NULL || is(upload, MDL_UPLOAD_COMPLETED)) {
        *offset = upload->size;
        return APR_SUCCESS;
    }
    rv = mdl_partial_length(storage, upload->id, offset, p);
    return APR_STATUS_IS_ENOENT(rv) ? APR_SUCCESS : rv;
}

static apr_status_t find_of_shop(mdl_db_t *db, mdl_upload_get_t *get, apr_pool_t *p)
{
    apr_status_t rv = mdl_upload_find(db, get->id, &get->upload, p);

    if (rv == APR_ENOENT || (rv == APR_SUCCESS && (get->upload->shop_id != get->shop_id ||
                                                   mdl_upload_expired(get->upload)))) {
        return not_found(get->refusal);
    }
    return rv;
}

apr_status_t mdl_upload_get(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_get_t *get = arg;
    apr_status_t rv = find_of_shop(db, get, p);

    return rv == APR_SUCCESS ? mdl_upload_offset(get->storage, get->upload, &get->offset, p) : rv;
}

apr_status_t mdl_upload_abort(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_get_t *get = arg;
    apr_int64_t changed;
    apr_status_t rv = find_of_shop(db, get, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(
            db, MDL_Q_UPLOAD_ABORT, &changed, p,
            MDL_ARGS(mdl_text(get->id), mdl_text(MDL_UPLOAD_OPEN), mdl_int(apr_time_now())));
    }
    return rv == APR_SUCCESS && changed == 0
               ? mdl_refuse(get->refusal, 409, "upload_finished",
                            "The upload has been completed or aborted already.")
               : rv;
}

static apr_status_t absent_if_unchanged(apr_status_t rv, apr_int64_t changed)
{
    return rv == APR_SUCCESS && changed == 0 ? APR_ENOENT : rv;
}

apr_status_t mdl_upload_set_size(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_upload_size_t *set = arg;
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(
        db, MDL_Q_UPLOAD_SET_SIZE, &changed, p,
        MDL_ARGS(mdl_int(set->size), mdl_text(set->id), mdl_text(MDL_UPLOAD_OPEN)));

    return absent_if_unchanged(rv, changed);
}

apr_status_t mdl_upload_finish(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const mdl_upload_finish_t *finish = arg;
    const mdl_blob_t *blob = &finish->blob;
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(db, MDL_Q_BLOB_INSERT, NULL, p,
                                  MDL_ARGS(mdl_text(blob->sha256), mdl_int(blob->size),
                                           mdl_int((apr_int64_t)blob->crc32),
                                           mdl_int(apr_time_now())));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, MDL_Q_UPLOAD_FINISH, &changed, p,
                         MDL_ARGS(mdl_text(blob->sha256), mdl_int(blob->size), mdl_text(finish->id),
                                  mdl_int(blob->size)));
    }
    return absent_if_unchanged(rv, changed);
}

apr_status_t mdl_upload_expire(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_expire_t *expire = arg;

    return mdl_db_exec(db, MDL_Q_UPLOAD_EXPIRE, &expire->aborted, p,
                       MDL_ARGS(mdl_int(apr_time_now()), mdl_int(expire->limit)));
}

apr_status_t mdl_upload_over(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_upload_over_t *over = arg;
    mdl_json_t *array = mdl_json_array(p);
    const char *ids;
    mdl_rows_t *rows;
    apr_status_t rv;

    for (int i = 0; i < over->ids->nelts; i++) {
        mdl_json_add_string(array, NULL, APR_ARRAY_IDX(over->ids, i, const char *));
    }
    ids = mdl_json_text(array, NULL, p);
    rv = mdl_db_select(db, MDL_Q_UPLOAD_OVER, &rows, p, MDL_ARGS(mdl_text(ids), mdl_text(ids)));
    over->over = apr_array_make(p, 16, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(over->over, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}
