#include "core/catalog/license.h"

#include <apr_time.h>

#include "base/text/utf8.h"
#include "core/catalog/references.h"
#include "core/catalog/license_pattern.h"
#include "core/catalog/license_seal.h"
#include "core/ids.h"
#include "core/shop/data_key.h"
#include "core/shop/event.h"
#include "core/shop/notice.h"
#include "core/shop/staff_email.h"
#include "core/version.h"

#define BATCH      500 /* keys in a statement */
#define WARN_AGAIN apr_time_from_sec(86400)
#define TAG_SHOWN  60 /* characters of a name in an email */

static mdl_license_tag_t *license_tag_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_license_tag_t *tag = apr_pcalloc(p, sizeof *tag);

    MDL_READ(row, tag, tag, id, name, available, assigned, created_at, updated_at, reclaims);
    tag->low_stock_threshold = MDL_INT_OR_NONE(row, tag, low_stock_threshold);
    return tag;
}

/* Runs a statement that selects the tag. */
static apr_status_t license_tag_select_one(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p,
                                           mdl_query_t query)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, query);

    if (rv == APR_ENOENT) {
        return mdl_problem_set(ref->problem, 404, "license_key_tag_not_found",
                               "There is no such license key tag.");
    }
    if (rv == APR_SUCCESS) {
        ref->entity = license_tag_of_row(row, p);
    }
    return rv;
}

/* The same by id and shop, and checks the caller's version. */
static apr_status_t license_tag_select_known(mdl_db_t *db, mdl_entity_ref_t *ref,
                                             mdl_statement_t statement, apr_pool_t *p)
{
    apr_status_t rv = license_tag_select_one(
        db, ref, p, MDL_Q_AS(statement, LICENSE_TAG_BY_ID, .id = ref->id, .shop_id = ref->shop_id));

    return rv == APR_SUCCESS
               ? mdl_version_check(ref->versions,
                                   ((const mdl_license_tag_t *)ref->entity)->updated_at,
                                   ref->problem)
               : rv;
}

apr_status_t mdl_license_tag_create(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit)
{
    return license_tag_select_one(db, &edit->ref, p,
                                  MDL_Q(LICENSE_TAG_INSERT, .shop_id = edit->ref.shop_id,
                                        .name = edit->name,
                                        .low_stock_threshold = edit->low_stock_threshold,
                                        .reclaims = edit->reclaims, .now = apr_time_now()));
}

apr_status_t mdl_license_tag_find(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    return license_tag_select_known(db, ref, MDL_Q_LICENSE_TAG_BY_ID, p);
}

apr_status_t mdl_license_tag_lock(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    return license_tag_select_known(db, ref, MDL_Q_LICENSE_TAG_LOCK_WHOLE, p);
}

/* After a change that met no row: there is none, or it has another version. */
static apr_status_t license_tag_refuse_change(mdl_db_t *db, mdl_entity_ref_t *ref, apr_pool_t *p)
{
    apr_status_t rv = mdl_license_tag_find(db, p, ref);

    return rv == APR_SUCCESS ? mdl_version_refuse(ref->problem) : rv;
}

apr_status_t mdl_license_tag_change(mdl_db_t *db, apr_pool_t *p, mdl_license_tag_edit_t *edit)
{
    apr_status_t rv;

    if (edit->name == NULL && !edit->set_threshold && edit->reclaims < 0) {
        return mdl_license_tag_find(db, p, &edit->ref);
    }
    rv = license_tag_select_one(
        db, &edit->ref, p,
        MDL_Q(LICENSE_TAG_CHANGE, .name = edit->name, .set_threshold = edit->set_threshold,
              .threshold = edit->low_stock_threshold, .reclaims = edit->reclaims,
              .now = apr_time_now(), .id = edit->ref.id, .shop_id = edit->ref.shop_id,
              MDL_VERSION_ARGS(edit->ref.versions, p)));
    return rv == MDL_EPROBLEM && edit->ref.versions != NULL
               ? license_tag_refuse_change(db, &edit->ref, p)
               : rv;
}

apr_status_t mdl_license_tag_delete(mdl_db_t *db, apr_pool_t *p, mdl_entity_ref_t *ref)
{
    static const mdl_reference_query_t references[] = {
        {MDL_Q_LICENSE_TAG_MAPPINGS, MDL_REFERENCE_MAPPING},
        {MDL_Q_LICENSE_TAG_ORDERS, MDL_REFERENCE_WAITING_ORDER}};
    apr_status_t rv = mdl_license_tag_lock(db, p, ref);

    if (rv == APR_SUCCESS) {
        rv = mdl_references_check(db, ref, references, sizeof references / sizeof *references,
                                  "license_key_tag_in_use", "license key tag", p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p, MDL_Q(LICENSE_CLAIMS_CLOSE, ref->id));
    }
    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(LICENSE_TAG_DELETE, .now = apr_time_now(), .id = ref->id))
               : rv;
}

apr_status_t mdl_license_tag_page(mdl_db_t *db, apr_pool_t *p, mdl_list_page_t *page)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(LICENSE_TAG_PAGE, .shop_id = page->shop_id,
                                          .before = page->before, .limit = page->limit));

    page->found = apr_array_make(p, page->limit, sizeof(mdl_license_tag_t *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(page->found, mdl_license_tag_t *) = license_tag_of_row(rows, p);
    }
    return rv;
}

apr_status_t mdl_license_ask_lock(mdl_db_t *db, apr_int64_t order_id,
                                  const apr_array_header_t *mapping_ids, mdl_rows_t **rows,
                                  apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(LICENSE_TAGS_OF_ORDER, .ids = mapping_ids, .order_id = order_id));
}

apr_array_header_t *mdl_license_read_lock(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *tags = apr_array_make(p, 4, sizeof(apr_int64_t));

    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(tags, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return tags;
}

apr_status_t mdl_license_want(mdl_db_t *db, apr_int64_t assignment_id, apr_int64_t mapping_id,
                              int quantity, const apr_array_header_t *tags, apr_int64_t *wanted,
                              apr_pool_t *p)
{
    apr_int64_t claims;
    apr_status_t rv = mdl_db_exec(db, &claims, p,
                                  MDL_Q(LICENSE_CLAIMS_INSERT, .assignment_id = assignment_id,
                                        .wanted = quantity, .mapping_id = mapping_id, .ids = tags));

    *wanted = rv == APR_SUCCESS ? claims * quantity : 0;
    return rv;
}

/* A locked tag. */
typedef struct {
    apr_int64_t id;
    apr_int64_t available;
    apr_int64_t threshold; /* -1: none */
    int reclaims;
    int is_deleted;
} locked_tag_t;

static locked_tag_t license_read_locked(const mdl_rows_t *row)
{
    return (locked_tag_t){.id = MDL_INT(row, locked, id),
                          .available = MDL_INT(row, locked, available),
                          .threshold = MDL_INT_OR_NONE(row, locked, low_stock_threshold),
                          .reclaims = (int)MDL_INT(row, locked, reclaims),
                          .is_deleted = (int)MDL_INT(row, locked, is_deleted)};
}

/* Locks a tag.  APR_ENOENT when it was deleted. */
static apr_status_t license_lock_tag(mdl_db_t *db, apr_int64_t tag_id, locked_tag_t *tag,
                                     apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(LICENSE_TAG_LOCK, tag_id));

    if (rv == APR_SUCCESS) {
        *tag = license_read_locked(row);
    }
    return rv;
}

static apr_status_t license_count(mdl_db_t *db, apr_int64_t tag_id, apr_int64_t available,
                                  apr_int64_t assigned, apr_pool_t *p)
{
    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(LICENSE_TAG_COUNT, .available = available, .assigned = assigned, .id = tag_id));
}

/* Reads rows of key and assignment into a JSON object, key → assignment. */
static const char *license_read_pairs(mdl_rows_t *rows, apr_int64_t *given, apr_pool_t *p)
{
    mdl_json_t *pairs = mdl_json_object(p);

    for (*given = 0; mdl_rows_next(rows); ++*given) {
        mdl_json_add_int(pairs, mdl_rows_text(rows, 0), mdl_rows_int(rows, 1));
    }
    return mdl_json_text(pairs, NULL, p);
}

static apr_status_t license_email_staff(mdl_db_t *db, const mdl_rows_t *row, apr_int64_t tag_id,
                                        apr_pool_t *p)
{
    apr_int64_t shop_id = MDL_INT(row, license_tag_warn, shop_id);
    mdl_json_t *data = mdl_json_object(p);
    apr_status_t rv;

    mdl_json_add_int(data, "license_key_tag_id", tag_id);
    mdl_json_add_string(data, "tag",
                        mdl_utf8_quoted(MDL_TEXT(row, license_tag_warn, name), TAG_SHOWN, p));
    mdl_json_add_int(data, "available", MDL_INT(row, license_tag_warn, available));
    mdl_json_add_int(data, "low_stock_threshold",
                     MDL_INT(row, license_tag_warn, low_stock_threshold));
    rv = mdl_notice_add_daily(db, MDL_NOTICE_KEYS_LOW, shop_id, p);
    return rv == APR_SUCCESS
               ? mdl_staff_email_queue(db, shop_id, mdl_notice_kind_names[MDL_NOTICE_KEYS_LOW],
                                       "license_keys_low", data, p)
               : rv;
}

apr_status_t mdl_license_warn(mdl_db_t *db, apr_int64_t tag_id, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    apr_status_t rv = mdl_event_add_of_tag(db, tag_id, p);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(
            db, &row, p,
            MDL_Q(LICENSE_TAG_WARN, .now = now, .id = tag_id, .warned_before = now - WARN_AGAIN));
    }
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    return license_email_staff(db, row, tag_id, p);
}

/* Gives keys of a tag to assignments, by pairs. */
static apr_status_t license_give(mdl_db_t *db, const locked_tag_t *tag, const char *pairs,
                                 apr_int64_t given, apr_pool_t *p)
{
    apr_status_t rv;

    if (given == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(LICENSE_KEYS_GIVE, .now = apr_time_now(), .pairs = pairs));
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(LICENSE_CLAIMS_COUNT, .tag_id = tag->id, .pairs = pairs));
    }
    if (rv == APR_SUCCESS) {
        rv = license_count(db, tag->id, -given, given, p);
    }
    return rv == APR_SUCCESS && tag->available > tag->threshold &&
                   tag->available - given <= tag->threshold
               ? mdl_license_warn(db, tag->id, p)
               : rv;
}

static apr_status_t license_fill_order_from(mdl_db_t *db, apr_int64_t order_id, apr_int64_t tag_id,
                                            apr_int64_t *given, apr_pool_t *p)
{
    locked_tag_t tag;
    const char *pairs;
    mdl_rows_t *rows;
    apr_status_t rv = license_lock_tag(db, tag_id, &tag, p);

    *given = 0;
    if (rv == APR_ENOENT || (rv == APR_SUCCESS && tag.available == 0)) {
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(LICENSE_PAIRS_OF_ORDER, .id = order_id, .tag_id = tag_id,
                                 .limit = tag.available));
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    pairs = license_read_pairs(rows, given, p);
    return license_give(db, &tag, pairs, *given, p);
}

static apr_status_t license_notify(mdl_db_t *db, apr_int64_t order_id, apr_int64_t given,
                                   apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);

    mdl_json_add_int(data, "license_keys", given);
    return mdl_event_add_of_order(db, MDL_EVENT_LICENSE_KEY_DELIVERED, order_id, data, p);
}

apr_status_t mdl_license_fill_order(mdl_db_t *db, apr_int64_t order_id, apr_int64_t *given,
                                    apr_pool_t *p)
{
    apr_pool_t *scratch;
    mdl_rows_t *tags;
    apr_status_t rv = mdl_db_select(db, &tags, p, MDL_Q(LICENSE_CLAIMS_OF_ORDER, order_id));

    *given = 0;
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_license_fill_order");
    while (rv == APR_SUCCESS && mdl_rows_next(tags)) {
        apr_int64_t n;

        apr_pool_clear(scratch);
        rv = license_fill_order_from(db, order_id, mdl_rows_int(tags, 0), &n, scratch);
        *given += n;
    }
    apr_pool_destroy(scratch);
    return rv == APR_SUCCESS && *given > 0 ? license_notify(db, order_id, *given, p) : rv;
}

/* Gives a tag's keys to all waiting claims, with entries and events of their orders; *given gets
   their number. */
static apr_status_t license_fill_tag(mdl_db_t *db, const locked_tag_t *tag, const char *key_id,
                                     apr_int64_t *given, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    const char *pairs;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(LICENSE_PAIRS_OF_TAG, .tag_id = tag->id, .limit = tag->available));

    *given = 0;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    pairs = license_read_pairs(rows, given, p);
    rv = license_give(db, tag, pairs, *given, p);
    if (rv != APR_SUCCESS || *given == 0 ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(ORDERS_TOUCH_GIVEN, .now = now, .pairs = pairs))) !=
            APR_SUCCESS) {
        return rv;
    }
    mdl_db_note_due(db, now);
    rv = mdl_db_exec(db, NULL, p, MDL_Q(LICENSE_WAKE_LATE, .now = now, .pairs = pairs));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(LICENSE_TIMELINE_INSERT, .key_id = key_id, .now = now, .pairs = pairs));
    return rv == APR_SUCCESS ? mdl_event_add_given(db, pairs, p) : rv;
}

static apr_size_t license_total(const mdl_license_add_t *add)
{
    return add->keys != NULL ? mdl_json_length(add->keys) : (apr_size_t)add->count;
}

/* Inserts a batch of keys, from index from on. */
static apr_status_t license_insert_batch(mdl_db_t *db, mdl_license_add_t *add,
                                         const mdl_secret_t *data_key, apr_size_t from,
                                         apr_pool_t *p)
{
    mdl_json_t *sealed = mdl_json_array(p);
    apr_int64_t inserted;
    apr_status_t rv;

    for (apr_size_t i = from; i < from + BATCH && i < license_total(add); i++) {
        const char *key = add->keys != NULL ? mdl_json_string(mdl_json_element(add->keys, i))
                                            : mdl_license_pattern_key(add->pattern, p);

        mdl_json_add_string(sealed, NULL, mdl_license_key_seal(data_key, add->ref.id, key, p));
    }
    rv = mdl_db_exec(db, &inserted, p,
                     MDL_Q(LICENSE_KEYS_INSERT, .tag_id = add->ref.id, .now = apr_time_now(),
                           .keys = mdl_json_text(sealed, NULL, p)));
    add->added += rv == APR_SUCCESS ? inserted : 0;
    return rv;
}

/* Inserts the keys in batches, to take little memory.  A made key that the tag has already is made
   anew, so these go on until there are as many as wanted. */
static apr_status_t license_insert(mdl_db_t *db, mdl_license_add_t *add, apr_pool_t *p)
{
    mdl_secret_t *data_key;
    apr_pool_t *scratch;
    apr_status_t rv = mdl_data_key_get(db, add->secret, &data_key, p);

    add->added = 0;
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_license_add");
    for (apr_size_t from = 0; rv == APR_SUCCESS && from < license_total(add);
         from = add->keys != NULL ? from + BATCH : (apr_size_t)add->added) {
        apr_pool_clear(scratch);
        rv = license_insert_batch(db, add, data_key, from, scratch);
    }
    apr_pool_destroy(scratch);
    return rv;
}

/* Keys that the tag has already count, too: they may be of the same pattern. */
static apr_status_t license_check_pattern(const mdl_license_add_t *add, apr_pool_t *p)
{
    const mdl_license_tag_t *tag = add->ref.entity;

    return add->keys == NULL
               ? mdl_license_pattern_check(
                     add->pattern, tag->available + tag->assigned + add->count, add->ref.problem, p)
               : APR_SUCCESS;
}

apr_status_t mdl_license_add(mdl_db_t *db, apr_pool_t *p, mdl_license_add_t *add)
{
    locked_tag_t tag;
    apr_status_t rv;

    if ((rv = mdl_license_tag_find(db, p, &add->ref)) != APR_SUCCESS) {
        return rv;
    }
    rv = license_lock_tag(db, add->ref.id, &tag, p);
    if (rv == APR_ENOENT) { /* deleted at the same time */
        return mdl_license_tag_find(db, p, &add->ref);
    }
    if (rv != APR_SUCCESS || (rv = license_check_pattern(add, p)) != APR_SUCCESS ||
        (rv = license_insert(db, add, p)) != APR_SUCCESS) {
        return rv;
    }
    add->duplicates = (apr_int64_t)license_total(add) - add->added;
    add->given = 0;
    if (add->added == 0) {
        return APR_SUCCESS;
    }
    tag.available += add->added;
    rv = license_count(db, tag.id, add->added, 0, p);
    return rv == APR_SUCCESS ? license_fill_tag(db, &tag, add->key_id, &add->given, p) : rv;
}

/* Counts keys that went back to the stock, and gives them to waiting claims. */
static apr_status_t license_return(mdl_db_t *db, const locked_tag_t *tag, apr_int64_t keys,
                                   const char *key_id, apr_pool_t *p)
{
    locked_tag_t after = *tag;
    apr_int64_t given;
    apr_status_t rv = license_count(db, tag->id, keys, -keys, p);

    after.available += keys;
    return rv == APR_SUCCESS && !tag->is_deleted ? license_fill_tag(db, &after, key_id, &given, p)
                                                 : rv;
}

/* The keys of a tag that an assignment has (apr_int64_t). */
typedef struct {
    apr_array_header_t *shown; /* in the order in which the customer sees them */
    apr_array_header_t *withdrawn;
} license_had_t;

static apr_status_t license_read_had(mdl_db_t *db, apr_int64_t assignment_id, apr_int64_t tag_id,
                                     license_had_t *had, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(LICENSE_KEYS_OF_ASSIGNMENT, .assignment_id = assignment_id, .tag_id = tag_id));

    had->shown = apr_array_make(p, 4, sizeof(apr_int64_t));
    had->withdrawn = apr_array_make(p, 4, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(MDL_INT(rows, license_keys_of_assignment, is_withdrawn) ? had->withdrawn
                                                                               : had->shown,
                       apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

static apr_array_header_t *license_slice(const apr_array_header_t *ids, int from, int to,
                                         apr_pool_t *p)
{
    apr_array_header_t *slice = apr_array_make(p, 4, sizeof(apr_int64_t));

    for (int i = from; i < to && i < ids->nelts; i++) {
        APR_ARRAY_PUSH(slice, apr_int64_t) = APR_ARRAY_IDX(ids, i, apr_int64_t);
    }
    return slice;
}

/* Takes the keys above a quantity from an assignment. */
static apr_status_t license_take(mdl_db_t *db, const locked_tag_t *tag,
                                 const apr_array_header_t *surplus, const char *key_id,
                                 apr_pool_t *p)
{
    apr_status_t rv;

    if (!tag->reclaims) {
        return mdl_db_exec(
            db, NULL, p,
            MDL_Q(LICENSE_KEYS_WITHDRAW, .withdrawn_at = apr_time_now(), .ids = surplus));
    }
    rv = mdl_db_exec(db, NULL, p, MDL_Q(LICENSE_KEYS_FREE, surplus));
    return rv == APR_SUCCESS ? license_return(db, tag, surplus->nelts, key_id, p) : rv;
}

/* Gives withdrawn keys back to their assignment. */
static apr_status_t license_show(mdl_db_t *db, const apr_array_header_t *withdrawn, apr_pool_t *p)
{
    return withdrawn->nelts > 0
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(LICENSE_KEYS_WITHDRAW, .withdrawn_at = 0, .ids = withdrawn))
               : APR_SUCCESS;
}

static apr_status_t license_fit(mdl_db_t *db, const locked_tag_t *tag, apr_int64_t assignment_id,
                                int quantity, const char *key_id, apr_pool_t *p)
{
    license_had_t had;
    int shown, wanted;
    apr_status_t rv = license_read_had(db, assignment_id, tag->id, &had, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* Nobody waits for keys of a deleted tag. */
    shown = had.shown->nelts + had.withdrawn->nelts;
    wanted = tag->is_deleted && shown < quantity ? shown : quantity;
    shown = shown < quantity ? shown : quantity;
    if (had.shown->nelts < quantity) {
        rv = license_show(db, license_slice(had.withdrawn, 0, quantity - had.shown->nelts, p), p);
    }
    /* Before keys go back to the stock, or this claim could get them again. */
    if (rv == APR_SUCCESS) {
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(LICENSE_CLAIM_SET, .wanted = wanted, .assigned = shown,
                               .assignment_id = assignment_id, .tag_id = tag->id));
    }
    return rv == APR_SUCCESS && had.shown->nelts > quantity
               ? license_take(db, tag, license_slice(had.shown, quantity, had.shown->nelts, p),
                              key_id, p)
               : rv;
}

static apr_status_t license_lock_tags_of(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                         mdl_rows_t **tags, apr_pool_t *p)
{
    return mdl_db_select(db, tags, p, MDL_Q(LICENSE_TAGS_OF_ASSIGNMENTS, assignment_ids));
}

apr_status_t mdl_license_set_quantity(mdl_db_t *db, apr_int64_t assignment_id, int quantity,
                                      const char *key_id, apr_pool_t *p)
{
    mdl_rows_t *tags;
    apr_status_t rv = license_lock_tags_of(db, mdl_ids_of(assignment_id, p), &tags, p);

    while (rv == APR_SUCCESS && mdl_rows_next(tags)) {
        locked_tag_t tag = license_read_locked(tags);

        rv = license_fit(db, &tag, assignment_id, quantity, key_id, p);
    }
    return rv;
}

static apr_status_t license_reclaim_of(mdl_db_t *db, const locked_tag_t *tag,
                                       const apr_array_header_t *assignment_ids, const char *key_id,
                                       apr_int64_t *reclaimed, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(
        db, reclaimed, p, MDL_Q(LICENSE_KEYS_RECLAIM, .ids = assignment_ids, .tag_id = tag->id));

    if (rv != APR_SUCCESS || *reclaimed == 0) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(LICENSE_CLAIMS_EMPTY, .ids = assignment_ids, .tag_id = tag->id));
    return rv == APR_SUCCESS ? license_return(db, tag, *reclaimed, key_id, p) : rv;
}

apr_status_t mdl_license_reclaim(mdl_db_t *db, const apr_array_header_t *assignment_ids,
                                 const char *key_id, apr_int64_t *reclaimed, apr_pool_t *p)
{
    mdl_rows_t *tags;
    apr_status_t rv = license_lock_tags_of(db, assignment_ids, &tags, p);

    *reclaimed = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(tags)) {
        locked_tag_t tag = license_read_locked(tags);
        apr_int64_t n = 0;

        rv = tag.reclaims ? license_reclaim_of(db, &tag, assignment_ids, key_id, &n, p)
                          : APR_SUCCESS;
        *reclaimed += n;
    }
    return rv;
}
