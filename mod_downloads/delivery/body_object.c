#include "delivery/body_object.h"

#include "base/http/object_reader.h"

typedef struct {
    mdl_body_t body; /* first: it is a body */
    mdl_object_store_t *store;
    const char *key;
    mdl_object_call_t *call;
    apr_pool_t *pool; /* of the reader */
    mdl_object_reader_t *reader;
    apr_int64_t next;  /* the offset of the byte to take next */
    apr_int64_t end;   /* of what the reader reads */
    const char *bytes; /* read and not taken, from next on */
    apr_size_t length;
} object_t;

void mdl_body_object_close(mdl_body_t *body)
{
    object_t *object = (object_t *)body;

    apr_pool_clear(object->pool);
    object->reader = NULL;
    object->length = 0;
}

apr_status_t mdl_body_object_ask(mdl_body_t *body, apr_int64_t offset)
{
    object_t *object = (object_t *)body;
    apr_status_t rv;

    if (object->reader != NULL && offset == object->next && object->next < object->end) {
        return APR_SUCCESS;
    }
    mdl_body_object_close(body);
    object->next = offset;
    object->end = body->until;
    rv = mdl_object_reader_open(&object->reader, object->store, object->key, body->size, offset,
                                object->end - offset, object->call, object->pool);
    if (rv != APR_SUCCESS) {
        object->reader = NULL;
    }
    return rv;
}

apr_status_t mdl_body_object_ready(mdl_body_t *body, apr_int64_t offset)
{
    apr_status_t rv = mdl_body_object_ask(body, offset);

    return rv == APR_SUCCESS ? mdl_object_reader_ready(((object_t *)body)->reader) : rv;
}

static apr_status_t object_body_take(mdl_body_t *body, apr_int64_t offset, apr_int64_t length,
                                     apr_bucket_brigade *to, apr_int64_t *taken)
{
    object_t *object = (object_t *)body;
    apr_status_t rv = mdl_body_object_ask(body, offset);

    if (rv == APR_SUCCESS && object->length == 0) {
        rv = mdl_object_reader_take(object->reader, &object->bytes, &object->length);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *taken = (apr_int64_t)object->length < length ? (apr_int64_t)object->length : length;
    APR_BRIGADE_INSERT_TAIL(
        to, apr_bucket_transient_create(object->bytes, (apr_size_t)*taken, to->bucket_alloc));
    object->bytes += *taken;
    object->length -= (apr_size_t)*taken;
    object->next += *taken;
    return APR_SUCCESS;
}

mdl_body_t *mdl_body_object_make(mdl_object_store_t *store, const mdl_blob_t *blob,
                                 mdl_object_call_t *call, apr_pool_t *p)
{
    object_t *object = apr_pcalloc(p, sizeof *object);

    *object = (object_t){.body = {.size = blob->size, .take = object_body_take},
                         .store = store,
                         .key = blob->object,
                         .call = call};
    apr_pool_create(&object->pool, p);
    apr_pool_tag(object->pool, "mdl_body_object");
    return &object->body;
}
