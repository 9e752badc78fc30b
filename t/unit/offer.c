/*
 * An order's offer: each file, link and key once, with sums and dates, and the assignment whose
 * download is used next.
 */
#include "t/unit/tap.h"

#include "core/order/offer.h"

#define NOW    apr_time_from_sec(1000000)
#define MINUTE apr_time_from_sec(60)

static apr_pool_t *pool;

static mdl_order_t *new_order(void)
{
    mdl_order_t *order = apr_pcalloc(pool, sizeof *order);

    order->assignments = apr_array_make(pool, 2, sizeof(mdl_assignment_t *));
    return order;
}

static mdl_assignment_t *add_assignment(mdl_order_t *order, apr_time_t expires_at)
{
    mdl_assignment_t *assignment = apr_pcalloc(pool, sizeof *assignment);

    assignment->id = order->assignments->nelts + 1;
    assignment->storefront_product_id = "1018";
    assignment->title = "Product 1018";
    assignment->download_type = MDL_DOWNLOAD_ZIP;
    assignment->expires_at = expires_at;
    assignment->files = apr_array_make(pool, 2, sizeof(mdl_order_file_t *));
    assignment->links = apr_array_make(pool, 2, sizeof(mdl_order_link_t *));
    assignment->license_keys = apr_array_make(pool, 2, sizeof(mdl_license_key_t));
    APR_ARRAY_PUSH(order->assignments, mdl_assignment_t *) = assignment;
    return assignment;
}

static mdl_order_file_t *add_file(mdl_assignment_t *assignment, apr_int64_t asset_id, int used,
                                  int limit)
{
    mdl_order_file_t *file = apr_pcalloc(pool, sizeof *file);

    *file = (mdl_order_file_t){.assignment_id = assignment->id,
                               .asset_id = asset_id,
                               .filename = "a.pdf",
                               .title = asset_id == 1 ? "One" : "Other",
                               .status = MDL_ASSET_READY,
                               .size = 100,
                               .downloads.used = used,
                               .download_limit = limit};
    APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = file;
    return file;
}

static void add_link(mdl_assignment_t *assignment, apr_int64_t link_id)
{
    mdl_order_link_t *link = apr_pcalloc(pool, sizeof *link);

    link->link_id = link_id;
    APR_ARRAY_PUSH(assignment->links, mdl_order_link_t *) = link;
}

static void call(mdl_assignment_t *assignment, const char *product_id, const char *title)
{
    assignment->storefront_product_id = product_id;
    assignment->title = title;
}

static const mdl_offer_t *offer_of(const mdl_order_t *order)
{
    return mdl_offer_make(order, NOW, pool);
}

static const mdl_offer_file_t *file_at(const mdl_offer_t *offer, int i)
{
    return APR_ARRAY_IDX(offer->files, i, const mdl_offer_file_t *);
}

static const mdl_offer_archive_t *archive_at(const mdl_offer_t *offer, int i)
{
    return APR_ARRAY_IDX(offer->archives, i, const mdl_offer_archive_t *);
}

static const mdl_offer_link_t *link_at(const mdl_offer_t *offer, int i)
{
    return APR_ARRAY_IDX(offer->links, i, const mdl_offer_link_t *);
}

static void test_empty(void)
{
    mdl_order_t *order = new_order();

    ok(mdl_offer_is_empty(offer_of(order)), "an order without assignments offers nothing");
    add_assignment(order, 0);
    ok(mdl_offer_is_empty(offer_of(order)), "an assignment without content offers nothing");
    APR_ARRAY_IDX(order->assignments, 0, mdl_assignment_t *)->license_keys_pending = 1;
    ok(!mdl_offer_is_empty(offer_of(order)), "a pending license key is an offer");
}

static void test_files(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    const mdl_offer_t *offer;

    add_file(first, 1, 4, 5);
    add_file(first, 2, 5, 5);
    add_file(second, 1, 2, 5);
    offer = offer_of(order);
    is_int(offer->files->nelts, 2, "a file of two assignments is offered once");
    is_int(file_at(offer, 0)->left, 4, "its downloads left are the sum of both assignments'");
    is_int(file_at(offer, 0)->total, 10, "its limit is the sum of both limits");
    is_int(file_at(offer, 0)->file->assignment_id, second->id,
           "the next download uses the assignment with most left");
    is_int(file_at(offer, 1)->entitlement, MDL_ENTITLEMENT_EXHAUSTED,
           "a file without downloads left is exhausted");

    add_file(add_assignment(order, 0), 1, 9, 0);
    offer = offer_of(order);
    is_int(file_at(offer, 0)->total, 0, "a file without a limit in one assignment has no limit");
    is_int(file_at(offer, 0)->file->assignment_id, 3, "the next download uses that assignment");
}

static void test_ends(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, NOW + 10 * MINUTE);
    mdl_assignment_t *second = add_assignment(order, first->expires_at + 1);
    const mdl_offer_t *offer;

    add_file(first, 1, 0, 5);
    add_file(second, 1, 0, 5);
    add_link(first, 7);
    add_link(second, 7);
    offer = offer_of(order);
    ok(!offer->ends_differ, "ends in the same minute do not differ");
    is_int(offer->expires_at, first->expires_at, "the offer's end is that of the first assignment");
    is_int(offer->files->nelts, 1, "the file is offered once");

    second->expires_at = NOW + 20 * MINUTE;
    offer = offer_of(order);
    ok(offer->ends_differ, "ends in different minutes differ");
    is_int(offer->files->nelts, 2, "the file is offered once for each end");
    is_int(file_at(offer, 1)->expires_at, second->expires_at,
           "each offer of the file has its own end");
    is_int(offer->links->nelts, 1, "a link is offered once nevertheless");
    is_int(link_at(offer, 0)->expires_at, second->expires_at, "the link has the later end");
    add_link(add_assignment(order, 0), 7);
    is_int(link_at(offer_of(order), 0)->expires_at, 0,
           "a link of an assignment without an end has no end");
}

static void test_closed(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *open = add_assignment(order, 0);
    mdl_assignment_t *expired = add_assignment(order, NOW - MINUTE);
    mdl_assignment_t *revoked = add_assignment(order, NOW - 1);

    add_file(open, 1, 0, 5);
    add_file(expired, 2, 0, 5);
    add_file(revoked, 3, 0, 5);
    revoked->status = MDL_ASSIGNMENT_REVOKED;
    is_int(offer_of(order)->files->nelts, 1, "closed assignments offer nothing");
    is_int(offer_of(order)->expired_at, expired->expires_at,
           "the end of the assignment that expired last is returned");
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_OK,
           "an order with an open assignment entitles");
    open->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_EXPIRED,
           "an order with an expired and a revoked assignment has expired");
    expired->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_REVOKED,
           "an order whose assignments are all revoked is revoked");
    order->state.access = MDL_ORDER_HELD;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_HELD,
           "the order's access takes precedence");
}

static void test_archives(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *used = add_file(first, 1, 5, 5);
    const mdl_offer_t *offer;

    is_int(offer_of(order)->archives->nelts, 0, "a single file has no archive");
    add_file(first, 2, 0, 5);
    add_file(second, 2, 0, 5);
    add_file(second, 1, 0, 5);
    offer = offer_of(order);
    is_int(offer->archives->nelts, 1, "the same files in any order have one archive");
    is_int(archive_at(offer, 0)->assignment->id, second->id,
           "its assignment is the one with downloads left");
    is_int(archive_at(offer, 0)->entitlement, MDL_ENTITLEMENT_OK, "it may be downloaded");
    is_int(archive_at(offer, 0)->count, 2, "it has both files");
    is_str(archive_at(offer, 0)->title, "Other", "its title is that of its first file");
    ok(archive_at(offer, 0)->is_all, "it has all files of its product");
    is_int(archive_at(offer, 0)->size, mdl_offer_archive_size(second, pool),
           "its size is that of the archive");

    add_file(add_assignment(order, 0), 3, 0, 5);
    ok(!archive_at(offer_of(order), 0)->is_all,
       "it does not have all files if the product has another one");
    used->downloads.used = 0;
    is_int(archive_at(offer_of(order), 0)->assignment->id, first->id,
           "the first assignment is used while it has downloads left");
    second->download_type = first->download_type = MDL_DOWNLOAD_FILES;
    is_int(offer_of(order)->archives->nelts, 0, "files that are sold singly have no archive");
}

static const mdl_offer_product_t *product_at(const mdl_offer_t *offer, int i)
{
    return APR_ARRAY_IDX(offer->products, i, const mdl_offer_product_t *);
}

/* Of three items the first and the last are one product; the second has the same files. */
static void test_products(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *other = add_assignment(order, 0),
                     *again = add_assignment(order, NOW + MINUTE);
    const mdl_order_file_t *file;
    const mdl_assignment_t *chosen;
    const mdl_offer_t *offer;

    call(other, "1018", "Other");
    first->note = again->note = other->note = "note";
    for (apr_int64_t asset = 1; asset <= 2; asset++) {
        add_file(first, asset, 5, 5);
        add_file(other, asset, 1, 5);
    }
    add_file(again, 3, 0, 5);
    add_link(first, 7);
    add_link(other, 7);
    first->license_keys_pending = 1;
    other->license_keys_pending = 2;
    again->license_keys_pending = 4;
    for (int i = 0; i < 3; i++) {
        mdl_assignment_t *owner = i == 1 ? other : i == 0 ? first : again;

        apr_array_push(owner->license_keys);
    }
    offer = offer_of(order);
    is_int(offer->products->nelts, 2, "items of the same title are one product");
    is_str(product_at(offer, 0)->title, NULL, "a title made of the number is none");
    is_str(product_at(offer, 1)->title, "Other", "an item of another title is another product");
    is_int(product_at(offer, 0)->files->nelts, 3, "the first has the files of both of its items");
    is_int(product_at(offer, 1)->files->nelts, 2,
           "the other has its own, though they are the same");
    is_int(APR_ARRAY_IDX(product_at(offer, 0)->files, 0, mdl_offer_file_t *)->left, 0,
           "the first has its own downloads left");
    is_int(APR_ARRAY_IDX(product_at(offer, 1)->files, 0, mdl_offer_file_t *)->left, 4,
           "and so has the other");
    is_int(product_at(offer, 0)->archives->nelts + product_at(offer, 1)->archives->nelts, 2,
           "each has its archive");
    ok(!archive_at(offer, 0)->is_all && archive_at(offer, 1)->is_all,
       "which has all files of its product, or not");
    is_int(product_at(offer, 1)->links->nelts, 1, "each has its link");
    is_int(product_at(offer, 0)->notes->nelts + product_at(offer, 1)->notes->nelts, 2,
           "each has the note, once");
    is_int(offer->notes->nelts, 1, "the order has it once");
    is_int(product_at(offer, 0)->license_keys_pending, 5, "keys to come are summed up");
    is_int(APR_ARRAY_IDX(product_at(offer, 0)->license_keys, 1, int), 2,
           "a product knows its keys among those of the order");
    ok(product_at(offer, 0)->ends_differ && !product_at(offer, 1)->ends_differ,
       "each has its own end");

    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "a file does not take the downloads of another product");
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "nor does an archive");
    call(other, "1019", first->title);
    is_int(offer_of(order)->products->nelts, 2, "products of the same title are two");
}

static void test_choose_file(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *named = add_file(first, 1, 0, 5), *other = add_file(second, 1, 0, 5);
    const mdl_order_file_t *file;

    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_OK,
           "a file can be downloaded");
    ok(file == named, "the assignment that the id names is used");
    named->downloads.used = 5;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_OK,
           "a file whose named assignment is exhausted can be downloaded");
    ok(file == other, "another assignment with the file is used");
    other->downloads.used = 5;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "a file is exhausted if all its assignments are");
    named->status = MDL_ASSET_PENDING;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_NOT_READY,
           "the named assignment gives the reason");
    first->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_REVOKED,
           "the reason of the assignment comes before that of the file");
    is_int(mdl_offer_choose_file(order, "1-2", NOW, &file, pool), MDL_ENTITLEMENT_GONE,
           "a file that is not in the order is gone");
    is_int(mdl_offer_choose_file(order, "01-1", NOW, &file, pool), MDL_ENTITLEMENT_GONE,
           "an id in another spelling is gone");
}

static void test_choose_archive(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *used = add_file(first, 1, 5, 5);
    const mdl_assignment_t *chosen;

    add_file(second, 1, 0, 5);
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_NOT_READY,
           "an assignment with one file has no archive");
    add_file(first, 2, 0, 5);
    add_file(second, 2, 0, 5);
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_OK,
           "an archive whose named assignment is exhausted can be downloaded");
    ok(chosen == second, "another assignment with the same files is used");
    second->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "an archive is exhausted if no other assignment is open");
    used->downloads.used = 4;
    is_int(mdl_offer_choose_archive(order, "2", NOW, &chosen, pool), MDL_ENTITLEMENT_OK,
           "an archive whose named assignment is revoked can be downloaded");
    ok(chosen == first, "the first assignment is used for it");
    is_int(mdl_offer_choose_archive(order, "3", NOW, &chosen, pool), MDL_ENTITLEMENT_GONE,
           "the archive of an unknown assignment is gone");
}

static void test_choose_link(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *expired = add_assignment(order, NOW), *open = add_assignment(order, 0);
    const mdl_order_link_t *link;

    add_link(expired, 7);
    add_link(open, 8);
    is_int(mdl_offer_choose_link(order, 7, NOW, &link), MDL_ENTITLEMENT_EXPIRED,
           "a link ends with its assignment");
    is_int(mdl_offer_choose_link(order, 9, NOW, &link), MDL_ENTITLEMENT_GONE,
           "a link that is not in the order is gone");
    add_link(open, 7);
    is_int(mdl_offer_choose_link(order, 7, NOW, &link), MDL_ENTITLEMENT_OK,
           "a link is open if any of its assignments is");
    is_int(link->link_id, 7, "the link is returned");
}

int main(void)
{
    pool = tap_begin();
    test_empty();
    test_files();
    test_ends();
    test_closed();
    test_archives();
    test_products();
    test_choose_file();
    test_choose_archive();
    test_choose_link();
    return tap_end(pool);
}
