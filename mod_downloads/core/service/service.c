#include "core/service/service.h"

#include <errno.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/log.h"

apr_status_t mdl_service_open(mdl_service_t **service, const mdl_settings_t *settings,
                              const char *pid_file, int wake_fd, const char **why, apr_pool_t *p)
{
    mdl_service_t *made = apr_pcalloc(p, sizeof *made);
    mdl_secret_t *secret;
    apr_status_t rv;

    if ((rv = mdl_secret_read(&secret, settings->secret_files, why, p)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_key_cache_create(&made->key_cache, p)) != APR_SUCCESS ||
        (rv = mdl_rate_limit_create(&made->rate_limit, settings, p)) != APR_SUCCESS ||
        (rv = mdl_readiness_create(&made->readiness, p)) != APR_SUCCESS ||
        (rv = mdl_begun_create(&made->begun, p)) != APR_SUCCESS ||
        (rv = mdl_db_share_writer_queue(p)) != APR_SUCCESS) {
        *why = "There is no shared memory for the keys, their rate limits, jobs and the writers' "
               "queue.";
        return rv;
    }
    if ((rv = mdl_fraud_rules_open(&made->fraud, settings, why, p)) != APR_SUCCESS) {
        return rv;
    }
    made->settings = settings;
    made->secret = secret;
    made->pid_file = pid_file;
    made->wake_fd = wake_fd;
    *service = made;
    return APR_SUCCESS;
}

void mdl_service_wake(const mdl_service_t *service, mdl_db_due_t due)
{
    apr_uint64_t what = due.events ? MDL_WAKE_EVENT : 0;

    if (due.at != 0 && due.at <= apr_time_now() + service->settings->poll_interval) {
        what += MDL_WAKE_JOB;
    }
    /* EAGAIN: the counter is full, so a wake-up is pending anyway. */
    if (what != 0 && write(service->wake_fd, &what, sizeof what) < 0 && errno != EAGAIN) {
        mdl_log(MDL_LOG_WARNING, errno, "MDL0120: can't wake the background process");
    }
}
