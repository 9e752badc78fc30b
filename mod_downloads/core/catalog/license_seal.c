#include "core/catalog/license_seal.h"

#include <string.h>

#include <apr_strings.h>

#include "base/log.h"
#include "base/seal.h"
#include "core/shop/data_key.h"

#define PURPOSE "license-key"

const char *mdl_license_key_seal(const mdl_secret_t *data_key, apr_int64_t tag_id, const char *key,
                                 apr_pool_t *p)
{
    return mdl_seal_alike(data_key, PURPOSE, apr_psprintf(p, "%" APR_INT64_T_FMT, tag_id), key,
                          strlen(key), p);
}

apr_size_t mdl_license_key_size(const mdl_license_key_t *key)
{
    return mdl_sealed_size(key->text);
}

/* Opens *data_key with the first key. */
static apr_status_t license_key_open(const mdl_secret_t *secret, mdl_secret_t **data_key,
                                     const mdl_license_key_t *key, const char **text, apr_pool_t *p)
{
    const char *owner;
    apr_size_t length;
    apr_status_t rv;

    if (*data_key == NULL &&
        (rv = mdl_data_key_open(secret, key->data_key, data_key, p)) != APR_SUCCESS) {
        return rv;
    }
    owner = apr_psprintf(p, "%" APR_INT64_T_FMT, key->tag_id);
    rv = mdl_unseal(*data_key, PURPOSE, owner, key->text, text, &length, p);
    if (rv != APR_SUCCESS) {
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0131: a license key of tag %s can't be opened: it was changed in the database, "
                "or the data key was; restore them from a backup",
                owner);
    }
    return rv;
}

apr_array_header_t *mdl_license_keys_open(const mdl_secret_t *secret,
                                          const apr_array_header_t *keys, apr_pool_t *p)
{
    apr_array_header_t *opened = apr_array_make(p, keys->nelts, sizeof(const char *));
    mdl_secret_t *data_key = NULL;

    for (int i = 0; i < keys->nelts; i++) {
        const mdl_license_key_t *key = &APR_ARRAY_IDX(keys, i, mdl_license_key_t);

        if (license_key_open(secret, &data_key, key, &APR_ARRAY_PUSH(opened, const char *), p) !=
            APR_SUCCESS) {
            return NULL;
        }
    }
    return opened;
}
