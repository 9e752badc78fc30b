#include "t/unit/fixtures.h"
#include "t/unit/effects.h"

static mdl_db_t *db;
static apr_int64_t shop, other_shop;
static apr_int64_t file_a, file_b, file_pending;

static apr_status_t assign(mdl_order_assign_t *assignment, apr_pool_t *p)
{
    return mdl_db_write(db, mdl_order_assign_effect, assignment, p);
}

static mdl_order_t *find(const char *order_id, apr_pool_t *p)
{
    mdl_order_find_t find = {
        .shop_id = shop, .storefront_order_id = order_id, .default_download_limit = 5};

    return mdl_db_read(db, mdl_order_find_effect, &find, p) == APR_SUCCESS ? find.order : NULL;
}

static mdl_assignment_t *assignment_of(const mdl_order_t *order, int n)
{
    return APR_ARRAY_IDX(order->assignments, n, mdl_assignment_t *);
}

static mdl_order_file_t *file_of(const mdl_order_t *order, int assignment, int n)
{
    return APR_ARRAY_IDX(assignment_of(order, assignment)->files, n, mdl_order_file_t *);
}

/* Claims the due jobs that send emails; a second email of an order would be among them. */
static int emails_queued(apr_pool_t *p)
{
    mdl_job_look_t look = {.until = APR_INT64_MAX};
    mdl_job_claim_t claim = {.lane = MDL_LANE_MAIL, .owner = "test", .limit = 100, .look = &look};
    int n = 0;

    if (mdl_db_write(db, mdl_job_claim_effect, &claim, p) != APR_SUCCESS) {
        return -1;
    }
    for (int i = 0; i < claim.jobs->nelts; i++) {
        n += APR_ARRAY_IDX(claim.jobs, i, mdl_job_t *)->attempts == 1;
    }
    return n;
}

static void test_assign(apr_pool_t *p)
{
    mdl_order_assign_t *first = new_assignment(shop, "1001", p, 2, PRODUCT("1"), PRODUCT("2"));
    mdl_order_assign_t *again = new_assignment(shop, "1001", p, 2, PRODUCT("1"), PRODUCT("2"));
    mdl_order_assign_t *more = new_assignment(shop, "1001", p, 2, PRODUCT("1"), PRODUCT("3"));
    mdl_order_t *order;

    first->customer.email = "jane@example.test";
    first->customer.first_name = "Jane";
    is_int(assign(first, p), APR_SUCCESS, "two products are assigned");
    is_int(first->created, 2, "two assignments are created");
    order = first->order;
    is_str(order->storefront_order_id, "1001", "the order is returned");
    is_str(order->customer.storefront_customer_id, "77", "its customer is returned");
    is_str(order->customer.first_name, "Jane", "the customer's first name is returned");
    is_str(order->customer.last_name, NULL, "the customer's unknown last name is NULL");
    is_int(order->state.access, MDL_ORDER_ACTIVE, "access is active");
    is_int(order->state.decision, MDL_FRAUD_NOT_CHECKED, "fraud was not checked");
    is_int(order->email.status, MDL_EMAIL_NOT_REQUESTED, "no email was requested");
    is_int(order->assignments->nelts, 2, "it has two assignments");
    is_str(assignment_of(order, 1)->storefront_product_id, PRODUCT("2"),
           "they are in the order of the items");
    is_int(assignment_of(order, 0)->files->nelts, 2, "the first assignment has two files");
    is_str(file_of(order, 0, 0)->filename, "b.pdf", "they are in the order of the mapping");
    is_int(file_of(order, 0, 0)->size, 4321, "a file has its size");
    is_int(file_of(order, 0, 0)->download_limit, 5, "a file has the default limit");
    is_int(strlen(order->page_id), 22, "the order has a page id");

    is_int(assign(again, p), APR_SUCCESS, "assigning the same again succeeds");
    is_int(again->created, 0, "no assignment is created");
    is_int(again->order->id, order->id, "the order is the same");
    is_str(again->order->page_id, order->page_id, "the page is the same");
    is_int(again->order->assignments->nelts, 2, "the assignments are the same");
    is_str(again->order->customer.email, "jane@example.test",
           "a customer's member that is left out stays");
    is_int(assign(more, p), APR_SUCCESS, "another product can be assigned beside an earlier one");
    is_int(more->created, 1, "only the missing assignment is created");
    is_int(more->order->assignments->nelts, 3, "the order has three assignments");
}

static void test_find(apr_pool_t *p)
{
    mdl_order_t *order = find("1001", p);
    mdl_order_find_t by_page = {.page_id = order->page_id};
    mdl_order_find_t by_id = {.id = order->id};
    mdl_order_find_t foreign = {.shop_id = other_shop, .storefront_order_id = "1001"};
    mdl_order_find_t none = {.page_id = "AAAAAAAAAAAAAAAAAAAAAA"};

    is_int(mdl_db_read(db, mdl_order_find_effect, &by_page, p), APR_SUCCESS,
           "an order is found by its page id");
    is_int(by_page.order->id, order->id, "it is the order with that page id");
    is_int(mdl_db_read(db, mdl_order_find_effect, &by_id, p), APR_SUCCESS,
           "an order is found by its id");
    is_str(by_id.order->storefront_order_id, "1001", "it is the order with that id");
    is_int(mdl_db_read(db, mdl_order_find_effect, &foreign, p), APR_ENOENT,
           "another shop does not find it");
    is_int(mdl_db_read(db, mdl_order_find_effect, &none, p), APR_ENOENT,
           "an unknown page id finds no order");
}

static void test_refused(apr_pool_t *p)
{
    mdl_order_assign_t *unknown = new_assignment(shop, "1002", p, 3, PRODUCT("404"), PRODUCT("1"),
                                                 PRODUCT("405"));
    mdl_order_assign_t *other = new_assignment(shop, "1001", p, 1, PRODUCT("1"));
    mdl_order_assign_t *revoked = new_assignment(shop, "1001", p, 1, PRODUCT("1"));
    mdl_order_assign_t *foreign = new_assignment(other_shop, "1001", p, 1, PRODUCT("1"));
    const apr_array_header_t *details;

    is_int(assign(unknown, p), MDL_EPROBLEM, "products without a mapping are refused");
    is_int(unknown->problem->status, 422, "the status is 422");
    is_str(unknown->problem->code, "product_not_mapped", "the code is product_not_mapped");
    details = unknown->problem->details;
    is_int(details->nelts, 2, "each unmapped product is listed");
    is_str(APR_ARRAY_IDX(details, 1, mdl_problem_detail_t).pointer,
           "/items/2/storefront_product_id", "its position is given");
    ok(find("1002", p) == NULL, "the order is not created");
    is_int(assign(foreign, p), MDL_EPROBLEM, "a product of another shop's mapping is refused");

    other->customer.storefront_customer_id = "78";
    is_int(assign(other, p), MDL_EPROBLEM, "an order of another customer is refused");
    is_int(other->problem->status, 409, "the status is 409");
    is_str(find("1001", p)->customer.storefront_customer_id, "77", "the order keeps its customer");

    mdl_db_command(db, "UPDATE orders SET access_status = 'revoked' "
                       "WHERE storefront_order_id = '1001'");
    is_int(assign(revoked, p), MDL_EPROBLEM, "an order whose access was revoked is refused");
    is_int(revoked->problem->status, 409, "the status is 409");
    is_str(revoked->problem->code, "access_revoked", "the code is access_revoked");
    mdl_db_command(db, "UPDATE orders SET access_status = 'active'");
}

static void test_variants(apr_pool_t *p)
{
    mdl_mapping_put_t *special = new_mapping(shop, PRODUCT("1"), ids_of(p, 1, file_pending), p);
    mdl_order_assign_t *both = new_assignment(shop, "1003", p, 2, PRODUCT("1"), PRODUCT("1"));

    special->mapping.storefront_variant_ids = texts_of(p, 1, VARIANT("5"));
    make_mapping(db, special, p);
    APR_ARRAY_IDX(both->items, 1, mdl_order_item_t).storefront_variant_id = VARIANT("5");
    APR_ARRAY_IDX(both->items, 1, mdl_order_item_t).quantity = 3;
    assign(both, p);
    is_int(both->created, 2, "a product and one of its variants are two assignments");
    is_int(assignment_of(both->order, 1)->mapping_id, special->mapping.id,
           "the variant's own mapping is used");
    is_str(assignment_of(both->order, 1)->storefront_variant_id, VARIANT("5"),
           "the assignment has the variant's id");
    is_int(assignment_of(both->order, 1)->quantity, 3, "the assignment has its quantity");
    is_int(file_of(both->order, 1, 0)->status, MDL_ASSET_PENDING, "a file may be pending");
    is_str(file_of(both->order, 1, 0)->sha256, NULL, "a pending file has no digest");
}

static void test_content(apr_pool_t *p)
{
    mdl_mapping_put_t *live = new_mapping(shop, PRODUCT("20"), ids_of(p, 1, file_a), p);
    mdl_mapping_put_t *pinned = new_mapping(shop, PRODUCT("21"), ids_of(p, 2, file_b, file_a), p);
    mdl_order_t *order;

    pinned->mapping.content = MDL_CONTENT_PINNED;
    make_mapping(db, live, p);
    make_mapping(db, pinned, p);
    assign(new_assignment(shop, "1004", p, 2, PRODUCT("20"), PRODUCT("21")), p);
    live->mapping.file_ids = ids_of(p, 2, file_b, file_pending);
    pinned->mapping.file_ids = ids_of(p, 1, file_pending);
    make_mapping(db, live, p);
    make_mapping(db, pinned, p);
    order = find("1004", p);
    is_int(assignment_of(order, 0)->files->nelts, 2, "live content follows its mapping");
    is_int(file_of(order, 0, 0)->asset_id, file_b, "the files are those of the mapping now");
    is_int(assignment_of(order, 1)->files->nelts, 2, "pinned content stays");
    is_int(file_of(order, 1, 0)->asset_id, file_b,
           "the files are those of the mapping at the assignment");
    is_int(file_of(order, 1, 1)->asset_id, file_a, "they keep their order");
    assign(new_assignment(shop, "1005", p, 1, PRODUCT("21")), p);
    is_int(file_of(find("1005", p), 0, 0)->asset_id, file_pending,
           "a later order has the mapping's files at its own time");
}

static void test_terms(apr_pool_t *p)
{
    mdl_mapping_put_t *days = new_mapping(shop, PRODUCT("30"), ids_of(p, 1, file_a), p);
    mdl_mapping_put_t *endless = new_mapping(shop, PRODUCT("31"), ids_of(p, 1, file_a), p);
    apr_time_t before = apr_time_now();
    mdl_order_t *order;
    apr_time_t end;

    days->mapping.access_days = 30;
    days->mapping.download_limit = 2;
    endless->mapping.download_limit = 0;
    make_mapping(db, days, p);
    make_mapping(db, endless, p);
    assign(new_assignment(shop, "1006", p, 1, PRODUCT("30")), p);
    order = find("1006", p);
    end = assignment_of(order, 0)->expires_at;
    ok(end >= before + apr_time_from_sec(30 * 86400) &&
           end <= apr_time_now() + apr_time_from_sec(30 * 86400),
       "access for 30 days ends after 30 days");
    is_int(order->expires_at, end, "the order ends with it");
    is_int(file_of(order, 0, 0)->download_limit, 2, "the limit of the mapping is used");
    assign(new_assignment(shop, "1006", p, 1, PRODUCT("31")), p);
    order = find("1006", p);
    is_int(assignment_of(order, 1)->expires_at, 0, "unlimited access has no end");
    is_int(order->expires_at, 0, "an order with an unlimited assignment has no end");
    is_int(file_of(order, 1, 0)->download_limit, 0, "a limit of 0 is unlimited");

    days->mapping.access_days = 10;
    days->mapping.download_limit = 7;
    make_mapping(db, days, p);
    order = find("1006", p);
    is_int(assignment_of(order, 0)->expires_at, end,
           "an assignment's end stays when its mapping changes");
    is_int(file_of(order, 0, 0)->download_limit, 7, "the limit is that of the mapping now");
}

static mdl_order_assign_t *mailed(const char *order_id, const char *to, const char *product,
                                  apr_pool_t *p)
{
    mdl_order_assign_t *assignment = new_assignment(shop, order_id, p, 1, product);

    assignment->customer.storefront_customer_id = order_id;
    assignment->customer.email = to;
    assignment->send_email = 1;
    assign(assignment, p);
    return assignment;
}

static void test_email(apr_pool_t *p)
{
    const char *jane = "jane@example.test";
    mdl_order_assign_t *assignment = mailed("2001", jane, PRODUCT("1"), p);

    is_int(assignment->order->email.status, MDL_EMAIL_QUEUED, "the email is queued");
    is_str(assignment->order->email.to, jane, "it is to the customer");
    is_int(emails_queued(p), 1, "one job is queued");
    mailed("2001", jane, PRODUCT("1"), p);
    is_int(emails_queued(p), 0, "assigning the same again sends no second email");
    mailed("2001", NULL, PRODUCT("2"), p);
    is_int(emails_queued(p), 1, "assigning another product sends an email to the known address");

    assign(new_assignment(shop, "2002", p, 1, PRODUCT("1")), p);
    is_int(emails_queued(p), 0, "no email is sent without send_email");
    assignment = new_assignment(shop, "2002", p, 1, PRODUCT("1"));
    assignment->customer.email = jane;
    assignment->send_email = 1;
    assign(assignment, p);
    is_int(assignment->created, 0, "no assignment is created when all exist");
    is_int(emails_queued(p), 1, "a first email can still be requested");

    assignment = mailed("2003", NULL, PRODUCT("1"), p);
    is_int(assignment->order->email.status, MDL_EMAIL_NO_RECIPIENT,
           "a missing address is recorded");
    is_int(emails_queued(p), 0, "no job is queued without an address");
    mailed("2003", NULL, PRODUCT("1"), p);
    is_int(emails_queued(p), 0, "no job is queued when the email is requested again");
    assignment = mailed("2003", jane, PRODUCT("1"), p);
    is_int(assignment->order->email.status, MDL_EMAIL_QUEUED,
           "the email is queued once there is an address");
    is_int(emails_queued(p), 1, "its job is queued");
}

static void test_fraud_check(apr_pool_t *p)
{
    mdl_order_assign_t *assignment = new_assignment(shop, "3001", p, 1, PRODUCT("1"));

    assignment->fraud_check = 1;
    assignment->fraud_rules = &(mdl_fraud_rules_t){.settings = mdl_settings_create(p)};
    assign(assignment, p);
    is_int(assignment->order->state.decision, MDL_FRAUD_PASSED, "an order that is checked passes");
    assign(new_assignment(shop, "3001", p, 1, PRODUCT("2")), p);
    is_int(find("3001", p)->state.decision, MDL_FRAUD_PASSED,
           "the decision stays when another product is assigned");
}

/* --- concurrent processes with the same assignment to one order --- */

#define PROCESSES 4

static void test_at_once(const database_t *database, apr_pool_t *p)
{
    pid_t children[PROCESSES];
    int results[2], good = 1, created = 0;
    char byte;

    if (pipe(results) != 0) {
        exit(2);
    }
    for (int i = 0; i < PROCESSES; i++) {
        if ((children[i] = child_begin()) == 0) {
            mdl_order_assign_t *own = new_assignment(shop, "4001", p, 2, PRODUCT("1"),
                                                     PRODUCT("2"));
            apr_status_t rv;

            db = database_open(database, p);
            own->customer = (mdl_customer_t){.storefront_customer_id = "4001", .email = "x@y.test"};
            own->send_email = 1;
            rv = assign(own, p);
            byte = (char)own->created;
            child_end(rv == APR_SUCCESS && write(results[1], &byte, 1) == 1);
        }
    }
    close(results[1]);
    for (int i = 0; i < PROCESSES; i++) {
        good &= child_good(children[i]);
    }
    while (read(results[0], &byte, 1) == 1) {
        created += byte;
    }
    close(results[0]);
    ok(good, "four processes that assign the same at once all succeed");
    is_int(created, 2, "each assignment is created by one of them");
    is_int(find("4001", p)->assignments->nelts, 2, "each assignment exists once");
    is_int(emails_queued(p), 1, "one email is queued");
}

/* The effect runs again after a lost connection, after another request has succeeded. */
static void test_run_again(apr_pool_t *p)
{
    mdl_order_assign_t *first = new_assignment(shop, "6001", p, 1, PRODUCT("1"));
    mdl_order_assign_t *between = new_assignment(shop, "6002", p, 1, PRODUCT("1"));

    assign(first, p);
    between->customer.email = "new@example.test";
    assign(between, p);
    is_int(assign(first, p), APR_SUCCESS, "an assignment can run again");
    is_str(first->order->customer.email, "new@example.test",
           "it keeps the address that the customer got meanwhile");
}

static void tests(const database_t *database, apr_pool_t *p)
{
    db = database_ready(database, p);
    shop = make_shop(db, "one.test", p);
    other_shop = make_shop(db, "two.test", p);
    file_a = make_asset(db, shop, "a.pdf", 1, p);
    file_b = make_asset(db, shop, "b.pdf", 1, p);
    file_pending = make_asset(db, shop, "c.pdf", 0, p);
    make_mapping(db, new_mapping(shop, PRODUCT("1"), ids_of(p, 2, file_b, file_a), p), p);
    make_mapping(db, new_mapping(shop, PRODUCT("2"), ids_of(p, 1, file_a), p), p);
    make_mapping(db, new_mapping(shop, PRODUCT("3"), ids_of(p, 0), p), p);
    test_assign(p);
    test_find(p);
    test_refused(p);
    test_variants(p);
    test_content(p);
    test_terms(p);
    test_email(p);
    test_fraud_check(p);
    test_run_again(p);
    test_at_once(database, p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    on_each_database(tests, p);
    return tap_end(p);
}
