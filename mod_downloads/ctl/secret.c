#include "ctl/secret.h"

#include <stddef.h>

#include "core/idempotency.h"
#include "core/job_source.h"
#include "core/shop/secret.h"
#include "core/shop/webhook.h"

static const mdl_field_t fields[] = {
    {"since", MDL_FIELD_TIME, offsetof(mdl_secret_status_t, since), 1, NULL},
    {"keys", MDL_FIELD_NUMBER, offsetof(mdl_secret_status_t, keys), 1, NULL},
    {"pages", MDL_FIELD_NUMBER, offsetof(mdl_secret_status_t, pages), 1, NULL},
    {"pages_of_30_days", MDL_FIELD_NUMBER, offsetof(mdl_secret_status_t, recent), 1, NULL},
    {"storefront_tokens", MDL_FIELD_NUMBER, offsetof(mdl_secret_status_t, tokens), 1, NULL},
    {"data_keys", MDL_FIELD_NUMBER, offsetof(mdl_secret_status_t, data_keys), 1, NULL},
    {0},
};

static const mdl_field_t retired[] = {
    {"revoked_keys", MDL_FIELD_NUMBER, offsetof(mdl_secret_retire_t, keys), 1, NULL},
    {"storefront_tokens", MDL_FIELD_NUMBER, offsetof(mdl_secret_retire_t, tokens), 1, NULL},
    {"lost_storefront_tokens", MDL_FIELD_NUMBER, offsetof(mdl_secret_retire_t, lost), 1, NULL},
    {"data_keys", MDL_FIELD_NUMBER, offsetof(mdl_secret_retire_t, data_keys), 1, NULL},
    {"lost_data_keys", MDL_FIELD_NUMBER, offsetof(mdl_secret_retire_t, lost_data_keys), 1, NULL},
    {0},
};

MDL_EFFECT(mdl_secret_status, mdl_secret_status_t *)

int mdl_ctl_secret_status(mdl_ctl_t *ctl)
{
    mdl_secret_status_t status = {.secret = ctl->secret};
    int failed;

    if (ctl->secret == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    failed = mdl_ctl_read(ctl, mdl_secret_status_effect, &status, NULL);
    if (!failed) {
        mdl_printer_record(ctl->output, fields, &status);
    }
    return failed;
}

static apr_status_t secret_retire_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_secret_retire_t *retire = arg;
    apr_status_t rv = mdl_secret_retire(db, p, retire);

    return rv == APR_SUCCESS ? mdl_webhook_renew(db, retire->secret, p) : rv;
}

MDL_EFFECT(mdl_source_renew, mdl_source_renew_t *)
MDL_EFFECT(mdl_idempotency_renew, mdl_idempotency_renew_t *)

int mdl_ctl_secret_retire(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_secret_retire_t retire = {.secret = ctl->secret};
    mdl_source_renew_t sources = {.secret = ctl->secret};
    mdl_idempotency_renew_t responses = {
        .secret = ctl->secret, .hi = APR_INT64_MIN, .lo = APR_INT64_MIN};
    int failed;

    if (ctl->secret == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    if (mdl_secret_count(ctl->secret) < 2) {
        return mdl_ctl_fail(
            ctl, MDL_EXIT_REFUSED, "no_older_secret",
            "DownloadsSecretFile names one file: there is no older secret to retire.");
    }
    failed = mdl_ctl_write(ctl, secret_retire_effect, &retire, &problem);
    while (!failed && !sources.done) {
        failed = mdl_ctl_write_on(ctl, mdl_source_renew_effect, &sources, &problem);
    }
    while (!failed && !responses.done) {
        failed = mdl_ctl_write_on(ctl, mdl_idempotency_renew_effect, &responses, &problem);
    }
    if (!failed) {
        mdl_printer_record(ctl->output, retired, &retire);
        mdl_printer_note(ctl->output,
                         "Now take the older files out of DownloadsSecretFile and reload httpd: "
                         "from then on nothing that they have signed is accepted.");
    }
    return failed;
}
