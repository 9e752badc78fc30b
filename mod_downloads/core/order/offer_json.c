#include "core/order/offer_json.h"

#include <apr_uri.h>

#include "base/text/present.h"
#include "core/catalog/product.h"
#include "core/download/signed_url.h"

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
}

static void json_add_file(const void *baton, int index, mdl_json_t *object, apr_pool_t *p)
{
    const mdl_offer_t *offer = baton;
    const mdl_offer_file_t *offered = APR_ARRAY_IDX(offer->files, index, const mdl_offer_file_t *);
    const mdl_order_file_t *file = offered->file;

    mdl_json_add_string(object, "id", mdl_offer_file_id(file, p));
    mdl_json_add_string(object, "title", file->title);
    mdl_json_add_string(object, "product", offer->products > 1 ? offered->product : NULL);
    mdl_json_add_string(object, "filename", file->filename);
    if (file->sha256 != NULL) {
        mdl_present_size(object, "size", file->size);
    } else {
        mdl_json_add_null(object, "size");
    }
    mdl_json_add_string(object, "sha256", file->sha256);
    json_add_limit(object, offered);
    mdl_present_date(object, "expires", offer->ends_differ ? offered->expires_at : 0);
    mdl_json_add_bool(object, "ready", offered->entitlement == MDL_ENTITLEMENT_OK);
    mdl_json_add_bool(object, "preparing", offered->entitlement == MDL_ENTITLEMENT_NOT_READY);
    mdl_json_add_bool(object, "failed", offered->entitlement == MDL_ENTITLEMENT_FAILED);
    mdl_json_add_bool(object, "running", offered->entitlement == MDL_ENTITLEMENT_RUNNING);
    mdl_json_add_bool(object, "exhausted", offered->entitlement == MDL_ENTITLEMENT_EXHAUSTED);
}

mdl_template_list_t mdl_offer_json_files(const mdl_offer_t *offer)
{
    return (mdl_template_list_t){"files", offer->files->nelts, json_add_file, offer};
}

static void json_count_files(mdl_json_t *data, const mdl_offer_t *offer)
{
    int all = offer->files->nelts, preparing = 0, failed = 0;

    for (int i = 0; i < all; i++) {
        const mdl_offer_file_t *offered = APR_ARRAY_IDX(offer->files, i, const mdl_offer_file_t *);

        preparing += offered->entitlement == MDL_ENTITLEMENT_NOT_READY;
        failed += offered->entitlement == MDL_ENTITLEMENT_FAILED;
    }
    mdl_json_add_bool(data, "has_files", all > 0);
    mdl_json_add_bool(data, "complete", preparing + failed == 0 && !mdl_offer_is_empty(offer));
    if (preparing > 0) {
        mdl_json_t *object = mdl_json_add_object(data, "in_preparation");

        mdl_json_add_int(object, "count", preparing);
        mdl_json_add_bool(object, "all", preparing == all);
    } else {
        mdl_json_add_null(data, "in_preparation");
    }
}

/* Without the port: people know sites by name. */
static const char *host_of(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, url, &uri) == APR_SUCCESS ? uri.hostname : NULL;
}

static void json_add_link(mdl_json_t *links, const mdl_offer_link_t *offered, const char *url,
                          const mdl_offer_t *offer, apr_pool_t *p)
{
    mdl_json_t *object = mdl_json_add_object(links, NULL);

    mdl_json_add_string(object, "title", offered->link->title);
    mdl_json_add_string(object, "url", url);
    mdl_json_add_string(object, "host", host_of(offered->link->url, p));
    mdl_present_date(object, "expires", offer->ends_differ ? offered->expires_at : 0);
}

/* Keys that can't be opened count as pending, like keys that the stock lacks. */
static void json_add_license_keys(mdl_json_t *data, const mdl_offer_t *offer,
                                  const mdl_secret_t *secret, apr_pool_t *p)
{
    mdl_json_t *keys = mdl_json_add_array(data, "license_keys");
    const apr_array_header_t *opened = mdl_license_keys_open(secret, offer->license_keys, p);
    int shown = opened != NULL ? opened->nelts : 0;
    apr_int64_t count = offer->license_keys_pending + offer->license_keys->nelts - shown;

    for (int i = 0; i < shown; i++) {
        mdl_json_t *key = mdl_json_add_object(keys, NULL);

        mdl_json_add_string(key, "license_key", APR_ARRAY_IDX(opened, i, const char *));
        mdl_json_add_string(
            key, "product",
            offer->products > 1 ? APR_ARRAY_IDX(offer->key_products, i, const char *) : NULL);
    }
    mdl_json_add_bool(data, "has_license_keys", shown > 0 || count > 0);
    if (count > 0) {
        mdl_json_t *pending = mdl_json_add_object(data, "pending");

        mdl_json_add_int(pending, "count", count);
        mdl_json_add_bool(pending, "more", shown > 0);
    } else {
        mdl_json_add_null(data, "pending");
    }
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

void mdl_offer_json(mdl_json_t *data, const mdl_offer_t *offer, const mdl_order_t *order,
                    const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    mdl_json_t *links;

    mdl_present_date(data, "expires", offer->ends_differ ? 0 : offer->expires_at);
    json_add_notes(data, offer, p);
    json_count_files(data, offer);
    mdl_json_add_bool(data, "files_truncated", order->files_truncated);
    links = mdl_json_add_array(data, "links");
    for (int i = 0; i < offer->links->nelts; i++) {
        const mdl_offer_link_t *offered = APR_ARRAY_IDX(offer->links, i, const mdl_offer_link_t *);

        json_add_link(
            links, offered,
            mdl_signed_url_link(secret, public_url, order->page_id, offered->link->link_id, p),
            offer, p);
    }
    mdl_json_add_bool(data, "links_truncated", order->links_truncated);
    mdl_json_add_bool(data, "has_links", offer->links->nelts > 0);
    json_add_license_keys(data, offer, secret, p);
}

static void json_add_contents(mdl_json_t *object, const mdl_offer_archive_t *archive)
{
    mdl_json_t *contents;

    if (archive->is_all) {
        mdl_json_add_null(object, "contents");
        return;
    }
    contents = mdl_json_add_object(object, "contents");
    mdl_json_add_string(contents, "title", archive->title);
    mdl_json_add_int(contents, "more", archive->count - 1);
}

void mdl_offer_json_archives(mdl_json_t *data, const mdl_offer_t *offer)
{
    mdl_json_t *archives = mdl_json_add_array(data, "archives");

    for (int i = 0; i < offer->archives->nelts; i++) {
        const mdl_offer_archive_t *archive = APR_ARRAY_IDX(offer->archives, i,
                                                           const mdl_offer_archive_t *);
        mdl_json_t *object = mdl_json_add_object(archives, NULL);

        mdl_json_add_int(object, "id", archive->assignment->id);
        mdl_json_add_int(object, "count", archive->count);
        mdl_present_size(object, "size", archive->size);
        mdl_json_add_bool(object, "ready", archive->entitlement == MDL_ENTITLEMENT_OK);
        mdl_json_add_bool(object, "running", archive->entitlement == MDL_ENTITLEMENT_RUNNING);
        mdl_json_add_bool(object, "exhausted", archive->entitlement == MDL_ENTITLEMENT_EXHAUSTED);
        json_add_contents(object, archive);
    }
}
