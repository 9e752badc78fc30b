#include "core/audit.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

const char *const mdl_via_names[] = {
    [MDL_VIA_API] = "api", [MDL_VIA_SETTINGS] = "settings", [MDL_VIA_COMMAND] = "command", NULL};
const char *const mdl_audit_noun_names[] = {
    "order",           "customer", "asset",   "upload", "job",  "category",         "pack", "link",
    "license_key_tag", "mapping",  "api_key", "member", "shop", "webhook_endpoint", NULL};

/* Cuts between characters (RFC 3629, section 3). */
static const char *audit_detail(const char *detail, apr_pool_t *p)
{
    apr_size_t length = MDL_AUDIT_DETAIL_MAX;

    if (detail == NULL || strlen(detail) <= length) {
        return detail;
    }
    while (length > 0 && ((unsigned char)detail[length] & 0xC0) == 0x80) {
        length--;
    }
    return apr_pstrmemdup(p, detail, length);
}

apr_status_t mdl_audit_add(mdl_db_t *db, const mdl_audit_t *entry, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(AUDIT_INSERT, .shop_id = entry->shop_id, .noun = entry->noun,
                             .noun_id = entry->noun_id, .action = entry->action,
                             .via = mdl_via_names[entry->via], .key_id = entry->key_id,
                             .user_name = entry->user, .request_id = mdl_db_request(db),
                             .detail = audit_detail(entry->detail, p), .now = apr_time_now()));
}

static mdl_audit_t *audit_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_audit_t *entry = apr_pcalloc(p, sizeof *entry);

    MDL_READ(row, audit, entry, id, shop_id, shop_name, noun, noun_id, action, key_id, key_name,
             detail, created_at, request_id);
    entry->via = MDL_ENUM(row, audit, via, mdl_via_names);
    entry->user = MDL_TEXT(row, audit, user_name);
    return entry;
}

static int text_is(const char *text, const char *wanted)
{
    return text != NULL && strcmp(text, wanted) == 0;
}

static int audit_fits(const mdl_audit_list_t *list, const mdl_audit_t *entry)
{
    return (list->noun == NULL || strcmp(entry->noun, list->noun) == 0) &&
           (list->who == NULL || text_is(entry->user, list->who) ||
            text_is(entry->key_id, list->who) || text_is(entry->key_name, list->who));
}

static apr_status_t audit_select(mdl_db_t *db, const mdl_audit_list_t *list, int most,
                                 mdl_rows_t **rows, apr_pool_t *p)
{
    const mdl_list_page_t *page = &list->page;

    if (list->request_id != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(AUDIT_OF_REQUEST, .request_id = list->request_id,
                                   .before = APR_INT64_MAX, .limit = most));
    }
    return page->shop_id != 0
               ? mdl_db_select(db, rows, p,
                               MDL_Q(AUDIT_OF_SHOP, .shop_id = page->shop_id,
                                     .before = page->before, .limit = most))
               : mdl_db_select(db, rows, p,
                               MDL_Q(AUDIT_OF_ALL, .before = page->before, .limit = most));
}

apr_status_t mdl_audit_list(mdl_db_t *db, apr_pool_t *p, mdl_audit_list_t *list)
{
    mdl_list_page_t *page = &list->page;
    int filtered = list->noun != NULL || list->who != NULL;
    int most = filtered ? MDL_AUDIT_SEARCHED : page->limit + 1;
    apr_int64_t last = 0;
    int looked = 0;
    mdl_rows_t *rows;
    apr_status_t rv = audit_select(db, list, most, &rows, p);

    page->found = apr_array_make(p, page->limit, sizeof(mdl_audit_t *));
    page->more = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_audit_t *entry = audit_of_row(rows, p);

        looked++;
        if (page->found->nelts == page->limit) {
            page->more = 1;
            break;
        }
        last = entry->id;
        if (!list->for_operator && strcmp(entry->action, "blocked") == 0) {
            entry->detail = NULL;
        }
        if (audit_fits(list, entry)) {
            APR_ARRAY_PUSH(page->found, mdl_audit_t *) = entry;
        }
    }
    page->more = page->more || (filtered && looked == most);
    page->next = page->more ? apr_psprintf(p, "%" APR_INT64_T_FMT, last) : NULL;
    return rv;
}
