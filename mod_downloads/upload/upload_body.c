#include "upload/upload_body.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>

#include "api/body.h"
#include "base/crypto.h"
#include "connection.h"
#include "request_body.h"

APLOG_USE_MODULE(downloads);

#define READ_SIZE  65536
#define MAX_DIGITS 18

typedef struct {
    mdl_upload_exchange_t *exchange;
    mdl_request_t *request;
    request_rec *r;
    mdl_partial_t *partial;
    mdl_upload_t *upload;
    apr_int64_t begin;    /* where the request's bytes go */
    apr_int64_t set_size; /* -1: not given */
    const char *checksum; /* of the request's bytes in base64, or NULL */
    mdl_digest_t *digest;
} write_t;

static apr_status_t upload_body_invalid(mdl_request_t *request, const char *message)
{
    return mdl_problem_set(&request->problem, 400, "invalid_request", message);
}

static apr_status_t upload_body_finished(mdl_request_t *request)
{
    return mdl_problem_set(&request->problem, 409, "upload_finished",
                           "All bytes of this upload have arrived, or it has been aborted.");
}

/* The database. */

typedef struct {
    const char *id;
    mdl_upload_t *upload;
} find_t;

static apr_status_t upload_body_find(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    find_t *look = arg;

    return mdl_upload_find(db, look->id, &look->upload, p);
}

typedef apr_status_t run_fn(mdl_db_t *db, mdl_effect_fn *effect, void *arg, apr_pool_t *p);

static apr_status_t upload_body_run(mdl_upload_exchange_t *exchange, run_fn *how,
                                    mdl_effect_fn *effect, void *arg)
{
    request_rec *r = exchange->request.r;
    mdl_connection_t *connection = mdl_connection_open(r);
    apr_status_t rv = MDL_DB_EGONE;

    if (connection != NULL) {
        rv = how(mdl_connection_db(connection), effect, arg, r->pool);
        mdl_connection_close(connection);
    }
    return rv;
}

apr_status_t mdl_upload_commit(mdl_upload_exchange_t *exchange, mdl_effect_fn *effect, void *arg)
{
    return upload_body_run(exchange, mdl_db_write, effect, arg);
}

apr_status_t mdl_upload_read(mdl_upload_exchange_t *exchange, mdl_upload_t **upload)
{
    find_t look = {.id = exchange->id};
    apr_status_t rv = upload_body_run(exchange, mdl_db_read, upload_body_find, &look);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(&exchange->request.problem, 404, "upload_not_found",
                               "There is no such upload.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (exchange->put && strcmp(look.upload->status, MDL_UPLOAD_ABORTED) == 0) {
        return upload_body_finished(&exchange->request);
    }
    if (mdl_upload_expired(look.upload) || strcmp(look.upload->status, MDL_UPLOAD_ABORTED) == 0) {
        return mdl_problem_set(&exchange->request.problem, 410, "upload_gone",
                               "This upload has expired or was aborted; begin another.");
    }
    *upload = look.upload;
    return APR_SUCCESS;
}

/* What the request says. */

/* A header of digits; -1 when it is not there, -2 when it is something else. */
static apr_int64_t number_of(request_rec *r, const char *name)
{
    const char *text = apr_table_get(r->headers_in, name);
    apr_size_t length = text != NULL ? strlen(text) : 0;

    if (text == NULL) {
        return -1;
    }
    if (length == 0 || length > MAX_DIGITS || strspn(text, "0123456789") != length) {
        return -2;
    }
    return apr_atoi64(text);
}

/* Upload-Checksum: "<algorithm> <base64>". */
static apr_status_t take_checksum(write_t *write)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
    const char *header = apr_table_get(write->r->headers_in, "Upload-Checksum");
    const char *space = header != NULL ? strchr(header, ' ') : NULL;
    apr_pool_t *p = write->r->pool;
    apr_size_t length = 0;

    if (header == NULL) {
        return APR_SUCCESS;
    }
    if (space != NULL) {
        const char *name = apr_pstrmemdup(p, header, (apr_size_t)(space - header));

        write->digest = mdl_digest_begin(name, p);
        length = write->digest != NULL ? strlen(mdl_digest_end(mdl_digest_begin(name, p), p)) : 0;
        write->checksum = space + 1;
    }
    if (write->digest == NULL || strlen(write->checksum) != length ||
        write->checksum[strspn(write->checksum, alphabet)] != '\0') {
        return upload_body_invalid(write->request,
                                   "Upload-Checksum must be \"sha1 \" or \"sha256 \" and the "
                                   "digest in base64.");
    }
    return APR_SUCCESS;
}

static apr_status_t parse_patch(write_t *write)
{
    const char *type = apr_table_get(write->r->headers_in, "Content-Type");

    if (type == NULL || strcasecmp(type, "application/offset+octet-stream") != 0) {
        return mdl_problem_set(&write->request->problem, 415, "unsupported_media_type",
                               "Send a piece as Content-Type: application/offset+octet-stream.");
    }
    write->begin = number_of(write->r, "Upload-Offset");
    if (write->begin < 0) {
        return upload_body_invalid(write->request, "Upload-Offset must be a number of bytes.");
    }
    write->set_size = number_of(write->r, "Upload-Length");
    if (write->set_size < -1) {
        return upload_body_invalid(write->request, "Upload-Length must be a number of bytes.");
    }
    return take_checksum(write);
}

static apr_status_t upload_body_parse_put(write_t *write)
{
    write->set_size = -1;
    if (apr_table_get(write->r->headers_in, "Content-Range") != NULL) {
        return upload_body_invalid(write->request,
                                   "PUT takes the whole file; a part of it can't be put.");
    }
    return APR_SUCCESS;
}

/* What the upload says to that. */

static apr_int64_t upload_body_limit_of(const write_t *write)
{
    return write->upload->size >= 0 ? write->upload->size
                                    : write->request->service->settings->upload_max_size;
}

static apr_status_t upload_body_too_large(write_t *write)
{
    write->r->connection->keepalive = AP_CONN_CLOSE;
    return mdl_problem_set(&write->request->problem, 413, "request_too_large",
                           apr_psprintf(write->r->pool,
                                        "This upload takes %" APR_INT64_T_FMT " bytes and no more.",
                                        upload_body_limit_of(write)));
}

static int is_over(const mdl_upload_t *upload)
{
    return upload->sha256 != NULL || strcmp(upload->status, MDL_UPLOAD_OPEN) != 0;
}

static apr_status_t admit_put(write_t *write)
{
    apr_int64_t size = write->upload->size;
    apr_off_t announced = mdl_request_body_length(write->r);

    if (is_over(write->upload) || (size > 0 && mdl_partial_size(write->partial) == size)) {
        return upload_body_finished(write->request);
    }
    if (announced > upload_body_limit_of(write)) {
        return upload_body_too_large(write);
    }
    if (announced >= 0 && size >= 0 && announced < size) {
        return upload_body_invalid(
            write->request,
            apr_psprintf(write->r->pool, "PUT takes the whole file, %" APR_INT64_T_FMT " bytes.",
                         size));
    }
    return mdl_partial_truncate(write->partial, 0);
}

static apr_status_t upload_body_check_size(write_t *write, apr_int64_t current)
{
    if (write->set_size < 0 || write->set_size == write->upload->size) {
        return APR_SUCCESS;
    }
    if (write->upload->size >= 0 || write->set_size < current) {
        return upload_body_invalid(write->request,
                                   "Upload-Length can't be changed, nor be less than what has "
                                   "arrived.");
    }
    return write->set_size > upload_body_limit_of(write) ? upload_body_too_large(write)
                                                         : APR_SUCCESS;
}

static apr_status_t upload_set_size_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_upload_set_size(db, p, arg);
}

static apr_status_t upload_body_set_size(write_t *write)
{
    mdl_upload_size_t set = {.id = write->upload->id, .size = write->upload->size};
    apr_status_t rv = mdl_upload_commit(write->exchange, upload_set_size_effect, &set);

    return rv == APR_ENOENT ? upload_body_finished(write->request) : rv;
}

static apr_status_t admit_patch(write_t *write)
{
    apr_int64_t current = is_over(write->upload) ? write->upload->size
                                                 : mdl_partial_size(write->partial);
    apr_int64_t size = write->upload->size;
    apr_status_t rv;

    if (write->begin != current) {
        mdl_upload_show(write->r, write->upload, current);
        return mdl_problem_set(&write->request->problem, 409, "upload_offset_conflict",
                               apr_psprintf(write->r->pool,
                                            "The upload has %" APR_INT64_T_FMT
                                            " bytes by now; go on "
                                            "from there.",
                                            current));
    }
    if ((rv = upload_body_check_size(write, current)) != APR_SUCCESS) {
        return rv;
    }
    write->upload->size = write->set_size >= 0 ? write->set_size : size;
    if (mdl_request_body_length(write->r) > upload_body_limit_of(write) - current) {
        return upload_body_too_large(write);
    }
    return write->upload->size != size ? upload_body_set_size(write) : APR_SUCCESS;
}

/* The bytes. */

static apr_status_t take_bytes(write_t *write, apr_bucket_brigade *brigade, int *ended)
{
    for (apr_bucket *b = APR_BRIGADE_FIRST(brigade); b != APR_BRIGADE_SENTINEL(brigade);
         b = APR_BUCKET_NEXT(b)) {
        const char *data;
        apr_size_t length;
        apr_status_t rv;

        *ended = *ended || APR_BUCKET_IS_EOS(b);
        if (APR_BUCKET_IS_METADATA(b)) {
            continue;
        }
        if ((rv = apr_bucket_read(b, &data, &length, APR_BLOCK_READ)) != APR_SUCCESS) {
            return mdl_body_not_received(write->request, rv);
        }
        if ((apr_int64_t)length > upload_body_limit_of(write) - mdl_partial_size(write->partial)) {
            mdl_partial_truncate(write->partial, write->begin);
            return upload_body_too_large(write);
        }
        if (write->digest != NULL) {
            mdl_digest_update(write->digest, data, length);
        }
        if ((rv = mdl_partial_write(write->partial, data, length)) != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t upload_body_receive(write_t *write)
{
    request_rec *r = write->r;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_status_t rv = APR_SUCCESS;
    int ended = 0;

    while (!ended && rv == APR_SUCCESS) {
        rv = ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES, APR_BLOCK_READ,
                            READ_SIZE);
        rv = rv == APR_SUCCESS ? take_bytes(write, brigade, &ended)
                               : mdl_body_not_received(write->request, rv);
        apr_brigade_cleanup(brigade);
    }
    return rv;
}

/* A piece with a checksum counts only once that was compared. */
static apr_status_t upload_body_check_bytes(write_t *write)
{
    apr_int64_t size = mdl_partial_size(write->partial);

    if (write->digest != NULL &&
        strcmp(mdl_digest_end(write->digest, write->r->pool), write->checksum) != 0) {
        mdl_partial_truncate(write->partial, write->begin);
        return mdl_problem_set(
            &write->request->problem, 460, "checksum_mismatch",
            "The piece does not have the checksum that was given; send it again.");
    }
    if (write->exchange->put && size < write->upload->size) {
        return upload_body_invalid(write->request, "The body ended before the file did.");
    }
    return APR_SUCCESS;
}

static apr_status_t upload_finish_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_upload_finish(db, p, arg);
}

/* All bytes came in this request: they are a blob at once.  Until the database knows, the file
   stays as it is, so that an outage loses nothing. */
static apr_status_t upload_body_publish(write_t *write)
{
    mdl_upload_finish_t finish = {.id = write->upload->id, .storage = write->exchange->storage};
    mdl_partial_t *partial = write->partial;
    apr_status_t rv = mdl_partial_digest(partial, &finish.blob, write->r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    write->partial = NULL;
    rv = mdl_partial_publish(partial, &finish.blob);
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_commit(write->exchange, upload_finish_effect, &finish);
    }
    /* Aborted by now, without its file or with it. */
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && finish.late)) {
        return upload_body_finished(write->request);
    }
    if (rv == APR_SUCCESS) {
        mdl_partial_remove(write->exchange->storage, write->upload->id, write->r->pool);
    }
    return rv;
}

static apr_status_t upload_body_store(write_t *write)
{
    apr_int64_t end, size = write->upload->size;
    apr_status_t rv = upload_body_receive(write);

    if (rv != APR_SUCCESS && write->digest != NULL) {
        mdl_partial_truncate(write->partial, write->begin);
    }
    if (rv != APR_SUCCESS || (rv = upload_body_check_bytes(write)) != APR_SUCCESS) {
        return rv;
    }
    end = mdl_partial_size(write->partial);
    mdl_upload_show(write->r, write->upload, end);
    if ((write->exchange->put || end == size) && mdl_partial_hashed(write->partial)) {
        return upload_body_publish(write);
    }
    rv = mdl_partial_keep(write->partial);
    write->partial = NULL;
    return rv;
}

/* Nothing but an empty piece goes to an upload that has all. */
static apr_status_t add_nothing(write_t *write)
{
    mdl_request_body_discard(write->r);
    if (mdl_request_body_length(write->r) != 0 && ap_request_has_body(write->r)) {
        return upload_body_too_large(write);
    }
    mdl_upload_show(write->r, write->upload, write->upload->size);
    return APR_SUCCESS;
}

/* With the file locked, so that what is read of the upload holds until the bytes are in. */
static apr_status_t write_locked(write_t *write)
{
    apr_status_t rv = mdl_upload_read(write->exchange, &write->upload);

    if (rv == APR_SUCCESS) {
        rv = write->exchange->put ? admit_put(write) : admit_patch(write);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return is_over(write->upload) ? add_nothing(write) : upload_body_store(write);
}

static apr_status_t upload_body_disk_failed(write_t *write, apr_status_t rv)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, write->r, "MDL0210: upload %s: can't write to %s",
                  write->exchange->id, write->request->service->settings->storage);
    return APR_STATUS_IS_ENOSPC(rv)
               ? mdl_problem_set(&write->request->problem, 507, "insufficient_storage",
                                 "The service has no room to store this.")
               : rv;
}

apr_status_t mdl_upload_write(mdl_upload_exchange_t *exchange)
{
    write_t write = {.exchange = exchange, .request = &exchange->request, .r = exchange->request.r};
    apr_status_t rv = exchange->put ? upload_body_parse_put(&write) : parse_patch(&write);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_partial_append(&write.partial, exchange->storage, exchange->id, write.r->pool);
    if (APR_STATUS_IS_EAGAIN(rv)) {
        write.request->retry_after = 1;
        return mdl_problem_set(&write.request->problem, 423, "upload_locked",
                               "Another request is writing this upload.");
    }
    if (rv == APR_SUCCESS) {
        rv = write_locked(&write);
    }
    if (write.partial != NULL && mdl_partial_size(write.partial) == 0) {
        mdl_partial_discard(write.partial);
    } else if (write.partial != NULL) {
        mdl_partial_keep(write.partial);
    }
    return rv > 0 && rv < APR_OS_START_ERROR ? upload_body_disk_failed(&write, rv)
                                             : rv; /* the system's */
}

void mdl_upload_show(request_rec *r, const mdl_upload_t *upload, apr_int64_t offset)
{
    char date[APR_RFC822_DATE_LEN];

    apr_table_setn(r->headers_out, "Upload-Offset",
                   apr_psprintf(r->pool, "%" APR_INT64_T_FMT, offset));
    if (strcmp(upload->status, MDL_UPLOAD_OPEN) == 0 &&
        apr_rfc822_date(date, upload->expires_at) == APR_SUCCESS) {
        apr_table_set(r->headers_out, "Upload-Expires", date);
    }
}
