#include "core/catalog/upload_write.h"

#include <string.h>

#include <apr_strings.h>

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

/* Whether only an empty piece may still come. */
static int upload_write_is_over(const mdl_upload_write_t *write)
{
    return write->upload->sha256 != NULL || write->upload->status != MDL_UPLOAD_OPEN;
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
    rv = write->run(write->baton, mdl_db_write, mdl_upload_reserve_effect, &reserve);
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

/* The file stays locked to the end: the next writer reserves only after this one gave back. */
static apr_status_t upload_write_close(mdl_upload_write_t *write)
{
    mdl_partial_t *partial = write->partial;

    if (partial == NULL) {
        return APR_SUCCESS;
    }
    upload_write_give_back(write);
    write->partial = NULL;
    if (mdl_partial_size(partial) == 0) {
        mdl_partial_discard(partial);
        return APR_SUCCESS;
    }
    return mdl_partial_keep(partial);
}

/* Whether the bytes of this write count only after their checksum was compared. */
static int upload_write_is_checked(const mdl_upload_write_t *write)
{
    return write->digest != NULL && !upload_write_is_over(write);
}

static void upload_write_take_back(mdl_upload_write_t *write)
{
    if (mdl_partial_truncate(write->partial, write->offset) == APR_SUCCESS) {
        mdl_partial_accept(write->partial);
    }
}

/* --- beginning --- */

MDL_EFFECT(mdl_upload_find_live, mdl_upload_get_t *)

static apr_status_t upload_write_find(mdl_upload_write_t *write)
{
    mdl_upload_get_t get = {.id = write->id, .problem = write->problem};
    apr_status_t rv = write->run(write->baton, mdl_db_read, mdl_upload_find_live_effect, &get);

    write->upload = get.upload;
    return rv == MDL_EPROBLEM && write->whole && get.upload != NULL &&
                   get.upload->status == MDL_UPLOAD_ABORTED
               ? upload_write_finished(write)
               : rv;
}

static apr_status_t upload_write_admit_whole(mdl_upload_write_t *write)
{
    apr_int64_t size = write->upload->size;
    apr_status_t rv;

    if (upload_write_is_over(write) || (size > 0 && mdl_partial_size(write->partial) == size)) {
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
    rv = upload_write_reserve(write, write->length, write->length);
    return rv == APR_SUCCESS ? mdl_partial_truncate(write->partial, 0) : rv;
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
    apr_status_t rv = write->run(write->baton, mdl_db_write, mdl_upload_set_size_effect, &set);

    return rv == APR_ENOENT ? upload_write_finished(write) : rv;
}

static apr_status_t upload_write_admit_piece(mdl_upload_write_t *write)
{
    apr_int64_t size = write->upload->size;
    apr_int64_t current = upload_write_is_over(write) ? size : mdl_partial_size(write->partial);
    apr_status_t rv;

    if (write->offset != current) {
        write->arrived = current;
        return mdl_problem_set(write->problem, 409, "upload_offset_conflict",
                               apr_psprintf(write->pool,
                                            "The upload has %" APR_INT64_T_FMT
                                            " bytes by now; go on from there.",
                                            current));
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

apr_status_t mdl_upload_write_begin(mdl_upload_write_t *write, apr_pool_t *p)
{
    apr_status_t rv = mdl_partial_append(&write->partial, write->storage, write->id, p);

    write->pool = p;
    write->upload = NULL;
    write->arrived = -1;
    if (APR_STATUS_IS_EAGAIN(rv)) {
        return mdl_problem_set(write->problem, 423, "upload_locked",
                               "Another request is writing this upload.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* The file is locked, so the upload's state does not change until the bytes are written. */
    rv = upload_write_find(write);
    if (rv == APR_SUCCESS) {
        rv = write->whole ? upload_write_admit_whole(write) : upload_write_admit_piece(write);
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
    apr_int64_t size = mdl_partial_size(write->partial) + (apr_int64_t)length;
    apr_status_t rv;

    if (length == 0) {
        return APR_SUCCESS;
    }
    if (upload_write_is_over(write)) {
        return upload_write_too_large(write);
    }
    if (size > upload_write_limit(write)) {
        mdl_partial_truncate(write->partial, write->offset);
        return upload_write_too_large(write);
    }
    if ((rv = upload_write_reserve(write, size, size + RESERVE_STEP)) != APR_SUCCESS) {
        return rv;
    }
    if (write->digest != NULL) {
        mdl_digest_update(write->digest, data, length);
    }
    return mdl_partial_write(write->partial, data, length);
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
    if (write->whole && mdl_partial_size(write->partial) < write->upload->size) {
        return upload_write_invalid(write, "The body ended before the file did.");
    }
    return mdl_partial_accept(write->partial);
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

apr_status_t mdl_upload_write_end(mdl_upload_write_t *write)
{
    apr_status_t rv, closed;

    if (upload_write_is_over(write)) {
        write->arrived = write->upload->size;
        return upload_write_close(write);
    }
    if ((rv = upload_write_check(write)) == APR_SUCCESS) {
        write->arrived = mdl_partial_size(write->partial);
        /* If all bytes came in this write, they become a blob at once; else a job hashes them. */
        if ((write->whole || write->arrived == write->upload->size) &&
            mdl_partial_hashed(write->partial)) {
            rv = upload_write_publish(write);
        }
    }
    closed = upload_write_close(write);
    return rv == APR_SUCCESS ? closed : rv;
}
