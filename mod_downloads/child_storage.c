#include "child_storage.h"

#include <http_log.h>

#include "base/http/client.h"
#include "base/log.h"
#include "core/catalog/storage_identity.h"

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

int mdl_child_storage_folder_ready(const mdl_settings_t *settings, mdl_db_t *db, apr_pool_t *p)
{
    const mdl_storage_config_t only_folder = {.folder = settings->storage.folder};
    const char *why;

    return storage != NULL && mdl_storage_check(storage, p) == APR_SUCCESS &&
           (db == NULL || mdl_storage_belongs(db, &only_folder, 0, &why, p) != APR_EMISMATCH);
}

/* Reading the identity needs address, key, region and bucket. */
static int objects_ready(const mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_object_call_t call = {0};
    const char *identity;

    if (settings->storage.objects.url == NULL) {
        return 1;
    }
    return storage != NULL && mdl_storage_objects_identity(mdl_storage_objects(storage), &identity,
                                                           &call, p) == APR_SUCCESS;
}

mdl_places_ready_t mdl_child_storage_places(const mdl_service_t *service, mdl_db_t *db,
                                            apr_pool_t *p)
{
    mdl_readiness_t *readiness = service->readiness;

    if (mdl_readiness_claim_places(readiness)) {
        const mdl_places_ready_t ready = {
            .folder = mdl_child_storage_folder_ready(service->settings, db, p),
            .objects = objects_ready(service->settings, p)};

        mdl_readiness_set_places(readiness, &ready);
    }
    return mdl_readiness_get_places(readiness);
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
