/*
 * Bytes that wait until they make a part of an object: in memory, or in a file without a name, so
 * that many that come slowly take no memory.
 */
#ifndef MDL_STORAGE_OBJECT_GATHER_H
#define MDL_STORAGE_OBJECT_GATHER_H

#include "base/http/object.h"
#include "base/sha256.h"

typedef struct mdl_object_gather_t mdl_object_gather_t;

/** In p, with which it ends.  folder is that of the file; NULL: in memory. */
mdl_object_gather_t *mdl_object_gather_create(const char *folder, apr_pool_t *p);

apr_int64_t mdl_object_gather_size(const mdl_object_gather_t *gather);

/** Writes bytes at a place; what is between the size and that place is written later.  APR_ENOSPC,
    APR_ENOMEM, or the system's error. */
apr_status_t mdl_object_gather_put(mdl_object_gather_t *gather, apr_int64_t at, const char *data,
                                   apr_size_t length);

/** Sets the size: less forgets bytes, more leaves room to be written later. */
void mdl_object_gather_resize(mdl_object_gather_t *gather, apr_int64_t size);

/** The bytes from a place on, in *body, with their SHA-256 in p.  whole and crc32, unless NULL,
   take them in, too. */
apr_status_t mdl_object_gather_body(mdl_object_gather_t *gather, apr_int64_t from,
                                    mdl_sha256_t *whole, apr_uint32_t *crc32,
                                    mdl_object_body_t *body, apr_pool_t *p);

/** Gives away the memory, to be freed by free, and has size 0; NULL if the bytes are in a file. */
char *mdl_object_gather_release(mdl_object_gather_t *gather);

#endif
