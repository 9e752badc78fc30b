#include "core/order/help_answer.h"

#include "core/order/email.h"
#include "core/order/resend.h"
#include "core/order/timeline.h"

const char *const mdl_help_answer_names[] = {[MDL_HELP_ONE_MORE] = "one_more",
                                             [MDL_HELP_EXTEND] = "extend",
                                             [MDL_HELP_RESEND] = "resend",
                                             [MDL_HELP_REFUSE] = "refuse",
                                             NULL};
const char *const mdl_help_answer_actions[] = {[MDL_HELP_ONE_MORE] = "downloads_granted",
                                               [MDL_HELP_EXTEND] = "downloads_granted",
                                               [MDL_HELP_RESEND] = "email_resent",
                                               [MDL_HELP_REFUSE] = "help_refused",
                                               NULL};

static mdl_order_find_t answer_find(const mdl_access_t *access)
{
    return (mdl_order_find_t){.shop_id = access->shop_id,
                              .storefront_order_id = access->storefront_order_id,
                              .versions = access->versions,
                              .default_download_limit = access->default_download_limit};
}

static apr_status_t answer_read_request(mdl_db_t *db, mdl_help_answer_t *answer, apr_pool_t *p)
{
    return answer->access.storefront_order_id == NULL || answer->request_id != 0
               ? mdl_help_find(db, answer->access.shop_id, answer->request_id, &answer->request, p)
               : mdl_help_find_newest(db, answer->access.order->id, &answer->request, p);
}

/* Locks the order, and reads the request that waits. */
static apr_status_t answer_begin(mdl_db_t *db, mdl_help_answer_t *answer, apr_pool_t *p)
{
    mdl_access_t *access = &answer->access;
    mdl_order_find_t find;
    apr_status_t rv;

    if (access->storefront_order_id == NULL) {
        if ((rv = answer_read_request(db, answer, p)) == APR_ENOENT) {
            return mdl_help_refuse_unknown(access->problem);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
        access->storefront_order_id = answer->request.storefront_order_id;
    }
    find = answer_find(access);
    if ((rv = mdl_order_lock(db, &find, access->problem, p)) != APR_SUCCESS) {
        return rv;
    }
    access->order = find.order;
    rv = answer_read_request(db, answer, p);
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && answer->request.state != MDL_HELP_ASKED)) {
        return mdl_problem_set(access->problem, 409, "help_not_asked",
                               "The customer does not wait for help with this order.");
    }
    return rv;
}

static apr_status_t answer_resend(mdl_db_t *db, mdl_help_answer_t *answer, apr_pool_t *p)
{
    const mdl_access_t *access = &answer->access;
    mdl_order_resend_t resend = {.shop_id = access->shop_id,
                                 .storefront_order_id = access->storefront_order_id,
                                 .key_id = access->key_id,
                                 .user = access->user,
                                 .reason = access->reason,
                                 .mail_host = answer->mail_host,
                                 .default_download_limit = access->default_download_limit,
                                 .problem = access->problem};
    apr_status_t rv = mdl_order_resend(db, p, &resend);

    answer->retry_after = resend.retry_after;
    return rv;
}

static apr_status_t answer_give(mdl_db_t *db, mdl_help_answer_t *answer, apr_pool_t *p)
{
    mdl_access_grant_t grant = {
        .access = answer->access,
        .downloads = answer->kind == MDL_HELP_ONE_MORE ? 1 : 0,
        .extend_days = answer->kind == MDL_HELP_EXTEND ? MDL_HELP_EXTEND_DAYS : 0};
    apr_status_t rv = mdl_order_check_active(answer->access.order, answer->access.problem);

    grant.access.versions = NULL; /* checked by answer_begin */
    if (rv != APR_SUCCESS || (rv = mdl_access_grant(db, p, &grant)) != APR_SUCCESS ||
        (rv = answer_read_request(db, answer, p)) != APR_SUCCESS) {
        return rv;
    }
    if (answer->request.state == MDL_HELP_ASKED) {
        return mdl_problem_set(answer->access.problem, 409, "access_unlimited",
                               "Nothing of this order ends, so that there is nothing to extend.");
    }
    return answer->access.order->address != NULL ? answer_resend(db, answer, p) : APR_SUCCESS;
}

static apr_status_t answer_refuse(mdl_db_t *db, const mdl_help_answer_t *answer, apr_pool_t *p)
{
    const mdl_access_t *access = &answer->access;
    mdl_timeline_entry_t entry = {.action = "help_refused",
                                  .key_id = access->key_id,
                                  .user = access->user,
                                  .reason = access->reason};
    mdl_email_new_t email = {.shop_id = access->shop_id,
                             .order_id = access->order->id,
                             .to = access->order->address,
                             .host = answer->mail_host,
                             .at_once = 1,
                             .help_id = answer->request.id};
    apr_status_t rv = mdl_help_refuse(db, access->order->id, access->reason, access->user, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_timeline_add(db, access->order->id, &entry, p);
    }
    return rv == APR_SUCCESS && email.to != NULL ? mdl_email_queue(db, &email, p) : rv;
}

apr_status_t mdl_help_answer(mdl_db_t *db, apr_pool_t *p, mdl_help_answer_t *answer)
{
    apr_status_t rv = answer_begin(db, answer, p);
    mdl_order_find_t find;

    if (rv == APR_SUCCESS) {
        rv = answer->kind == MDL_HELP_REFUSE   ? answer_refuse(db, answer, p)
             : answer->kind == MDL_HELP_RESEND ? answer_resend(db, answer, p)
                                               : answer_give(db, answer, p);
    }
    if (rv != APR_SUCCESS || (rv = answer_read_request(db, answer, p)) != APR_SUCCESS) {
        return rv;
    }
    find = answer_find(&answer->access);
    rv = mdl_order_find(db, p, &find);
    answer->access.order = find.order;
    return rv;
}
