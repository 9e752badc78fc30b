#include "core/order/by_hand.h"

#include <string.h>

#include <apr_strings.h>

#include "base/text/fold.h"
#include "core/catalog/product.h"

static mdl_by_hand_choice_t *choice_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_by_hand_choice_t *choice = apr_pcalloc(p, sizeof *choice);

    choice->mapping_id = MDL_INT(row, choice, id);
    MDL_READ(row, choice, choice, storefront_product_id, title, variant_title);
    choice->storefront_variant_id = MDL_TEXT(row, choice, variant);
    return choice;
}

/* Whether a choice is meant by a folded text; titles are compared without regard to case. */
static int choice_fits(const mdl_by_hand_choice_t *choice, const char *text, apr_pool_t *p)
{
    const char *number = mdl_product_number(choice->storefront_product_id);

    return strncmp(number, text, strlen(text)) == 0 ||
           (choice->title != NULL && strstr(mdl_text_fold(choice->title, p), text) != NULL) ||
           (choice->variant_title != NULL &&
            strstr(mdl_text_fold(choice->variant_title, p), text) != NULL);
}

apr_status_t mdl_by_hand_search(mdl_db_t *db, apr_pool_t *p, mdl_by_hand_search_t *search)
{
    const char *text = search->text != NULL ? mdl_text_fold(search->text, p) : "";
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(MAPPING_CHOICES, .shop_id = search->shop_id, .limit = MDL_BY_HAND_LOOKED));

    search->found = apr_array_make(p, search->limit, sizeof(mdl_by_hand_choice_t *));
    search->more = 0;
    while (rv == APR_SUCCESS && !search->more && mdl_rows_next(rows)) {
        mdl_by_hand_choice_t *choice = choice_of_row(rows, p);

        if (MDL_INT(rows, choice, is_active) == 0 || !choice_fits(choice, text, p)) {
            continue;
        }
        search->more = search->found->nelts == search->limit;
        if (!search->more) {
            APR_ARRAY_PUSH(search->found, mdl_by_hand_choice_t *) = choice;
        }
    }
    return rv;
}

apr_status_t mdl_by_hand_item(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t mapping_id,
                              mdl_order_item_t *item, int *is_active, apr_pool_t *p)
{
    const mdl_by_hand_choice_t *choice;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(MAPPING_CHOICE, .id = mapping_id, .shop_id = shop_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    choice = choice_of_row(row, p);
    *item = (mdl_order_item_t){.storefront_product_id = choice->storefront_product_id,
                               .storefront_variant_id = "",
                               .quantity = 1};
    if (choice->storefront_variant_id != NULL) {
        item->storefront_variant_id = choice->storefront_variant_id;
    }
    if (is_active != NULL) {
        *is_active = (int)MDL_INT(row, choice, is_active);
    }
    return APR_SUCCESS;
}

static apr_status_t by_hand_read_item(mdl_db_t *db, mdl_by_hand_t *order, apr_pool_t *p)
{
    apr_array_header_t *items = apr_array_make(p, 1, sizeof(mdl_order_item_t));
    apr_status_t rv = mdl_by_hand_item(db, order->assign.shop_id, order->mapping_id,
                                       apr_array_push(items), NULL, p);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(order->assign.problem, 422, "product_not_mapped",
                               "This product is not there any more: choose another.");
    }
    order->assign.items = items;
    return rv;
}

static apr_status_t by_hand_number(mdl_db_t *db, mdl_order_assign_t *assign, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(SHOP_NEXT_ORDER, assign->shop_id));

    if (rv == APR_SUCCESS) {
        assign->storefront_order_id = apr_psprintf(p, "9%019" APR_INT64_T_FMT,
                                                   mdl_rows_int(row, 0));
    }
    return rv;
}

apr_status_t mdl_by_hand_make(mdl_db_t *db, apr_pool_t *p, mdl_by_hand_t *order)
{
    mdl_order_assign_t *assign = &order->assign;
    apr_status_t rv = by_hand_read_item(db, order, p);

    if (rv == APR_SUCCESS && assign->storefront_order_id == NULL) {
        rv = by_hand_number(db, assign, p);
    }
    order->number = assign->storefront_order_id;
    assign->must_be_new = 1;
    return rv == APR_SUCCESS ? mdl_order_assign(db, p, assign) : rv;
}
