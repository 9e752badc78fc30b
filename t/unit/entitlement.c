/*
 * What a customer is entitled to, by the states of order, assignment and file.
 */
#include "t/unit/tap.h"

#include "base/names.h"
#include "core/download/entitlement.h"

#define NOW 1000

static void test_order(void)
{
    is_int(mdl_entitlement_of_order(MDL_ORDER_ACTIVE, 0), MDL_ENTITLEMENT_OK,
           "an active order entitles");
    is_int(mdl_entitlement_of_order(MDL_ORDER_HELD, 0), MDL_ENTITLEMENT_HELD,
           "an order under review is held");
    is_int(mdl_entitlement_of_order(MDL_ORDER_REVOKED, 0), MDL_ENTITLEMENT_REVOKED,
           "a revoked order is revoked");
    is_int(mdl_entitlement_of_order(MDL_ORDER_REJECTED, 0), MDL_ENTITLEMENT_REJECTED,
           "a rejected order is rejected");
    is_int(mdl_entitlement_of_order(MDL_ORDER_ACTIVE, 1), MDL_ENTITLEMENT_UNDECLARED,
           "an active order may wait for its declaration");
    is_int(mdl_entitlement_of_order(MDL_ORDER_HELD, 1), MDL_ENTITLEMENT_HELD,
           "which no order under review does");
}

static mdl_entitlement_t assignment(mdl_assignment_status_t status, apr_time_t expires_at)
{
    return mdl_entitlement_of_assignment(status, expires_at, NOW);
}

static void test_assignment(void)
{
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, 0), MDL_ENTITLEMENT_OK,
           "an assignment without an end entitles");
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, NOW + 1), MDL_ENTITLEMENT_OK,
           "an assignment before its end entitles");
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, NOW), MDL_ENTITLEMENT_EXPIRED,
           "an assignment at its end has expired");
    is_int(assignment(MDL_ASSIGNMENT_REVOKED, 0), MDL_ENTITLEMENT_REVOKED,
           "a revoked assignment is revoked");
    is_int(assignment(MDL_ASSIGNMENT_REVOKED, NOW), MDL_ENTITLEMENT_REVOKED,
           "an assignment that was revoked and has expired is revoked");
}

static void test_file(void)
{
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){.used = 4}, 5),
           MDL_ENTITLEMENT_OK, "a file with a download left may be downloaded");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){.used = 5}, 5),
           MDL_ENTITLEMENT_EXHAUSTED, "a file without downloads left is exhausted");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){5, .resting = 1}, 5),
           MDL_ENTITLEMENT_OK, "a download that nothing is sent of is there for the next link");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){5, .running = 1}, 5),
           MDL_ENTITLEMENT_RUNNING, "a file whose last download runs is told from one without any");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){6, 1, 1}, 5),
           MDL_ENTITLEMENT_RUNNING, "what rests is no download if the limit was lowered below it");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){.used = 6}, 5),
           MDL_ENTITLEMENT_EXHAUSTED,
           "a file is exhausted after its limit was lowered below what was used");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, (mdl_downloads_t){.used = 99}, 0),
           MDL_ENTITLEMENT_OK, "a file without a limit may be downloaded");
    is_int(mdl_entitlement_of_file(MDL_ASSET_PENDING, (mdl_downloads_t){.used = 5}, 5),
           MDL_ENTITLEMENT_NOT_READY, "a file that is being prepared is not ready");
    is_int(mdl_entitlement_of_file(MDL_ASSET_FAILED, (mdl_downloads_t){.used = 5}, 5),
           MDL_ENTITLEMENT_FAILED, "a file that could not be prepared has failed");
}

static void test_first(void)
{
    mdl_entitlement_facts_t facts = {.access = MDL_ORDER_HELD,
                                     .assignment = MDL_ASSIGNMENT_REVOKED,
                                     .expires_at = NOW,
                                     .asset = MDL_ASSET_FAILED};

    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_HELD,
           "the order's access is checked first");
    facts.access = MDL_ORDER_ACTIVE;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_REVOKED,
           "the assignment's status is checked next");
    facts.assignment = MDL_ASSIGNMENT_ACTIVE;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_EXPIRED,
           "the assignment's end is checked next");
    facts.expires_at = 0;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_FAILED,
           "the file's status is checked next");
    facts.asset = MDL_ASSET_READY;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_OK,
           "without an obstacle the file may be downloaded");
}

static void test_names(void)
{
    is_int(mdl_names_find(mdl_order_access_names, "rejected"), MDL_ORDER_REJECTED,
           "a name has its value");
    is_int(mdl_names_find(mdl_order_access_names, "reject"), -1, "a prefix of a name has no value");
    is_int(mdl_names_find(mdl_order_access_names, "rejected "), -1,
           "a name followed by a space has no value");
    is_int(mdl_names_find(mdl_order_access_names, ""), -1, "an empty name has no value");
    is_int(mdl_names_find(mdl_order_access_names, NULL), -1, "NULL has no value");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_order();
    test_assignment();
    test_file();
    test_first();
    test_names();
    return tap_end(p);
}
