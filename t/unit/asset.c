/*
 * Assets that several processes change at once: a shop's stored bytes stay the sum of its assets'
 * sizes, a deleted asset has no open jobs, and no asset is locked while waiting for its category.
 * Giving many assets their bytes takes as many round trips as one.
 */
#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"

#include "core/catalog/category.h"
#include "core/catalog/import.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static apr_int64_t shop;

typedef struct {
    apr_int64_t asset_id;
    apr_int64_t size;
} bytes_t;

static apr_status_t take_bytes(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    const bytes_t *take = arg;
    const char *sha256 = apr_psprintf(p, "%064" APR_INT64_T_FMT, take->size);
    mdl_asset_bytes_t bytes = {.blob = {.sha256 = sha256, .size = take->size, .crc32 = 1}};

    return mdl_asset_ready(in, take->asset_id, &bytes, p);
}

/* What the shop's assets and their former versions take. */
static void is_stored(apr_int64_t bytes, apr_int64_t former_bytes, const char *name, apr_pool_t *p)
{
    mdl_shop_storage_t storage = {0};

    mdl_shop_storage(db, shop, NULL, &storage, p);
    is_int(storage.bytes, bytes, name);
    is_int(storage.former_bytes, former_bytes, "that of former versions");
}

static void test_bytes_stored(const database_t *database, apr_pool_t *p)
{
    bytes_t first = {make_asset(db, shop, "a.pdf", 0, p), 1000};
    bytes_t second = {first.asset_id, 3000}, third = {first.asset_id, 5000};
    mdl_problem_t problem = {0};
    mdl_entity_ref_t delete = {.shop_id = shop, .id = first.asset_id, .problem = &problem};

    meets(db, (meeting_t){database, take_bytes, &first, take_bytes, &second, APR_SUCCESS, NULL, 0},
          "two versions of an asset are stored at once", p);
    is_stored(3000, 1000, "both count: the earlier one is kept", p);
    meets(db,
          (meeting_t){database, take_bytes, &third, mdl_asset_delete_effect, &delete, APR_SUCCESS,
                      NULL, 0},
          "an asset is deleted while another version is stored", p);
    is_stored(0, 0, "a deleted asset's bytes no longer count", p);
}

#define MANY 20

typedef struct {
    apr_int64_t ids[MANY];
    int count;
} many_t;

static apr_status_t take_many(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    const many_t *many = arg;
    mdl_asset_bytes_t bytes[MANY];
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; rv == APR_SUCCESS && i < many->count; i++) {
        const char *sha256 = apr_psprintf(p, "%064" APR_INT64_T_FMT, many->ids[i]);

        bytes[i] = (mdl_asset_bytes_t){.blob = {.sha256 = sha256, .size = 1, .crc32 = 1}};
        rv = mdl_asset_ask(in, many->ids[i], NULL, &bytes[i].asked, p);
    }
    for (int i = 0; rv == APR_SUCCESS && i < many->count; i++) {
        rv = mdl_asset_ready(in, many->ids[i], &bytes[i], p);
    }
    for (int i = 0; rv == APR_SUCCESS && i < many->count; i++) {
        rv = mdl_rows_one(bytes[i].held);
    }
    return rv;
}

static void test_trips(apr_pool_t *p)
{
    many_t many = {.count = 0};
    apr_uint32_t before;

    for (int i = 0; i < MANY; i++) {
        many.ids[i] = make_asset(db, shop, "d.pdf", 0, p);
    }
    many.count = 1;
    mdl_db_write(db, take_many, &many, p); /* prepares the statements */
    many.count = MANY;
    before = mdl_db_cost(db).trips;
    is_int(mdl_db_write(db, take_many, &many, p), APR_SUCCESS, "many assets get their bytes");
    is_int(mdl_db_cost(db).trips - before, 3, "one trip asks, one stores, one commits");
    is_stored(MANY, 0, "the bytes of each count", p);
}

static void test_job_and_deletion(const database_t *database, apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_version_t version = {.asset_id = make_asset(db, shop, "c.pdf", 1, p),
                             .source_url = "https://files.test/c",
                             .import = {.shop_id = shop, .max_attempts = 3, .problem = &problem}};
    mdl_entity_ref_t delete = {.shop_id = shop, .id = version.asset_id, .problem = &problem};
    mdl_job_t *open;

    meets(db,
          (meeting_t){database, mdl_version_queue_effect, &version, mdl_asset_delete_effect,
                      &delete, APR_SUCCESS, NULL, 0},
          "an asset is deleted while a job is queued for it", p);
    is_int(mdl_job_open_of_asset(db, version.asset_id, NULL, &open, p), APR_SUCCESS,
           "the asset's open jobs are looked up");
    ok(open == NULL, "a deleted asset has none");
}

static apr_status_t lock_category(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    (void)p;
    return mdl_db_command(in, arg) == APR_SUCCESS ? APR_SUCCESS : APR_EGENERAL;
}

static void test_category(const database_t *database, apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_category_edit_t category = {.ref = {.shop_id = shop, .problem = &problem},
                                    .name = "A category"};
    mdl_asset_change_t change = {.ref = {.shop_id = shop, .problem = &problem}, .set_category = 1};
    meeting_t meeting = {database, lock_category, NULL, mdl_asset_change_effect,
                         &change,  APR_SUCCESS,   NULL, 0};

    mdl_db_write(db, mdl_category_create_effect, &category, p);
    change.category_id = ((mdl_category_t *)category.ref.entity)->id;
    change.ref.id = make_asset(db, shop, "b.pdf", 1, p);
    meeting.first_arg = apr_psprintf(
        p, "SELECT id FROM category WHERE id = %" APR_INT64_T_FMT " FOR UPDATE",
        change.category_id);
    meeting.free = apr_psprintf(
        p, "SELECT id FROM asset WHERE id = %" APR_INT64_T_FMT " FOR UPDATE NOWAIT", change.ref.id);
    meets(db, meeting, "an asset is put into a locked category", p);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    if (database->dialect == MDL_PGSQL) {
        db = database_ready(database, p);
        shop = make_shop(db, "one.test", p);
        test_bytes_stored(database, p);
        test_trips(p);
        test_job_and_deletion(database, p);
        test_category(database, p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
