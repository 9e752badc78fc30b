/*
 * The job asset_import (contract, section 9): a remote file becomes a blob and makes its asset
 * ready.  What has arrived survives restarts of httpd, so that no large import begins anew by them.
 */
#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/fetch.h"
#include "base/http/media_type.h"
#include "base/log.h"
#include "core/job_source.h"
#include "core/catalog/asset.h"
#include "worker/handler.h"
#include "worker/runner.h"

#define SMALL_LIMIT    (1024 * 1024) /* bytes; what is larger moves to the bulk lane */
#define PARTIAL_IN_USE apr_time_from_msec(500)

typedef struct {
    const char *url;
    mdl_partial_t *partial;
    mdl_http_fetch_t *fetch;
    const char *content_type;
    mdl_blob_t blob;
    apr_status_t disk; /* the last result of writing to the partial file */
    int too_large_for_lane;
    apr_int64_t room; /* bytes that the shop's quota takes; -1: any */
    int too_large_for_quota;
} import_t;

/* Bytes of a partial file are in the page cache, safe from a kill but not from a power cut: they
   count only under the kernel that took them.  Hence "<boot id> <entity tag>". */
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

/* Whether a body of so many bytes (-1: not known) is too large for the lane or for the quota. */
static int is_too_large(mdl_task_t *task, apr_int64_t size)
{
    import_t *import = task->data;

    import->too_large_for_quota = import->room >= 0 && size > import->room;
    import->too_large_for_lane = task->job->lane == MDL_LANE_SMALL && size > SMALL_LIMIT;
    return import->too_large_for_quota || import->too_large_for_lane;
}

static apr_status_t import_on_head(void *baton, const mdl_http_head_t *head)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    if (head->offset == 0 && mdl_partial_size(import->partial) > 0) {
        import->disk = mdl_partial_truncate(import->partial, 0);
    }
    if (head->content_type != NULL && mdl_media_type_valid(head->content_type)) {
        import->content_type = apr_pstrdup(task->pool, head->content_type);
    }
    atomic_store(&task->total, head->total);
    atomic_store(&task->received, head->offset);
    atomic_store(&task->validator,
                 head->etag != NULL ? apr_pstrcat(task->pool, task->boot_id, " ", head->etag, NULL)
                                    : NULL);
    if (import->disk == APR_SUCCESS && head->total > head->offset) {
        import->disk = mdl_storage_room(task->storage, head->total - head->offset);
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
    atomic_fetch_add(&task->received, (long long)length);
    return is_too_large(task, atomic_load(&task->received)) ? APR_EGENERAL : APR_SUCCESS;
}

static void import_disk_failed(mdl_task_t *task, apr_status_t rv)
{
    mdl_log(MDL_LOG_ERR, rv, "MDL0301: import %s: can't write to %s", task->job->id,
            task->service->settings->storage);
    mdl_runner_done_with(task, MDL_TASK_RETRY, "insufficient_storage",
                         "The service had no room to store the file.");
}

/* Whether the bytes are all there and those that were wanted; else the task has ended. */
static int import_check(mdl_task_t *task)
{
    import_t *import = task->data;
    const char *expected = task->job->expected_sha256;
    apr_status_t rv = mdl_partial_digest(import->partial, &import->blob, task->pool);

    if (rv != APR_SUCCESS) {
        mdl_partial_discard(import->partial);
        import_disk_failed(task, rv);
    } else if (expected != NULL && strcmp(expected, import->blob.sha256) != 0) {
        mdl_partial_keep(import->partial);
        mdl_runner_done_with(task, MDL_TASK_FAILED, "checksum_mismatch",
                             "The file's SHA-256 is not the one that was given.");
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

/* What each result of the fetch means for the job. */
static const struct {
    mdl_outcome_t outcome;
    const char *code;
    const char *message;
} meanings[] = {
    [MDL_HTTP_HOST_NOT_ALLOWED] = {MDL_TASK_FAILED, "source_host_not_allowed",
                                   "The source leads to a host that is not on the allowlist."},
    [MDL_HTTP_URL_INVALID] = {MDL_TASK_FAILED, "source_host_not_allowed",
                              "The source leads to a URL that is not allowed."},
    [MDL_HTTP_ADDRESS_FORBIDDEN] = {MDL_TASK_FAILED, "source_address_forbidden",
                                    "The source's name leads to an address that is not allowed."},
    [MDL_HTTP_NOT_FOUND] = {MDL_TASK_FAILED, "source_not_found", "The source has no such file."},
    [MDL_HTTP_REFUSED] = {MDL_TASK_FAILED, "source_refused",
                          "The source refused, or answered in a way that can't be imported."},
    [MDL_HTTP_UNAVAILABLE] = {MDL_TASK_RETRY, "source_unavailable",
                              "The source can't be reached, or broke off."},
    [MDL_HTTP_TIMEOUT] = {MDL_TASK_RETRY, "source_timeout", "The source took too long."},
    [MDL_HTTP_TOO_LARGE] = {MDL_TASK_FAILED, "source_too_large",
                            "The file is larger than this service takes."},
};

static void import_on_done(void *baton, mdl_http_result_t result, const char *detail)
{
    mdl_task_t *task = baton;
    import_t *import = task->data;

    import->fetch = NULL;
    if (result == MDL_HTTP_OK) {
        if (import_check(task)) {
            mdl_runner_arrived(task);
        }
        return;
    }
    if (result == MDL_HTTP_STOPPED && import->too_large_for_quota) {
        mdl_partial_keep(import->partial);
        mdl_runner_done_with(task, MDL_TASK_FAILED, MDL_QUOTA_CODE, MDL_QUOTA_MESSAGE);
        return;
    }
    if (result == MDL_HTTP_STOPPED && import->too_large_for_lane) {
        mdl_partial_keep(import->partial);
        task->job->lane = MDL_LANE_BULK;
        mdl_runner_done(task, MDL_TASK_RELEASED);
        return;
    }
    if (result == MDL_HTTP_STOPPED) {
        mdl_partial_discard(import->partial);
        atomic_store(&task->validator, NULL);
        import_disk_failed(task, import->disk);
        return;
    }
    mdl_log(MDL_LOG_NOTICE, 0, "MDL0302: import %s, attempt %d: %s (%s)", task->job->id,
            task->job->attempts, meanings[result].code, detail);
    mdl_partial_keep(import->partial);
    mdl_runner_done_with(task, meanings[result].outcome, meanings[result].code,
                         meanings[result].message);
}

static int import_is_stopping(void *baton)
{
    mdl_task_t *task = baton;

    return mdl_runner_stopping(task->runner) || atomic_load(&task->lost);
}

/* The file is locked while the worker before us is about to end.  If that one hangs instead, so
   that it has not written for as long as a lease lasts, it keeps its file, and the import begins
   anew in another of the same name.  So it does when the file is of a time that has not come: by
   which clock nobody knows, and the lease is ours. */
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
            task->job->id);
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
    atomic_store(&task->received, mdl_partial_size(import->partial));
    import->fetch = mdl_http_fetch(mdl_runner_http(task->runner), import->url,
                                   mdl_partial_size(import->partial), etag, &callbacks, task);
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
        return mdl_task_asset_ready(db, task, import->content_type, p);
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
