#include "core/catalog/asset.h"

#include <string.h>
#include <strings.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/http/media_type.h"
#include "core/catalog/blob.h"
#include "core/catalog/category.h"
#include "core/catalog/version_news.h"
#include "core/catalog/references.h"
#include "core/ids.h"
#include "core/job.h"
#include "core/shop/event.h"
#include "core/shop/shop.h"
#include "core/version.h"
#include "core/search_word.h"

#define ANY_JOB        "~"                /* sorts after every id */
#define LAST_CHARACTER "\xf4\x8f\xbf\xbf" /* U+10FFFF: behind every text that begins alike */

const char *const mdl_asset_status_names[] = {[MDL_ASSET_PENDING] = "pending",
                                              [MDL_ASSET_READY] = "ready",
                                              [MDL_ASSET_FAILED] = "failed",
                                              NULL};

static mdl_asset_t *asset_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_asset_t *asset = apr_pcalloc(p, sizeof *asset);

    MDL_READ(row, asset, asset, id, filename, title, content_type, sha256, size, source_url,
             version, category_id, note, former_version, former_sha256, former_size, former_note,
             former_until, created_at, updated_at);
    asset->status = MDL_ENUM(row, asset, status, mdl_asset_status_names);
    return asset;
}

int mdl_asset_filename_valid(const char *name)
{
    return *name != '\0' && strlen(name) <= MDL_FILENAME_MAX && strpbrk(name, "/\\") == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static apr_status_t asset_not_found(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "asset_not_found", "There is no such asset.");
}

/* The words by which the file is found. */
static mdl_search_words_t asset_words(apr_int64_t shop_id, const mdl_asset_t *asset, apr_pool_t *p)
{
    mdl_search_words_t words = mdl_search_words(shop_id, p);

    mdl_search_add(&words, MDL_SEARCH_FILE, asset->id, asset->title, p);
    mdl_search_add(&words, MDL_SEARCH_FILE, asset->id, asset->filename, p);
    return words;
}

/* The words of an asset that has another name or title now. */
static apr_status_t asset_renew_words(mdl_db_t *db, apr_int64_t shop_id, const mdl_asset_t *asset,
                                      apr_pool_t *p)
{
    mdl_search_words_t words = asset_words(shop_id, asset, p);
    mdl_rows_t *had;
    apr_status_t rv = mdl_search_ask_words(db, MDL_SEARCH_FILE, asset->id, &had, p);

    return rv == APR_SUCCESS ? mdl_search_renew(db, &words, had, MDL_SEARCH_FILE, asset->id, p)
                             : rv;
}

apr_status_t mdl_asset_insert(mdl_db_t *db, apr_int64_t shop_id, mdl_asset_t *asset,
                              mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_search_words_t words;
    mdl_rows_t *row;
    apr_status_t rv = mdl_category_hold(db, shop_id, asset->category_id, problem, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    asset->status = MDL_ASSET_PENDING;
    asset->version = 1;
    asset->created_at = asset->updated_at = apr_time_now();
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(ASSET_INSERT, .shop_id = shop_id, .filename = asset->filename,
                                 .title = asset->title, .content_type = asset->content_type,
                                 .category_id = asset->category_id, .source_url = asset->source_url,
                                 .filename_guessed = asset->filename_guessed,
                                 .title_guessed = asset->title_guessed,
                                 .created_at = asset->created_at, .updated_at = asset->updated_at));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    asset->id = mdl_rows_int(row, 0);
    words = asset_words(shop_id, asset, p);
    return mdl_search_store(db, &words, p);
}

apr_status_t mdl_asset_find(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ASSET_BY_ID, .id = id, .shop_id = shop_id));

    if (rv == APR_SUCCESS) {
        *asset = asset_of_row(row, p);
    }
    return rv == APR_ENOENT ? asset_not_found(problem) : rv;
}

apr_status_t mdl_asset_find_all(mdl_db_t *db, apr_int64_t shop_id, const apr_array_header_t *ids,
                                apr_array_header_t **assets, apr_pool_t *p)
{
    apr_hash_t *by_id = apr_hash_make(p);
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(ASSETS_BY_ID, .shop_id = shop_id, .ids = ids));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_asset_t *asset = asset_of_row(rows, p);

        apr_hash_set(by_id, &asset->id, sizeof asset->id, asset);
    }
    *assets = apr_array_make(p, ids->nelts, sizeof(mdl_asset_t *));
    for (int i = 0; i < ids->nelts; i++) {
        mdl_asset_t *asset = apr_hash_get(by_id, &APR_ARRAY_IDX(ids, i, apr_int64_t),
                                          sizeof(apr_int64_t));

        if (asset != NULL) {
            APR_ARRAY_PUSH(*assets, mdl_asset_t *) = asset;
        }
    }
    return rv;
}

apr_status_t mdl_asset_lock(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, mdl_asset_t **asset,
                            mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ASSET_LOCK, .id = id, .shop_id = shop_id));

    if (rv == APR_SUCCESS) {
        return mdl_asset_find(db, shop_id, id, asset, problem, p);
    }
    return rv == APR_ENOENT ? asset_not_found(problem) : rv;
}

/* Selects by the filter that restricts most. */
static apr_status_t asset_select_list(mdl_db_t *db, const mdl_asset_list_t *list, mdl_rows_t **rows,
                                      apr_pool_t *p)
{
    apr_int64_t shop = list->page.shop_id;
    apr_int64_t before = list->page.before;
    apr_int64_t limit = list->page.limit;

    if (list->prefix != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(ASSET_LIST_OF_PREFIX, .shop_id = shop, .prefix = list->prefix,
                                   .prefix_end = apr_pstrcat(p, list->prefix, LAST_CHARACTER, NULL),
                                   .status = list->status, .category_id = list->category_id,
                                   .limit = limit));
    }
    if (list->sha256 != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(ASSET_LIST_OF_SHA256, .shop_id = shop, .sha256 = list->sha256,
                                   .before = before, .filename = list->filename,
                                   .category_id = list->category_id, .status = list->status,
                                   .limit = limit));
    }
    if (list->filename != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(ASSET_LIST_OF_FILENAME, .shop_id = shop,
                                   .filename = list->filename, .before = before,
                                   .category_id = list->category_id, .status = list->status,
                                   .limit = limit));
    }
    if (list->category_id != 0) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(ASSET_LIST_OF_CATEGORY, .shop_id = shop,
                                   .category_id = list->category_id, .before = before,
                                   .status = list->status, .limit = limit));
    }
    if (list->status != NULL) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(ASSET_LIST_OF_STATUS, .shop_id = shop, .status = list->status,
                                   .before = before, .limit = limit));
    }
    return mdl_db_select(db, rows, p,
                         MDL_Q(ASSET_LIST, .shop_id = shop, .before = before, .limit = limit));
}

apr_status_t mdl_asset_list(mdl_db_t *db, apr_pool_t *p, mdl_asset_list_t *list)
{
    mdl_list_page_t *page = &list->page;
    mdl_rows_t *rows;
    apr_status_t rv = asset_select_list(db, list, &rows, p);

    page->found = apr_array_make(p, page->limit, sizeof(mdl_asset_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_asset_t *) = asset_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_asset_get(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    mdl_asset_t *asset = NULL;
    apr_status_t rv = mdl_asset_find(db, ref->shop_id, ref->id, &asset, ref->problem, p);

    ref->entity = asset;
    return rv;
}

/* The same, and checks the caller's version. */
static apr_status_t asset_get_known(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = mdl_asset_get(db, p, ref);

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions, ((const mdl_asset_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

/* The same, and locks it. */
static apr_status_t asset_lock_ref(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    mdl_asset_t *asset = NULL;
    apr_status_t rv = mdl_asset_lock(db, ref->shop_id, ref->id, &asset, ref->problem, p);

    ref->entity = asset;
    return rv == APR_SUCCESS ? mdl_version_check(ref->versions, asset->updated_at, ref->problem)
                             : rv;
}

/* Locks the category before the asset, like the deletion of a category, to avoid a deadlock. */
apr_status_t mdl_asset_change(mdl_db_t *db, apr_pool_t *p, mdl_asset_change_t *change)
{
    mdl_entity_ref_t *ref = &change->ref;
    apr_status_t rv = asset_get_known(db, ref, p);

    if (rv != APR_SUCCESS || (change->filename == NULL && change->title == NULL &&
                              !change->set_content_type && !change->set_category)) {
        return rv;
    }
    if ((rv = mdl_category_hold(db, ref->shop_id, change->category_id, ref->problem, p)) !=
            APR_SUCCESS ||
        (rv = asset_lock_ref(db, ref, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(ASSET_CHANGE, .filename = change->filename, .title = change->title,
                           .set_content_type = change->set_content_type,
                           .content_type = change->content_type,
                           .set_category = change->set_category, .category_id = change->category_id,
                           .now = apr_time_now(), .id = ref->id));
    if (rv != APR_SUCCESS || (rv = mdl_asset_get(db, p, ref)) != APR_SUCCESS) {
        return rv;
    }
    return change->filename != NULL || change->title != NULL
               ? asset_renew_words(db, ref->shop_id, ref->entity, p)
               : APR_SUCCESS;
}

/* Locks jobs, then the asset, then its shop, as everywhere, to avoid deadlocks.  Cancels jobs again
   under the asset's lock, when no other can be queued. */
apr_status_t mdl_asset_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    static const mdl_reference_query_t references[] = {
        {MDL_Q_ASSET_MAPPINGS, MDL_REFERENCE_MAPPING},
        {MDL_Q_ASSET_PACKS, MDL_REFERENCE_PACK},
        {MDL_Q_ASSET_ORDERS, MDL_REFERENCE_ORDER},
        {MDL_Q_ASSET_PINNED_ORDERS, MDL_REFERENCE_ORDER}};
    mdl_shop_stored_t stored;
    const mdl_asset_t *asset;
    apr_status_t rv;

    if ((rv = asset_get_known(db, ref, p)) != APR_SUCCESS ||
        (rv = mdl_job_cancel_of_asset(db, ref->id, p)) != APR_SUCCESS ||
        (rv = asset_lock_ref(db, ref, p)) != APR_SUCCESS ||
        (rv = mdl_job_cancel_of_asset(db, ref->id, p)) != APR_SUCCESS ||
        (rv = mdl_references_check(db, ref, references, sizeof references / sizeof *references,
                                   "asset_in_use", "asset", p)) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(ASSET_DELETE, .now = apr_time_now(), .id = ref->id))) !=
            APR_SUCCESS ||
        (rv = mdl_search_remove(db, MDL_SEARCH_FILE, ref->id, p)) != APR_SUCCESS) {
        return rv;
    }
    asset = ref->entity;
    stored = (mdl_shop_stored_t){.files = asset->sha256 != NULL ? -1 : 0,
                                 .bytes = -asset->size,
                                 .former_bytes = -asset->former_size};
    if ((rv = mdl_shop_store(db, ref->shop_id, &stored, 0, p)) != APR_SUCCESS ||
        (rv = mdl_blob_release(db, asset->former_sha256, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_blob_release(db, asset->sha256, p);
}

typedef struct {
    apr_int64_t shop_id;
    apr_int64_t size;
    const char *sha256; /* NULL: none yet */
    int version;
    int has_version; /* new bytes are another version */
    const char *filename;
    int filename_guessed;
    const char *content_type; /* or NULL */
    const char *source_url;   /* or NULL */
    int former_version;       /* 0: no former bytes are kept */
    const char *former_sha256;
    apr_int64_t former_size;
    const char *former_source_url;
    const char *former_note;
    apr_time_t former_until;
    const char *note;
    const char *next_note; /* of the version that comes, like the next */
    int next_notify;
} asset_before_t;

apr_status_t mdl_asset_ask(mdl_db_t *db, apr_int64_t id, const char *job_id, mdl_rows_t **asked,
                           apr_pool_t *p)
{
    return mdl_db_select(
        db, asked, p, MDL_Q(ASSET_BEFORE, .job_id = job_id != NULL ? job_id : ANY_JOB, .id = id));
}

static apr_status_t asset_read_before(mdl_rows_t *row, asset_before_t *before)
{
    apr_status_t rv = mdl_rows_one(row);

    if (rv == APR_SUCCESS) {
        MDL_READ(row, asset_before, before, shop_id, size, has_version, sha256, version, filename,
                 filename_guessed, content_type, source_url, former_version, former_sha256,
                 former_size, former_source_url, former_note, former_until, note, next_note,
                 next_notify);
    }
    return rv;
}

/* Tells that an asset has these bytes now. */
static apr_status_t asset_notify(mdl_db_t *db, apr_int64_t shop_id, mdl_event_type_t type,
                                 const mdl_asset_t *asset, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = shop_id, .type = type};

    mdl_json_add_int(data, "asset_id", asset->id);
    mdl_json_add_int(data, "version", asset->version);
    mdl_json_add_int(data, "size", asset->size);
    mdl_json_add_string(data, "sha256", asset->sha256);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

static int is_html_type(const char *content_type)
{
    return content_type != NULL && (mdl_media_type_is(content_type, "text/html") ||
                                    mdl_media_type_is(content_type, "application/xhtml+xml"));
}

static int is_html_name(const char *filename)
{
    const char *extension = strrchr(filename, '.');

    return extension != NULL &&
           (strcasecmp(extension, ".html") == 0 || strcasecmp(extension, ".htm") == 0 ||
            strcasecmp(extension, ".xhtml") == 0);
}

/* Whether a source sent an HTML page instead of the file: share links and sign-in pages answer with
   HTML and 200. */
static int asset_is_page_unasked(const asset_before_t *before, const mdl_asset_bytes_t *bytes)
{
    const char *filename = before->filename_guessed && bytes->filename != NULL ? bytes->filename
                                                                               : before->filename;

    return bytes->source_url != NULL && is_html_type(bytes->content_type) &&
           !is_html_type(before->content_type) && !is_html_name(filename);
}

/* An import's source may have said the file's name. */
static apr_status_t asset_named(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ASSET_BY_ID, .id = id, .shop_id = shop_id));

    return rv == APR_SUCCESS ? asset_renew_words(db, shop_id, asset_of_row(row, p), p) : rv;
}

/* Whether the bytes of an asset become its former version, if there is room. */
static int asset_gets_others(const asset_before_t *before, const mdl_blob_t *blob)
{
    return before->sha256 != NULL && strcmp(before->sha256, blob->sha256) != 0;
}

/* Counts new bytes, and finds the former version that the asset has with them.  The present bytes
   are not kept where the quota has no room for all that the shop would store. */
static apr_status_t asset_make_room(mdl_db_t *db, const asset_before_t *before,
                                    const mdl_asset_bytes_t *bytes, asset_before_t *after,
                                    apr_pool_t *p)
{
    mdl_shop_stored_t more = {.files = before->sha256 == NULL,
                              .bytes = bytes->blob.size - before->size};
    apr_status_t rv;

    *after = *before;
    if (!asset_gets_others(before, &bytes->blob)) {
        return mdl_shop_store(db, before->shop_id, &more, bytes->quota, p);
    }
    more.former_bytes = before->size - before->former_size;
    rv = mdl_shop_store(db, before->shop_id, &more, bytes->quota, p);
    if (rv == APR_SUCCESS) {
        after->former_version = before->version;
        after->former_sha256 = before->sha256;
        after->former_size = before->size;
        after->former_source_url = before->source_url;
        after->former_note = before->note;
        after->former_until = apr_time_now() + MDL_ASSET_FORMER_KEPT;
        return APR_SUCCESS;
    }
    after->former_version = 0;
    after->former_size = after->former_until = 0;
    after->former_sha256 = after->former_source_url = after->former_note = NULL;
    more.former_bytes = -before->former_size;
    return APR_STATUS_IS_ENOSPC(rv) ? mdl_shop_store(db, before->shop_id, &more, bytes->quota, p)
                                    : rv;
}

/* Releases the bytes that an asset has no longer. */
static apr_status_t asset_release(mdl_db_t *db, const asset_before_t *before,
                                  const asset_before_t *after, const mdl_blob_t *blob,
                                  apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    if (asset_gets_others(before, blob)) {
        rv = mdl_blob_release(db, before->former_sha256, p);
        if (rv == APR_SUCCESS && after->former_sha256 == NULL) {
            rv = mdl_blob_release(db, before->sha256, p);
        }
    }
    return rv;
}

apr_status_t mdl_asset_ready(mdl_db_t *db, apr_int64_t id, mdl_asset_bytes_t *bytes, apr_pool_t *p)
{
    const mdl_blob_t *blob = &bytes->blob;
    mdl_rows_t *asked = bytes->asked;
    asset_before_t before = {0}, after = {0};
    int tells = 0;
    apr_status_t rv = asked == NULL ? mdl_asset_ask(db, id, bytes->job_id, &asked, p) : APR_SUCCESS;

    if (rv == APR_SUCCESS) {
        rv = asset_read_before(asked, &before);
    }
    if (rv == APR_SUCCESS && asset_is_page_unasked(&before, bytes)) {
        return APR_EMISMATCH;
    }
    if (rv == APR_SUCCESS) {
        tells = before.next_notify && before.has_version && asset_gets_others(&before, blob);
        rv = asset_make_room(db, &before, bytes, &after, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_blob_store(db, blob, &bytes->held, p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(
            db, NULL, p,
            MDL_Q(ASSET_READY, .sha256 = blob->sha256, .size = blob->size,
                  .content_type = bytes->content_type, .source_url = bytes->source_url,
                  .tells = tells, .has_version = before.has_version,
                  .former_version = after.former_version, .former_sha256 = after.former_sha256,
                  .former_size = after.former_size, .former_source_url = after.former_source_url,
                  .former_note = after.former_note, .former_until = after.former_until,
                  .filename = bytes->filename, .now = apr_time_now(), .id = id));
    }
    if (rv == APR_SUCCESS && tells) {
        rv = mdl_version_tell(db, before.shop_id, id, before.version + 1, p);
    }
    if (rv == APR_SUCCESS && before.filename_guessed && bytes->filename != NULL) {
        rv = asset_named(db, before.shop_id, id, p);
    }
    if (rv == APR_SUCCESS) {
        rv = asset_notify(db, before.shop_id,
                          before.sha256 == NULL ? MDL_EVENT_ASSET_READY
                                                : MDL_EVENT_ASSET_VERSION_ADDED,
                          &(mdl_asset_t){.id = id,
                                         .version = before.version + before.has_version,
                                         .size = blob->size,
                                         .sha256 = blob->sha256},
                          p);
    }
    return rv == APR_SUCCESS ? asset_release(db, &before, &after, blob, p) : rv;
}

apr_status_t mdl_asset_room(mdl_db_t *db, apr_int64_t id, apr_int64_t quota, apr_int64_t *room,
                            apr_pool_t *p)
{
    apr_int64_t left;
    asset_before_t before;
    mdl_rows_t *asked;
    apr_status_t rv;

    *room = -1;
    if (quota == 0) {
        return APR_SUCCESS;
    }
    if ((rv = mdl_asset_ask(db, id, NULL, &asked, p)) != APR_SUCCESS ||
        (rv = asset_read_before(asked, &before)) != APR_SUCCESS ||
        (rv = mdl_shop_room(db, before.shop_id, NULL, quota, &left, p)) != APR_SUCCESS) {
        return rv;
    }
    *room = before.size + left;
    return APR_SUCCESS;
}

apr_status_t mdl_asset_failed(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(ASSET_FAILED, .now = apr_time_now(), .id = id));
}

apr_status_t mdl_asset_retry(mdl_db_t *db, apr_int64_t id, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(ASSET_RETRY, .now = apr_time_now(), .id = id));
}

/* Two open jobs of an asset would race to set its bytes. */
static apr_status_t asset_check_not_waiting(mdl_db_t *db, const mdl_asset_t *asset,
                                            mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_job_t *open = NULL;
    apr_status_t rv = asset->status != MDL_ASSET_PENDING
                          ? mdl_job_open_of_asset(db, asset->id, NULL, &open, p)
                          : APR_SUCCESS;

    return rv == APR_SUCCESS && (asset->status == MDL_ASSET_PENDING || open != NULL)
               ? mdl_problem_set(problem, 409, "asset_not_ready",
                                 "The asset is waiting for the bytes of another job.")
               : rv;
}

apr_status_t mdl_asset_await_bytes(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = asset_lock_ref(db, ref, p);
    const mdl_asset_t *asset = ref->entity;

    if (rv == APR_SUCCESS) {
        rv = asset_check_not_waiting(db, asset, ref->problem, p);
    }
    if (rv != APR_SUCCESS || asset->status != MDL_ASSET_FAILED) {
        return rv;
    }
    rv = mdl_asset_retry(db, ref->id, p);
    return rv == APR_SUCCESS ? mdl_asset_get(db, p, ref) : rv;
}

apr_status_t mdl_asset_await_version(mdl_db_t *db, mdl_entity_ref_t *ref,
                                     const mdl_asset_news_t *news, apr_pool_t *p)
{
    apr_status_t rv = mdl_asset_await_bytes(db, ref, p);

    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p,
                                           MDL_Q(ASSET_NEXT, .note = news->note,
                                                 .notify = news->notify, .id = ref->id))
                             : rv;
}

apr_status_t mdl_asset_restore(mdl_db_t *db, apr_pool_t *p, mdl_asset_restore_t *restore)
{
    mdl_entity_ref_t *ref = &restore->ref;
    apr_status_t rv = mdl_asset_await_bytes(db, ref, p);
    const mdl_asset_t *asset = ref->entity;
    apr_time_t now = apr_time_now();
    apr_int64_t changed = 0;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (restore->version < 1 || restore->version > asset->version) {
        return mdl_problem_set(ref->problem, 404, "version_not_found",
                               "The asset has no such version.");
    }
    if (restore->version == asset->version) {
        return mdl_problem_set(ref->problem, 409, "version_current",
                               "This is the asset's present version.");
    }
    if (restore->version == asset->former_version) {
        const mdl_shop_stored_t more = {.bytes = asset->former_size - asset->size,
                                        .former_bytes = asset->size - asset->former_size};

        rv = mdl_shop_store(db, ref->shop_id, &more, more.bytes > 0 ? restore->quota : 0, p);
        if (APR_STATUS_IS_ENOSPC(rv)) {
            return mdl_problem_set(ref->problem, 422, "storage_quota_exceeded",
                                   "The version is larger than what is left of the shop's storage "
                                   "quota.");
        }
        rv = rv != APR_SUCCESS
                 ? rv
                 : mdl_db_exec(db, &changed, p,
                               MDL_Q(ASSET_RESTORE, .former_until = now + MDL_ASSET_FORMER_KEPT,
                                     .now = now, .id = ref->id));
    }
    if (rv == APR_SUCCESS && changed == 0) {
        return mdl_problem_set(ref->problem, 409, "version_not_kept",
                               "The bytes of this version are no longer kept.");
    }
    if (rv != APR_SUCCESS || (rv = mdl_asset_get(db, p, ref)) != APR_SUCCESS) {
        return rv;
    }
    return asset_notify(db, ref->shop_id, MDL_EVENT_ASSET_VERSION_ADDED, ref->entity, p);
}

apr_status_t mdl_asset_to_forget(mdl_db_t *db, apr_pool_t *p, mdl_asset_to_forget_t *find)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(ASSETS_TO_FORGET, .now = find->now, .limit = find->limit));

    find->found = apr_array_make(p, find->limit, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(find->found, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

apr_status_t mdl_asset_forget(mdl_db_t *db, apr_pool_t *p, mdl_asset_forget_t *forget)
{
    asset_before_t before = {0};
    mdl_shop_stored_t less = {0};
    mdl_rows_t *asked;
    apr_status_t rv = mdl_asset_ask(db, forget->id, NULL, &asked, p);

    if (rv == APR_SUCCESS) {
        rv = asset_read_before(asked, &before);
    }
    if (rv != APR_SUCCESS || before.former_version == 0 || before.former_until > forget->now) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    less.former_bytes = -before.former_size;
    if ((rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(ASSET_FORGET, .now = apr_time_now(), .id = forget->id))) !=
            APR_SUCCESS ||
        (rv = mdl_shop_store(db, before.shop_id, &less, 0, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_blob_release(db, before.former_sha256, p);
}
