/*
 * The job asset_import (contract, section 9): stores a remote file as a blob and makes its asset
 * ready.  Received bytes survive restarts of httpd, so that a large import resumes.
 */
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/fetch.h"
#include "base/http/media_type.h"
#include "base/log.h"
#include "base/text/utf8.h"
#include "core/job_source.h"
#include "core/metrics.h"
#include "core/catalog/asset.h"
#include "core/catalog/stray_object.h"
#include "storage/incoming.h"
#include "worker/handler.h"
#include "worker/runner.h"

#define SMALL_LIMIT    (1024 * 1024) /* bytes; larger files move to the bulk lane */
#define PARTIAL_IN_USE apr_time_from_msec(500)
#define PARALLEL       2                     /* parts of a large file that are sent at a time */
#define PATIENCE       apr_time_from_sec(60) /* with an object store; that of small files is less, */
#define SMALL_PATIENCE apr_time_from_sec(5)  /* for other files wait meanwhile */
#define STORE_AWAY     apr_time_from_sec(10) /* until a job tries again */
#define STORE_DENIED   apr_time_from_sec(60)
#define MAX_WAIT       apr_time_from_sec(86400) /* the most by Retry-After */

typedef struct {
    const char *url;
    mdl_incoming_t *incoming;
    mdl_http_fetch_t *fetch;
    mdl_task_origin_t origin;
    mdl_blob_t blob;
    apr_status_t stored; /* the last result of writing into the storage */
    int too_large_for_lane;
    apr_int64_t room; /* bytes left of the shop's quota; -1: unlimited */
    int too_large_for_quota;
    int until_close; /* a truncated body looks complete */
} import_t;

/* What has to be the same for the bytes to be there still.  A partial file's bytes may be only in
   the page cache, which survives a kill but not a power cut. */
static const char *import_epoch(const mdl_task_t *task)
{
    return mdl_storage_objects(task->storage) != NULL ? "object" : task->boot_id;
}

/* The entity tag from the validator "<epoch> <entity tag>"; NULL if the epoch is another. */
static const char *etag_of(const mdl_task_t *task)
{
    const char *validator = task->job->validator, *epoch = import_epoch(task);
    apr_size_t length = strlen(epoch);

    if (validator == NULL || strncmp(validator, epoch, length) != 0 || validator[length] != ' ') {
        return NULL;
    }
    return validator + length + 1;
}

/* Whether a body of size bytes (-1: unknown) is too large for the lane or the quota. */
static int is_too_large(mdl_task_t *task, apr_int64_t size)
{
    import_t *import = task->data;

    import->too_large_for_quota = import->room >= 0 && size > import->room;
    import->too_large_for_lane = task->job->lane == MDL_LANE_SMALL && size > SMALL_LIMIT;
    return import->too_large_for_quota || import->too_large_for_lane;
}

/* Whether a truncated body could not be detected. */
static int import_is_unproven(const mdl_task_t *task)
{
    return ((const import_t *)task->data)->until_close && task->job->expected_sha256 == NULL;
}

/* For the next renewal of the lease. */
static void import_note_state(mdl_task_t *task)
{
    const import_t *import = task->data;

    atomic_store(&task->written, mdl_incoming_state(import->incoming, task->pool));
}

static void import_keep(mdl_task_t *task)
{
    const import_t *import = task->data;

    atomic_store(&task->written, mdl_incoming_keep(import->incoming, task->pool));
}

static apr_status_t import_on_head(void *baton, const mdl_http_head_t *head)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    if (head->offset == 0 && mdl_incoming_size(import->incoming) > 0) {
        import->stored = mdl_incoming_restart(import->incoming);
        import_note_state(task);
    }
    if (head->content_type != NULL && mdl_media_type_valid(head->content_type)) {
        import->origin.content_type = apr_pstrdup(task->pool, head->content_type);
    }
    if (head->filename != NULL) {
        const char *filename = mdl_utf8_trimmed(head->filename, task->pool);

        import->origin.filename = mdl_asset_filename_valid(filename) ? filename : NULL;
    }
    import->until_close = head->until_close;
    atomic_store(&task->total, head->total);
    atomic_store(&task->mark->received, head->offset);
    atomic_store(&task->validator, head->etag != NULL ? apr_pstrcat(task->pool, import_epoch(task),
                                                                    " ", head->etag, NULL)
                                                      : NULL);
    if (import->stored == APR_SUCCESS) {
        import->stored = mdl_incoming_expect(import->incoming, head->total);
    }
    if (import_is_unproven(task)) {
        return APR_EGENERAL;
    }
    return is_too_large(task, head->total) ? APR_EGENERAL : import->stored;
}

static apr_status_t import_on_body(void *baton, const char *data, apr_size_t length)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    apr_int64_t lasting = mdl_incoming_lasting(import->incoming);

    import->stored = mdl_incoming_append(import->incoming, data, length);
    if (mdl_incoming_lasting(import->incoming) != lasting) {
        import_note_state(task);
    }
    if (import->stored != APR_SUCCESS) {
        return import->stored;
    }
    atomic_fetch_add(&task->mark->received, (long long)length);
    mdl_metric_add(&mdl_metrics->imported_bytes, (long long)length);
    return is_too_large(task, atomic_load(&task->mark->received)) ? APR_EGENERAL : APR_SUCCESS;
}

/* Gives the job back until the store works again, which is no fault of the job. */
static void import_store_failed(mdl_task_t *task, apr_status_t rv, const char *why)
{
    if (rv == MDL_OBJECT_EBROKEN) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0605: import %s begins anew, for the object store lost bytes of "
                "it: %s",
                mdl_job_name(task->job, task->pool), why);
        atomic_store(&task->written, NULL);
        atomic_store(&task->validator, NULL);
        mdl_runner_done_with(task, MDL_TASK_RETRY, "storage_unavailable",
                             "The service's storage lost bytes of the file.");
        return;
    }
    if (!APR_STATUS_IS_EINTR(rv)) {
        task->job->due_at = apr_time_now() + (rv == MDL_OBJECT_EAWAY ? STORE_AWAY : STORE_DENIED);
    }
    mdl_runner_done_with(task, MDL_TASK_RELEASED, "storage_unavailable",
                         "The service can't reach its storage; it tries again by itself.");
}

static void import_store_refused(mdl_task_t *task, apr_status_t rv, const char *why)
{
    if (rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED || rv == MDL_OBJECT_EBROKEN ||
        APR_STATUS_IS_EINTR(rv)) {
        import_store_failed(task, rv, why);
        return;
    }
    mdl_log(MDL_LOG_ERR, rv, "MDL0301: import %s: can't write to %s",
            mdl_job_name(task->job, task->pool),
            why != NULL ? "the object store" : task->service->settings->storage.folder);
    mdl_runner_done_with(task, MDL_TASK_RETRY, "insufficient_storage",
                         "The service had no room to store the file.");
}

/* The same for what is still open. */
static void import_storage_failed(mdl_task_t *task, apr_status_t rv)
{
    const import_t *import = task->data;
    const char *why = apr_pstrdup(task->pool, mdl_incoming_why(import->incoming));

    if (mdl_incoming_is_object(import->incoming)) {
        import_keep(task);
    } else {
        mdl_incoming_discard(import->incoming, task->pool);
        atomic_store(&task->validator, NULL);
    }
    import_store_refused(task, rv, why);
}

/* Whether the file is complete and has the expected checksum; if not, ends the task. */
static int import_check(mdl_task_t *task)
{
    import_t *import = task->data;
    const char *expected = task->job->expected_sha256;
    apr_status_t rv = mdl_incoming_digest(import->incoming, &import->blob, task->pool);

    if (rv != APR_SUCCESS) {
        import_storage_failed(task, rv);
    } else if (expected != NULL && strcmp(expected, import->blob.sha256) != 0) {
        mdl_incoming_discard(import->incoming, task->pool);
        atomic_store(&task->written, NULL);
        atomic_store(&task->validator, NULL);
        mdl_runner_done_with(
            task, import->until_close ? MDL_TASK_RETRY : MDL_TASK_FAILED, "checksum_mismatch",
            apr_psprintf(task->pool,
                         "What %s sent has the SHA-256 %s, which is not the one that was given.",
                         import->origin.host, import->blob.sha256));
        rv = APR_EGENERAL;
    }
    return rv == APR_SUCCESS;
}

static void import_stored(mdl_task_t *task, const mdl_incoming_store_t *store)
{
    import_t *import = task->data;

    if (store->rv != APR_SUCCESS) {
        atomic_store(&task->written, apr_pstrdup(task->pool, store->state));
        import_store_refused(task, store->rv, apr_pstrdup(task->pool, store->why));
        return;
    }
    task->stored = &import->blob;
    atomic_store(&task->total, import->blob.size);
    mdl_runner_done(task, MDL_TASK_SUCCEEDED);
}

static void import_finish(const apr_array_header_t *tasks, apr_pool_t *p)
{
    mdl_incoming_store_t *stores = apr_palloc(p, (apr_size_t)tasks->nelts * sizeof *stores);

    for (int i = 0; i < tasks->nelts; i++) {
        import_t *import = APR_ARRAY_IDX(tasks, i, mdl_task_t *)->data;

        stores[i] = (mdl_incoming_store_t){.incoming = import->incoming, .blob = &import->blob};
    }
    mdl_incoming_store_all(stores, tasks->nelts, p);
    for (int i = 0; i < tasks->nelts; i++) {
        import_stored(APR_ARRAY_IDX(tasks, i, mdl_task_t *), &stores[i]);
    }
}

#define LATER "If it works again, retry the job."

/* The job's outcome for each result of the fetch, and advice for the shop. */
static const struct {
    mdl_outcome_t outcome;
    const char *code;
    const char *advice;
} meanings[] = {
    [MDL_HTTP_HOST_NOT_ALLOWED] = {MDL_TASK_FAILED, "source_host_not_allowed",
                                   "Ask the operator of this service to allow that host, port and "
                                   "scheme."},
    [MDL_HTTP_URL_INVALID] = {MDL_TASK_FAILED, "source_host_not_allowed",
                              "Import from a URL with a host's name, without user or password."},
    [MDL_HTTP_ADDRESS_FORBIDDEN] = {MDL_TASK_FAILED, "source_address_forbidden",
                                    "Import from a public host, or ask the operator of this "
                                    "service to allow its network."},
    [MDL_HTTP_NOT_FOUND] = {MDL_TASK_FAILED, "source_not_found",
                            "Check source_url: there is no such file."},
    [MDL_HTTP_REFUSED] = {MDL_TASK_FAILED, "source_refused",
                          "Check that source_url opens without signing in and has not expired, and "
                          "that it gives the file as it is."},
    [MDL_HTTP_REDIRECTS] = {MDL_TASK_FAILED, "source_redirects",
                            "Import from the address that they lead to."},
    [MDL_HTTP_NAME_UNKNOWN] = {MDL_TASK_RETRY, "source_name_unknown",
                               "Check the host's name in source_url."},
    [MDL_HTTP_CERTIFICATE] = {MDL_TASK_RETRY, "source_certificate_invalid",
                              "Its owner has to renew or correct that; then retry the job."},
    [MDL_HTTP_UNAVAILABLE] = {MDL_TASK_RETRY, "source_unavailable", LATER},
    [MDL_HTTP_TIMEOUT] = {MDL_TASK_RETRY, "source_timeout", LATER},
    [MDL_HTTP_TOO_LARGE] = {MDL_TASK_FAILED, "source_too_large",
                            "The file is larger than this service takes."},
};

static void import_failed(mdl_task_t *task, const mdl_http_end_t *end)
{
    const char *code = meanings[end->result].code;

    mdl_log(MDL_LOG_NOTICE, 0, "MDL0302: import %s, attempt %d: %s: %s",
            mdl_job_name(task->job, task->pool), task->job->attempts, code, end->detail);
    if (end->retry_after_s > 0) {
        task->least_wait = apr_time_from_sec(end->retry_after_s);
    }
    if (task->least_wait > MAX_WAIT) {
        task->least_wait = MAX_WAIT;
    }
    import_keep(task);
    mdl_runner_done_with(
        task, meanings[end->result].outcome, code,
        apr_pstrcat(task->pool, end->reason, " ", meanings[end->result].advice, NULL));
}

/* Ends the task after one of the callbacks above stopped the fetch. */
static void import_stopped(mdl_task_t *task)
{
    import_t *import = task->data;

    if (import->too_large_for_quota) {
        import_keep(task);
        mdl_runner_done_with(task, MDL_TASK_FAILED, MDL_QUOTA_CODE, MDL_QUOTA_MESSAGE);
    } else if (import_is_unproven(task)) {
        import_keep(task);
        mdl_runner_done_with(
            task, MDL_TASK_FAILED, "source_refused",
            apr_pstrcat(task->pool, import->origin.host,
                        " does not say how long the file is, so that one which is cut off would "
                        "look whole. Give its sha256 to import it all the same.",
                        NULL));
    } else if (import->too_large_for_lane) {
        import_keep(task);
        task->job->lane = MDL_LANE_BULK;
        mdl_runner_done(task, MDL_TASK_RELEASED);
    } else {
        import_storage_failed(task, import->stored);
    }
}

static void import_on_done(void *baton, const mdl_http_end_t *end)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    import->fetch = NULL;
    import->origin.host = apr_pstrdup(task->pool, end->host);
    if (end->result == MDL_HTTP_STOPPED) {
        import_stopped(task);
    } else if (end->result != MDL_HTTP_OK) {
        import_failed(task, end);
    } else if (import_check(task)) {
        mdl_runner_arrived(task);
    }
}

static int import_is_stopping(void *baton)
{
    mdl_task_t *task = baton;

    return mdl_runner_stopping(task->runner) || atomic_load(&task->lost) ||
           atomic_load(&task->blocked);
}

/* The file is locked while the former worker is ending.  If that worker hangs and has not written
   for the time of a lease, it keeps its file, and the import starts again in a new file of the same
   name.  The same if the file's time is in the future: the clock that set it is unknown, and the
   lease is ours. */
static apr_status_t import_open(mdl_task_t *task)
{
    import_t *import = task->data;
    int is_small = task->job->lane == MDL_LANE_SMALL;
    const mdl_incoming_of_t of = {.id = task->job->id,
                                  .key = task->job->object,
                                  .state = task->job->written,
                                  .parallel = is_small ? 1 : PARALLEL,
                                  .patience = is_small ? SMALL_PATIENCE : PATIENCE,
                                  .stopped = import_is_stopping,
                                  .baton = task};
    apr_time_t now = apr_time_now(), written_at;
    apr_status_t rv = mdl_incoming_open(&import->incoming, task->storage, &of, task->pool);

    if (!APR_STATUS_IS_EAGAIN(rv) ||
        mdl_partial_written_at(task->storage, task->job->id, &written_at, task->pool) !=
            APR_SUCCESS ||
        (written_at <= now && now - written_at < task->service->settings->lease_time)) {
        return rv;
    }
    mdl_log(MDL_LOG_WARNING, 0,
            "MDL0303: import %s begins anew: a worker that has lost it hangs and holds its file",
            mdl_job_name(task->job, task->pool));
    mdl_partial_remove(task->storage, task->job->id, task->pool);
    return mdl_incoming_open(&import->incoming, task->storage, &of, task->pool);
}

static apr_status_t job_import_prepare(mdl_db_t *db, mdl_task_t *task)
{
    import_t *import = apr_pcalloc(task->pool, sizeof *import);

    task->data = import;
    if (mdl_source_open(task->service->secret, task->job->id, task->job->source_url, &import->url,
                        task->pool) != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0307: the query of the URL that import %s reads can't be opened: it was sealed "
                "with another secret than those of DownloadsSecretFile; the shop has to import the "
                "file again",
                task->job->id);
        task->job->error_code = "source_unreadable";
        task->job->error_message =
            "The query of the source's URL can't be opened with the server's "
            "secret: import the file again.";
        task->outcome = MDL_TASK_FAILED;
        return APR_EOF;
    }
    return mdl_asset_room(db, task->job->asset_id, task->service->settings->storage_quota,
                          &import->room, task->pool);
}

static void import_start(mdl_task_t *task)
{
    static const mdl_http_callbacks_t callbacks = {import_on_head, import_on_body, import_on_done};
    import_t *import = task->data;
    const char *etag = etag_of(task);
    mdl_http_part_t part;
    apr_status_t rv;

    atomic_store(&task->validator, task->job->validator);
    atomic_store(&task->written, task->job->written);
    rv = import_open(task);
    if (APR_STATUS_IS_EINTR(rv)) {
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (APR_STATUS_IS_EAGAIN(rv)) {
        task->job->due_at = apr_time_now() + PARTIAL_IN_USE;
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (rv == APR_SUCCESS && etag == NULL && mdl_incoming_size(import->incoming) > 0) {
        rv = mdl_incoming_restart(import->incoming);
        import_note_state(task);
    }
    if (rv != APR_SUCCESS) {
        import_store_refused(task, rv,
                             mdl_storage_objects(task->storage) != NULL ? "its state can't be read"
                                                                        : NULL);
        return;
    }
    atomic_store(&task->mark->received, mdl_incoming_size(import->incoming));
    part = (mdl_http_part_t){.offset = mdl_incoming_size(import->incoming),
                             .total = task->job->bytes_total,
                             .etag = etag};
    import->fetch = mdl_http_fetch(mdl_runner_http(task->runner), import->url, &part, &callbacks,
                                   task);
}

static void import_stop(mdl_task_t *task)
{
    import_t *import = task->data;

    mdl_http_fetch_cancel(import->fetch);
    import_keep(task);
}

static apr_status_t import_settle(mdl_db_t *db, mdl_task_t *task, apr_pool_t *p)
{
    const import_t *import = task->data;

    switch (task->outcome) {
    case MDL_TASK_SUCCEEDED:
        return mdl_task_asset_ready(db, task, &import->origin, p);
    case MDL_TASK_FAILED:
        mdl_partial_remove(task->storage, task->job->id, p);
        return mdl_task_asset_failed(db, task, p);
    default:
        return APR_SUCCESS;
    }
}

static apr_status_t import_clean(mdl_storage_t *storage, const mdl_job_t *job, apr_pool_t *p)
{
    return mdl_partial_remove(storage, job->id, p);
}

/* The key of a new object is known to the database before its first byte. */
static apr_status_t import_claimed(mdl_db_t *db, const mdl_storage_t *storage, mdl_job_t *job,
                                   apr_pool_t *p)
{
    if (mdl_storage_objects(storage) == NULL) {
        return APR_SUCCESS;
    }
    if (job->written == NULL) {
        return mdl_stray_begin(db, job->id, &job->object, p);
    }
    job->object = mdl_object_writer_unused_key(job->written, p);
    if (job->object == NULL) {
        return APR_SUCCESS;
    }
    job->written = NULL; /* from now on it may be used */
    return mdl_job_renew(db, job, p);
}

const mdl_job_handler_t mdl_handler_import = {
    .claimed = import_claimed,
    .prepare = job_import_prepare,
    .start = import_start,
    .finish = import_finish,
    .stop = import_stop,
    .settle = import_settle,
    .clean = import_clean,
};
