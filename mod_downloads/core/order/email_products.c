#include "core/order/email_products.h"

#include <apr_hash.h>

#include "base/text/present.h"
#include "core/catalog/product.h"
#include "core/download/signed_url.h"

/* An email under construction. */
typedef struct {
    const mdl_order_t *order;
    const mdl_secret_t *secret;
    const char *public_url;
    apr_array_header_t *open; /* const mdl_assignment_t * */
    apr_hash_t *noted;        /* assignments by mapping: variants of one share its note */
    int ends_differ;
    int lines_left; /* of files */
    int waiting;    /* later products with files */
    apr_int64_t unseen;
    apr_pool_t *p;
} draft_t;

static const mdl_assignment_t *open_at(const draft_t *draft, int i)
{
    return APR_ARRAY_IDX(draft->open, i, const mdl_assignment_t *);
}

static apr_int64_t minute_of(apr_time_t when)
{
    return when / apr_time_from_sec(60);
}

static void draft_open(draft_t *draft, apr_time_t now)
{
    draft->open = apr_array_make(draft->p, 4, sizeof(const mdl_assignment_t *));
    for (int i = 0; !draft->order->undeclared && i < draft->order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(draft->order->assignments, i,
                                                           const mdl_assignment_t *);

        if (mdl_assignment_open(assignment, now)) {
            APR_ARRAY_PUSH(draft->open, const mdl_assignment_t *) = assignment;
            draft->waiting += assignment->files->nelts > 0;
            draft->ends_differ |= minute_of(assignment->expires_at) !=
                                  minute_of(open_at(draft, 0)->expires_at);
        }
    }
}

static void add_count(mdl_json_t *to, const char *name, apr_int64_t count)
{
    if (count > 0) {
        mdl_json_add_int(mdl_json_add_object(to, name), "count", count);
    } else {
        mdl_json_add_null(to, name);
    }
}

static void add_file(mdl_json_t *files, const mdl_order_file_t *file)
{
    mdl_json_t *object = mdl_json_add_object(files, NULL);

    mdl_json_add_string(object, "title", file->title);
    if (file->sha256 != NULL) {
        mdl_present_size(object, "size", file->size);
    }
    mdl_json_add_bool(object, "preparing",
                      file->status != MDL_ASSET_READY && file->status != MDL_ASSET_FAILED);
    mdl_json_add_bool(object, "failed", file->status == MDL_ASSET_FAILED);
}

/* Returns the number of lines. */
static int add_files(draft_t *draft, mdl_json_t *product, const mdl_assignment_t *assignment)
{
    mdl_json_t *files = mdl_json_add_array(product, "files");
    int all = assignment->files->nelts, lines;

    draft->waiting -= all > 0;
    lines = draft->lines_left - draft->waiting;
    lines = lines > 1 ? lines : draft->lines_left > 0;
    lines = lines < all ? lines : all;
    for (int i = 0; i < lines; i++) {
        add_file(files, APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *));
    }
    draft->lines_left -= lines;
    mdl_json_add_bool(product, "has_files", all > 0);
    add_count(product, "more_files", all - lines);
    return lines;
}

static void add_links(const draft_t *draft, mdl_json_t *product, const mdl_assignment_t *assignment)
{
    mdl_json_t *links = mdl_json_add_array(product, "links");

    for (int i = 0; i < assignment->links->nelts; i++) {
        const mdl_order_link_t *link = APR_ARRAY_IDX(assignment->links, i,
                                                     const mdl_order_link_t *);
        mdl_json_t *object = mdl_json_add_object(links, NULL);

        mdl_json_add_string(object, "title", link->title);
        mdl_json_add_string(object, "url",
                            mdl_signed_url_link(draft->secret, draft->public_url,
                                                draft->order->page_id, link->link_id, draft->p));
    }
    mdl_json_add_bool(product, "has_links", assignment->links->nelts > 0);
}

/* Keys that can't be opened count as pending, like keys that the stock lacks.  Returns the number
   of both. */
static apr_int64_t add_license_keys(const draft_t *draft, mdl_json_t *product,
                                    const mdl_assignment_t *assignment)
{
    const apr_array_header_t *opened = mdl_license_keys_open(draft->secret,
                                                             assignment->license_keys, draft->p);
    mdl_json_t *keys = mdl_json_add_array(product, "license_keys");
    int shown = opened != NULL ? opened->nelts : 0;
    apr_int64_t all = assignment->license_keys_pending + assignment->license_keys->nelts;

    for (int i = 0; i < shown; i++) {
        mdl_json_add_string(mdl_json_add_object(keys, NULL), "license_key",
                            APR_ARRAY_IDX(opened, i, const char *));
    }
    mdl_json_add_bool(product, "has_license_keys", all > 0);
    add_count(product, "pending", all - shown);
    mdl_json_add_bool(mdl_json_member(product, "pending"), "more", shown > 0);
    return all;
}

static int add_note(const draft_t *draft, mdl_json_t *product, const mdl_assignment_t *assignment)
{
    const apr_int64_t *mapping = &assignment->mapping_id;

    if (assignment->note == NULL || apr_hash_get(draft->noted, mapping, sizeof *mapping) != NULL) {
        return 0;
    }
    apr_hash_set(draft->noted, mapping, sizeof *mapping, assignment);
    mdl_product_json_note(mdl_json_add_object(product, "note"), "lines", assignment->note,
                          draft->p);
    return 1;
}

static void add_product(draft_t *draft, mdl_json_t *products, const mdl_assignment_t *assignment)
{
    mdl_json_t *product = mdl_json_object(draft->p);
    apr_int64_t said;

    mdl_json_add_string(
        product, "title",
        mdl_product_given_title(assignment->title, assignment->storefront_product_id, draft->p));
    said = add_note(draft, product, assignment);
    said += add_license_keys(draft, product, assignment);
    said += add_files(draft, product, assignment);
    add_links(draft, product, assignment);
    said += assignment->links->nelts;
    mdl_present_date(product, "expires", draft->ends_differ ? assignment->expires_at : 0);
    if (said > 0) {
        mdl_json_add_copy(products, NULL, product);
    } else {
        draft->unseen += assignment->files->nelts;
    }
}

static void add_states(const draft_t *draft, mdl_json_t *data)
{
    apr_int64_t files = 0, preparing = 0, failed = 0, others = 0;
    mdl_json_t *object;

    for (int i = 0; i < draft->open->nelts; i++) {
        const mdl_assignment_t *assignment = open_at(draft, i);

        for (int j = 0; j < assignment->files->nelts; j++) {
            mdl_asset_status_t status =
                APR_ARRAY_IDX(assignment->files, j, const mdl_order_file_t *)->status;

            failed += status == MDL_ASSET_FAILED;
            preparing += status != MDL_ASSET_FAILED && status != MDL_ASSET_READY;
        }
        files += assignment->files->nelts;
        others += assignment->links->nelts + assignment->license_keys->nelts +
                  assignment->license_keys_pending;
    }
    mdl_json_add_bool(data, "complete", files + others > 0 && preparing + failed == 0);
    if (preparing > 0) {
        object = mdl_json_add_object(data, "in_preparation");
        mdl_json_add_int(object, "count", preparing);
        mdl_json_add_bool(object, "all", preparing == files);
    }
}

void mdl_email_products(mdl_json_t *data, const mdl_order_t *order, apr_time_t now,
                        const mdl_secret_t *secret, const char *public_url, apr_pool_t *p)
{
    mdl_json_t *products = mdl_json_add_array(data, "products");
    draft_t draft = {.order = order,
                     .secret = secret,
                     .public_url = public_url,
                     .noted = apr_hash_make(p),
                     .lines_left = MDL_EMAIL_FILES_MAX,
                     .p = p};

    draft_open(&draft, now);
    for (int i = 0; i < draft.open->nelts; i++) {
        add_product(&draft, products, open_at(&draft, i));
    }
    add_count(data, "more_files", draft.unseen);
    mdl_present_date(data, "expires",
                     draft.ends_differ || draft.open->nelts == 0 ? 0
                                                                 : open_at(&draft, 0)->expires_at);
    add_states(&draft, data);
}
