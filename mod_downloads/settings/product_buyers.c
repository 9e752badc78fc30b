#include <apr_strings.h>

#include "base/text/utf8.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/order/by_hand.h"
#include "core/order/move.h"
#include "settings/frame.h"
#include "settings/pages.h"
#include "settings/products.h"

#define CHOICES 20

/* What the page shows: another product, once it is chosen, else a search for one. */
typedef struct {
    mdl_visit_t *visit;
    mdl_product_find_t product;
    mdl_product_find_t to;
    mdl_move_count_t count;
    mdl_by_hand_search_t search;
    mdl_move_newest_t newest;
} buyers_t;

static const char *buyers_field(const mdl_visit_t *visit, const char *name)
{
    return visit->fields != NULL ? mdl_visit_field(visit, name) : mdl_visit_parameter(visit, name);
}

static apr_status_t buyers_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    buyers_t *buyers = arg;
    apr_status_t rv = mdl_product_find(db, p, &buyers->product);

    if (rv == APR_SUCCESS) {
        rv = mdl_move_newest(db, p, &buyers->newest);
    }
    if (rv != APR_SUCCESS || buyers->to.ref.id == 0) {
        return rv == APR_SUCCESS ? mdl_by_hand_search(db, p, &buyers->search) : rv;
    }
    rv = mdl_product_find(db, p, &buyers->to);
    return rv == APR_SUCCESS ? mdl_move_count(db, p, &buyers->count) : rv;
}

static mdl_product_find_t product_find(mdl_visit_t *visit, const char *id)
{
    return (mdl_product_find_t){.ref = {.shop_id = visit->shop->id,
                                        .id = mdl_identifier_parse(id),
                                        .problem = &visit->problem}};
}

static buyers_t buyers_of(mdl_visit_t *visit, const char *to)
{
    buyers_t buyers = {
        .visit = visit,
        .product = product_find(visit, visit->argument),
        .to = product_find(visit, to),
        .search = {.shop_id = visit->shop->id, .text = buyers_field(visit, "q"), .limit = CHOICES}};

    buyers.count = (mdl_move_count_t){.shop_id = visit->shop->id,
                                      .mapping_id = buyers.product.ref.id,
                                      .to_mapping_id = buyers.to.ref.id,
                                      .problem = &visit->problem};
    buyers.newest = (mdl_move_newest_t){.shop_id = visit->shop->id,
                                        .mapping_id = buyers.product.ref.id};
    return buyers;
}

static void choices_add(mdl_json_t *to, const buyers_t *buyers)
{
    const mdl_by_hand_search_t *search = &buyers->search;
    mdl_json_t *choices = mdl_json_add_array(to, "choices");

    for (int i = 0; i < search->found->nelts; i++) {
        const mdl_by_hand_choice_t *each = APR_ARRAY_IDX(search->found, i,
                                                         const mdl_by_hand_choice_t *);
        mdl_json_t *choice;

        if (each->mapping_id == buyers->product.ref.id) {
            continue;
        }
        choice = mdl_json_add_object(choices, NULL);
        mdl_json_add_int(choice, "mapping", each->mapping_id);
        mdl_product_json(choice, each->title, each->storefront_product_id, buyers->visit->r->pool);
        mdl_json_add_string(choice, "variant_title", each->variant_title);
    }
    mdl_json_add_bool(to, "has_choices", mdl_json_length(choices) > 0);
    mdl_json_add_bool(to, "more_choices", search->more);
}

/* The product that is to be given, and how many orders get it. */
static void chosen_add(mdl_json_t *data, const buyers_t *buyers)
{
    mdl_json_t *chosen = mdl_json_add_object(data, "chosen");
    const mdl_product_t *product = buyers->to.product;

    mdl_json_add_int(chosen, "to", product->id);
    mdl_product_json(chosen, product->title, product->storefront_product_id,
                     buyers->visit->r->pool);
    mdl_json_add_bool(chosen, "has_keys", product->tags > 0);
    mdl_json_add_int(chosen, "orders", buyers->count.orders);
    mdl_json_add_int(chosen, "have", buyers->count.have);
    mdl_json_add_int(chosen, "lack", buyers->count.lack);
    mdl_json_add_bool(chosen, "more", buyers->count.more);
}

static void newest_add(mdl_json_t *data, const buyers_t *buyers)
{
    static const char *const names[] = {
        [MDL_JOB_QUEUED] = "goes_on",         [MDL_JOB_RUNNING] = "runs",
        [MDL_JOB_SUCCEEDED] = "is_done",      [MDL_JOB_FAILED] = "has_failed",
        [MDL_JOB_CANCELLED] = "is_cancelled", NULL};
    const mdl_job_t *job = buyers->newest.job;
    mdl_json_t *move;

    if (job == NULL) {
        return;
    }
    move = mdl_json_add_object(data, "newest");
    mdl_move_json(move, buyers->newest.move, buyers->visit->r->pool);
    mdl_frame_add_choice(move, names, (int)job->status);
    mdl_json_add_bool(move, "under_way",
                      job->status == MDL_JOB_QUEUED || job->status == MDL_JOB_RUNNING);
    mdl_json_add_bool(move, "any_skipped", buyers->newest.move->skipped > 0);
}

static int buyers_send(mdl_visit_t *visit, int status, const char *to)
{
    const char *text = buyers_field(visit, "q");
    buyers_t buyers = buyers_of(visit, to);
    mdl_json_t *data;
    apr_status_t rv;

    if (text != NULL && !mdl_utf8_is_text(text, MDL_PRODUCT_TITLE_MAX)) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    rv = mdl_visit_read(visit, buyers_read, &buyers);
    if (rv != APR_SUCCESS) {
        return rv == MDL_EPROBLEM && to != NULL && visit->problem.status == 422
                   ? buyers_send(visit, visit->problem.status, NULL)
                   : mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    data = mdl_frame_data(visit);
    mdl_products_add(data, buyers.product.product, visit->r->pool);
    mdl_json_add_string(data, "typed_q", text);
    newest_add(data, &buyers);
    if (buyers.to.ref.id != 0) {
        chosen_add(data, &buyers);
    } else {
        choices_add(data, &buyers);
    }
    return mdl_frame_send(visit, status, "product_buyers.html", data, NULL);
}

static int buyers_show(mdl_visit_t *visit)
{
    return buyers_send(visit, HTTP_OK, mdl_visit_parameter(visit, "to"));
}

MDL_EFFECT(mdl_move_start, mdl_move_start_t *)

static int buyers_move(mdl_visit_t *visit)
{
    mdl_move_start_t start = {
        .shop_id = visit->shop->id,
        .move = {.mapping_id = mdl_identifier_parse(visit->argument),
                 .to_mapping_id = mdl_identifier_parse(mdl_visit_field(visit, "to")),
                 .license_keys = mdl_visit_field(visit, "keys") != NULL,
                 .send_email = mdl_visit_field(visit, "email") != NULL,
                 .user_name = visit->user},
        .problem = &visit->problem};
    apr_status_t rv = mdl_visit_write(visit, mdl_move_start_effect, &start);

    return rv == MDL_EPROBLEM && visit->problem.status == 422
               ? buyers_send(visit, visit->problem.status, NULL)
               : mdl_frame_done(visit, rv,
                                apr_psprintf(visit->r->pool, "products/%" APR_INT64_T_FMT "/buyers",
                                             start.move.mapping_id));
}

const mdl_page_t mdl_product_buyers_pages[] = {
    {"{}/products/{}/buyers", "mapping", "buyers_moved", .sees = MDL_ROLE_STAFF, .get = buyers_show,
     .acts = MDL_ROLE_STAFF, .post = buyers_move, .done = "move_begun"},
    {0},
};
