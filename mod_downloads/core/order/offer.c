#include "core/order/offer.h"

#include <stdlib.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/zip/zip.h"
#include "core/catalog/product.h"

/* An offer under construction. */
typedef struct {
    mdl_offer_t *offer;
    mdl_offer_product_t *product; /* of the assignment that is gathered */
    apr_hash_t *products;         /* mdl_offer_product_t by product and title */
    apr_hash_t *files;            /* mdl_offer_file_t by product, asset and minute */
    apr_hash_t *links;            /* mdl_offer_link_t by product and link */
    apr_hash_t *archives;         /* mdl_offer_archive_t by product and the ids of its files */
    apr_hash_t *notes;            /* by product (-1: any) and mapping */
    apr_pool_t *pool;
} gathering_t;

static const mdl_assignment_t *assignment_at(const mdl_order_t *order, int i)
{
    return APR_ARRAY_IDX(order->assignments, i, const mdl_assignment_t *);
}

static const mdl_order_file_t *assignment_file_at(const mdl_assignment_t *assignment, int i)
{
    return APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *);
}

static mdl_entitlement_t file_entitlement(const mdl_order_file_t *file)
{
    return mdl_entitlement_of_file(file->status, file->downloads, file->download_limit);
}

static int file_left(const mdl_order_file_t *file)
{
    int left = file->download_limit - file->downloads.used + file->downloads.resting;

    return left > 0 ? left : 0;
}

static apr_int64_t minute_of(apr_time_t when)
{
    return when / apr_time_from_sec(60);
}

const char *mdl_offer_file_id(const mdl_order_file_t *file, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT "-%" APR_INT64_T_FMT, file->assignment_id,
                        file->asset_id);
}

/* --- archives --- */

apr_int64_t mdl_offer_archive_size(const mdl_assignment_t *assignment, apr_pool_t *p)
{
    apr_int64_t size = 0;
    apr_pool_t *scratch;
    mdl_zip_t *zip;
    int ready = 0;

    if (assignment->download_type != MDL_DOWNLOAD_ZIP || assignment->files_truncated) {
        return 0;
    }
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_offer_archive_size");
    zip = mdl_zip_begin(assignment->files->nelts, scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = assignment_file_at(assignment, i);

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

/* An archive costs a download of each of its files. */
static mdl_entitlement_t archive_entitlement(const mdl_assignment_t *assignment)
{
    mdl_entitlement_t archive = MDL_ENTITLEMENT_OK;

    for (int i = 0; i < assignment->files->nelts; i++) {
        mdl_entitlement_t file = file_entitlement(assignment_file_at(assignment, i));

        if (file == MDL_ENTITLEMENT_EXHAUSTED) {
            return file;
        }
        archive = file == MDL_ENTITLEMENT_RUNNING ? file : archive;
    }
    return archive;
}

static int has_files_of(const mdl_assignment_t *assignment, const mdl_assignment_t *other,
                        apr_pool_t *p)
{
    apr_pool_t *scratch;
    apr_hash_t *ids;
    int has_all = 1;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_offer_files");
    ids = apr_hash_make(scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = assignment_file_at(assignment, i);

        apr_hash_set(ids, &file->asset_id, sizeof file->asset_id, file);
    }
    for (int i = 0; i < other->files->nelts && has_all; i++) {
        const mdl_order_file_t *file = assignment_file_at(other, i);

        has_all = apr_hash_get(ids, &file->asset_id, sizeof file->asset_id) != NULL;
    }
    apr_pool_destroy(scratch);
    return has_all;
}

static int has_same_files(const mdl_assignment_t *assignment, const mdl_assignment_t *other,
                          apr_pool_t *p)
{
    return assignment->files->nelts == other->files->nelts && has_files_of(assignment, other, p);
}

static mdl_offer_archive_t *archive_make(const mdl_assignment_t *assignment, apr_int64_t size,
                                         apr_pool_t *p)
{
    mdl_offer_archive_t *archive = apr_pcalloc(p, sizeof *archive);

    archive->assignment = assignment;
    archive->entitlement = archive_entitlement(assignment);
    archive->size = size;
    for (int i = 0; i < assignment->files->nelts; i++) {
        if (assignment_file_at(assignment, i)->status == MDL_ASSET_READY && archive->count++ == 0) {
            archive->title = assignment_file_at(assignment, i)->title;
        }
    }
    return archive;
}

static int asset_ids_compare(const void *a, const void *b)
{
    apr_int64_t left = *(const apr_int64_t *)a, right = *(const apr_int64_t *)b;

    return (left > right) - (left < right);
}

/* The product and the sorted ids of the files of the assignment that is gathered: equal for equal
   sets of files of one product. */
static const apr_array_header_t *archive_key(const gathering_t *gathering,
                                             const mdl_assignment_t *assignment)
{
    int count = assignment->files->nelts;
    apr_array_header_t *ids = apr_array_make(gathering->pool, count + 1, sizeof(apr_int64_t));

    APR_ARRAY_PUSH(ids, apr_int64_t) = gathering->product->position;
    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = assignment_file_at(assignment, i)->asset_id;
    }
    qsort((apr_int64_t *)ids->elts + 1, (size_t)count, sizeof(apr_int64_t), asset_ids_compare);
    return ids;
}

static void gather_archive(gathering_t *gathering, const mdl_assignment_t *assignment)
{
    apr_pool_t *p = gathering->pool;
    apr_int64_t size = mdl_offer_archive_size(assignment, p);
    const apr_array_header_t *ids;
    mdl_offer_archive_t *same;
    apr_ssize_t length;

    if (size == 0) {
        return;
    }
    ids = archive_key(gathering, assignment);
    length = ids->nelts * ids->elt_size;
    if ((same = apr_hash_get(gathering->archives, ids->elts, length)) == NULL) {
        same = archive_make(assignment, size, p);
        APR_ARRAY_PUSH(gathering->offer->archives, mdl_offer_archive_t *) = same;
        APR_ARRAY_PUSH(gathering->product->archives, mdl_offer_archive_t *) = same;
        apr_hash_set(gathering->archives, ids->elts, length, same);
    } else if (same->entitlement != MDL_ENTITLEMENT_OK) {
        mdl_offer_archive_t *other = archive_make(assignment, size, p);

        *same = other->entitlement == MDL_ENTITLEMENT_EXHAUSTED ? *same : *other;
    }
}

/* Two items of a product are the same to its buyer, unless their titles tell them apart. */
static int is_same_product(const mdl_assignment_t *one, const mdl_assignment_t *other)
{
    return one == other || (strcmp(one->storefront_product_id, other->storefront_product_id) == 0 &&
                            strcmp(one->title, other->title) == 0);
}

static void mark_whole(const mdl_offer_t *offer, const mdl_order_t *order, apr_time_t now,
                       apr_pool_t *p)
{
    for (int i = 0; i < offer->archives->nelts; i++) {
        mdl_offer_archive_t *archive = APR_ARRAY_IDX(offer->archives, i, mdl_offer_archive_t *);

        archive->is_all = 1;
        for (int j = 0; j < order->assignments->nelts && archive->is_all; j++) {
            const mdl_assignment_t *assignment = assignment_at(order, j);

            archive->is_all = archive->assignment == assignment ||
                              !is_same_product(archive->assignment, assignment) ||
                              !mdl_assignment_open(assignment, now) ||
                              has_files_of(archive->assignment, assignment, p);
        }
    }
}

/* --- the offer --- */

static void gather_file(gathering_t *gathering, const mdl_assignment_t *assignment,
                        const mdl_order_file_t *file)
{
    apr_time_t expires_at = assignment->expires_at;
    apr_int64_t key[] = {gathering->product->position, file->asset_id, minute_of(expires_at)};
    mdl_offer_file_t *offered = apr_hash_get(gathering->files, key, sizeof key);
    apr_pool_t *p = gathering->pool;

    if (offered == NULL) {
        offered = apr_palloc(p, sizeof *offered);
        *offered = (mdl_offer_file_t){.file = file,
                                      .entitlement = file_entitlement(file),
                                      .product = gathering->product->title,
                                      .expires_at = expires_at,
                                      .left = file_left(file),
                                      .total = file->download_limit};
        APR_ARRAY_PUSH(gathering->offer->files, mdl_offer_file_t *) = offered;
        APR_ARRAY_PUSH(gathering->product->files, mdl_offer_file_t *) = offered;
        apr_hash_set(gathering->files, apr_pmemdup(p, key, sizeof key), sizeof key, offered);
        return;
    }
    if (offered->total == 0) {
        return;
    }
    if (file->download_limit == 0 || file_left(file) > file_left(offered->file) ||
        (file_entitlement(file) == MDL_ENTITLEMENT_RUNNING &&
         offered->entitlement == MDL_ENTITLEMENT_EXHAUSTED)) {
        offered->file = file;
        offered->entitlement = file_entitlement(file);
    }
    offered->left += file_left(file);
    offered->total = file->download_limit == 0 ? 0 : offered->total + file->download_limit;
}

static void gather_link(gathering_t *gathering, const mdl_order_link_t *link, apr_time_t expires_at)
{
    apr_int64_t key[] = {gathering->product->position, link->link_id};
    mdl_offer_link_t *offered = apr_hash_get(gathering->links, key, sizeof key);
    apr_pool_t *p = gathering->pool;

    if (offered == NULL) {
        offered = apr_palloc(p, sizeof *offered);
        *offered = (mdl_offer_link_t){link, gathering->product->title, expires_at};
        APR_ARRAY_PUSH(gathering->offer->links, mdl_offer_link_t *) = offered;
        APR_ARRAY_PUSH(gathering->product->links, mdl_offer_link_t *) = offered;
        apr_hash_set(gathering->links, apr_pmemdup(p, key, sizeof key), sizeof key, offered);
    } else if (offered->expires_at != 0 && (expires_at == 0 || expires_at > offered->expires_at)) {
        offered->expires_at = expires_at;
    }
}

/* Whether a mapping's note is new to a product, or to -1, the offer. */
static int note_is_new(gathering_t *gathering, apr_int64_t product_id, apr_int64_t mapping_id)
{
    apr_int64_t key[] = {product_id, mapping_id};

    if (apr_hash_get(gathering->notes, key, sizeof key) != NULL) {
        return 0;
    }
    apr_hash_set(gathering->notes, apr_pmemdup(gathering->pool, key, sizeof key), sizeof key, "");
    return 1;
}

static void gather_note(gathering_t *gathering, const mdl_assignment_t *assignment)
{
    mdl_offer_product_t *product = gathering->product;

    if (assignment->note == NULL) {
        return;
    }
    if (note_is_new(gathering, gathering->product->position, assignment->mapping_id)) {
        APR_ARRAY_PUSH(product->notes, const char *) = assignment->note;
    }
    if (note_is_new(gathering, -1, assignment->mapping_id)) {
        APR_ARRAY_PUSH(gathering->offer->notes,
                       mdl_offer_note_t) = (mdl_offer_note_t){product->title, assignment->note};
    }
}

static void gather_license_keys(gathering_t *gathering, const mdl_assignment_t *assignment)
{
    mdl_offer_t *offer = gathering->offer;
    mdl_offer_product_t *product = gathering->product;

    for (int i = 0; i < assignment->license_keys->nelts; i++) {
        APR_ARRAY_PUSH(product->license_keys, int) = offer->license_keys->nelts + i;
        APR_ARRAY_PUSH(offer->key_products, const char *) = product->title;
    }
    apr_array_cat(offer->license_keys, assignment->license_keys);
    product->license_keys_pending += assignment->license_keys_pending;
    offer->license_keys_pending += assignment->license_keys_pending;
}

static mdl_offer_product_t *product_make(const mdl_assignment_t *assignment, apr_pool_t *p)
{
    mdl_offer_product_t *product = apr_pcalloc(p, sizeof *product);

    product->expires_at = assignment->expires_at;
    product->title = mdl_product_given_title(assignment->title, assignment->storefront_product_id,
                                             p);
    product->notes = apr_array_make(p, 1, sizeof(const char *));
    product->files = apr_array_make(p, 4, sizeof(mdl_offer_file_t *));
    product->archives = apr_array_make(p, 1, sizeof(mdl_offer_archive_t *));
    product->links = apr_array_make(p, 1, sizeof(mdl_offer_link_t *));
    product->license_keys = apr_array_make(p, 1, sizeof(int));
    return product;
}

/* Sets the product of an assignment.  A title has no line end. */
static void gather_product(gathering_t *gathering, const mdl_assignment_t *assignment)
{
    apr_array_header_t *products = gathering->offer->products;
    const char *key = apr_pstrcat(gathering->pool, assignment->title, "\n",
                                  assignment->storefront_product_id, NULL);
    mdl_offer_product_t *product = apr_hash_get(gathering->products, key, APR_HASH_KEY_STRING);

    if (product == NULL) {
        product = product_make(assignment, gathering->pool);
        product->position = products->nelts;
        APR_ARRAY_PUSH(products, mdl_offer_product_t *) = product;
        apr_hash_set(gathering->products, key, APR_HASH_KEY_STRING, product);
    }
    gathering->product = product;
}

static void gather_assignment(gathering_t *gathering, const mdl_assignment_t *assignment)
{
    mdl_offer_t *offer = gathering->offer;

    if (offer->products->nelts == 0) {
        offer->expires_at = assignment->expires_at;
    }
    gather_product(gathering, assignment);
    gathering->product->ends_differ |= minute_of(assignment->expires_at) !=
                                       minute_of(gathering->product->expires_at);
    offer->ends_differ |= minute_of(assignment->expires_at) != minute_of(offer->expires_at);
    for (int i = 0; i < assignment->files->nelts; i++) {
        gather_file(gathering, assignment, assignment_file_at(assignment, i));
    }
    for (int i = 0; i < assignment->links->nelts; i++) {
        gather_link(gathering, APR_ARRAY_IDX(assignment->links, i, const mdl_order_link_t *),
                    assignment->expires_at);
    }
    gather_license_keys(gathering, assignment);
    gather_note(gathering, assignment);
    gather_archive(gathering, assignment);
}

const mdl_offer_t *mdl_offer_make(const mdl_order_t *order, apr_time_t now, apr_pool_t *p)
{
    mdl_offer_t *offer = apr_pcalloc(p, sizeof *offer);
    gathering_t gathering = {.offer = offer,
                             .products = apr_hash_make(p),
                             .files = apr_hash_make(p),
                             .links = apr_hash_make(p),
                             .archives = apr_hash_make(p),
                             .notes = apr_hash_make(p),
                             .pool = p};

    offer->products = apr_array_make(p, 4, sizeof(mdl_offer_product_t *));
    offer->files = apr_array_make(p, 8, sizeof(mdl_offer_file_t *));
    offer->archives = apr_array_make(p, 2, sizeof(mdl_offer_archive_t *));
    offer->links = apr_array_make(p, 2, sizeof(mdl_offer_link_t *));
    offer->license_keys = apr_array_make(p, 2, sizeof(mdl_license_key_t));
    offer->key_products = apr_array_make(p, 2, sizeof(const char *));
    offer->notes = apr_array_make(p, 2, sizeof(mdl_offer_note_t));
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = assignment_at(order, i);
        mdl_entitlement_t entitlement = mdl_assignment_entitlement(assignment, now);

        if (entitlement == MDL_ENTITLEMENT_OK) {
            gather_assignment(&gathering, assignment);
        } else if (entitlement == MDL_ENTITLEMENT_EXPIRED &&
                   assignment->expires_at > offer->expired_at) {
            offer->expired_at = assignment->expires_at;
        }
    }
    mark_whole(offer, order, now, p);
    return offer;
}

int mdl_offer_is_empty(const mdl_offer_t *offer)
{
    return offer->files->nelts == 0 && offer->links->nelts == 0 &&
           offer->license_keys->nelts == 0 && offer->license_keys_pending == 0;
}

/* --- what a customer asks for --- */

/* The assignment need not be open. */
static mdl_entitlement_t entitlement_to_file(const mdl_assignment_t *assignment,
                                             const mdl_order_file_t *file, apr_time_t now)
{
    mdl_entitlement_t entitlement = mdl_assignment_entitlement(assignment, now);

    return entitlement == MDL_ENTITLEMENT_OK ? file_entitlement(file) : entitlement;
}

static const mdl_order_file_t *find_open_file(const mdl_order_t *order, const mdl_assignment_t *of,
                                              apr_int64_t asset_id, apr_time_t now)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = assignment_at(order, i);

        for (int j = 0; j < assignment->files->nelts && is_same_product(of, assignment); j++) {
            const mdl_order_file_t *file = assignment_file_at(assignment, j);

            if (file->asset_id == asset_id &&
                entitlement_to_file(assignment, file, now) == MDL_ENTITLEMENT_OK) {
                return file;
            }
        }
    }
    return NULL;
}

/* Finds a file by mdl_offer_file_id; NULL: the order has no such file. */
static const mdl_order_file_t *find_file(const mdl_order_t *order, const char *id,
                                         const mdl_assignment_t **of, apr_pool_t *p)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        *of = assignment_at(order, i);
        for (int j = 0; j < (*of)->files->nelts; j++) {
            if (strcmp(mdl_offer_file_id(assignment_file_at(*of, j), p), id) == 0) {
                return assignment_file_at(*of, j);
            }
        }
    }
    return NULL;
}

mdl_entitlement_t mdl_offer_choose_file(const mdl_order_t *order, const char *id, apr_time_t now,
                                        const mdl_order_file_t **file, apr_pool_t *p)
{
    const mdl_assignment_t *assignment;
    const mdl_order_file_t *other;
    mdl_entitlement_t entitlement;

    if ((*file = find_file(order, id, &assignment, p)) == NULL) {
        return MDL_ENTITLEMENT_GONE;
    }
    entitlement = entitlement_to_file(assignment, *file, now);
    if (entitlement != MDL_ENTITLEMENT_OK &&
        (other = find_open_file(order, assignment, (*file)->asset_id, now)) != NULL) {
        *file = other;
        return MDL_ENTITLEMENT_OK;
    }
    return entitlement;
}

static mdl_entitlement_t entitlement_to_archive(const mdl_assignment_t *assignment, apr_time_t now,
                                                apr_pool_t *p)
{
    mdl_entitlement_t entitlement = mdl_assignment_entitlement(assignment, now);

    if (entitlement == MDL_ENTITLEMENT_OK && mdl_offer_archive_size(assignment, p) == 0) {
        return MDL_ENTITLEMENT_NOT_READY;
    }
    return entitlement == MDL_ENTITLEMENT_OK ? archive_entitlement(assignment) : entitlement;
}

static const mdl_assignment_t *find_assignment(const mdl_order_t *order, const char *id,
                                               apr_pool_t *p)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = assignment_at(order, i);

        if (strcmp(apr_psprintf(p, "%" APR_INT64_T_FMT, assignment->id), id) == 0) {
            return assignment;
        }
    }
    return NULL;
}

mdl_entitlement_t mdl_offer_choose_archive(const mdl_order_t *order, const char *id, apr_time_t now,
                                           const mdl_assignment_t **assignment, apr_pool_t *p)
{
    const mdl_assignment_t *named = find_assignment(order, id, p);
    mdl_entitlement_t entitlement;

    if ((*assignment = named) == NULL) {
        return MDL_ENTITLEMENT_GONE;
    }
    entitlement = entitlement_to_archive(named, now, p);
    for (int i = 0; entitlement != MDL_ENTITLEMENT_OK && i < order->assignments->nelts; i++) {
        *assignment = assignment_at(order, i);
        if (is_same_product(*assignment, named) && has_same_files(*assignment, named, p) &&
            entitlement_to_archive(*assignment, now, p) == MDL_ENTITLEMENT_OK) {
            return MDL_ENTITLEMENT_OK;
        }
    }
    return entitlement;
}

mdl_entitlement_t mdl_offer_choose_link(const mdl_order_t *order, apr_int64_t link_id,
                                        apr_time_t now, const mdl_order_link_t **link)
{
    mdl_entitlement_t entitlement = MDL_ENTITLEMENT_GONE;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = assignment_at(order, i);

        for (int j = 0; j < assignment->links->nelts; j++) {
            *link = APR_ARRAY_IDX(assignment->links, j, const mdl_order_link_t *);
            if ((*link)->link_id != link_id) {
                continue;
            }
            entitlement = mdl_assignment_entitlement(assignment, now);
            if (entitlement == MDL_ENTITLEMENT_OK) {
                return entitlement;
            }
        }
    }
    return entitlement;
}
