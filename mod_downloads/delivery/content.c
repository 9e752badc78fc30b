#include "delivery/content.h"

#include <apr_strings.h>
#include <http_log.h>

#include "base/crypto.h"
#include "base/http/object.h"
#include "child_storage.h"
#include "connection.h"
#include "core/catalog/blob_place.h"
#include "delivery/body_archive.h"
#include "delivery/body_blob.h"
#include "delivery/body_object.h"
#include "delivery/output.h"

APLOG_USE_MODULE(downloads);

#define OBJECT_RANGES 16
#define PATIENCE      apr_time_from_sec(10) /* with a store that does not begin to answer */

MDL_EFFECT(mdl_blob_missed, mdl_blob_missed_t *)

static int is_archive(const mdl_content_t *content)
{
    return content->link->asset_id == 0;
}

/* Ends the wait for the store when nobody waits for its bytes. */
static int content_is_stopped(void *baton)
{
    const mdl_content_t *content = baton;
    const conn_rec *c = content->r->connection;

    return c->aborted || (c->master != NULL && c->master->aborted) ||
           (content->transfer != NULL && mdl_transfer_is_cut(content->transfer));
}

mdl_content_t *mdl_content_make(request_rec *r, const mdl_signed_file_t *link,
                                mdl_download_t *download)
{
    mdl_content_t *content = apr_pcalloc(r->pool, sizeof *content);

    *content = (mdl_content_t){
        .r = r,
        .link = link,
        .download = download,
        .call = {.patience = PATIENCE, .stopped = content_is_stopped, .baton = content}};
    return content;
}

static mdl_object_store_t *child_objects(void)
{
    const mdl_storage_t *storage = mdl_child_storage();

    return storage != NULL ? mdl_storage_objects(storage) : NULL;
}

/* --- what can't be read --------------------------------------------------------------------- */

/* A single file, or one of an archive's. */
typedef struct {
    apr_int64_t asset_id;
    mdl_blob_t blob;
} file_t;

static file_t content_file(const mdl_content_t *content)
{
    const mdl_download_t *download = content->download;

    return (file_t){
        content->link->asset_id,
        {.sha256 = download->sha256, .size = download->size, .object = download->object}};
}

static file_t archive_file(const mdl_content_t *content, int i)
{
    const mdl_archive_file_t *file = &APR_ARRAY_IDX(content->download->archive.files, i,
                                                    mdl_archive_file_t);

    return (file_t){file->asset_id,
                    {.sha256 = mdl_hex(file->sha256, sizeof file->sha256, content->r->pool),
                     .size = file->size,
                     .object = file->object}};
}

static const char *place_text(const mdl_blob_t *blob, apr_pool_t *p)
{
    return blob->object == NULL ? "DownloadsStorage"
                                : apr_psprintf(p, "DownloadsObjectStore (object %s)", blob->object);
}

static void log_missing(const mdl_content_t *content, const file_t *file, apr_status_t rv)
{
    request_rec *r = content->r;

    if (is_archive(content)) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, r,
                      "MDL0440: asset %" APR_INT64_T_FMT ", one of %d in an archive of assignment "
                      "%" APR_INT64_T_FMT ": the file %s of %" APR_INT64_T_FMT
                      " bytes is not in %s or can't be read whole; restore it from a backup, or "
                      "import the asset again",
                      file->asset_id, content->download->archive.files->nelts,
                      content->link->assignment_id, file->blob.sha256, file->blob.size,
                      place_text(&file->blob, r->pool));
    } else {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, r,
                      "MDL0406: asset %" APR_INT64_T_FMT ": the file %s of %" APR_INT64_T_FMT
                      " bytes is not in %s or can't be read whole; restore it from a backup, or "
                      "import the asset again",
                      file->asset_id, file->blob.sha256, file->blob.size,
                      place_text(&file->blob, r->pool));
    }
}

static int is_missing(apr_status_t rv)
{
    return APR_STATUS_IS_ENOENT(rv) || rv == APR_EINCOMPLETE;
}

/* The store tells of its absence and its denials itself, and not for each request. */
static void log_unreadable(const mdl_content_t *content, const file_t *file, apr_status_t rv)
{
    mdl_object_store_t *store = child_objects();

    if (store == NULL) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, content->r,
                      "MDL0441: asset %" APR_INT64_T_FMT
                      " is the object %s, but there is no object "
                      "store: set DownloadsObjectStore; if it is set, MDL0211 says what is wrong",
                      file->asset_id, file->blob.object);
    } else if (rv != MDL_OBJECT_EDENIED && !mdl_object_store_is_away(store)) {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, content->r,
                      "MDL0442: asset %" APR_INT64_T_FMT ": the object %s can't be read: %s",
                      file->asset_id, file->blob.object,
                      content->call.why != NULL ? content->call.why : "");
    }
}

/*
 * Notes that a file can't be read, and returns rv.  Where an object is missing, the database is
 * asked where the blob is by now: if it is elsewhere, missed->has_moved, and trying again helps.
 */
static apr_status_t content_fault(const mdl_content_t *content, const file_t *file, apr_status_t rv,
                                  mdl_blob_missed_t *missed)
{
    mdl_connection_t *connection = NULL;

    *missed = (mdl_blob_missed_t){.sha256 = file->blob.sha256, .object = file->blob.object};
    if (file->blob.object != NULL && child_objects() == NULL) {
        rv = MDL_OBJECT_EDENIED;
    } else if (file->blob.object != NULL && is_missing(rv)) {
        apr_status_t looked = mdl_connection_run(&connection, content->r, mdl_db_write,
                                                 mdl_blob_missed_effect, missed);

        mdl_connection_close(connection);
        if (mdl_db_unavailable(looked)) {
            return looked;
        }
        if (missed->has_moved) {
            return MDL_OBJECT_EAWAY;
        }
    }
    if (file->blob.object == NULL || is_missing(rv)) {
        log_missing(content, file, rv);
    } else {
        log_unreadable(content, file, rv);
    }
    return rv;
}

static apr_status_t archive_fault(const mdl_content_t *content, int faulty, apr_status_t rv)
{
    const file_t file = archive_file(content, faulty);
    mdl_blob_missed_t missed;

    return content_fault(content, &file, rv, &missed);
}

/* --- open and ready ------------------------------------------------------------------------- */

static apr_status_t archive_open(mdl_content_t *content)
{
    int faulty;
    apr_status_t rv = mdl_body_archive_open(&content->body, content->r, mdl_child_storage(),
                                            &content->download->archive, &content->call, &faulty);

    return rv == APR_SUCCESS ? rv : archive_fault(content, faulty, rv);
}

apr_status_t mdl_content_open(mdl_content_t *content)
{
    const file_t file = content_file(content);
    mdl_object_store_t *store = child_objects();
    mdl_blob_missed_t missed;
    apr_status_t rv = APR_SUCCESS;

    if (is_archive(content)) {
        return archive_open(content);
    }
    if (file.blob.object != NULL && content->download->is_missing) {
        log_missing(content, &file, APR_ENOENT);
        return APR_ENOENT;
    }
    if (file.blob.object == NULL) {
        rv = mdl_body_blob_open(&content->body, content->r, mdl_child_storage(), &file.blob);
    } else if (store != NULL) {
        content->body = mdl_body_object_make(store, &file.blob, &content->call, content->r->pool);
    } else {
        rv = MDL_OBJECT_EDENIED;
    }
    return rv == APR_SUCCESS ? rv : content_fault(content, &file, rv, &missed);
}

int mdl_content_ranges(const mdl_content_t *content)
{
    int may_ask = content->download->object != NULL || (is_archive(content) && child_objects());

    return may_ask ? OBJECT_RANGES : APR_INT32_MAX;
}

static apr_status_t object_ready(const mdl_content_t *content, const mdl_range_t *range,
                                 mdl_blob_missed_t *missed)
{
    const file_t file = content_file(content);
    apr_status_t rv;

    content->body->until = range->first + range->length;
    rv = mdl_body_object_ready(content->body, range->first);
    return rv == APR_SUCCESS ? rv : content_fault(content, &file, rv, missed);
}

apr_status_t mdl_content_ready(mdl_content_t *content, const mdl_range_t *range)
{
    mdl_download_t *download = content->download;
    mdl_blob_missed_t missed = {.has_moved = 0};
    apr_status_t rv;

    if (is_archive(content)) {
        content->body->until = range->first + range->length;
        rv = mdl_body_archive_ready(content->body, range->first);
        return rv == APR_SUCCESS
                   ? rv
                   : archive_fault(content, mdl_body_archive_faulty(content->body), rv);
    }
    if (download->object == NULL) {
        return APR_SUCCESS;
    }
    rv = object_ready(content, range, &missed);
    if (!missed.has_moved) {
        return rv;
    }
    mdl_body_object_close(content->body);
    download->object = missed.place;
    download->is_missing = 0;
    rv = mdl_content_open(content);
    return rv == APR_SUCCESS && download->object != NULL ? object_ready(content, range, &missed)
                                                         : rv;
}

/* --- send ----------------------------------------------------------------------------------- */

static void log_broken(const mdl_content_t *content, apr_status_t rv)
{
    int faulty = is_archive(content) ? mdl_body_archive_faulty(content->body) : -1;
    const file_t file = content_file(content);
    mdl_blob_missed_t missed;

    if (faulty >= 0) {
        rv = archive_fault(content, faulty, rv);
    } else if (file.blob.object != NULL) {
        rv = content_fault(content, &file, rv, &missed);
    }
    ap_log_rerror(APLOG_MARK, APLOG_WARNING, rv < APR_OS_START_USERERR ? rv : 0, content->r,
                  "MDL0407: a file was not sent whole");
}

apr_status_t mdl_content_send(mdl_content_t *content)
{
    request_rec *r = content->r;
    apr_status_t rv = mdl_output_send(r, content->body, content->transfer);

    if (rv != APR_SUCCESS && !r->connection->aborted) {
        log_broken(content, rv);
    }
    if (is_archive(content)) {
        mdl_body_archive_close(content->body);
    } else if (content->download->object != NULL) {
        mdl_body_object_close(content->body);
    }
    return rv;
}
