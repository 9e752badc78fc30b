#include "delivery/body.h"

#define READ_LENGTH 65536

typedef struct {
    apr_bucket_refcount refcount; /* first, as apr_bucket_shared_* expect it */
    mdl_body_t *body;
} part_t;

static void body_destroy(void *data)
{
    if (apr_bucket_shared_destroy(data)) {
        apr_bucket_free(data);
    }
}

static apr_status_t read_part(apr_bucket *bucket, const char **bytes, apr_size_t *length,
                              apr_read_type_e block);

static const apr_bucket_type_t type = {
    "MDL_BODY",
    5,
    APR_BUCKET_DATA,
    body_destroy,
    read_part,
    apr_bucket_setaside_noop,
    apr_bucket_shared_split,
    apr_bucket_shared_copy,
};

mdl_body_t *mdl_body_of(const apr_bucket *bucket)
{
    return bucket->type == &type ? ((part_t *)bucket->data)->body : NULL;
}

apr_bucket *mdl_body_bucket(mdl_body_t *body, apr_bucket_alloc_t *alloc)
{
    apr_bucket *bucket = apr_bucket_alloc(sizeof *bucket, alloc);
    part_t *part = apr_bucket_alloc(sizeof *part, alloc);

    APR_BUCKET_INIT(bucket);
    bucket->free = apr_bucket_free;
    bucket->list = alloc;
    part->body = body;
    bucket = apr_bucket_shared_make(bucket, part, 0, (apr_size_t)body->size);
    bucket->type = &type;
    return bucket;
}

/* For an earlier filter that reads the bytes: the first of them become a heap bucket. */
static apr_status_t read_part(apr_bucket *bucket, const char **bytes, apr_size_t *length,
                              apr_read_type_e block)
{
    mdl_body_t *body = mdl_body_of(bucket);
    apr_size_t wanted = bucket->length < READ_LENGTH ? bucket->length : READ_LENGTH;
    apr_pool_t *pool;
    apr_bucket_brigade *brigade;
    char *buffer;
    apr_int64_t taken;
    apr_status_t rv;

    (void)block;
    body->is_read = 1;
    body->until = bucket->start + (apr_int64_t)bucket->length;
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_body");
    brigade = apr_brigade_create(pool, bucket->list);
    *length = 0;
    *bytes = "";
    rv = wanted > 0 ? body->take(body, bucket->start, (apr_int64_t)wanted, brigade, &taken)
                    : APR_SUCCESS;
    buffer = apr_bucket_alloc(wanted + 1, bucket->list);
    if (rv == APR_SUCCESS && (rv = apr_brigade_flatten(brigade, buffer, &wanted)) == APR_SUCCESS) {
        if (wanted < bucket->length) {
            apr_bucket_split(bucket, wanted);
        }
        body_destroy(bucket->data);
        apr_bucket_heap_make(bucket, buffer, wanted, apr_bucket_free);
        *length = wanted;
        *bytes = buffer;
    } else {
        apr_bucket_free(buffer);
    }
    apr_brigade_destroy(brigade);
    apr_pool_destroy(pool);
    return rv;
}
