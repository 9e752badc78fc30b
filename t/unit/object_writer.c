/* Writers of objects, one after the other, against a real store (tools/with-objects). */
#include "storage/object_writer.h"

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/client.h"
#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "base/http/object_reader.h"
#include "base/text/json.h"
#include "t/unit/store.h"

#define MIB  (1024 * 1024)
#define PART (8 * MIB)
#define SIZE (19 * MIB + 5) /* three parts */

static apr_pool_t *p;
static mdl_object_store_t *store;
static char *bytes; /* SIZE */
static const char *sha256;

/* Begins an object, or goes on with one. */
static mdl_object_writer_t *writer_of(const char *key, const char *state, int parallel)
{
    const mdl_object_writing_t writing = {.store = store,
                                          .key = key,
                                          .state = state,
                                          .parallel = parallel,
                                          .spool = "/var/tmp",
                                          .call = {.patience = apr_time_from_sec(60)}};
    mdl_object_writer_t *writer;

    is_int(mdl_object_writer_open(&writer, &writing, p), APR_SUCCESS, "a writer begins");
    return writer;
}

static void append(mdl_object_writer_t *writer, apr_size_t from, apr_size_t to)
{
    is_int(mdl_object_writer_append(writer, bytes + from, to - from), APR_SUCCESS,
           "it takes bytes");
}

/* Closes a writer after these bytes; returns its state. */
static const char *left_behind(mdl_object_writer_t *writer, apr_size_t from, apr_size_t to)
{
    append(writer, from, to);
    return mdl_object_writer_close(writer, p);
}

static apr_status_t complete(mdl_object_writer_t *writer, mdl_blob_t *blob)
{
    apr_status_t rv = mdl_object_writer_digest(writer, blob, p);

    rv = rv == APR_SUCCESS ? mdl_object_writer_complete(writer) : rv;
    mdl_object_writer_close(writer, p);
    return rv;
}

/* The SHA-256 of an object that has size bytes; "" if it can't be read. */
static const char *digest_of(const char *key, apr_int64_t size)
{
    mdl_object_call_t call = {.patience = apr_time_from_sec(60)};
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    mdl_object_reader_t *reader;
    apr_size_t length = 1;
    const char *piece;
    apr_status_t rv = mdl_object_reader_open(&reader, store, key, size, 0, size, &call, p);

    while (rv == APR_SUCCESS && length > 0) {
        rv = mdl_object_reader_take(reader, &piece, &length);
        mdl_sha256_update(sha, piece, rv == APR_SUCCESS ? length : 0);
    }
    mdl_sha256_end(sha, digest);
    return rv == APR_SUCCESS ? mdl_hex(digest, sizeof digest, p) : "";
}

static int count_of(const char *prefix)
{
    mdl_object_call_t call = {.patience = apr_time_from_sec(60)};
    const char *cursor = NULL;
    apr_array_header_t *entries;

    return mdl_object_list(store, prefix, &cursor, &entries, &call, p) == APR_SUCCESS
               ? entries->nelts
               : -1;
}

static void arrives(mdl_object_writer_t *writer, const char *key)
{
    mdl_blob_t blob;

    is_int(complete(writer, &blob), APR_SUCCESS, "the object is made");
    is_str(blob.sha256, sha256, "its digest is that of all bytes");
    is_int(blob.size, SIZE, "its size, too");
    is_str(blob.object, key, "under its key");
    is_str(digest_of(key, SIZE), sha256, "it has the bytes");
    is_int(count_of(key), 1, "and nothing is left beside it");
}

static void objects_are_written(void)
{
    mdl_object_writer_t *writer = writer_of("obj_memory", NULL, 3);

    append(writer, 0, SIZE);
    arrives(writer, "obj_memory");
    writer = writer_of("obj_file", NULL, 0);
    append(writer, 0, SIZE);
    arrives(writer, "obj_file");
}

static void a_successor_goes_on_behind_the_parts(void)
{
    const char *state = left_behind(writer_of("obj_resumed", NULL, 3), 0, 2 * PART + 100);
    mdl_object_writer_t *writer = writer_of(NULL, state, 3);

    is_int(mdl_object_writer_size(writer), 2 * PART, "two parts have come for good");
    append(writer, 2 * PART, SIZE);
    arrives(writer, "obj_resumed");
}

static void pieces_are_saved_and_gathered(void)
{
    const apr_size_t ends[] = {1, 100, PART - 1, PART + 7, 2 * PART, SIZE};
    const char *state = NULL;
    mdl_object_writer_t *writer;
    apr_size_t from = 0;

    for (apr_size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        writer = writer_of("obj_pieces", state, 0);
        is_int(mdl_object_writer_size(writer), from, "it goes on where the last one ended");
        append(writer, from, ends[i]);
        is_int(mdl_object_writer_save(writer), APR_SUCCESS, "its piece is saved");
        mdl_object_writer_clean(writer);
        state = mdl_object_writer_close(writer, p);
        from = ends[i];
    }
    arrives(writer_of(NULL, state, 0), "obj_pieces");
}

/* A former writer that hangs may still send a part, but never the end of the object. */
static void a_part_of_another_writer_is_noticed(void)
{
    mdl_object_call_t call = {.patience = apr_time_from_sec(60)};
    const char *state = left_behind(writer_of("obj_zombie", NULL, 3), 0, 2 * PART + 100), *etag;
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_object_body_t other = {.bytes = bytes + 1, .length = PART};
    mdl_object_writer_t *writer;
    mdl_blob_t blob;

    mdl_sha256(other.bytes, PART, digest);
    other.sha256 = mdl_hex(digest, sizeof digest, p);
    is_int(
        mdl_object_parts_put(store, "obj_zombie",
                             mdl_json_string(mdl_json_member(mdl_json_stored(state, p), "upload")),
                             1, &other, &etag, &call, p),
        APR_SUCCESS, "another writer replaces a part");
    writer = writer_of(NULL, state, 3);
    append(writer, 2 * PART, SIZE);
    is_int(complete(writer, &blob), MDL_OBJECT_EBROKEN, "then no object is made");
    is_int(count_of("obj_zombie"), 0, "none at all");
}

static void a_writer_begins_anew(void)
{
    mdl_object_writer_t *writer = writer_of("obj_anew", NULL, 3);

    append(writer, 5, 2 * PART);
    mdl_object_writer_restart(writer);
    is_int(mdl_object_writer_size(writer), 0, "it has no bytes then");
    append(writer, 0, SIZE);
    arrives(writer, "obj_anew");
}

static void states_are_what_they_say(void)
{
    mdl_object_writer_t *writer = writer_of("obj_state", NULL, 3);
    const char *state = mdl_object_writer_close(writer, p);
    const char *const wrong[] = {"", "{}", "[]", "{\"key\":\"k\",\"part_size\":1}",
                                 "{\"key\":\"k\",\"part_size\":8388608,\"parts\":1}"};
    mdl_object_writing_t writing = {.store = store, .key = "k", .parallel = 1};

    is_str(mdl_object_writer_unused_key(state, p), "obj_state",
           "a key that was not used serves on");
    state = left_behind(writer_of("obj_state", NULL, 3), 0, PART + 1);
    is_str(mdl_object_writer_unused_key(state, p), NULL, "one that was used does not");
    is_str(mdl_object_writer_key(state, p), "obj_state", "though it is in the state");
    for (apr_size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        writing.state = wrong[i];
        is_int(mdl_object_writer_open(&writer, &writing, p), MDL_OBJECT_EBROKEN,
               apr_pstrcat(p, "no state: ", wrong[i], NULL));
    }
    writer = writer_of("obj_large", NULL, 1);
    is_int(mdl_object_writer_expect(writer, APR_INT64_C(600) << 30), APR_SUCCESS,
           "600 GiB fit into an object");
    is_int(mdl_object_writer_expect(writer, APR_INT64_C(700) << 30), APR_ENOSPC, "700 do not");
    mdl_object_writer_close(writer, p);
}

int main(void)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    p = tap_begin();
    mdl_http_global_init(p);
    if (!store_begin(p)) {
        return 0;
    }
    store = store_with((mdl_object_config_t){0}, p);
    bytes = apr_palloc(p, SIZE);
    mdl_random(bytes, SIZE);
    mdl_sha256(bytes, SIZE, digest);
    sha256 = mdl_hex(digest, sizeof digest, p);
    objects_are_written();
    a_successor_goes_on_behind_the_parts();
    pieces_are_saved_and_gathered();
    a_part_of_another_writer_is_noticed();
    a_writer_begins_anew();
    states_are_what_they_say();
    return tap_end(p);
}
