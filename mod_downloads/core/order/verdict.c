#include "core/order/verdict.h"

#include <string.h>

const char *const mdl_outcome_names[] = {
    [MDL_OUTCOME_YES] = "yes", [MDL_OUTCOME_PARTLY] = "partly", [MDL_OUTCOME_NO] = "no", NULL};

const char *const mdl_remedy_names[] = {
    [MDL_REMEDY_NONE] = "nothing",    [MDL_REMEDY_APPROVE] = "approve",
    [MDL_REMEDY_RESTORE] = "restore", [MDL_REMEDY_EXTEND] = "extend",
    [MDL_REMEDY_GRANT] = "grant",     [MDL_REMEDY_ADDRESS] = "address",
    [MDL_REMEDY_SEND] = "send",       NULL};

/* What a check may find that the customer notices.  A check that fails means no. */
typedef struct {
    mdl_check_name_t check;
    const char *finding;
    mdl_outcome_t on_warning;
    mdl_remedy_t remedy;
} ruling_t;

/* Of two that are equally bad the first counts: what has to be mended before the others.  Whether
   the customer's address is known matters only to the email. */
static const ruling_t rulings[] = {
    {MDL_CHECK_FRAUD, "fraud_rejected", MDL_OUTCOME_NO, MDL_REMEDY_APPROVE},
    {MDL_CHECK_ACCESS, "access_revoked", MDL_OUTCOME_NO, MDL_REMEDY_RESTORE},
    {MDL_CHECK_FRAUD, "fraud_review", MDL_OUTCOME_NO, MDL_REMEDY_APPROVE},
    {MDL_CHECK_ACCESS, "access_all_revoked", MDL_OUTCOME_NO, MDL_REMEDY_RESTORE},
    {MDL_CHECK_ACCESS, "access_expired", MDL_OUTCOME_NO, MDL_REMEDY_EXTEND},
    {MDL_CHECK_ACCESS, "access_partly", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_PAGE, "page_empty", MDL_OUTCOME_NO, MDL_REMEDY_NONE},
    {MDL_CHECK_MAPPING, "mapping_empty", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_FILE, "file_storage", MDL_OUTCOME_NO, MDL_REMEDY_NONE},
    {MDL_CHECK_FILE, "file_missing", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_FILE, "file_failed", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_FILE, "file_awaited", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_ALLOWANCE, "allowance_used_up", MDL_OUTCOME_PARTLY, MDL_REMEDY_GRANT},
    {MDL_CHECK_EMAIL, "email_came_back", MDL_OUTCOME_NO, MDL_REMEDY_ADDRESS},
    {MDL_CHECK_EMAIL, "email_failed", MDL_OUTCOME_NO, MDL_REMEDY_ADDRESS},
    {MDL_CHECK_EMAIL, "email_without_address", MDL_OUTCOME_NO, MDL_REMEDY_ADDRESS},
    {MDL_CHECK_ACCESS, "access_undeclared", MDL_OUTCOME_NO, MDL_REMEDY_SEND},
    {MDL_CHECK_EMAIL, "email_tried_again", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_EMAIL, "email_delayed", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_EMAIL, "email_awaits_address", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_MAPPING, "mapping_keys_missing", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_MAPPING, "mapping_keys_later", MDL_OUTCOME_PARTLY, MDL_REMEDY_NONE},
    {MDL_CHECK_EMAIL, "email_waits", MDL_OUTCOME_YES, MDL_REMEDY_NONE},
    {MDL_CHECK_EMAIL, "email_not_asked", MDL_OUTCOME_YES, MDL_REMEDY_NONE},
    {MDL_CHECK_ALLOWANCE, "allowance_running", MDL_OUTCOME_YES, MDL_REMEDY_NONE},
};

/* Whether the order consists of license keys alone, and none was handed out yet. */
static int order_lacks_all_keys(const mdl_order_t *order)
{
    apr_int64_t pending = 0;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i,
                                                     const mdl_assignment_t *);

        if (each->files->nelts + each->links->nelts + each->license_keys->nelts > 0) {
            return 0;
        }
        pending += each->license_keys_pending;
    }
    return pending > 0;
}

static mdl_outcome_t ruling_outcome(const ruling_t *ruling, const mdl_order_t *order,
                                    const mdl_check_t *check)
{
    return check->status == MDL_CHECK_FAIL ||
                   (ruling->check == MDL_CHECK_MAPPING && order_lacks_all_keys(order))
               ? MDL_OUTCOME_NO
               : ruling->on_warning;
}

mdl_verdict_t mdl_verdict_of(const mdl_order_t *order, const mdl_diagnosis_t *diagnosis)
{
    mdl_verdict_t verdict = {.about = MDL_CHECKS};

    if (order->shop_blocked) {
        verdict.outcome = MDL_OUTCOME_NO;
        return verdict;
    }
    for (apr_size_t i = 0; i < sizeof rulings / sizeof *rulings; i++) {
        const ruling_t *each = &rulings[i];
        const mdl_check_t *check = &diagnosis->checks[each->check];
        mdl_outcome_t outcome = ruling_outcome(each, order, check);

        if (strcmp(check->finding, each->finding) == 0 &&
            (verdict.about == MDL_CHECKS || outcome > verdict.outcome)) {
            verdict = (mdl_verdict_t){outcome, each->check, each->remedy};
        }
    }
    if (verdict.remedy == MDL_REMEDY_ADDRESS && order->email.status == MDL_EMAIL_NO_RECIPIENT &&
        order->address != NULL) {
        verdict.remedy = MDL_REMEDY_SEND;
    }
    return verdict;
}
