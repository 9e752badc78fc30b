/*
 * The answer that an order's checks give together: its outcome, the check that explains it, and the
 * remedy.
 */
#include "t/unit/tap.h"

#include <apr_strings.h>

#include "core/order/verdict.h"

/* A diagnosis in which everything is well. */
static mdl_diagnosis_t well(void)
{
    mdl_diagnosis_t diagnosis = {.first_failure = MDL_CHECKS};

    for (int i = 0; i < MDL_CHECKS; i++) {
        diagnosis.checks[i].finding = "well";
    }
    return diagnosis;
}

static void find(mdl_diagnosis_t *diagnosis, mdl_check_name_t check, mdl_check_status_t status,
                 const char *finding)
{
    diagnosis->checks[check].status = status;
    diagnosis->checks[check].finding = finding;
}

static mdl_order_t *order_of(apr_pool_t *p, int files, apr_int64_t keys_pending)
{
    static mdl_order_file_t file;
    mdl_order_t *order = mdl_order_make(p);
    mdl_assignment_t *assignment = mdl_assignment_make(p);

    for (int i = 0; i < files; i++) {
        APR_ARRAY_PUSH(assignment->files, mdl_order_file_t *) = &file;
    }
    assignment->license_keys_pending = keys_pending;
    APR_ARRAY_PUSH(order->assignments, mdl_assignment_t *) = assignment;
    order->address = "ada@example.test";
    order->email.status = MDL_EMAIL_SENT;
    return order;
}

/* Checks the verdict: "no about access: extend". */
static void is_verdict(const mdl_order_t *order, const mdl_diagnosis_t *diagnosis,
                       const char *expected, const char *name, apr_pool_t *p)
{
    mdl_verdict_t verdict = mdl_verdict_of(order, diagnosis);

    is_str(apr_psprintf(p, "%s about %s: %s", mdl_outcome_names[verdict.outcome],
                        verdict.about < MDL_CHECKS ? mdl_check_names[verdict.about] : "all",
                        mdl_remedy_names[verdict.remedy]),
           expected, name);
}

static void test_each(apr_pool_t *p)
{
    static const struct {
        mdl_check_name_t check;
        mdl_check_status_t status;
        const char *finding, *expected;
    } cases[] = {
        {MDL_CHECK_FRAUD, MDL_CHECK_FAIL, "fraud_review", "no about fraud: approve"},
        {MDL_CHECK_FRAUD, MDL_CHECK_FAIL, "fraud_rejected", "no about fraud: approve"},
        {MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_revoked", "no about access: restore"},
        {MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_expired", "no about access: extend"},
        {MDL_CHECK_ACCESS, MDL_CHECK_WARN, "access_partly", "partly about access: nothing"},
        {MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_undeclared", "no about access: send"},
        {MDL_CHECK_PAGE, MDL_CHECK_FAIL, "page_empty", "no about page: nothing"},
        {MDL_CHECK_MAPPING, MDL_CHECK_FAIL, "mapping_empty", "no about mapping: nothing"},
        {MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_empty", "partly about mapping: nothing"},
        {MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_keys_missing",
         "partly about mapping: nothing"},
        {MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_inactive", "yes about all: nothing"},
        {MDL_CHECK_FILE, MDL_CHECK_WARN, "file_failed", "partly about file: nothing"},
        {MDL_CHECK_FILE, MDL_CHECK_FAIL, "file_failed", "no about file: nothing"},
        {MDL_CHECK_ALLOWANCE, MDL_CHECK_FAIL, "allowance_used_up", "no about allowance: grant"},
        {MDL_CHECK_ALLOWANCE, MDL_CHECK_WARN, "allowance_used_up", "partly about allowance: grant"},
        {MDL_CHECK_ALLOWANCE, MDL_CHECK_WARN, "allowance_running", "yes about allowance: nothing"},
        {MDL_CHECK_EMAIL, MDL_CHECK_FAIL, "email_came_back", "no about email: address"},
        {MDL_CHECK_EMAIL, MDL_CHECK_WARN, "email_tried_again", "partly about email: nothing"},
        {MDL_CHECK_EMAIL, MDL_CHECK_WARN, "email_not_asked", "yes about email: nothing"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdl_diagnosis_t diagnosis = well();

        find(&diagnosis, cases[i].check, cases[i].status, cases[i].finding);
        is_verdict(order_of(p, 1, 0), &diagnosis, cases[i].expected, cases[i].finding, p);
    }
}

static void test_together(apr_pool_t *p)
{
    mdl_order_t *order = order_of(p, 1, 0);
    mdl_diagnosis_t diagnosis = well();

    is_verdict(order, &diagnosis, "yes about all: nothing", "an order without any fault", p);
    find(&diagnosis, MDL_CHECK_RECIPIENT, MDL_CHECK_FAIL, "recipient_missing");
    find(&diagnosis, MDL_CHECK_EMAIL, MDL_CHECK_WARN, "email_not_asked");
    is_verdict(order, &diagnosis, "yes about email: nothing",
               "no address is needed where no email was asked for", p);
    find(&diagnosis, MDL_CHECK_EMAIL, MDL_CHECK_FAIL, "email_failed");
    find(&diagnosis, MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_keys_missing");
    is_verdict(order, &diagnosis, "no about email: address", "the worst counts", p);
    find(&diagnosis, MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_expired");
    is_verdict(order, &diagnosis, "no about access: extend",
               "of the worst, the one that has to be mended first", p);
    find(&diagnosis, MDL_CHECK_ACCESS, MDL_CHECK_FAIL, "access_revoked");
    find(&diagnosis, MDL_CHECK_FRAUD, MDL_CHECK_FAIL, "fraud_review");
    is_verdict(order, &diagnosis, "no about access: restore",
               "an order that was revoked under review is restored first", p);
    find(&diagnosis, MDL_CHECK_FRAUD, MDL_CHECK_FAIL, "fraud_rejected");
    is_verdict(order, &diagnosis, "no about fraud: approve",
               "one that was rejected can only be approved", p);
    order->shop_blocked = 1;
    is_verdict(order, &diagnosis, "no about all: nothing", "a blocked shop has no remedy", p);
}

static void test_of_order(apr_pool_t *p)
{
    mdl_order_t *order = order_of(p, 0, 5);
    mdl_diagnosis_t diagnosis = well();

    find(&diagnosis, MDL_CHECK_MAPPING, MDL_CHECK_WARN, "mapping_keys_missing");
    is_verdict(order, &diagnosis, "no about mapping: nothing",
               "an order of license keys of which none is there", p);

    order = order_of(p, 1, 0);
    order->email.status = MDL_EMAIL_NO_RECIPIENT;
    diagnosis = well();
    find(&diagnosis, MDL_CHECK_EMAIL, MDL_CHECK_FAIL, "email_without_address");
    is_verdict(order, &diagnosis, "no about email: send", "an address that came too late", p);
    order->address = NULL;
    is_verdict(order, &diagnosis, "no about email: address", "an address that never came", p);
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    test_each(p);
    test_together(p);
    test_of_order(p);
    return tap_end(p);
}
