/*
 * A representation of known length that is made as it is sent: a file, an object, or a ZIP of
 * them.
 *
 * A handler sends it as one bucket of its whole length.  httpd's own filters copy and split that
 * into ranges, and output.h turns the ranges into bytes.
 */
#ifndef MDL_DELIVERY_BODY_H
#define MDL_DELIVERY_BODY_H

#include <apr_buckets.h>

typedef struct mdl_body_t mdl_body_t;

struct mdl_body_t {
    apr_int64_t size;
    int lasting;       /* buckets from take stay valid after its next call */
    int is_read;       /* out: another filter has read the body and passes on bytes of its own */
    apr_int64_t until; /* set before take: the end of the part that its next calls will take */

    /** NULL, or called when all was taken, before the last buckets are passed on: they stay
        valid. */
    void (*end)(void *owner);
    void *owner;

    /** Appends buckets for at least 1 and at most length bytes from offset; *taken gets how many.
        Buckets stay valid until the next call for this body. */
    apr_status_t (*take)(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                         apr_bucket_brigade *to, apr_int64_t *taken);
};

/** A bucket of all of body, which must outlive the request's buckets: make it in r->pool. */
apr_bucket *mdl_body_bucket(mdl_body_t *body, apr_bucket_alloc_t *alloc);

/** The body that a bucket is a part of, from bucket->start for bucket->length; NULL for none. */
mdl_body_t *mdl_body_of(const apr_bucket *bucket);

#endif
