#include "core/order/offer.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_uri.h>

#include "base/text/present.h"
#include "base/zip/zip.h"
#include "core/download/signed_url.h"

/* A file, of one assignment or of several that end in the same minute. */
typedef struct {
    const mdl_order_file_t *file; /* what the next download is taken from */
    apr_time_t expires_at;        /* 0: never */
    int left;
    int total; /* 0: unlimited */
} file_offer_t;

typedef struct {
    const mdl_order_link_t *link;
    apr_time_t expires_at; /* the last of its assignments'; 0: never */
} link_offer_t;

typedef struct {
    const mdl_order_t *order;
    const mdl_secret_t *secret;
    const char *public_url;
    apr_pool_t *p;
    apr_array_header_t *files; /* file_offer_t * */
    apr_array_header_t *links; /* link_offer_t * */
    apr_hash_t *files_seen;    /* the same by asset and minute */
    apr_hash_t *links_seen;    /* the same by link_id */
    mdl_json_t *license_keys;
    apr_int64_t pending;
    int assignments; /* that are open */
    int differ;      /* whether they end at different times */
    apr_time_t expires_at;
} content_t;

mdl_entitlement_t mdl_offer_file_entitlement(const mdl_order_file_t *file)
{
    return mdl_entitlement_of_file(file->status, file->downloads_used, file->download_limit);
}

const char *mdl_offer_file_id(const mdl_order_file_t *file, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT "-%" APR_INT64_T_FMT, file->assignment_id,
                        file->asset_id);
}

/* Dates are shown to the minute. */
static apr_int64_t minute_of(apr_time_t when)
{
    return when / apr_time_from_sec(60);
}

/* --- gathering --- */

static int left_of(const mdl_order_file_t *file)
{
    int left = file->download_limit - file->downloads_used;

    return left > 0 ? left : 0;
}

static void offer_take_file(content_t *content, const mdl_order_file_t *file, apr_time_t expires_at)
{
    apr_int64_t key[] = {file->asset_id, minute_of(expires_at)};
    file_offer_t *offer = apr_hash_get(content->files_seen, key, sizeof key);

    if (offer == NULL) {
        offer = apr_palloc(content->p, sizeof *offer);
        *offer = (file_offer_t){file, expires_at, left_of(file), file->download_limit};
        APR_ARRAY_PUSH(content->files, file_offer_t *) = offer;
        apr_hash_set(content->files_seen, apr_pmemdup(content->p, key, sizeof key), sizeof key,
                     offer);
        return;
    }
    if (offer->total == 0) {
        return;
    }
    if (file->download_limit == 0 || left_of(file) > left_of(offer->file)) {
        offer->file = file;
    }
    offer->left += left_of(file);
    offer->total = file->download_limit == 0 ? 0 : offer->total + file->download_limit;
}

static void take_link(content_t *content, const mdl_order_link_t *link, apr_time_t expires_at)
{
    link_offer_t *offer = apr_hash_get(content->links_seen, &link->link_id, sizeof link->link_id);

    if (offer == NULL) {
        offer = apr_palloc(content->p, sizeof *offer);
        *offer = (link_offer_t){link, expires_at};
        APR_ARRAY_PUSH(content->links, link_offer_t *) = offer;
        apr_hash_set(content->links_seen, &link->link_id, sizeof link->link_id, offer);
    } else if (offer->expires_at != 0 && (expires_at == 0 || expires_at > offer->expires_at)) {
        offer->expires_at = expires_at;
    }
}

static void take_assignment(content_t *content, const mdl_assignment_t *assignment)
{
    if (content->assignments++ == 0) {
        content->expires_at = assignment->expires_at;
    }
    content->differ |= minute_of(assignment->expires_at) != minute_of(content->expires_at);
    for (int i = 0; i < assignment->files->nelts; i++) {
        offer_take_file(content, APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *),
                        assignment->expires_at);
    }
    for (int i = 0; i < assignment->links->nelts; i++) {
        take_link(content, APR_ARRAY_IDX(assignment->links, i, const mdl_order_link_t *),
                  assignment->expires_at);
    }
    for (int i = 0; i < assignment->license_keys->nelts; i++) {
        mdl_json_add_string(mdl_json_add_object(content->license_keys, NULL), "license_key",
                            APR_ARRAY_IDX(assignment->license_keys, i, const char *));
    }
    content->pending += assignment->license_keys_pending;
}

/* --- showing --- */

static void add_limit(mdl_json_t *object, const file_offer_t *offer)
{
    mdl_json_t *limit;

    if (offer->total == 0) {
        mdl_json_add_null(object, "limit");
        return;
    }
    limit = mdl_json_add_object(object, "limit");
    mdl_json_add_int(limit, "left", offer->left);
    mdl_json_add_int(limit, "total", offer->total);
    mdl_json_add_bool(limit, "one", offer->total == 1);
}

static void offer_add_file(mdl_json_t *files, const file_offer_t *offer, const content_t *content)
{
    const mdl_order_file_t *file = offer->file;
    mdl_entitlement_t verdict = mdl_offer_file_entitlement(file);
    mdl_json_t *object = mdl_json_add_object(files, NULL);

    mdl_json_add_string(object, "id", mdl_offer_file_id(file, content->p));
    mdl_json_add_string(object, "title", file->title);
    mdl_json_add_string(object, "filename", file->filename);
    if (file->sha256 != NULL) {
        mdl_present_size(object, "size", file->size);
    } else {
        mdl_json_add_null(object, "size");
    }
    mdl_json_add_string(object, "sha256", file->sha256);
    add_limit(object, offer);
    mdl_present_date(object, "expires", content->differ ? offer->expires_at : 0);
    mdl_json_add_bool(object, "ready", verdict == MDL_ENTITLEMENT_OK);
    mdl_json_add_bool(object, "preparing", verdict == MDL_ENTITLEMENT_NOT_READY);
    mdl_json_add_bool(object, "failed", verdict == MDL_ENTITLEMENT_FAILED);
    mdl_json_add_bool(object, "exhausted", verdict == MDL_ENTITLEMENT_EXHAUSTED);
}

static void add_files(mdl_json_t *data, const content_t *content)
{
    mdl_json_t *files = mdl_json_add_array(data, "files");
    int all = content->files->nelts, preparing = 0, failed = 0;

    for (int i = 0; i < all; i++) {
        const file_offer_t *offer = APR_ARRAY_IDX(content->files, i, const file_offer_t *);

        offer_add_file(files, offer, content);
        preparing += mdl_offer_file_entitlement(offer->file) == MDL_ENTITLEMENT_NOT_READY;
        failed += mdl_offer_file_entitlement(offer->file) == MDL_ENTITLEMENT_FAILED;
    }
    mdl_json_add_bool(data, "has_files", all > 0);
    mdl_json_add_bool(data, "complete", preparing + failed == 0);
    if (preparing > 0) {
        mdl_json_t *object = mdl_json_add_object(data, "in_preparation");

        mdl_json_add_int(object, "count", preparing);
        mdl_json_add_bool(object, "one", preparing == 1);
        mdl_json_add_bool(object, "all", preparing == all);
    } else {
        mdl_json_add_null(data, "in_preparation");
    }
}

/* Without a port: people know their sites by name. */
static const char *host_of(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, url, &uri) == APR_SUCCESS ? uri.hostname : NULL;
}

static void add_links(mdl_json_t *data, const content_t *content)
{
    mdl_json_t *links = mdl_json_add_array(data, "links");

    for (int i = 0; i < content->links->nelts; i++) {
        const link_offer_t *offer = APR_ARRAY_IDX(content->links, i, const link_offer_t *);
        mdl_json_t *object = mdl_json_add_object(links, NULL);

        mdl_json_add_string(object, "title", offer->link->title);
        mdl_json_add_string(object, "url",
                            mdl_signed_url_link(content->secret, content->public_url,
                                                content->order->page_id, offer->link->link_id,
                                                content->p));
        mdl_json_add_string(object, "host", host_of(offer->link->url, content->p));
        mdl_present_date(object, "expires", content->differ ? offer->expires_at : 0);
    }
    mdl_json_add_bool(data, "has_links", content->links->nelts > 0);
}

static void add_pending(mdl_json_t *data, const content_t *content)
{
    mdl_json_t *pending;

    if (content->pending == 0) {
        mdl_json_add_null(data, "pending");
        return;
    }
    pending = mdl_json_add_object(data, "pending");
    mdl_json_add_int(pending, "count", content->pending);
    mdl_json_add_bool(pending, "one", content->pending == 1);
    mdl_json_add_bool(pending, "more", mdl_json_length(content->license_keys) > 0);
}

apr_int64_t mdl_offer_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p)
{
    apr_int64_t size = 0;
    apr_pool_t *scratch;
    mdl_zip_t *zip;
    int ready = 0;

    if (assignment->download_type != MDL_DOWNLOAD_ZIP) {
        return 0;
    }
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_offer_archive_size");
    zip = mdl_zip_begin(assignment->files->nelts, scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i,
                                                     const mdl_order_file_t *);

        if (file->status == MDL_ASSET_READY) {
            mdl_zip_add(zip, file->filename, file->size, 0, file->updated_at);
            ready++;
        }
    }
    mdl_zip_end(zip);
    size = ready >= 2 ? mdl_zip_size(zip) : 0;
    apr_pool_destroy(scratch);
    return size;
}

int mdl_offer_add(mdl_json_t *data, const mdl_order_t *order, const mdl_secret_t *secret,
                  const char *public_url, apr_time_t now, apr_pool_t *p)
{
    content_t content = {.order = order,
                         .secret = secret,
                         .public_url = public_url,
                         .p = p,
                         .files = apr_array_make(p, 8, sizeof(file_offer_t *)),
                         .links = apr_array_make(p, 2, sizeof(link_offer_t *)),
                         .files_seen = apr_hash_make(p),
                         .links_seen = apr_hash_make(p),
                         .license_keys = mdl_json_add_array(data, "license_keys")};
    int has_keys;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(order->assignments, i,
                                                           const mdl_assignment_t *);

        if (mdl_assignment_open(assignment, now)) {
            take_assignment(&content, assignment);
        }
    }
    has_keys = mdl_json_length(content.license_keys) > 0 || content.pending > 0;
    mdl_present_date(data, "expires", content.differ ? 0 : content.expires_at);
    add_files(data, &content);
    add_links(data, &content);
    mdl_json_add_bool(data, "has_license_keys", has_keys);
    add_pending(data, &content);
    return content.files->nelts > 0 || content.links->nelts > 0 || has_keys;
}
