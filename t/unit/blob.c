/*
 * Blobs that several processes use at once: a reference made during the sweep either keeps the blob
 * or is refused.
 */
#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"

#include "core/catalog/blob.h"
#include "core/catalog/stray_object.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static apr_int64_t shop;
static mdl_storage_t *storage;

static mdl_blob_t make_blob(const char *text, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(text, strlen(text), digest);
    return (mdl_blob_t){.sha256 = mdl_hex(digest, sizeof digest, p), .size = 5, .crc32 = 1};
}

static void make_file(const mdl_blob_t *blob, apr_pool_t *p)
{
    int file = open(mdl_storage_place(storage, blob, p), O_CREAT | O_WRONLY, 0600);

    ok(file >= 0 && close(file) == 0, "a file is stored");
}

typedef struct {
    apr_int64_t asset_id;
    mdl_blob_t blob;
} refer_t;

static apr_status_t refer(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    const refer_t *to = arg;
    mdl_asset_bytes_t bytes = {.blob = to->blob};
    apr_status_t rv = mdl_asset_ready(in, to->asset_id, &bytes, p);

    return rv == APR_SUCCESS ? mdl_blob_check(db, bytes.held, storage, &to->blob, p) : rv;
}

static apr_status_t leave(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_blob_leave(in, arg, p);
}

static apr_status_t orphans(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_blob_orphans(in, p, arg);
}

static apr_status_t sweep_orphan(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_blob_sweep_orphan(in, p, arg);
}

static int is_released(const char *sha256, apr_pool_t *p)
{
    mdl_blob_released_t find = {.before = apr_time_now(), .limit = 10};
    int found = 0;

    mdl_db_read(db, mdl_blob_released_effect, &find, p);
    for (int i = 0; i < find.released->nelts; i++) {
        found += strcmp(APR_ARRAY_IDX(find.released, i, const char *), sha256) == 0;
    }
    return found;
}

/* A blob with its file, without references. */
static mdl_blob_t unused_blob(const char *text, apr_pool_t *p)
{
    mdl_blob_t blob = make_blob(text, p);

    make_file(&blob, p);
    is_int(mdl_db_write(db, leave, &blob, p), APR_SUCCESS, "  its last reference is released");
    return blob;
}

static void test_referred_first(const database_t *database, apr_pool_t *p)
{
    mdl_blob_t blob = unused_blob("first", p);
    refer_t to = {make_asset(db, shop, "first", 0, p), blob};
    mdl_blob_sweep_t sweep = {storage, blob.sha256};

    meets(db,
          (meeting_t){database, refer, &to, mdl_blob_sweep_effect, &sweep, APR_SUCCESS, NULL, 0},
          "a blob is referred to, then swept", p);
    is_int(mdl_storage_find(storage, &blob, p), APR_SUCCESS, "a blob that is referred to stays");
    ok(!is_released(blob.sha256, p), "the sweep does not find it again");
}

static void test_swept_first(const database_t *database, apr_pool_t *p)
{
    mdl_blob_t blob = unused_blob("second", p);
    refer_t to = {make_asset(db, shop, "second", 0, p), blob};
    mdl_blob_sweep_t sweep = {storage, blob.sha256};

    meets(
        db,
        (meeting_t){database, mdl_blob_sweep_effect, &sweep, refer, &to, APR_EINCOMPLETE, NULL, 0},
        "a blob is swept, then referred to", p);
    is_int(mdl_storage_find(storage, &blob, p), APR_ENOENT, "the blob's file is removed");
    make_file(&blob, p);
    is_int(mdl_db_write(db, refer, &to, p), APR_SUCCESS,
           "when it is stored again it can be referred to");
}

static void test_alone(apr_pool_t *p)
{
    mdl_blob_t blob = unused_blob("third", p);
    mdl_blob_sweep_t sweep = {storage, blob.sha256};

    ok(is_released(blob.sha256, p), "an unused blob is found");
    is_int(mdl_db_write(db, mdl_blob_sweep_effect, &sweep, p), APR_SUCCESS, "it is swept");
    is_int(mdl_db_write(db, mdl_blob_sweep_effect, &sweep, p), APR_ENOENT,
           "it can't be swept twice");
    is_int(mdl_storage_remove(storage, &blob, p), APR_SUCCESS, "no file is left to remove");
    is_int(mdl_storage_remove(storage, &(mdl_blob_t){.sha256 = "../secret"}, p), APR_EINVAL,
           "an invalid name is refused");
}

/* Nothing is removed while anybody holds the storage. */
static void test_held(apr_pool_t *p)
{
    mdl_blob_t blob = unused_blob("held", p), orphan = make_blob("orphan while held", p);
    mdl_blob_sweep_t sweep = {storage, blob.sha256}, other = {storage, orphan.sha256};
    mdl_storage_hold_t first = {.user = "root"}, second = {.user = "root"}, oldest;
    mdl_problem_t problem = {0};
    mdl_storage_release_t one = {.problem = &problem}, all = {.problem = &problem};

    make_file(&orphan, p);
    is_int(mdl_db_write(db, mdl_storage_hold_effect, &first, p), APR_SUCCESS, "it is held");
    is_int(mdl_db_write(db, mdl_storage_hold_effect, &second, p), APR_SUCCESS, "twice");
    is_int(mdl_db_write(db, mdl_blob_sweep_effect, &sweep, p), APR_EAGAIN, "a blob stays");
    is_int(mdl_db_write(db, sweep_orphan, &other, p), APR_EAGAIN, "and a file without a row");
    ok(is_released(blob.sha256, p), "it is looked at again");
    one.id = first.id;
    is_int(mdl_db_write(db, mdl_storage_release_effect, &one, p), APR_SUCCESS, "one hold ends");
    is_int(mdl_db_write(db, mdl_storage_release_effect, &one, p), MDL_EPROBLEM, "but once");
    is_int(mdl_db_write(db, mdl_blob_sweep_effect, &sweep, p), APR_EAGAIN, "the other is enough");
    is_int(mdl_storage_held(db, &oldest, p), APR_SUCCESS, "which is known");
    is_str(oldest.id, second.id, "by its id");
    is_int(mdl_db_write(db, mdl_storage_release_effect, &all, p), APR_SUCCESS, "all end");
    is_int(mdl_storage_held(db, &oldest, p), APR_ENOENT, "nobody holds it");
    is_int(mdl_db_write(db, mdl_blob_sweep_effect, &sweep, p), APR_SUCCESS, "the blob goes");
    is_int(mdl_db_write(db, sweep_orphan, &other, p), APR_SUCCESS, "and the file");
    is_int(mdl_storage_find(storage, &orphan, p), APR_ENOENT, "which is gone");
}

/* The texts of those of two files that have no row. */
static const char *orphans_of(const mdl_blob_t *first, const mdl_blob_t *second, apr_pool_t *p)
{
    apr_array_header_t *ids = texts_of(p, 2, first->sha256, second->sha256);
    mdl_blob_orphans_t find = {.ids = ids};
    const char *found = "";

    if (mdl_db_read(db, orphans, &find, p) != APR_SUCCESS) {
        return "an error";
    }
    for (int i = 0; i < find.orphans->nelts; i++) {
        int is_first = strcmp(APR_ARRAY_IDX(find.orphans, i, const char *), first->sha256) == 0;

        found = apr_pstrcat(p, found, is_first ? "first" : "second", NULL);
    }
    return found;
}

static void test_orphan(apr_pool_t *p)
{
    mdl_blob_t orphan = make_blob("orphan", p), blob;
    mdl_blob_sweep_t sweep = {storage, orphan.sha256};

    make_file(&orphan, p);
    blob = unused_blob("known", p);
    is_str(orphans_of(&orphan, &blob, p), "first", "a file without a row is an orphan");
    is_int(mdl_db_write(db, sweep_orphan, &sweep, p), APR_SUCCESS, "it is swept");
    is_int(mdl_storage_find(storage, &orphan, p), APR_ENOENT, "its file is gone");
    is_str(orphans_of(&orphan, &blob, p), "first", "and no row is left");
    sweep.sha256 = blob.sha256;
    is_int(mdl_db_write(db, sweep_orphan, &sweep, p), APR_SUCCESS, "what has a row is not swept");
    is_int(mdl_storage_find(storage, &blob, p), APR_SUCCESS, "its file is there");
}

static void test_orphan_stored_first(const database_t *database, apr_pool_t *p)
{
    mdl_blob_t blob = make_blob("fourth", p);
    refer_t to = {make_asset(db, shop, "fourth", 0, p), blob};
    mdl_blob_sweep_t sweep = {storage, blob.sha256};

    make_file(&blob, p);
    meets(db, (meeting_t){database, refer, &to, sweep_orphan, &sweep, APR_SUCCESS, NULL, 0},
          "an orphan is stored again, then swept", p);
    is_int(mdl_storage_find(storage, &blob, p), APR_SUCCESS, "its file stays");
}

static void test_orphan_swept_first(const database_t *database, apr_pool_t *p)
{
    mdl_blob_t blob = make_blob("fifth", p);
    refer_t to = {make_asset(db, shop, "fifth", 0, p), blob};
    mdl_blob_sweep_t sweep = {storage, blob.sha256};

    make_file(&blob, p);
    meets(db, (meeting_t){database, sweep_orphan, &sweep, refer, &to, APR_EINCOMPLETE, NULL, 0},
          "an orphan is swept, then stored again", p);
    is_int(mdl_storage_find(storage, &blob, p), APR_ENOENT, "whoever does is told to");
}

/* --- objects of uploads that another write has taken over --- */

static apr_status_t begin_stray(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_stray_begin(in, "upl_taken_over", arg, p);
}

static apr_status_t take_strays(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_stray_take(in, p, arg);
}

/* How many keys there are, all of which are taken to be removed, unless a blob has them. */
static int strays_taken(apr_pool_t *p)
{
    mdl_stray_take_t take = {.now = apr_time_now() + apr_time_from_sec(7 * 86400), .limit = 10};

    return mdl_db_write(db, take_strays, &take, p) == APR_SUCCESS ? take.seen : -1;
}

static mdl_upload_finish_t late_write(const char *text, apr_pool_t *p)
{
    mdl_upload_finish_t finish = {.id = "upl_taken_over",
                                  .write_id = "another",
                                  .storage = storage,
                                  .blob = make_blob(text, p)};

    is_int(mdl_db_write(db, begin_stray, &finish.blob.object, p), APR_SUCCESS, "an object begins");
    return finish;
}

static void test_late_object(apr_pool_t *p)
{
    mdl_upload_finish_t finish = late_write("late", p);

    is_int(mdl_db_write(db, mdl_upload_finish_effect, &finish, p), APR_SUCCESS,
           "a late write has made a blob");
    ok(finish.late && is_released(finish.blob.sha256, p), "which is left to the sweep");
    is_int(strays_taken(p), 0, "and whose object is no stray, for others may share it");
    finish = late_write("later", p);
    is_int(strays_taken(p), 1, "the object of another is being removed");
    is_int(mdl_db_write(db, mdl_upload_finish_effect, &finish, p), APR_EINCOMPLETE,
           "so it makes no blob");
    ok(!is_released(finish.blob.sha256, p), "that others could share");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-blob.XXXXXX", NULL);

    if (mkdtemp(folder) == NULL ||
        mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder, .reserve = 0}, p) !=
            APR_SUCCESS) {
        printf("Bail out! storage\n");
        exit(2);
    }
    db = database_ready(database, p);
    shop = make_shop(db, "a.test", p);
    test_orphan(p);
    test_alone(p);
    test_held(p);
    test_late_object(p);
    if (database->dialect == MDL_PGSQL) {
        test_referred_first(database, p);
        test_swept_first(database, p);
        test_orphan_stored_first(database, p);
        test_orphan_swept_first(database, p);
    }
    is_int(system(apr_pstrcat(p, "rm -r ", folder, NULL)), 0, "the folder is removed");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
