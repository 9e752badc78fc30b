#include "core/catalog/upload_write.h"

#include <string.h>

#include <apr_strings.h>

#include "base/log.h"

/* Bytes reserved at a time while an unknown number of them arrives. */
#define RESERVE_STEP APR_INT64_C(67108864)

static apr_status_t upload_write_invalid(mdl_upload_write_t *write, const char *message)
{
    return mdl_problem_set(write->problem, 400, "invalid_request", message);
}

static apr_status_t upload_write_finished(mdl_upload_write_t *write)
{
    return mdl_problem_set(
        write->problem, 409, "upload_finished",
        "All bytes of this upload have arrived, or it was aborted or has expired.");
}

static apr_status_t upload_write_locked(mdl_upload_write_t *write)
{
    return mdl_problem_set(write->problem, 423, "upload_locked",
                           "Another request is writing this upload.");
}

static apr_status_t upload_write_conflict(mdl_upload_write_t *write, apr_int64_t current)
{
    write->arrived = current;
    return mdl_problem_set(write->problem, 409, "upload_offset_conflict",
                           apr_psprintf(write->pool,
                                        "The upload has %" APR_INT64_T_FMT
                                        " bytes by now; go on from there.",
                                        current));
}

static apr_int64_t upload_write_limit(const mdl_upload_write_t *write)
{
    return write->upload->size >= 0 ? write->upload->size : write->max_size;
}

static apr_status_t upload_write_too_large(mdl_upload_write_t *write)
{
    mdl_problem_count(write->problem, upload_write_limit(write), -1);
    return mdl_problem_set(write->problem, 413, "request_too_large",
                           apr_psprintf(write->pool,
                                        "This upload takes %" APR_INT64_T_FMT " bytes and no more.",
                                        upload_write_limit(write)));
}

/* The bytes so far. */
static apr_int64_t upload_write_size(const mdl_upload_write_t *write)
{
    return write->partial != NULL ? mdl_partial_size(write->partial)
                                  : mdl_object_writer_size(write->object.bytes);
}

/* Whether only an empty piece may still come. */
static int upload_write_is_over(const mdl_upload_write_t *write)
{
    return write->upload->sha256 != NULL || write->upload->status != MDL_UPLOAD_OPEN;
}

/* Runs an effect, in the transaction that takes the write if there is one. */
static apr_status_t upload_write_run(mdl_upload_write_t *write, mdl_db_run_fn *how,
                                     mdl_effect_fn *effect, void *arg)
{
    return write->db != NULL ? effect(write->db, write->pool, arg)
                             : write->run(write->baton, how, effect, arg);
}

MDL_EFFECT(mdl_upload_reserve, mdl_upload_reserve_t *)

/* Whether the quota is reserved as the bytes arrive, because their number is unknown. */
static int upload_write_reserves(const mdl_upload_write_t *write)
{
    return write->quota != 0 && write->upload != NULL && write->upload->size < 0 &&
           !upload_write_is_over(write);
}

/* Reserves quota for at least least bytes in all, up to most. */
static apr_status_t upload_write_reserve(mdl_upload_write_t *write, apr_int64_t least,
                                         apr_int64_t most)
{
    mdl_upload_reserve_t reserve = {.id = write->id,
                                    .quota = write->quota,
                                    .least = least,
                                    .most = most < write->max_size ? most : write->max_size,
                                    .problem = write->problem};
    apr_status_t rv;

    if (!upload_write_reserves(write) || least <= write->upload->reserved) {
        return APR_SUCCESS;
    }
    reserve.shop_id = write->upload->shop_id;
    rv = upload_write_run(write, mdl_db_write, mdl_upload_reserve_effect, &reserve);
    if (rv == APR_SUCCESS) {
        write->upload->reserved = reserve.reserved;
    }
    return rv == APR_ENOENT ? upload_write_finished(write) : rv;
}

/* Gives back the reservation for bytes that did not arrive.  If that fails, the next write does. */
static void upload_write_give_back(mdl_upload_write_t *write)
{
    mdl_upload_reserve_t reserve = {.id = write->id, .most = mdl_partial_size(write->partial)};

    if (upload_write_reserves(write) && write->upload->reserved > reserve.most) {
        write->run(write->baton, mdl_db_write, mdl_upload_reserve_effect, &reserve);
    }
}

static apr_status_t upload_write_close_object(mdl_upload_write_t *write)
{
    apr_status_t rv = mdl_upload_object_close(&write->object, !write->is_refused);

    if (write->object.arrived >= 0) {
        write->arrived = write->object.arrived;
    }
    return rv;
}

/* The file stays locked to the end: the next writer reserves only after this one gave back. */
static apr_status_t upload_write_close(mdl_upload_write_t *write)
{
    mdl_partial_t *partial = write->partial;

    if (partial == NULL) {
        return upload_write_close_object(write);
    }
    upload_write_give_back(write);
    write->partial = NULL;
    if (mdl_partial_size(partial) == 0) {
        mdl_partial_discard(partial);
        return APR_SUCCESS;
    }
    return mdl_partial_keep(partial);
}

/* Whether the bytes of this write count only after their checksum was compared, or once the form
   has come whole. */
static int upload_write_is_checked(const mdl_upload_write_t *write)
{
    return (write->digest != NULL || write->is_form) && !upload_write_is_over(write);
}

static void upload_write_take_back(mdl_upload_write_t *write)
{
    write->is_refused = 1;
    if (write->partial != NULL &&
        mdl_partial_truncate(write->partial, write->offset) == APR_SUCCESS) {
        mdl_partial_accept(write->partial);
    }
}

MDL_EFFECT(mdl_upload_find_live, mdl_upload_get_t *)

/* During maintenance no bytes are taken. */
static apr_status_t upload_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_db_is_closed(db) ? MDL_DB_ECLOSED : mdl_upload_find_live(db, p, arg);
}

/* Reads whether the upload is over, or has another write. */
static apr_status_t upload_write_lost(mdl_upload_write_t *write)
{
    mdl_problem_t unused = {0};
    mdl_upload_get_t get = {.id = write->id, .problem = &unused};
    apr_status_t rv = write->run(write->baton, mdl_db_read, mdl_upload_find_live_effect, &get);

    return rv == APR_SUCCESS    ? upload_write_locked(write)
           : rv == MDL_EPROBLEM ? upload_write_finished(write)
                                : rv;
}

/* The result for the client of one from core/catalog/upload_object.h. */
static apr_status_t upload_write_result(mdl_upload_write_t *write, apr_status_t rv)
{
    if (rv == MDL_OBJECT_EBROKEN) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0213: upload %s begins anew, for the object store has lost bytes of it: %s",
                write->id, write->object.why);
        return write->whole ? MDL_OBJECT_EAWAY : upload_write_conflict(write, 0);
    }
    return rv == APR_ENOENT ? upload_write_lost(write) : rv;
}

/* --- beginning --- */

static apr_status_t upload_write_find(mdl_upload_write_t *write)
{
    mdl_upload_get_t get = {.id = write->id, .problem = write->problem};
    apr_status_t rv = upload_write_run(write, mdl_db_read, upload_find_effect, &get);

    write->upload = get.upload;
    return rv == MDL_EPROBLEM && write->whole && get.upload != NULL &&
                   get.upload->status == MDL_UPLOAD_ABORTED
               ? upload_write_finished(write)
               : rv;
}

static apr_status_t upload_write_admit_whole(mdl_upload_write_t *write, apr_int64_t current)
{
    apr_int64_t size = write->upload->size;

    if (upload_write_is_over(write) || (size > 0 && current == size)) {
        return upload_write_finished(write);
    }
    if (write->length > upload_write_limit(write)) {
        return upload_write_too_large(write);
    }
    if (write->length >= 0 && size >= 0 && write->length < size) {
        return upload_write_invalid(
            write, apr_psprintf(write->pool,
                                "PUT takes the whole file, %" APR_INT64_T_FMT " bytes.", size));
    }
    write->offset = 0;
    return upload_write_reserve(write, write->length, write->length);
}

static apr_status_t upload_write_check_size(mdl_upload_write_t *write, apr_int64_t current)
{
    if (write->size < 0 || write->size == write->upload->size) {
        return APR_SUCCESS;
    }
    if (write->upload->size >= 0 || write->size < current) {
        return upload_write_invalid(write, "Upload-Length can't be changed, nor be less than what "
                                           "has arrived.");
    }
    return write->size > upload_write_limit(write) ? upload_write_too_large(write) : APR_SUCCESS;
}

MDL_EFFECT(mdl_upload_set_size, const mdl_upload_size_t *)

static apr_status_t upload_write_set_size(mdl_upload_write_t *write)
{
    mdl_upload_size_t set = {.id = write->id,
                             .shop_id = write->upload->shop_id,
                             .quota = write->quota,
                             .size = write->upload->size,
                             .problem = write->problem};
    apr_status_t rv = upload_write_run(write, mdl_db_write, mdl_upload_set_size_effect, &set);

    return rv == APR_ENOENT ? upload_write_finished(write) : rv;
}

static apr_status_t upload_write_admit_piece(mdl_upload_write_t *write, apr_int64_t current)
{
    apr_int64_t size = write->upload->size;
    apr_status_t rv;

    if (write->offset != current) {
        return upload_write_conflict(write, current);
    }
    if ((rv = upload_write_check_size(write, current)) != APR_SUCCESS) {
        return rv;
    }
    write->upload->size = write->size >= 0 ? write->size : size;
    if (write->length > upload_write_limit(write) - current) {
        return upload_write_too_large(write);
    }
    return write->upload->size != size
               ? upload_write_set_size(write)
               : upload_write_reserve(write, current + write->length, current + write->length);
}

static apr_status_t upload_write_admit(mdl_upload_write_t *write, apr_int64_t current)
{
    current = upload_write_is_over(write) ? write->upload->size : current;
    return write->whole ? upload_write_admit_whole(write, current)
                        : upload_write_admit_piece(write, current);
}

static apr_status_t upload_write_take(mdl_db_t *db, apr_pool_t *p, mdl_upload_write_t *write)
{
    apr_status_t rv = mdl_upload_lock(db, write->id, p);

    write->db = db;
    write->arrived = -1;
    if (rv == APR_SUCCESS) {
        rv = upload_write_find(write);
    }
    if (rv == APR_SUCCESS && mdl_upload_object_is_locked(&write->object, write->upload)) {
        rv = upload_write_locked(write);
    }
    if (rv == APR_SUCCESS) {
        rv = upload_write_admit(write, write->upload->arrived);
    }
    write->db = NULL;
    return rv == APR_SUCCESS && !upload_write_is_over(write)
               ? mdl_upload_object_take(db, &write->object, write->upload, write->offset, p)
               : rv;
}

MDL_EFFECT(upload_write_take, mdl_upload_write_t *)

static apr_status_t upload_write_begin_object(mdl_upload_write_t *write)
{
    apr_status_t rv;

    write->object.id = write->id;
    write->object.storage = write->storage;
    write->object.run = write->run;
    write->object.baton = write->baton;
    mdl_upload_object_init(&write->object, write->pool);
    rv = write->run(write->baton, mdl_db_write, upload_write_take_effect, write);
    if (mdl_db_unavailable(rv)) {
        mdl_upload_object_owe(&write->object);
    }
    if (rv != APR_SUCCESS || upload_write_is_over(write)) {
        return rv;
    }
    if ((rv = mdl_upload_object_open(&write->object, write->upload->size)) != APR_SUCCESS) {
        upload_write_close(write);
    }
    return upload_write_result(write, rv);
}

apr_status_t mdl_upload_write_begin(mdl_upload_write_t *write, apr_pool_t *p)
{
    apr_status_t rv;

    write->pool = p;
    write->upload = NULL;
    write->arrived = write->object.arrived = -1;
    if (!mdl_upload_is_in_folder(write->storage, write->id, p)) {
        return upload_write_begin_object(write);
    }
    rv = mdl_partial_append(&write->partial, write->storage, write->id, p);
    if (APR_STATUS_IS_EAGAIN(rv)) {
        return upload_write_locked(write);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* The file is locked, so the upload's state does not change until the bytes are written. */
    rv = upload_write_find(write);
    if (rv == APR_SUCCESS) {
        rv = upload_write_admit(write, mdl_partial_size(write->partial));
    }
    if (rv == APR_SUCCESS && write->whole) {
        rv = mdl_partial_truncate(write->partial, 0);
    }
    if (rv == APR_SUCCESS && upload_write_is_checked(write)) {
        rv = mdl_partial_mark(write->partial);
    }
    if (rv != APR_SUCCESS) {
        upload_write_close(write);
    }
    return rv;
}

/* --- the bytes --- */

apr_status_t mdl_upload_write_append(mdl_upload_write_t *write, const char *data, apr_size_t length)
{
    apr_int64_t size;
    apr_status_t rv;

    if (length == 0) {
        return APR_SUCCESS;
    }
    if (upload_write_is_over(write)) {
        return upload_write_too_large(write);
    }
    size = upload_write_size(write) + (apr_int64_t)length;
    if (size > upload_write_limit(write)) {
        upload_write_take_back(write);
        return upload_write_too_large(write);
    }
    if ((rv = upload_write_reserve(write, size, size + RESERVE_STEP)) != APR_SUCCESS) {
        return rv;
    }
    if (write->digest != NULL) {
        mdl_digest_update(write->digest, data, length);
    }
    return write->partial != NULL
               ? mdl_partial_write(write->partial, data, length)
               : upload_write_result(write,
                                     mdl_upload_object_append(&write->object, data, length,
                                                              !upload_write_is_checked(write)));
}

void mdl_upload_write_cut(mdl_upload_write_t *write)
{
    if (upload_write_is_checked(write)) {
        upload_write_take_back(write);
    }
    upload_write_close(write);
}

/* --- ending --- */

static apr_status_t upload_write_check(mdl_upload_write_t *write)
{
    if (write->digest != NULL &&
        strcmp(mdl_digest_end(write->digest, write->pool), write->checksum) != 0) {
        upload_write_take_back(write);
        return mdl_problem_set(
            write->problem, 460, "checksum_mismatch",
            "The piece does not have the checksum that was given; send it again.");
    }
    if (write->whole && upload_write_size(write) < write->upload->size) {
        return upload_write_invalid(write, "The body ended before the file did.");
    }
    return write->partial != NULL ? mdl_partial_accept(write->partial) : APR_SUCCESS;
}

MDL_EFFECT(mdl_upload_finish, mdl_upload_finish_t *)

/* Keeps the partial file until the database knows the blob, so that an outage loses nothing. */
static apr_status_t upload_write_publish(mdl_upload_write_t *write)
{
    mdl_upload_finish_t finish = {.id = write->id, .storage = write->storage};
    mdl_partial_t *partial = write->partial;
    apr_status_t rv = mdl_partial_digest(partial, &finish.blob, write->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    write->partial = NULL;
    rv = mdl_partial_publish(partial, &finish.blob);
    if (rv == APR_SUCCESS) {
        rv = write->run(write->baton, mdl_db_write, mdl_upload_finish_effect, &finish);
    }
    /* Aborted by now, with or without its file. */
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && finish.late)) {
        return upload_write_finished(write);
    }
    if (rv == APR_SUCCESS) {
        mdl_partial_remove(write->storage, write->id, write->pool);
    }
    return rv;
}

/* Bytes of a file that did not all come in this write are hashed by a job. */
static apr_status_t upload_write_finish(mdl_upload_write_t *write)
{
    if (write->partial == NULL) {
        return mdl_upload_object_finish(&write->object);
    }
    return mdl_partial_hashed(write->partial) ? upload_write_publish(write) : APR_SUCCESS;
}

apr_status_t mdl_upload_write_end(mdl_upload_write_t *write)
{
    apr_status_t rv, closed;

    if (upload_write_is_over(write)) {
        write->arrived = write->upload->size;
        return upload_write_close(write);
    }
    if ((rv = upload_write_check(write)) == APR_SUCCESS) {
        write->arrived = upload_write_size(write);
        if (write->whole || write->arrived == write->upload->size) {
            rv = upload_write_finish(write);
        }
    }
    closed = upload_write_close(write);
    return upload_write_result(write, rv == APR_SUCCESS ? closed : rv);
}
