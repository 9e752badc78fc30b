#include "core/order/attention.h"

#include "core/order/search.h"

#define LOOKED      200 /* failures */
#define LOOKED_TAGS 500

/* The place for another entry; NULL when there is none left. */
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

static void attention_take_imports(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    attention->imports = attention_list(attention->limit, p);
    while (mdl_rows_next(rows)) {
        mdl_failed_import_t *import;

        if (mdl_rows_null(rows, 2)) { /* the asset was deleted */
            continue;
        }
        if ((import = attention_next(&attention->imports, attention->limit, sizeof *import, p)) ==
            NULL) {
            return;
        }
        import->job_id = mdl_rows_text(rows, 0);
        import->asset_id = mdl_rows_int(rows, 1);
        import->filename = mdl_rows_text(rows, 2);
        import->error_code = mdl_rows_text(rows, 3);
        import->error_message = mdl_rows_text(rows, 4);
        import->finished_at = mdl_rows_int(rows, 5);
    }
}

static void attention_take_emails(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    attention->emails = attention_list(attention->limit, p);
    while (mdl_rows_next(rows)) {
        mdl_undelivered_t *email;

        if (mdl_rows_null(rows, 0)) { /* the order is closed */
            continue;
        }
        if ((email = attention_next(&attention->emails, attention->limit, sizeof *email, p)) ==
            NULL) {
            return;
        }
        email->storefront_order_id = mdl_rows_text(rows, 0);
        email->status = mdl_rows_enum(rows, 1, mdl_email_status_names);
        email->to = mdl_rows_text(rows, 2);
        email->last_error = mdl_rows_text(rows, 3);
        email->at = mdl_rows_int(rows, 4);
    }
}

static void attention_take_tags(mdl_attention_t *attention, mdl_rows_t *rows, apr_pool_t *p)
{
    mdl_low_tag_t *tag;

    attention->tags = attention_list(attention->limit, p);
    while (mdl_rows_next(rows) &&
           (tag = attention_next(&attention->tags, attention->limit, sizeof *tag, p)) != NULL) {
        tag->id = mdl_rows_int(rows, 0);
        tag->name = mdl_rows_text(rows, 1);
        tag->available = mdl_rows_int(rows, 2);
        tag->threshold = mdl_rows_int(rows, 3);
    }
}

apr_status_t mdl_attention_read(mdl_db_t *db, apr_pool_t *p, mdl_attention_t *attention)
{
    mdl_order_search_t held = {.filter = {.shop_id = attention->shop_id,
                                          .access = mdl_order_access_names[MDL_ORDER_HELD],
                                          .limit = attention->limit}};
    mdl_rows_t *imports, *emails, *tags;
    apr_status_t rv;

    if ((rv = mdl_db_select(db, &imports, p,
                            MDL_Q(IMPORTS_FAILED, .shop_id = attention->shop_id, .limit = LOOKED,
                                  .since = attention->since))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &emails, p,
                            MDL_Q(EMAILS_UNDELIVERED, .shop_id = attention->shop_id,
                                  .limit = LOOKED, .since = attention->since))) != APR_SUCCESS ||
        (rv = mdl_db_select(db, &tags, p,
                            MDL_Q(LICENSE_TAGS_LOW, .shop_id = attention->shop_id,
                                  .limit = LOOKED_TAGS))) != APR_SUCCESS ||
        (rv = mdl_order_search(db, p, &held)) != APR_SUCCESS) {
        return rv;
    }
    attention->held = (mdl_attention_list_t){.found = held.found, .more = held.filter.next != NULL};
    attention_take_imports(attention, imports, p);
    attention_take_emails(attention, emails, p);
    attention_take_tags(attention, tags, p);
    return APR_SUCCESS;
}
