#include "core/shop/shop.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/accept_language.h"
#include "base/http/url.h"
#include "base/mail/mime.h"
#include "base/text/utf8.h"
#include "core/audit.h"
#include "core/shop/event.h"

const char *const mdl_shop_status_names[] = {[MDL_SHOP_PENDING] = "pending",
                                             [MDL_SHOP_APPROVED] = "approved",
                                             [MDL_SHOP_SUSPENDED] = "suspended",
                                             NULL};

const char *const mdl_shop_help_names[] = {[MDL_SHOP_HELP_OFF] = "off",
                                           [MDL_SHOP_HELP_ON] = "on",
                                           [MDL_SHOP_HELP_FIRST] = "first_by_itself",
                                           NULL};

static mdl_shop_t *shop_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_shop_t *shop = apr_pcalloc(p, sizeof *shop);

    MDL_READ(row, shop, shop, id, name, domain, email, created_at, sender_name, reply_to,
             mail_delay, withdrawal_url, storefront_url, blocked_at, block_reason);
    shop->status = MDL_ENUM(row, shop, status, mdl_shop_status_names);
    shop->download_limit = (int)MDL_INT_OR_NONE(row, shop, download_limit);
    shop->access_days = (int)MDL_INT_OR_NONE(row, shop, access_days);
    shop->hold_at = MDL_ENUM(row, shop, hold_at, mdl_risk_names);
    shop->declaration = MDL_INT(row, shop, declaration) != 0;
    shop->help = MDL_ENUM(row, shop, help, mdl_shop_help_names);
    shop->email_state = mdl_staff_address_state(shop->email, MDL_INT(row, shop, asked_at),
                                                MDL_INT(row, shop, confirmed_at));
    MDL_READ(row, shop, &shop->brand, accent, languages, email_texts, logo_sha256, logo_width,
             logo_height);
    shop->logo = (mdl_logo_t){.waits = !MDL_NULL(row, shop, logo_job_id),
                              .fault = mdl_logo_fault(MDL_TEXT(row, shop, logo_fault))};
    return shop;
}

static const char *shop_changed_text(const char *now, const char *given)
{
    if (given == NULL) {
        return now;
    }
    return *given != '\0' ? given : NULL;
}

static apr_status_t shop_check_name(const char *name, mdl_problem_t *problem)
{
    return mdl_utf8_is_text(name, MDL_SHOP_NAME_MAX)
               ? APR_SUCCESS
               : mdl_problem_set(
                     problem, 400, "invalid_shop_name",
                     "A shop's name has 1 to 200 characters and no control characters.");
}

/* Normalizes an address, unless there is none; it must be valid as a sender, because customers'
   emails show it. */
static apr_status_t shop_take_address(const char **address, const char *code, const char *why,
                                      mdl_problem_t *problem, apr_pool_t *p)
{
    if (*address == NULL || **address == '\0') {
        return APR_SUCCESS;
    }
    *address = mdl_mime_address_of_sender(*address, p);
    return *address != NULL ? APR_SUCCESS : mdl_problem_set(problem, 400, code, why);
}

static apr_status_t shop_take_email(const char **email, mdl_problem_t *problem, apr_pool_t *p)
{
    return shop_take_address(email, "invalid_email",
                             "The shop's email is not an address with ASCII alone before its @.",
                             problem, p);
}

static apr_status_t shop_ask_email(mdl_db_t *db, mdl_shop_t *shop, apr_pool_t *p)
{
    shop->email_state = MDL_ADDRESS_NONE;
    return shop->email != NULL
               ? mdl_staff_address_ask(db, shop->id, shop->email, &shop->email_state, p)
               : APR_SUCCESS;
}

apr_status_t mdl_shop_add(mdl_db_t *db, apr_pool_t *p, mdl_shop_add_t *add)
{
    mdl_shop_t *shop = &add->shop;
    apr_time_t now;
    mdl_rows_t *row;
    apr_status_t rv;

    if ((rv = shop_check_name(shop->name, add->problem)) != APR_SUCCESS) {
        return rv;
    }
    if (!mdl_http_host_valid(shop->domain)) {
        return mdl_problem_set(
            add->problem, 400, "invalid_domain",
            "A shop's domain is a host name in lower case, such as shop.example.com.");
    }
    if ((rv = shop_take_email(&shop->email, add->problem, p)) != APR_SUCCESS) {
        return rv;
    }
    shop->email = shop_changed_text(NULL, shop->email);
    now = apr_time_now();
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(SHOP_INSERT, .name = shop->name, .domain = shop->domain,
                                 .email = shop->email, .now = now));
    if (rv == APR_ENOENT) {
        return mdl_problem_set(add->problem, 409, "domain_taken",
                               "There is a shop of that domain already.");
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    *shop = *shop_of_row(row, p);
    return shop_ask_email(db, shop, p);
}

apr_status_t mdl_shop_find(mdl_db_t *db, apr_int64_t id, mdl_shop_t **shop, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(SHOP_BY_ID, id));

    if (rv == APR_SUCCESS) {
        *shop = shop_of_row(row, p);
    }
    return rv;
}

apr_status_t mdl_shop_set_status(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_status_t *set)
{
    const char *status = mdl_shop_status_names[set->status];
    apr_int64_t changed;
    apr_status_t rv;

    rv = mdl_db_exec(
        db, &changed, p,
        MDL_Q(SHOP_SET_STATUS, .status = status, .now = apr_time_now(), .id = set->id));
    if (rv == APR_SUCCESS && changed > 0) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_shop_find(db, set->id, &set->shop, p);
    return rv == APR_ENOENT
               ? mdl_problem_set(set->problem, 404, "not_found", "There is no such shop.")
               : rv;
}

static apr_status_t shop_notify_blocked(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    const mdl_event_t event = {.shop_id = id, .type = MDL_EVENT_SHOP_BLOCKED, .data = "{}"};

    return mdl_event_add(db, &event, p);
}

static apr_status_t shop_unblock(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(
        db, NULL, p, MDL_Q(SHOP_UNBLOCK_WEBHOOKS, .now = apr_time_now(), .shop_id = id));

    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(SHOP_UNBLOCK, id)) : rv;
}

apr_status_t mdl_shop_block(mdl_db_t *db, apr_pool_t *p, mdl_shop_block_t *block)
{
    apr_int64_t blocked = 0;
    apr_status_t rv;

    if (block->reason != NULL && !mdl_utf8_is_text(block->reason, MDL_REASON_MAX)) {
        return mdl_problem_set(
            block->problem, 400, "invalid_reason",
            "A reason has 1 to " APR_STRINGIFY(MDL_REASON_MAX) " characters, in one line.");
    }
    rv = block->reason != NULL ? mdl_db_exec(db, &blocked, p,
                                             MDL_Q(SHOP_BLOCK, .now = apr_time_now(),
                                                   .block_reason = block->reason, .id = block->id))
                               : shop_unblock(db, block->id, p);
    if (rv == APR_SUCCESS && blocked > 0) {
        rv = shop_notify_blocked(db, block->id, p);
    }
    if (rv != APR_SUCCESS || (rv = mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP))) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_shop_find(db, block->id, &block->shop, p);
    return rv == APR_ENOENT
               ? mdl_problem_set(block->problem, 404, "not_found", "There is no such shop.")
               : rv;
}

apr_status_t mdl_shop_list_blocked(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **ids)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(SHOPS_BLOCKED));

    *ids = apr_array_make(p, 1, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*ids, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

int mdl_shop_url_valid(const char *url)
{
    return strlen(url) <= MDL_SHOP_URL_MAX && mdl_http_url_is_https(url);
}

static apr_status_t shop_check_set(mdl_shop_set_t *set, apr_pool_t *p)
{
    apr_status_t rv = set->name != NULL ? shop_check_name(set->name, set->problem) : APR_SUCCESS;

    if (rv != APR_SUCCESS || (rv = shop_take_email(&set->email, set->problem, p)) != APR_SUCCESS) {
        return rv;
    }
    if (set->sender_name != NULL && *set->sender_name != '\0' &&
        !mdl_utf8_is_text(set->sender_name, MDL_SHOP_NAME_MAX)) {
        return mdl_problem_set(
            set->problem, 400, "invalid_sender_name",
            "A sender's name has up to 200 characters and no control characters.");
    }
    if (set->withdrawal_url != NULL && *set->withdrawal_url != '\0' &&
        !mdl_shop_url_valid(set->withdrawal_url)) {
        return mdl_problem_set(set->problem, 400, "invalid_withdrawal_url", MDL_SHOP_URL_RULE);
    }
    if (set->accent != NULL && *set->accent != '\0' &&
        (set->accent = mdl_accent(set->accent, p)) == NULL) {
        return mdl_problem_set(set->problem, 400, "invalid_accent", MDL_ACCENT_RULE);
    }
    if (set->email_texts != NULL && !mdl_email_texts_valid(set->email_texts)) {
        return mdl_problem_set(set->problem, 400, "invalid_email_text",
                               "A text for emails has up to 300 characters.");
    }
    if (set->languages != NULL && *set->languages != '\0' &&
        (set->languages = mdl_language_list(set->languages, p)) == NULL) {
        return mdl_problem_set(set->problem, 400, "invalid_languages", MDL_LANGUAGES_RULE);
    }
    return shop_take_address(&set->reply_to, "invalid_reply_to",
                             "What replies go to is not an address with ASCII alone before its @.",
                             set->problem, p);
}

apr_status_t mdl_shop_set(mdl_db_t *db, apr_pool_t *p, mdl_shop_set_t *set)
{
    const char *before;
    mdl_shop_t *shop;
    apr_status_t rv;

    if ((rv = shop_check_set(set, p)) != APR_SUCCESS) {
        return rv;
    }
    /* The lock: another change may write what this one has not been given. */
    if ((rv = mdl_shop_lock(db, set->id, p)) != APR_SUCCESS ||
        (rv = mdl_shop_find(db, set->id, &shop, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT
                   ? mdl_problem_set(set->problem, 404, "not_found", "There is no such shop.")
                   : rv;
    }
    set->shop = shop;
    if ((rv = mdl_storefront_set(db, shop->id, &set->storefront, &shop->storefront_url,
                                 set->problem, p)) != APR_SUCCESS) {
        return rv;
    }
    before = shop->email;
    shop->name = set->name != NULL ? set->name : shop->name;
    shop->email = shop_changed_text(shop->email, set->email);
    shop->sender_name = shop_changed_text(shop->sender_name, set->sender_name);
    shop->reply_to = shop_changed_text(shop->reply_to, set->reply_to);
    shop->withdrawal_url = shop_changed_text(shop->withdrawal_url, set->withdrawal_url);
    shop->brand.accent = shop_changed_text(shop->brand.accent, set->accent);
    shop->brand.languages = shop_changed_text(shop->brand.languages, set->languages);
    if (set->email_texts != NULL) {
        shop->brand.email_texts = mdl_email_texts_changed(shop->brand.email_texts, set->email_texts,
                                                          p);
    }
    shop->mail_delay = set->mail_delay >= 0 ? set->mail_delay : shop->mail_delay;
    shop->hold_at = set->hold_at != MDL_RISK_NONE ? set->hold_at : shop->hold_at;
    shop->download_limit = set->download_limit != NULL ? *set->download_limit
                                                       : shop->download_limit;
    shop->declaration = set->declaration != NULL ? *set->declaration : shop->declaration;
    shop->help = set->help != NULL ? (mdl_shop_help_t)*set->help : shop->help;
    shop->access_days = set->access_days != NULL ? *set->access_days : shop->access_days;
    rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(SHOP_SET, .name = shop->name, .email = shop->email, .sender_name = shop->sender_name,
              .reply_to = shop->reply_to, .accent = shop->brand.accent,
              .email_texts = shop->brand.email_texts, .mail_delay = shop->mail_delay,
              .hold_at = mdl_risk_names[shop->hold_at], .declaration = shop->declaration,
              .help = mdl_shop_help_names[shop->help], .download_limit = shop->download_limit,
              .access_days = shop->access_days, .languages = shop->brand.languages,
              .withdrawal_url = shop->withdrawal_url, .now = apr_time_now(), .id = shop->id));
    if (rv == APR_SUCCESS && set->email != NULL) {
        if (before != NULL) {
            rv = mdl_staff_address_forget(db, shop->id, before, p);
        }
        rv = rv == APR_SUCCESS ? shop_ask_email(db, shop, p) : rv;
    }
    /* The cache of keys has the name, too. */
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p, MDL_Q(EPOCH_BUMP)) : rv;
}

apr_status_t mdl_shop_lock(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, &row, p, MDL_Q(SHOP_LOCK, id));
}

apr_status_t mdl_shop_store(mdl_db_t *db, apr_int64_t id, const mdl_shop_stored_t *more,
                            apr_int64_t quota, apr_pool_t *p)
{
    if (quota != 0 && (more->bytes > 0 || more->former_bytes > 0)) {
        mdl_shop_storage_t storage;
        apr_status_t rv = mdl_shop_lock(db, id, p);

        if (rv != APR_SUCCESS ||
            (rv = mdl_shop_storage(db, id, NULL, &storage, p)) != APR_SUCCESS) {
            return rv;
        }
        if (more->former_bytes > 0) {
            storage.taken += storage.former_bytes + more->former_bytes;
        }
        if (storage.taken + more->bytes > quota) {
            return APR_ENOSPC;
        }
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(SHOP_STORE, .files = more->files, .bytes = more->bytes,
                             .former_bytes = more->former_bytes, .id = id));
}

apr_status_t mdl_shop_storage(mdl_db_t *db, apr_int64_t id, const char *except,
                              mdl_shop_storage_t *storage, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(SHOP_BYTES, .upload_id = except != NULL ? except : "", .id = id));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, shop_bytes, storage, files, bytes, former_bytes, taken);
    }
    return rv;
}

apr_status_t mdl_shop_room(mdl_db_t *db, apr_int64_t id, const char *except, apr_int64_t quota,
                           apr_int64_t *room, apr_pool_t *p)
{
    mdl_shop_storage_t storage;
    apr_status_t rv = mdl_shop_storage(db, id, except, &storage, p);

    if (rv == APR_SUCCESS) {
        *room = storage.taken < quota ? quota - storage.taken : 0;
    }
    return rv;
}

apr_status_t mdl_shop_list(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **shops)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(SHOP_LIST));

    *shops = apr_array_make(p, 16, sizeof(mdl_shop_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*shops, mdl_shop_t *) = shop_of_row(rows, p);
    }
    return rv;
}
