#include "settings/pages.h"

#include <string.h>

#include <apr_strings.h>

#include "base/names.h"
#include "base/text/present.h"
#include "base/text/utf8.h"
#include "core/catalog/license.h"
#include "core/catalog/license_key.h"
#include "core/catalog/license_paste.h"
#include "core/catalog/license_pattern.h"
#include "core/identifier.h"
#include "core/ids.h"
#include "core/version.h"
#include "settings/filter.h"
#include "settings/frame.h"

#define LINES      50
#define MAX_PASTED (9 * 1024 * 1024) /* 8 MiB of keys, with what a form escapes */
#define MAX_SHOWN  65536             /* bytes of pasted text that are shown again */

/* The stock of the path, in the version that the form's page has shown. */
static mdl_entity_ref_t stock_ref(mdl_visit_t *visit)
{
    const char *seen = mdl_visit_field(visit, "seen");

    return (mdl_entity_ref_t){
        .shop_id = visit->shop->id,
        .id = mdl_identifier_parse(visit->argument),
        .versions = seen != NULL ? mdl_ids_of(mdl_identifier_parse(seen), visit->r->pool) : NULL,
        .problem = &visit->problem};
}

/* --- data for templates --------------------------------------------------------------------- */

static void stock_add(mdl_json_t *to, const mdl_license_tag_t *tag, apr_int64_t owed)
{
    mdl_json_add_int(to, "stock_id", tag->id);
    mdl_json_add_string(to, "stock_name", tag->name);
    mdl_json_add_int(to, "available", tag->available);
    mdl_json_add_int(to, "assigned", tag->assigned);
    mdl_json_add_int_if(to, "owed", owed, owed > 0 && owed <= MDL_LICENSE_OWED_MAX);
    mdl_json_add_bool(to, "owed_many", owed > MDL_LICENSE_OWED_MAX);
    mdl_json_add_int_if(to, "threshold", tag->low_stock_threshold, tag->low_stock_threshold >= 0);
    mdl_json_add_bool(to, "low", tag->available <= tag->low_stock_threshold);
    mdl_json_add_bool(to, "reclaims", tag->reclaims);
}

/* Adds what was typed into a form that is shown again, under "typed_…". */
static void typed_add(mdl_json_t *data, const mdl_visit_t *visit, const char *name)
{
    const char *typed = mdl_visit_field(visit, name);

    mdl_json_add_string(data, apr_pstrcat(visit->r->pool, "typed_", name, NULL),
                        typed != NULL && strlen(typed) <= MAX_SHOWN ? typed : NULL);
}

static void key_add(mdl_json_t *to, const mdl_visit_t *visit, const mdl_license_entry_t *entry)
{
    apr_array_header_t *sealed = apr_array_make(visit->r->pool, 1, sizeof entry->key);
    const apr_array_header_t *opened;

    mdl_json_add_int(to, "key_id", entry->id);
    mdl_frame_add_choice(to, mdl_license_status_names, (int)entry->status);
    mdl_json_add_string(to, "order_id", entry->storefront_order_id);
    mdl_json_add_string(to, "customer", entry->customer);
    mdl_present_date(to, "since",
                     entry->withdrawn_at != 0  ? entry->withdrawn_at
                     : entry->assigned_at != 0 ? entry->assigned_at
                                               : entry->created_at);
    if (visit->role < MDL_ROLE_STAFF) {
        return; /* who only reads sees no key, as an API key of that scope */
    }
    APR_ARRAY_PUSH(sealed, mdl_license_key_t) = entry->key;
    opened = mdl_license_keys_open(visit->service->secret, sealed, visit->r->pool);
    mdl_json_add_string(to, "license_key",
                        opened != NULL ? APR_ARRAY_IDX(opened, 0, const char *) : NULL);
}

/* --- the list ------------------------------------------------------------------------------- */

typedef struct {
    mdl_list_page_t page;
    apr_int64_t *owed;
} stocks_t;

static apr_status_t stocks_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    stocks_t *stocks = arg;
    apr_array_header_t *ids = apr_array_make(p, LINES + 1, sizeof(apr_int64_t));
    apr_status_t rv = mdl_license_tag_page(db, p, &stocks->page);

    for (int i = 0; rv == APR_SUCCESS && i < stocks->page.found->nelts; i++) {
        APR_ARRAY_PUSH(
            ids, apr_int64_t) = APR_ARRAY_IDX(stocks->page.found, i, const mdl_license_tag_t *)->id;
    }
    return rv == APR_SUCCESS ? mdl_license_owed(db, ids, &stocks->owed, p) : rv;
}

static int stocks_send(mdl_visit_t *visit, int status)
{
    stocks_t stocks = {.page = {.shop_id = visit->shop->id,
                                .before = mdl_visit_before(visit),
                                .limit = LINES + 1}};
    apr_status_t rv = mdl_visit_read(visit, stocks_read, &stocks);
    const apr_array_header_t *found = stocks.page.found;
    const mdl_license_tag_t *tag = NULL;
    mdl_json_t *data, *list;

    if (rv != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    data = mdl_frame_data(visit);
    mdl_json_add_bool(data, "has_stocks", found->nelts > 0);
    list = mdl_json_add_array(data, "stocks");
    for (int i = 0; i < found->nelts && i < LINES; i++) {
        tag = APR_ARRAY_IDX(found, i, const mdl_license_tag_t *);
        stock_add(mdl_json_add_object(list, NULL), tag, stocks.owed[i]);
    }
    mdl_json_add_int_if(data, "before", tag != NULL ? tag->id : 0, found->nelts > LINES);
    typed_add(data, visit, "name");
    typed_add(data, visit, "threshold");
    mdl_json_add_bool(data, "typed_reclaims", mdl_visit_field(visit, "reclaims") != NULL);
    return mdl_frame_send(visit, status, "license_keys.html", data, NULL);
}

static int stocks_show(mdl_visit_t *visit)
{
    return stocks_send(visit, HTTP_OK);
}

static apr_status_t edit_read(mdl_visit_t *visit, mdl_license_tag_edit_t *edit)
{
    const char *threshold = mdl_visit_field(visit, "threshold");

    edit->ref = stock_ref(visit);
    edit->name = mdl_visit_field(visit, "name");
    edit->set_threshold = 1;
    edit->low_stock_threshold = mdl_visit_number(threshold, MDL_LICENSE_THRESHOLD_MAX);
    edit->reclaims = mdl_visit_field(visit, "reclaims") != NULL;
    if (edit->name == NULL || !mdl_utf8_is_text(edit->name, MDL_NAME_MAX)) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_stock_name",
                               "A name has 1 to 255 characters, none of them a control character.");
    }
    if (threshold != NULL && edit->low_stock_threshold < 0) {
        return mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_threshold",
                               "The number of keys to be told at is a whole number from 0 to "
                               "1,000,000,000.");
    }
    return APR_SUCCESS;
}

typedef struct {
    mdl_license_tag_edit_t edit;
    mdl_visit_t *visit;
} stock_create_t;

static apr_status_t stock_create_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    stock_create_t *create = arg;
    apr_status_t rv = mdl_license_tag_create(db, p, &create->edit);

    if (rv == APR_SUCCESS) {
        create->visit->audit.noun_id = apr_psprintf(
            p, "%" APR_INT64_T_FMT, ((mdl_license_tag_t *)create->edit.ref.entity)->id);
    }
    return rv;
}

static int stocks_create(mdl_visit_t *visit)
{
    stock_create_t create = {.visit = visit};
    apr_status_t rv = edit_read(visit, &create.edit);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, stock_create_effect, &create);
    }
    return rv == MDL_EPROBLEM
               ? stocks_send(visit, visit->problem.status)
               : mdl_frame_done(visit, rv,
                                apr_pstrcat(visit->r->pool, "license-keys/",
                                            rv == APR_SUCCESS ? visit->audit.noun_id : "", NULL));
}

/* --- one stock ------------------------------------------------------------------------------ */

static const mdl_filter_field_t fields[] = {
    {"status", .names = mdl_license_status_names},
    {0},
};

typedef struct {
    mdl_license_page_t list;
    apr_int64_t *owed;
} stock_t;

static apr_status_t stock_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    stock_t *stock = arg;
    apr_status_t rv = mdl_license_page(db, p, &stock->list);

    return rv == APR_SUCCESS
               ? mdl_license_owed(db, mdl_ids_of(stock->list.ref.id, p), &stock->owed, p)
               : rv;
}

static void keys_add(mdl_json_t *data, const mdl_visit_t *visit, const apr_array_header_t *found)
{
    mdl_json_t *keys = mdl_json_add_array(data, "keys");
    const mdl_license_entry_t *entry = NULL;

    mdl_json_add_bool(data, "has_keys", found->nelts > 0);
    for (int i = 0; i < found->nelts && i < LINES; i++) {
        entry = APR_ARRAY_IDX(found, i, const mdl_license_entry_t *);
        key_add(mdl_json_add_object(keys, NULL), visit, entry);
    }
    mdl_json_add_int_if(data, "before", entry != NULL ? entry->id : 0, found->nelts > LINES);
}

/* Adds the numbers that the sentence of a problem has, and the form that it belongs to. */
static void problem_add(mdl_json_t *data, const mdl_visit_t *visit)
{
    const char *slash = strrchr(visit->page->path, '/');

    if (visit->problem.code == NULL) {
        return;
    }
    mdl_json_add_int(data, "limit", visit->problem.limit);
    mdl_json_add_int(data, "count", visit->problem.count);
    mdl_json_add_bool(mdl_json_add_object(data, "problem_of"), slash + 1, 1);
}

/* Sends the stock's page; name and result (or NULL) are what a form has done. */
static int stock_send(mdl_visit_t *visit, int status, const char *name, mdl_json_t *result)
{
    stock_t stock = {.list = {.page = {.before = mdl_visit_before(visit), .limit = LINES + 1},
                              .ref = {.shop_id = visit->shop->id,
                                      .id = mdl_identifier_parse(visit->argument),
                                      .problem = &visit->problem}}};
    const mdl_license_tag_t *tag;
    mdl_filter_t filter;
    mdl_json_t *data;
    apr_status_t rv = mdl_filter_read(&filter, fields, visit);

    stock.list.status = rv == APR_SUCCESS ? mdl_filter_value(&filter, "status") : NULL;
    if (rv != APR_SUCCESS || (rv = mdl_visit_read(visit, stock_read, &stock)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    tag = stock.list.ref.entity;
    data = mdl_frame_data(visit);
    stock_add(data, tag, stock.owed[0]);
    mdl_filter_add(data, &filter);
    keys_add(data, visit, stock.list.page.found);
    problem_add(data, visit);
    typed_add(data, visit, "keys");
    typed_add(data, visit, "pattern");
    typed_add(data, visit, "count");
    mdl_json_add_int(mdl_json_add_object(data, "change"), "seen", mdl_version(tag->updated_at));
    if (result != NULL) {
        mdl_json_add_copy(data, name, result);
    }
    return mdl_frame_send(visit, status, "license_key_stock.html", data, NULL);
}

static int stock_show(mdl_visit_t *visit)
{
    return stock_send(visit, HTTP_OK, NULL, NULL);
}

/* Answers a form: with the page it was on if it is refused, else by its redirect. */
static int stock_done(mdl_visit_t *visit, apr_status_t rv)
{
    return rv == MDL_EPROBLEM && visit->problem.status != HTTP_NOT_FOUND
               ? stock_send(visit, visit->problem.status, NULL, NULL)
               : mdl_frame_done(
                     visit, rv,
                     apr_pstrcat(visit->r->pool, "license-keys/", visit->argument, NULL));
}

MDL_EFFECT(mdl_license_add, mdl_license_add_t *)

/* Adds keys once they are read, and tells the numbers. */
static int stock_add_keys(mdl_visit_t *visit, apr_status_t rv, mdl_license_add_t *add)
{
    mdl_json_t *result;

    add->ref = stock_ref(visit);
    add->secret = visit->service->secret;
    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_license_add_effect, add);
    }
    if (rv != APR_SUCCESS) {
        return stock_done(visit, rv);
    }
    visit->fields = NULL; /* the forms are empty again */
    result = mdl_json_object(visit->r->pool);
    mdl_json_add_int(result, "count", add->added);
    mdl_json_add_int_if(result, "duplicates", add->duplicates, add->duplicates > 0);
    mdl_json_add_int_if(result, "given", add->given, add->given > 0);
    return stock_send(visit, HTTP_OK, "added", result);
}

static int stock_paste(mdl_visit_t *visit)
{
    mdl_license_add_t add = {.count = 0};
    const char *typed = mdl_visit_field(visit, "keys");
    apr_status_t rv = mdl_license_paste(typed != NULL ? typed : "", &add.keys, &visit->problem,
                                        visit->r->pool);

    return stock_add_keys(visit, rv, &add);
}

static int stock_generate(mdl_visit_t *visit)
{
    mdl_license_add_t add = {
        .pattern = mdl_visit_field(visit, "pattern"),
        .count = mdl_visit_number(mdl_visit_field(visit, "count"), MDL_LICENSE_KEYS_MAX)};
    apr_status_t rv = APR_SUCCESS;

    if (add.pattern == NULL || !mdl_utf8_is_text(add.pattern, MDL_LICENSE_PATTERN_MAX)) {
        rv = mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_pattern",
                             "A pattern has 1 to 100 characters.");
    } else if (add.count < 1) {
        rv = mdl_problem_set(&visit->problem, HTTP_BAD_REQUEST, "invalid_key_count",
                             "Make 1 to 10,000 keys at once.");
    }
    return stock_add_keys(visit, rv, &add);
}

MDL_EFFECT(mdl_license_find, mdl_license_find_t *)

/* A form that is sent by POST, so that no log has the key; it changes nothing. */
static int stock_find(mdl_visit_t *visit)
{
    mdl_license_find_t find = {.ref = stock_ref(visit),
                               .secret = visit->service->secret,
                               .text = mdl_visit_field(visit, "key")};
    mdl_json_t *result = mdl_json_object(visit->r->pool);
    apr_status_t rv = find.text != NULL ? mdl_visit_read(visit, mdl_license_find_effect, &find)
                                        : APR_ENOENT;

    if (rv != APR_SUCCESS && rv != APR_ENOENT) {
        return mdl_frame_failure(visit, rv);
    }
    mdl_json_add_bool(result, "nothing", rv == APR_ENOENT);
    if (rv == APR_SUCCESS) {
        key_add(mdl_json_add_object(result, "entry"), visit, find.found);
    }
    return stock_send(visit, HTTP_OK, "search", result);
}

MDL_EFFECT(mdl_license_tag_change, mdl_license_tag_edit_t *)

static int stock_change(mdl_visit_t *visit)
{
    mdl_license_tag_edit_t edit;
    apr_status_t rv = edit_read(visit, &edit);

    if (rv == APR_SUCCESS) {
        rv = mdl_visit_write(visit, mdl_license_tag_change_effect, &edit);
    }
    return stock_done(visit, rv);
}

MDL_EFFECT(mdl_license_delete, mdl_license_delete_t *)

static int stock_remove_key(mdl_visit_t *visit)
{
    mdl_license_delete_t removal = {.ref = stock_ref(visit),
                                    .id = mdl_identifier_parse(mdl_visit_field(visit, "key"))};

    return stock_done(visit, mdl_visit_write(visit, mdl_license_delete_effect, &removal));
}

MDL_EFFECT(mdl_license_tag_delete, mdl_entity_ref_t *)

static int stock_delete(mdl_visit_t *visit)
{
    mdl_entity_ref_t ref = stock_ref(visit);
    apr_status_t rv = mdl_visit_write(visit, mdl_license_tag_delete_effect, &ref);

    return rv == MDL_EPROBLEM ? stock_done(visit, rv) : mdl_frame_done(visit, rv, "license-keys");
}

#define STOCK "license_key_tag"

const mdl_page_t mdl_license_key_pages[] = {
    {"{}/license-keys", STOCK, "created", .sees = MDL_ROLE_READ_ONLY, .get = stocks_show,
     .acts = MDL_ROLE_STAFF, .post = stocks_create, .done = "stock_created"},
    {"{}/license-keys/{}", .sees = MDL_ROLE_READ_ONLY, .get = stock_show},
    {"{}/license-keys/{}/add", STOCK, "keys_added", .acts = MDL_ROLE_STAFF, .post = stock_paste,
     .max_length = MAX_PASTED},
    {"{}/license-keys/{}/generate", STOCK, "keys_added", .acts = MDL_ROLE_STAFF,
     .post = stock_generate},
    {"{}/license-keys/{}/find", .acts = MDL_ROLE_STAFF, .post = stock_find},
    {"{}/license-keys/{}/change", STOCK, "changed", .acts = MDL_ROLE_STAFF, .post = stock_change,
     .done = "stock_changed"},
    {"{}/license-keys/{}/remove", STOCK, "key_deleted", .acts = MDL_ROLE_STAFF,
     .post = stock_remove_key, .done = "key_removed"},
    {"{}/license-keys/{}/delete", STOCK, "deleted", .acts = MDL_ROLE_STAFF, .post = stock_delete,
     .done = "stock_deleted"},
    {0},
};
