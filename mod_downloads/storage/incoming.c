#include "storage/incoming.h"

#include <apr_strings.h>

struct mdl_incoming_t {
    const mdl_storage_t *storage;
    mdl_partial_t *partial; /* one of these */
    mdl_object_writer_t *object;
};

apr_status_t mdl_incoming_open(mdl_incoming_t **made, mdl_storage_t *storage,
                               const mdl_incoming_of_t *of, apr_pool_t *p)
{
    mdl_incoming_t *incoming = apr_pcalloc(p, sizeof *incoming);
    const mdl_object_writing_t writing = {
        .store = mdl_storage_objects(storage),
        .key = of->key,
        .state = of->state,
        .parallel = of->parallel,
        .call = {.patience = of->patience, .stopped = of->stopped, .baton = of->baton}};

    incoming->storage = storage;
    *made = incoming;
    return writing.store != NULL
               ? mdl_object_writer_open(&incoming->object, &writing, p)
               : mdl_partial_open(&incoming->partial, storage, of->id, of->stopped, of->baton, p);
}

int mdl_incoming_is_object(const mdl_incoming_t *incoming)
{
    return incoming->object != NULL;
}

apr_int64_t mdl_incoming_size(const mdl_incoming_t *incoming)
{
    return incoming->object != NULL ? mdl_object_writer_size(incoming->object)
                                    : mdl_partial_size(incoming->partial);
}

apr_status_t mdl_incoming_expect(mdl_incoming_t *incoming, apr_int64_t total)
{
    apr_int64_t left = total - mdl_incoming_size(incoming);

    if (incoming->object != NULL) {
        return mdl_object_writer_expect(incoming->object, total);
    }
    return left > 0 ? mdl_storage_room(incoming->storage, left) : APR_SUCCESS;
}

apr_status_t mdl_incoming_append(mdl_incoming_t *incoming, const char *data, apr_size_t length)
{
    return incoming->object != NULL ? mdl_object_writer_append(incoming->object, data, length)
                                    : mdl_partial_write(incoming->partial, data, length);
}

apr_status_t mdl_incoming_restart(mdl_incoming_t *incoming)
{
    if (incoming->object == NULL) {
        return mdl_partial_truncate(incoming->partial, 0);
    }
    mdl_object_writer_restart(incoming->object);
    return APR_SUCCESS;
}

const char *mdl_incoming_state(const mdl_incoming_t *incoming, apr_pool_t *p)
{
    return incoming->object != NULL ? mdl_object_writer_state(incoming->object, p) : NULL;
}

apr_int64_t mdl_incoming_lasting(const mdl_incoming_t *incoming)
{
    return incoming->object != NULL ? mdl_object_writer_lasting(incoming->object) : 0;
}

apr_status_t mdl_incoming_digest(mdl_incoming_t *incoming, mdl_blob_t *blob, apr_pool_t *p)
{
    return incoming->object != NULL ? mdl_object_writer_digest(incoming->object, blob, p)
                                    : mdl_partial_digest(incoming->partial, blob, p);
}

static void incoming_store_files(mdl_incoming_store_t *stores, int count, apr_pool_t *p)
{
    mdl_partial_commit_t *commits = apr_palloc(p, (apr_size_t)count * sizeof *commits);

    for (int i = 0; i < count; i++) {
        commits[i] = (mdl_partial_commit_t){.partial = stores[i].incoming->partial,
                                            .blob = stores[i].blob};
    }
    mdl_partial_commit_all(commits, count);
    for (int i = 0; i < count; i++) {
        stores[i].rv = commits[i].rv;
        stores[i].why = stores[i].state = NULL;
    }
}

void mdl_incoming_store_all(mdl_incoming_store_t *stores, int count, apr_pool_t *p)
{
    if (!mdl_incoming_is_object(stores[0].incoming)) {
        incoming_store_files(stores, count, p);
        return;
    }
    for (mdl_incoming_store_t *store = stores; store < stores + count; store++) {
        mdl_object_writer_t *object = store->incoming->object;

        store->rv = mdl_object_writer_complete(object);
        store->why = apr_pstrdup(p, mdl_object_writer_why(object));
        store->state = mdl_object_writer_close(object, p);
    }
}

const char *mdl_incoming_keep(mdl_incoming_t *incoming, apr_pool_t *p)
{
    if (incoming->object != NULL) {
        return mdl_object_writer_close(incoming->object, p);
    }
    mdl_partial_keep(incoming->partial);
    return NULL;
}

void mdl_incoming_discard(mdl_incoming_t *incoming, apr_pool_t *p)
{
    if (incoming->object != NULL) {
        mdl_object_writer_close(incoming->object, p);
    } else {
        mdl_partial_discard(incoming->partial);
    }
}

const char *mdl_incoming_why(const mdl_incoming_t *incoming)
{
    return incoming->object != NULL ? mdl_object_writer_why(incoming->object) : NULL;
}
