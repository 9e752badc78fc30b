#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"

#include "core/catalog/pack.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static apr_int64_t shop, other_shop;
static apr_int64_t file_a, file_b, foreign;

static apr_status_t put(mdl_mapping_put_t *mapping, apr_pool_t *p)
{
    return mdl_db_write(db, mdl_mapping_put_effect, mapping, p);
}

typedef struct {
    apr_int64_t shop_id;
    const char *product;
    const char *variant;
    mdl_mapping_match_t match;
} matching_t;

static apr_status_t match(mdl_db_t *on, apr_pool_t *p, void *arg)
{
    matching_t *matching = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_mapping_ask_match(on, matching->shop_id, matching->product,
                                            matching->variant, &row, p);

    return rv == APR_SUCCESS && !mdl_mapping_read_match(row, &matching->match) ? APR_ENOENT : rv;
}

/* The id of the mapping for an item; 0 for none. */
static apr_int64_t match_of(apr_int64_t shop_id, const char *product, const char *variant,
                            apr_pool_t *p)
{
    matching_t matching = {.shop_id = shop_id, .product = product, .variant = variant};

    return mdl_db_read(db, match, &matching, p) == APR_SUCCESS ? matching.match.id : 0;
}

static apr_int64_t make_pack(apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_pack_edit_t edit = {.ref = {.shop_id = shop, .problem = &problem}, .name = "A pack"};

    mdl_db_write(db, mdl_pack_create_effect, &edit, p);
    return ((mdl_pack_t *)edit.ref.entity)->id;
}

static void test_upsert(apr_pool_t *p)
{
    mdl_mapping_put_t *first = new_mapping(shop, PRODUCT("1"), ids_of(p, 1, file_a), p);
    mdl_mapping_put_t *again = new_mapping(shop, PRODUCT("1"), ids_of(p, 2, file_b, file_a), p);
    mdl_mapping_put_t *other = new_mapping(other_shop, PRODUCT("1"), ids_of(p, 0), p);
    apr_time_t created_at;

    is_int(put(first, p), APR_SUCCESS, "a mapping is put");
    ok(first->created && first->mapping.id > 0, "it is reported as created");
    created_at = first->mapping.created_at;
    atomic_fetch_add(&clock_ahead, 1000000);
    is_int(put(again, p), APR_SUCCESS, "a mapping is put again for the same product");
    ok(!again->created, "it is not reported as created");
    is_int(again->mapping.id, first->mapping.id, "it keeps its id");
    is_int(again->mapping.created_at, created_at, "it keeps its time of creation");
    ok(again->mapping.updated_at > created_at, "its time of update changes");
    put(other, p);
    ok(other->created && other->mapping.id != first->mapping.id,
       "another shop's mapping of that product is separate");
    is_int(match_of(shop, PRODUCT("1"), "", p), first->mapping.id,
           "the first shop's items match its own mapping");
    is_int(match_of(other_shop, PRODUCT("1"), "", p), other->mapping.id,
           "the other shop's items match the other mapping");
}

static void test_variants(apr_pool_t *p)
{
    mdl_mapping_put_t *product = new_mapping(shop, PRODUCT("2"), ids_of(p, 0), p);
    mdl_mapping_put_t *set = new_mapping(shop, PRODUCT("2"), ids_of(p, 0), p);
    mdl_mapping_put_t *turned = new_mapping(shop, PRODUCT("2"), ids_of(p, 0), p);
    mdl_mapping_put_t *single = new_mapping(shop, PRODUCT("2"), ids_of(p, 0), p);

    set->mapping.storefront_variant_ids = texts_of(p, 2, VARIANT("1"), VARIANT("2"));
    turned->mapping.storefront_variant_ids = texts_of(p, 2, VARIANT("2"), VARIANT("1"));
    single->mapping.storefront_variant_ids = texts_of(p, 1, VARIANT("3"));
    put(set, p);
    is_int(match_of(shop, PRODUCT("2"), VARIANT("9"), p), 0,
           "a mapping of some variants does not serve another");
    is_int(match_of(shop, PRODUCT("2"), "", p), 0,
           "a mapping of some variants does not serve an item without a variant");
    put(product, p);
    put(turned, p);
    put(single, p);
    is_int(turned->mapping.id, set->mapping.id, "the order of variants does not matter");
    ok(product->created && single->created && single->mapping.id != set->mapping.id,
       "each set of variants has a separate mapping");
    is_int(match_of(shop, PRODUCT("2"), VARIANT("2"), p), set->mapping.id,
           "a mapping that names the variant takes precedence over the product's");
    is_int(match_of(shop, PRODUCT("2"), VARIANT("9"), p), product->mapping.id,
           "the product's mapping serves variants that no mapping names");
    is_int(match_of(shop, PRODUCT("2"), "", p), product->mapping.id,
           "the product's mapping serves items without a variant");

    set->mapping.is_active = 0;
    put(set, p);
    is_int(match_of(shop, PRODUCT("2"), VARIANT("2"), p), product->mapping.id,
           "an inactive mapping serves no item");
}

static const char *ids_text(const apr_array_header_t *ids, apr_pool_t *p)
{
    return mdl_db_ids_text(ids, ' ', ' ', p);
}

/* All lists of a stored mapping. */
static const char *lists_of(apr_int64_t id, apr_pool_t *p)
{
    mdl_entity_ref_t find = {.shop_id = shop, .id = id};
    const mdl_mapping_t *found;

    if (mdl_db_read(db, mdl_mapping_find_effect, &find, p) != APR_SUCCESS) {
        return "none";
    }
    found = find.entity;
    return apr_pstrcat(p, apr_array_pstrcat(p, found->storefront_variant_ids, ','),
                       ids_text(found->file_ids, p), ids_text(found->pack_ids, p),
                       ids_text(found->link_ids, p), ids_text(found->license_key_tag_ids, p), NULL);
}

static void is_kept(mdl_mapping_put_t *mapping, int statements, const char *name, apr_pool_t *p)
{
    const char *given = apr_pstrcat(
        p, apr_array_pstrcat(p, mapping->mapping.storefront_variant_ids, ','),
        ids_text(mapping->mapping.file_ids, p), ids_text(mapping->mapping.pack_ids, p),
        ids_text(mapping->mapping.link_ids, p), ids_text(mapping->mapping.license_key_tag_ids, p),
        NULL);
    apr_uint32_t before = mdl_db_cost(db).statements;

    is_int(put(mapping, p), APR_SUCCESS, apr_pstrcat(p, name, ": it is put", NULL));
    is_int(mdl_db_cost(db).statements - before, statements,
           apr_pstrcat(p, name, ": only what differs is written", NULL));
    is_str(lists_of(mapping->mapping.id, p), given,
           apr_pstrcat(p, name, ": it is stored as given", NULL));
}

/* Puts a mapping, and checks how many statements that takes. */
static void test_lists(apr_pool_t *p)
{
    mdl_mapping_put_t *put = new_mapping(shop, PRODUCT("4"), ids_of(p, 2, file_a, file_b), p);
    mdl_mapping_t *mapping = &put->mapping;
    apr_int64_t pack = make_pack(p);

    mapping->pack_ids = mapping->link_ids = mapping->license_key_tag_ids = ids_of(p, 0);
    mapping->storefront_variant_ids = texts_of(p, 2, VARIANT("1"), VARIANT("2"));
    is_kept(put, 2 + 2 + 1, "a new mapping", p);
    is_kept(put, 4, "the same", p);
    mapping->title = "Another title";
    is_kept(put, 4 + 2, "another title, so other words to find it by", p);
    mapping->file_ids = ids_of(p, 2, file_b, file_a);
    is_kept(put, 4 + 2, "the files in another order", p);
    mapping->file_ids = ids_of(p, 1, file_b);
    is_kept(put, 4 + 2, "one file less", p);
    mapping->storefront_variant_ids = texts_of(p, 2, VARIANT("2"), VARIANT("1"));
    is_kept(put, 4 + 2, "the variants in another order", p);
    mapping->pack_ids = ids_of(p, 1, pack);
    is_kept(put, 5 + 1 + 1, "a pack", p);
    mapping->file_ids = ids_of(p, 0);
    is_kept(put, 4 + 1 + 1, "no file", p);
    mapping->pack_ids = ids_of(p, 0);
    is_kept(put, 3 + 1, "no pack", p);
}

static void test_refused(apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(
        shop, PRODUCT("3"), ids_of(p, 3, file_a, foreign, APR_INT64_C(987654321)), p);
    const apr_array_header_t *details;

    is_int(put(mapping, p), MDL_EPROBLEM,
           "a mapping to content that the shop does not have is refused");
    is_int(mapping->problem->status, 422, "the status is 422");
    is_str(mapping->problem->code, "unknown_reference", "the code is unknown_reference");
    details = mapping->problem->details;
    is_int(details->nelts, 2, "each unknown id is listed");
    is_str(APR_ARRAY_IDX(details, 0, mdl_problem_detail_t).pointer, "/file_ids/1",
           "another shop's file is unknown");
    is_str(APR_ARRAY_IDX(details, 1, mdl_problem_detail_t).pointer, "/file_ids/2",
           "a file that does not exist is unknown");
    is_int(match_of(shop, PRODUCT("3"), "", p), 0, "and nothing is stored");

    mapping = new_mapping(shop, PRODUCT("3"), ids_of(p, 1, file_a), p);
    mapping->mapping.pack_ids = ids_of(p, 1, APR_INT64_C(1));
    mapping->mapping.link_ids = ids_of(p, 1, APR_INT64_C(1));
    mapping->mapping.license_key_tag_ids = ids_of(p, 1, APR_INT64_C(1));
    is_int(put(mapping, p), MDL_EPROBLEM, "unknown packs, links and tags are refused");
    details = mapping->problem->details;
    is_int(details->nelts, 3, "each of them is listed");
    is_str(APR_ARRAY_IDX(details, 2, mdl_problem_detail_t).pointer, "/license_key_tag_ids/0",
           "with its position");
}

static void test_orders_and_deletion(const database_t *database, apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(shop, PRODUCT("40"), ids_of(p, 1, file_a), p);
    mdl_problem_t problem = {0};
    mdl_entity_ref_t find = {.shop_id = shop, .problem = &problem};
    mdl_order_assign_t *assign = new_assignment(shop, "40", p, 1, PRODUCT("40"));

    find.id = make_mapping(db, mapping, p);
    meets(db,
          (meeting_t){database, mdl_order_assign_effect, assign, mdl_mapping_delete_effect, &find,
                      APR_SUCCESS, NULL, 0},
          "an order is assigned, then its mapping is deleted", p);
    is_int(match_of(shop, PRODUCT("40"), "", p), 0, "a deleted mapping serves no order");

    find.id = make_mapping(db, mapping, p);
    assign = new_assignment(shop, "41", p, 1, PRODUCT("40"));
    meets(db,
          (meeting_t){database, mdl_mapping_delete_effect, &find, mdl_order_assign_effect, assign,
                      MDL_EPROBLEM, NULL, 0},
          "a mapping is deleted, then an order needs it", p);
}

/* The second request sees the result of the first, not the state when both began. */
static void test_put_at_once(const database_t *database, apr_pool_t *p)
{
    mdl_mapping_put_t *before = new_mapping(shop, PRODUCT("42"), ids_of(p, 1, file_a), p);
    mdl_mapping_put_t *first = new_mapping(shop, PRODUCT("42"), ids_of(p, 1, file_b), p);
    mdl_mapping_put_t *second = new_mapping(shop, PRODUCT("42"), ids_of(p, 1, file_a), p);
    apr_int64_t id = make_mapping(db, before, p);

    meets(db,
          (meeting_t){database, mdl_mapping_put_effect, first, mdl_mapping_put_effect, second,
                      APR_SUCCESS, NULL, 0},
          "a mapping is put twice at once", p);
    is_str(lists_of(id, p), apr_pstrcat(p, ids_text(second->mapping.file_ids, p), "      ", NULL),
           "the files of the second request are kept");
}

static void test_packs_and_deletion(const database_t *database, apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(shop, PRODUCT("41"), ids_of(p, 0), p);
    mdl_problem_t problem = {0};
    mdl_entity_ref_t find = {.shop_id = shop, .id = make_pack(p), .problem = &problem};

    mapping->mapping.pack_ids = ids_of(p, 1, find.id);
    meets(db,
          (meeting_t){database, mdl_mapping_put_effect, mapping, mdl_pack_delete_effect, &find,
                      MDL_EPROBLEM, NULL, 0},
          "a mapping refers to a pack, then the pack is deleted", p);

    mapping->mapping.pack_ids = ids_of(p, 0);
    make_mapping(db, mapping, p);
    mapping->mapping.pack_ids = ids_of(p, 1, find.id);
    meets(db,
          (meeting_t){database, mdl_pack_delete_effect, &find, mdl_mapping_put_effect, mapping,
                      MDL_EPROBLEM, NULL, 0},
          "a pack is deleted, then a mapping refers to it", p);
}

/* A change of a pack to count files, from index from of all. */
static mdl_pack_edit_t *pack_change(apr_int64_t id, const apr_array_header_t *all, int from,
                                    int count, apr_pool_t *p)
{
    mdl_pack_edit_t *edit = apr_pcalloc(p, sizeof *edit);
    apr_array_header_t *files = apr_array_make(p, count, sizeof(apr_int64_t));

    for (int i = from; i < from + count; i++) {
        APR_ARRAY_PUSH(files, apr_int64_t) = APR_ARRAY_IDX(all, i, apr_int64_t);
    }
    edit->ref = (mdl_entity_ref_t){
        .shop_id = shop, .id = id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))};
    edit->file_ids = files;
    return edit;
}

/* Files that another transaction is adding are counted too. */
static void test_growth_at_once(const database_t *database, apr_pool_t *p)
{
    mdl_mapping_put_t *mapping = new_mapping(shop, PRODUCT("43"), ids_of(p, 0), p);
    apr_int64_t one = make_pack(p), two = make_pack(p);
    apr_array_header_t *all = apr_array_make(p, 1001, sizeof(apr_int64_t));

    for (int i = 0; i < 1001; i++) {
        APR_ARRAY_PUSH(all, apr_int64_t) = make_asset(db, shop, apr_psprintf(p, "%d.pdf", i), 0, p);
    }
    mdl_db_write(db, mdl_pack_change_effect, pack_change(two, all, 0, 500, p), p);
    mapping->mapping.pack_ids = ids_of(p, 2, one, two);
    meets(db,
          (meeting_t){database, mdl_mapping_put_effect, mapping, mdl_pack_change_effect,
                      pack_change(one, all, 500, 501, p), MDL_EPROBLEM, NULL, 0},
          "a mapping refers to a pack, then the pack grows too much", p);
    meets(db,
          (meeting_t){database, mdl_pack_change_effect, pack_change(one, all, 500, 500, p),
                      mdl_pack_change_effect, pack_change(two, all, 0, 1001, p), MDL_EPROBLEM, NULL,
                      0},
          "a pack grows, then another one of the mapping grows too much", p);
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    other_shop = make_shop(db, "two.test", p);
    file_a = make_asset(db, shop, "a.pdf", 1, p);
    file_b = make_asset(db, shop, "b.pdf", 1, p);
    foreign = make_asset(db, other_shop, "c.pdf", 1, p);
    test_upsert(p);
    test_variants(p);
    test_refused(p);
    test_lists(p);
    if (database->dialect == MDL_PGSQL) {
        test_orders_and_deletion(database, p);
        test_packs_and_deletion(database, p);
        test_put_at_once(database, p);
        test_growth_at_once(database, p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
