#include "settings/products.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/names.h"
#include "base/text/utf8.h"
#include "core/catalog/product.h"
#include "core/identifier.h"
#include "settings/filter.h"
#include "settings/frame.h"
#include "settings/pages.h"

#define LINES 50

static const char *const states[] = {"paused", "active", NULL};

static const mdl_filter_field_t fields[] = {
    {"q", .max = 4 * MDL_PRODUCT_TITLE_MAX}, {"state", .names = states}, {0}};

/* --- the list ------------------------------------------------------------------------------- */

/* Adds a count, and whether there may be more. */
static void count_add(mdl_json_t *to, const char *name, int count)
{
    mdl_json_t *object;

    if (count == 0) {
        mdl_json_add_null(to, name);
        return;
    }
    object = mdl_json_add_object(to, name);
    mdl_json_add_int(object, "count", count);
    mdl_json_add_bool(object, "more", count == MDL_PRODUCT_COUNTED);
}

void mdl_products_add(mdl_json_t *to, const mdl_product_t *product, apr_pool_t *p)
{
    mdl_json_add_int(to, "product_id", product->id);
    mdl_product_json(to, product->title, product->storefront_product_id, p);
    mdl_json_add_null(to, "variant_number");
    mdl_json_add_bool(to, "active", product->is_active);
    mdl_json_add_int_if(to, "variant_count", product->variants, product->variants > 0);
    mdl_json_add_int_if(to, "file_count", product->files, product->files > 0);
    mdl_json_add_int_if(to, "pack_count", product->packs, product->packs > 0);
    mdl_json_add_int_if(to, "link_count", product->links, product->links > 0);
    mdl_json_add_int_if(to, "tag_count", product->tags, product->tags > 0);
    mdl_json_add_bool(to, "gives_nothing",
                      product->files + product->packs + product->links + product->tags == 0);
    count_add(to, "live", product->live);
    count_add(to, "pinned", product->pinned);
    mdl_json_add_string(to, "order_id", product->storefront_order_id);
}

MDL_EFFECT(mdl_product_list, mdl_product_list_t *)

static void products_add_typed(mdl_json_t *data, const mdl_visit_t *visit)
{
    static const char *const typed[] = {"product", "title", "variants", "item", "from"};

    for (apr_size_t i = 0; visit->fields != NULL && i < sizeof typed / sizeof *typed; i++) {
        mdl_json_add_string(data, apr_pstrcat(visit->r->pool, "typed_", typed[i], NULL),
                            mdl_visit_field(visit, typed[i]));
    }
    mdl_json_add_bool(data, "typed", visit->fields != NULL);
}

static int products_send(mdl_visit_t *visit, int status)
{
    mdl_filter_t filter;
    mdl_product_list_t list = {.page = {.shop_id = visit->shop->id,
                                        .before = mdl_visit_before(visit),
                                        .limit = LINES + 1}};
    mdl_json_t *data, *products;
    apr_status_t rv;

    if (mdl_filter_read(&filter, fields, visit) != APR_SUCCESS) {
        return mdl_frame_message(visit, HTTP_BAD_REQUEST, "faulty_form");
    }
    list.text = mdl_filter_value(&filter, "q");
    list.is_active = mdl_names_find(states, mdl_filter_value(&filter, "state"));
    if ((rv = mdl_visit_read(visit, mdl_product_list_effect, &list)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_filter_add(data, &filter);
    products_add_typed(data, visit);
    products = mdl_json_add_array(data, "products");
    for (int i = 0; i < list.page.found->nelts && i < LINES; i++) {
        mdl_products_add(mdl_json_add_object(products, NULL),
                         APR_ARRAY_IDX(list.page.found, i, const mdl_product_t *), visit->r->pool);
    }
    mdl_json_add_bool(data, "has_products", list.page.found->nelts > 0);
    if (list.page.found->nelts > LINES) {
        mdl_json_add_bool(data, "too_many", list.text != NULL);
        mdl_json_add_int_if(data, "before",
                            APR_ARRAY_IDX(list.page.found, LINES - 1, const mdl_product_t *)->id,
                            list.text == NULL);
    }
    return mdl_frame_send(visit, status, "products.html", data, NULL);
}

static int products_show(mdl_visit_t *visit)
{
    return products_send(visit, HTTP_OK);
}

/* --- a new product -------------------------------------------------------------------------- */

apr_status_t mdl_products_read_title(mdl_visit_t *visit, mdl_mapping_t *mapping)
{
    mapping->title = mdl_visit_field(visit, "title");
    return mapping->title == NULL || mdl_utf8_is_text(mapping->title, MDL_PRODUCT_TITLE_MAX)
               ? APR_SUCCESS
               : mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_title",
                                 "A title has up to 255 characters, in one line.");
}

static apr_status_t variants_refuse(mdl_visit_t *visit)
{
    return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_variants",
                           "Write a line for each variant, at most 250: its number, a space, and "
                           "its title. No number comes twice.");
}

apr_status_t mdl_products_read_variants(mdl_visit_t *visit, mdl_mapping_t *mapping)
{
    apr_pool_t *p = visit->r->pool;
    const char *text = mdl_visit_field(visit, "variants");
    char *rest = apr_pstrdup(p, text != NULL ? mdl_utf8_lines(text, p) : ""), *line;
    apr_hash_t *seen = apr_hash_make(p);

    mapping->storefront_variant_ids = apr_array_make(p, 4, sizeof(const char *));
    mapping->variant_titles = apr_array_make(p, 4, sizeof(const char *));
    while ((line = apr_strtok(rest, "\n", &rest)) != NULL) {
        const char *given = mdl_utf8_trimmed(line, p);
        const char *number = ap_getword_white(p, &given);
        const char *title = mdl_utf8_trimmed(given, p);
        const char *variant = mdl_identifier_variant(number, mapping->storefront_product_id, p);

        if (*number == '\0') {
            continue;
        }
        if (variant == NULL || apr_hash_get(seen, variant, APR_HASH_KEY_STRING) != NULL ||
            (*title != '\0' && !mdl_utf8_is_text(title, MDL_PRODUCT_TITLE_MAX)) ||
            mapping->storefront_variant_ids->nelts >= MDL_PRODUCT_CONTENT_MAX) {
            return variants_refuse(visit);
        }
        apr_hash_set(seen, variant, APR_HASH_KEY_STRING, variant);
        APR_ARRAY_PUSH(mapping->storefront_variant_ids, const char *) = variant;
        APR_ARRAY_PUSH(mapping->variant_titles, const char *) = *title != '\0' ? title : NULL;
    }
    return APR_SUCCESS;
}

apr_status_t mdl_products_read_item(mdl_visit_t *visit, mdl_product_content_t *content,
                                    apr_int64_t *id)
{
    const char *item = mdl_visit_field(visit, "item");

    if (item == NULL || item[0] < '0' + MDL_PRODUCT_FILE || item[0] > '0' + MDL_PRODUCT_TAG ||
        item[1] != '-' || (*id = mdl_identifier_parse(item + 2)) == 0) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "unknown_reference",
                               "The mapping names content that this shop does not have.");
    }
    *content = (mdl_product_content_t)(item[0] - '0');
    return APR_SUCCESS;
}

apr_status_t mdl_products_refuse_full(mdl_visit_t *visit)
{
    return mdl_problem_set(&visit->problem, 422, "list_full",
                           "A product has at most 250 files, packs, links and license key tags of "
                           "its own, of each. Put files into a pack.");
}

apr_status_t mdl_products_add_content(mdl_visit_t *visit, mdl_mapping_t *mapping)
{
    mdl_product_content_t content;
    apr_int64_t id;
    apr_status_t rv = mdl_products_read_item(visit, &content, &id);

    return rv != APR_SUCCESS                                    ? rv
           : mdl_product_content_add(mapping, content, id) != 0 ? APR_SUCCESS
                                                                : mdl_products_refuse_full(visit);
}

typedef struct {
    mdl_mapping_put_t put;
    mdl_visit_t *visit;
} product_create_t;

/* What the new product begins with: all of another, the content that the form names, or nothing. */
static apr_status_t product_begin(mdl_db_t *db, mdl_visit_t *visit, mdl_mapping_t *mapping,
                                  apr_pool_t *p)
{
    mdl_entity_ref_t from = {.shop_id = visit->shop->id,
                             .id = mdl_identifier_parse(mdl_visit_field(visit, "from")),
                             .problem = &visit->problem};
    apr_status_t rv;

    *mapping = (mdl_mapping_t){.download_type = MDL_DOWNLOAD_ZIP,
                               .download_limit = -1,
                               .access_days = -1,
                               .content = MDL_CONTENT_LIVE};
    for (mdl_product_content_t kind = MDL_PRODUCT_FILE; kind <= MDL_PRODUCT_TAG; kind++) {
        *mdl_product_content(mapping, kind) = apr_array_make(p, 1, sizeof(apr_int64_t));
    }
    if (from.id != 0) {
        if ((rv = mdl_mapping_find(db, p, &from)) != APR_SUCCESS) {
            return rv;
        }
        *mapping = *(const mdl_mapping_t *)from.entity;
    }
    mapping->is_active = 1;
    return mdl_visit_field(visit, "item") == NULL ? APR_SUCCESS
                                                  : mdl_products_add_content(visit, mapping);
}

/* The gid of what was typed: a gid, or a number on the platform of the copied product, or of the
   shop's newest. */
static apr_status_t product_read_gid(mdl_db_t *db, product_create_t *create, apr_pool_t *p)
{
    const char *typed = mdl_visit_field(create->visit, "product");
    mdl_product_list_t newest = {
        .page = {.shop_id = create->put.shop_id, .before = APR_INT64_MAX, .limit = 1},
        .is_active = -1};
    const char *copied = create->put.mapping.storefront_product_id;
    const char *gid = copied != NULL ? copied : "gid://shopify/Product/";
    apr_status_t rv;

    if (typed != NULL && mdl_identifier_is_digits(typed)) {
        if ((rv = mdl_product_list(db, p, &newest)) != APR_SUCCESS) {
            return rv;
        }
        if (copied == NULL && newest.page.found->nelts > 0) {
            gid = APR_ARRAY_IDX(newest.page.found, 0, mdl_product_t *)->storefront_product_id;
        }
        typed = apr_psprintf(p, "%.*s%s", (int)(mdl_product_number(gid) - gid), gid, typed);
    }
    create->put.mapping.storefront_product_id = typed;
    return typed != NULL && mdl_identifier_is_product(typed)
               ? APR_SUCCESS
               : mdl_problem_set(&create->visit->problem, HTTP_BAD_REQUEST, "invalid_product",
                                 "Give the number that the product has in the storefront, such as "
                                 "1018, or its address like gid://shopify/Product/1018.");
}

static apr_status_t product_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    product_create_t *create = arg;
    mdl_visit_t *visit = create->visit;
    mdl_mapping_t *mapping = &create->put.mapping;
    apr_status_t rv;

    if ((rv = product_begin(db, visit, mapping, p)) != APR_SUCCESS ||
        (rv = product_read_gid(db, create, p)) != APR_SUCCESS ||
        (rv = mdl_products_read_title(visit, mapping)) != APR_SUCCESS ||
        (rv = mdl_products_read_variants(visit, mapping)) != APR_SUCCESS ||
        (rv = mdl_mapping_put(db, p, &create->put)) != APR_SUCCESS) {
        return rv;
    }
    visit->audit.noun_id = apr_psprintf(p, "%" APR_INT64_T_FMT, mapping->id);
    return create->put.created
               ? APR_SUCCESS
               : mdl_problem_set(&visit->problem, HTTP_CONFLICT, "mapping_exists",
                                 "Another mapping has this product and set of variants.");
}

static int products_create(mdl_visit_t *visit)
{
    product_create_t create = {.put = {.shop_id = visit->shop->id, .problem = &visit->problem},
                               .visit = visit};
    apr_status_t rv = mdl_visit_write(visit, product_create_effect, &create);

    return rv == MDL_EPROBLEM
               ? products_send(visit, visit->problem.status)
               : mdl_frame_done(visit, rv,
                                apr_psprintf(visit->r->pool, "products/%" APR_INT64_T_FMT,
                                             create.put.mapping.id));
}

const mdl_page_t mdl_product_list_pages[] = {
    {"{}/products", "mapping", "created", .sees = MDL_ROLE_READ_ONLY, .get = products_show,
     .acts = MDL_ROLE_STAFF, .post = products_create, .done = "product_created",
     .max_length = 1024 * 1024},
    {0},
};
