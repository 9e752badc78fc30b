#include "settings/pages.h"

#include <apr_strings.h>

#include "base/mail/mime.h"
#include "base/text/utf8.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "core/order/by_hand.h"
#include "settings/frame.h"

#define CHOICES 20

MDL_EFFECT(mdl_by_hand_search, mdl_by_hand_search_t *)

typedef struct {
    mdl_by_hand_t order;
    mdl_visit_t *visit;
} hand_t;

static apr_status_t hand_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    hand_t *hand = arg;
    const char *given = hand->order.assign.storefront_order_id;
    apr_status_t rv = mdl_by_hand_make(db, p, &hand->order);

    hand->visit->audit.noun_id = apr_pstrdup(hand->visit->r->pool, hand->order.number);
    hand->order.assign.storefront_order_id = given; /* the effect may run again */
    return rv;
}

/* A field of the form, or of the search for a product, which keeps what was typed. */
static const char *hand_field(const mdl_visit_t *visit, const char *name)
{
    return visit->fields != NULL ? mdl_visit_field(visit, name) : mdl_visit_parameter(visit, name);
}

static void hand_add_choices(mdl_json_t *to, const mdl_visit_t *visit,
                             const mdl_by_hand_search_t *search)
{
    apr_int64_t chosen = mdl_identifier_parse(hand_field(visit, "mapping"));
    mdl_json_t *choices = mdl_json_add_array(to, "choices");

    for (int i = 0; i < search->found->nelts; i++) {
        const mdl_by_hand_choice_t *each = APR_ARRAY_IDX(search->found, i,
                                                         const mdl_by_hand_choice_t *);
        mdl_json_t *choice = mdl_json_add_object(choices, NULL);

        mdl_json_add_int(choice, "mapping", each->mapping_id);
        mdl_product_json(choice, each->title, each->storefront_product_id, visit->r->pool);
        mdl_json_add_string(choice, "variant_title", each->variant_title);
        mdl_json_add_bool(choice, "is_chosen",
                          each->mapping_id == chosen || search->found->nelts == 1);
    }
    mdl_json_add_bool(to, "has_choices", search->found->nelts > 0);
    mdl_json_add_bool(to, "more_choices", search->more);
}

static int hand_send(mdl_visit_t *visit, int status)
{
    static const char *const fields[] = {"q", "email", "name", "number"};
    mdl_by_hand_search_t search = {
        .shop_id = visit->shop->id, .text = hand_field(visit, "q"), .limit = CHOICES};
    mdl_json_t *data;
    apr_status_t rv = mdl_visit_read(visit, mdl_by_hand_search_effect, &search);

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_visit_end(visit);
    data = mdl_frame_data(visit);
    for (apr_size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        mdl_json_add_string(data, apr_pstrcat(visit->r->pool, "typed_", fields[i], NULL),
                            hand_field(visit, fields[i]));
    }
    hand_add_choices(data, visit, &search);
    return mdl_frame_send(visit, status, "order_by_hand.html", data, NULL);
}

static int hand_show(mdl_visit_t *visit)
{
    return hand_send(visit, HTTP_OK);
}

static int hand_refuse(mdl_visit_t *visit, const char *code, const char *message)
{
    mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, code, message);
    return hand_send(visit, HTTP_BAD_REQUEST);
}

static mdl_by_hand_t hand_order(mdl_visit_t *visit)
{
    apr_pool_t *p = visit->r->pool;
    const mdl_service_t *service = visit->service;

    return (mdl_by_hand_t){
        .mapping_id = mdl_identifier_parse(mdl_visit_field(visit, "mapping")),
        .assign = {.shop_id = visit->shop->id,
                   .storefront_order_id = mdl_visit_field(visit, "number"),
                   .name_given = 1,
                   .name = mdl_visit_field(visit, "name"),
                   .customer = {.email = mdl_mime_address_of(mdl_visit_field(visit, "email"), p)},
                   .customer_given = 1,
                   .send_email = 1,
                   .default_download_limit = service->settings->download_limit,
                   .mail_host = mdl_settings_public_host(service->settings, p),
                   .user = visit->user,
                   .problem = &visit->problem}};
}

static int hand_make(mdl_visit_t *visit)
{
    hand_t hand = {hand_order(visit), visit};
    const mdl_order_assign_t *assign = &hand.order.assign;
    apr_status_t rv;

    if (hand.order.mapping_id == 0) {
        return hand_refuse(visit, "no_product", "Choose a product.");
    }
    if (assign->customer.email == NULL) {
        return hand_refuse(visit, "invalid_address", "This is not an email address.");
    }
    if (assign->name != NULL && !mdl_utf8_is_text(assign->name, MDL_ORDER_NAME_MAX)) {
        return hand_refuse(visit, "invalid_name",
                           "A name has 1 to " APR_STRINGIFY(MDL_ORDER_NAME_MAX) " characters.");
    }
    if (assign->storefront_order_id != NULL &&
        !mdl_identifier_is_digits(assign->storefront_order_id)) {
        return hand_refuse(visit, "invalid_number",
                           "A number has 1 to 20 digits and begins with no 0.");
    }
    rv = mdl_visit_write(visit, hand_effect, &hand);
    return rv == MDL_EPROBLEM
               ? hand_send(visit, visit->problem.status)
               : mdl_frame_done(visit, rv,
                                rv == APR_SUCCESS ? apr_pstrcat(visit->r->pool, "orders/",
                                                                visit->audit.noun_id, NULL)
                                                  : "orders");
}

const mdl_page_t mdl_order_by_hand_pages[] = {
    {"{}/orders/new", "order", "assigned", .sees = MDL_ROLE_STAFF, .acts = MDL_ROLE_STAFF,
     .get = hand_show, .post = hand_make, .done = "order_made"},
    {0},
};
