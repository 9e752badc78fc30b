/*
 * Download sessions of an archive: which of its files they take, give back and count, besides
 * sessions of the files' own links.
 */
#include "t/unit/sessions.h"

#include "core/download/archive.h"

#define FILE_SIZE 4321 /* of each of the archive's files */

static apr_int64_t files[3]; /* in the order of the archive */
static apr_int64_t at[3];    /* offsets in the archive */
static apr_int64_t zip_size;

typedef struct {
    apr_int64_t assignment_id;
    mdl_archive_t archive;
} read_archive_t;

static apr_status_t read_archive(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    read_archive_t *read = arg;

    return mdl_archive_read(of, read->assignment_id, NULL, &read->archive, p);
}

static mdl_archive_t archive_of(apr_int64_t assignment_id, apr_pool_t *p)
{
    read_archive_t read = {.assignment_id = assignment_id};

    if (mdl_db_read(db, read_archive, &read, p) != APR_SUCCESS) {
        printf("Bail out! archive: %s\n", mdl_db_error(db));
        exit(2);
    }
    return read.archive;
}

/* Records the offsets of an archive's files. */
static void note_places(apr_int64_t assignment_id, apr_pool_t *p)
{
    mdl_archive_t archive = archive_of(assignment_id, p);

    for (int i = 0; i < archive.files->nelts; i++) {
        at[i] = mdl_zip_data(archive.zip, i);
    }
    zip_size = mdl_zip_size(archive.zip);
}

static mdl_signed_file_t buy_archive(const char *order_id, const char *product, apr_pool_t *p)
{
    apr_array_header_t *all = ids_of(p, 3, files[0], files[1], files[2]);
    mdl_signed_file_t bought = {.assignment_id = buy_all(order_id, product, all, p)};

    note_places(bought.assignment_id, p);
    return bought;
}

static void change_archive(const mdl_signed_file_t *bought, const char *product,
                           apr_array_header_t *these, apr_pool_t *p)
{
    make_mapping(db, new_mapping(shop, product, these, p), p);
    note_places(bought->assignment_id, p);
}

static const char *quoted(const char *sha256, apr_pool_t *p)
{
    return apr_pstrcat(p, "\"", sha256, "\"", NULL);
}

static const mdl_layout_t *layout_of_archive(const mdl_archive_t *archive, apr_pool_t *p)
{
    mdl_layout_t *layout = apr_palloc(p, sizeof *layout);
    int n = archive->files->nelts;
    mdl_layout_file_t *all = apr_pcalloc(p, ((apr_size_t)n + 1) * sizeof *all);

    for (int i = 0; i < n; i++) {
        const mdl_archive_file_t *one = &APR_ARRAY_IDX(archive->files, i, mdl_archive_file_t);

        all[i] = (mdl_layout_file_t){.asset_id = one->asset_id,
                                     .from = mdl_zip_data(archive->zip, i),
                                     .size = one->size,
                                     .version = mdl_progress_version(one->sha256)};
    }
    all[n].from = all[n - 1].from + all[n - 1].size;
    all[n].size = mdl_zip_size(archive->zip) - all[n].from;
    *layout = (mdl_layout_t){n + 1, all};
    return layout;
}

static mdl_session_begin_t begin(const mdl_signed_file_t *link, int limit, int whole, apr_pool_t *p)
{
    mdl_archive_t archive = archive_of(link->assignment_id, p);
    mdl_session_begin_t session = {.link = link,
                                   .layout = layout_of_archive(&archive, p),
                                   .etag = quoted(archive.tag, p),
                                   .size = mdl_zip_size(archive.zip),
                                   .limit = limit,
                                   .whole = whole};

    begin_session(&session, p);
    return session;
}

static const char *range(apr_int64_t from, apr_int64_t to, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT "-%" APR_INT64_T_FMT, from, to - 1);
}

static mdl_entitlement_t fetch_part(const mdl_signed_file_t *link, int limit, apr_int64_t from,
                                    apr_int64_t to, apr_pool_t *p)
{
    mdl_session_begin_t session = begin(link, limit, to - from >= zip_size, p);

    if (session.entitlement == MDL_ENTITLEMENT_OK) {
        settle(&session, range(from, to, p), to - from, p);
    }
    return session.entitlement;
}

/* Delivers bytes of one of the files by a separate link. */
static void fetch_file(const mdl_signed_file_t *link, int i, apr_int64_t from, apr_int64_t to,
                       apr_pool_t *p)
{
    mdl_archive_t archive = archive_of(link->assignment_id, p);
    const mdl_archive_file_t *entry = &APR_ARRAY_IDX(archive.files, i, mdl_archive_file_t);
    const char *sha256 = mdl_hex(entry->sha256, sizeof entry->sha256, p);
    mdl_session_begin_t session = {.link = link,
                                   .layout = layout_of_file(link->asset_id, entry->size,
                                                            mdl_progress_version(entry->sha256), p),
                                   .etag = quoted(sha256, p),
                                   .size = entry->size,
                                   .whole = to - from >= entry->size};

    begin_session(&session, p);
    if (session.entitlement == MDL_ENTITLEMENT_OK) {
        settle(&session, range(from, to, p), to - from, p);
    }
}

typedef struct {
    apr_int64_t assignment_id;
    char text[32];
} read_used_t;

static apr_status_t read_used(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    read_used_t *read = arg;
    mdl_rows_t *rows;
    apr_int64_t used[3] = {-1, -1, -1};
    apr_status_t rv = mdl_db_select(of, &rows, p,
                                    MDL_Q(ARCHIVE_FILES,
                                          .ids = ids_of(p, 3, files[0], files[1], files[2]),
                                          .assignment_id = read->assignment_id));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        used[mdl_rows_int(rows, 0)] = mdl_rows_int(rows, 7);
    }
    apr_snprintf(read->text, sizeof read->text,
                 "%" APR_INT64_T_FMT " %" APR_INT64_T_FMT " %" APR_INT64_T_FMT, used[0], used[1],
                 used[2]);
    return rv;
}

/* Checks how many downloads of each file are used. */
static void is_used(const mdl_signed_file_t *bought, const char *expected, const char *name,
                    apr_pool_t *p)
{
    read_used_t read = {.assignment_id = bought->assignment_id};

    mdl_db_read(db, read_used, &read, p);
    is_str(read.text, expected, name);
}

static mdl_signed_file_t *link_of_file(const mdl_signed_file_t *bought, int i, apr_pool_t *p)
{
    mdl_signed_file_t one = {.assignment_id = bought->assignment_id, .asset_id = files[i]};

    return link_to(&one, p);
}

static void test_archive(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("6", PRODUCT("6"), p);
    mdl_signed_file_t *first = link_to(&bought, p), *second = link_to(&bought, p);
    apr_int64_t middle = at[1] + FILE_SIZE / 2;

    fetch_part(first, 2, 0, middle, p);
    is_used(&bought, "1 1 1", "an archive takes one download of each file", p);
    sweep(p);
    is_used(&bought, "1 0 0", "when it is idle, only the delivered file counts", p);
    is_int(status(first, p), MDL_SESSION_RETURNED, "the archive's session is returned");
    fetch_part(first, 1, middle, middle + 1, p);
    is_used(&bought, "1 1 1", "continuing the same link does not take that file again", p);
    sweep(p);
    is_used(&bought, "1 0 0", "that file is not given back when the link is idle again", p);
    fetch_part(first, 1, middle + 1, zip_size, p);
    sweep(p);
    is_used(&bought, "1 1 1", "with the rest, each file counts once", p);
    is_int(status(first, p), MDL_SESSION_COUNTED, "the archive's session is counted");
    is_int(fetch_part(second, 1, 0, 1, p), MDL_ENTITLEMENT_EXHAUSTED,
           "a second archive is refused if the limit is 1");

    is_int(fetch_part(second, 2, 0, zip_size - 22, p), MDL_ENTITLEMENT_OK,
           "a second archive is allowed if the limit is 2");
    sweep(p);
    is_used(&bought, "2 2 2", "it counts without the end of its directory", p);
    is_int(status(second, p), MDL_SESSION_COUNTED,
           "its session is counted without the end of its directory");
    is_int(begin(second, 2, 0, p).generation, 1, "a part of it belongs to the same session");
    is_int(fetch_part(second, 2, 0, zip_size, p), MDL_ENTITLEMENT_EXHAUSTED,
           "the whole is refused at the limit");
    is_int(begin(second, 3, 1, p).generation, 2, "the whole is another session if the limit is 3");
    is_used(&bought, "3 3 3", "the whole takes another download of each file", p);
}

static void test_archive_and_files(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("7", PRODUCT("7"), p);
    mdl_signed_file_t *zip = link_to(&bought, p);
    mdl_signed_file_t *lone = link_of_file(&bought, 1, p);

    fetch_part(zip, 0, at[1], at[1] + 2000, p);
    sweep(p);
    is_used(&bought, "0 0 0", "a part of a file in an archive uses no download", p);
    fetch_file(lone, 1, 2000, FILE_SIZE, p);
    is_int(status(lone, p), MDL_SESSION_COUNTED,
           "the file is whole with the rest from its own link");
    is_used(&bought, "0 1 0", "the whole file uses one download", p);
    fetch_file(link_of_file(&bought, 1, p), 1, 2000, FILE_SIZE, p);
    sweep(p);
    is_used(&bought, "0 1 0", "the same part does not make a second download whole", p);

    fetch_file(link_of_file(&bought, 0, p), 0, 0, 4000, p);
    fetch_part(zip, 0, at[0] + 4000, at[0] + FILE_SIZE, p);
    is_used(&bought, "2 2 1", "two open sessions of a file keep a download each", p);
    sweep(p);
    is_used(&bought, "1 1 0", "together they use one download, whichever ends first", p);
}

static void test_archive_by_three(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("8", PRODUCT("8"), p);
    int n = 0;

    do {
        fetch_part(link_to(&bought, p), 0, at[2], at[2] + FILE_SIZE - 1, p);
        sweep(p);
        is_used(&bought, n < 3 ? "0 0 0" : "0 0 1",
                n < 3 ? "all of a file but its last byte uses no download"
                      : "it uses one when it was delivered three times over",
                p);
    } while (++n < 4);
    fetch_file(link_of_file(&bought, 2, p), 2, FILE_SIZE - 1, FILE_SIZE, p);
    sweep(p);
    is_used(&bought, "0 0 1", "the last byte uses no further download after that", p);
}

static void test_archive_lost(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("9", PRODUCT("9"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t slow = begin(link, 1, 1, p);

    settle(&slow, range(0, at[1], p), at[1], p);
    sweep(p);
    is_used(&bought, "1 0 0", "one file of an abandoned transfer counts", p);
    settle(&slow, range(0, at[1] + FILE_SIZE, p), at[1] + FILE_SIZE, p);
    is_used(&bought, "1 1 0", "the second file is taken when the transfer has continued after all",
            p);
    settle(&slow, range(0, at[1] + FILE_SIZE, p), at[1] + FILE_SIZE, p);
    is_used(&bought, "1 1 0", "the second file is taken once", p);
    is_int(status(link, p), MDL_SESSION_RETURNED,
           "the session of an incomplete archive stays returned");
    settle(&slow, range(0, zip_size, p), zip_size, p);
    settle(&slow, range(0, zip_size, p), zip_size, p);
    is_used(&bought, "1 1 1", "each file is taken once when the archive is complete", p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "the session of the complete archive is counted");
    is_int(last(link, p).bytes, at[1], "the bytes are those that were settled first");
}

static void test_archive_changed(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("10", PRODUCT("10"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    fetch_part(link, 0, 0, 10, p);
    change_archive(&bought, PRODUCT("10"), ids_of(p, 2, files[1], files[2]), p);
    fetch_part(link, 0, 0, at[0] + FILE_SIZE, p);
    sweep(p);
    is_used(&bought, "0 1 0", "a delivered file counts after another was removed from the archive",
            p);

    bought = buy_archive("11", PRODUCT("11"), p);
    link = link_to(&bought, p);
    fetch_part(link, 0, 0, at[1], p);
    sweep(p);
    fetch_part(link, 0, at[1], at[1] + 1, p);
    is_used(&bought, "1 1 1", "one file counts, and the link takes the others when it continues",
            p);
    change_archive(&bought, PRODUCT("11"), ids_of(p, 2, files[0], files[2]), p);
    fetch_part(link, 0, 0, 10, p);
    sweep(p);
    is_used(&bought, "1 0 0", "a file that counts is not given back when the archive changes", p);

    bought = buy_archive("17", PRODUCT("17"), p);
    link = link_to(&bought, p);
    fetch_part(link, 0, 0, at[1], p);
    sweep(p);
    change_archive(&bought, PRODUCT("17"), ids_of(p, 2, files[0], files[2]), p);
    fetch_part(link, 0, 0, 10, p);
    is_used(&bought, "1 0 1", "a file that counts is not taken again when its archive has changed",
            p);

    bought = buy_archive("12", PRODUCT("12"), p);
    change_archive(&bought, PRODUCT("12"), ids_of(p, 2, files[1], files[2]), p);
    link = link_to(&bought, p);
    fetch_part(link, 1, 0, 10, p);
    change_archive(&bought, PRODUCT("12"), ids_of(p, 3, files[0], files[1], files[2]), p);
    fetch_part(link, 1, 0, zip_size, p);
    is_used(&bought, "1 1 1", "a file added to the archive meanwhile is taken, too", p);
}

static apr_status_t replace_second(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_asset_bytes_t bytes = {.blob = {.size = FILE_SIZE}};

    (void)arg;
    mdl_sha256("another version", 15, digest);
    bytes.blob.sha256 = mdl_hex(digest, sizeof digest, p);
    return mdl_asset_ready(of, files[1], &bytes, p);
}

static void test_archive_of_other_bytes(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("16", PRODUCT("16"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    fetch_part(link, 0, at[1], at[1] + FILE_SIZE / 2, p);
    atomic_fetch_add(&clock_ahead, 1);
    is_int(mdl_db_write(db, replace_second, NULL, p), APR_SUCCESS,
           "a file gets other bytes of the same size");
    sweep(p);
    fetch_file(link_of_file(&bought, 1, p), 1, FILE_SIZE / 2, FILE_SIZE, p);
    sweep(p);
    is_used(&bought, "0 0 0", "halves of different bytes do not make a download", p);

    fetch_part(link, 0, at[1], at[1] + FILE_SIZE, p);
    is_used(&bought, "1 1 1", "the link continues with the new bytes", p);
    sweep(p);
    is_used(&bought, "0 1 0", "the new bytes count", p);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    for (int i = 0; i < 3; i++) {
        files[i] = make_asset(db, shop, apr_psprintf(p, "part-%d.pdf", i), 1, p);
    }
    test_archive(p);
    test_archive_and_files(p);
    test_archive_by_three(p);
    test_archive_lost(p);
    test_archive_changed(p);
    test_archive_of_other_bytes(p);
}

int main(void)
{
    return test_sessions(tests);
}
