/*
 * License keys that several processes assign and add at once: no key is lost, and none is assigned
 * twice.
 */
#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"
#include "t/unit/number.h"

#include "core/catalog/license.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static const mdl_secret_t *secret;
static apr_int64_t shop, mapping; /* the mapping's tags are tag_a and tag_b */
static apr_int64_t tag_a, tag_b;

static apr_int64_t make_tag(const char *name, apr_pool_t *p)
{
    mdl_license_tag_edit_t create = {
        .ref = {.shop_id = shop}, .name = name, .low_stock_threshold = -1};

    if (mdl_db_write(db, mdl_license_tag_create_effect, &create, p) != APR_SUCCESS) {
        printf("Bail out! tag %s: %s\n", name, mdl_db_error(db));
        exit(2);
    }
    return ((mdl_license_tag_t *)create.ref.entity)->id;
}

static void hold_tag(apr_int64_t tag_id, int position, apr_pool_t *p)
{
    mdl_db_command(db,
                   apr_psprintf(p,
                                "INSERT INTO mapping_license_key_tag (mapping_id, tag_id, "
                                "position) VALUES (%" APR_INT64_T_FMT ", %" APR_INT64_T_FMT ", %d)",
                                mapping, tag_id, position));
}

static mdl_license_tag_t stock_of(apr_int64_t tag_id, apr_pool_t *p)
{
    mdl_problem_t problem = {0};
    mdl_entity_ref_t find = {.shop_id = shop, .id = tag_id, .problem = &problem};

    mdl_db_read(db, mdl_license_tag_find_effect, &find, p);
    return *(mdl_license_tag_t *)find.entity;
}

static void is_stock(apr_int64_t tag_id, int available, int assigned, const char *name,
                     apr_pool_t *p)
{
    mdl_license_tag_t tag = stock_of(tag_id, p);

    is_int(tag.available, available, name);
    is_int(tag.assigned, assigned, "  so many keys are assigned");
}

/* Adds keys named prefix-from to prefix-(to - 1). */
static apr_status_t add(mdl_db_t *to_db, apr_int64_t tag_id, const char *prefix, int from, int to,
                        mdl_license_add_t *added, apr_pool_t *p)
{
    mdl_json_t *keys = mdl_json_array(p);

    for (int i = from; i < to; i++) {
        mdl_json_add_string(keys, NULL, apr_psprintf(p, "%s-%d", prefix, i));
    }
    *added = (mdl_license_add_t){
        .ref = {.shop_id = shop, .id = tag_id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))},
        .secret = secret,
        .keys = keys};
    return mdl_db_write(to_db, mdl_license_add_effect, added, p);
}

/* An order of one product, without keys. */
typedef struct {
    apr_int64_t order_id;
    apr_int64_t assignment_id;
    int quantity; /* keys of each of the mapping's tags; 0: as before */
    apr_int64_t assigned;
} wish_t;

static wish_t make_order(const char *order_id, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, PRODUCT("1"));

    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        printf("Bail out! order %s: %s\n", order_id, mdl_db_error(db));
        exit(2);
    }
    return (wish_t){
        .order_id = assign->order->id,
        .assignment_id = APR_ARRAY_IDX(assign->order->assignments, 0, mdl_assignment_t *)->id,
        .quantity = 1};
}

static apr_status_t fulfil(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    wish_t *wish = arg;
    mdl_rows_t *tags;
    apr_int64_t wanted;
    apr_status_t rv = APR_SUCCESS;

    if (wish->quantity > 0) {
        rv = mdl_license_ask_lock(in, wish->order_id, ids_of(p, 1, mapping), &tags, p);
    }
    if (rv == APR_SUCCESS && wish->quantity > 0) {
        rv = mdl_license_want(in, wish->assignment_id, mapping, wish->quantity,
                              mdl_license_read_lock(tags, p), &wanted, p);
    }
    return rv == APR_SUCCESS ? mdl_license_fill_order(in, wish->order_id, &wish->assigned, p) : rv;
}

static void set_order_status(apr_int64_t order_id, const char *status, apr_pool_t *p)
{
    mdl_db_command(
        db, apr_psprintf(p, "UPDATE orders SET access_status = '%s' WHERE id = %" APR_INT64_T_FMT,
                         status, order_id));
}

static void test_fill_order(apr_pool_t *p)
{
    wish_t first = make_order("1", p), second = make_order("2", p);
    mdl_license_add_t added;

    add(db, tag_a, "A", 0, 3, &added, p);
    is_int(added.added, 3, "three keys are added");
    first.quantity = 2;
    is_int(mdl_db_write(db, fulfil, &first, p), APR_SUCCESS, "two keys of two tags are wanted");
    is_int(first.assigned, 2, "two keys are assigned from the tag that has them");
    is_stock(tag_a, 1, 2, "one key is left", p);
    is_stock(tag_b, 0, 0, "the other tag has none", p);
    first.quantity = 0;
    mdl_db_write(db, fulfil, &first, p);
    is_int(first.assigned, 0, "asking again assigns no more keys");

    second.quantity = 2;
    set_order_status(second.order_id, "held", p);
    mdl_db_write(db, fulfil, &second, p);
    is_int(second.assigned, 0, "a held order gets no keys");
    is_stock(tag_a, 1, 2, "the key stays available", p);
    add(db, tag_b, "B", 0, 3, &added, p);
    is_stock(tag_b, 1, 2, "new keys are assigned to the order that is not held", p);
    set_order_status(second.order_id, "active", p);
    second.quantity = 0;
    mdl_db_write(db, fulfil, &second, p);
    is_int(second.assigned, 2, "an order that becomes active gets the available keys of both tags");
    is_stock(tag_a, 0, 3, "the first tag's last key is assigned", p);
    is_stock(tag_b, 0, 3, "the second tag's last key is assigned", p);
    add(db, tag_a, "A", 2, 5, &added, p);
    is_int(added.added, 2, "two of three keys are new");
    is_int(added.duplicates, 1, "one of them is a duplicate");
    is_stock(tag_a, 1, 4, "the missing key is assigned as soon as it is added", p);
}

/* Processes that assign while others add keys.  Another adds half of each one's keys too. */

#define PROCESSES 4
#define WISHES    40
#define ADDED     40

#define INCONSISTENT_CLAIMS                                                                        \
    "SELECT count(*) FROM license_claim c WHERE c.assigned > c.wanted OR c.assigned <> "           \
    "(SELECT count(*) FROM license_key k WHERE k.tag_id = c.tag_id AND k.assignment_id = "         \
    "c.assignment_id)"

static int buy(mdl_db_t *own, wish_t *wishes, apr_pool_t *p)
{
    int good = 1;

    for (int i = 0; i < WISHES; i++) {
        good &= mdl_db_write(own, fulfil, &wishes[i], p) == APR_SUCCESS;
    }
    return good;
}

static int supply(mdl_db_t *own, int n, apr_pool_t *p)
{
    mdl_license_add_t added;
    int good = 1;

    for (int i = 0; i < ADDED; i += 2) {
        int from = n * ADDED / 2 + i;

        good &= add(own, tag_a, "S", from, from + 2, &added, p) == APR_SUCCESS &&
                add(own, tag_b, "S", from, from + 2, &added, p) == APR_SUCCESS;
    }
    return good;
}

static void test_at_once(const database_t *database, apr_pool_t *p)
{
    int keys = (PROCESSES + 1) * ADDED / 2; /* of each tag */
    int before = (int)(stock_of(tag_a, p).assigned + stock_of(tag_a, p).available);
    wish_t wishes[PROCESSES][WISHES];
    pid_t children[2 * PROCESSES];
    mdl_license_add_t added;
    int good = 1;

    for (int i = 0; i < WISHES; i++) {
        for (int n = 0; n < PROCESSES; n++) {
            wishes[n][i] = make_order(apr_psprintf(p, "%d", 1000 + i * PROCESSES + n), p);
        }
    }
    for (int n = 0; n < 2 * PROCESSES; n++) {
        if ((children[n] = child_begin()) == 0) {
            mdl_db_t *own = database_open(database, p);

            child_end(n < PROCESSES ? buy(own, wishes[n], p) : supply(own, n - PROCESSES, p));
        }
    }
    for (int n = 0; n < 2 * PROCESSES; n++) {
        good &= child_good(children[n]);
    }
    ok(good, "four processes that assign and four that add all succeed");
    is_int(stock_of(tag_a, p).available, 0, "no key is left while assignments wait for keys");
    is_int(stock_of(tag_a, p).assigned, before + keys, "each key that was added is assigned");
    is_int(number_of(database, "SELECT count(*) FROM license_key WHERE assignment_id IS NULL"), 0,
           "no license_key row is unassigned");
    is_int(number_of(database, INCONSISTENT_CLAIMS), 0, "each claim has as many keys as it counts");
    add(db, tag_a, "L", 0, PROCESSES * WISHES, &added, p);
    is_int(number_of(database, apr_psprintf(p,
                                            "SELECT count(*) FROM license_claim WHERE assigned <> "
                                            "wanted AND tag_id = %" APR_INT64_T_FMT,
                                            tag_a)),
           0, "more keys serve every waiting assignment");
    is_int(number_of(database, INCONSISTENT_CLAIMS), 0,
           "each claim still has as many keys as it counts");
}

static void test_order_of_tags(const database_t *database, apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, "9000", p, 1, PRODUCT("2"));
    apr_int64_t tag_c = make_tag("C", p);
    mdl_problem_t problem = {0};
    mdl_license_add_t key = {.ref = {.shop_id = shop, .id = tag_a, .problem = &problem},
                             .secret = secret,
                             .keys = mdl_json_array(p)};
    meeting_t meeting = {
        database, mdl_license_add_effect, &key, mdl_order_assign_effect, assign, APR_SUCCESS, NULL,
        0};

    meeting.free = apr_psprintf(
        p, "SELECT id FROM license_key_tag WHERE id = %" APR_INT64_T_FMT " FOR UPDATE NOWAIT",
        tag_b);
    meets(db, meeting, "a key is added to the first of two tags while an order wants both", p);

    meeting.second_arg = new_assignment(shop, "9001", p, 1, PRODUCT("2"));
    meeting.free = apr_psprintf(p,
                                "INSERT INTO mapping_license_key_tag (mapping_id, tag_id, position)"
                                " VALUES (%" APR_INT64_T_FMT ", %" APR_INT64_T_FMT ", 2)",
                                mapping, tag_c);
    meets(db, meeting, "a third tag is added to the mapping while another order waits", p);
    is_int(number_of(database, apr_psprintf(p,
                                            "SELECT count(*) FROM license_claim WHERE tag_id = "
                                            "%" APR_INT64_T_FMT,
                                            tag_c)),
           0, "that order wants no keys of the third tag");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    secret = make_secret('s', p);
    shop = make_shop(db, "one.test", p);
    make_mapping(db, new_mapping(shop, PRODUCT("1"), ids_of(p, 0), p), p);
    mapping = make_mapping(db, new_mapping(shop, PRODUCT("2"), ids_of(p, 0), p), p);
    tag_a = make_tag("A", p);
    tag_b = make_tag("B", p);
    hold_tag(tag_b, 0, p);
    hold_tag(tag_a, 1, p);
    test_fill_order(p);
    test_at_once(database, p);
    if (database->dialect == MDL_PGSQL) {
        test_order_of_tags(database, p);
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
