#include "child_storage.h"

#include "base/http/client.h"
#include "base/log.h"

/* Set before a child has threads; nothing in it changes by use. */
static mdl_storage_t *storage;

void mdl_child_storage_init(apr_pool_t *p, const mdl_settings_t *settings)
{
    apr_status_t rv = settings->storage.objects.url != NULL ? mdl_http_global_init(p) : APR_SUCCESS;

    if (rv == APR_SUCCESS) {
        rv = mdl_storage_open(&storage, &settings->storage, p);
    }
    if (rv != APR_SUCCESS) {
        storage = NULL;
        mdl_log(MDL_LOG_ERR, rv,
                "MDL0211: the storage folder %s can't be opened: no file can be uploaded or "
                "downloaded",
                settings->storage.folder);
    }
}

mdl_storage_t *mdl_child_storage(void)
{
    return storage;
}
