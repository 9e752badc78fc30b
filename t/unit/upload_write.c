#include "t/unit/fixtures.h"

#include "core/catalog/upload_write.h"
#include "t/unit/effects.h"

#define MAX_SIZE 100

static char *folder;
static mdl_storage_t *storage;
static mdl_problem_t problem;

/* A write whose database can be made unavailable. */
typedef struct {
    mdl_db_t *db;
    mdl_upload_write_t write;
    apr_pool_t *pool;
} writer_t;

static apr_status_t run(void *baton, mdl_db_run_fn *how, mdl_effect_fn *effect, void *arg)
{
    writer_t *writer = baton;

    return writer->db != NULL ? how(writer->db, effect, arg, writer->pool) : MDL_DB_EGONE;
}

static writer_t *new_writer(mdl_db_t *db, const char *id, int whole, apr_pool_t *p)
{
    writer_t *writer = apr_pcalloc(p, sizeof *writer);

    problem = (mdl_problem_t){0};
    writer->db = db;
    writer->pool = p;
    writer->write = (mdl_upload_write_t){.id = id,
                                         .storage = storage,
                                         .max_size = MAX_SIZE,
                                         .run = run,
                                         .baton = writer,
                                         .whole = whole,
                                         .length = -1,
                                         .size = -1,
                                         .problem = &problem};
    return writer;
}

static const char *new_upload(mdl_db_t *db, apr_int64_t shop, apr_int64_t size, apr_pool_t *p)
{
    mdl_upload_begin_t begin = {
        .lifetime = apr_time_from_sec(3600),
        .max_open = 1000,
        .upload = {.shop_id = shop, .filename = "f", .title = "f", .size = size},
        .problem = &problem};

    if (mdl_db_write(db, mdl_upload_begin_effect, &begin, p) != APR_SUCCESS) {
        printf("Bail out! upload: %s\n", mdl_db_error(db));
        exit(2);
    }
    return begin.upload.id;
}

static const mdl_upload_t *upload_now(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    mdl_upload_get_t get = {.id = id, .problem = &problem};

    mdl_db_read(db, mdl_upload_find_live_effect, &get, p);
    return get.upload;
}

/* The status of a problem; 0 for success, -1 for another error. */
static int status_of(apr_status_t rv)
{
    return rv == APR_SUCCESS ? 0 : rv == MDL_EPROBLEM ? problem.status : -1;
}

static int finish_with(writer_t *writer, const char *data)
{
    apr_status_t rv = mdl_upload_write_begin(&writer->write, writer->pool);

    if (rv != APR_SUCCESS) {
        return status_of(rv);
    }
    rv = mdl_upload_write_append(&writer->write, data, strlen(data));
    if (rv == APR_SUCCESS) {
        rv = mdl_upload_write_end(&writer->write);
    } else {
        mdl_upload_write_cut(&writer->write);
    }
    return status_of(rv);
}

static int put(mdl_db_t *db, const char *id, const char *data, apr_pool_t *p)
{
    return finish_with(new_writer(db, id, 1, p), data);
}

static int patch(mdl_db_t *db, const char *id, apr_int64_t offset, const char *data, apr_pool_t *p)
{
    writer_t *writer = new_writer(db, id, 0, p);

    writer->write.offset = offset;
    return finish_with(writer, data);
}

/* The number of bytes that have arrived. */
static apr_int64_t arrived(mdl_db_t *db, const char *id, apr_pool_t *p)
{
    apr_int64_t offset = -1;

    mdl_upload_offset(storage, upload_now(db, id, p), &offset, p);
    return offset;
}

static void test_whole(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 5, p);
    writer_t *writer = new_writer(db, id, 1, p);

    writer->write.length = 6;
    is_int(finish_with(writer, ""), 413,
           "a whole file is refused if its announced length is too large");
    writer = new_writer(db, id, 1, p);
    writer->write.length = 4;
    is_int(finish_with(writer, ""), 400,
           "a whole file is refused if its announced length is too small");
    is_int(put(db, id, "abcdef", p), 413,
           "a whole file is refused if it turns out to be too large");
    is_int(arrived(db, id, p), 0, "no byte of it is kept");
    is_int(put(db, id, "abcd", p), 400, "a whole file is refused if it turns out to be too short");
    is_int(arrived(db, id, p), 4, "its bytes are kept");
    writer = new_writer(db, id, 1, p);
    is_int(finish_with(writer, "abcde"), 0, "a whole file replaces earlier bytes");
    is_int(writer->write.arrived, 5, "all its bytes have arrived");
    is_str(upload_now(db, id, p)->sha256,
           "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c",
           "a whole file is a blob at once");
    is_int(put(db, id, "abcde", p), 409, "a second file is refused");
    is_str(problem.code, "upload_finished", "the code says that the upload is finished");
    id = new_upload(db, shop, -1, p);
    is_int(put(db, id, "abc", p), 0, "a file of unknown size is accepted");
    is_int(upload_now(db, id, p)->size, 3, "its size is stored");
    id = new_upload(db, shop, -1, p);
    is_int(put(db, id, memset(apr_pcalloc(p, MAX_SIZE + 2), 'x', MAX_SIZE + 1), p), 413,
           "a file larger than the limit is refused");
    id = new_upload(db, shop, 0, p);
    is_int(put(db, id, "", p), 0, "an empty file is accepted");
    ok(upload_now(db, id, p)->sha256 != NULL, "an empty file is a blob at once");
}

static void test_pieces(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer;

    is_int(patch(db, id, 0, "abc", p), 0, "a first piece is accepted");
    writer = new_writer(db, id, 0, p);
    writer->write.offset = 2;
    is_int(finish_with(writer, "cde"), 409, "a piece that begins elsewhere is refused");
    is_str(problem.code, "upload_offset_conflict", "the code says that the offset is wrong");
    is_int(writer->write.arrived, 3, "the right offset is returned");
    is_int(patch(db, id, 3, "defg", p), 413, "a piece that exceeds the size is refused");
    is_int(arrived(db, id, p), 3, "the refused piece is removed");
    is_int(patch(db, id, 3, "def", p), 0, "the last piece is accepted");
    is_int(arrived(db, id, p), 6, "all bytes have arrived");
    ok(upload_now(db, id, p)->sha256 == NULL, "a file of several pieces is not hashed yet");
    is_int(put(db, id, "abcdef", p), 409, "a whole file is refused when all bytes have arrived");
    is_int(patch(db, id, 6, "", p), 0, "an empty piece after the last one is accepted");
    is_int(patch(db, id, 6, "g", p), 413, "a further piece is too large");
    id = new_upload(db, shop, 3, p);
    is_int(patch(db, id, 0, "abc", p), 0, "a piece that is the whole file is accepted");
    ok(upload_now(db, id, p)->sha256 != NULL, "such a piece is a blob at once");
    is_int(patch(db, id, 3, "", p), 0, "an empty piece after such a piece is accepted");
    is_int(patch(db, id, 3, "d", p), 413, "a further piece after such a piece is too large");
    is_int(patch(db, id, 0, "abc", p), 409, "the same piece again has the wrong offset");
}

/* A piece that announces the size of the file. */
static int patch_sized(mdl_db_t *db, const char *id, apr_int64_t offset, const char *data,
                       apr_int64_t size, apr_pool_t *p)
{
    writer_t *writer = new_writer(db, id, 0, p);

    writer->write.offset = offset;
    writer->write.size = size;
    return finish_with(writer, data);
}

static void test_size(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, -1, p);

    is_int(patch_sized(db, id, 0, "abc", MAX_SIZE + 1, p), 413,
           "a piece can't announce a size too large");
    is_int(patch(db, id, 0, "abc", p), 0, "a piece need not announce the size");
    is_int(patch_sized(db, id, 3, "d", 2, p), 400,
           "a size smaller than what has arrived is refused");
    is_int(patch_sized(db, id, 3, "d", 6, p), 0, "the size can be announced later");
    is_int(upload_now(db, id, p)->size, 6, "the announced size is stored");
    is_int(patch_sized(db, id, 4, "e", 6, p), 0, "the same size can be announced again");
    is_int(patch_sized(db, id, 5, "f", 7, p), 400, "the size can't be changed");
}

static void test_checksum(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer = new_writer(db, id, 0, p);

    writer->write.digest = mdl_digest_begin("sha1", p);
    writer->write.checksum = "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="; /* of "abc" */
    is_int(finish_with(writer, "abd"), 460, "a piece with another checksum is refused");
    is_int(arrived(db, id, p), 0, "a piece with another checksum is removed");
    writer->write.digest = mdl_digest_begin("sha1", p);
    is_int(finish_with(writer, "abc"), 0, "a piece with its own checksum is accepted");
    writer = new_writer(db, id, 0, p);
    writer->write.offset = 3;
    writer->write.digest = mdl_digest_begin("sha1", p);
    writer->write.checksum = "";
    mdl_upload_write_begin(&writer->write, p);
    mdl_upload_write_append(&writer->write, "de", 2);
    mdl_upload_write_cut(&writer->write);
    is_int(arrived(db, id, p), 3, "a piece cut off before its checksum was compared is removed");
}

static void test_cut(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *first = new_writer(db, id, 0, p);

    is_int(mdl_upload_write_begin(&first->write, p), APR_SUCCESS, "a writer begins");
    is_int(patch(db, id, 0, "abc", p), 423, "another writer is refused");
    is_str(problem.code, "upload_locked", "the code says that the upload is locked");
    mdl_upload_write_append(&first->write, "abc", 3);
    mdl_upload_write_cut(&first->write);
    is_int(arrived(db, id, p), 3, "bytes before a cut are kept");
    is_int(patch(db, id, 3, "def", p), 0, "another writer can continue there");
}

static void test_states(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_upload_get_t get = {.id = new_upload(db, shop, 6, p), .shop_id = shop, .problem = &problem};
    writer_t *writer = new_writer(db, get.id, 1, p);
    const char *id;

    is_int(patch(db, "upl_00000000000000000000000000", 0, "a", p), 404,
           "an unknown upload can't be written");
    mdl_upload_write_begin(&writer->write, p);
    mdl_db_write(db, mdl_upload_abort_effect, &get, p);
    mdl_upload_write_append(&writer->write, "abcdef", 6);
    is_int(status_of(mdl_upload_write_end(&writer->write)), 409,
           "an upload aborted while it is written is finished");
    is_int(put(db, get.id, "abcdef", p), 409, "a whole file can't be put to an aborted upload");
    is_int(patch(db, get.id, 0, "abc", p), 410, "an aborted upload is gone for a piece");
    id = new_upload(db, shop, 6, p);
    mdl_db_command(db, apr_psprintf(p, "UPDATE upload SET expires_at = 1 WHERE id = '%s'", id));
    is_int(patch(db, id, 0, "abc", p), 410, "an expired upload is gone for a piece");
    is_int(put(db, id, "abcdef", p), 410, "an expired upload is gone for a whole file");
    is_str(problem.code, "upload_gone", "the code says that the upload is gone");
}

static void test_outage(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer = new_writer(db, id, 1, p);

    mdl_upload_write_begin(&writer->write, p);
    mdl_upload_write_append(&writer->write, "abcdef", 6);
    writer->db = NULL;
    is_int(mdl_upload_write_end(&writer->write), MDL_DB_EGONE, "an outage at the end is reported");
    is_int(arrived(db, id, p), 6, "the bytes are kept");
    is_int(patch(NULL, id, 0, "a", p), -1, "no write begins without the database");
    is_int(patch(db, id, 6, "", p), 0, "an empty piece after the outage is accepted");
    is_int(arrived(db, id, p), 6, "it changes nothing");
}

static ino_t file_of(const char *id, apr_pool_t *p)
{
    struct stat file = {0};

    stat(apr_pstrcat(p, folder, "/partial/", id, NULL), &file);
    return file.st_ino;
}

/* Bytes must be synced to survive a power cut. */
static void test_complete(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_upload_complete_t complete = {.id = new_upload(db, shop, 6, p),
                                      .shop_id = shop,
                                      .storage = storage,
                                      .max_attempts = 1,
                                      .problem = &problem};

    patch(db, complete.id, 0, "abc", p);
    is_int(mdl_upload_sync(&complete, p), APR_SUCCESS, "bytes that have arrived are synced");
    patch(db, complete.id, 3, "def", p);
    is_int(status_of(mdl_db_write(db, mdl_upload_complete_effect, &complete, p)), 409,
           "others don't count when an upload is completed");
    is_str(problem.code, "upload_incomplete", "the code says so");
    atomic_store(&synced_file, 0);
    is_int(mdl_upload_sync(&complete, p), APR_SUCCESS, "they are synced, too");
    is_int((apr_int64_t)atomic_load(&synced_file), (apr_int64_t)file_of(complete.id, p),
           "in the upload's own file");
    problem = (mdl_problem_t){0};
    is_int(status_of(mdl_db_write(db, mdl_upload_complete_effect, &complete, p)), 0,
           "now the upload is completed");
    ok(complete.job != NULL, "a job hashes it");
    complete.id = new_upload(db, shop, 3, p);
    put(db, complete.id, "abc", p);
    is_int(mdl_upload_sync(&complete, p), APR_SUCCESS, "an upload that is a blob needs no syncing");
    is_int(status_of(mdl_db_write(db, mdl_upload_complete_effect, &complete, p)), 0,
           "it is completed");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    mdl_db_t *db = database_ready(database, p);
    apr_int64_t shop = make_shop(db, "uploads.test", p);

    folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-upload.XXXXXX", NULL);
    if (mkdtemp(folder) == NULL ||
        mdl_storage_open(&storage, &(mdl_storage_config_t){.folder = folder}, p) != APR_SUCCESS) {
        printf("Bail out! storage\n");
        exit(2);
    }
    test_whole(db, shop, p);
    test_pieces(db, shop, p);
    test_size(db, shop, p);
    test_checksum(db, shop, p);
    test_cut(db, shop, p);
    test_outage(db, shop, p);
    test_complete(db, shop, p);
    test_states(db, shop, p);
    is_int(system(apr_pstrcat(p, "rm -r ", folder, NULL)), 0, "the folder is removed");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
