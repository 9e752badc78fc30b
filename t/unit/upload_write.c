#include "t/unit/fixtures.h"

#include "core/catalog/upload_write.h"
#include "t/unit/effects.h"

#define MAX_SIZE 100

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

/* How many bytes are there. */
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
    is_int(finish_with(writer, ""), 413, "a whole file that is announced too large is refused");
    writer = new_writer(db, id, 1, p);
    writer->write.length = 4;
    is_int(finish_with(writer, ""), 400, "one that is announced too short too");
    is_int(put(db, id, "abcdef", p), 413, "one that turns out too large");
    is_int(arrived(db, id, p), 0, "of which nothing stays");
    is_int(put(db, id, "abcd", p), 400, "and one that turns out too short");
    is_int(arrived(db, id, p), 4, "whose bytes stay");
    writer = new_writer(db, id, 1, p);
    is_int(finish_with(writer, "abcde"), 0, "the whole file replaces them");
    is_int(writer->write.arrived, 5, "it has arrived");
    is_str(upload_now(db, id, p)->sha256,
           "36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c",
           "and is a blob at once");
    is_int(put(db, id, "abcde", p), 409, "again is refused");
    is_str(problem.code, "upload_finished", "as it is finished");
    id = new_upload(db, shop, -1, p);
    is_int(put(db, id, "abc", p), 0, "a file of unknown size is accepted");
    is_int(upload_now(db, id, p)->size, 3, "and its size noted");
    id = new_upload(db, shop, -1, p);
    is_int(put(db, id, memset(apr_pcalloc(p, MAX_SIZE + 2), 'x', MAX_SIZE + 1), p), 413,
           "up to the largest size");
    id = new_upload(db, shop, 0, p);
    is_int(put(db, id, "", p), 0, "an empty file is a file");
    ok(upload_now(db, id, p)->sha256 != NULL, "and a blob");
}

static void test_pieces(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer;

    is_int(patch(db, id, 0, "abc", p), 0, "a first piece is taken");
    writer = new_writer(db, id, 0, p);
    writer->write.offset = 2;
    is_int(finish_with(writer, "cde"), 409, "one that begins elsewhere is refused");
    is_str(problem.code, "upload_offset_conflict", "because of that");
    is_int(writer->write.arrived, 3, "and gets the offset to begin at");
    is_int(patch(db, id, 3, "defg", p), 413, "one that reaches beyond the size is refused");
    is_int(arrived(db, id, p), 3, "and removed");
    is_int(patch(db, id, 3, "def", p), 0, "the last piece is taken");
    is_int(arrived(db, id, p), 6, "all is there");
    ok(upload_now(db, id, p)->sha256 == NULL, "still to be hashed");
    is_int(put(db, id, "abcdef", p), 409, "a whole file comes too late");
    is_int(patch(db, id, 6, "", p), 0, "an empty piece does no harm");
    is_int(patch(db, id, 6, "g", p), 413, "any other is too large");
    id = new_upload(db, shop, 3, p);
    is_int(patch(db, id, 0, "abc", p), 0, "a piece that is the whole file is taken");
    ok(upload_now(db, id, p)->sha256 != NULL, "and is a blob at once");
    is_int(patch(db, id, 3, "", p), 0, "an empty piece after it does no harm");
    is_int(patch(db, id, 3, "d", p), 413, "any other is too large");
    is_int(patch(db, id, 0, "abc", p), 409, "the same again begins elsewhere");
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
    is_int(patch_sized(db, id, 3, "d", 2, p), 400, "nor can it be less than what has arrived");
    is_int(patch_sized(db, id, 3, "d", 6, p), 0, "it can be announced later");
    is_int(upload_now(db, id, p)->size, 6, "and is noted");
    is_int(patch_sized(db, id, 4, "e", 6, p), 0, "announcing it again is no fault");
    is_int(patch_sized(db, id, 5, "f", 7, p), 400, "but it can't be changed");
}

static void test_checksum(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer = new_writer(db, id, 0, p);

    writer->write.digest = mdl_digest_begin("sha1", p);
    writer->write.checksum = "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="; /* of "abc" */
    is_int(finish_with(writer, "abd"), 460, "a piece with another checksum is refused");
    is_int(arrived(db, id, p), 0, "and removed");
    writer->write.digest = mdl_digest_begin("sha1", p);
    is_int(finish_with(writer, "abc"), 0, "with its own it is taken");
    writer = new_writer(db, id, 0, p);
    writer->write.offset = 3;
    writer->write.digest = mdl_digest_begin("sha1", p);
    writer->write.checksum = "";
    mdl_upload_write_begin(&writer->write, p);
    mdl_upload_write_append(&writer->write, "de", 2);
    mdl_upload_write_cut(&writer->write);
    is_int(arrived(db, id, p), 3, "cut off before its checksum was compared it leaves nothing");
}

static void test_cut(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *first = new_writer(db, id, 0, p);

    is_int(mdl_upload_write_begin(&first->write, p), APR_SUCCESS, "a writer begins");
    is_int(patch(db, id, 0, "abc", p), 423, "another one is locked out");
    is_str(problem.code, "upload_locked", "and told so");
    mdl_upload_write_append(&first->write, "abc", 3);
    mdl_upload_write_cut(&first->write);
    is_int(arrived(db, id, p), 3, "what came before a cut stays");
    is_int(patch(db, id, 3, "def", p), 0, "and another one goes on from there");
}

static void test_states(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    mdl_upload_get_t get = {.id = new_upload(db, shop, 6, p), .shop_id = shop, .problem = &problem};
    writer_t *writer = new_writer(db, get.id, 1, p);
    const char *id;

    is_int(patch(db, "upl_00000000000000000000000000", 0, "a", p), 404, "no upload, no write");
    mdl_upload_write_begin(&writer->write, p);
    mdl_db_write(db, mdl_upload_abort_effect, &get, p);
    mdl_upload_write_append(&writer->write, "abcdef", 6);
    is_int(status_of(mdl_upload_write_end(&writer->write)), 409,
           "what was aborted under its writer is finished");
    is_int(put(db, get.id, "abcdef", p), 409, "a whole file can't be put to an aborted upload");
    is_int(patch(db, get.id, 0, "abc", p), 410, "and a piece finds it gone");
    id = new_upload(db, shop, 6, p);
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(3601));
    is_int(patch(db, id, 0, "abc", p), 410, "as an expired one is");
    is_int(put(db, id, "abcdef", p), 410, "for a whole file too");
    is_str(problem.code, "upload_gone", "which is reported as gone");
}

static void test_outage(mdl_db_t *db, apr_int64_t shop, apr_pool_t *p)
{
    const char *id = new_upload(db, shop, 6, p);
    writer_t *writer = new_writer(db, id, 1, p);

    mdl_upload_write_begin(&writer->write, p);
    mdl_upload_write_append(&writer->write, "abcdef", 6);
    writer->db = NULL;
    is_int(mdl_upload_write_end(&writer->write), MDL_DB_EGONE, "an outage at the end is reported");
    is_int(arrived(db, id, p), 6, "and the bytes are kept");
    is_int(patch(NULL, id, 0, "a", p), -1, "nothing begins without the database");
    is_int(patch(db, id, 6, "", p), 0, "an empty piece is taken");
    is_int(arrived(db, id, p), 6, "and changes nothing");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    const char *temp = getenv("TMPDIR");
    char *folder = apr_pstrcat(p, temp != NULL ? temp : "/tmp", "/mdl-upload.XXXXXX", NULL);
    mdl_db_t *db = database_ready(database, p);
    apr_int64_t shop = make_shop(db, "uploads.test", p);

    if (mkdtemp(folder) == NULL || mdl_storage_open(&storage, folder, p) != APR_SUCCESS) {
        printf("Bail out! storage\n");
        exit(2);
    }
    test_whole(db, shop, p);
    test_pieces(db, shop, p);
    test_size(db, shop, p);
    test_checksum(db, shop, p);
    test_cut(db, shop, p);
    test_outage(db, shop, p);
    test_states(db, shop, p);
    is_int(system(apr_pstrcat(p, "rm -r ", folder, NULL)), 0, "the folder goes");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
