#include "t/unit/fixtures.h"

#include "core/download/download.h"
#include "core/download/session_begin.h"
#include "t/unit/effects.h"

#define SESSION apr_time_from_sec(86400)

static mdl_db_t *db;
static mdl_secret_t *secret;
static mdl_rate_limit_t *no_limit;
static apr_int64_t shop, file, pending;

/* Assigns an order of the mapping's product; returns the content of a link to its first file. */
static mdl_signed_file_t buy(const char *order_id, mdl_mapping_put_t *mapping, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1,
                                                mapping->mapping.storefront_product_id);

    make_mapping(db, mapping, p);
    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        printf("Bail out! assign: %s\n", mdl_db_error(db));
        exit(2);
    }
    return (mdl_signed_file_t){
        .page_id = assign->order->page_id,
        .assignment_id = APR_ARRAY_IDX(assign->order->assignments, 0, mdl_assignment_t *)->id,
        .asset_id = APR_ARRAY_IDX(mapping->mapping.file_ids, 0, apr_int64_t),
        .expires_at = apr_time_now() + apr_time_from_sec(300)};
}

/* Another link to the same file, with a separate session. */
static mdl_signed_file_t *new_link(const mdl_signed_file_t *of, apr_pool_t *p)
{
    mdl_signed_file_t *link = apr_pmemdup(p, of, sizeof *of);

    link->expires_at = apr_time_now() + apr_time_from_sec(300);
    mdl_signed_url_file_token(secret, link, p);
    return link;
}

static mdl_download_t look_under(const mdl_signed_file_t *link, mdl_rate_limit_t *limit,
                                 apr_pool_t *p)
{
    mdl_download_t download = {.link = link,
                               .secret = secret,
                               .rate_limit = limit,
                               .default_download_limit = 3,
                               .session_lifetime = SESSION};

    if (mdl_download_look(db, &download, p) != APR_SUCCESS) {
        printf("Bail out! download: %s\n", mdl_db_error(db));
        exit(2);
    }
    return download;
}

static mdl_download_t look(const mdl_signed_file_t *link, apr_pool_t *p)
{
    return look_under(link, no_limit, p);
}

static mdl_entitlement_t entitlement(const mdl_signed_file_t *link, apr_pool_t *p)
{
    return look(link, p).entitlement;
}

/* Begins a transfer and leaves it running. */
static mdl_entitlement_t begin(const mdl_signed_file_t *link, int limit, apr_pool_t *p)
{
    mdl_layout_file_t only = {.asset_id = link->asset_id, .size = 4321};
    mdl_layout_t layout = {1, &only};
    mdl_session_begin_t session = {.link = link,
                                   .layout = &layout,
                                   .last = look(link, p).session,
                                   .limit = limit,
                                   .etag = "\"etag\"",
                                   .size = 4321,
                                   .lifetime = SESSION,
                                   .idle = apr_time_from_sec(600),
                                   .meter_id = "meter",
                                   .transfer_id = mdl_random_base62(22, p)};

    if (mdl_session_begin(db, &session, p) != APR_SUCCESS) {
        printf("# %s\n", mdl_db_error(db));
        exit(2);
    }
    return session.entitlement;
}

/* Does the same as a request for the bytes. */
static mdl_entitlement_t fetch(const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_download_t download = look(link, p);

    if (download.entitlement == MDL_ENTITLEMENT_OK &&
        begin(link, download.limit, p) == MDL_ENTITLEMENT_RUNNING) {
        return MDL_ENTITLEMENT_RUNNING;
    }
    return download.entitlement;
}

static int used(const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_order_find_t find = {.page_id = look(link, p).page_id, .default_download_limit = 3};
    mdl_assignment_t *assignment;

    mdl_db_read(db, mdl_order_find_effect, &find, p);
    assignment = APR_ARRAY_IDX(find.order->assignments, 0, mdl_assignment_t *);
    return APR_ARRAY_IDX(assignment->files, 0, mdl_order_file_t *)->downloads.used;
}

static mdl_mapping_put_t *mapping_of(const char *product, int limit, apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(shop, product, ids_of(p, 1, file), p);

    mapping->mapping.download_limit = limit;
    return mapping;
}

static void set_order(const mdl_signed_file_t *link, const char *access_status, apr_pool_t *p)
{
    mdl_db_command(db, apr_psprintf(p,
                                    "UPDATE orders SET access_status = '%s' WHERE id = (SELECT "
                                    "order_id FROM assignment WHERE id = %" APR_INT64_T_FMT ")",
                                    access_status, link->assignment_id));
}

static void set_assignment(const mdl_signed_file_t *link, const char *what, apr_pool_t *p)
{
    mdl_db_command(db, apr_psprintf(p, "UPDATE assignment SET %s WHERE id = %" APR_INT64_T_FMT,
                                    what, link->assignment_id));
}

static void test_sessions(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("1", mapping_of(PRODUCT("1"), 2, p), p);
    mdl_signed_file_t *first = new_link(&bought, p);
    mdl_signed_file_t *second = new_link(&bought, p);
    mdl_download_t download = look(first, p);

    is_int(download.entitlement, MDL_ENTITLEMENT_OK, "a file that was bought may be downloaded");
    is_str(download.filename, "a.pdf", "its name is returned");
    is_int(download.size, 4321, "its size is returned");
    is_int(strlen(download.sha256), 64, "its digest is returned");
    is_str(download.content_type, "application/pdf", "its media type is returned");
    ok(download.page_id != NULL, "the id of its order's page is returned");
    is_int(used(first, p), 0, "looking it up uses no download");
    is_int(fetch(first, p), MDL_ENTITLEMENT_OK, "the first request of a session is allowed");
    is_int(used(first, p), 1, "it uses one download");
    is_int(fetch(first, p), MDL_ENTITLEMENT_OK, "the next request of this session is allowed");
    is_int(used(first, p), 1, "it uses no download");
    is_int(fetch(second, p), MDL_ENTITLEMENT_OK, "a request of another session is allowed");
    is_int(used(first, p), 2, "it uses another download");
    is_int(fetch(new_link(&bought, p), p), MDL_ENTITLEMENT_RUNNING,
           "a third session is refused, since no download is left while they run");
    is_int(fetch(first, p), MDL_ENTITLEMENT_OK, "the open sessions can continue");
    is_int(used(first, p), 2, "no more downloads than the limit are used");
}

static void test_limits(apr_pool_t *p)
{
    mdl_signed_file_t unlimited = buy("2", mapping_of(PRODUCT("2"), 0, p), p);
    mdl_signed_file_t usual = buy("3", mapping_of(PRODUCT("3"), -1, p), p);
    mdl_signed_file_t granted = buy("4", mapping_of(PRODUCT("4"), 1, p), p);
    mdl_download_t late;
    int n = 0;

    for (int i = 0; i < 20; i++) {
        n += fetch(new_link(&unlimited, p), p) == MDL_ENTITLEMENT_OK;
    }
    is_int(n, 20, "a limit of 0 means unlimited downloads");
    is_int(used(&unlimited, p), 20, "the downloads are counted nevertheless");
    for (n = 0; n < 10 && fetch(new_link(&usual, p), p) == MDL_ENTITLEMENT_OK; n++) {
    }
    is_int(n, 3, "a mapping without a limit has the default limit");

    fetch(new_link(&granted, p), p);
    late = look(new_link(&granted, p), p);
    is_int(late.entitlement, MDL_ENTITLEMENT_RUNNING,
           "a file with one download has none left while that runs");
    is_int(begin(late.link, late.limit, p), MDL_ENTITLEMENT_RUNNING,
           "a request that saw the last download before another took it is refused");
    mdl_db_command(db, "UPDATE allowance SET downloads_extra = 2 WHERE downloads_used = 1");
    for (n = 0; n < 10 && fetch(new_link(&granted, p), p) == MDL_ENTITLEMENT_OK; n++) {
    }
    is_int(n, 2, "exactly the downloads that were granted extra are allowed");
}

static void test_entitlements(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("5", mapping_of(PRODUCT("5"), 0, p), p);
    mdl_mapping_put_t *unready = new_mapping(shop, PRODUCT("6"), ids_of(p, 1, pending), p);
    mdl_signed_file_t early = buy("6", unready, p);
    mdl_signed_file_t *link = new_link(&bought, p);
    mdl_signed_file_t foreign = *link;

    foreign.asset_id = pending;
    is_int(entitlement(&foreign, p), MDL_ENTITLEMENT_GONE,
           "a file that does not belong to the assignment is gone");
    foreign.assignment_id = 999999;
    is_int(entitlement(&foreign, p), MDL_ENTITLEMENT_GONE,
           "a file of an unknown assignment is gone");
    is_str(look(&foreign, p).page_id, NULL, "an unknown assignment has no page");
    is_int(entitlement(new_link(&early, p), p), MDL_ENTITLEMENT_NOT_READY,
           "a file that is being imported is not ready");

    set_order(link, "held", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_HELD, "the files of a held order are held");
    set_order(link, "revoked", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_REVOKED,
           "the files of a revoked order are revoked");
    set_order(link, "rejected", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_REJECTED,
           "the files of a rejected order are rejected");
    set_order(link, "active", p);
    set_assignment(link, "status = 'revoked'", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_REVOKED,
           "the files of a revoked assignment are revoked");
    ok(look(link, p).page_id != NULL, "they still have a page, which tells the customer");
    set_assignment(link, "status = 'active', expires_at = 1", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_EXPIRED, "an assignment past its end has expired");
    set_assignment(link, "expires_at = NULL", p);
    is_int(entitlement(link, p), MDL_ENTITLEMENT_OK,
           "without all these obstacles the file may be downloaded");
}

static void test_content(apr_pool_t *p)
{
    apr_int64_t newer = make_asset(db, shop, "new.pdf", 1, p);
    mdl_mapping_put_t *live = mapping_of(PRODUCT("7"), 0, p);
    mdl_mapping_put_t *pinned = mapping_of(PRODUCT("8"), 0, p);
    mdl_signed_file_t followed, kept;

    pinned->mapping.content = MDL_CONTENT_PINNED;
    followed = buy("7", live, p);
    kept = buy("8", pinned, p);
    live->mapping.file_ids = pinned->mapping.file_ids = ids_of(p, 1, newer);
    make_mapping(db, live, p);
    make_mapping(db, pinned, p);
    is_int(entitlement(new_link(&followed, p), p), MDL_ENTITLEMENT_GONE,
           "a file removed from the mapping is gone for live content");
    is_int(entitlement(new_link(&kept, p), p), MDL_ENTITLEMENT_OK, "it stays for pinned content");
    followed.asset_id = kept.asset_id = newer;
    is_int(entitlement(new_link(&followed, p), p), MDL_ENTITLEMENT_OK,
           "a file added to the mapping is there for live content");
    is_int(entitlement(new_link(&kept, p), p), MDL_ENTITLEMENT_GONE,
           "it is gone for pinned content");
}

static void test_times(apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("9", mapping_of(PRODUCT("9"), 0, p), p);
    mdl_signed_file_t *used_in_time = new_link(&bought, p);
    mdl_signed_file_t *unused = new_link(&bought, p);

    fetch(used_in_time, p);
    atomic_fetch_add(&clock_ahead, apr_time_from_sec(301));
    is_int(entitlement(unused, p), MDL_ENTITLEMENT_LINK_OLD,
           "a link that was not used in time is too old");
    is_int(entitlement(used_in_time, p), MDL_ENTITLEMENT_OK,
           "a link that was used in time works on");
    atomic_fetch_add(&clock_ahead, SESSION);
    is_int(entitlement(used_in_time, p), MDL_ENTITLEMENT_LINK_OLD,
           "it is too old after the end of its session");
    is_int(entitlement(new_link(&bought, p), p), MDL_ENTITLEMENT_OK, "a new link is valid");
}

/* --- concurrent clicks of customers --- */

#define CLICKERS 4
#define CLICKS   12

static int click_at_once(const database_t *database, const mdl_signed_file_t *bought,
                         int one_session, apr_pool_t *p)
{
    const mdl_signed_file_t *shared = new_link(bought, p);
    pid_t children[CLICKERS];
    int results[2], admitted = 0;
    char byte;

    if (pipe(results) != 0) {
        exit(2);
    }
    for (int i = 0; i < CLICKERS; i++) {
        if ((children[i] = child_begin()) == 0) {
            db = database_open(database, p);
            for (int n = 0; n < CLICKS; n++) {
                /* as if each had seen one download left */
                byte = begin(one_session ? shared : new_link(bought, p), 1, p) ==
                       MDL_ENTITLEMENT_OK;
                (void)!write(results[1], &byte, 1);
            }
            child_end(1);
        }
    }
    close(results[1]);
    while (read(results[0], &byte, 1) == 1) {
        admitted += byte;
    }
    close(results[0]);
    for (int i = 0; i < CLICKERS; i++) {
        admitted += child_good(children[i]) ? 0 : 10000;
    }
    return admitted;
}

static void test_at_once(const database_t *database, apr_pool_t *p)
{
    mdl_signed_file_t bought = buy("10", mapping_of(PRODUCT("10"), 1, p), p);
    mdl_signed_file_t shared = buy("11", mapping_of(PRODUCT("11"), 1, p), p);

    is_int(click_at_once(database, &bought, 0, p), 1,
           "if 48 sessions begin at once with one download left, one is admitted");
    is_int(used(&bought, p), 1, "one download is used");
    is_int(click_at_once(database, &shared, 1, p), CLICKERS * CLICKS,
           "48 simultaneous requests of one session are all admitted");
    is_int(used(&shared, p), 1, "they use one download");
}

static mdl_rate_limit_t *limit_of(int parts, apr_pool_t *p)
{
    mdl_settings_t *settings = mdl_settings_create(p);
    mdl_rate_limit_t *limit = NULL;

    settings->rate_parts = parts;
    mdl_rate_limit_create(&limit, settings, p);
    return limit;
}

static void test_rate(apr_pool_t *p)
{
    mdl_rate_limit_t *limit = limit_of(2, p);
    mdl_signed_file_t bought = buy("rate", mapping_of(PRODUCT("90"), 2, p), p);
    mdl_signed_file_t other = buy("other", mapping_of(PRODUCT("90"), 2, p), p);
    mdl_signed_file_t *archive = new_link(&bought, p);
    mdl_download_t download;

    archive->asset_id = 0;
    look_under(new_link(&bought, p), limit, p);
    is_int(look_under(new_link(&bought, p), limit, p).entitlement, MDL_ENTITLEMENT_OK,
           "an order's files may be asked for so often");
    download = look_under(archive, limit, p);
    is_int(download.entitlement, MDL_ENTITLEMENT_TOO_OFTEN, "then all of its links have to wait");
    ok(download.wait > apr_time_from_sec(25) && download.wait <= apr_time_from_sec(30),
       "until the next may be asked for");
    is_int(look_under(new_link(&other, p), limit, p).entitlement, MDL_ENTITLEMENT_OK,
           "those of another order don't");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    file = make_asset(db, shop, "a.pdf", 1, p);
    pending = make_asset(db, shop, "c.pdf", 0, p);
    test_sessions(p);
    test_rate(p);
    test_limits(p);
    test_entitlements(p);
    test_content(p);
    test_times(p);
    test_at_once(database, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    no_limit = limit_of(0, p);
    on_each_database(tests, p);
    return tap_end(p);
}
