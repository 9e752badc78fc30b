/*
 * Objects of an S3-compatible store: one request each (Amazon S3 API Reference, 2006-03-01).  A key
 * is relative to the store's prefix: 1 to 900 bytes of UTF-8 without control characters.
 *
 * All functions take the store, and the call that says how long they try; base/http/object_store.h
 * has both, and the errors.  Results and call->why are in p.  Nothing optional of S3 is used: no
 * ACL, no If-None-Match, no checksum beside x-amz-content-sha256.
 */
#ifndef MDL_BASE_HTTP_OBJECT_H
#define MDL_BASE_HTTP_OBJECT_H

#include "base/http/object_store.h"

/** PutObject: writes an object, at most 5 GB, whole or not at all. */
apr_status_t mdl_object_put(mdl_object_store_t *store, const char *key,
                            const mdl_object_body_t *body, mdl_object_call_t *call, apr_pool_t *p);

/** HeadObject: the size of an object, in bytes.  Asks a second time, by GET, why it was refused,
   for the answer to HEAD does not say so: APR_ENOENT means that bucket and key are right. */
apr_status_t mdl_object_head(mdl_object_store_t *store, const char *key, apr_int64_t *size,
                             mdl_object_call_t *call, apr_pool_t *p);

/** GetObject: reads a small object into memory, with a NUL behind it.  MDL_OBJECT_EBROKEN if it has
    more than most bytes. */
apr_status_t mdl_object_get(mdl_object_store_t *store, const char *key, apr_size_t most,
                            const char **bytes, apr_size_t *length, mdl_object_call_t *call,
                            apr_pool_t *p);

/** DeleteObject: removes an object; success if there is none. */
apr_status_t mdl_object_delete(mdl_object_store_t *store, const char *key, mdl_object_call_t *call,
                               apr_pool_t *p);

typedef struct {
    const char *key; /* relative to the store's prefix */
    apr_int64_t size;
    apr_interval_time_t age; /* since it was written, by the store's clock */
} mdl_object_entry_t;

/**
 * ListObjectsV2: up to 1,000 objects whose keys begin with prefix (""), as mdl_object_entry_t.
 * *cursor is NULL at first and gets where the list goes on, NULL after the last; *entries may be
 * empty before.
 */
apr_status_t mdl_object_list(mdl_object_store_t *store, const char *prefix, const char **cursor,
                             apr_array_header_t **entries, mdl_object_call_t *call, apr_pool_t *p);

/**
 * A URL, in p, by which whoever has it can GET the object at the public URL for so many seconds (at
 * most a week); asks nobody.  The answer has this Content-Disposition and Content-Type.  The URL is
 * a secret: it must not be logged.
 */
const char *mdl_object_url(const mdl_object_store_t *store, const char *key, int seconds,
                           const char *disposition, const char *type, apr_pool_t *p);

#endif
