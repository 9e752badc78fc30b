#include "delivery/file.h"

#include <malloc.h>
#include <string.h>

#include <apr_allocator.h>
#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_main.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_filter.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/http/address.h"
#include "base/http/object.h"
#include "base/text/filename.h"
#include "child_storage.h"
#include "connection.h"
#include "core/closed.h"
#include "core/download/download.h"
#include "core/download/session_begin.h"
#include "core/download/signed_url.h"
#include "delivery/content.h"
#include "delivery/customer.h"
#include "delivery/range.h"
#include "delivery/view.h"
#include "metering/settler.h"

APLOG_USE_MODULE(downloads);

#define RETRY_AFTER   "5"          /* seconds */
#define REDIRECT_S    300          /* for which the store's URL is good */
#define ARCHIVE_SPARE (128 * 1024) /* bytes that the pool of an archive keeps to use again */
#define ARCHIVE_LARGE 2000 /* files; the memory of a larger archive is returned to the system */
#define SETTLE_NAP    apr_time_from_msec(20)
#define SETTLE_ROUNDS 25

typedef struct {
    request_rec *r;
    apr_pool_t *pool; /* for what is read from the database */
    const mdl_service_t *service;
    mdl_signed_file_t link;
    mdl_download_t download;
    mdl_content_t *content;
    const char *etag;
    mdl_range_t range;
    int is_redirect;          /* whether the object store sends the bytes */
    mdl_transfer_t *transfer; /* NULL when no bytes are sent */
} serve_t;

/* What is sent in place of the bytes: the name of a message in message.html, and its status. */
typedef struct {
    int status; /* OK: the bytes are sent */
    const char *name;
} message_t;

static const int statuses[] = {
    [MDL_ENTITLEMENT_OK] = OK,
    [MDL_ENTITLEMENT_BLOCKED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_HELD] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_UNDECLARED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_REJECTED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_REVOKED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_EXPIRED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_NOT_READY] = HTTP_CONFLICT,
    [MDL_ENTITLEMENT_FAILED] = HTTP_CONFLICT,
    [MDL_ENTITLEMENT_RUNNING] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_EXHAUSTED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_GONE] = HTTP_NOT_FOUND,
    [MDL_ENTITLEMENT_LINK_OLD] = HTTP_GONE,
    [MDL_ENTITLEMENT_CAPPED] = HTTP_FORBIDDEN,
    [MDL_ENTITLEMENT_CROWDED] = HTTP_TOO_MANY_REQUESTS,
    [MDL_ENTITLEMENT_TOO_OFTEN] = HTTP_TOO_MANY_REQUESTS,
};

static message_t message_of(mdl_entitlement_t entitlement)
{
    return (message_t){statuses[entitlement], mdl_entitlement_names[entitlement]};
}

static message_t message_of_content(apr_status_t rv)
{
    return rv == APR_SUCCESS ? (message_t){OK, NULL}
           : rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED || rv == MDL_OBJECT_EBROKEN ||
                   APR_STATUS_IS_EINTR(rv) || mdl_db_unavailable(rv)
               ? (message_t){HTTP_SERVICE_UNAVAILABLE, "file_away"}
               : (message_t){HTTP_INTERNAL_SERVER_ERROR, "file_missing"};
}

static int is_archive(const serve_t *serve)
{
    return serve->link.asset_id == 0;
}

/* Each request has one line, which says why it did or did not cost a download. */
static void log_request(const serve_t *serve, const char *why)
{
    const char *what = is_archive(serve) ? "all files"
                                         : apr_psprintf(serve->r->pool, "asset %" APR_INT64_T_FMT,
                                                        serve->link.asset_id);

    ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, serve->r,
                  "MDL0405: download of %s for assignment %" APR_INT64_T_FMT ": %s (%s)", what,
                  serve->link.assignment_id, why, mdl_request_id(serve->r));
}

/* Drops the file's validators before an error page is sent. */
static void unset_validators(request_rec *r)
{
    apr_table_unset(r->headers_out, "ETag");
    apr_table_unset(r->headers_out, "Last-Modified");
}

MDL_EFFECT(mdl_order_head, mdl_order_find_t *)

static int file_refuse(const serve_t *serve, message_t message)
{
    request_rec *r = serve->r;
    const char *page_id = serve->download.page_id;
    mdl_view_customer_t customer;
    mdl_order_t *order;

    unset_validators(r);
    if (message.status == HTTP_RANGE_NOT_SATISFIABLE) {
        apr_table_setn(r->headers_out, "Content-Range",
                       apr_psprintf(r->pool, "bytes */%" APR_INT64_T_FMT, serve->download.size));
    }
    if (strcmp(message.name, "maintenance") == 0) {
        apr_table_setn(r->headers_out, "Retry-After", APR_STRINGIFY(MDL_CLOSED_WAIT));
    } else if (message.status == HTTP_TOO_MANY_REQUESTS ||
               message.status == HTTP_SERVICE_UNAVAILABLE) {
        apr_table_setn(r->headers_out, "Retry-After", RETRY_AFTER);
    }
    log_request(serve, apr_psprintf(r->pool, "not counted, %d: %s", message.status, message.name));
    if (serve->download.entitlement == MDL_ENTITLEMENT_TOO_OFTEN) {
        mdl_customer_wait(r, serve->download.wait);
        return mdl_view_message(r, HTTP_TOO_MANY_REQUESTS, "files_too_often", NULL);
    }
    if (page_id == NULL || mdl_customer_order(r, serve->service, page_id, NULL,
                                              mdl_order_head_effect, &order) != APR_SUCCESS) {
        return mdl_view_message(r, message.status, message.name, NULL);
    }
    customer = mdl_customer_view(serve->service, order, r->pool);
    return mdl_view_message(r, message.status, message.name, &customer);
}

/*
 * A pool with an allocator of its own.  An archive of many files takes megabytes, which a request's
 * pool would not return to the system: each connection would keep them for its next requests.
 */
static apr_pool_t *archive_pool(request_rec *r)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, ARCHIVE_SPARE);
    apr_pool_create_ex(&pool, r->pool, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    apr_pool_tag(pool, "mdl_archive");
    return pool;
}

/* Frees an archive's memory, once.  glibc would keep the megabytes of a large archive in its
   arenas, between the pages that SQLite has allocated meanwhile. */
static void archive_end(void *owner)
{
    serve_t *serve = owner;
    const apr_array_header_t *files = serve->download.archive.files;
    int is_large;

    if (serve->pool == NULL) {
        return;
    }
    if (serve->transfer != NULL) {
        mdl_transfer_end_body(serve->transfer);
    }
    is_large = files != NULL && files->nelts > ARCHIVE_LARGE;
    apr_pool_destroy(serve->pool);
    serve->pool = NULL;
    if (is_large) {
        malloc_trim(0);
    }
}

/* Sets the validators that conditional requests are compared with. */
static void set_validators(serve_t *serve)
{
    request_rec *r = serve->r;

    serve->etag = apr_pstrcat(r->pool, "\"", serve->download.tag, "\"", NULL);
    apr_table_setn(r->headers_out, "ETag", serve->etag);
    ap_update_mtime(r, serve->download.updated_at);
    ap_set_last_modified(r);
}

/* RFC 9530: the digest of the whole file, also when a part of it is sent. */
static const char *repr_digest(const char *sha256, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_hex_decode(digest, sizeof digest, sha256);
    return apr_pstrcat(p, "sha-256=:", mdl_base64(digest, sizeof digest, p), ":", NULL);
}

static const char *content_type(const mdl_download_t *download)
{
    return download->content_type != NULL ? download->content_type : "application/octet-stream";
}

static void set_headers(const serve_t *serve)
{
    const mdl_download_t *download = &serve->download;
    request_rec *r = serve->r;
    apr_table_t *headers = r->headers_out;

    apr_table_setn(r->subprocess_env, "no-gzip", "1");
    apr_table_setn(r->subprocess_env, "no-brotli", "1");
    ap_set_content_type(r, content_type(download));
    ap_set_content_length(r, download->size);
    ap_set_accept_ranges(r);
    apr_table_setn(headers, "Content-Disposition",
                   mdl_filename_disposition(download->filename, r->pool));
    if (download->sha256 != NULL) {
        apr_table_setn(headers, "Repr-Digest", repr_digest(download->sha256, r->pool));
    }
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    apr_table_setn(headers, "Content-Security-Policy", "sandbox");
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    apr_table_setn(headers, "Cache-Control", "private");
    apr_table_setn(headers, "Cross-Origin-Resource-Policy", "same-origin");
    /* Bytes in a proxy's buffers would count as delivered. */
    apr_table_setn(headers, "X-Accel-Buffering", "no");
}

/* Another error closes the connection, for the head of the response was sent. */
static int file_send(const serve_t *serve)
{
    serve->content->transfer = serve->transfer;
    if (is_archive(serve)) {
        serve->content->body->end = archive_end;
        serve->content->body->owner = (void *)serve;
    }
    return mdl_content_send(serve->content) == APR_SUCCESS || serve->r->connection->aborted
               ? OK
               : AP_FILTER_ERROR;
}

/* Sends the client to the object store.  What it asks for counts as delivered once it has any byte
   of this response; of several ranges the store may send the whole. */
static int file_redirect(const serve_t *serve)
{
    const mdl_download_t *download = &serve->download;
    const mdl_range_t *range = &serve->range;
    request_rec *r = serve->r;

    mdl_transfer_add_other(serve->transfer, 1);
    mdl_transfer_add_rest(serve->transfer, range->is_several ? 0 : range->first,
                          range->is_several ? download->size : range->length);
    unset_validators(r);
    apr_table_setn(r->headers_out, "Location",
                   mdl_object_url(mdl_storage_objects(mdl_child_storage()), download->object,
                                  REDIRECT_S, mdl_filename_disposition(download->filename, r->pool),
                                  content_type(download), r->pool));
    return mdl_view_message(r, HTTP_SEE_OTHER, "download_begins", NULL);
}

/* 304, with the validators that were compared. */
static int send_unchanged(const serve_t *serve)
{
    log_request(serve, "not counted, not modified");
    apr_table_setn(serve->r->headers_out, "Cache-Control", "private");
    serve->r->status = HTTP_NOT_MODIFIED;
    return OK;
}

/* Waits while bytes that were sent a moment ago are unsettled: they decide whether this is another
   download.  No connection to the database is held meanwhile. */
static apr_status_t file_begin(const serve_t *serve, mdl_session_begin_t *begin, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    if (mdl_session_begin_part(begin)) {
        return APR_SUCCESS;
    }
    for (int i = SETTLE_ROUNDS; i >= 0; i--) {
        mdl_connection_t *connection = mdl_connection_open(serve->r);

        if (connection == NULL) {
            return MDL_DB_EGONE;
        }
        begin->patient = i > 0;
        begin->alive_until = mdl_settler_due(mdl_clock_monotonic());
        rv = mdl_session_begin(mdl_connection_db(connection), begin, p);
        mdl_connection_close(connection);
        if (rv != APR_SUCCESS || begin->entitlement != MDL_ENTITLEMENT_UNSETTLED) {
            break;
        }
        apr_sleep(SETTLE_NAP);
    }
    if (rv == APR_SUCCESS && begin->entitlement == MDL_ENTITLEMENT_OK && begin->alive_until != 0 &&
        !begin->is_unwritten) {
        mdl_settler_renewed(begin->alive_until);
    }
    return rv;
}

static mdl_layout_file_t *layout_make(const serve_t *serve, int files, mdl_layout_t **layout)
{
    *layout = apr_palloc(serve->pool, sizeof **layout);
    **layout = (mdl_layout_t){
        .count = files,
        .files = apr_palloc(serve->pool, (apr_size_t)files * sizeof(mdl_layout_file_t))};
    return (*layout)->files;
}

static const mdl_layout_t *archive_layout(const serve_t *serve)
{
    const mdl_archive_t *archive = &serve->download.archive;
    int n = archive->files->nelts;
    apr_int64_t end = 0;
    mdl_layout_t *layout;
    mdl_layout_file_t *files = layout_make(serve, n + 1, &layout);

    for (int i = 0; i < n; i++) {
        const mdl_archive_file_t *file = &APR_ARRAY_IDX(archive->files, i, mdl_archive_file_t);

        end = mdl_zip_data(archive->zip, i);
        files[i] = (mdl_layout_file_t){.asset_id = file->asset_id,
                                       .from = end,
                                       .size = file->size,
                                       .version = mdl_progress_version(file->sha256)};
        end += file->size;
    }
    files[n] = (mdl_layout_file_t){
        .asset_id = MDL_DIRECTORY_ID, .from = end, .size = serve->download.size - end};
    return layout;
}

/* The files in the response, each with its offset. */
static const mdl_layout_t *file_layout(const serve_t *serve)
{
    unsigned char sha256[MDL_SHA256_LENGTH] = {0};
    mdl_layout_t *layout;

    if (is_archive(serve)) {
        return archive_layout(serve);
    }
    mdl_hex_decode(sha256, sizeof sha256, serve->download.sha256);
    *layout_make(serve, 1, &layout) = (mdl_layout_file_t){.asset_id = serve->link.asset_id,
                                                          .size = serve->download.size,
                                                          .version = mdl_progress_version(sha256)};
    return layout;
}

/* A pool for what is not needed once bytes are sent: an archive has thousands of files. */
static apr_pool_t *scratch_pool(const serve_t *serve)
{
    apr_pool_t *pool;

    apr_pool_create(&pool, serve->pool);
    apr_pool_tag(pool, "mdl_file_take");
    return pool;
}

/* Charges the download that sending bytes costs, or sets the message of a refusal. */
static apr_status_t file_take(serve_t *serve, message_t *message)
{
    apr_pool_t *scratch = scratch_pool(serve);
    const mdl_settings_t *settings = serve->service->settings;
    const mdl_download_t *download = &serve->download;
    request_rec *r = serve->r;
    const mdl_layout_t *layout = file_layout(serve);
    mdl_session_begin_t session = {
        .link = &serve->link,
        .layout = layout,
        .last = download->session,
        .limit = download->limit,
        .is_fresh = download->is_fresh,
        .default_download_limit = settings->download_limit,
        .etag = serve->etag,
        .size = download->size,
        .version = download->version,
        .network = mdl_address_network(r->useragent_ip, r->pool),
        .whole = serve->range.kind == MDL_RANGE_WHOLE,
        .bytes = serve->range.is_several ? download->size : serve->range.length,
        .lifetime = settings->session_lifetime,
        .idle = settings->session_idle,
        .meter_id = mdl_settler_meter_id(),
        .transfer_id = mdl_random_base62(MDL_TRANSFER_ID_LENGTH, r->pool)};
    mdl_transfer_t *transfer;
    apr_status_t rv;

    transfer = mdl_settler_start() ? mdl_transfer_make(r) : NULL;
    rv = transfer != NULL ? file_begin(serve, &session, scratch) : MDL_DB_EGONE; /* 503 */
    /* If the answer to the COMMIT was lost, the settler ends what may have begun. */
    if (rv == APR_SUCCESS ? session.entitlement == MDL_ENTITLEMENT_OK
                          : rv == MDL_DB_EGONE && session.why != NULL) {
        const mdl_session_delivery_t of = {.transfer_id = session.transfer_id,
                                           .session_id = serve->link.session,
                                           .generation = session.generation,
                                           .assignment_id = serve->link.assignment_id,
                                           .page_id = download->page_id,
                                           .is_unwritten = session.is_unwritten};

        mdl_transfer_begin(transfer, r, &of, layout);
        serve->transfer = transfer;
    }
    apr_pool_destroy(scratch);
    if (rv == APR_SUCCESS) {
        *message = message_of(session.entitlement);
        if (message->status == OK) {
            log_request(serve, serve->is_redirect
                                   ? apr_pstrcat(r->pool, session.why, ", at the redirect", NULL)
                                   : session.why);
        }
    }
    return rv;
}

/* The answer to a request that reads bytes during maintenance; also to a part of a running
   download, or its session might never be settled. */
static const message_t closed = {HTTP_SERVICE_UNAVAILABLE, "maintenance"};

/* All checks that cost nothing. */
static message_t file_decide(serve_t *serve)
{
    request_rec *r = serve->r;
    apr_status_t rv;
    int status;

    if (serve->download.entitlement != MDL_ENTITLEMENT_OK) {
        return message_of(serve->download.entitlement);
    }
    if (mdl_customer_prefetches(r)) {
        return (message_t){HTTP_FORBIDDEN, "prefetch"};
    }
    serve->content = mdl_content_make(r, &serve->link, &serve->download);
    if ((rv = mdl_content_open(serve->content)) != APR_SUCCESS) {
        return message_of_content(rv);
    }
    set_validators(serve);
    if ((status = ap_meets_conditions(r)) != OK) {
        return status == HTTP_NOT_MODIFIED ? (message_t){HTTP_NOT_MODIFIED, NULL}
                                           : (message_t){HTTP_PRECONDITION_FAILED, "file_changed"};
    }
    serve->range = mdl_range_read(r, serve->download.size, mdl_content_ranges(serve->content));
    serve->is_redirect = serve->service->settings->object_redirect && !r->header_only &&
                         serve->download.object != NULL;
    return serve->range.kind == MDL_RANGE_BEYOND
               ? (message_t){HTTP_RANGE_NOT_SATISFIABLE, "nothing_left"}
               : (message_t){OK, NULL};
}

static apr_status_t file_look(serve_t *serve)
{
    const mdl_settings_t *settings = serve->service->settings;
    mdl_connection_t *connection = mdl_connection_open(serve->r);
    apr_status_t rv;

    if (connection == NULL) {
        return MDL_DB_EGONE;
    }
    serve->download = (mdl_download_t){.link = &serve->link,
                                       .secret = serve->service->secret,
                                       .rate_limit = serve->service->rate_limit,
                                       .default_download_limit = settings->download_limit,
                                       .session_lifetime = settings->session_lifetime};
    rv = mdl_download_look(mdl_connection_db(connection), &serve->download, serve->pool);
    mdl_connection_close(connection);
    return rv;
}

static int serve_link(serve_t *serve)
{
    request_rec *r = serve->r;
    message_t message = {OK, NULL};
    apr_status_t rv;

    /* RFC 9110 section 14.2: only GET has ranges, which the byterange filter does not know. */
    if (r->header_only) {
        apr_table_unset(r->headers_in, "Range");
    }
    if ((rv = file_look(serve)) == APR_SUCCESS) {
        message = file_decide(serve);
    }
    if (rv == APR_SUCCESS && message.status == OK && !r->header_only && serve->download.is_closed) {
        message = closed;
    }
    if (rv == APR_SUCCESS && message.status == OK && !r->header_only && !serve->is_redirect) {
        message = message_of_content(mdl_content_ready(serve->content, &serve->range));
    }
    if (rv == APR_SUCCESS && message.status == OK) {
        if (r->header_only) {
            log_request(serve, "not counted, HEAD");
        } else {
            rv = file_take(serve, &message); /* last, when nothing else can go wrong */
        }
    }
    if (rv == MDL_DB_ECLOSED) {
        message = closed;
    } else if (rv != APR_SUCCESS) {
        unset_validators(r);
        return mdl_view_failure(r, rv, "file_not_found");
    }
    if (message.status == HTTP_NOT_MODIFIED) {
        return send_unchanged(serve);
    }
    if (message.status != OK) {
        return file_refuse(serve, message);
    }
    if (serve->is_redirect) {
        return file_redirect(serve);
    }
    set_headers(serve);
    return file_send(serve);
}

static int file_forged(request_rec *r, const mdl_service_t *service)
{
    mdl_customer_forged(r, service);
    return mdl_view_failure(r, APR_ENOENT, "file_not_found");
}

int mdl_file_serve(request_rec *r, const mdl_service_t *service, const char *token)
{
    serve_t serve = {.r = r, .pool = r->pool, .service = service};

    return mdl_signed_url_file_read(service->secret, token, &serve.link, r->pool) == APR_SUCCESS &&
                   !is_archive(&serve)
               ? serve_link(&serve)
               : file_forged(r, service);
}

int mdl_file_serve_archive(request_rec *r, const mdl_service_t *service, const char *token)
{
    serve_t serve = {.r = r, .service = service};
    int status;

    if (mdl_signed_url_file_read(service->secret, token, &serve.link, r->pool) != APR_SUCCESS ||
        !is_archive(&serve)) {
        return file_forged(r, service);
    }
    serve.pool = archive_pool(r);
    status = serve_link(&serve);
    archive_end(&serve);
    return status;
}

int mdl_file_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    serve_t serve = {.r = r, .pool = archive_pool(r), .service = service};
    apr_status_t rv;

    if (mdl_signed_url_file_read(service->secret, token, &serve.link, r->pool) != APR_SUCCESS) {
        return file_forged(r, service);
    }
    if ((rv = file_look(&serve)) != APR_SUCCESS) {
        return mdl_view_failure(r, rv, "file_not_found");
    }
    return file_refuse(&serve, (message_t){HTTP_METHOD_NOT_ALLOWED, "wrong_method"});
}
