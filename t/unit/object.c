/* The client of an object store against a real one (tools/with-objects). */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_thread_proc.h>

#include "base/crypto.h"
#include "base/http/client.h"
#include "base/http/object.h"
#include "base/http/object_parts.h"
#include "base/http/object_reader.h"
#include "t/unit/store.h"
#include "t/unit/tap.h"

#define MINIMUM (5 * 1024 * 1024) /* bytes of a part that is not the last */

static apr_pool_t *p;
static mdl_object_store_t *store;
static mdl_object_call_t call;

static mdl_object_body_t body_of(const char *bytes, apr_size_t length, apr_pool_t *pool)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(bytes, length, digest);
    return (mdl_object_body_t){.bytes = bytes,
                               .length = (apr_int64_t)length,
                               .sha256 = mdl_hex(digest, sizeof digest, pool)};
}

static apr_status_t put(const char *key, const char *text)
{
    const mdl_object_body_t body = body_of(text, strlen(text), p);

    return mdl_object_put(store, key, &body, &call, p);
}

static const char *get(const char *key)
{
    const char *bytes;
    apr_size_t length;
    apr_status_t rv = mdl_object_get(store, key, 1000, &bytes, &length, &call, p);

    return rv == APR_SUCCESS ? bytes : apr_psprintf(p, "error %d: %s", rv, call.why);
}

static void objects_are_written_and_read(void)
{
    static const char *const keys[] = {"plain", "a/b/c", "a b+c$d=e&f?g%h", "\xc3\xa4~'()*!,;:@",
                                       "job_01h-12"};
    apr_int64_t size;

    for (apr_size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!is_int(put(keys[i], keys[i]), APR_SUCCESS, apr_psprintf(p, "put %s", keys[i]))) {
            printf("#   %s\n", call.why);
        }
        is_str(get(keys[i]), keys[i], "get");
        is_int(mdl_object_head(store, keys[i], &size, &call, p), APR_SUCCESS, "head");
        is_int(size, (long long)strlen(keys[i]), "has the size");
        is_int(mdl_object_delete(store, keys[i], &call, p), APR_SUCCESS, "delete");
        is_int(mdl_object_delete(store, keys[i], &call, p), APR_SUCCESS, "delete again");
        is_int(mdl_object_head(store, keys[i], &size, &call, p), APR_ENOENT, "it is gone");
    }
    is_int(put("empty", ""), APR_SUCCESS, "put of no bytes");
    is_str(get("empty"), "", "get of no bytes");
    is_int(mdl_object_head(store, "empty", &size, &call, p), APR_SUCCESS, "head of no bytes");
    is_int(size, 0, "is 0");
}

static void changed_bytes_are_refused(void)
{
    mdl_object_body_t body = body_of("right", 5, p);
    apr_int64_t size;

    body.bytes = "wrong";
    is_int(mdl_object_put(store, "changed", &body, &call, p), MDL_OBJECT_EBROKEN,
           "bytes with another hash are refused");
    is_int(mdl_object_head(store, "changed", &size, &call, p), APR_ENOENT, "and not kept");
}

static void objects_come_from_files(void)
{
    const char *path = apr_pstrcat(p, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                                   "/mdl-object-XXXXXX", NULL);
    int fd = mkstemp((char *)path);
    mdl_object_body_t body = body_of("bytes", 5, p);

    unlink(path);
    ok(fd >= 0 && write(fd, "some bytes here", 15) == 15, "a file");
    body.bytes = NULL;
    body.fd = fd;
    body.offset = 5;
    is_int(mdl_object_put(store, "file", &body, &call, p), APR_SUCCESS, "is sent from an offset");
    is_str(get("file"), "bytes", "as it is");
    body.offset = 12;
    is_int(mdl_object_put(store, "file2", &body, &call, p), APR_EOF, "not if it is too short");
    close(fd);
}

static void objects_are_listed(void)
{
    const char *cursor = NULL;
    apr_array_header_t *entries;

    put("list/1", "one");
    put("list/2", "three");
    is_int(mdl_object_list(store, "list/", &cursor, &entries, &call, p), APR_SUCCESS, "a list");
    ok(cursor == NULL, "is whole");
    if (is_int(entries->nelts, 2, "has what begins with the prefix")) {
        const mdl_object_entry_t *entry = &APR_ARRAY_IDX(entries, 1, mdl_object_entry_t);

        is_str(entry->key, "list/2", "the keys");
        is_int(entry->size, 5, "the sizes");
        ok(entry->age >= 0 && entry->age < apr_time_from_sec(600), "and the ages");
    }
    is_int(mdl_object_list(store, "none", &cursor, &entries, &call, p), APR_SUCCESS,
           "an empty list");
    is_int(entries->nelts, 0, "has nothing");
}

/* --- parts --- */

static char *large; /* MINIMUM + 1,000 bytes */

static const char *part_put(const char *key, const char *upload, int number)
{
    const char *etag = NULL;
    const mdl_object_body_t body = number == 1 ? body_of(large, MINIMUM, p)
                                               : body_of(large + MINIMUM, 1000, p);

    if (!is_int(mdl_object_parts_put(store, key, upload, number, &body, &etag, &call, p),
                APR_SUCCESS, "a part is written")) {
        printf("#   %s\n", call.why);
    }
    return etag;
}

/* The digest of a range of the object, read as a stream. */
static const char *range_digest(const char *key, apr_int64_t total, apr_int64_t offset,
                                apr_int64_t length)
{
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_object_reader_t *reader;
    const char *bytes;
    apr_size_t got;
    apr_status_t rv;

    rv = mdl_object_reader_open(&reader, store, key, total, offset, length, &call, p);
    while (rv == APR_SUCCESS &&
           (rv = mdl_object_reader_take(reader, &bytes, &got)) == APR_SUCCESS && got > 0) {
        mdl_sha256_update(sha, bytes, got);
    }
    mdl_object_reader_close(reader);
    mdl_sha256_end(sha, digest);
    return rv == APR_SUCCESS ? mdl_hex(digest, sizeof digest, p) : call.why;
}

static const char *digest(const char *bytes, apr_size_t length)
{
    return body_of(bytes, length, p).sha256;
}

static void large_objects_have_parts(void)
{
    const apr_int64_t total = MINIMUM + 1000;
    const char *upload = NULL, *cursor = NULL, *second;
    apr_array_header_t *parts, *uploads;
    mdl_object_reader_t *reader;
    apr_int64_t size;

    is_int(mdl_object_parts_create(store, "large", &upload, &call, p), APR_SUCCESS, "an upload");
    second = part_put("large", upload, 2);
    part_put("large", upload, 1);
    is_int(mdl_object_parts_list(store, "large", upload, &parts, &call, p), APR_SUCCESS,
           "its parts are listed");
    ok(parts->nelts == 2 && APR_ARRAY_IDX(parts, 0, mdl_object_part_t).size == MINIMUM &&
           strcmp(APR_ARRAY_IDX(parts, 1, mdl_object_part_t).etag, second) == 0,
       "by number, with sizes and tags");
    is_int(mdl_object_uploads_list(store, "lar", &cursor, &uploads, &call, p), APR_SUCCESS,
           "unfinished uploads are listed");
    ok(uploads->nelts == 1 &&
           strcmp(APR_ARRAY_IDX(uploads, 0, mdl_object_upload_t).key, "large") == 0 &&
           strcmp(APR_ARRAY_IDX(uploads, 0, mdl_object_upload_t).upload, upload) == 0,
       "with keys and ids");
    is_int(mdl_object_head(store, "large", &size, &call, p), APR_ENOENT,
           "nothing is to be seen under the key");
    if (!is_int(mdl_object_parts_complete(store, "large", upload, parts, total, &call, p),
                APR_SUCCESS, "before it is completed")) {
        printf("#   %s\n", call.why);
    }
    is_int(mdl_object_parts_complete(store, "large", upload, parts, total, &call, p), APR_SUCCESS,
           "which may be done twice");
    is_int(mdl_object_parts_abort(store, "large", upload, &call, p), APR_SUCCESS,
           "an abort does nothing then");
    is_str(range_digest("large", total, 0, total), digest(large, (apr_size_t)total),
           "the whole object is read");
    is_str(range_digest("large", total, MINIMUM - 10, 20), digest(large + MINIMUM - 10, 20),
           "and a range over the edge of two parts");
    mdl_object_reader_open(&reader, store, "large", total + 1, 0, 10, &call, p);
    is_int(mdl_object_reader_ready(reader), APR_EINCOMPLETE, "another size is noticed");
    mdl_object_reader_close(reader);
    mdl_object_reader_open(&reader, store, "large", total + 9000, total + 5, 10, &call, p);
    is_int(mdl_object_reader_ready(reader), APR_EINCOMPLETE, "also where there is nothing to read");
    mdl_object_reader_close(reader);
    mdl_object_reader_open(&reader, store, "nothing", 10, 0, 10, &call, p);
    is_int(mdl_object_reader_ready(reader), APR_ENOENT, "a missing object is");
    mdl_object_reader_close(reader);
}

static void uploads_can_be_aborted(void)
{
    const char *upload = NULL, *etag;
    apr_array_header_t *parts = apr_array_make(p, 1, sizeof(mdl_object_part_t));
    const mdl_object_body_t body = body_of("x", 1, p);

    mdl_object_parts_create(store, "left", &upload, &call, p);
    APR_ARRAY_PUSH(parts, mdl_object_part_t) = (mdl_object_part_t){1, 1000,
                                                                   part_put("left", upload, 2)};
    is_int(mdl_object_parts_complete(store, "left", upload, parts, 1000, &call, p),
           MDL_OBJECT_EBROKEN, "a part that is not there can't be joined");
    is_int(mdl_object_parts_abort(store, "left", upload, &call, p), APR_SUCCESS, "abort");
    is_int(mdl_object_parts_abort(store, "left", upload, &call, p), APR_SUCCESS, "abort again");
    is_int(mdl_object_parts_put(store, "left", upload, 1, &body, &etag, &call, p),
           MDL_OBJECT_EBROKEN, "nothing can be added then");
}

/* --- who may what --- */

static void wrong_settings_are_told_apart(void)
{
    mdl_object_store_t *right = store;

    store = store_with((mdl_object_config_t){.secret_key = "not the key"}, p);
    is_int(put("denied", "x"), MDL_OBJECT_EDENIED, "a wrong key is denied");
    ok(strstr(call.why, "DownloadsObjectKeyFile") != NULL, "with its directive");
    store = store_with(
        (mdl_object_config_t){.url = apr_pstrcat(p, store_origin, "/no-such-bucket", NULL)}, p);
    is_int(put("denied", "x"), MDL_OBJECT_EDENIED, "so is a wrong bucket");
    ok(strstr(call.why, "NoSuchBucket") != NULL, "by the store's code");
    if (!store_takes_any_region()) {
        store = store_with((mdl_object_config_t){.region = "eu-nowhere-7"}, p);
        is_int(put("denied", "x"), MDL_OBJECT_EDENIED, "and a wrong region");
        ok(strstr(call.why, "DownloadsObjectRegion") != NULL, "with its directive");
    }
    store = right;
}

static void clients_get_urls(void)
{
    const char *url, *path = apr_pstrcat(p, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                                         "/mdl-object-head", NULL);

    put("a b/\xc3\xa4", "for a client");
    url = mdl_object_url(store, "a b/\xc3\xa4", 300,
                         "attachment; filename=\"a b.zip\"; filename*=UTF-8''%C3%A4.zip",
                         "application/zip", p);
    is_str(output_of(apr_psprintf(p, "curl -sS -D '%s' '%s'", path, url), p), "for a client",
           "a URL serves the object");
    is_str(
        output_of(apr_psprintf(p, "grep -i ^content-disposition: '%s' | cut -d' ' -f2-", path), p),
        "attachment; filename=\"a b.zip\"; filename*=UTF-8''%C3%A4.zip", "with its name");
    is_str(output_of(apr_psprintf(p, "grep -i ^content-type: '%s' | cut -d' ' -f2-", path), p),
           "application/zip", "and its type");
    is_str(output_of(apr_psprintf(p, "curl -sS -o /dev/null -w '%%{http_code}' '%sx'", url), p),
           "403", "a URL that was changed does not");
    unlink(path);
}

/* --- threads --- */

static void *APR_THREAD_FUNC write_and_read(apr_thread_t *thread, void *baton)
{
    apr_pool_t *pool;
    int *right = baton;

    (void)thread;
    apr_pool_create(&pool, NULL);
    for (int i = 0; i < 5; i++) {
        mdl_object_call_t own = {.patience = apr_time_from_sec(60)};
        const char *key = apr_psprintf(pool, "thread/%pp-%d", baton, i), *bytes;
        const mdl_object_body_t body = body_of(key, strlen(key), pool);
        apr_size_t length;

        if (mdl_object_put(store, key, &body, &own, pool) == APR_SUCCESS &&
            mdl_object_get(store, key, 1000, &bytes, &length, &own, pool) == APR_SUCCESS &&
            strcmp(bytes, key) == 0 && mdl_object_delete(store, key, &own, pool) == APR_SUCCESS) {
            (*right)++;
        }
    }
    apr_pool_destroy(pool);
    return NULL;
}

static void threads_share_a_store(void)
{
    apr_thread_t *threads[6];
    int right[6] = {0};

    for (int i = 0; i < 6; i++) {
        apr_thread_create(&threads[i], NULL, write_and_read, &right[i], p);
    }
    for (int i = 0; i < 6; i++) {
        apr_status_t rv;

        apr_thread_join(&rv, threads[i]);
        is_int(right[i], 5, "a thread beside others finds what it has written");
    }
}

int main(void)
{
    p = tap_begin();
    mdl_http_global_init(p);
    if (!store_begin(p)) {
        return 0;
    }
    call.patience = apr_time_from_sec(60);
    store = store_with((mdl_object_config_t){0}, p);
    large = apr_palloc(p, MINIMUM + 1000);
    mdl_random(large, MINIMUM + 1000);
    objects_are_written_and_read();
    changed_bytes_are_refused();
    objects_come_from_files();
    objects_are_listed();
    large_objects_have_parts();
    uploads_can_be_aborted();
    wrong_settings_are_told_apart();
    clients_get_urls();
    threads_share_a_store();
    return tap_end(p);
}
