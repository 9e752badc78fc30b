#include "api/upload_bytes.h"

#include <http_log.h>

#include "child_storage.h"
#include "metering/settler.h"

APLOG_USE_MODULE(downloads);

#define SPOOL       "/var/tmp"
#define STORE_AWAY  5 /* seconds until a client should try again */
#define STORE_WRONG 60

apr_status_t mdl_upload_bytes_run(void *request, mdl_db_run_fn *how, mdl_effect_fn *effect,
                                  void *arg)
{
    apr_status_t rv = mdl_request_run(request, how, effect, arg);

    mdl_request_release(request);
    return rv;
}

void mdl_upload_bytes_prepare(mdl_upload_write_t *write, mdl_request_t *request, const char *id)
{
    const mdl_settings_t *settings = request->service->settings;

    *write = (mdl_upload_write_t){
        .id = id,
        .storage = mdl_child_storage(),
        .max_size = settings->upload_max_size,
        .quota = settings->storage_quota,
        .run = mdl_upload_bytes_run,
        .baton = request,
        .object = {.writer = mdl_settler_meter_id(), .spool = SPOOL, .owe = mdl_settler_owe},
        .size = -1,
        .arrived = -1,
        .problem = &request->problem};
}

static int write_beats(const mdl_upload_write_t *write)
{
    return mdl_storage_objects(write->storage) != NULL;
}

apr_status_t mdl_upload_bytes_begin(mdl_upload_write_t *write, mdl_request_t *request)
{
    apr_status_t rv = APR_SUCCESS;

    mdl_settler_watch(write_beats(write));
    if (write_beats(write)) {
        rv = mdl_settler_beat(mdl_upload_bytes_run, request);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_write_begin(write, request->r->pool);
    }
    if (rv != APR_SUCCESS) {
        mdl_settler_unwatch(write_beats(write));
    }
    return rv;
}

apr_status_t mdl_upload_bytes_end(mdl_upload_write_t *write)
{
    apr_status_t rv = mdl_upload_write_end(write);

    mdl_settler_unwatch(write_beats(write));
    return rv;
}

void mdl_upload_bytes_cut(mdl_upload_write_t *write)
{
    mdl_upload_write_cut(write);
    mdl_settler_unwatch(write_beats(write));
}

static apr_status_t bytes_unavailable(mdl_request_t *request, int retry_after)
{
    request->retry_after = retry_after;
    return mdl_problem_set(&request->problem, 503, "service_unavailable",
                           "The service can't reach its storage.");
}

apr_status_t mdl_upload_bytes_failed(const mdl_upload_write_t *write, mdl_request_t *request,
                                     apr_status_t rv)
{
    if (rv == MDL_EPROBLEM && request->problem.status == HTTP_LOCKED) {
        request->retry_after = 1;
    }
    /* The client of the store has logged these two. */
    if (rv == MDL_OBJECT_EAWAY) {
        return bytes_unavailable(request, STORE_AWAY);
    }
    if (rv == MDL_OBJECT_EDENIED) {
        return bytes_unavailable(request, STORE_WRONG);
    }
    if (rv <= 0 || rv >= APR_OS_START_ERROR) {
        return rv;
    }
    if (write->object.why != NULL) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, request->r,
                      "MDL0214: upload %s: can't write to the object store, or to %s first: %s",
                      write->id, SPOOL, write->object.why);
    } else {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, rv, request->r,
                      "MDL0210: upload %s: can't write to %s", write->id,
                      request->service->settings->storage.folder);
    }
    return APR_STATUS_IS_ENOSPC(rv)
               ? mdl_problem_set(&request->problem, 507, "insufficient_storage",
                                 "The service has no room to store this.")
               : rv;
}

MDL_EFFECT(mdl_upload_get, mdl_upload_get_t *)

apr_status_t mdl_upload_bytes_finish(mdl_request_t *request, const char *id, apr_int64_t shop_id)
{
    mdl_upload_get_t get = {
        .id = id, .shop_id = shop_id, .storage = mdl_child_storage(), .problem = &request->problem};
    mdl_upload_write_t write;
    apr_status_t rv;

    if (mdl_storage_objects(get.storage) == NULL) {
        return APR_SUCCESS;
    }
    rv = mdl_upload_bytes_run(request, mdl_db_read, mdl_upload_get_effect, &get);
    if (rv == APR_SUCCESS &&
        mdl_upload_is_unfinished(get.storage, get.upload, get.offset, request->r->pool)) {
        mdl_upload_bytes_prepare(&write, request, id);
        write.offset = get.offset;
        rv = mdl_upload_bytes_begin(&write, request);
        if (rv == APR_SUCCESS) {
            rv = mdl_upload_bytes_end(&write);
        }
        if (rv != APR_SUCCESS && rv != MDL_EPROBLEM) {
            return mdl_upload_bytes_failed(&write, request, rv);
        }
    }
    /* The upload is unknown or not complete, by now perhaps of another write: the effect says so.
     */
    if (rv == MDL_EPROBLEM) {
        mdl_problem_clear(&request->problem);
        return APR_SUCCESS;
    }
    return rv;
}
