#include "storage/object_tails.h"

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/object.h"
#include "base/http/object_reader.h"

#define NAME_LENGTH 8

typedef struct {
    const char *key;
    apr_int64_t size;
    int is_here; /* whether its bytes are in the gather */
} tail_t;

struct mdl_object_tails_t {
    mdl_object_store_t *store;
    mdl_object_gather_t *gather;
    mdl_object_call_t *call;
    apr_pool_t *pool;
    apr_array_header_t *all; /* tail_t, in the order of their bytes */
    apr_int64_t size;
    apr_array_header_t *over; /* const char *, keys of those that are needed no more */
};

mdl_object_tails_t *mdl_object_tails_create(mdl_object_store_t *store, mdl_object_gather_t *gather,
                                            mdl_object_call_t *call, apr_pool_t *p)
{
    mdl_object_tails_t *tails = apr_pcalloc(p, sizeof *tails);

    *tails = (mdl_object_tails_t){.store = store,
                                  .gather = gather,
                                  .call = call,
                                  .pool = p,
                                  .all = apr_array_make(p, 4, sizeof(tail_t)),
                                  .over = apr_array_make(p, 4, sizeof(const char *))};
    return tails;
}

static tail_t *tail_at(const mdl_object_tails_t *tails, int i)
{
    return &APR_ARRAY_IDX(tails->all, i, tail_t);
}

static void tail_push(mdl_object_tails_t *tails, const char *key, apr_int64_t size, int is_here)
{
    APR_ARRAY_PUSH(tails->all, tail_t) = (tail_t){key, size, is_here};
    tails->size += size;
}

int mdl_object_tails_read(mdl_object_tails_t *tails, const mdl_json_t *state)
{
    const mdl_json_t *list = mdl_json_member(state, "tails");

    for (apr_size_t i = 0; i < mdl_json_length(list); i++) {
        const mdl_json_t *pair = mdl_json_element(list, i);
        const char *key = mdl_json_string(mdl_json_element(pair, 0));
        apr_int64_t size = mdl_json_int(mdl_json_element(pair, 1));

        if (key == NULL || size <= 0) {
            return 0;
        }
        tail_push(tails, apr_pstrdup(tails->pool, key), size, 0);
    }
    mdl_object_gather_resize(tails->gather, tails->size);
    return 1;
}

void mdl_object_tails_write(const mdl_object_tails_t *tails, mdl_json_t *state)
{
    mdl_json_t *list = tails->all->nelts > 0 ? mdl_json_add_array(state, "tails") : NULL;

    for (int i = 0; i < tails->all->nelts; i++) {
        mdl_json_t *pair = mdl_json_add_array(list, NULL);

        mdl_json_add_string(pair, NULL, tail_at(tails, i)->key);
        mdl_json_add_int(pair, NULL, tail_at(tails, i)->size);
    }
}

apr_int64_t mdl_object_tails_size(const mdl_object_tails_t *tails)
{
    return tails->size;
}

static apr_status_t tail_fetch(mdl_object_tails_t *tails, const tail_t *tail, apr_int64_t at,
                               apr_pool_t *p)
{
    mdl_object_reader_t *reader;
    const char *bytes;
    apr_size_t length = 1;
    apr_status_t rv = mdl_object_reader_open(&reader, tails->store, tail->key, tail->size, 0,
                                             tail->size, tails->call, p);

    for (; rv == APR_SUCCESS && length > 0; at += (apr_int64_t)length) {
        rv = mdl_object_reader_take(reader, &bytes, &length);
        if (rv == APR_SUCCESS && length > 0) {
            rv = mdl_object_gather_put(tails->gather, at, bytes, length);
        }
    }
    return APR_STATUS_IS_ENOENT(rv) || rv == APR_EINCOMPLETE ? MDL_OBJECT_EBROKEN : rv;
}

/* Fetches those from first on. */
static apr_status_t tails_fetch_from(mdl_object_tails_t *tails, int first)
{
    apr_status_t rv = APR_SUCCESS;
    apr_int64_t at = 0;
    apr_pool_t *p;

    apr_pool_create(&p, tails->pool);
    apr_pool_tag(p, "mdl_object_tails");
    for (int i = 0; i < tails->all->nelts && rv == APR_SUCCESS; i++) {
        tail_t *tail = tail_at(tails, i);

        if (i >= first && !tail->is_here) {
            rv = tail_fetch(tails, tail, at, p);
            tail->is_here = rv == APR_SUCCESS;
        }
        at += tail->size;
        if (rv != APR_SUCCESS && tails->call->why != NULL) {
            tails->call->why = apr_pstrdup(tails->pool, tails->call->why);
        }
        apr_pool_clear(p);
    }
    apr_pool_destroy(p);
    return rv;
}

apr_status_t mdl_object_tails_fetch(mdl_object_tails_t *tails)
{
    return tails_fetch_from(tails, 0);
}

static void tails_forget_from(mdl_object_tails_t *tails, int first)
{
    while (tails->all->nelts > first) {
        const tail_t *tail = apr_array_pop(tails->all);

        APR_ARRAY_PUSH(tails->over, const char *) = tail->key;
        tails->size -= tail->size;
    }
}

void mdl_object_tails_forget(mdl_object_tails_t *tails)
{
    tails_forget_from(tails, 0);
}

/* The first of those that are merged with so many bytes behind them. */
static int tails_merged(const mdl_object_tails_t *tails, apr_int64_t behind)
{
    int first = tails->all->nelts;

    if (first < MDL_OBJECT_TAILS_MAX) {
        return first;
    }
    for (int i = first - 1; i >= 0; i--) {
        apr_int64_t size = tail_at(tails, i)->size;

        if (size <= behind) {
            first = i;
        } else if (first < tails->all->nelts) {
            break;
        }
        behind += size;
    }
    return first;
}

apr_status_t mdl_object_tails_add(mdl_object_tails_t *tails, const char *key)
{
    apr_int64_t from = tails->size;
    int first = tails_merged(tails, mdl_object_gather_size(tails->gather) - from);
    const char *own = apr_pstrcat(tails->pool, key, ".",
                                  mdl_random_base62(NAME_LENGTH, tails->pool), NULL);
    apr_status_t rv = tails_fetch_from(tails, first);
    mdl_object_body_t body = {0};

    for (int i = first; i < tails->all->nelts; i++) {
        from -= tail_at(tails, i)->size;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_object_gather_body(tails->gather, from, NULL, NULL, &body, tails->pool);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_object_put(tails->store, own, &body, tails->call, tails->pool);
    }
    if (rv == APR_SUCCESS) {
        tails_forget_from(tails, first);
        tail_push(tails, own, body.length, 1);
    }
    return rv;
}

void mdl_object_tails_clean(mdl_object_tails_t *tails)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < tails->over->nelts && rv == APR_SUCCESS; i++) {
        rv = mdl_object_delete(tails->store, APR_ARRAY_IDX(tails->over, i, const char *),
                               tails->call, tails->pool);
    }
    apr_array_clear(tails->over);
}
