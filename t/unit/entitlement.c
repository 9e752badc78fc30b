/*
 * What a customer may have, by the states of order, assignment and file.
 */
#include "t/unit/tap.h"

#include "base/names.h"
#include "core/download/entitlement.h"

#define NOW 1000

static void test_order(void)
{
    is_int(mdl_entitlement_of_order(MDL_ORDER_ACTIVE), MDL_ENTITLEMENT_OK, "an active order");
    is_int(mdl_entitlement_of_order(MDL_ORDER_HELD), MDL_ENTITLEMENT_HELD, "one under review");
    is_int(mdl_entitlement_of_order(MDL_ORDER_REVOKED), MDL_ENTITLEMENT_REVOKED, "a revoked one");
    is_int(mdl_entitlement_of_order(MDL_ORDER_REJECTED), MDL_ENTITLEMENT_REJECTED,
           "a rejected one");
}

static mdl_entitlement_t assignment(mdl_assignment_status_t status, apr_time_t expires_at)
{
    return mdl_entitlement_of_assignment(status, expires_at, NOW);
}

static void test_assignment(void)
{
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, 0), MDL_ENTITLEMENT_OK, "access without an end");
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, NOW + 1), MDL_ENTITLEMENT_OK, "access that will end");
    is_int(assignment(MDL_ASSIGNMENT_ACTIVE, NOW), MDL_ENTITLEMENT_EXPIRED, "that ends now");
    is_int(assignment(MDL_ASSIGNMENT_REVOKED, 0), MDL_ENTITLEMENT_REVOKED, "that was revoked");
    is_int(assignment(MDL_ASSIGNMENT_REVOKED, NOW), MDL_ENTITLEMENT_REVOKED,
           "that was revoked and has expired");
}

static void test_file(void)
{
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, 4, 5), MDL_ENTITLEMENT_OK,
           "a file with a download left");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, 5, 5), MDL_ENTITLEMENT_EXHAUSTED,
           "with none left");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, 6, 5), MDL_ENTITLEMENT_EXHAUSTED,
           "with less than none, after its limit was lowered");
    is_int(mdl_entitlement_of_file(MDL_ASSET_READY, 99, 0), MDL_ENTITLEMENT_OK, "without a limit");
    is_int(mdl_entitlement_of_file(MDL_ASSET_PENDING, 5, 5), MDL_ENTITLEMENT_NOT_READY,
           "that is being prepared");
    is_int(mdl_entitlement_of_file(MDL_ASSET_FAILED, 5, 5), MDL_ENTITLEMENT_FAILED,
           "that could not be prepared");
}

static void test_first(void)
{
    mdl_entitlement_facts_t facts = {.access = MDL_ORDER_HELD,
                                     .assignment = MDL_ASSIGNMENT_REVOKED,
                                     .expires_at = NOW,
                                     .asset = MDL_ASSET_FAILED};

    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_HELD, "the order counts first");
    facts.access = MDL_ORDER_ACTIVE;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_REVOKED, "then the assignment");
    facts.assignment = MDL_ASSIGNMENT_ACTIVE;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_EXPIRED, "and its end");
    facts.expires_at = 0;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_FAILED, "then the file");
    facts.asset = MDL_ASSET_READY;
    is_int(mdl_entitlement_of(&facts, NOW), MDL_ENTITLEMENT_OK, "else it may be had");
}

static void test_names(void)
{
    is_int(mdl_names_find(mdl_order_access_names, "rejected"), MDL_ORDER_REJECTED,
           "a name has its value");
    is_int(mdl_names_find(mdl_order_access_names, "reject"), -1, "a part of one has none");
    is_int(mdl_names_find(mdl_order_access_names, "rejected "), -1, "nor has more than one");
    is_int(mdl_names_find(mdl_order_access_names, ""), -1, "nor an empty one");
    is_int(mdl_names_find(mdl_order_access_names, NULL), -1, "nor NULL");
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
