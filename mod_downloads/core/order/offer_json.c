#include "core/order/offer_json.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>

#include "base/text/present.h"
#include "core/catalog/product.h"
#include "core/download/signed_url.h"

#define FILES_SHOWN 10 /* of an order or a product, until the others are folded */

/* What everything is made of. */
typedef struct {
    const mdl_offer_t *offer;
    const mdl_order_t *order;
    const mdl_secret_t *secret;
    const char *public_url;
    const apr_array_header_t *opened; /* license keys; NULL: the secret does not open them */
} source_t;

static int has_several(const mdl_offer_t *offer)
{
    return offer->products->nelts > 1;
}

/* --- files ---------------------------------------------------------------------------------- */

static void json_add_limit(mdl_json_t *object, const mdl_offer_file_t *offered)
{
    mdl_json_t *limit;

    if (offered->total == 0) {
        mdl_json_add_null(object, "limit");
        return;
    }
    limit = mdl_json_add_object(object, "limit");
    mdl_json_add_int(limit, "left", offered->left);
    mdl_json_add_int(limit, "total", offered->total);
    mdl_json_add_bool(limit, "few",
                      offered->entitlement == MDL_ENTITLEMENT_OK && offered->left <= MDL_OFFER_FEW);
}

static void json_add_file(mdl_json_t *object, const mdl_offer_file_t *offered, apr_pool_t *p)
{
    const mdl_order_file_t *file = offered->file;

    mdl_json_add_string(object, "id", mdl_offer_file_id(file, p));
    mdl_json_add_string(object, "title", file->title);
    mdl_json_add_string(object, "filename", file->filename);
    if (file->sha256 != NULL) {
        mdl_present_size(object, "size", file->size);
    } else {
        mdl_json_add_null(object, "size");
    }
    mdl_json_add_string(object, "sha256", file->sha256);
    json_add_limit(object, offered);
    mdl_json_add_bool(object, "ready", offered->entitlement == MDL_ENTITLEMENT_OK);
    mdl_json_add_bool(object, "preparing", offered->entitlement == MDL_ENTITLEMENT_NOT_READY);
    mdl_json_add_bool(object, "failed", offered->entitlement == MDL_ENTITLEMENT_FAILED);
    mdl_json_add_bool(object, "running", offered->entitlement == MDL_ENTITLEMENT_RUNNING);
    mdl_json_add_bool(object, "exhausted", offered->entitlement == MDL_ENTITLEMENT_EXHAUSTED);
}

static void list_file(const void *baton, int index, mdl_json_t *object, apr_pool_t *p)
{
    const mdl_offer_t *offer = baton;
    const mdl_offer_file_t *offered = APR_ARRAY_IDX(offer->files, index, const mdl_offer_file_t *);

    json_add_file(object, offered, p);
    mdl_json_add_string(object, "product", has_several(offer) ? offered->product : NULL);
    mdl_present_date(object, "expires", offer->ends_differ ? offered->expires_at : 0);
}

mdl_template_list_t mdl_offer_json_files(const mdl_offer_t *offer)
{
    return (mdl_template_list_t){
        .name = "files", .length = offer->files->nelts, .element = list_file, .baton = offer};
}

static void json_count_files(mdl_json_t *data, const mdl_offer_t *offer)
{
    int all = offer->files->nelts, preparing = 0, failed = 0, limited = 0;

    for (int i = 0; i < all; i++) {
        const mdl_offer_file_t *offered = APR_ARRAY_IDX(offer->files, i, const mdl_offer_file_t *);

        preparing += offered->entitlement == MDL_ENTITLEMENT_NOT_READY;
        failed += offered->entitlement == MDL_ENTITLEMENT_FAILED;
        limited += offered->total > 0;
    }
    mdl_json_add_bool(data, "has_files", all > 0);
    mdl_json_add_bool(data, "limited", limited > 0);
    mdl_json_add_bool(data, "complete", preparing + failed == 0 && !mdl_offer_is_empty(offer));
    if (preparing > 0) {
        mdl_json_t *object = mdl_json_add_object(data, "in_preparation");

        mdl_json_add_int(object, "count", preparing);
        mdl_json_add_bool(object, "all", preparing == all);
    } else {
        mdl_json_add_null(data, "in_preparation");
    }
}

/* --- links, keys, notes --------------------------------------------------------------------- */

/* Without the port: people know sites by name. */
static const char *host_of(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, url, &uri) == APR_SUCCESS ? uri.hostname : NULL;
}

static void json_add_links(mdl_json_t *to, const source_t *source, const apr_array_header_t *links,
                           int ends_differ, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_add_array(to, "links");

    for (int i = 0; i < links->nelts; i++) {
        const mdl_offer_link_t *offered = APR_ARRAY_IDX(links, i, const mdl_offer_link_t *);
        const mdl_order_link_t *link = offered->link;
        mdl_json_t *object = mdl_json_add_object(list, NULL);

        mdl_json_add_string(object, "title", link->title);
        mdl_json_add_string(object, "product",
                            has_several(source->offer) ? offered->product : NULL);
        mdl_json_add_string(object, "url",
                            mdl_signed_url_link(source->secret, source->public_url,
                                                source->order->page_id, link->link_id, p));
        mdl_json_add_string(object, "host", host_of(link->url, p));
        mdl_present_date(object, "expires", ends_differ ? offered->expires_at : 0);
    }
    mdl_json_add_bool(to, "has_links", links->nelts > 0);
}

static mdl_json_t *json_add_key(mdl_json_t *keys, const source_t *source, int index)
{
    mdl_json_t *key = mdl_json_add_object(keys, NULL);

    mdl_json_add_string(key, "license_key", APR_ARRAY_IDX(source->opened, index, const char *));
    return key;
}

/* Keys that can't be opened count as pending, like keys that the stock lacks. */
static void json_add_pending(mdl_json_t *to, int shown, apr_int64_t count)
{
    mdl_json_add_bool(to, "has_license_keys", shown > 0 || count > 0);
    if (count > 0) {
        mdl_json_t *pending = mdl_json_add_object(to, "pending");

        mdl_json_add_int(pending, "count", count);
        mdl_json_add_bool(pending, "more", shown > 0);
    } else {
        mdl_json_add_null(to, "pending");
    }
}

static void json_add_license_keys(mdl_json_t *data, const source_t *source)
{
    const mdl_offer_t *offer = source->offer;
    mdl_json_t *keys = mdl_json_add_array(data, "license_keys");
    int all = offer->license_keys->nelts, shown = source->opened != NULL ? all : 0;

    for (int i = 0; i < shown; i++) {
        mdl_json_add_string(json_add_key(keys, source, i), "product",
                            has_several(offer) ? APR_ARRAY_IDX(offer->key_products, i, const char *)
                                               : NULL);
    }
    json_add_pending(data, shown, offer->license_keys_pending + all - shown);
}

static void json_add_notes(mdl_json_t *data, const mdl_offer_t *offer, apr_pool_t *p)
{
    mdl_json_t *notes = mdl_json_add_array(data, "notes");

    for (int i = 0; i < offer->notes->nelts; i++) {
        const mdl_offer_note_t *note = &APR_ARRAY_IDX(offer->notes, i, mdl_offer_note_t);
        mdl_json_t *object = mdl_json_add_object(notes, NULL);

        mdl_json_add_string(object, "product", note->product);
        mdl_product_json_note(object, "lines", note->note, p);
    }
}

static void json_add_summary(mdl_json_t *data, const source_t *source)
{
    const mdl_offer_t *offer = source->offer;

    mdl_present_date(data, "expires", offer->ends_differ ? 0 : offer->expires_at);
    mdl_present_date(data, "ordered", source->order->created_at);
    json_count_files(data, offer);
    mdl_json_add_bool(data, "files_truncated", source->order->files_truncated);
    mdl_json_add_bool(data, "links_truncated", source->order->links_truncated);
}

/* --- archives ------------------------------------------------------------------------------- */

static void json_add_contents(mdl_json_t *object, const char *title, int more)
{
    mdl_json_t *contents = mdl_json_add_object(object, "contents");

    mdl_json_add_string(contents, "title", title);
    mdl_json_add_int(contents, "more", more);
}

/* among: whether the archive is one of several products' */
static void json_add_archives(mdl_json_t *to, const apr_array_header_t *archives, int among)
{
    mdl_json_t *list = mdl_json_add_array(to, "archives");

    for (int i = 0; i < archives->nelts; i++) {
        const mdl_offer_archive_t *archive = APR_ARRAY_IDX(archives, i,
                                                           const mdl_offer_archive_t *);
        mdl_json_t *object = mdl_json_add_object(list, NULL);

        mdl_json_add_int(object, "id", archive->assignment->id);
        mdl_json_add_int(object, "count", archive->count);
        mdl_present_size(object, "size", archive->size);
        mdl_json_add_bool(object, "ready", archive->entitlement == MDL_ENTITLEMENT_OK);
        mdl_json_add_bool(object, "running", archive->entitlement == MDL_ENTITLEMENT_RUNNING);
        mdl_json_add_bool(object, "exhausted", archive->entitlement == MDL_ENTITLEMENT_EXHAUSTED);
        if (archive->is_all && !among) {
            mdl_json_add_null(object, "contents");
        } else {
            json_add_contents(object, archive->title, archive->count - 1);
        }
    }
}

void mdl_offer_json_archives(mdl_json_t *data, const mdl_offer_t *offer)
{
    json_add_archives(data, offer->archives, has_several(offer));
}

/* --- products ------------------------------------------------------------------------------- */

/* Some of the files of a product. */
typedef struct {
    const mdl_offer_product_t *product;
    int from;
} part_t;

static const mdl_offer_product_t *product_at(const mdl_offer_t *offer, int index)
{
    return APR_ARRAY_IDX(offer->products, index, const mdl_offer_product_t *);
}

/* A product without a title is called after its first file or link. */
static void product_add_name(mdl_json_t *to, const mdl_offer_product_t *product)
{
    int files = product->files->nelts, links = product->links->nelts;

    mdl_json_add_string(to, "title", product->title);
    if (product->title == NULL && files > 0) {
        json_add_contents(to, APR_ARRAY_IDX(product->files, 0, mdl_offer_file_t *)->file->title,
                          files - 1);
    } else if (product->title == NULL && links > 0) {
        json_add_contents(to, APR_ARRAY_IDX(product->links, 0, mdl_offer_link_t *)->link->title,
                          links - 1);
    } else {
        mdl_json_add_null(to, "contents");
    }
}

static void product_add_license_keys(mdl_json_t *to, const source_t *source,
                                     const mdl_offer_product_t *product)
{
    mdl_json_t *keys = mdl_json_add_array(to, "license_keys");
    int all = product->license_keys->nelts, shown = source->opened != NULL ? all : 0;

    for (int i = 0; i < shown; i++) {
        json_add_key(keys, source, APR_ARRAY_IDX(product->license_keys, i, int));
    }
    json_add_pending(to, shown, product->license_keys_pending + all - shown);
}

static void product_add_notes(mdl_json_t *to, const mdl_offer_product_t *product, apr_pool_t *p)
{
    mdl_json_t *notes = mdl_json_add_array(to, "notes");

    for (int i = 0; i < product->notes->nelts; i++) {
        mdl_product_json_note(mdl_json_add_object(notes, NULL), "lines",
                              APR_ARRAY_IDX(product->notes, i, const char *), p);
    }
}

static void list_product(const void *baton, int index, mdl_json_t *to, apr_pool_t *p)
{
    const source_t *source = baton;
    const mdl_offer_t *offer = source->offer;
    const mdl_offer_product_t *product = product_at(offer, index);
    int files = product->files->nelts, has_archive = product->archives->nelts > 0;

    product_add_name(to, product);
    product_add_notes(to, product, p);
    product_add_license_keys(to, source, product);
    json_add_archives(to, product->archives, 0);
    json_add_links(to, source, product->links, product->ends_differ, p);
    mdl_present_date(to, "expires",
                     offer->ends_differ && !product->ends_differ ? product->expires_at : 0);
    mdl_json_add_bool(to, "has_files", files > 0);
    mdl_json_add_bool(to, "single", files == 1);
    mdl_json_add_bool(to, "several", files > 1);
    mdl_json_add_bool(to, "folded", has_archive && offer->files->nelts > FILES_SHOWN);
    mdl_json_add_int(to, "count", files);
    if (!has_archive && files > FILES_SHOWN) {
        mdl_json_add_int(mdl_json_add_object(to, "more"), "count", files - FILES_SHOWN);
    } else {
        mdl_json_add_null(to, "more");
    }
}

/* Whether a file's title is not what its product is called. */
static int file_is_titled(const mdl_offer_product_t *product, const mdl_order_file_t *file)
{
    return product->title == NULL ? product->files->nelts > 1
                                  : strcmp(product->title, file->title) != 0;
}

static void list_product_file(const void *baton, int index, mdl_json_t *object, apr_pool_t *p)
{
    const part_t *part = baton;
    const mdl_offer_product_t *product = part->product;
    const mdl_offer_file_t *offered = APR_ARRAY_IDX(product->files, part->from + index,
                                                    const mdl_offer_file_t *);

    json_add_file(object, offered, p);
    mdl_json_add_bool(object, "titled", file_is_titled(product, offered->file));
    mdl_present_date(object, "expires", product->ends_differ ? offered->expires_at : 0);
}

static mdl_template_list_t *list_of_part(const char *name, const mdl_offer_product_t *product,
                                         int from, int to, const mdl_template_list_t *next,
                                         apr_pool_t *p)
{
    mdl_template_list_t *list = apr_pcalloc(p, sizeof *list);
    part_t *part = apr_palloc(p, sizeof *part);

    *part = (part_t){product, from};
    *list = (mdl_template_list_t){.name = name,
                                  .length = to - from,
                                  .element = list_product_file,
                                  .baton = part,
                                  .next = next};
    return list;
}

static const mdl_template_list_t *product_lists(const void *baton, int index, apr_pool_t *p)
{
    const source_t *source = baton;
    const mdl_offer_product_t *product = product_at(source->offer, index);
    int all = product->files->nelts;
    int first = product->archives->nelts > 0 || all < FILES_SHOWN ? all : FILES_SHOWN;
    mdl_template_list_t *list = list_of_part("more_files", product, first, all, NULL, p);

    list = list_of_part("first_files", product, 0, first, list, p);
    return list_of_part("files", product, 0, all, list, p);
}

const mdl_template_list_t *mdl_offer_json(mdl_json_t *data, const mdl_offer_t *offer,
                                          const mdl_order_t *order, const mdl_secret_t *secret,
                                          const char *public_url, apr_pool_t *p)
{
    mdl_template_list_t files = mdl_offer_json_files(offer);
    mdl_template_list_t *products = apr_pcalloc(p, sizeof *products);
    source_t *source = apr_palloc(p, sizeof *source);

    *source = (source_t){.offer = offer,
                         .order = order,
                         .secret = secret,
                         .public_url = public_url,
                         .opened = mdl_license_keys_open(secret, offer->license_keys, p)};
    json_add_summary(data, source);
    json_add_notes(data, offer, p);
    json_add_links(data, source, offer->links, offer->ends_differ, p);
    json_add_license_keys(data, source);
    *products = (mdl_template_list_t){.name = "products",
                                      .length = offer->products->nelts,
                                      .element = list_product,
                                      .baton = source,
                                      .lists = product_lists,
                                      .next = apr_pmemdup(p, &files, sizeof files)};
    return products;
}
