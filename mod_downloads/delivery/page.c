#include "delivery/page.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>
#include <http_protocol.h>
#include <util_script.h>

#include "base/text/json.h"
#include "base/text/present.h"
#include "core/download/archive.h"
#include "core/download/signed_url.h"
#include "core/order/offer.h"
#include "delivery/customer.h"
#include "delivery/view.h"
#include "request_body.h"

#define FORM_TYPE       "application/x-www-form-urlencoded"
#define FORM_MAX_LENGTH 4096
#define FORM_MAX_FIELDS 16
#define REFRESH_AFTER   "10" /* seconds */

typedef struct {
    request_rec *r;
    const mdl_service_t *service;
    const char *token;
    mdl_order_t *order;
    mdl_entitlement_t access;
    apr_time_t now;
} page_t;

static const mdl_assignment_t *page_assignment_at(const page_t *page, int i)
{
    return APR_ARRAY_IDX(page->order->assignments, i, const mdl_assignment_t *);
}

static mdl_entitlement_t verdict_at(const page_t *page, int i)
{
    return mdl_assignment_entitlement(page_assignment_at(page, i), page->now);
}

static mdl_entitlement_t access_of(const page_t *page)
{
    mdl_entitlement_t access = mdl_entitlement_of_order(page->order->state.access);
    int all = page->order->assignments->nelts, shown = 0, expired = 0;

    for (int i = 0; i < all; i++) {
        shown += verdict_at(page, i) == MDL_ENTITLEMENT_OK;
        expired += verdict_at(page, i) == MDL_ENTITLEMENT_EXPIRED;
    }
    if (access != MDL_ENTITLEMENT_OK || shown > 0 || all == 0) {
        return access;
    }
    return expired > 0 ? MDL_ENTITLEMENT_EXPIRED : MDL_ENTITLEMENT_REVOKED;
}

/* When the last of what has expired did. */
static apr_time_t expired_at(const page_t *page)
{
    apr_time_t last = 0;

    for (int i = 0; i < page->order->assignments->nelts; i++) {
        if (verdict_at(page, i) == MDL_ENTITLEMENT_EXPIRED &&
            page_assignment_at(page, i)->expires_at > last) {
            last = page_assignment_at(page, i)->expires_at;
        }
    }
    return last;
}

static int is_ready(const mdl_order_file_t *file)
{
    return file->status == MDL_ASSET_READY;
}

static int has_exhausted(const mdl_assignment_t *assignment)
{
    for (int i = 0; i < assignment->files->nelts; i++) {
        if (mdl_offer_file_entitlement(APR_ARRAY_IDX(
                assignment->files, i, const mdl_order_file_t *)) == MDL_ENTITLEMENT_EXHAUSTED) {
            return 1;
        }
    }
    return 0;
}

/* Which file an archive begins with, and what it holds besides. */
static void add_contents(mdl_json_t *object, const mdl_assignment_t *assignment, int count)
{
    mdl_json_t *contents = mdl_json_add_object(object, "contents");

    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i,
                                                     const mdl_order_file_t *);

        if (is_ready(file)) {
            mdl_json_add_string(contents, "title", file->title);
            break;
        }
    }
    mdl_json_add_int(contents, "more", count - 1);
    mdl_json_add_bool(contents, "one", count == 2);
}

typedef struct {
    const mdl_assignment_t *assignment;
    apr_int64_t size;
} archive_t;

static void add_archive(mdl_json_t *archives, const archive_t *archive, int is_all)
{
    const mdl_assignment_t *assignment = archive->assignment;
    mdl_json_t *object = mdl_json_add_object(archives, NULL);
    int count = 0;

    for (int i = 0; i < assignment->files->nelts; i++) {
        count += is_ready(APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *));
    }
    mdl_json_add_int(object, "id", assignment->id);
    mdl_json_add_int(object, "count", count);
    mdl_present_size(object, "size", archive->size);
    mdl_json_add_bool(object, "ready", !has_exhausted(assignment));
    mdl_json_add_bool(object, "exhausted", has_exhausted(assignment));
    if (is_all) {
        mdl_json_add_null(object, "contents");
    } else {
        add_contents(object, assignment, count);
    }
}

/* Whether an assignment has every file of another. */
static int has_files_of(const mdl_assignment_t *assignment, const mdl_assignment_t *other,
                        apr_pool_t *p)
{
    apr_pool_t *scratch;
    apr_hash_t *ids;
    int has_all = 1;

    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_page_files");
    ids = apr_hash_make(scratch);
    for (int i = 0; i < assignment->files->nelts; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, i,
                                                     const mdl_order_file_t *);

        apr_hash_set(ids, &file->asset_id, sizeof file->asset_id, file);
    }
    for (int i = 0; i < other->files->nelts && has_all; i++) {
        const mdl_order_file_t *file = APR_ARRAY_IDX(other->files, i, const mdl_order_file_t *);

        has_all = apr_hash_get(ids, &file->asset_id, sizeof file->asset_id) != NULL;
    }
    apr_pool_destroy(scratch);
    return has_all;
}

static int same_files(const mdl_assignment_t *assignment, const mdl_assignment_t *other,
                      apr_pool_t *p)
{
    return assignment->files->nelts == other->files->nelts && has_files_of(assignment, other, p);
}

/* Whether no other purchase has files that are not in it. */
static int is_all(const page_t *page, const mdl_assignment_t *archived)
{
    for (int i = 0; i < page->order->assignments->nelts; i++) {
        if (verdict_at(page, i) == MDL_ENTITLEMENT_OK &&
            !has_files_of(archived, page_assignment_at(page, i), page->r->pool)) {
            return 0;
        }
    }
    return 1;
}

/* The same archive of several purchases is there once, of one that has downloads left. */
static void take_archive(apr_array_header_t *found, const archive_t *archive, apr_pool_t *p)
{
    for (int i = 0; i < found->nelts; i++) {
        archive_t *other = &APR_ARRAY_IDX(found, i, archive_t);

        if (same_files(other->assignment, archive->assignment, p)) {
            if (has_exhausted(other->assignment)) {
                *other = *archive;
            }
            return;
        }
    }
    APR_ARRAY_PUSH(found, archive_t) = *archive;
}

static void add_archives(mdl_json_t *data, const page_t *page)
{
    mdl_json_t *archives = mdl_json_add_array(data, "archives");
    apr_pool_t *p = page->r->pool;
    apr_array_header_t *found = apr_array_make(p, 2, sizeof(archive_t));

    for (int i = 0; i < page->order->assignments->nelts; i++) {
        archive_t archive = {.assignment = page_assignment_at(page, i)};

        if (verdict_at(page, i) == MDL_ENTITLEMENT_OK &&
            (archive.size = mdl_offer_archive_size(archive.assignment, p)) > 0) {
            take_archive(found, &archive, p);
        }
    }
    for (int i = 0; i < found->nelts; i++) {
        const archive_t *archive = &APR_ARRAY_IDX(found, i, archive_t);

        add_archive(archives, archive, is_all(page, archive->assignment));
    }
}

static void add_content(mdl_json_t *data, const page_t *page)
{
    int something = mdl_offer_add(data, page->order, page->service->secret,
                                  page->service->settings->public_url, page->now, page->r->pool);
    int preparing = mdl_json_type(mdl_json_member(data, "in_preparation")) == MDL_JSON_OBJECT;

    add_archives(data, page);
    mdl_present_date(data, "ended", expired_at(page));
    mdl_json_add_bool(data, "empty", !something);
    mdl_json_add_bool(data, "refreshes", preparing);
    if (preparing) {
        apr_table_setn(page->r->headers_out, "Refresh", REFRESH_AFTER);
    }
}

static int page_show(const page_t *page, int status)
{
    request_rec *r = page->r;
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, page->r->pool);
    mdl_json_t *data = mdl_json_object(r->pool);

    mdl_json_add_bool(data, "active", page->access == MDL_ENTITLEMENT_OK);
    for (mdl_entitlement_t verdict = MDL_ENTITLEMENT_HELD; verdict <= MDL_ENTITLEMENT_EXPIRED;
         verdict++) {
        mdl_json_add_bool(data, mdl_entitlement_names[verdict], page->access == verdict);
    }
    mdl_json_add_string(data, "reason", customer.reason);
    mdl_json_add_string(data, "action",
                        apr_pstrcat(r->pool, mdl_view_public_path(), "/o/", page->token, NULL));
    if (page->access == MDL_ENTITLEMENT_OK) {
        add_content(data, page);
    } else {
        mdl_present_date(data, "expires", expired_at(page));
    }
    return mdl_view_page(r, status, &customer, data);
}

static apr_status_t order_find_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_order_find(db, p, arg);
}

/* Fills the page's order, APR_ENOENT when the token leads to none. */
static apr_status_t page_find(page_t *page)
{
    const char *page_id = mdl_signed_url_page_id(page->service->secret, page->token, page->r->pool);
    apr_status_t rv = page_id != NULL ? mdl_customer_order(page->r, page->service, page_id,
                                                           order_find_effect, &page->order)
                                      : APR_ENOENT;

    if (rv == APR_SUCCESS) {
        page->now = apr_time_now();
        page->access = access_of(page);
    }
    return rv;
}

static int page_not_found(request_rec *r, apr_status_t rv)
{
    return rv == APR_ENOENT ? mdl_view_message(r, HTTP_NOT_FOUND, "page_not_found", NULL)
                            : mdl_view_failure(r, rv);
}

static int page_say(const page_t *page, int status, const char *state)
{
    mdl_view_customer_t customer = mdl_customer_view(page->service, page->order, page->r->pool);

    return mdl_view_message(page->r, status, state, &customer);
}

int mdl_page_show(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_find(&page);

    return rv == APR_SUCCESS ? page_show(&page, HTTP_OK) : page_not_found(r, rv);
}

int mdl_page_wrong_method(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    apr_status_t rv = page_find(&page);

    return rv == APR_SUCCESS ? page_say(&page, HTTP_METHOD_NOT_ALLOWED, "wrong_method")
                             : page_not_found(r, rv);
}

/* Checked before it is read: httpd's reader takes in all of a body, however long it is. */
static int check_form(request_rec *r)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");
    apr_off_t length = mdl_request_body_length(r);

    if (type == NULL || strncasecmp(type, FORM_TYPE, strlen(FORM_TYPE)) != 0 ||
        strchr("; \t", type[strlen(FORM_TYPE)]) == NULL) {
        return HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    if (length < 0) {
        return HTTP_LENGTH_REQUIRED;
    }
    return length > FORM_MAX_LENGTH ? HTTP_REQUEST_ENTITY_TOO_LARGE : OK;
}

/* Reads the field "file" or "zip"; anything but OK is the status of the answer. */
static int read_form(request_rec *r, int *is_archive, const char **id)
{
    apr_array_header_t *pairs;
    int status = check_form(r);

    if (status != OK ||
        (status = ap_parse_form_data(r, NULL, &pairs, FORM_MAX_FIELDS, FORM_MAX_LENGTH)) != OK) {
        return status;
    }
    for (int i = 0; i < pairs->nelts; i++) {
        const ap_form_pair_t *pair = &APR_ARRAY_IDX(pairs, i, ap_form_pair_t);
        apr_size_t length;
        char *value;

        *is_archive = strcmp(pair->name, "zip") == 0;
        if ((*is_archive || strcmp(pair->name, "file") == 0) &&
            apr_brigade_pflatten(pair->value, &value, &length, r->pool) == APR_SUCCESS) {
            *id = apr_pstrmemdup(r->pool, value, length);
            return OK;
        }
    }
    return HTTP_BAD_REQUEST;
}

/* The file of that id among all that the order has; *open is whether its assignment gives it now.
 */
static const mdl_order_file_t *file_of(const page_t *page, const char *id, int *open)
{
    for (int i = 0; i < page->order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = page_assignment_at(page, i);

        for (int j = 0; j < assignment->files->nelts; j++) {
            const mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, j,
                                                         const mdl_order_file_t *);

            if (strcmp(mdl_offer_file_id(file, page->r->pool), id) == 0) {
                *open = verdict_at(page, i) == MDL_ENTITLEMENT_OK;
                return file;
            }
        }
    }
    return NULL;
}

static int page_redirect(const page_t *page, const char *url)
{
    request_rec *r = page->r;

    apr_table_setn(r->headers_out, "Location", url);
    return page_say(page, HTTP_SEE_OTHER, "download_begins");
}

static mdl_signed_file_t link_to(const page_t *page, apr_int64_t assignment_id,
                                 apr_int64_t asset_id)
{
    apr_time_t lifetime = apr_time_sec(page->service->settings->link_lifetime);

    return (mdl_signed_file_t){.assignment_id = assignment_id,
                               .asset_id = asset_id,
                               .expires_at = apr_time_from_sec(apr_time_sec(page->now) + lifetime)};
}

static int not_in_order(const page_t *page)
{
    return page_say(page, HTTP_NOT_FOUND, "not_in_order");
}

/* What a download of a file is taken from: its own purchase or, where that has none left by now,
   another of the order that gives the file.  NULL: none does. */
static const mdl_order_file_t *file_to_take(const page_t *page, const mdl_order_file_t *file,
                                            int open)
{
    if (open && mdl_offer_file_entitlement(file) == MDL_ENTITLEMENT_OK) {
        return file;
    }
    for (int i = 0; i < page->order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = page_assignment_at(page, i);

        for (int j = 0; verdict_at(page, i) == MDL_ENTITLEMENT_OK && j < assignment->files->nelts;
             j++) {
            const mdl_order_file_t *other = APR_ARRAY_IDX(assignment->files, j,
                                                          const mdl_order_file_t *);

            if (other->asset_id == file->asset_id &&
                mdl_offer_file_entitlement(other) == MDL_ENTITLEMENT_OK) {
                return other;
            }
        }
    }
    return NULL;
}

static int press_file(const page_t *page, const char *id)
{
    int open;
    const mdl_order_file_t *file = file_of(page, id, &open), *taken;
    mdl_signed_file_t link;

    if (file == NULL) {
        return not_in_order(page);
    }
    taken = file_to_take(page, file, open);
    if (taken == NULL) {
        return page_show(page, open && mdl_offer_file_entitlement(file) != MDL_ENTITLEMENT_EXHAUSTED
                                   ? HTTP_CONFLICT
                                   : HTTP_FORBIDDEN);
    }
    link = link_to(page, taken->assignment_id, taken->asset_id);
    return page_redirect(page, mdl_signed_url_file(page->service->secret,
                                                   page->service->settings->public_url, &link,
                                                   taken->filename, page->r->pool));
}

/* The index of the purchase with that id; -1: there is none. */
static int purchase_of(const page_t *page, const char *id)
{
    for (int i = 0; i < page->order->assignments->nelts; i++) {
        if (strcmp(
                apr_psprintf(page->r->pool, "%" APR_INT64_T_FMT, page_assignment_at(page, i)->id),
                id) == 0) {
            return i;
        }
    }
    return -1;
}

static int has_archive(const page_t *page, int i)
{
    return verdict_at(page, i) == MDL_ENTITLEMENT_OK &&
           !has_exhausted(page_assignment_at(page, i)) &&
           mdl_offer_archive_size(page_assignment_at(page, i), page->r->pool) > 0;
}

/* As file_to_take does it for a file: an index, or -1. */
static int archive_to_take(const page_t *page, int purchase)
{
    if (has_archive(page, purchase)) {
        return purchase;
    }
    for (int i = 0; i < page->order->assignments->nelts; i++) {
        if (same_files(page_assignment_at(page, i), page_assignment_at(page, purchase),
                       page->r->pool) &&
            has_archive(page, i)) {
            return i;
        }
    }
    return -1;
}

static int press_archive(const page_t *page, const char *id)
{
    apr_pool_t *p = page->r->pool;
    int purchase = purchase_of(page, id), taken;
    mdl_signed_file_t link;

    if (purchase < 0) {
        return not_in_order(page);
    }
    taken = archive_to_take(page, purchase);
    if (taken < 0) {
        return page_show(page,
                         verdict_at(page, purchase) == MDL_ENTITLEMENT_OK &&
                                 mdl_offer_archive_size(page_assignment_at(page, purchase), p) == 0
                             ? HTTP_CONFLICT
                             : HTTP_FORBIDDEN);
    }
    link = link_to(page, page_assignment_at(page, taken)->id, 0);
    return page_redirect(
        page, mdl_signed_url_file(page->service->secret, page->service->settings->public_url, &link,
                                  mdl_archive_filename(page->order->storefront_order_id, p), p));
}

int mdl_page_press(request_rec *r, const mdl_service_t *service, const char *token)
{
    page_t page = {.r = r, .service = service, .token = token};
    const char *id;
    apr_status_t rv = page_find(&page);
    int status, is_archive;

    if (rv != APR_SUCCESS) {
        return page_not_found(r, rv);
    }
    if ((status = read_form(r, &is_archive, &id)) != OK) {
        return page_say(&page, status, "no_button");
    }
    if (page.access != MDL_ENTITLEMENT_OK) {
        return page_show(&page, HTTP_FORBIDDEN);
    }
    return is_archive ? press_archive(&page, id) : press_file(&page, id);
}
