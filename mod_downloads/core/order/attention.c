#include "core/order/attention.h"

#include "base/mail/likely_typo.h"
#include "core/order/help.h"
#include "core/order/search.h"

#define LOOKED      200 /* failures of either kind */
#define LOOKED_TAGS 500

/* Room for another entry; NULL when the list is full. */
static void *attention_next(mdl_attention_list_t *list, int limit, apr_size_t size, apr_pool_t *p)
{
    void *entry;

    if (list->found->nelts == limit) {
        list->more = 1;
        return NULL;
    }
    entry = apr_pcalloc(p, size);
    APR_ARRAY_PUSH(list->found, void *) = entry;
    return entry;
}

static mdl_attention_list_t attention_list(int limit, apr_pool_t *p)
{
    return (mdl_attention_list_t){.found = apr_array_make(p, limit, sizeof(void *))};
}

static void attention_take_help(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    mdl_help_request_t *help;

    attention->help = attention_list(attention->limit, p);
    while (mdl_rows_next(rows) &&
           (help = attention_next(&attention->help, attention->limit, sizeof *help, p)) != NULL) {
        mdl_help_of_row(help, rows);
    }
}

static void attention_take_imports(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    attention->imports = attention_list(attention->limit, p);
    while (mdl_rows_next(rows)) {
        mdl_failed_import_t *import;

        if (MDL_NULL(rows, imports_failed, filename)) { /* the asset was deleted */
            continue;
        }
        if ((import = attention_next(&attention->imports, attention->limit, sizeof *import, p)) ==
            NULL) {
            return;
        }
        import->job_id = MDL_TEXT(rows, imports_failed, id);
        MDL_READ(rows, imports_failed, import, asset_id, filename, error_code, error_message,
                 finished_at, waiting);
    }
}

static void attention_take_emails(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    attention->emails = attention_list(attention->limit, p);
    while (mdl_rows_next(rows)) {
        mdl_undelivered_t *email;

        if (MDL_NULL(rows, emails_undelivered, storefront_order_id)) { /* the order is closed */
            continue;
        }
        if ((email = attention_next(&attention->emails, attention->limit, sizeof *email, p)) ==
            NULL) {
            return;
        }
        email->storefront_order_id = MDL_TEXT(rows, emails_undelivered, storefront_order_id);
        email->status = MDL_ENUM(rows, emails_undelivered, status, mdl_email_status_names);
        email->to = MDL_TEXT(rows, emails_undelivered, recipient);
        MDL_READ(rows, emails_undelivered, email, last_error, at);
    }
}

static void attention_take_typos(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    attention->typos = attention_list(attention->limit, p);
    while (mdl_rows_next(rows)) {
        const char *address = MDL_TEXT(rows, addresses_doubted, likely_typo);
        const char *meant = mdl_likely_typo(address, p);
        mdl_doubted_t *doubted;

        if (meant == NULL) { /* another release knew other providers */
            continue;
        }
        if ((doubted = attention_next(&attention->typos, attention->limit, sizeof *doubted, p)) ==
            NULL) {
            return;
        }
        doubted->address = address;
        doubted->meant = meant;
        MDL_READ(rows, addresses_doubted, doubted, storefront_order_id, created_at);
    }
}

static void attention_take_tags(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    mdl_low_tag_t *tag;

    attention->tags = attention_list(attention->limit, p);
    while (mdl_rows_next(rows) &&
           (tag = attention_next(&attention->tags, attention->limit, sizeof *tag, p)) != NULL) {
        MDL_READ(rows, license_tags_low, tag, id, name, available);
        tag->threshold = MDL_INT(rows, license_tags_low, low_stock_threshold);
    }
}

static void attention_take_owed(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    mdl_owed_tag_t *tag;

    attention->owed = attention_list(attention->limit, p);
    while (mdl_rows_next(rows) &&
           (tag = attention_next(&attention->owed, attention->limit, sizeof *tag, p)) != NULL) {
        MDL_READ(rows, license_tags_awaited, tag, id, name, waiting);
    }
}

static apr_status_t attention_read_webhooks(mdl_db_t *db, mdl_attention_t *attention, apr_pool_t *p)
{
    mdl_list_page_t page = {
        .shop_id = attention->shop_id, .before = APR_INT64_MAX, .limit = MDL_WEBHOOKS_MAX};
    apr_status_t rv = mdl_webhook_page(db, p, &page);

    attention->webhooks = apr_array_make(p, MDL_WEBHOOKS_MAX, sizeof(mdl_webhook_t *));
    for (int i = 0; rv == APR_SUCCESS && i < page.found->nelts; i++) {
        mdl_webhook_t *webhook = APR_ARRAY_IDX(page.found, i, mdl_webhook_t *);

        if (webhook->disabled_at != 0 || (webhook->is_active && webhook->failing_since != 0)) {
            APR_ARRAY_PUSH(attention->webhooks, mdl_webhook_t *) = webhook;
        }
    }
    return rv;
}

apr_status_t mdl_attention_read(mdl_db_t *db, apr_pool_t *p, mdl_attention_t *attention)
{
    mdl_order_search_t held = {.filter = {.shop_id = attention->shop_id,
                                          .access = mdl_order_access_names[MDL_ORDER_HELD],
                                          .limit = attention->limit}};
    mdl_rows_t *help, *imports, *emails, *typos, *tags, *owed;
    apr_status_t rv;

    if ((rv = mdl_db_select(db, &help, p,
                            MDL_Q(HELP_WAITING, .shop_id = attention->shop_id,
                                  .before = APR_INT64_MAX, .limit = attention->limit + 1))) !=
            APR_SUCCESS ||
        (rv = mdl_db_select(db, &imports, p,
                            MDL_Q(IMPORTS_FAILED, .shop_id = attention->shop_id, .limit = LOOKED,
                                  .since = attention->since))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &emails, p,
                            MDL_Q(EMAILS_UNDELIVERED, .shop_id = attention->shop_id,
                                  .limit = LOOKED, .since = attention->since))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &typos, p,
                            MDL_Q(ADDRESSES_DOUBTED, .shop_id = attention->shop_id, .limit = LOOKED,
                                  .since = attention->since))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &tags, p,
                            MDL_Q(LICENSE_TAGS_LOW, .shop_id = attention->shop_id,
                                  .limit = LOOKED_TAGS))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &owed, p,
                            MDL_Q(LICENSE_TAGS_AWAITED, .shop_id = attention->shop_id,
                                  .limit = LOOKED_TAGS))) != APR_SUCCESS ||
        (rv = attention_read_webhooks(db, attention, p)) != APR_SUCCESS ||
        (rv = mdl_order_search(db, p, &held)) != APR_SUCCESS) {
        return rv;
    }
    attention->held = (mdl_attention_list_t){.found = held.found, .more = held.filter.next != NULL};
    attention_take_help(attention, help, p);
    attention_take_imports(attention, imports, p);
    attention_take_emails(attention, emails, p);
    attention_take_typos(attention, typos, p);
    attention_take_tags(attention, tags, p);
    attention_take_owed(attention, owed, p);
    return APR_SUCCESS;
}
