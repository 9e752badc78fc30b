#include "core/audit.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

const char *const mdl_via_names[] = {
    [MDL_VIA_API] = "api", [MDL_VIA_SETTINGS] = "settings", [MDL_VIA_COMMAND] = "command", NULL};

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

apr_status_t mdl_audit_list(mdl_db_t *db, apr_pool_t *p, mdl_audit_list_t *list)
{
    int filtered = list->noun != NULL || list->who != NULL;
    int most = filtered ? MDL_AUDIT_SEARCHED : list->limit + 1;
    apr_int64_t last = 0;
    int looked = 0;
    mdl_rows_t *rows;
    apr_status_t rv = list->shop_id != 0
                          ? mdl_db_select(db, &rows, p,
                                          MDL_Q(AUDIT_OF_SHOP, .shop_id = list->shop_id,
                                                .before = list->before, .limit = most))
                          : mdl_db_select(
                                db, &rows, p,
                                MDL_Q(AUDIT_OF_ALL, .before = list->before, .limit = most));

    list->found = apr_array_make(p, list->limit, sizeof(mdl_audit_t *));
    list->next = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_audit_t *entry = audit_of_row(rows, p);

        looked++;
        if (list->found->nelts == list->limit) {
            list->next = last;
            break;
        }
        last = entry->id;
        if (audit_fits(list, entry)) {
            APR_ARRAY_PUSH(list->found, mdl_audit_t *) = entry;
        }
    }
    if (list->next == 0 && filtered && looked == most) {
        list->next = last;
    }
    return rv;
}
