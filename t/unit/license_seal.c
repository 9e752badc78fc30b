/*
 * License keys at rest: sealed when added, still unique per tag, and opened when shown, under the
 * old and the new secret.
 */
#include "t/unit/fixtures.h"
#include "t/unit/meeting.h"
#include "t/unit/number.h"

#include "core/catalog/license.h"
#include "core/catalog/license_seal.h"
#include "core/shop/data_key.h"
#include "t/unit/effects.h"

#define PROCESSES 4
#define SEALED    "SELECT count(*) FROM license_key WHERE license_key LIKE 'v1.%'"
#define KEYS      "SELECT count(*) FROM license_key"

static mdl_db_t *db;
static const mdl_secret_t *secret; /* the server's */
static apr_int64_t shop, tag;

static apr_int64_t make_tag(const char *product, apr_pool_t *p)
{
    mdl_license_tag_edit_t create = {
        .ref = {.shop_id = shop}, .name = "a tag", .low_stock_threshold = -1};
    mdl_mapping_put_t *put = new_mapping(shop, product, ids_of(p, 0), p);
    apr_int64_t id;

    if (mdl_db_write(db, mdl_license_tag_create_effect, &create, p) != APR_SUCCESS) {
        printf("Bail out! tag: %s\n", mdl_db_error(db));
        exit(2);
    }
    id = ((mdl_license_tag_t *)create.ref.entity)->id;
    put->mapping.license_key_tag_ids = ids_of(p, 1, id);
    make_mapping(db, put, p);
    return id;
}

/* The argument that adds the keys KEY-from to KEY-(to - 1). */
static mdl_license_add_t keys_to_add(apr_int64_t tag_id, int from, int to, apr_pool_t *p)
{
    mdl_json_t *keys = mdl_json_array(p);

    for (int i = from; i < to; i++) {
        mdl_json_add_string(keys, NULL, apr_psprintf(p, "KEY-%d", i));
    }
    return (mdl_license_add_t){
        .ref = {.shop_id = shop, .id = tag_id, .problem = apr_pcalloc(p, sizeof(mdl_problem_t))},
        .secret = secret,
        .keys = keys};
}

/* Adds these keys; returns how many were new, or -1. */
static int add(mdl_db_t *to_db, apr_int64_t tag_id, int from, int to, apr_pool_t *p)
{
    mdl_license_add_t added = keys_to_add(tag_id, from, to, p);

    return mdl_db_write(to_db, mdl_license_add_effect, &added, p) == APR_SUCCESS ? (int)added.added
                                                                                 : -1;
}

/* The keys that an order of a product gets, opened by a secret and separated by blanks; NULL if
   they can't be opened. */
static const char *keys_of(const char *order_id, const char *product, const mdl_secret_t *by,
                           apr_pool_t *p)
{
    mdl_order_assign_t *assign = new_assignment(shop, order_id, p, 1, product);
    const mdl_assignment_t *assignment;
    const apr_array_header_t *opened;

    if (mdl_db_write(db, mdl_order_assign_effect, assign, p) != APR_SUCCESS) {
        return "no order";
    }
    assignment = APR_ARRAY_IDX(assign->order->assignments, 0, const mdl_assignment_t *);
    opened = mdl_license_keys_open(by, assignment->license_keys, p);
    return opened != NULL ? apr_array_pstrcat(p, opened, ' ') : NULL;
}

static void keys_are_sealed(const database_t *database, apr_pool_t *p)
{
    is_int(add(db, tag, 0, 2, p), 2, "two keys are added");
    is_int(number_of(database, SEALED), 2, "they lie in the database sealed");
    is_int(add(db, tag, 1, 3, p), 1, "of two more, one is known");
    is_str(keys_of("1", PRODUCT("1"), secret, p), "KEY-0", "an order gets the first one");
    is_int(add(db, tag, 0, 1, p), 0, "one that was given away is known, too");
    is_int(add(db, make_tag(PRODUCT("2"), p), 0, 1, p), 1, "another tag may have the same key");
    is_int(number_of(database, "SELECT count(DISTINCT license_key) FROM license_key"), 4,
           "which is sealed to another text");
    is_int(number_of(database, "SELECT count(*) FROM data_key"), 1, "there is one data key");
}

static int add_some(mdl_db_t *own, int process, apr_pool_t *p)
{
    int good = 1;

    /* Other processes add half of these, too. */
    for (int i = 0; i < 20; i++) {
        good &= add(own, tag, 7000 + 10 * (i + 10 * process), 7010 + 10 * (i + 10 * process), p) >=
                0;
    }
    return good;
}

static void processes_add_at_once(const database_t *database, apr_pool_t *p)
{
    int good = 1;
    pid_t children[PROCESSES];

    mdl_db_command(db, "DELETE FROM data_key");
    mdl_db_command(db, "DELETE FROM license_key");
    for (int n = 0; n < PROCESSES; n++) {
        if ((children[n] = child_begin()) == 0) {
            child_end(add_some(database_open(database, p), n, p));
        }
    }
    for (int n = 0; n < PROCESSES; n++) {
        good &= child_good(children[n]);
    }
    ok(good, "four processes add keys at once, all with success");
    is_int(number_of(database, KEYS), 10 * (20 + 10 * (PROCESSES - 1)), "each is there once");
    is_int(number_of(database, SEALED), 10 * (20 + 10 * (PROCESSES - 1)), "sealed");
    is_int(add(db, tag, 7000, 7500, p), 0, "none of those that were added is new");
    is_int(number_of(database, "SELECT count(*) FROM data_key"), 1,
           "those that made the data key at once ended with one");
}

static void two_make_the_data_key_at_once(const database_t *database, apr_pool_t *p)
{
    apr_int64_t other = make_tag(PRODUCT("3"), p);
    mdl_license_add_t first = keys_to_add(tag, 1, 2, p), second = keys_to_add(other, 1, 2, p);
    meeting_t meeting = {database, mdl_license_add_effect,
                         &first,   mdl_license_add_effect,
                         &second,  APR_SUCCESS,
                         NULL,     0};

    meets(db, meeting, "the first key of two tags is added at once", p);
    is_int(number_of(database, "SELECT count(*) FROM data_key"), 1, "they share one data key");
    is_int(add(db, other, 1, 2, p), 0, "with which the second has sealed its own");
    mdl_db_command(db, "DELETE FROM license_key");
}

static apr_status_t renew_effect(mdl_db_t *in, apr_pool_t *p, void *arg)
{
    return mdl_data_key_renew(in, p, arg);
}

static mdl_data_key_renew_t renew(const mdl_secret_t *by, int only_count, apr_pool_t *p)
{
    mdl_data_key_renew_t renewal = {.secret = by, .only_count = only_count};

    mdl_db_write(db, renew_effect, &renewal, p);
    return renewal;
}

static void the_secret_is_replaced(apr_pool_t *p)
{
    const mdl_secret_t *old = secret, *both = make_secrets("ns", p), *next = make_secret('n', p);
    const char *keys = keys_of("8", PRODUCT("1"), old, p);

    ok(keys != NULL && *keys != '\0', "an order has keys");
    ok(keys_of("8", PRODUCT("1"), next, p) == NULL, "another secret does not open them");
    secret = next;
    is_int(add(db, tag, 9000, 9001, p), -1, "nor are keys added with it");
    is_int(renew(next, 0, p).lost, 1, "nor does it seal the data key anew");
    is_int(renew(both, 1, p).renewed, 1, "with the old one behind it, it would");
    ok(keys_of("8", PRODUCT("1"), next, p) == NULL, "which counting did not do");
    is_str(keys_of("8", PRODUCT("1"), both, p), keys, "both together open the keys");
    is_int(renew(both, 0, p).renewed, 1, "and seal the data key anew");
    is_int(renew(both, 0, p).renewed, 0, "once");
    is_str(keys_of("8", PRODUCT("1"), next, p), keys, "then the new one opens them");
    is_int(add(db, tag, 7000, 7001, p), 0, "and knows what is there");
    ok(keys_of("8", PRODUCT("1"), old, p) == NULL, "and the old one opens nothing");
    secret = next;
    mdl_db_command(db, "UPDATE license_key SET tag_id = tag_id + 1");
    ok(keys_of("8", PRODUCT("1"), next, p) == NULL, "nor are keys opened in another tag");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    secret = make_secret('s', p);
    shop = make_shop(db, "one.test", p);
    tag = make_tag(PRODUCT("1"), p);
    if (database->dialect == MDL_PGSQL) {
        two_make_the_data_key_at_once(database, p);
    }
    keys_are_sealed(database, p);
    processes_add_at_once(database, p);
    the_secret_is_replaced(p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
