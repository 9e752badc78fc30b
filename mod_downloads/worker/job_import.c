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
#include "core/catalog/asset.h"
#include "worker/handler.h"
#include "worker/runner.h"

#define SMALL_LIMIT    (1024 * 1024) /* bytes; larger files move to the bulk lane */
#define PARTIAL_IN_USE apr_time_from_msec(500)
#define MAX_WAIT       apr_time_from_sec(86400) /* the most by Retry-After */

typedef struct {
    const char *url;
    mdl_partial_t *partial;
    mdl_http_fetch_t *fetch;
    mdl_task_origin_t origin;
    mdl_blob_t blob;
    apr_status_t disk; /* the last result of writing to the partial file */
    int too_large_for_lane;
    apr_int64_t room; /* bytes left of the shop's quota; -1: unlimited */
    int too_large_for_quota;
    int until_close; /* a truncated body looks complete */
} import_t;

/* The entity tag from the validator "<boot id> <entity tag>"; NULL after a reboot.  A partial
   file's bytes may be only in the page cache, which survives a kill but not a power cut. */
static const char *etag_of(const mdl_task_t *task)
{
    const char *validator = task->job->validator;
    apr_size_t length = strlen(task->boot_id);

    if (validator == NULL || strncmp(validator, task->boot_id, length) != 0 ||
        validator[length] != ' ') {
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

static apr_status_t import_on_head(void *baton, const mdl_http_head_t *head)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    if (head->offset == 0 && mdl_partial_size(import->partial) > 0) {
        import->disk = mdl_partial_truncate(import->partial, 0);
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
    atomic_store(&task->validator,
                 head->etag != NULL ? apr_pstrcat(task->pool, task->boot_id, " ", head->etag, NULL)
                                    : NULL);
    if (import->disk == APR_SUCCESS && head->total > head->offset) {
        import->disk = mdl_storage_room(task->storage, head->total - head->offset);
    }
    if (import_is_unproven(task)) {
        return APR_EGENERAL;
    }
    return is_too_large(task, head->total) ? APR_EGENERAL : import->disk;
}

static apr_status_t import_on_body(void *baton, const char *data, apr_size_t length)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    import->disk = mdl_partial_write(import->partial, data, length);
    if (import->disk != APR_SUCCESS) {
        return import->disk;
    }
    atomic_fetch_add(&task->mark->received, (long long)length);
    return is_too_large(task, atomic_load(&task->mark->received)) ? APR_EGENERAL : APR_SUCCESS;
}

static void import_disk_failed(mdl_task_t *task, apr_status_t rv)
{
    mdl_log(MDL_LOG_ERR, rv, "MDL0301: import %s: can't write to %s",
            mdl_job_name(task->job, task->pool), task->service->settings->storage.folder);
    mdl_runner_done_with(task, MDL_TASK_RETRY, "insufficient_storage",
                         "The service had no room to store the file.");
}

/* Whether the file is complete and has the expected checksum; if not, ends the task. */
static int import_check(mdl_task_t *task)
{
    import_t *import = task->data;
    const char *expected = task->job->expected_sha256;
    apr_status_t rv = mdl_partial_digest(import->partial, &import->blob, task->pool);

    if (rv != APR_SUCCESS) {
        mdl_partial_discard(import->partial);
        import_disk_failed(task, rv);
    } else if (expected != NULL && strcmp(expected, import->blob.sha256) != 0) {
        mdl_partial_discard(import->partial);
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

static void import_committed(mdl_task_t *task, apr_status_t rv)
{
    import_t *import = task->data;

    if (rv != APR_SUCCESS) {
        import_disk_failed(task, rv);
        return;
    }
    task->stored = &import->blob;
    atomic_store(&task->total, import->blob.size);
    mdl_runner_done(task, MDL_TASK_SUCCEEDED);
}

static void import_finish(const apr_array_header_t *tasks, apr_pool_t *p)
{
    mdl_partial_commit_t *commits = apr_palloc(p, (apr_size_t)tasks->nelts * sizeof *commits);

    for (int i = 0; i < tasks->nelts; i++) {
        import_t *import = APR_ARRAY_IDX(tasks, i, mdl_task_t *)->data;

        commits[i] = (mdl_partial_commit_t){.partial = import->partial, .blob = &import->blob};
    }
    mdl_partial_commit_all(commits, tasks->nelts);
    for (int i = 0; i < tasks->nelts; i++) {
        import_committed(APR_ARRAY_IDX(tasks, i, mdl_task_t *), commits[i].rv);
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
    import_t *import = task->data;
    const char *code = meanings[end->result].code;

    mdl_log(MDL_LOG_NOTICE, 0, "MDL0302: import %s, attempt %d: %s: %s",
            mdl_job_name(task->job, task->pool), task->job->attempts, code, end->detail);
    if (end->retry_after_s > 0) {
        task->least_wait = apr_time_from_sec(end->retry_after_s);
    }
    if (task->least_wait > MAX_WAIT) {
        task->least_wait = MAX_WAIT;
    }
    mdl_partial_keep(import->partial);
    mdl_runner_done_with(
        task, meanings[end->result].outcome, code,
        apr_pstrcat(task->pool, end->reason, " ", meanings[end->result].advice, NULL));
}

/* Ends the task after one of the callbacks above stopped the fetch. */
static void import_stopped(mdl_task_t *task)
{
    import_t *import = task->data;

    if (import->too_large_for_quota) {
        mdl_partial_keep(import->partial);
        mdl_runner_done_with(task, MDL_TASK_FAILED, MDL_QUOTA_CODE, MDL_QUOTA_MESSAGE);
    } else if (import_is_unproven(task)) {
        mdl_partial_keep(import->partial);
        mdl_runner_done_with(
            task, MDL_TASK_FAILED, "source_refused",
            apr_pstrcat(task->pool, import->origin.host,
                        " does not say how long the file is, so that one which is cut off would "
                        "look whole. Give its sha256 to import it all the same.",
                        NULL));
    } else if (import->too_large_for_lane) {
        mdl_partial_keep(import->partial);
        task->job->lane = MDL_LANE_BULK;
        mdl_runner_done(task, MDL_TASK_RELEASED);
    } else {
        mdl_partial_discard(import->partial);
        atomic_store(&task->validator, NULL);
        import_disk_failed(task, import->disk);
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

    return mdl_runner_stopping(task->runner) || atomic_load(&task->lost);
}

/* The file is locked while the former worker is ending.  If that worker hangs and has not written
   for the time of a lease, it keeps its file, and the import starts again in a new file of the same
   name.  The same if the file's time is in the future: the clock that set it is unknown, and the
   lease is ours. */
static apr_status_t import_open_partial(mdl_task_t *task, mdl_partial_t **partial)
{
    apr_time_t now = apr_time_now(), written_at;
    apr_status_t rv = mdl_partial_open(partial, task->storage, task->job->id, import_is_stopping,
                                       task, task->pool);

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
    return mdl_partial_open(partial, task->storage, task->job->id, import_is_stopping, task,
                            task->pool);
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
    rv = import_open_partial(task, &import->partial);
    if (APR_STATUS_IS_EINTR(rv)) {
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (APR_STATUS_IS_EAGAIN(rv)) {
        task->job->due_at = apr_time_now() + PARTIAL_IN_USE;
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (rv == APR_SUCCESS && etag == NULL && mdl_partial_size(import->partial) > 0) {
        rv = mdl_partial_truncate(import->partial, 0);
    }
    if (rv != APR_SUCCESS) {
        import_disk_failed(task, rv);
        return;
    }
    atomic_store(&task->mark->received, mdl_partial_size(import->partial));
    part = (mdl_http_part_t){
        .offset = mdl_partial_size(import->partial), .total = task->job->bytes_total, .etag = etag};
    import->fetch = mdl_http_fetch(mdl_runner_http(task->runner), import->url, &part, &callbacks,
                                   task);
}

static void import_stop(mdl_task_t *task)
{
    import_t *import = task->data;

    mdl_http_fetch_cancel(import->fetch);
    mdl_partial_keep(import->partial);
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

const mdl_job_handler_t mdl_handler_import = {
    .prepare = job_import_prepare,
    .start = import_start,
    .finish = import_finish,
    .stop = import_stop,
    .settle = import_settle,
    .clean = import_clean,
};
