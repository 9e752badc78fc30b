#include "core/order/assignment.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/text/json.h"
#include "core/order/assignment_files.h"
#include "core/download/signed_url.h"
#include "core/order/timeline.h"
#include "core/catalog/license.h"
#include "core/order/lookup.h"
#include "core/order/order_words.h"
#include "core/order/quantity.h"
#include "core/order/typo.h"
#include "core/catalog/mapping.h"
#include "core/catalog/product.h"
#include "core/shop/event.h"
#include "core/version.h"

const char *const mdl_unmapped_names[] = {"refuse", "skip", NULL};

/* The state of the effect while it runs. */
typedef struct {
    mdl_order_assign_t *assign;
    mdl_mapping_match_t *matches; /* of each item */
    apr_time_t now;
    apr_int64_t order_id;
    apr_int64_t customer_id;
    const char *email;    /* of the order, or NULL */
    int customer_changed; /* or the order's name */
    int customer_is_new;
    int is_new; /* the order */
    int held;
    int send_email;     /* as asked for, unless no item is left */
    int fraud_check;    /* likewise */
    apr_int64_t pinned; /* files of the new assignments */
    apr_int64_t pinned_links;
    apr_int64_t license_keys;       /* that the new assignments wait for */
    mdl_fraud_check_t check;        /* if requested */
    int queued;                     /* an email */
    int looking_up;                 /* whether the order has an open look-up */
    apr_array_header_t *tags;       /* license-key tags, locked */
    mdl_json_t *ids;                /* of the new assignments */
    const char *title;              /* of the first of them */
    apr_array_header_t *quantities; /* mdl_quantity_t: changes of earlier assignments */
    int raised;                     /* whether one of them is an increase */
    mdl_order_t *made;              /* a new order, with its assignments; or NULL */
} run_t;

/* What is asked of the database first. */
typedef struct {
    mdl_rows_t **matches; /* of each item */
    mdl_rows_t *customer;
    mdl_rows_t *order;
    const char *page_id; /* for a new order */
} asked_t;

static int assignment_clears(const mdl_order_assign_t *assign, unsigned member)
{
    return (assign->customer_cleared & member) != 0;
}

static apr_status_t assignment_ask(mdl_db_t *db, const run_t *run, asked_t *asked, apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    const mdl_customer_t *customer = &assign->customer;
    int email = assignment_clears(assign, MDL_CUSTOMER_EMAIL);
    int first_name = assignment_clears(assign, MDL_CUSTOMER_FIRST_NAME);
    int last_name = assignment_clears(assign, MDL_CUSTOMER_LAST_NAME);
    int locale = assignment_clears(assign, MDL_CUSTOMER_LOCALE);
    apr_status_t rv = APR_SUCCESS;

    asked->matches = apr_pcalloc(p, (apr_size_t)assign->items->nelts * sizeof *asked->matches);
    for (int i = 0; rv == APR_SUCCESS && i < assign->items->nelts; i++) {
        const mdl_order_item_t *item = &APR_ARRAY_IDX(assign->items, i, mdl_order_item_t);

        rv = mdl_mapping_ask_match(db, assign->shop_id, item->storefront_product_id,
                                   item->storefront_variant_id, &asked->matches[i], p);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &asked->customer, p,
                           MDL_Q(CUSTOMER_UPSERT, .shop_id = assign->shop_id,
                                 .storefront_order_id = assign->storefront_order_id,
                                 .storefront_customer_id = customer->storefront_customer_id,
                                 .email = customer->email, .first_name = customer->first_name,
                                 .last_name = customer->last_name, .locale = customer->locale,
                                 .now = run->now, .no_email = email, .no_first = first_name,
                                 .no_last = last_name, .no_locale = locale));
    }
    if (asked->page_id == NULL) {
        asked->page_id = mdl_signed_url_new_page_id(p);
    }
    return rv == APR_SUCCESS
               ? mdl_db_select(db, &asked->order, p,
                               MDL_Q(ORDER_UPSERT,
                                     .storefront_order_id = assign->storefront_order_id,
                                     .name = assign->name, .page_id = asked->page_id,
                                     .client_ip = assign->client_ip, .now = run->now,
                                     .shop_id = assign->shop_id,
                                     .storefront_customer_id = customer->storefront_customer_id))
               : rv;
}

/* APR_ENOENT unless the item was assigned before: then it needs no mapping. */
static apr_status_t item_find_assigned(mdl_db_t *db, const mdl_order_assign_t *assign,
                                       const mdl_order_item_t *item, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, &row, p,
                             MDL_Q(ASSIGNMENT_OF_ITEM, .shop_id = assign->shop_id,
                                   .storefront_order_id = assign->storefront_order_id,
                                   .storefront_product_id = item->storefront_product_id,
                                   .storefront_variant_id = item->storefront_variant_id));
}

/* Leaves an item out, or adds it to the problem. */
static void item_is_unmapped(mdl_order_assign_t *assign, const mdl_order_item_t *item,
                             apr_pool_t *p)
{
    if (assign->unmapped == MDL_UNMAPPED_SKIP) {
        APR_ARRAY_PUSH(assign->skipped, const mdl_order_item_t *) = item;
    } else {
        mdl_problem_add_detail(assign->problem,
                               apr_psprintf(p, "/items/%d/storefront_product_id", item->index),
                               "product_not_mapped", "No active mapping serves this product.", p);
    }
}

/* Reads each item's mapping, with id 0 for an item that has none and was assigned before or is left
   out.  Adds a detail to the problem for every item that can't be assigned. */
static apr_status_t items_match(mdl_db_t *db, run_t *run, const asked_t *asked, apr_pool_t *p)
{
    mdl_order_assign_t *assign = run->assign;
    int items = assign->items->nelts, unmapped = 0;

    for (int i = 0; i < items; i++) {
        const mdl_order_item_t *item = &APR_ARRAY_IDX(assign->items, i, mdl_order_item_t);
        apr_status_t rv = mdl_mapping_read_match(asked->matches[i], &run->matches[i])
                              ? APR_SUCCESS
                              : item_find_assigned(db, assign, item, p);

        if (rv == APR_ENOENT) {
            unmapped++;
            item_is_unmapped(assign, item, p);
        } else if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    run->send_email = assign->send_email && unmapped < items;
    run->fraud_check = assign->fraud_check && unmapped < items;
    return unmapped > assign->skipped->nelts
               ? mdl_problem_set(assign->problem, 422, "product_not_mapped",
                                 "Map each product to its content before assigning it.")
               : APR_SUCCESS;
}

static apr_status_t assignment_check_fraud(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    apr_status_t rv;

    run->check = (mdl_fraud_check_t){.rules = run->assign->fraud_rules,
                                     .order_id = run->order_id,
                                     .key_id = run->assign->key_id};
    rv = mdl_fraud_check(db, &run->check, p);
    run->held = run->check.held;
    return rv;
}

/* A new order as order_upsert wrote it. */
static mdl_order_t *order_made(const run_t *run, const asked_t *asked, apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    mdl_order_t *order = mdl_order_make(p);

    order->id = run->order_id;
    order->storefront_order_id = assign->storefront_order_id;
    order->name = assign->name;
    order->page_id = asked->page_id;
    order->state = (mdl_order_state_t){MDL_ORDER_ACTIVE, MDL_FRAUD_NOT_CHECKED};
    order->undeclared = mdl_rows_int(asked->order, 7) != 0;
    order->created_at = order->updated_at = run->now;
    order->shop_id = assign->shop_id;
    order->address = run->email;
    order->customer = (mdl_customer_t){
        .id = run->customer_id,
        .storefront_customer_id = assign->customer.storefront_customer_id,
        .email = mdl_rows_text(asked->customer, 1),
        .first_name = mdl_rows_text(asked->customer, 2),
        .last_name = mdl_rows_text(asked->customer, 3),
        .locale = mdl_rows_text(asked->customer, 4)};
    return order;
}

/* Only a customer with the order's address, or the former customer's, may take over: whoever has
   the page's address still sees the order. */
static apr_status_t order_change_customer(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p,
        MDL_Q(ORDER_CHANGE_CUSTOMER, .customer_id = run->customer_id, .id = run->order_id));

    if (rv == APR_ENOENT) {
        return mdl_problem_set(run->assign->problem, 409, "other_customer",
                               "The order was assigned to another customer, or to a guest, before. "
                               "If they are the same "
                               "person, send customer.email with the order's address; PATCH "
                               "/orders/{id} gives it one.");
    }
    if (rv == APR_SUCCESS) {
        run->customer_changed = 1;
        run->email = mdl_rows_text(row, 0);
    }
    return rv;
}

static apr_status_t order_rename(mdl_db_t *db, run_t *run, const char *before, apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    apr_status_t rv;

    if (!assign->name_given ||
        strcmp(assign->name != NULL ? assign->name : "", before != NULL ? before : "") == 0) {
        return APR_SUCCESS;
    }
    run->customer_changed = 1;
    rv = mdl_db_exec(db, NULL, p, MDL_Q(ORDER_SET_NAME, .name = assign->name, .id = run->order_id));
    return rv == APR_SUCCESS ? mdl_order_store_words(db, run->order_id, p) : rv;
}

/* APR_EGENERAL: an upsert returned no row, which can't happen. */
static apr_status_t assignment_read_order(mdl_db_t *db, run_t *run, asked_t *asked, apr_pool_t *p)
{
    mdl_order_assign_t *assign = run->assign;
    mdl_order_access_t access;
    apr_status_t rv;

    if (!mdl_rows_next(asked->customer) || !mdl_rows_next(asked->order)) {
        return APR_EGENERAL;
    }
    if (!mdl_rows_null(asked->customer, 7)) { /* merged meanwhile: ask for who stays */
        rv = assignment_ask(db, run, asked, p);
        return rv == APR_SUCCESS ? assignment_read_order(db, run, asked, p) : rv;
    }
    run->customer_id = mdl_rows_int(asked->customer, 0);
    run->email = mdl_rows_text(asked->order, 5);
    run->customer_changed = mdl_rows_int(asked->customer, 5) == run->now;
    run->customer_is_new = mdl_rows_int(asked->customer, 6) == run->now;
    run->order_id = mdl_rows_int(asked->order, 0);
    if (mdl_rows_int(asked->order, 1) != run->customer_id &&
        (rv = order_change_customer(db, run, p)) != APR_SUCCESS) {
        return rv;
    }
    run->is_new = strcmp(mdl_rows_text(asked->order, 3), asked->page_id) == 0;
    if (run->is_new && assign->must_exist) {
        return mdl_order_refuse_unknown(assign->problem);
    }
    if (!run->is_new && assign->must_be_new) {
        return mdl_problem_set(assign->problem, 409, "order_exists",
                               "There is an order with this number already.");
    }
    if (run->is_new) {
        run->made = order_made(run, asked, p);
    }
    rv = mdl_version_check(assign->versions, mdl_rows_int(asked->order, 4), assign->problem);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    access = mdl_rows_enum(asked->order, 2, mdl_order_access_names);
    if (access == MDL_ORDER_REVOKED || access == MDL_ORDER_REJECTED) {
        return mdl_problem_set(assign->problem, 409, "access_revoked",
                               "Access to this order was revoked; restore it first.");
    }
    run->held = access == MDL_ORDER_HELD;
    if ((rv = order_rename(db, run, mdl_rows_text(asked->order, 6), p)) != APR_SUCCESS) {
        return rv;
    }
    return run->fraud_check ? assignment_check_fraud(db, run, p) : APR_SUCCESS;
}

/* Stores the words of what is new, by one statement, and anew those of a customer who changed. */
static apr_status_t assignment_store_words(mdl_db_t *db, const run_t *run, const asked_t *asked,
                                           apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    const mdl_customer_t customer = {
        .id = run->customer_id,
        .storefront_customer_id = assign->customer.storefront_customer_id,
        .email = mdl_rows_text(asked->customer, 1),
        .first_name = mdl_rows_text(asked->customer, 2),
        .last_name = mdl_rows_text(asked->customer, 3)};
    mdl_search_words_t words = mdl_search_words(assign->shop_id, p);
    apr_status_t rv = APR_SUCCESS;

    if (run->is_new) {
        mdl_order_words(&words, run->order_id, assign->storefront_order_id, assign->name, NULL, p);
    }
    if (run->customer_is_new) {
        mdl_customer_words(&words, &customer, p);
    } else if (run->customer_changed) {
        rv = mdl_customer_store_words(db, customer.id, p);
    }
    return rv == APR_SUCCESS ? mdl_search_store(db, &words, p) : rv;
}

/* Has the storefront asked for what neither this request nor an earlier one gave. */
static apr_status_t assignment_look_up(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    mdl_lookup_want_t want = {
        .shop_id = assign->shop_id,
        .order_id = run->order_id,
        .wanted = run->check.pending ||
                  (run->send_email && run->email == NULL && !assign->customer_given)};
    apr_status_t rv = run->is_new && !want.wanted ? APR_SUCCESS : mdl_lookup_want(db, &want, p);

    run->looking_up = want.open;
    return rv;
}

static apr_time_t assignment_end(const run_t *run, const mdl_mapping_match_t *match)
{
    return match->access_days <= 0
               ? 0
               : run->now + apr_time_from_sec((apr_time_t)match->access_days * 86400);
}

static const char *assignment_title(const run_t *run, int index, apr_pool_t *p)
{
    const mdl_order_item_t *item = &APR_ARRAY_IDX(run->assign->items, index, mdl_order_item_t);

    return item->title != NULL
               ? item->title
               : mdl_product_title(run->matches[index].title, item->storefront_product_id, p);
}

static apr_status_t assignment_ask_insert(mdl_db_t *db, const run_t *run, int index,
                                          mdl_rows_t **row, apr_pool_t *p)
{
    const mdl_order_item_t *item = &APR_ARRAY_IDX(run->assign->items, index, mdl_order_item_t);
    const mdl_mapping_match_t *match = &run->matches[index];

    return mdl_db_select(
        db, row, p,
        MDL_Q(ASSIGNMENT_INSERT, .shop_id = run->assign->shop_id, .order_id = run->order_id,
              .storefront_product_id = item->storefront_product_id,
              .storefront_variant_id = item->storefront_variant_id,
              .title = assignment_title(run, index, p), .quantity = item->quantity,
              .mapping_id = match->id, .content = mdl_mapping_content_names[match->content],
              .download_limit = match->default_limit, .expires_at = assignment_end(run, match),
              .now = run->now));
}

/* Adds an assignment to a new order, as assignment_insert wrote it. */
static void order_add_assignment(run_t *run, int index, apr_int64_t id, apr_pool_t *p)
{
    const mdl_order_item_t *item = &APR_ARRAY_IDX(run->assign->items, index, mdl_order_item_t);
    const mdl_mapping_match_t *match = &run->matches[index];
    mdl_assignment_t *assignment = mdl_assignment_make(p);

    assignment->id = id;
    assignment->order_id = run->order_id;
    assignment->storefront_product_id = item->storefront_product_id;
    assignment->storefront_variant_id = item->storefront_variant_id;
    assignment->title = assignment_title(run, index, p);
    assignment->quantity = item->quantity;
    assignment->status = MDL_ASSIGNMENT_ACTIVE;
    assignment->mapping_id = match->id;
    assignment->download_type = match->download_type;
    assignment->expires_at = assignment_end(run, match);
    assignment->created_at = run->now;
    assignment->mapping_active = 1;
    assignment->download_limit = match->download_limit >= 0 ? match->download_limit
                                                            : match->default_limit;
    assignment->packs = match->packs;
    assignment->has_links = match->has_links;
    APR_ARRAY_PUSH(run->made->assignments, mdl_assignment_t *) = assignment;
}

static apr_status_t assignment_pin(mdl_db_t *db, run_t *run, apr_int64_t id, apr_pool_t *p)
{
    apr_int64_t files, links;
    apr_status_t rv = mdl_db_exec(db, &files, p, MDL_Q(ASSIGNMENT_PIN_FILES, id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->pinned += files;
    if (run->pinned > MDL_ORDER_FILES_MAX) {
        return mdl_order_too_many_files(run->assign->problem, p);
    }
    rv = mdl_db_exec(db, &links, p, MDL_Q(ASSIGNMENT_PIN_LINKS, id));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->pinned_links += links;
    return run->pinned_links > MDL_ORDER_LINKS_MAX
               ? mdl_order_too_many_links(run->assign->problem, p)
               : APR_SUCCESS;
}

/* Pins a new assignment's content and claims its license keys.  No row: it is not new. */
static apr_status_t assignment_fill(mdl_db_t *db, run_t *run, int index, mdl_rows_t *row,
                                    apr_pool_t *p)
{
    const mdl_mapping_match_t *match = &run->matches[index];
    int quantity = APR_ARRAY_IDX(run->assign->items, index, mdl_order_item_t).quantity;
    apr_int64_t id, license_keys;
    apr_status_t rv;

    if (!mdl_rows_next(row)) {
        return APR_SUCCESS;
    }
    id = mdl_rows_int(row, 0);
    mdl_json_add_int(run->ids, NULL, id);
    if (run->assign->created++ == 0) {
        run->title = assignment_title(run, index, p);
    }
    if (run->is_new) {
        order_add_assignment(run, index, id, p);
    }
    if (match->content == MDL_CONTENT_PINNED &&
        (rv = assignment_pin(db, run, id, p)) != APR_SUCCESS) {
        return rv;
    }
    if (run->tags->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_license_want(db, id, match->id, quantity, run->tags, &license_keys, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->license_keys += license_keys;
    return run->license_keys > MDL_ORDER_LICENSE_KEYS_MAX
               ? mdl_order_too_many_license_keys(run->assign->problem, p)
               : APR_SUCCESS;
}

static apr_status_t assignments_ask_tags(mdl_db_t *db, const run_t *run, mdl_rows_t **tags,
                                         apr_pool_t *p)
{
    int items = run->assign->items->nelts;
    apr_array_header_t *mappings = apr_array_make(p, items, sizeof(apr_int64_t));

    for (int i = 0; i < items; i++) {
        APR_ARRAY_PUSH(mappings, apr_int64_t) = run->matches[i].id;
    }
    return mdl_license_ask_lock(db, run->order_id, mappings, tags, p);
}

/* True for a new order whose products give no license keys: it need not lock their tags. */
static int order_has_no_license_keys(const run_t *run)
{
    int any = !run->is_new;

    for (int i = 0; i < run->assign->items->nelts; i++) {
        any |= run->matches[i].has_license_keys;
    }
    return !any;
}

/* The request's item for an assignment; NULL: there is none, or it gives no quantity. */
static const mdl_order_item_t *item_with_quantity(const run_t *run, const char *product,
                                                  const char *variant)
{
    for (int i = 0; i < run->assign->items->nelts; i++) {
        const mdl_order_item_t *item = &APR_ARRAY_IDX(run->assign->items, i, mdl_order_item_t);

        if (item->quantity_given && strcmp(item->storefront_product_id, product) == 0 &&
            strcmp(item->storefront_variant_id, variant) == 0) {
            return item;
        }
    }
    return NULL;
}

static apr_status_t quantity_note(run_t *run, const mdl_order_item_t *item,
                                  const mdl_quantity_t *change, mdl_assignment_status_t status,
                                  apr_pool_t *p)
{
    if (status != MDL_ASSIGNMENT_ACTIVE) {
        mdl_problem_add_detail(run->assign->problem,
                               apr_psprintf(p, "/items/%d/quantity", item->index), "revoked",
                               "This item was revoked; restore it first.", p);
        return mdl_problem_set(run->assign->problem, 409, "access_revoked",
                               "An item that was revoked has another quantity.");
    }
    run->raised |= change->quantity > change->before;
    APR_ARRAY_PUSH(run->quantities, mdl_quantity_t) = *change;
    return APR_SUCCESS;
}

/* Collects the earlier assignments whose quantity the request changes. */
static apr_status_t quantities_read(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv;

    run->quantities = apr_array_make(p, 2, sizeof(mdl_quantity_t));
    if (run->is_new) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select(db, &rows, p, MDL_Q(ASSIGNMENT_QUANTITIES, run->order_id));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const mdl_order_item_t *item = item_with_quantity(
            run, MDL_TEXT(rows, assignment_quantities, storefront_product_id),
            MDL_TEXT(rows, assignment_quantities, storefront_variant_id));
        mdl_quantity_t change = {.order_id = run->order_id,
                                 .assignment_id = MDL_INT(rows, assignment_quantities, id),
                                 .before = (int)MDL_INT(rows, assignment_quantities, quantity),
                                 .key_id = run->assign->key_id};

        if (item != NULL && item->quantity != change.before) {
            change.quantity = item->quantity;
            rv = quantity_note(
                run, item, &change,
                MDL_ENUM(rows, assignment_quantities, status, mdl_assignment_status_names), p);
        }
    }
    return rv;
}

static apr_status_t assignments_insert(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    int items = run->assign->items->nelts;
    mdl_rows_t **rows = apr_pcalloc(p, (apr_size_t)items * sizeof *rows);
    mdl_rows_t *tags = NULL;
    int without = run->assign->no_license_keys || order_has_no_license_keys(run);
    apr_status_t rv = without ? APR_SUCCESS : assignments_ask_tags(db, run, &tags, p);

    for (int i = 0; rv == APR_SUCCESS && i < items; i++) {
        if (run->matches[i].id != 0) {
            rv = assignment_ask_insert(db, run, i, &rows[i], p);
        }
    }
    if (rv == APR_SUCCESS) {
        rv = assignment_look_up(db, run, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->tags = tags != NULL ? mdl_license_read_lock(tags, p)
                             : apr_array_make(p, 0, sizeof(apr_int64_t));
    for (int i = 0; rv == APR_SUCCESS && i < items; i++) {
        rv = rows[i] != NULL ? assignment_fill(db, run, i, rows[i], p) : APR_SUCCESS;
    }
    return rv == APR_SUCCESS ? quantities_read(db, run, p) : rv;
}

/* Finds out whether the order needs another email after its newest. */
static apr_status_t email_is_wanted(mdl_db_t *db, const run_t *run, const mdl_email_state_t *last,
                                    int *wanted, apr_pool_t *p)
{
    int created = run->assign->created > 0;
    int delayed = 0;
    apr_status_t rv = APR_SUCCESS;

    if (last->status == MDL_EMAIL_NOT_REQUESTED) {
        *wanted = 1;
    } else if (last->status == MDL_EMAIL_NO_RECIPIENT) {
        *wanted = created || run->email != NULL || run->looking_up;
    } else if (!created || last->status == MDL_EMAIL_HELD || mdl_email_is_awaited(last)) {
        *wanted = 0; /* it is held or has no address yet, and will include everything */
    } else {
        if (run->email != NULL && last->to != NULL && strcmp(run->email, last->to) == 0) {
            rv = mdl_email_is_delayed(db, run->order_id, &delayed, p);
        }
        *wanted = !delayed;
    }
    return rv;
}

static apr_status_t assignment_queue_email(mdl_db_t *db, run_t *run, apr_pool_t *p)
{
    const mdl_order_assign_t *assign = run->assign;
    mdl_email_new_t email = {.shop_id = assign->shop_id,
                             .order_id = run->order_id,
                             .to = run->email,
                             .host = assign->mail_host,
                             .held = run->held,
                             .awaited = run->looking_up};
    mdl_email_state_t last = {.status = MDL_EMAIL_NOT_REQUESTED};
    int wanted;
    apr_status_t rv;

    if (!run->is_new && (rv = mdl_email_state(db, run->order_id, &last, p)) != APR_SUCCESS) {
        return rv;
    }
    if (mdl_email_is_awaited(&last) && email.to != NULL) {
        run->queued = 1;
        return mdl_email_address(db, assign->shop_id, run->order_id, email.to, p);
    }
    if ((rv = email_is_wanted(db, run, &last, &wanted, p)) != APR_SUCCESS) {
        return rv;
    }
    run->queued = wanted;
    if (wanted && run->is_new) {
        run->made->email = mdl_email_state_of_new(&email);
    }
    return wanted ? mdl_email_queue(db, &email, p) : APR_SUCCESS;
}

static apr_status_t assignment_add_entry(mdl_db_t *db, const run_t *run, apr_pool_t *p)
{
    mdl_json_t *details = mdl_json_object(p);
    mdl_timeline_entry_t entry = {.action = "assigned",
                                  .assignment_ids = mdl_json_text(run->ids, NULL, p),
                                  .key_id = run->assign->key_id,
                                  .user = run->assign->user,
                                  .order_is_new = run->is_new};

    if (run->assign->created == 0 && !run->queued) {
        return run->customer_changed ? mdl_timeline_touch(db, run->order_id, p) : APR_SUCCESS;
    }
    mdl_json_add_bool(details, "send_email", run->send_email);
    mdl_json_add_bool(details, "fraud_check", run->fraud_check);
    entry.details = mdl_json_text(details, NULL, p);
    return mdl_timeline_add(db, run->order_id, &entry, p);
}

static apr_status_t assignment_notify(mdl_db_t *db, const run_t *run, apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = run->assign->shop_id,
                         .type = MDL_EVENT_ORDER_ASSIGNED,
                         .order_id = run->order_id};

    if (run->assign->created == 0) {
        return APR_SUCCESS;
    }
    mdl_json_add_copy(data, "assignment_ids", run->ids);
    mdl_json_add_bool(data, "is_new", run->is_new);
    mdl_json_add_string(data, "title", run->title);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

/* Adds the entries and events of the assignment before those of its consequences, the order in
   which the shop's system and staff read them. */
static apr_status_t assignment_tell(mdl_db_t *db, const run_t *run, apr_pool_t *p)
{
    apr_int64_t given;
    apr_status_t rv;

    if ((rv = assignment_add_entry(db, run, p)) != APR_SUCCESS ||
        (rv = assignment_notify(db, run, p)) != APR_SUCCESS ||
        (rv = mdl_fraud_tell(db, &run->check, p)) != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < run->quantities->nelts; i++) {
        rv = mdl_quantity_set(db, &APR_ARRAY_IDX(run->quantities, i, mdl_quantity_t), p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return run->tags->nelts > 0 ? mdl_license_fill_order(db, run->order_id, &given, p)
                                : APR_SUCCESS;
}

apr_status_t mdl_order_assign(mdl_db_t *db, apr_pool_t *p, mdl_order_assign_t *assign)
{
    run_t run = {.assign = assign, .now = apr_time_now(), .ids = mdl_json_array(p)};
    mdl_order_find_t find = {.default_download_limit = assign->default_download_limit};
    asked_t asked = {0};
    apr_status_t rv;

    assign->created = 0;
    assign->skipped = apr_array_make(p, 0, sizeof(const mdl_order_item_t *));
    run.matches = apr_pcalloc(p, (apr_size_t)assign->items->nelts * sizeof *run.matches);
    if ((rv = assignment_ask(db, &run, &asked, p)) != APR_SUCCESS ||
        (rv = items_match(db, &run, &asked, p)) != APR_SUCCESS ||
        (rv = assignment_read_order(db, &run, &asked, p)) != APR_SUCCESS ||
        (rv = assignment_store_words(db, &run, &asked, p)) != APR_SUCCESS ||
        (rv = mdl_order_note_typo(db, run.order_id, run.email, p)) != APR_SUCCESS ||
        (rv = assignments_insert(db, &run, p)) != APR_SUCCESS) {
        return rv;
    }
    if (run.send_email && (rv = assignment_queue_email(db, &run, p)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = assignment_tell(db, &run, p)) != APR_SUCCESS) {
        return rv;
    }
    find.id = run.order_id;
    find.made = order_has_no_license_keys(&run) && !run.fraud_check ? run.made : NULL;
    rv = mdl_order_find(db, p, &find);
    assign->is_new = run.is_new;
    assign->order = find.order;
    return rv == APR_SUCCESS && (assign->created > 0 || run.raised)
               ? mdl_order_check_size(find.order, assign->problem, p)
               : rv;
}
