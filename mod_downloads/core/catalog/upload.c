#include "core/catalog/upload.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "base/ulid.h"
#include "core/catalog/blob.h"
#include "core/catalog/category.h"
#include "core/catalog/stray_object.h"
#include "core/shop/shop.h"
#include "core/version.h"
#include "storage/object_writer.h"

const char *const mdl_upload_status_names[] = {[MDL_UPLOAD_OPEN] = "open",
                                               [MDL_UPLOAD_COMPLETED] = "completed",
                                               [MDL_UPLOAD_ABORTED] = "aborted",
                                               NULL};

static mdl_upload_t *upload_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_upload_t *upload = apr_pcalloc(p, sizeof *upload);

    MDL_READ(row, upload, upload, id, shop_id, filename, title, content_type, category_id,
             expected_sha256, sha256, asset_id, begun_by, returns_to, replaces, note, notify,
             modified, written, arrived, write_id, created_at, expires_at, reserved, updated_at);
    upload->status = MDL_ENUM(row, upload, status, mdl_upload_status_names);
    upload->size = MDL_INT_OR_NONE(row, upload, size);
    upload->expired = upload->status != MDL_UPLOAD_COMPLETED && MDL_INT(row, upload, expired) != 0;
    return upload;
}

static apr_status_t upload_not_found(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "upload_not_found", "There is no such upload.");
}

static apr_status_t upload_finished(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 409, "upload_finished",
                           "The upload has been completed or aborted already.");
}

static apr_status_t upload_over_quota(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 422, "storage_quota_exceeded",
                           "The file is larger than what is left of the shop's storage quota.");
}

/* Finds out why no upload was inserted: too many are open, or the quota is used up. */
static apr_status_t upload_refuse(mdl_db_t *db, const mdl_upload_begin_t *begin, apr_pool_t *p)
{
    int open = 0;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(UPLOAD_OPEN_OF_SHOP, begin->upload.shop_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *id = mdl_rows_text(rows, 0);

        open++;
        mdl_problem_add_detail(begin->problem, apr_pstrcat(p, "/assets/uploads/", id, NULL),
                               "too_many_uploads", apr_pstrcat(p, id, " is open.", NULL), p);
    }
    if (rv == APR_SUCCESS && open < begin->max_open) {
        mdl_problem_clear(begin->problem);
        return upload_over_quota(begin->problem);
    }
    if (rv == APR_SUCCESS) {
        const char *message = apr_psprintf(
            p,
            "The shop has %d uploads open and may have %d at a time: "
            "complete one or DELETE it; details names them.",
            open, begin->max_open);

        mdl_problem_count(begin->problem, begin->max_open, open);
        rv = mdl_problem_set(begin->problem, 422, "too_many_uploads", message);
    }
    return rv;
}

apr_status_t mdl_upload_begin(mdl_db_t *db, apr_pool_t *p, mdl_upload_begin_t *begin)
{
    mdl_upload_t *upload = &begin->upload;
    apr_int64_t size = upload->size > 0 ? upload->size : 0;
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_category_hold(db, upload->shop_id, upload->category_id, begin->problem, p);
    if (rv != APR_SUCCESS || (rv = mdl_shop_lock(db, upload->shop_id, p)) != APR_SUCCESS) {
        return rv;
    }
    upload->id = mdl_ulid("upl_", p);
    upload->status = MDL_UPLOAD_OPEN;
    upload->created_at = upload->updated_at = apr_time_now();
    rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(UPLOAD_INSERT, .upload_id = upload->id, .filename = upload->filename,
              .title = upload->title, .content_type = upload->content_type,
              .category_id = upload->category_id, .size = upload->size,
              .expected_sha256 = upload->expected_sha256, .begun_by = upload->begun_by,
              .returns_to = upload->returns_to, .replaces = upload->replaces, .note = upload->note,
              .notify = upload->notify, .modified = upload->modified,
              .created_at = upload->created_at, .expires_at = begin->lifetime,
              .shop_id = upload->shop_id, .max_open = begin->max_open,
              .has_quota = size > 0 ? begin->quota : 0, .wanted = size, .quota = begin->quota));
    if (rv == APR_SUCCESS) {
        upload->expires_at = mdl_rows_int(row, 0);
    }
    return rv == APR_ENOENT ? upload_refuse(db, begin, p) : rv;
}

apr_status_t mdl_upload_find(mdl_db_t *db, const char *id, mdl_upload_t **upload, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(UPLOAD_BY_ID, id));

    if (rv == APR_SUCCESS) {
        *upload = upload_of_row(row, p);
        (*upload)->shop_blocked = !MDL_NULL(row, upload_by_id, shop_blocked_at);
        (*upload)->is_written = !MDL_NULL(row, upload_by_id, live_writer);
    }
    return rv;
}

apr_status_t mdl_upload_begun(mdl_db_t *db, apr_pool_t *p, mdl_upload_begun_t *begun)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(UPLOAD_BEGUN_OF_SHOP, begun->shop_id));

    begun->uploads = apr_array_make(p, 4, sizeof(const mdl_upload_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(begun->uploads, const mdl_upload_t *) = upload_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_upload_lock(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    mdl_rows_t *unread;

    return mdl_db_select(db, &unread, p, MDL_Q(UPLOAD_LOCK, id));
}

apr_status_t mdl_upload_blocked(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 403, "shop_blocked",
                           "This shop is blocked; its uploads go on once it is not.");
}

int mdl_upload_is_in_folder(mdl_storage_t *storage, const char *id, apr_pool_t *p)
{
    apr_int64_t length;

    return mdl_storage_objects(storage) == NULL ||
           mdl_partial_length(storage, id, &length, p) == APR_SUCCESS;
}

int mdl_upload_is_unfinished(mdl_storage_t *storage, const mdl_upload_t *upload, apr_int64_t offset,
                             apr_pool_t *p)
{
    return upload->status == MDL_UPLOAD_OPEN && upload->sha256 == NULL && upload->size == offset &&
           !mdl_upload_is_in_folder(storage, upload->id, p);
}

static apr_status_t upload_count_bytes(mdl_storage_t *storage, const mdl_upload_t *upload,
                                       apr_int64_t *bytes, apr_pool_t *p)
{
    apr_status_t rv;

    *bytes = upload->size;
    if (upload->sha256 != NULL) {
        return APR_SUCCESS;
    }
    *bytes = mdl_storage_objects(storage) != NULL ? upload->arrived : 0;
    rv = mdl_partial_length(storage, upload->id, bytes, p);
    return APR_STATUS_IS_ENOENT(rv) ? APR_SUCCESS : rv;
}

apr_status_t mdl_upload_offset(mdl_storage_t *storage, const mdl_upload_t *upload,
                               apr_int64_t *offset, apr_pool_t *p)
{
    *offset = upload->status == MDL_UPLOAD_COMPLETED ? upload->size : 0;
    return upload->status == MDL_UPLOAD_OPEN ? upload_count_bytes(storage, upload, offset, p)
                                             : APR_SUCCESS;
}

static apr_status_t upload_find_of_shop(mdl_db_t *db, mdl_upload_get_t *get, apr_pool_t *p)
{
    apr_status_t rv = mdl_upload_find(db, get->id, &get->upload, p);

    if (rv == APR_ENOENT ||
        (rv == APR_SUCCESS && (get->upload->shop_id != get->shop_id || get->upload->expired))) {
        return upload_not_found(get->problem);
    }
    return rv;
}

/* The same, and checks the caller's version. */
static apr_status_t upload_find_known(mdl_db_t *db, mdl_upload_get_t *get, apr_pool_t *p)
{
    apr_status_t rv = upload_find_of_shop(db, get, p);

    return rv == APR_SUCCESS
               ? mdl_version_check(get->versions, get->upload->updated_at, get->problem)
               : rv;
}

apr_status_t mdl_upload_get(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get)
{
    apr_status_t rv = upload_find_of_shop(db, get, p);

    return rv == APR_SUCCESS ? mdl_upload_offset(get->storage, get->upload, &get->offset, p) : rv;
}

apr_status_t mdl_upload_find_live(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get)
{
    apr_status_t rv;

    get->upload = NULL;
    rv = mdl_upload_find(db, get->id, &get->upload, p);
    if (rv == APR_ENOENT) {
        return upload_not_found(get->problem);
    }
    if (rv == APR_SUCCESS && (get->upload->expired || get->upload->status == MDL_UPLOAD_ABORTED)) {
        return mdl_problem_set(get->problem, 410, "upload_gone",
                               "This upload has expired or was aborted; begin another.");
    }
    return rv == APR_SUCCESS && get->upload->shop_blocked ? mdl_upload_blocked(get->problem) : rv;
}

/* The bytes of an upload that is aborted, to be removed. */
static apr_status_t upload_leave_bytes(mdl_db_t *db, const char *sha256, const char *written,
                                       apr_pool_t *p)
{
    return written != NULL ? mdl_stray_drop(db, mdl_object_writer_key(written, p), p)
                           : mdl_blob_release(db, sha256, p);
}

apr_status_t mdl_upload_abort(mdl_db_t *db, apr_pool_t *p, mdl_upload_get_t *get)
{
    apr_int64_t changed = 0;
    apr_status_t rv = upload_find_known(db, get, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, &changed, p,
                         MDL_Q(UPLOAD_ABORT, .now = apr_time_now(), .id = get->id,
                               MDL_VERSION_ARGS(get->versions, p)));
    }
    if (rv == APR_SUCCESS && changed == 0 && (rv = upload_find_known(db, get, p)) == APR_SUCCESS) {
        rv = upload_finished(get->problem);
    }
    return rv == APR_SUCCESS ? upload_leave_bytes(db, get->upload->sha256, get->upload->written, p)
                             : rv;
}

/* Sets how many bytes an upload of unknown size reserves, and locks it.  Uploads are locked before
   their shop, as in a completion. */
static apr_status_t upload_hold(mdl_db_t *db, mdl_statement_t statement, const char *id,
                                apr_int64_t bytes, apr_pool_t *p)
{
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(
        db, &changed, p,
        MDL_Q_AS(statement, UPLOAD_RESERVE, .size = bytes, .now = apr_time_now(), .id = id));

    return rv == APR_SUCCESS && changed == 0 ? APR_ENOENT : rv;
}

/* How many bytes the quota leaves to a locked upload in all. */
static apr_status_t upload_room(mdl_db_t *db, const char *id, apr_int64_t shop_id,
                                apr_int64_t quota, apr_int64_t *room, apr_pool_t *p)
{
    apr_status_t rv = mdl_shop_lock(db, shop_id, p);

    return rv == APR_SUCCESS ? mdl_shop_room(db, shop_id, id, quota, room, p) : rv;
}

apr_status_t mdl_upload_reserve(mdl_db_t *db, apr_pool_t *p, mdl_upload_reserve_t *reserve)
{
    apr_int64_t room = 0;
    apr_status_t rv = upload_hold(db, MDL_Q_UPLOAD_RESERVE, reserve->id, reserve->most, p);

    reserve->reserved = reserve->most;
    if (rv != APR_SUCCESS || reserve->quota == 0) {
        return rv;
    }
    rv = upload_room(db, reserve->id, reserve->shop_id, reserve->quota, &room, p);
    if (rv != APR_SUCCESS || room >= reserve->most) {
        return rv;
    }
    reserve->reserved = room;
    return room < reserve->least ? upload_over_quota(reserve->problem)
                                 : upload_hold(db, MDL_Q_UPLOAD_RESERVE, reserve->id, room, p);
}

apr_status_t mdl_upload_set_size(mdl_db_t *db, apr_pool_t *p, const mdl_upload_size_t *set)
{
    apr_int64_t room = 0;
    apr_status_t rv = upload_hold(db, MDL_Q_UPLOAD_SET_SIZE, set->id, set->size, p);

    if (rv == APR_SUCCESS && set->quota != 0) {
        rv = upload_room(db, set->id, set->shop_id, set->quota, &room, p);
        if (rv == APR_SUCCESS && set->size > room) {
            return upload_over_quota(set->problem);
        }
    }
    return rv;
}

apr_status_t mdl_upload_finish(mdl_db_t *db, apr_pool_t *p, mdl_upload_finish_t *finish)
{
    const mdl_blob_t *blob = &finish->blob;
    apr_int64_t changed = 0;
    mdl_rows_t *held;
    apr_status_t rv = mdl_blob_store(db, blob, &held, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, &changed, p,
                         MDL_Q(UPLOAD_FINISH, .sha256 = blob->sha256, .size = blob->size,
                               .now = apr_time_now(), .id = finish->id,
                               .write_id = finish->write_id));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    finish->late = changed == 0;
    /* Late, too: another write of the same bytes shares the object, which must be no stray. */
    rv = mdl_blob_check(db, held, finish->storage, blob, p);
    if (finish->late) {
        return rv == APR_SUCCESS ? mdl_blob_release(db, blob->sha256, p) : rv;
    }
    return rv == APR_SUCCESS && finish->has_tails
               ? mdl_stray_leave(db, mdl_object_writer_tails_key(blob->object, p), p)
               : rv;
}

apr_status_t mdl_upload_describe(mdl_db_t *db, const char *id,
                                 const mdl_upload_description_t *description, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(UPLOAD_DESCRIBE, .filename = description->filename,
                             .title = description->title, .content_type = description->content_type,
                             .now = apr_time_now(), .id = id));
}

/* The versions, if they are the upload's. */
static const apr_array_header_t *upload_versions(const mdl_upload_complete_t *complete)
{
    return complete->asset_id == 0 ? complete->versions : NULL;
}

/* The result of a second request to complete. */
static apr_status_t upload_find_completed(mdl_db_t *db, mdl_upload_complete_t *complete,
                                          apr_pool_t *p)
{
    mdl_upload_get_t get = {.id = complete->id,
                            .shop_id = complete->shop_id,
                            .versions = upload_versions(complete),
                            .problem = complete->problem};
    apr_status_t rv = upload_find_known(db, &get, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (get.upload->status == MDL_UPLOAD_ABORTED || complete->asset_id != 0) {
        return upload_finished(complete->problem);
    }
    complete->repeated = 1;
    rv = mdl_asset_find(db, complete->shop_id, get.upload->asset_id, &complete->asset,
                        complete->problem, p);
    return rv == APR_SUCCESS
               ? mdl_job_open_of_asset(db, complete->asset->id, NULL, &complete->job, p)
               : rv;
}

static apr_status_t upload_incomplete(mdl_problem_t *problem, const mdl_upload_t *upload,
                                      apr_int64_t bytes, apr_pool_t *p)
{
    const char *arrived = apr_psprintf(p, "%" APR_INT64_T_FMT " bytes have arrived", bytes);
    const char *announced = upload->size < 0
                                ? "its size is not known yet"
                                : apr_psprintf(p, "its size is %" APR_INT64_T_FMT, upload->size);

    mdl_problem_count(problem, upload->size, bytes);
    return mdl_problem_set(
        problem, 409, "upload_incomplete",
        apr_pstrcat(p, "The upload is not complete: ", arrived, ", ", announced, ".", NULL));
}

static apr_status_t upload_check_bytes(const mdl_upload_complete_t *complete,
                                       const mdl_upload_t *upload, apr_pool_t *p)
{
    apr_int64_t bytes;
    apr_status_t rv = upload_count_bytes(complete->storage, upload, &bytes, p);
    int in_folder;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    in_folder = upload->sha256 == NULL && mdl_upload_is_in_folder(complete->storage, upload->id, p);
    if (in_folder && bytes > complete->synced) {
        bytes = complete->synced;
    }
    if (upload->size < 0 || bytes < upload->size || (upload->sha256 == NULL && !in_folder)) {
        return upload_incomplete(complete->problem, upload, bytes, p);
    }
    if (upload->expected_sha256 != NULL && upload->sha256 != NULL &&
        strcmp(upload->expected_sha256, upload->sha256) != 0) {
        return mdl_problem_set(
            complete->problem, 422, "checksum_mismatch",
            "The SHA-256 of the bytes that arrived is not the one that was given; "
            "begin another upload.");
    }
    return APR_SUCCESS;
}

static apr_status_t upload_make_asset(mdl_db_t *db, mdl_upload_complete_t *complete,
                                      const mdl_upload_t *upload, apr_pool_t *p)
{
    mdl_entity_ref_t ref = {.shop_id = complete->shop_id,
                            .id = complete->asset_id,
                            .versions = complete->versions,
                            .problem = complete->problem};
    mdl_asset_news_t news = upload->begun_by != NULL
                                ? (mdl_asset_news_t){upload->note, upload->notify}
                                : complete->news;
    mdl_asset_t *asset;
    apr_status_t rv;

    if (complete->asset_id != 0) {
        rv = mdl_asset_await_version(db, &ref, &news, p);
        complete->asset = ref.entity;
        return rv;
    }
    asset = complete->asset = apr_pcalloc(p, sizeof *asset);
    asset->filename = upload->filename;
    asset->title = upload->title;
    asset->content_type = upload->content_type;
    asset->category_id = upload->category_id;
    return mdl_asset_insert(db, complete->shop_id, asset, complete->problem, p);
}

/* The blob and its row exist since the digest is known. */
static apr_status_t upload_make_ready(mdl_db_t *db, mdl_upload_complete_t *complete,
                                      const mdl_upload_t *upload, apr_pool_t *p)
{
    mdl_asset_bytes_t bytes = {.blob = {.sha256 = upload->sha256, .size = upload->size},
                               .content_type = upload->content_type,
                               .quota = complete->quota};
    apr_status_t rv = mdl_asset_ready(db, complete->asset->id, &bytes, p);

    if (rv == APR_ENOSPC) {
        return upload_over_quota(complete->problem);
    }
    return rv == APR_SUCCESS ? mdl_asset_find(db, complete->shop_id, complete->asset->id,
                                              &complete->asset, complete->problem, p)
                             : rv;
}

static apr_status_t upload_queue_verification(mdl_db_t *db, mdl_upload_complete_t *complete,
                                              const mdl_upload_t *upload, apr_pool_t *p)
{
    apr_int64_t room;
    apr_status_t rv = mdl_asset_room(db, complete->asset->id, complete->quota, &room, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (room >= 0 && upload->size > room) {
        return upload_over_quota(complete->problem);
    }
    complete->job = apr_pcalloc(p, sizeof *complete->job);
    *complete->job = (mdl_job_t){.id = mdl_ulid("job_", p),
                                 .type = MDL_JOB_VERIFY,
                                 .lane = MDL_LANE_HASH,
                                 .shop_id = complete->shop_id,
                                 .asset_id = complete->asset->id,
                                 .upload_id = upload->id,
                                 .expected_sha256 = upload->expected_sha256,
                                 .max_attempts = complete->max_attempts};
    return mdl_job_insert(db, complete->job, p);
}

/* Locks the category before the upload, like the deletion of a category.  A deleted category counts
   as none. */
static apr_status_t upload_hold_category(mdl_db_t *db, const mdl_upload_complete_t *complete,
                                         apr_pool_t *p)
{
    mdl_problem_t unused = {0};
    mdl_upload_t *upload;
    apr_status_t rv = mdl_upload_find(db, complete->id, &upload, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_category_hold(db, complete->shop_id, upload->category_id, &unused, p);
    }
    return rv == APR_ENOENT || rv == MDL_EPROBLEM ? APR_SUCCESS : rv;
}

apr_status_t mdl_upload_sync(mdl_upload_complete_t *complete, apr_pool_t *p)
{
    apr_status_t rv = mdl_partial_sync(complete->storage, complete->id, &complete->synced, p);

    return APR_STATUS_IS_ENOENT(rv) ? APR_SUCCESS : rv;
}

apr_status_t mdl_upload_complete(mdl_db_t *db, apr_pool_t *p, mdl_upload_complete_t *complete)
{
    mdl_upload_t *upload;
    mdl_rows_t *row;
    apr_time_t now = apr_time_now();
    apr_status_t rv;

    complete->repeated = 0;
    complete->job = NULL;
    if ((rv = upload_hold_category(db, complete, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(UPLOAD_COMPLETE, .now = now, .id = complete->id,
                                 .shop_id = complete->shop_id,
                                 MDL_VERSION_ARGS(upload_versions(complete), p)));
    if (rv == APR_ENOENT) {
        return upload_find_completed(db, complete, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    upload = upload_of_row(row, p);
    if ((rv = upload_check_bytes(complete, upload, p)) != APR_SUCCESS ||
        (rv = upload_make_asset(db, complete, upload, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = upload->sha256 != NULL ? upload_make_ready(db, complete, upload, p)
                                : upload_queue_verification(db, complete, upload, p);
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p,
                                           MDL_Q(UPLOAD_SET_ASSET, .asset_id = complete->asset->id,
                                                 .now = now, .id = upload->id))
                             : rv;
}

apr_status_t mdl_upload_expire(mdl_db_t *db, apr_pool_t *p, mdl_upload_expire_t *expire)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(UPLOAD_EXPIRE, .now = apr_time_now(), .limit = expire->limit));

    expire->aborted = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        expire->aborted++;
        rv = upload_leave_bytes(db, MDL_TEXT(rows, upload_expire, sha256),
                                MDL_TEXT(rows, upload_expire, written), p);
    }
    return rv;
}

apr_status_t mdl_upload_over(mdl_db_t *db, apr_pool_t *p, mdl_upload_over_t *over)
{
    const char *ids = mdl_json_texts(over->ids, p);
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(UPLOAD_OVER, ids));

    over->over = apr_array_make(p, 16, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(over->over, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}
