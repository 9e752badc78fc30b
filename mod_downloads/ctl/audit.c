#include "ctl/audit.h"

#include <stddef.h>

static const mdl_field_t fields[] = {
    {"created_at", MDL_FIELD_TIME, offsetof(mdl_audit_t, created_at), 1, NULL},
    {"shop_id", MDL_FIELD_ID, offsetof(mdl_audit_t, shop_id), 1, NULL},
    {"noun", MDL_FIELD_TEXT, offsetof(mdl_audit_t, noun), 1, NULL},
    {"noun_id", MDL_FIELD_TEXT, offsetof(mdl_audit_t, noun_id), 1, NULL},
    {"action", MDL_FIELD_TEXT, offsetof(mdl_audit_t, action), 1, NULL},
    {"via", MDL_FIELD_ENUM, offsetof(mdl_audit_t, via), 1, mdl_via_names},
    {"user", MDL_FIELD_TEXT, offsetof(mdl_audit_t, user), 1, NULL},
    {"key_id", MDL_FIELD_TEXT, offsetof(mdl_audit_t, key_id), 1, NULL},
    {"key_name", MDL_FIELD_TEXT, offsetof(mdl_audit_t, key_name), 0, NULL},
    {"request_id", MDL_FIELD_TEXT, offsetof(mdl_audit_t, request_id), 1, NULL},
    {"detail", MDL_FIELD_TEXT, offsetof(mdl_audit_t, detail), 1, NULL},
    {"id", MDL_FIELD_NUMBER, offsetof(mdl_audit_t, id), 0, NULL},
    {0},
};

typedef struct {
    mdl_audit_list_t list;
    mdl_problem_t *problem;
} audit_of_shop_t;

/* An unknown shop is an error, not an empty list. */
static apr_status_t audit_of_shop(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    audit_of_shop_t *search = arg;
    apr_status_t rv = mdl_ctl_check_shop(db, search->list.page.shop_id, search->problem, p);

    return rv == APR_SUCCESS ? mdl_audit_list(db, p, &search->list) : rv;
}

int mdl_ctl_audit(mdl_ctl_t *ctl)
{
    mdl_problem_t problem = {0};
    audit_of_shop_t search = {
        .list = {.page = {.shop_id = ctl->shop_id,
                          .before = APR_INT64_MAX,
                          .limit = ctl->limit != 0 ? ctl->limit : MDL_CTL_SHOWN},
                 .for_operator = 1},
        .problem = &problem};
    int failed = mdl_ctl_read(ctl, audit_of_shop, &search, &problem);

    if (failed) {
        return failed;
    }
    mdl_printer_list(ctl->output, fields, search.list.page.found, "Nothing was changed yet.");
    if (search.list.page.more) {
        mdl_printer_line(ctl->output, "(there are older ones: --limit shows up to %d)",
                         MDL_CTL_SHOWN_MOST);
    }
    return MDL_EXIT_DONE;
}
