#include "ctl/listing.h"

#include "core/identifier.h"
#include "ctl/usage.h"

typedef struct {
    apr_int64_t shop_id;
    mdl_effect_fn *effect;
    void *arg;
    mdl_problem_t *problem;
} of_shop_t;

static apr_status_t of_shop_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const of_shop_t *of = arg;
    apr_status_t rv = mdl_ctl_check_shop(db, of->shop_id, of->problem, p);

    return rv == APR_SUCCESS ? of->effect(db, p, of->arg) : rv;
}

int mdl_ctl_list(mdl_ctl_t *ctl, mdl_effect_fn *effect, mdl_list_page_t *page,
                 const mdl_field_t *fields, const char *empty)
{
    int limit = ctl->limit != 0 ? ctl->limit : MDL_CTL_SHOWN;
    mdl_problem_t problem = {0};
    of_shop_t of = {.shop_id = ctl->id, .effect = effect, .arg = page, .problem = &problem};
    int failed;

    page->shop_id = ctl->id;
    page->before = APR_INT64_MAX;
    page->limit = limit + 1;
    if ((failed = mdl_ctl_read(ctl, of_shop_effect, &of, &problem))) {
        return failed;
    }
    page->more = page->found->nelts > limit;
    page->found->nelts = page->more ? limit : page->found->nelts;
    mdl_printer_list(ctl->output, fields, page->found, empty);
    if (page->more) {
        mdl_printer_line(ctl->output, "(there are more: --limit shows up to %d)",
                         MDL_CTL_SHOWN_MOST);
    }
    return MDL_EXIT_DONE;
}

int mdl_ctl_find(mdl_ctl_t *ctl, mdl_effect_fn *effect, mdl_entity_ref_t *ref)
{
    ref->shop_id = ctl->id;
    ref->id = mdl_identifier_parse(ctl->arguments[1]);
    if (ref->id == 0) {
        return mdl_usage_fail(ctl, "The second argument is a number, not \"%s\".",
                              ctl->arguments[1]);
    }
    return mdl_ctl_read(ctl, effect, ref, ref->problem);
}
