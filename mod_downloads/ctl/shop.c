#include "ctl/shop.h"

#include <stddef.h>
#include <string.h>

#include <apr_file_io.h>
#include <apr_strings.h>

#include "core/job.h"
#include "core/shop/shop.h"
#include "ctl/key.h"

#define BATCH          1000 /* jobs in a transaction */
#define MAX_TOKEN_FILE 4096

const char *const mdl_ctl_switch_names[] = {"off", "on", NULL};

static const mdl_field_t fields[] = {
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_shop_t, id), 1, NULL},
    {"name", MDL_FIELD_TEXT, offsetof(mdl_shop_t, name), 1, NULL},
    {"domain", MDL_FIELD_TEXT, offsetof(mdl_shop_t, domain), 1, NULL},
    {"email", MDL_FIELD_TEXT, offsetof(mdl_shop_t, email), 1, NULL},
    {"email_state", MDL_FIELD_ENUM, offsetof(mdl_shop_t, email_state), 1, mdl_address_state_names},
    {"status", MDL_FIELD_ENUM, offsetof(mdl_shop_t, status), 1, mdl_shop_status_names},
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_shop_t, created_at), 1, NULL},
    {"sender_name", MDL_FIELD_TEXT, offsetof(mdl_shop_t, sender_name), 0, NULL},
    {"reply_to", MDL_FIELD_TEXT, offsetof(mdl_shop_t, reply_to), 0, NULL},
    {"withdrawal_url", MDL_FIELD_TEXT, offsetof(mdl_shop_t, withdrawal_url), 0, NULL},
    {"mail_delay", MDL_FIELD_INT, offsetof(mdl_shop_t, mail_delay), 0, NULL},
    {"hold_at", MDL_FIELD_ENUM, offsetof(mdl_shop_t, hold_at), 0, mdl_risk_names},
    {"declaration", MDL_FIELD_ENUM, offsetof(mdl_shop_t, declaration), 0, mdl_ctl_switch_names},
    {"help_requests", MDL_FIELD_ENUM, offsetof(mdl_shop_t, help), 0, mdl_shop_help_names},
    {"default_download_limit", MDL_FIELD_INT, offsetof(mdl_shop_t, download_limit), 0, NULL},
    {"default_access_days", MDL_FIELD_INT, offsetof(mdl_shop_t, access_days), 0, NULL},
    {"languages", MDL_FIELD_TEXT, offsetof(mdl_shop_t, brand.languages), 0, NULL},
    {"storefront_url", MDL_FIELD_TEXT, offsetof(mdl_shop_t, storefront_url), 1, NULL},
    {"blocked_at", MDL_FIELD_TIME, offsetof(mdl_shop_t, blocked_at), 1, NULL},
    {"block_reason", MDL_FIELD_TEXT, offsetof(mdl_shop_t, block_reason), 1, NULL},
    {0},
};

typedef struct {
    mdl_shop_add_t add;
    mdl_key_create_t key; /* with --key */
    mdl_audit_t audit;    /* of the shop alone, for an effect that is run again */
    mdl_ctl_t *ctl;
} shop_add_t;

/* Approves the new shop and creates its first key.  Each step has an audit entry, of which
   mdl_write adds the last. */
static apr_status_t shop_open(mdl_db_t *db, apr_pool_t *p, shop_add_t *shops)
{
    mdl_audit_t *audit = &shops->ctl->audit;
    mdl_shop_set_status_t set = {
        .id = audit->shop_id, .status = MDL_SHOP_APPROVED, .problem = shops->add.problem};
    apr_status_t rv;

    if ((rv = mdl_audit_add(db, audit, p)) != APR_SUCCESS ||
        (rv = mdl_shop_set_status(db, p, &set)) != APR_SUCCESS) {
        return rv;
    }
    audit->action = "approved";
    shops->key.key.shop_id = audit->shop_id;
    if ((rv = mdl_audit_add(db, audit, p)) != APR_SUCCESS ||
        (rv = mdl_key_create(db, p, &shops->key)) != APR_SUCCESS) {
        return rv;
    }
    audit->noun = "api_key";
    audit->noun_id = shops->key.key.id;
    audit->action = "created";
    audit->detail = shops->key.key.name;
    return APR_SUCCESS;
}

static apr_status_t shop_add_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_add_t *shops = arg;
    mdl_audit_t *audit = &shops->ctl->audit;
    apr_status_t rv = mdl_shop_add(db, p, &shops->add);

    *audit = shops->audit;
    audit->shop_id = shops->add.shop.id;
    audit->noun_id = apr_psprintf(shops->ctl->p, "%" APR_INT64_T_FMT, audit->shop_id);
    return rv == APR_SUCCESS && shops->ctl->key_name != NULL ? shop_open(db, p, shops) : rv;
}

int mdl_ctl_shop_add(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    shop_add_t shops = {.add = {.shop = {.name = ctl->arguments[0],
                                         .domain = ctl->arguments[1],
                                         .email = ctl->email},
                                .problem = &problem},
                        .key = {.secret = ctl->secret,
                                .key = {.name = ctl->key_name, .scope = MDL_KEY_SCOPE_FULL},
                                .problem = &problem},
                        .audit = ctl->audit,
                        .ctl = ctl};
    const mdl_shop_t *shop = &shops.add.shop;
    int failed;

    if (ctl->key_name != NULL && !ctl->secret) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    if ((failed = mdl_ctl_write(ctl, shop_add_effect, &shops, &problem))) {
        return failed;
    }
    if (ctl->key_name != NULL) {
        mdl_ctl_key_print(ctl, &shops.key);
        return MDL_EXIT_DONE;
    }
    mdl_printer_result(ctl->output, fields, shop,
                       "Shop %" APR_INT64_T_FMT
                       " (%s) waits for approval: downloadsctl shop approve "
                       "%" APR_INT64_T_FMT,
                       shop->id, shop->name, shop->id);
    mdl_printer_bare(ctl->output, apr_psprintf(ctl->p, "%" APR_INT64_T_FMT, shop->id));
    return MDL_EXIT_DONE;
}

MDL_EFFECT(mdl_shop_list, apr_array_header_t **)

int mdl_ctl_shop_list(mdl_ctl_t *ctl)
{
    apr_array_header_t *shops = NULL;
    int failed = mdl_ctl_read(ctl, mdl_shop_list_effect, &shops, NULL);

    if (!failed) {
        mdl_printer_list(ctl->output, fields, shops, "There is no shop yet.");
    }
    return failed;
}

MDL_EFFECT(mdl_shop_set_status, mdl_shop_set_status_t *)

static int shop_set_status(mdl_ctl_t *ctl, mdl_shop_status_t status, mdl_shop_t **shop)
{
    mdl_problem_t problem = {0};
    mdl_shop_set_status_t set = {.id = ctl->id, .status = status, .problem = &problem};
    int failed = mdl_ctl_write(ctl, mdl_shop_set_status_effect, &set, &problem);

    *shop = set.shop;
    return failed;
}

int mdl_ctl_shop_approve(mdl_ctl_t *ctl)
{
    mdl_shop_t *shop;
    int failed = shop_set_status(ctl, MDL_SHOP_APPROVED, &shop);

    if (failed) {
        return failed;
    }
    mdl_printer_result(ctl->output, fields, shop, "Shop %" APR_INT64_T_FMT " (%s) is approved.",
                       shop->id, shop->name);
    return MDL_EXIT_DONE;
}

int mdl_ctl_shop_suspend(mdl_ctl_t *ctl)
{
    mdl_shop_t *shop;
    int failed = shop_set_status(ctl, MDL_SHOP_SUSPENDED, &shop);

    if (failed) {
        return failed;
    }
    mdl_ctl_await_key_caches();
    mdl_printer_result(ctl->output, fields, shop,
                       "Shop %" APR_INT64_T_FMT " (%s) is suspended: its keys answer 403.",
                       shop->id, shop->name);
    return MDL_EXIT_DONE;
}

MDL_EFFECT(mdl_shop_block, mdl_shop_block_t *)
MDL_EFFECT(mdl_job_hold, mdl_job_hold_t *)

/* Blocks a shop, or unblocks it without a reason, then its jobs, in steps that let others write. */
static int shop_set_blocked(mdl_ctl_t *ctl, const char *reason, mdl_shop_t **shop)
{
    mdl_problem_t problem = {0};
    mdl_shop_block_t block = {.id = ctl->id, .reason = reason, .problem = &problem};
    mdl_job_hold_t hold = {
        .shop_id = ctl->id, .resume = reason == NULL, .limit = BATCH, .after = ""};
    int failed;

    ctl->audit.detail = reason;
    failed = mdl_ctl_write(ctl, mdl_shop_block_effect, &block, &problem);
    while (!failed && hold.after != NULL) {
        failed = mdl_ctl_write_on(ctl, mdl_job_hold_effect, &hold, &problem);
    }
    *shop = block.shop;
    return failed;
}

int mdl_ctl_shop_block(mdl_ctl_t *ctl)
{
    mdl_shop_t *shop;
    int failed = shop_set_blocked(ctl, ctl->reason, &shop);

    if (failed) {
        return failed;
    }
    mdl_ctl_await_key_caches();
    mdl_printer_result(ctl->output, fields, shop,
                       "Shop %" APR_INT64_T_FMT " (%s) is blocked: nothing of it is served.",
                       shop->id, shop->name);
    return MDL_EXIT_DONE;
}

int mdl_ctl_shop_unblock(mdl_ctl_t *ctl)
{
    mdl_shop_t *shop;
    int failed = shop_set_blocked(ctl, NULL, &shop);

    if (failed) {
        return failed;
    }
    mdl_printer_result(ctl->output, fields, shop,
                       "Shop %" APR_INT64_T_FMT " (%s) is not blocked any more; it is %s.",
                       shop->id, shop->name, mdl_shop_status_names[shop->status]);
    return MDL_EXIT_DONE;
}

MDL_EFFECT(mdl_shop_set, mdl_shop_set_t *)

/* The names of the given options, without their values, which may be an address or a secret. */
static const char *shop_set_detail(const mdl_ctl_t *ctl)
{
    const struct {
        const char *name;
        int given;
    } options[] = {{"name", ctl->name != NULL},
                   {"email", ctl->email != NULL},
                   {"sender_name", ctl->sender_name != NULL},
                   {"reply_to", ctl->reply_to != NULL},
                   {"withdrawal_url", ctl->withdrawal_url != NULL},
                   {"mail_delay", ctl->mail_delay >= 0},
                   {"hold_at", ctl->hold_at != MDL_RISK_NONE},
                   {"declaration", ctl->declaration != MDL_CTL_KEEP},
                   {"help_requests", ctl->help_requests != MDL_CTL_KEEP},
                   {"default_download_limit", ctl->download_limit != MDL_CTL_KEEP},
                   {"default_access_days", ctl->access_days != MDL_CTL_KEEP},
                   {"languages", ctl->languages != NULL},
                   {"storefront", ctl->storefront != NULL},
                   {"storefront_token", ctl->storefront_token != NULL}};
    const char *detail = NULL;

    for (apr_size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].given) {
            detail = detail == NULL ? options[i].name
                                    : apr_pstrcat(ctl->p, detail, ", ", options[i].name, NULL);
        }
    }
    return detail;
}

static const int *shop_given(const int *number)
{
    return *number != MDL_CTL_KEEP ? number : NULL;
}

int mdl_ctl_shop_set(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    mdl_shop_set_t set = {.id = ctl->id,
                          .name = ctl->name,
                          .email = ctl->email,
                          .sender_name = ctl->sender_name,
                          .reply_to = ctl->reply_to,
                          .withdrawal_url = ctl->withdrawal_url,
                          .mail_delay = ctl->mail_delay,
                          .hold_at = ctl->hold_at,
                          .declaration = shop_given(&ctl->declaration),
                          .help = shop_given(&ctl->help_requests),
                          .download_limit = shop_given(&ctl->download_limit),
                          .access_days = shop_given(&ctl->access_days),
                          .languages = ctl->languages,
                          .storefront = {.url = ctl->storefront,
                                         .token = ctl->storefront_token,
                                         .secret = ctl->secret,
                                         .settings = ctl->settings},
                          .problem = &problem};
    int failed;

    if (ctl->storefront_token != NULL && ctl->secret == NULL) {
        return mdl_ctl_fail(ctl, MDL_EXIT_CONFIGURATION, "configuration", ctl->no_secret);
    }
    ctl->audit.detail = shop_set_detail(ctl);
    if ((failed = mdl_ctl_write(ctl, mdl_shop_set_effect, &set, &problem))) {
        return failed;
    }
    mdl_printer_result(ctl->output, fields, set.shop,
                       "Shop %" APR_INT64_T_FMT " (%s): emails from \"%s\", answered to %s, sent "
                       "after %d min; orders are held at %s; %s%s.",
                       set.shop->id, set.shop->name,
                       set.shop->sender_name != NULL ? set.shop->sender_name : set.shop->name,
                       set.shop->reply_to != NULL ? set.shop->reply_to
                       : set.shop->email != NULL  ? set.shop->email
                                                  : "nobody",
                       set.shop->mail_delay, mdl_risk_names[set.shop->hold_at],
                       set.shop->storefront_url != NULL ? "its storefront is " : "no storefront",
                       set.shop->storefront_url != NULL ? set.shop->storefront_url : "");
    return MDL_EXIT_DONE;
}

const char *mdl_ctl_shop_read_token(mdl_ctl_t *ctl, const char *path)
{
    char text[MAX_TOKEN_FILE + 1];
    char reason[120];
    apr_size_t length = sizeof text;
    apr_file_t *file;
    apr_status_t rv = strcmp(path, "-") == 0 ? apr_file_open_stdin(&file, ctl->p)
                                             : apr_file_open(&file, path, APR_FOPEN_READ,
                                                             APR_FPROT_OS_DEFAULT, ctl->p);

    if (rv == APR_SUCCESS) {
        rv = apr_file_read_full(file, text, length, &length);
    }
    if (rv == APR_SUCCESS) {
        return apr_psprintf(ctl->p, "%s is too large to be a token.", path);
    }
    if (rv != APR_EOF) {
        return apr_psprintf(ctl->p, "%s can't be read (%s).", path,
                            apr_strerror(rv, reason, sizeof reason));
    }
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r')) {
        length--;
    }
    /* A NUL would truncate the token, so the text is invalid. */
    ctl->storefront_token = memchr(text, '\0', length) != NULL
                                ? ""
                                : apr_pstrmemdup(ctl->p, text, length);
    return NULL;
}
