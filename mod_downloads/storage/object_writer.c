#include "storage/object_writer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <apr_thread_proc.h>

#include "base/crypto.h"
#include "base/http/object_parts.h"
#include "base/text/json.h"
#include "storage/object_gather.h"
#include "storage/object_tails.h"

#define MIB          APR_INT64_C(1048576)
#define PART_SIZE    (8 * MIB)
#define LARGE_PART   (64 * MIB) /* of objects above LARGE */
#define LARGE        (PART_SIZE * 9000)
#define PARALLEL_MAX 8
#define DEFAULT_WHY  "the store's answers don't fit"

/* Bytes of the object that are being sent, or wait for it. */
typedef struct {
    mdl_object_writer_t *writer;
    apr_pool_t *pool; /* its own */
    apr_thread_t *thread;
    int number;
    mdl_object_body_t body;
    char *memory; /* of body, or NULL */
    atomic_int has_ended;
    const char *etag; /* this and the next two: the result */
    const char *why;
    apr_status_t rv;
    unsigned char sha[MDL_SHA256_STATE_LENGTH]; /* of the object, up to the end of this part */
    apr_uint32_t crc32;
} part_t;

/* What lasts by now. */
typedef struct {
    int parts;
    unsigned char etags[MDL_SHA256_LENGTH]; /* each part's is the digest of the last and its tag */
    unsigned char sha[MDL_SHA256_STATE_LENGTH];
    apr_uint32_t crc32;
} mark_t;

struct mdl_object_writer_t {
    apr_pool_t *pool; /* its own; destroying it closes the writer */
    mdl_object_writing_t of;
    const char *key;
    const char *upload; /* of the parts; NULL: none has been sent */
    apr_int64_t part_size;
    mark_t mark;
    apr_array_header_t *parts; /* mdl_object_part_t that were sent; a predecessor's have no etag */
    part_t *sending[PARALLEL_MAX]; /* oldest first */
    int sending_count;
    mdl_object_tails_t *tails;   /* bytes behind the parts, not here before they are needed */
    mdl_object_gather_t *gather; /* these, and further ones that wait */
    mdl_sha256_t *sha;           /* of all parts, also of those being sent */
    apr_uint32_t crc32;
    mdl_object_body_t last; /* the bytes that wait, once digested */
    int has_doubles;        /* whether there may be uploads of the key whose ids nobody knows */
    int is_uncertain;       /* whether a request to write the object may still arrive */
    const char *sha256;     /* of the object, once digested; else NULL */
    const char *why;
};

/* --- the state --- */

const char *mdl_object_writer_state(const mdl_object_writer_t *writer, apr_pool_t *p)
{
    mdl_json_t *state = mdl_json_object(p);

    mdl_json_add_string(state, "key", writer->key);
    if (writer->upload == NULL && mdl_object_tails_size(writer->tails) == 0) {
        return writer->is_uncertain ? NULL : mdl_json_text(state, NULL, p);
    }
    mdl_json_add_int(state, "part_size", writer->part_size);
    if (writer->upload != NULL) {
        mdl_json_add_string(state, "upload", writer->upload);
    }
    if (writer->mark.parts > 0) {
        mdl_json_add_int(state, "parts", writer->mark.parts);
        mdl_json_add_string(state, "etags", mdl_hex(writer->mark.etags, MDL_SHA256_LENGTH, p));
        mdl_json_add_string(state, "sha256", mdl_hex(writer->mark.sha, MDL_SHA256_STATE_LENGTH, p));
        mdl_json_add_int(state, "crc32", writer->mark.crc32);
    }
    mdl_object_tails_write(writer->tails, state);
    return mdl_json_text(state, NULL, p);
}

const char *mdl_object_writer_key(const char *state, apr_pool_t *p)
{
    return mdl_json_string(mdl_json_member(mdl_json_stored(state, p), "key"));
}

const char *mdl_object_writer_unused_key(const char *state, apr_pool_t *p)
{
    const mdl_json_t *json = mdl_json_stored(state, p);

    return mdl_json_member(json, "part_size") == NULL
               ? mdl_json_string(mdl_json_member(json, "key"))
               : NULL;
}

static const char *state_text(const mdl_json_t *state, const char *name, apr_pool_t *p)
{
    return apr_pstrdup(p, mdl_json_string(mdl_json_member(state, name)));
}

static apr_int64_t state_number(const mdl_json_t *state, const char *name)
{
    return mdl_json_int(mdl_json_member(state, name));
}

static int state_take_parts(mdl_object_writer_t *writer, const mdl_json_t *state)
{
    mark_t *mark = &writer->mark;
    const char *etags = state_text(state, "etags", writer->pool);
    const char *sha = state_text(state, "sha256", writer->pool);

    mark->parts = (int)state_number(state, "parts");
    if (mark->parts == 0) {
        return 1;
    }
    if (mark->parts < 0 || mark->parts > MDL_OBJECT_PARTS_MAX || writer->upload == NULL ||
        etags == NULL || sha == NULL ||
        mdl_hex_decode(mark->etags, sizeof mark->etags, etags) != APR_SUCCESS ||
        mdl_hex_decode(mark->sha, sizeof mark->sha, sha) != APR_SUCCESS ||
        mdl_sha256_restore(writer->sha, mark->sha) != APR_SUCCESS) {
        return 0;
    }
    writer->crc32 = mark->crc32 = (apr_uint32_t)state_number(state, "crc32");
    for (int i = 1; i <= mark->parts; i++) {
        APR_ARRAY_PUSH(writer->parts, mdl_object_part_t) = (mdl_object_part_t){
            .number = i, .size = writer->part_size};
    }
    return 1;
}

static apr_status_t writer_resume(mdl_object_writer_t *writer, const char *text)
{
    const mdl_json_t *state = mdl_json_stored(text, writer->pool);

    writer->key = state_text(state, "key", writer->pool);
    writer->upload = state_text(state, "upload", writer->pool);
    writer->has_doubles = 1; /* of a predecessor that died, or took its bytes back */
    if (mdl_json_member(state, "part_size") != NULL) {
        writer->part_size = state_number(state, "part_size");
    }
    return writer->key != NULL && writer->part_size >= PART_SIZE &&
                   writer->part_size <= LARGE_PART && state_take_parts(writer, state) &&
                   mdl_object_tails_read(writer->tails, state) &&
                   mdl_object_tails_size(writer->tails) < writer->part_size
               ? APR_SUCCESS
               : MDL_OBJECT_EBROKEN;
}

/* --- threads that send --- */

static void part_send(part_t *part)
{
    const mdl_object_writer_t *writer = part->writer;
    mdl_object_call_t call = writer->of.call;

    part->rv = mdl_object_parts_put(writer->of.store, writer->key, writer->upload, part->number,
                                    &part->body, &part->etag, &call, part->pool);
    part->why = call.why;
}

static void *APR_THREAD_FUNC part_run(apr_thread_t *thread, void *data)
{
    part_t *part = data;

    (void)thread;
    part_send(part);
    atomic_store(&part->has_ended, 1);
    return NULL;
}

static void etags_add(unsigned char etags[MDL_SHA256_LENGTH], const char *etag, apr_pool_t *p)
{
    mdl_sha256_t *sha = mdl_sha256_begin(p);

    mdl_sha256_update(sha, etags, MDL_SHA256_LENGTH);
    mdl_sha256_update(sha, etag, strlen(etag));
    mdl_sha256_end(sha, etags);
}

/* Takes a part that was sent into what lasts.  Parts are taken in their order.  Nothing goes on
   behind the last one, so it is not in the state: it is sent again. */
static apr_status_t writer_take(mdl_object_writer_t *writer, part_t *part)
{
    apr_status_t rv = part->rv;
    mark_t *mark = &writer->mark;

    if (rv == APR_SUCCESS && writer->sha256 == NULL) {
        etags_add(mark->etags, part->etag, part->pool);
        memcpy(mark->sha, part->sha, sizeof mark->sha);
        mark->crc32 = part->crc32;
        mark->parts = part->number;
    }
    if (rv == APR_SUCCESS) {
        APR_ARRAY_PUSH(writer->parts, mdl_object_part_t) = (mdl_object_part_t){
            part->number, part->body.length, apr_pstrdup(writer->pool, part->etag)};
    } else if (part->why != NULL) {
        writer->why = apr_pstrdup(writer->pool, part->why);
    }
    free(part->memory);
    apr_pool_destroy(part->pool);
    return rv;
}

/* Waits for the oldest part that is being sent. */
static apr_status_t writer_join(mdl_object_writer_t *writer)
{
    part_t *part = writer->sending[0];
    apr_status_t ignored;

    apr_thread_join(&ignored, part->thread);
    writer->sending_count--;
    memmove(&writer->sending[0], &writer->sending[1],
            (apr_size_t)writer->sending_count * sizeof *writer->sending);
    return writer_take(writer, part);
}

static apr_status_t writer_join_all(mdl_object_writer_t *writer)
{
    apr_status_t rv = APR_SUCCESS;

    while (writer->sending_count > 0) {
        apr_status_t joined = writer_join(writer);

        rv = rv == APR_SUCCESS ? joined : rv;
    }
    return rv;
}

/* --- bytes that wait --- */

/* Keeps why a call has failed, and whether its request may still arrive. */
static apr_status_t writer_note(mdl_object_writer_t *writer, apr_status_t rv)
{
    writer->why = rv != APR_SUCCESS && writer->of.call.why != NULL ? writer->of.call.why
                                                                   : writer->why;
    writer->is_uncertain |= rv == MDL_OBJECT_EAWAY || APR_STATUS_IS_EINTR(rv);
    return rv;
}

/* Takes the bytes that wait into the digests of the object. */
static apr_status_t writer_digest_all(mdl_object_writer_t *writer)
{
    apr_status_t rv = writer_note(writer, mdl_object_tails_fetch(writer->tails));

    return rv == APR_SUCCESS ? mdl_object_gather_body(writer->gather, 0, writer->sha,
                                                      &writer->crc32, &writer->last, writer->pool)
                             : rv;
}

/* --- sending --- */

static apr_status_t writer_begin_parts(mdl_object_writer_t *writer)
{
    apr_status_t rv;

    if (writer->upload != NULL) {
        return APR_SUCCESS;
    }
    rv = writer_note(writer, mdl_object_parts_create(writer->of.store, writer->key, &writer->upload,
                                                     &writer->of.call, writer->pool));
    writer->is_uncertain |= rv != APR_SUCCESS;
    writer->has_doubles |= writer->of.call.sent > 1;
    return rv;
}

static part_t *part_create(mdl_object_writer_t *writer)
{
    apr_pool_t *pool;
    part_t *part;

    /* A pool without a parent, because another thread uses it. */
    apr_pool_create_unmanaged_ex(&pool, NULL, NULL);
    apr_pool_tag(pool, "mdl_object_part");
    part = apr_pcalloc(pool, sizeof *part);
    part->pool = pool;
    part->writer = writer;
    part->number = writer->parts->nelts + writer->sending_count + 1;
    part->body = writer->last;
    part->body.sha256 = apr_pstrdup(pool, writer->last.sha256);
    part->crc32 = writer->crc32;
    mdl_sha256_save(writer->sha, part->sha); /* fails behind the last part, where it is not used */
    return part;
}

/* Sends the bytes that wait as a part. */
static apr_status_t writer_send(mdl_object_writer_t *writer)
{
    apr_status_t rv = writer_begin_parts(writer);
    part_t *part;

    if (rv == APR_SUCCESS && writer->sending_count > 0 &&
        writer->sending_count == writer->of.parallel) {
        rv = writer_join(writer);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    part = part_create(writer);
    part->memory = mdl_object_gather_release(writer->gather);
    if (writer->of.parallel == 0) {
        part_send(part);
        rv = writer_take(writer, part);
    } else {
        rv = apr_thread_create(&part->thread, NULL, part_run, part, part->pool);
        if (rv == APR_SUCCESS) {
            writer->sending[writer->sending_count++] = part;
        } else {
            part->rv = rv;
            writer_take(writer, part);
        }
    }
    if (rv == APR_SUCCESS) {
        mdl_object_tails_forget(writer->tails);
    }
    return rv;
}

/* Sends the bytes that wait, which fill a part.  They are not the last. */
static apr_status_t writer_send_full(mdl_object_writer_t *writer)
{
    apr_status_t rv = writer->parts->nelts + writer->sending_count < MDL_OBJECT_PARTS_MAX - 1
                          ? writer_digest_all(writer)
                          : APR_ENOSPC;

    return rv == APR_SUCCESS ? writer_send(writer) : rv;
}

apr_status_t mdl_object_writer_append(mdl_object_writer_t *writer, const char *data,
                                      apr_size_t length)
{
    while (writer->sending_count > 0 && atomic_load(&writer->sending[0]->has_ended)) {
        apr_status_t rv = writer_join(writer);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    while (length > 0) {
        apr_int64_t size = mdl_object_gather_size(writer->gather);
        apr_int64_t left = writer->part_size - size;
        apr_size_t n = (apr_int64_t)length < left ? length : (apr_size_t)left;
        apr_status_t rv = APR_SUCCESS;

        /* Not before another byte has come: the last part is sent by mdl_object_writer_complete. */
        if (n == 0) {
            rv = writer_send_full(writer);
        } else if ((rv = mdl_object_gather_put(writer->gather, size, data, n)) == APR_SUCCESS) {
            data += n;
            length -= n;
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t mdl_object_writer_save(mdl_object_writer_t *writer)
{
    apr_int64_t size = mdl_object_gather_size(writer->gather);
    apr_status_t rv = writer_join_all(writer);

    if (rv != APR_SUCCESS || size == mdl_object_tails_size(writer->tails)) {
        return rv;
    }
    if (size == writer->part_size) {
        return writer_send_full(writer);
    }
    return writer_note(writer, mdl_object_tails_add(writer->tails, writer->key));
}

void mdl_object_writer_clean(mdl_object_writer_t *writer)
{
    mdl_object_tails_clean(writer->tails);
}

/* --- the end --- */

apr_status_t mdl_object_writer_digest(mdl_object_writer_t *writer, mdl_blob_t *blob, apr_pool_t *p)
{
    apr_int64_t size = mdl_object_writer_size(writer);
    apr_status_t rv = writer_digest_all(writer);
    unsigned char digest[MDL_SHA256_LENGTH];

    if (rv == APR_SUCCESS) {
        rv = writer_join_all(writer);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    mdl_sha256_end(writer->sha, digest);
    writer->sha256 = mdl_hex(digest, sizeof digest, writer->pool);
    *blob = (mdl_blob_t){.sha256 = apr_pstrdup(p, writer->sha256),
                         .size = size,
                         .crc32 = writer->crc32,
                         .object = apr_pstrdup(p, writer->key)};
    return APR_SUCCESS;
}

/* Asks the store for the tags of the parts that a predecessor sent, which must be the same still.
   Parts behind them are of a writer whose state was not kept. */
static apr_status_t writer_recall_parts(mdl_object_writer_t *writer)
{
    unsigned char etags[MDL_SHA256_LENGTH] = {0};
    apr_array_header_t *there;
    apr_status_t rv = mdl_object_parts_list(writer->of.store, writer->key, writer->upload, &there,
                                            &writer->of.call, writer->pool);

    for (int i = 0; i < writer->parts->nelts && rv == APR_SUCCESS; i++) {
        mdl_object_part_t *part = &APR_ARRAY_IDX(writer->parts, i, mdl_object_part_t);
        const mdl_object_part_t *found = i < there->nelts
                                             ? &APR_ARRAY_IDX(there, i, mdl_object_part_t)
                                             : NULL;

        if (found == NULL || found->number != part->number || found->size != part->size) {
            rv = MDL_OBJECT_EBROKEN;
        } else if (part->etag == NULL) {
            part->etag = found->etag;
        }
        if (rv == APR_SUCCESS && part->number <= writer->mark.parts) {
            etags_add(etags, part->etag, writer->pool);
        }
    }
    if (rv == APR_SUCCESS && memcmp(etags, writer->mark.etags, sizeof etags) != 0) {
        rv = MDL_OBJECT_EBROKEN;
    }
    if (rv == MDL_OBJECT_EBROKEN) {
        writer->of.call.why = "the parts in the store are not those that were sent";
    }
    return rv;
}

static apr_status_t writer_complete_parts(mdl_object_writer_t *writer)
{
    apr_int64_t size = 0;
    apr_status_t rv = writer->last.length > 0 ? writer_send(writer) : APR_SUCCESS;

    if (rv == APR_SUCCESS) {
        rv = writer_join_all(writer);
    }
    if (rv == APR_SUCCESS && APR_ARRAY_IDX(writer->parts, 0, mdl_object_part_t).etag == NULL) {
        rv = writer_recall_parts(writer);
    }
    for (int i = 0; i < writer->parts->nelts; i++) {
        size += APR_ARRAY_IDX(writer->parts, i, mdl_object_part_t).size;
    }
    return rv == APR_SUCCESS
               ? mdl_object_parts_complete(writer->of.store, writer->key, writer->upload,
                                           writer->parts, size, &writer->of.call, writer->pool)
               : rv;
}

/* What stays is removed by "downloadsctl storage clean". */
static void writer_abort_doubles(mdl_object_writer_t *writer)
{
    apr_array_header_t *uploads;
    const char *cursor = NULL;
    apr_status_t rv = mdl_object_uploads_list(writer->of.store, writer->key, &cursor, &uploads,
                                              &writer->of.call, writer->pool);

    for (int i = 0; rv == APR_SUCCESS && i < uploads->nelts; i++) {
        const mdl_object_upload_t *upload = &APR_ARRAY_IDX(uploads, i, mdl_object_upload_t);

        rv = mdl_object_parts_abort(writer->of.store, upload->key, upload->upload, &writer->of.call,
                                    writer->pool);
    }
}

apr_status_t mdl_object_writer_complete(mdl_object_writer_t *writer)
{
    apr_status_t rv;

    if (writer->sha256 == NULL) {
        return APR_EINVAL;
    }
    rv = writer->parts->nelts == 0 ? mdl_object_put(writer->of.store, writer->key, &writer->last,
                                                    &writer->of.call, writer->pool)
                                   : writer_complete_parts(writer);
    if (rv == APR_SUCCESS) {
        if (writer->has_doubles) {
            writer_abort_doubles(writer);
        }
        mdl_object_tails_forget(writer->tails);
        mdl_object_tails_clean(writer->tails);
    }
    return writer_note(writer, rv);
}

/* --- beginning and closing --- */

static apr_status_t writer_cleanup(void *data)
{
    mdl_object_writer_t *writer = data;

    writer_join_all(writer);
    return APR_SUCCESS;
}

apr_status_t mdl_object_writer_open(mdl_object_writer_t **made, const mdl_object_writing_t *writing,
                                    apr_pool_t *p)
{
    mdl_object_writer_t *writer;
    apr_pool_t *pool;
    apr_status_t rv;

    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_object_writer");
    writer = apr_pcalloc(pool, sizeof *writer);
    *writer = (mdl_object_writer_t){
        .pool = pool,
        .of = *writing,
        .key = writing->key,
        .part_size = PART_SIZE,
        .parts = apr_array_make(pool, 16, sizeof(mdl_object_part_t)),
        .gather = mdl_object_gather_create(writing->parallel == 0 ? writing->spool : NULL, pool),
        .sha = mdl_sha256_begin(pool),
        .why = DEFAULT_WHY};
    writer->tails = mdl_object_tails_create(writing->store, writer->gather, &writer->of.call, pool);
    apr_pool_cleanup_register(pool, writer, writer_cleanup, apr_pool_cleanup_null);
    rv = writing->state != NULL ? writer_resume(writer, writing->state) : APR_SUCCESS;
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(pool);
        writer = NULL;
    }
    *made = writer;
    return rv;
}

apr_status_t mdl_object_writer_expect(mdl_object_writer_t *writer, apr_int64_t total)
{
    if (mdl_object_writer_size(writer) == 0 && total > LARGE) {
        writer->part_size = LARGE_PART;
    }
    return total > writer->part_size * (MDL_OBJECT_PARTS_MAX - 1) ? APR_ENOSPC : APR_SUCCESS;
}

apr_int64_t mdl_object_writer_size(const mdl_object_writer_t *writer)
{
    return (writer->parts->nelts + writer->sending_count) * writer->part_size +
           mdl_object_gather_size(writer->gather);
}

void mdl_object_writer_restart(mdl_object_writer_t *writer)
{
    unsigned char ignored[MDL_SHA256_LENGTH];

    writer_join_all(writer);
    if (writer->upload != NULL) {
        writer->has_doubles |= mdl_object_parts_abort(writer->of.store, writer->key, writer->upload,
                                                      &writer->of.call,
                                                      writer->pool) != APR_SUCCESS;
    }
    writer->upload = NULL;
    memset(&writer->mark, 0, sizeof writer->mark);
    apr_array_clear(writer->parts);
    mdl_object_tails_forget(writer->tails);
    mdl_object_gather_resize(writer->gather, 0);
    mdl_sha256_end(writer->sha, ignored);
    writer->crc32 = 0;
    writer->sha256 = NULL;
    writer->part_size = PART_SIZE;
}

apr_int64_t mdl_object_writer_lasting(const mdl_object_writer_t *writer)
{
    return writer->mark.parts * writer->part_size + mdl_object_tails_size(writer->tails);
}

const char *mdl_object_writer_tails_key(const char *key, apr_pool_t *p)
{
    return apr_pstrcat(p, key, ".", NULL);
}

const char *mdl_object_writer_why(const mdl_object_writer_t *writer)
{
    return writer->why;
}

const char *mdl_object_writer_close(mdl_object_writer_t *writer, apr_pool_t *p)
{
    const char *state;

    writer_join_all(writer);
    state = mdl_object_writer_state(writer, p);
    apr_pool_destroy(writer->pool);
    return state;
}
