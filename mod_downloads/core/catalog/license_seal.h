/*
 * License keys at rest: each is sealed with the data key, for its tag.  Equal keys of a tag have
 * equal sealed texts, so a unique index finds duplicates.
 */
#ifndef MDL_CORE_CATALOG_LICENSE_SEAL_H
#define MDL_CORE_CATALOG_LICENSE_SEAL_H

#include <apr_tables.h>

#include "base/crypto.h"

/** A license key as stored in the database. */
typedef struct {
    apr_int64_t tag_id;
    const char *text;
    const char *data_key; /* the key that text is sealed with, sealed itself */
} mdl_license_key_t;

/** Seals a key of a tag with the data key. */
const char *mdl_license_key_seal(const mdl_secret_t *data_key, apr_int64_t tag_id, const char *key,
                                 apr_pool_t *p);

/** How many bytes a key has. */
apr_size_t mdl_license_key_size(const mdl_license_key_t *key);

/** Opens the keys (mdl_license_key_t) of one order, as const char *. NULL, and a line in the log,
    unless all of them can be opened. */
apr_array_header_t *mdl_license_keys_open(const mdl_secret_t *secret,
                                          const apr_array_header_t *keys, apr_pool_t *p);

#endif
