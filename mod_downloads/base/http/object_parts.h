/*
 * Writing a large object in parts (S3's multipart upload).  Nothing is to be seen under the key
 * before mdl_object_parts_complete.  Errors and calls: base/http/object_store.h; results are in p.
 *
 * A part has a number from 1 to 10,000.  All but the last have the same size, at least 5 MiB.
 */
#ifndef MDL_BASE_HTTP_OBJECT_PARTS_H
#define MDL_BASE_HTTP_OBJECT_PARTS_H

#include "base/http/object.h"

#define MDL_OBJECT_PARTS_MAX 10000

typedef struct {
    int number;
    apr_int64_t size;
    const char *etag; /* opaque, with its quotes */
} mdl_object_part_t;

/** CreateMultipartUpload: *upload gets its id. */
apr_status_t mdl_object_parts_create(mdl_object_store_t *store, const char *key,
                                     const char **upload, mdl_object_call_t *call, apr_pool_t *p);

/** UploadPart: writes a part, or replaces it; *etag is what Complete has to name.
    MDL_OBJECT_EBROKEN if there is no such upload, or the bytes arrived changed three times. */
apr_status_t mdl_object_parts_put(mdl_object_store_t *store, const char *key, const char *upload,
                                  int number, const mdl_object_body_t *body, const char **etag,
                                  mdl_object_call_t *call, apr_pool_t *p);

/**
 * CompleteMultipartUpload: makes the object of these parts (mdl_object_part_t, by number) and asks
 * for its size.  Success, also after a lost answer, means that the object is there with size bytes.
 * MDL_OBJECT_EBROKEN if it is not, and the upload or a part is gone or changed.  Waits for minutes.
 */
apr_status_t mdl_object_parts_complete(mdl_object_store_t *store, const char *key,
                                       const char *upload, const apr_array_header_t *parts,
                                       apr_int64_t size, mdl_object_call_t *call, apr_pool_t *p);

/** AbortMultipartUpload: removes an upload and its parts; success if there is none, also when it
   was completed. */
apr_status_t mdl_object_parts_abort(mdl_object_store_t *store, const char *key, const char *upload,
                                    mdl_object_call_t *call, apr_pool_t *p);

/** ListParts: all parts that are there (mdl_object_part_t, by number).  MDL_OBJECT_EBROKEN if there
    is no such upload. */
apr_status_t mdl_object_parts_list(mdl_object_store_t *store, const char *key, const char *upload,
                                   apr_array_header_t **parts, mdl_object_call_t *call,
                                   apr_pool_t *p);

typedef struct {
    const char *key; /* relative to the store's prefix */
    const char *upload;
    apr_interval_time_t age; /* since it was created, by the store's clock */
} mdl_object_upload_t;

/** ListMultipartUploads: up to 1,000 unfinished uploads of keys that begin with prefix (""), as
    mdl_object_upload_t; *cursor as in mdl_object_list. */
apr_status_t mdl_object_uploads_list(mdl_object_store_t *store, const char *prefix,
                                     const char **cursor, apr_array_header_t **uploads,
                                     mdl_object_call_t *call, apr_pool_t *p);

/**
 * GetBucketLifecycleConfiguration: *expire gets whether a rule of the bucket aborts unfinished
 * uploads.  A store that does not tell, or a key that may not ask, is an error that is not logged.
 */
apr_status_t mdl_object_uploads_expire(mdl_object_store_t *store, int *expire,
                                       mdl_object_call_t *call, apr_pool_t *p);

#endif
