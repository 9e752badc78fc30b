#include "child_storage.h"

#include <http_log.h>

#include "base/http/client.h"
#include "base/log.h"

APLOG_USE_MODULE(downloads);

/* Set before a child has threads; nothing in it changes by use. */
static mdl_storage_t *storage;
static const char *folder;

void mdl_child_storage_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    const mdl_storage_config_t *config = &settings->storage;
    apr_status_t rv = config->objects.url != NULL ? mdl_http_global_init(p) : APR_SUCCESS;

    folder = config->folder;
    if (rv == APR_SUCCESS) {
        rv = mdl_storage_open(&storage, config, p);
    }
    if (rv != APR_SUCCESS) {
        storage = NULL;
        mdl_log(MDL_LOG_ERR, rv,
                "MDL0211: the storage %s can't be opened: no file can be uploaded or downloaded",
                config->folder != NULL ? config->folder : config->objects.url);
    }
}

mdl_storage_t *mdl_child_storage(void)
{
    return storage;
}

apr_status_t mdl_child_storage_admit(request_rec *r, apr_int64_t size, mdl_problem_t *problem)
{
    if (storage == NULL || !APR_STATUS_IS_ENOSPC(mdl_storage_room(storage, size > 0 ? size : 0))) {
        return APR_SUCCESS;
    }
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "MDL0212: %s %s is refused: the disk that holds %s has less than "
                  "DownloadsStorageReserve left",
                  r->method, r->uri, folder);
    return mdl_problem_set(problem, 507, "insufficient_storage",
                           "The service has no room to store this.");
}
