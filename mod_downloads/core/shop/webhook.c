#include "core/shop/webhook.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/url.h"
#include "base/text/utf8.h"
#include "base/seal.h"
#include "base/ulid.h"
#include "core/job.h"
#include "core/shop/shop.h"
#include "core/version.h"

#define PURPOSE         "webhook-secret"
#define CONNECT_LIMIT_S 5
#define TOTAL_LIMIT_S   15
#define MAX_ANSWER      (4 * 1024)
#define MAX_ATTEMPTS    1000000000 /* deliveries count attempts, not the job */

/* --- the URL --- */

const mdl_http_policy_t *mdl_webhook_policy(const mdl_settings_t *settings, const char *url,
                                            apr_pool_t *p)
{
    mdl_http_policy_t *policy = mdl_http_policy_for(&settings->webhook, url, p);

    policy->connect_timeout_s = CONNECT_LIMIT_S;
    policy->total_timeout_s = TOTAL_LIMIT_S;
    policy->max_size = MAX_ANSWER;
    return policy;
}

int mdl_webhook_url_valid(const mdl_settings_t *settings, const char *url, apr_pool_t *p)
{
    return mdl_utf8_is_text(url, MDL_WEBHOOK_URL_MAX) && strchr(url, '#') == NULL &&
           mdl_http_url_check(mdl_webhook_policy(settings, url, p), url, NULL, NULL, p) ==
               MDL_HTTP_OK;
}

/* --- the secret --- */

static const char *webhook_owner(apr_int64_t id, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT, id);
}

apr_status_t mdl_webhook_secret_open(const mdl_secret_t *secret, apr_int64_t id, const char *sealed,
                                     const char **bytes, apr_pool_t *p)
{
    apr_size_t length;
    apr_status_t rv = mdl_unseal(secret, PURPOSE, webhook_owner(id, p), sealed, bytes, &length, p);

    return rv == APR_SUCCESS && length != MDL_WEBHOOK_SECRET_SIZE ? APR_EINVAL : rv;
}

static apr_status_t secret_renew(const mdl_secret_t *secret, apr_int64_t id, const char **sealed,
                                 int *changed, apr_pool_t *p)
{
    const char *renewed = NULL;
    apr_status_t rv = *sealed != NULL ? mdl_seal_renew(secret, PURPOSE, webhook_owner(id, p),
                                                       *sealed, &renewed, p)
                                      : APR_SUCCESS;

    if (renewed != NULL) {
        *sealed = renewed;
        *changed = 1;
    }
    return rv;
}

apr_status_t mdl_webhook_renew(mdl_db_t *db, const mdl_secret_t *secret, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(WEBHOOK_SECRETS));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        apr_int64_t id = MDL_INT(rows, webhook_secrets, id);
        const char *sealed = MDL_TEXT(rows, webhook_secrets, secret),
                   *old = MDL_TEXT(rows, webhook_secrets, old_secret);
        int changed = 0;

        secret_renew(secret, id, &sealed, &changed, p);
        secret_renew(secret, id, &old, &changed, p);
        if (changed) {
            rv = mdl_db_exec(
                db, NULL, p,
                MDL_Q(WEBHOOK_SECRETS_SET, .secret = sealed, .old_secret = old, .id = id));
        }
    }
    return rv;
}

/* --- statements --- */

static mdl_webhook_t *webhook_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_webhook_t *webhook = apr_pcalloc(p, sizeof *webhook);

    MDL_READ(row, endpoint, webhook, id, shop_id, job_id, url, description, types, is_active,
             failing_since, disabled_at, old_until, created_at, updated_at);
    if (webhook->old_until <= apr_time_now()) {
        webhook->old_until = 0;
    }
    return webhook;
}

/* Runs a statement that selects the endpoint. */
static apr_status_t webhook_select_one(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p,
                                       mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "webhook_endpoint_not_found",
                               "There is no such webhook endpoint.");
    }
    if (rv == APR_SUCCESS) {
        ref->entity = webhook_of_row(row, p);
    }
    return rv;
}

/* The same by id and shop, and checks the caller's version. */
static apr_status_t webhook_select_known(mdl_db_t *db, mdl_entity_ref_t *ref,
                                         mdl_statement_t statement, apr_pool_t *p)
{
    apr_status_t rv = webhook_select_one(
        db, ref, p,
        MDL_Q_AS(statement, WEBHOOK_ENDPOINT_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions, ((const mdl_webhook_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

apr_status_t mdl_webhook_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    return webhook_select_known(db, ref, MDL_Q_WEBHOOK_ENDPOINT_BY_ID, p);
}

apr_status_t mdl_webhook_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(WEBHOOK_ENDPOINT_PAGE, .shop_id = page->shop_id,
                                          .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_webhook_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_webhook_t *) = webhook_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_webhook_failing(mdl_db_t *db, apr_pool_t *p, mdl_webhook_failing_t *failing)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(WEBHOOK_ENDPOINTS_FAILING, failing->limit));

    failing->found = apr_array_make(p, failing->limit, sizeof(mdl_webhook_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_webhook_t *webhook = webhook_of_row(rows, p);

        MDL_READ(rows, webhook_endpoints_failing, webhook, shop_name);
        APR_ARRAY_PUSH(failing->found, mdl_webhook_t *) = webhook;
    }
    return rv;
}

/* --- changes --- */

static apr_status_t webhook_check_count(mdl_db_t *db, const mdl_entity_ref_t *ref, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = mdl_shop_lock(db, ref->shop_id, p)) != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p, MDL_Q(WEBHOOK_ENDPOINT_COUNT, ref->shop_id))) !=
            APR_SUCCESS) {
        return rv;
    }
    if (mdl_rows_int(row, 0) < MDL_WEBHOOKS_MAX) {
        return APR_SUCCESS;
    }
    mdl_problem_count(ref->problem, MDL_WEBHOOKS_MAX, mdl_rows_int(row, 0));
    return mdl_problem_set(
        ref->problem, 422, "too_many_webhook_endpoints",
        apr_psprintf(p, "A shop has at most %d webhook endpoints.", MDL_WEBHOOKS_MAX));
}

/* Makes a new secret; the previous one signs, too, until old_until. */
static apr_status_t webhook_set_secret(mdl_db_t *db, mdl_webhook_edit_t *edit, apr_time_t old_until,
                                       apr_pool_t *p)
{
    apr_int64_t id = ((const mdl_webhook_t *)edit->ref.entity)->id;
    unsigned char bytes[MDL_WEBHOOK_SECRET_SIZE];
    const char *sealed;
    apr_status_t rv;

    mdl_random(bytes, sizeof bytes);
    sealed = mdl_seal(edit->secret, PURPOSE, webhook_owner(id, p), bytes, sizeof bytes, p);
    rv = webhook_select_one(db, &edit->ref, p,
                            MDL_Q(WEBHOOK_ENDPOINT_SET_SECRET, .old_until = old_until,
                                  .secret = sealed, .now = apr_time_now(), .id = id));
    if (rv == APR_SUCCESS) {
        ((mdl_webhook_t *)edit->ref.entity)->secret = apr_pstrcat(
            p, "whsec_", mdl_base64(bytes, sizeof bytes, p), NULL);
    }
    return rv;
}

apr_status_t mdl_webhook_create(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_WEBHOOK,
                     .lane = MDL_LANE_WEBHOOK,
                     .shop_id = edit->ref.shop_id,
                     .max_attempts = MAX_ATTEMPTS};
    apr_status_t rv = webhook_check_count(db, &edit->ref, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_job_insert(db, &job, p);
    }
    if (rv == APR_SUCCESS) {
        rv = webhook_select_one(db, &edit->ref, p,
                                MDL_Q(WEBHOOK_ENDPOINT_INSERT, .shop_id = edit->ref.shop_id,
                                      .job_id = job.id, .url = edit->url,
                                      .description = edit->description, .types = edit->types,
                                      .is_active = edit->is_active != 0, .now = apr_time_now()));
    }
    return rv == APR_SUCCESS ? webhook_set_secret(db, edit, 0, p) : rv;
}

static apr_status_t webhook_wake(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 1, sizeof(apr_int64_t));
    apr_time_t now = apr_time_now();

    APR_ARRAY_PUSH(ids, apr_int64_t) = id;
    mdl_db_note_due(db, now);
    return mdl_db_exec(db, NULL, p, MDL_Q(WEBHOOK_JOBS_WAKE, .due_at = now, .ids = ids));
}

apr_status_t mdl_webhook_change(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit)
{
    apr_int64_t activates = edit->is_active == 1;
    apr_status_t rv = webhook_select_known(db, &edit->ref, MDL_Q_WEBHOOK_ENDPOINT_LOCK, p);

    if (rv != APR_SUCCESS ||
        (edit->url == NULL && !edit->set_description && !edit->set_types && edit->is_active < 0)) {
        return rv;
    }
    rv = webhook_select_one(
        db, &edit->ref, p,
        MDL_Q(WEBHOOK_ENDPOINT_CHANGE, .url = edit->url, .set_description = edit->set_description,
              .description = edit->description, .set_types = edit->set_types, .types = edit->types,
              .activates = activates, .is_active = edit->is_active, .now = apr_time_now(),
              .id = edit->ref.id));
    return rv == APR_SUCCESS && edit->is_active == 1 ? webhook_wake(db, edit->ref.id, p) : rv;
}

apr_status_t mdl_webhook_rotate(mdl_db_t *db, apr_pool_t *p, mdl_webhook_edit_t *edit)
{
    apr_status_t rv = webhook_select_known(db, &edit->ref, MDL_Q_WEBHOOK_ENDPOINT_LOCK, p);

    return rv == APR_SUCCESS
               ? webhook_set_secret(db, edit, apr_time_now() + MDL_WEBHOOK_OLD_SECRET, p)
               : rv;
}

apr_status_t mdl_webhook_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    apr_time_t now = apr_time_now();
    apr_status_t rv = webhook_select_known(db, ref, MDL_Q_WEBHOOK_ENDPOINT_LOCK, p);

    if (rv == APR_SUCCESS) {
        mdl_db_note_due(db, now); /* the job's clean-up */
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(WEBHOOK_JOB_CANCEL, .now = now,
                               .id = ((const mdl_webhook_t *)ref->entity)->job_id));
    }
    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(WEBHOOK_ENDPOINT_DELETE, .deleted_at = now, .id = ref->id))
               : rv;
}

apr_status_t mdl_webhook_check_active(const mdl_entity_ref_t *ref)
{
    return ((const mdl_webhook_t *)ref->entity)->is_active
               ? APR_SUCCESS
               : mdl_problem_set(
                     ref->problem, 409, "webhook_endpoint_inactive",
                     "Nothing is sent to this webhook endpoint; switch it on first (is_active).");
}

apr_status_t mdl_webhook_test(mdl_db_t *db, apr_pool_t *p, mdl_webhook_test_t *test)
{
    mdl_json_t *data = mdl_json_object(p);
    apr_status_t rv = webhook_select_known(db, &test->ref, MDL_Q_WEBHOOK_ENDPOINT_BY_ID, p);

    if (rv != APR_SUCCESS || (rv = mdl_webhook_check_active(&test->ref)) != APR_SUCCESS) {
        return rv;
    }
    mdl_json_add_int(data, "webhook_endpoint_id", test->ref.id);
    test->event = apr_pcalloc(p, sizeof *test->event);
    test->event->shop_id = test->ref.shop_id;
    test->event->type = MDL_EVENT_WEBHOOK_TEST;
    test->event->data = mdl_json_text(data, NULL, p);
    return mdl_event_add_for_endpoint(db, test->event, test->ref.id, p);
}
