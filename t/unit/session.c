/*
 * Download sessions: when they take a download, give it back, count it, or are refused.
 */
#include "t/unit/fixtures.h"

#include "core/download/archive.h"
#include "core/download/lease.h"
#include "core/download/session_begin.h"
#include "t/unit/effects.h"

#define SIZE 1000
#define IDLE apr_time_from_sec(600)
#define DAY  apr_time_from_sec(86400)

static mdl_db_t *db;
static mdl_secret_t *secret;
static apr_int64_t shop, file;
static apr_uint64_t sold_version = 1;

static apr_int64_t buy_all(const char *order_id, const char *product, apr_array_header_t *files,
                           apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, product);

    make_mapping(db, new_mapping(shop, product, files, p), p);
    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        printf("Bail out! assign: %s\n", mdl_db_error(db));
        exit(2);
    }
    return APR_ARRAY_IDX(assign->order->assignments, 0, mdl_assignment_t *)->id;
}

static mdl_signed_file_t buy(const char *order_id, const char *product, apr_pool_t *p)
{
    return (mdl_signed_file_t){.assignment_id = buy_all(order_id, product, ids_of(p, 1, file), p),
                               .asset_id = file};
}

static mdl_signed_file_t *link_to(const mdl_signed_file_t *bought, apr_pool_t *p)
{
    mdl_signed_file_t *link = apr_pmemdup(p, bought, sizeof *bought);

    mdl_signed_url_file_token(secret, link, p);
    return link;
}

typedef struct {
    apr_int64_t assignment_id;
    mdl_archive_t archive;
} read_archive_t;

static apr_status_t read_archive(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    read_archive_t *read = arg;

    return mdl_archive_read(of, read->assignment_id, &read->archive, p);
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

static const mdl_layout_t *layout_of_file(apr_int64_t id, apr_int64_t size, apr_uint64_t version,
                                          apr_pool_t *p)
{
    mdl_layout_t *layout = apr_palloc(p, sizeof *layout);
    mdl_layout_file_t *only = apr_pcalloc(p, sizeof *only);

    *only = (mdl_layout_file_t){.asset_id = id, .size = size, .version = version};
    *layout = (mdl_layout_t){1, only};
    return layout;
}

static const char *quoted(const char *sha256, apr_pool_t *p)
{
    return apr_pstrcat(p, "\"", sha256, "\"", NULL);
}

/* Sets what is different for an archive: its files, entity tag and size. */
static void set_archive(mdl_session_begin_t *session, apr_pool_t *p)
{
    mdl_archive_t archive = archive_of(session->link->assignment_id, p);
    mdl_layout_t *layout = apr_palloc(p, sizeof *layout);
    int n = archive.files->nelts;
    mdl_layout_file_t *all = apr_pcalloc(p, ((apr_size_t)n + 1) * sizeof *all);

    session->etag = quoted(archive.tag, p);
    session->size = mdl_zip_size(archive.zip);
    for (int i = 0; i < n; i++) {
        const mdl_archive_file_t *one = &APR_ARRAY_IDX(archive.files, i, mdl_archive_file_t);

        all[i] = (mdl_layout_file_t){.asset_id = one->asset_id,
                                     .from = mdl_zip_data(archive.zip, i),
                                     .size = one->size,
                                     .version = mdl_progress_version(one->sha256)};
    }
    all[n].from = all[n - 1].from + all[n - 1].size;
    all[n].size = session->size - all[n].from;
    *layout = (mdl_layout_t){n + 1, all};
    session->layout = layout;
}

static apr_status_t read_last(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    mdl_session_t *session = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(of, MDL_Q_DOWNLOAD_SESSION_LAST, &row, p,
                                        MDL_ARGS(mdl_int(0), mdl_int(0), mdl_text(session->id)));

    if (rv == APR_SUCCESS) {
        mdl_session_read(row, session);
    }
    return rv;
}

/* The last session of a link; without a generation if there is none. */
static mdl_session_t last(const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_session_t session = {.id = link->session};

    mdl_db_read(db, read_last, &session, p);
    return session;
}

static mdl_session_begin_t begin(const mdl_signed_file_t *link, int limit, int whole, apr_pool_t *p)
{
    mdl_session_begin_t session = {.link = link,
                                   .layout = layout_of_file(link->asset_id, SIZE, sold_version, p),
                                   .is_known = last(link, p).generation > 0,
                                   .limit = limit,
                                   .etag = sold_version == 1 ? "\"one\"" : "\"two\"",
                                   .size = SIZE,
                                   .whole = whole,
                                   .patient = 1,
                                   .lifetime = DAY,
                                   .idle = IDLE,
                                   .lease_id = "lease",
                                   .leased_until = apr_time_now() + MDL_LEASE_TIME,
                                   .transfer_id = mdl_random_base62(22, p)};

    if (link->asset_id == 0) {
        set_archive(&session, p);
    }
    if (mdl_session_begin(db, &session, p) != APR_SUCCESS) {
        printf("Bail out! begin: %s\n", mdl_db_error(db));
        exit(2);
    }
    return session;
}

static void settle(const mdl_session_begin_t *session, const char *ranges, apr_int64_t bytes,
                   apr_pool_t *p)
{
    apr_array_header_t *one = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_session_settle_t all = {.deliveries = one, .idle = IDLE};

    APR_ARRAY_PUSH(one, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = session->transfer_id,
        .session_id = session->link->session,
        .generation = session->generation,
        .files = mdl_progress_of(session->layout, mdl_coverage_read(ranges, p), p),
        .bytes = bytes};
    if (mdl_db_write(db, mdl_session_settle_effect, &all, p) != APR_SUCCESS) {
        printf("Bail out! settle: %s\n", mdl_db_error(db));
        exit(2);
    }
}

/* Begins and ends a transfer; returns the entitlement. */
static mdl_entitlement_t fetch(const mdl_signed_file_t *link, int limit, const char *ranges,
                               apr_int64_t bytes, apr_pool_t *p)
{
    mdl_session_begin_t session = begin(link, limit, bytes >= SIZE, p);

    if (session.entitlement == MDL_ENTITLEMENT_OK) {
        settle(&session, ranges, bytes, p);
    }
    return session.entitlement;
}

static void sweep(apr_pool_t *p)
{
    mdl_session_sweep_t idle = {.limit = 100};

    atomic_fetch_add(&clock_ahead, IDLE + 1);
    mdl_db_write(db, mdl_session_sweep_effect, &idle, p);
}

static mdl_session_status_t status(const mdl_signed_file_t *link, apr_pool_t *p)
{
    return last(link, p).status;
}

/* The number of downloads of a limit that are left; uses them up. */
static int left(const mdl_signed_file_t *bought, int limit, apr_pool_t *p)
{
    int n = 0;

    while (n <= limit && begin(link_to(bought, p), limit, 0, p).entitlement == MDL_ENTITLEMENT_OK) {
        n++;
    }
    return n;
}

static void test_counting(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("1", PRODUCT("1"), p);
    mdl_signed_file_t *link = link_to(&bought, p);

    is_int(fetch(link, 4, "0-499", 500, p), MDL_ENTITLEMENT_OK, "a half can be downloaded");
    is_int(status(link, p), MDL_SESSION_OPEN, "a half leaves its session open");
    fetch(link, 4, "500-999", 500, p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "a session with both halves is counted");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_COUNTED, "a counted session stays counted when it is idle");
    is_int(begin(link, 4, 0, p).generation, 1, "a later part belongs to the same session");
    is_int(begin(link, 4, 1, p).generation, 2, "downloading the whole again is another session");
    is_int(left(&bought, 4, p), 2, "two of four downloads are used");
}

static void test_giving_back(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("2", PRODUCT("2"), p);
    mdl_signed_file_t *first = link_to(&bought, p), *second = link_to(&bought, p);

    fetch(first, 1, "0-899", 900, p);
    is_int(fetch(second, 1, "", 0, p), MDL_ENTITLEMENT_EXHAUSTED,
           "an open session keeps its download");
    sweep(p);
    is_int(status(first, p), MDL_SESSION_RETURNED, "an idle session gives its download back");
    is_int(fetch(second, 1, "0-99", 100, p), MDL_ENTITLEMENT_OK,
           "another session can take that download");
    is_int(fetch(first, 1, "", 0, p), MDL_ENTITLEMENT_EXHAUSTED,
           "the first session can't continue meanwhile");
    sweep(p);
    is_int(fetch(first, 1, "890-999", 110, p), MDL_ENTITLEMENT_OK,
           "the first session can continue when the download is given back");
    is_int(status(first, p), MDL_SESSION_COUNTED, "it is whole together with its earlier bytes");
    is_int(left(&bought, 1, p), 0, "it has used the download");
}

static void test_joining(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("3", PRODUCT("3"), p);
    mdl_signed_file_t *later = link_to(&bought, p);

    fetch(link_to(&bought, p), 2, "0-499", 500, p);
    sweep(p);
    sold_version = 2;
    fetch(later, 2, "500-999", 500, p);
    is_int(status(later, p), MDL_SESSION_OPEN, "halves of two versions do not make a whole");
    sweep(p);
    fetch(later, 2, "0-499", 500, p);
    is_int(status(later, p), MDL_SESSION_COUNTED, "halves of one version make a whole");
    sold_version = 1;
    is_int(left(&bought, 2, p), 1, "they use one download");
}

static void test_caps(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("4", PRODUCT("4"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t running;
    int n = 0;

    running = begin(link, 0, 0, p);
    is_int(begin(link, 0, 1, p).entitlement, MDL_ENTITLEMENT_UNSETTLED,
           "a request for the whole waits while a running transfer may complete it");
    settle(&running, "0-9", 10, p);
    while (n < 30 && begin(link, 0, 0, p).entitlement == MDL_ENTITLEMENT_OK) {
        n++;
    }
    is_int(n, MDL_SESSION_TRANSFERS, "the number of simultaneous transfers is limited");
    is_int(begin(link, 0, 0, p).entitlement, MDL_ENTITLEMENT_UNSETTLED,
           "a further transfer has to wait");

    link = link_to(&bought, p);
    for (n = 0; n < 10 && fetch(link, 0, "0-898", 899, p) == MDL_ENTITLEMENT_OK; n++) {
    }
    is_int(n, 4, "a session may send three times the size");
    is_int(fetch(link, 0, "", 0, p), MDL_ENTITLEMENT_CAPPED,
           "a request beyond that is refused as capped");
    atomic_fetch_add(&clock_ahead, DAY);
    is_int(fetch(link, 0, "", 0, p), MDL_ENTITLEMENT_LINK_OLD, "the link is too old after a day");
}

static void test_lost(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("5", PRODUCT("5"), p);
    mdl_signed_file_t *link = link_to(&bought, p);
    mdl_session_begin_t lost = begin(link, 1, 1, p);
    apr_array_header_t *moved = apr_array_make(p, 1, sizeof(mdl_session_delivery_t));
    mdl_lease_tick_t tick = {
        .id = "lease", .leased_until = apr_time_now() + MDL_LEASE_TIME, .progress = moved};
    mdl_lease_sweep_t settled = {.idle = IDLE, .limit = 100};

    APR_ARRAY_PUSH(moved, mdl_session_delivery_t) = (mdl_session_delivery_t){
        .transfer_id = lost.transfer_id,
        .files = mdl_progress_of(lost.layout, mdl_coverage_read("0-799", p), p),
        .bytes = 800};
    mdl_db_write(db, mdl_lease_renew_effect, &tick, p);
    mdl_db_write(db, mdl_lease_sweep_effect, &settled, p);
    is_int(last(link, p).bytes, 0, "the transfers of a live process are not settled");
    atomic_fetch_add(&clock_ahead, MDL_LEASE_TIME);
    mdl_db_write(db, mdl_lease_sweep_effect, &settled, p);
    is_str(mdl_coverage_text(
               APR_ARRAY_IDX(mdl_progress_read(last(link, p).files, p), 0, mdl_progress_t)
                   .part->ranges,
               p),
           "0-799", "the last progress of a lost transfer is settled");
    sweep(p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "the lost transfer's download is given back");
    settle(&lost, "0-999", 1000, p);
    is_int(status(link, p), MDL_SESSION_COUNTED,
           "a transfer that was not lost after all is counted");
    is_int(left(&bought, 1, p), 0, "it takes its download again");
    settle(&lost, "0-999", 1000, p);
    is_int(last(link, p).bytes, 800, "settling a transfer again adds no bytes");
}

/* --- archives --- */

#define FILE_SIZE 4321 /* of each of the archive's files */

static apr_int64_t files[3]; /* in the order of the archive */
static apr_int64_t at[3];    /* where their bytes begin in the archive */
static apr_int64_t zip_size;

static mdl_signed_file_t buy_archive(const char *order_id, const char *product, apr_pool_t *p)
{
    apr_array_header_t *all = ids_of(p, 3, files[0], files[1], files[2]);
    mdl_signed_file_t bought = {.assignment_id = buy_all(order_id, product, all, p)};
    mdl_archive_t archive = archive_of(bought.assignment_id, p);

    for (int i = 0; i < 3; i++) {
        at[i] = mdl_zip_data(archive.zip, i);
    }
    zip_size = mdl_zip_size(archive.zip);
    return bought;
}

static mdl_signed_file_t *zip_link(const mdl_signed_file_t *bought, apr_pool_t *p)
{
    mdl_signed_file_t *link = apr_pmemdup(p, bought, sizeof *bought);

    mdl_signed_url_file_token(secret, link, p);
    return link;
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

typedef struct {
    apr_int64_t assignment_id;
    char text[32];
} read_used_t;

static apr_status_t read_used(mdl_db_t *of, apr_pool_t *p, void *arg)
{
    read_used_t *read = arg;
    mdl_rows_t *rows;
    apr_int64_t used[3] = {-1, -1, -1};
    apr_status_t rv = mdl_db_select(
        of, MDL_Q_ARCHIVE_FILES, &rows, p,
        MDL_ARGS(mdl_text(apr_psprintf(
                     p, "[%" APR_INT64_T_FMT ",%" APR_INT64_T_FMT ",%" APR_INT64_T_FMT "]",
                     files[0], files[1], files[2])),
                 mdl_int(read->assignment_id)));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        used[mdl_rows_int(rows, 0)] = mdl_rows_int(rows, 7);
    }
    apr_snprintf(read->text, sizeof read->text,
                 "%" APR_INT64_T_FMT " %" APR_INT64_T_FMT " %" APR_INT64_T_FMT, used[0], used[1],
                 used[2]);
    return rv;
}

/* How many downloads of each file are used. */
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
                                   .is_known = last(link, p).generation > 0,
                                   .etag = quoted(sha256, p),
                                   .size = entry->size,
                                   .whole = to - from >= entry->size,
                                   .patient = 1,
                                   .lifetime = DAY,
                                   .idle = IDLE,
                                   .lease_id = "lease",
                                   .leased_until = apr_time_now() + MDL_LEASE_TIME,
                                   .transfer_id = mdl_random_base62(22, p)};

    if (mdl_session_begin(db, &session, p) == APR_SUCCESS &&
        session.entitlement == MDL_ENTITLEMENT_OK) {
        settle(&session, range(from, to, p), to - from, p);
    }
}

static void test_archive(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("6", PRODUCT("6"), p);
    mdl_signed_file_t *first = zip_link(&bought, p), *second = zip_link(&bought, p);
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
    mdl_signed_file_t *zip = zip_link(&bought, p);
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
        fetch_part(zip_link(&bought, p), 0, at[2], at[2] + FILE_SIZE - 1, p);
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
    mdl_signed_file_t *link = zip_link(&bought, p);
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

static void change_archive(const mdl_signed_file_t *bought, const char *product,
                           apr_array_header_t *these, apr_pool_t *p)
{
    mdl_archive_t archive;

    make_mapping(db, new_mapping(shop, product, these, p), p);
    archive = archive_of(bought->assignment_id, p);
    for (int i = 0; i < archive.files->nelts; i++) {
        at[i] = mdl_zip_data(archive.zip, i);
    }
    zip_size = mdl_zip_size(archive.zip);
}

static void test_archive_changed(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy_archive("10", PRODUCT("10"), p);
    mdl_signed_file_t *link = zip_link(&bought, p);

    fetch_part(link, 0, 0, 10, p);
    change_archive(&bought, PRODUCT("10"), ids_of(p, 2, files[1], files[2]), p);
    fetch_part(link, 0, 0, at[0] + FILE_SIZE, p);
    sweep(p);
    is_used(&bought, "0 1 0", "a delivered file counts after another was removed from the archive",
            p);

    bought = buy_archive("11", PRODUCT("11"), p);
    link = zip_link(&bought, p);
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
    link = zip_link(&bought, p);
    fetch_part(link, 0, 0, at[1], p);
    sweep(p);
    change_archive(&bought, PRODUCT("17"), ids_of(p, 2, files[0], files[2]), p);
    fetch_part(link, 0, 0, 10, p);
    is_used(&bought, "1 0 1", "a file that counts is not taken again when its archive has changed",
            p);

    bought = buy_archive("12", PRODUCT("12"), p);
    change_archive(&bought, PRODUCT("12"), ids_of(p, 2, files[1], files[2]), p);
    link = zip_link(&bought, p);
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
    mdl_signed_file_t *link = zip_link(&bought, p);

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

static void test_late(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("13", PRODUCT("13"), p);
    mdl_signed_file_t *other = link_to(&bought, p);
    mdl_session_begin_t slow = begin(link_to(&bought, p), 0, 1, p);

    settle(&slow, "0-799", 800, p);
    sweep(p);
    settle(&slow, "0-999", 1000, p);
    is_int(status(slow.link, p), MDL_SESSION_COUNTED,
           "a transfer that is completed late is counted");
    fetch(other, 0, "800-999", 200, p);
    sweep(p);
    is_int(status(other, p), MDL_SESSION_RETURNED,
           "the bytes it had given back do not complete another session");
}

/* An earlier session of a link keeps sending while its later one is idle. */
static void test_slow_beside_idle(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("15", PRODUCT("15"), p);
    mdl_signed_file_t *link = link_to(&bought, p), *other = link_to(&bought, p);
    mdl_session_begin_t slow = begin(link, 0, 0, p);
    mdl_session_sweep_t one = {.limit = 1};

    fetch(link, 0, "0-499", 500, p);
    fetch(link, 0, "500-999", 500, p);
    fetch(link, 0, "0-9", SIZE, p);
    atomic_fetch_add(&clock_ahead, 1);
    fetch(other, 0, "0-9", 10, p);
    atomic_fetch_add(&clock_ahead, IDLE + 1);
    mdl_db_write(db, mdl_lease_renew_effect,
                 &(mdl_lease_tick_t){.id = slow.lease_id,
                                     .leased_until = apr_time_now() + MDL_LEASE_TIME,
                                     .progress = ids_of(p, 0)},
                 p);
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(link, p), MDL_SESSION_RETURNED, "the idle one of a link's two sessions ends");
    mdl_db_write(db, mdl_session_sweep_effect, &one, p);
    is_int(status(other, p), MDL_SESSION_RETURNED,
           "the sending one does not hold up the sweep of others");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    file = make_asset(db, shop, "a.pdf", 1, p);
    test_counting(p);
    test_giving_back(p);
    test_joining(p);
    test_caps(p);
    test_lost(p);
    for (int i = 0; i < 3; i++) {
        files[i] = make_asset(db, shop, apr_psprintf(p, "part-%d.pdf", i), 1, p);
    }
    test_archive(p);
    test_archive_and_files(p);
    test_archive_by_three(p);
    test_archive_lost(p);
    test_archive_changed(p);
    test_archive_of_other_bytes(p);
    test_late(p);
    test_slow_beside_idle(p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    on_each_database(tests, p);
    return tap_end(p);
}
