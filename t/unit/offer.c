/*
 * What an order offers: each file, link and key once, with sums and dates, and the assignment that
 * the next download is taken from.
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
    assignment->download_type = MDL_DOWNLOAD_ZIP;
    assignment->expires_at = expires_at;
    assignment->files = apr_array_make(pool, 2, sizeof(mdl_order_file_t *));
    assignment->links = apr_array_make(pool, 2, sizeof(mdl_order_link_t *));
    assignment->license_keys = apr_array_make(pool, 2, sizeof(const char *));
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
                               .downloads_used = used,
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
    ok(mdl_offer_is_empty(offer_of(order)), "nor does an assignment without content");
    APR_ARRAY_IDX(order->assignments, 0, mdl_assignment_t *)->license_keys_pending = 1;
    ok(!mdl_offer_is_empty(offer_of(order)), "a license key to come is something");
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
    is_int(file_at(offer, 0)->left, 4, "with the downloads left of both");
    is_int(file_at(offer, 0)->total, 10, "and the sum of their limits");
    is_int(file_at(offer, 0)->file->assignment_id, second->id,
           "the next one is taken where most are left");
    is_int(file_at(offer, 1)->entitlement, MDL_ENTITLEMENT_EXHAUSTED, "a used up file says so");

    add_file(add_assignment(order, 0), 1, 9, 0);
    offer = offer_of(order);
    is_int(file_at(offer, 0)->total, 0, "without a limit in one of them there is none");
    is_int(file_at(offer, 0)->file->assignment_id, 3, "and the next is taken from that one");
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
    ok(!offer->ends_differ, "ends in the same minute are one end");
    is_int(offer->expires_at, first->expires_at, "that of the first");
    is_int(offer->files->nelts, 1, "and the file is offered once");

    second->expires_at = NOW + 20 * MINUTE;
    offer = offer_of(order);
    ok(offer->ends_differ, "ends in other minutes differ");
    is_int(offer->files->nelts, 2, "then the file is offered for each of them");
    is_int(file_at(offer, 1)->expires_at, second->expires_at, "with its own end");
    is_int(offer->links->nelts, 1, "a link is offered once all the same");
    is_int(link_at(offer, 0)->expires_at, second->expires_at, "up to the last end");
    add_link(add_assignment(order, 0), 7);
    is_int(link_at(offer_of(order), 0)->expires_at, 0, "or without an end");
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
    is_int(offer_of(order)->expired_at, expired->expires_at, "the last that expired is known");
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_OK, "one that is open is enough");
    open->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_EXPIRED,
           "of closed ones an expired one decides");
    expired->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_REVOKED, "else all are revoked");
    order->state.access = MDL_ORDER_HELD;
    is_int(mdl_order_entitlement(order, NOW), MDL_ENTITLEMENT_HELD, "the order's access is first");
}

static void test_archives(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *used = add_file(first, 1, 5, 5);
    const mdl_offer_t *offer;

    is_int(offer_of(order)->archives->nelts, 0, "one file makes no archive");
    add_file(first, 2, 0, 5);
    add_file(second, 2, 0, 5);
    add_file(second, 1, 0, 5);
    offer = offer_of(order);
    is_int(offer->archives->nelts, 1, "the same files in any order make one archive");
    is_int(archive_at(offer, 0)->assignment->id, second->id,
           "of the assignment that has downloads");
    is_int(archive_at(offer, 0)->entitlement, MDL_ENTITLEMENT_OK, "so it may be had");
    is_int(archive_at(offer, 0)->count, 2, "with both files");
    is_str(archive_at(offer, 0)->title, "Other", "of which this is the first");
    ok(archive_at(offer, 0)->is_all, "which are all");
    is_int(archive_at(offer, 0)->size, mdl_offer_archive_size(second, pool), "and its size");

    add_file(add_assignment(order, 0), 3, 0, 5);
    ok(!archive_at(offer_of(order), 0)->is_all, "beside another file they are not all");
    used->downloads_used = 0;
    is_int(archive_at(offer_of(order), 0)->assignment->id, first->id,
           "the first assignment serves while it can");
    second->download_type = first->download_type = MDL_DOWNLOAD_FILES;
    is_int(offer_of(order)->archives->nelts, 0, "files that are sold singly make none");
}

static void test_choose_file(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *named = add_file(first, 1, 0, 5), *other = add_file(second, 1, 0, 5);
    const mdl_order_file_t *file;

    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_OK, "a file");
    ok(file == named, "is taken from the assignment that is named");
    named->downloads_used = 5;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_OK,
           "when that is used up");
    ok(file == other, "another that gives the file serves");
    other->downloads_used = 5;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "when both are, there is none");
    named->status = MDL_ASSET_PENDING;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_NOT_READY,
           "the named one says why");
    first->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_offer_choose_file(order, "1-1", NOW, &file, pool), MDL_ENTITLEMENT_REVOKED,
           "its assignment first");
    is_int(mdl_offer_choose_file(order, "1-2", NOW, &file, pool), MDL_ENTITLEMENT_GONE,
           "another file is not in the order");
    is_int(mdl_offer_choose_file(order, "01-1", NOW, &file, pool), MDL_ENTITLEMENT_GONE,
           "nor is one by another spelling");
}

static void test_choose_archive(void)
{
    mdl_order_t *order = new_order();
    mdl_assignment_t *first = add_assignment(order, 0), *second = add_assignment(order, 0);
    mdl_order_file_t *used = add_file(first, 1, 5, 5);
    const mdl_assignment_t *chosen;

    add_file(second, 1, 0, 5);
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_NOT_READY,
           "one file is no archive");
    add_file(first, 2, 0, 5);
    add_file(second, 2, 0, 5);
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_OK,
           "an archive that is used up");
    ok(chosen == second, "comes from another assignment with the same files");
    second->status = MDL_ASSIGNMENT_REVOKED;
    is_int(mdl_offer_choose_archive(order, "1", NOW, &chosen, pool), MDL_ENTITLEMENT_EXHAUSTED,
           "or from none");
    used->downloads_used = 4;
    is_int(mdl_offer_choose_archive(order, "2", NOW, &chosen, pool), MDL_ENTITLEMENT_OK,
           "and the other way round");
    ok(chosen == first, "from the first");
    is_int(mdl_offer_choose_archive(order, "3", NOW, &chosen, pool), MDL_ENTITLEMENT_GONE,
           "an assignment that is not there has none");
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
           "another is not in the order");
    add_link(open, 7);
    is_int(mdl_offer_choose_link(order, 7, NOW, &link), MDL_ENTITLEMENT_OK,
           "and it is open where any assignment is");
    is_int(link->link_id, 7, "that has it");
}

int main(void)
{
    pool = tap_begin();
    test_empty();
    test_files();
    test_ends();
    test_closed();
    test_archives();
    test_choose_file();
    test_choose_archive();
    test_choose_link();
    return tap_end(pool);
}
