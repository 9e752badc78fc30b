#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/present.h"
#include "core/job.h"
#include "core/version.h"
#include "settings/frame.h"

#define BATCH 1000 /* jobs in a transaction */

static const char *shop_path(const mdl_visit_t *visit, apr_int64_t shop_id)
{
    return mdl_frame_path(visit, "%" APR_INT64_T_FMT "/", shop_id);
}

MDL_EFFECT(mdl_member_list, mdl_member_list_t *)

/* Redirects to the user's only shop, and an operator to the list of all. */
static int shops_mine(mdl_visit_t *visit)
{
    mdl_member_list_t list = {.user = visit->user};
    mdl_json_t *data, *shops;
    apr_status_t rv;

    if (visit->role >= MDL_ROLE_OPERATOR) {
        return mdl_frame_redirect(visit, mdl_frame_path(visit, "shops"), NULL);
    }
    if ((rv = mdl_visit_read(visit, mdl_member_list_effect, &list)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    if (list.members->nelts == 0) {
        return mdl_frame_message(visit, HTTP_FORBIDDEN, "no_shop");
    }
    if (list.members->nelts == 1) {
        return mdl_frame_redirect(
            visit, shop_path(visit, APR_ARRAY_IDX(list.members, 0, mdl_member_t *)->shop_id), NULL);
    }
    data = mdl_frame_data(visit);
    shops = mdl_json_add_array(data, "shops");
    for (int i = 0; i < list.members->nelts; i++) {
        const mdl_member_t *member = APR_ARRAY_IDX(list.members, i, const mdl_member_t *);
        mdl_json_t *to = mdl_json_add_object(shops, NULL);

        mdl_json_add_int(to, "shop_id", member->shop_id);
        mdl_json_add_string(to, "shop_name", member->shop_name);
    }
    return mdl_frame_send(visit, HTTP_OK, "shops.html", data, NULL);
}

MDL_EFFECT(mdl_shop_list, apr_array_header_t **)

static int shops_send(mdl_visit_t *visit, int status)
{
    apr_array_header_t *list;
    mdl_json_t *data, *shops;
    apr_status_t rv = mdl_visit_read(visit, mdl_shop_list_effect, &list);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "all", 1);
    mdl_json_add_bool(data, "has_shops", list->nelts > 0);
    mdl_json_add_string(data, "typed_name", mdl_visit_field(visit, "name"));
    mdl_json_add_string(data, "typed_domain", mdl_visit_field(visit, "domain"));
    mdl_json_add_string(data, "typed_email", mdl_visit_field(visit, "email"));
    shops = mdl_json_add_array(data, "shops");
    for (int i = list->nelts - 1; i >= 0; i--) {
        const mdl_shop_t *shop = APR_ARRAY_IDX(list, i, const mdl_shop_t *);
        mdl_json_t *to = mdl_json_add_object(shops, NULL);

        mdl_json_add_int(to, "shop_id", shop->id);
        mdl_json_add_string(to, "shop_name", shop->name);
        mdl_json_add_string(to, "domain", shop->domain);
        mdl_frame_add_choice(to, mdl_shop_status_names, (int)shop->status);
        mdl_json_add_bool(to, "blocked", shop->blocked_at != 0);
        mdl_present_date(to, "created", shop->created_at);
    }
    return mdl_frame_send(visit, status, "shops.html", data, NULL);
}

static int shops_show(mdl_visit_t *visit)
{
    return shops_send(visit, HTTP_OK);
}

typedef struct {
    mdl_shop_add_t add;
    mdl_visit_t *visit;
} shop_add_t;

static const char *shop_id_text(const mdl_visit_t *visit, apr_int64_t id)
{
    return apr_psprintf(visit->r->pool, "%" APR_INT64_T_FMT, id);
}

static apr_status_t shop_add_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    shop_add_t *shops = arg;
    apr_status_t rv = mdl_shop_add(db, p, &shops->add);

    shops->visit->audit.shop_id = shops->add.shop.id;
    shops->visit->audit.noun_id = shop_id_text(shops->visit, shops->add.shop.id);
    return rv;
}

static int shops_add(mdl_visit_t *visit)
{
    const char *name = mdl_visit_field(visit, "name");
    const char *domain = mdl_visit_field(visit, "domain");
    shop_add_t shops = {.add = {.shop = {.name = name != NULL ? name : "",
                                         .domain = domain != NULL ? domain : "",
                                         .email = mdl_visit_field(visit, "email")},
                                .problem = &visit->problem},
                        .visit = visit};
    apr_status_t rv = mdl_visit_write(visit, shop_add_effect, &shops);

    if (rv == MDL_EPROBLEM) {
        return shops_send(visit, visit->problem.status);
    }
    return rv == APR_SUCCESS
               ? mdl_frame_redirect(visit, shop_path(visit, shops.add.shop.id), "shop_added")
               : mdl_frame_failure(visit, rv);
}

static apr_status_t shop_check_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_visit_t *visit = arg;
    mdl_shop_t *shop;
    apr_status_t rv;

    if ((rv = mdl_shop_lock(db, visit->shop->id, p)) != APR_SUCCESS ||
        (rv = mdl_shop_find(db, visit->shop->id, &shop, p)) != APR_SUCCESS) {
        return rv;
    }
    return strcmp(mdl_visit_field(visit, "seen"), mdl_frame_shop_state(shop, p)) == 0
               ? APR_SUCCESS
               : mdl_version_refuse(&visit->problem);
}

/* Changes the shop, unless its state has changed since the form's page was shown. */
static apr_status_t shop_write(mdl_visit_t *visit, mdl_effect_fn *effect, void *arg)
{
    return mdl_visit_write_seen(visit, shop_check_effect, effect, arg);
}

MDL_EFFECT(mdl_shop_set_status, mdl_shop_set_status_t *)

static int shop_set_status(mdl_visit_t *visit, mdl_shop_status_t status)
{
    mdl_shop_set_status_t set = {
        .id = visit->shop->id, .status = status, .problem = &visit->problem};

    visit->audit.noun_id = shop_id_text(visit, visit->shop->id);
    return mdl_frame_done(visit, shop_write(visit, mdl_shop_set_status_effect, &set), "");
}

static int shops_approve(mdl_visit_t *visit)
{
    return shop_set_status(visit, MDL_SHOP_APPROVED);
}

static int shops_suspend(mdl_visit_t *visit)
{
    return shop_set_status(visit, MDL_SHOP_SUSPENDED);
}

static int shop_ask_block(mdl_visit_t *visit, int status)
{
    mdl_json_t *data = mdl_frame_data(visit);

    mdl_json_add_string(data, "seen", mdl_frame_shop_state(visit->shop, visit->r->pool));
    mdl_json_add_string(data, "typed_reason", mdl_visit_field(visit, "reason"));
    return mdl_frame_send(visit, status, "shop_block.html", data, NULL);
}

static int shops_ask_block(mdl_visit_t *visit)
{
    return shop_ask_block(visit, HTTP_OK);
}

MDL_EFFECT(mdl_shop_block, mdl_shop_block_t *)
MDL_EFFECT(mdl_job_hold, mdl_job_hold_t *)

/* Blocks the shop, or unblocks it (reason: NULL), then its jobs, in batches to let others write. */
static apr_status_t shop_set_blocked(mdl_visit_t *visit, const char *reason)
{
    mdl_shop_block_t block = {.id = visit->shop->id, .reason = reason, .problem = &visit->problem};
    mdl_job_hold_t hold = {
        .shop_id = visit->shop->id, .resume = reason == NULL, .limit = BATCH, .after = ""};
    apr_status_t rv;

    visit->audit.noun_id = shop_id_text(visit, visit->shop->id);
    visit->audit.detail = reason;
    rv = shop_write(visit, mdl_shop_block_effect, &block);
    while (rv == APR_SUCCESS && hold.after != NULL) {
        rv = mdl_visit_write_on(visit, mdl_job_hold_effect, &hold);
    }
    return rv;
}

static int shops_block(mdl_visit_t *visit)
{
    const char *reason = mdl_visit_field(visit, "reason");
    apr_status_t rv = shop_set_blocked(visit, reason != NULL ? reason : "");

    return rv == MDL_EPROBLEM ? shop_ask_block(visit, visit->problem.status)
                              : mdl_frame_done(visit, rv, "");
}

static int shops_unblock(mdl_visit_t *visit)
{
    return mdl_frame_done(visit, shop_set_blocked(visit, NULL), "");
}

const mdl_page_t mdl_shop_pages[] = {
    {"", .sees = MDL_ROLE_READ_ONLY, .get = shops_mine},
    {"shops", "shop", "created", .sees = MDL_ROLE_OPERATOR, .get = shops_show,
     .acts = MDL_ROLE_OPERATOR, .post = shops_add},
    {"{}/approve", "shop", "approved", .acts = MDL_ROLE_OPERATOR, .post = shops_approve,
     .done = "shop_approved", .changes_keys = 1},
    {"{}/suspend", "shop", "suspended", .acts = MDL_ROLE_OPERATOR, .post = shops_suspend,
     .done = "shop_suspended", .changes_keys = 1},
    {"{}/block", "shop", "blocked", .sees = MDL_ROLE_OPERATOR, .get = shops_ask_block,
     .acts = MDL_ROLE_OPERATOR, .post = shops_block, .done = "shop_blocked", .changes_keys = 1},
    {"{}/unblock", "shop", "unblocked", .acts = MDL_ROLE_OPERATOR, .post = shops_unblock,
     .done = "shop_unblocked", .changes_keys = 1},
    {0},
};
