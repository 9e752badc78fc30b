#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/object.h"
#include "base/http/object_reader.h"
#include "storage/private.h"

#define PATIENCE apr_time_from_sec(20) /* with a store that does not answer */

apr_status_t mdl_storage_open(mdl_storage_t **storage, const mdl_storage_config_t *config,
                              apr_pool_t *p)
{
    mdl_storage_t *made = apr_pcalloc(p, sizeof *made);
    const char *why;
    apr_status_t rv = mdl_folder_open(made, config, p);

    *storage = NULL;
    if (rv == APR_SUCCESS && config->objects.url != NULL) {
        rv = mdl_object_store_create(&made->objects, &config->objects, &why, p);
    }
    if (rv == APR_SUCCESS) {
        *storage = made;
    }
    return rv;
}

mdl_object_store_t *mdl_storage_objects(const mdl_storage_t *storage)
{
    return storage->objects;
}

const char *mdl_storage_place(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    return blob->object == NULL ? mdl_storage_path(storage, blob->sha256, p)
                                : apr_pstrcat(p, "object ", blob->object, NULL);
}

static apr_status_t object_size(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                apr_int64_t *size, apr_pool_t *p)
{
    mdl_object_call_t call = {.patience = PATIENCE};

    return storage->objects != NULL
               ? mdl_object_head(storage->objects, blob->object, size, &call, p)
               : MDL_OBJECT_EDENIED;
}

apr_status_t mdl_storage_find(const mdl_storage_t *storage, const mdl_blob_t *blob, apr_pool_t *p)
{
    apr_int64_t size;

    return blob->object == NULL ? mdl_folder_find(storage, blob, p)
                                : object_size(storage, blob, &size, p);
}

apr_status_t mdl_storage_size(const mdl_storage_t *storage, const mdl_blob_t *blob,
                              apr_int64_t *size, apr_pool_t *p)
{
    return blob->object == NULL ? mdl_folder_size(storage, blob, size, p)
                                : object_size(storage, blob, size, p);
}

static apr_status_t object_digest(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                  const char **digest, apr_pool_t *p)
{
    mdl_object_call_t call = {.patience = PATIENCE};
    unsigned char bytes[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    mdl_object_reader_t *reader;
    apr_size_t length = 1;
    const char *data;
    apr_status_t rv;

    if (storage->objects == NULL) {
        return MDL_OBJECT_EDENIED;
    }
    rv = mdl_object_reader_open(&reader, storage->objects, blob->object, blob->size, 0, blob->size,
                                &call, p);
    while (rv == APR_SUCCESS && length > 0) {
        rv = mdl_object_reader_take(reader, &data, &length);
        if (rv == APR_SUCCESS) {
            mdl_sha256_update(sha, data, length);
        }
    }
    mdl_sha256_end(sha, bytes);
    *digest = mdl_hex(bytes, sizeof bytes, p);
    return rv;
}

apr_status_t mdl_storage_digest(const mdl_storage_t *storage, const mdl_blob_t *blob,
                                const char **digest, apr_pool_t *p)
{
    return blob->object == NULL ? mdl_folder_digest(storage, blob, digest, p)
                                : object_digest(storage, blob, digest, p);
}
