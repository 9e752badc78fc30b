#include "core/order/order.h"

#include <apr_hash.h>
#include <apr_strings.h>

#include "core/ids.h"
#include "core/order/assignment_content.h"
#include "core/order/timeline.h"
#include "core/order/lookup.h"
#include "core/order/visit.h"
#include "core/download/reservation.h"
#include "core/download/session.h"
#include "core/version.h"

#define WITHDRAWAL apr_time_from_sec(14 * 86400)

#define EVENTS_SHOWN    50
#define DOWNLOADS_SHOWN 50

const char *const mdl_help_state_names[] = {[MDL_HELP_ASKED] = "asked",
                                            [MDL_HELP_GRANTED] = "granted",
                                            [MDL_HELP_REFUSED] = "refused",
                                            [MDL_HELP_LAPSED] = "lapsed",
                                            NULL};

mdl_order_t *mdl_order_make(apr_pool_t *p)
{
    mdl_order_t *order = apr_pcalloc(p, sizeof *order);

    order->email.status = MDL_EMAIL_NOT_REQUESTED;
    order->assignments = apr_array_make(p, 4, sizeof(mdl_assignment_t *));
    return order;
}

const char *mdl_order_called(const mdl_order_t *order)
{
    return order->name != NULL ? order->name : order->storefront_order_id;
}

const char *mdl_order_withdrawal(const mdl_order_t *order, apr_time_t now)
{
    return now - order->created_at < WITHDRAWAL ? order->withdrawal_url : NULL;
}

static mdl_order_t *order_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_order_t *order = mdl_order_make(p);

    MDL_READ(row, order, order, id, storefront_order_id, page_id, access_reason, created_at,
             shop_id, shop_domain, shop_email, withdrawal_url, fraud_signals, risk_pending,
             updated_at, own_address, address, declared_at);
    order->undeclared = MDL_INT(row, order, undeclared) != 0;
    order->state.access = MDL_ENUM(row, order, access_status, mdl_order_access_names);
    order->state.decision = MDL_ENUM(row, order, fraud_decision, mdl_fraud_decision_names);
    order->customer.id = MDL_INT(row, order, customer_id);
    MDL_READ(row, order, &order->customer, storefront_customer_id, email, first_name, last_name,
             locale);
    order->name = MDL_TEXT(row, order, order_name);
    order->shop_name = MDL_TEXT(row, order, name);
    MDL_READ(row, order, &order->brand, accent, languages, email_texts, logo_sha256, logo_width,
             logo_height);
    if (order->fraud_signals != NULL) {
        order->fraud_level = MDL_ENUM(row, order, fraud_level, mdl_risk_names);
    }
    order->shop_help = MDL_ENUM(row, order, shop_help, mdl_shop_help_names);
    order->shop_blocked = !MDL_NULL(row, order, blocked_at);
    if (!MDL_NULL(row, order, status)) {
        mdl_email_state_of_row(&order->email, row, mdl_c_order_status);
    }
    return order;
}

static mdl_assignment_t *assignment_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_assignment_t *assignment = mdl_assignment_make(p);

    MDL_READ(row, assignment, assignment, id, order_id, storefront_product_id,
             storefront_variant_id, title, quantity, mapping_id, expires_at, created_at, packs);
    assignment->status = MDL_ENUM(row, assignment, status, mdl_assignment_status_names);
    assignment->download_type = MDL_ENUM(row, assignment, download_type, mdl_download_type_names);
    assignment->mapping_active = MDL_INT(row, assignment, is_active) != 0;
    assignment->fresh_downloads = MDL_INT(row, assignment, fresh_downloads) != 0;
    assignment->has_license_keys = !MDL_NULL(row, assignment, license_keys);
    assignment->license_keys_pending = MDL_INT(row, assignment, license_keys);
    assignment->download_limit = (int)MDL_INT_OR_NONE(row, assignment, download_limit);
    assignment->has_links = !MDL_NULL(row, assignment, has_links);
    return assignment;
}

/* An index of orders by id, to find the order of another statement's row. */
static void index_add(apr_hash_t *index, const mdl_order_t *order)
{
    apr_hash_set(index, &order->id, sizeof order->id, order);
}

/* NULL: the order was made since. */
static mdl_order_t *index_find(apr_hash_t *index, apr_int64_t id)
{
    return apr_hash_get(index, &id, sizeof id);
}

static apr_status_t select_of(mdl_db_t *db, mdl_statement_t statement,
                              const apr_array_header_t *ids, mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p, MDL_Q_AS(statement, ORDERS_BY_ID, ids));
}

static void order_read_assignments(mdl_rows_t *rows, apr_hash_t *orders, apr_pool_t *p)
{
    while (mdl_rows_next(rows)) {
        mdl_assignment_t *assignment = assignment_of_row(rows, p);
        mdl_order_t *order = index_find(orders, assignment->order_id);

        assignment->note = MDL_TEXT(rows, assignments_of_orders, note);
        if (order != NULL) {
            APR_ARRAY_PUSH(order->assignments, mdl_assignment_t *) = assignment;
        }
    }
}

static void set_expiry(mdl_order_t *order)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        apr_time_t end = APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *)->expires_at;

        if (end == 0) {
            order->expires_at = 0;
            return;
        }
        if (end > order->expires_at) {
            order->expires_at = end;
        }
    }
}

static void order_read_counts(mdl_rows_t *rows, apr_hash_t *orders)
{
    while (mdl_rows_next(rows)) {
        mdl_order_t *order = index_find(orders, MDL_INT(rows, assignments_count, order_id));

        if (order != NULL) {
            order->assignment_count = MDL_INT(rows, assignments_count, assignments);
            order->expires_at = MDL_INT(rows, assignments_count, latest_end);
        }
    }
}

/* What was asked for of orders besides their heads; NULL: not asked for. */
typedef struct {
    mdl_rows_t *assignments;
    mdl_content_read_t content;
} orders_asked_t;

/* Ends a snapshot.  Whatever is read later is newer: links, license keys, the files of packs, and
   the orders of a list that are read again because all together exceeded the limits. */
static apr_status_t orders_ask(mdl_db_t *db, const apr_array_header_t *ids,
                               const mdl_order_find_t *find, orders_asked_t *asked, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    *asked = (orders_asked_t){.content = {.default_download_limit = find->default_download_limit,
                                          .max_files = MDL_ORDER_FILES_MAX}};
    if (find->made == NULL) {
        rv = mdl_db_select(
            db, &asked->assignments, p,
            MDL_Q(ASSIGNMENTS_OF_ORDERS, .ids = ids, .with_notes = find->with_notes));
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_content_ask_of_orders(db, ids, &asked->content, p);
    }
    return rv == APR_SUCCESS ? mdl_db_end_snapshot(db) : rv;
}

/* All assignments of orders, in the same order. */
static apr_array_header_t *orders_assignments(const apr_array_header_t *orders, apr_pool_t *p)
{
    apr_array_header_t *all = apr_array_make(p, 4, sizeof(mdl_assignment_t *));

    for (int i = 0; i < orders->nelts; i++) {
        apr_array_cat(all, APR_ARRAY_IDX(orders, i, mdl_order_t *)->assignments);
    }
    return all;
}

/* Drops the order whose assignment was not read completely, and all orders after it.  The first
   order is kept, though incomplete; returns whether it is. */
static int orders_cut(apr_array_header_t *orders, const mdl_assignment_t *cut)
{
    for (int i = 0; cut != NULL && i < orders->nelts; i++) {
        if (APR_ARRAY_IDX(orders, i, const mdl_order_t *)->id == cut->order_id) {
            orders->nelts = i == 0 ? 1 : i;
            return i == 0;
        }
    }
    return 0;
}

/* Fills orders (mdl_order_t *, newest first) with content, and drops those beyond the limits. */
static apr_status_t orders_read(mdl_db_t *db, orders_asked_t *asked, apr_array_header_t *orders,
                                apr_pool_t *p)
{
    const mdl_assignment_t *const *cut = asked->content.cut;
    apr_hash_t *index = apr_hash_make(p);
    apr_status_t rv;

    for (int i = 0; i < orders->nelts; i++) {
        index_add(index, APR_ARRAY_IDX(orders, i, mdl_order_t *));
    }
    if (asked->assignments != NULL) {
        order_read_assignments(asked->assignments, index, p);
    }
    rv = mdl_content_read(db, &asked->content, orders_assignments(orders, p), p);
    for (int i = 0; i < orders->nelts; i++) {
        set_expiry(APR_ARRAY_IDX(orders, i, mdl_order_t *));
    }
    if (orders->nelts > 0) {
        mdl_order_t *first = APR_ARRAY_IDX(orders, 0, mdl_order_t *);

        first->files_truncated = orders_cut(orders, cut[MDL_CONTENT_FILES]);
        first->links_truncated = orders_cut(orders, cut[MDL_CONTENT_LINKS]);
        first->license_keys_truncated = orders_cut(orders, cut[MDL_CONTENT_LICENSE_KEYS]);
    }
    return rv;
}

static apr_status_t order_ask_head(mdl_db_t *db, const mdl_order_find_t *find, mdl_rows_t **row,
                                   apr_pool_t *p)
{
    if (find->page_id != NULL) {
        return mdl_db_select(db, row, p,
                             MDL_Q(ORDER_BY_PAGE_ID, .network = find->network,
                                   .day = mdl_order_visit_day(apr_time_now()),
                                   .page_id = find->page_id));
    }
    if (find->id != 0) {
        return mdl_db_select(db, row, p, MDL_Q(ORDER_BY_ID, find->id));
    }
    return mdl_db_select(db, row, p,
                         MDL_Q(ORDER_BY_STOREFRONT_ID, .shop_id = find->shop_id,
                               .storefront_order_id = find->storefront_order_id));
}

static apr_status_t order_read_head(mdl_rows_t *row, mdl_order_find_t *find, apr_pool_t *p)
{
    if (!mdl_rows_next(row)) {
        return APR_ENOENT;
    }
    find->order = order_of_row(row, p);
    find->order->visit_known = find->network == NULL ||
                               MDL_INT(row, order_by_page_id, visit_known) != 0;
    if (find->page_id != NULL && !MDL_NULL(row, order_by_page_id, help_state)) {
        find->order->help = (mdl_help_t){
            .state = MDL_ENUM(row, order_by_page_id, help_state, mdl_help_state_names),
            .asked_at = MDL_INT(row, order_by_page_id, help_asked_at),
            .answer = MDL_TEXT(row, order_by_page_id, help_answer)};
    }
    return APR_SUCCESS;
}

apr_status_t mdl_order_head(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv = order_ask_head(db, find, &row, p);

    return rv == APR_SUCCESS ? order_read_head(row, find, p) : rv;
}

/* What else was asked for of an order; NULL: not asked for. */
typedef struct {
    mdl_rows_t *timeline;
    mdl_rows_t *sessions;
    mdl_rows_t *lookup;
    mdl_rows_t *tags;
} order_more_t;

static apr_status_t order_ask_more(mdl_db_t *db, const mdl_order_find_t *find, apr_int64_t id,
                                   order_more_t *more, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;

    *more = (order_more_t){NULL, NULL, NULL, NULL};
    if (find->with_timeline && (rv = mdl_timeline_ask_list(db, id, APR_INT64_MAX, EVENTS_SHOWN,
                                                           &more->timeline, p)) == APR_SUCCESS) {
        rv = mdl_session_ask_list(db, id, NULL, DOWNLOADS_SHOWN, &more->sessions, p);
    }
    if (rv == APR_SUCCESS && find->with_lookup &&
        (rv = mdl_lookup_ask_latest(db, id, &more->lookup, p)) == APR_SUCCESS) {
        rv = mdl_db_select(db, &more->tags, p, MDL_Q(LICENSE_CLAIMS_OF_ORDER, id));
    }
    return rv;
}

static void order_read_more(mdl_order_t *order, const order_more_t *more, apr_pool_t *p)
{
    if (more->timeline != NULL) {
        order->timeline = mdl_timeline_read_all(more->timeline, p);
        order->downloads = mdl_session_read_list(more->sessions, p);
    }
    order->has_lookup = more->lookup != NULL &&
                        mdl_lookup_read_latest(more->lookup, &order->lookup_status,
                                               &order->lookup_error);
    while (more->tags != NULL && mdl_rows_next(more->tags)) {
        const char *before = order->waiting_tags;

        order->waiting_tags = apr_psprintf(p, "%s%s%" APR_INT64_T_FMT, before != NULL ? before : "",
                                           before != NULL ? ", " : "", mdl_rows_int(more->tags, 0));
    }
}

/* Counts the downloads of a file that sessions hold. */
static void file_count_held(mdl_order_file_t *file, const apr_array_header_t *reservations)
{
    for (int i = 0; i < reservations->nelts; i++) {
        const mdl_reservation_t *each = APR_ARRAY_IDX(reservations, i, mdl_reservation_t *);

        if (each->assignment_id == file->assignment_id &&
            mdl_reservation_holds(each, file->asset_id)) {
            file->downloads.running += each->is_running;
            file->downloads.resting += !each->is_running;
        }
    }
}

static int file_is_exhausted(const mdl_order_file_t *file)
{
    return mdl_entitlement_of_file(file->status, file->downloads, file->download_limit) ==
           MDL_ENTITLEMENT_EXHAUSTED;
}

/* Where no download is left, tells those that sessions hold from those that are used up. */
static apr_status_t order_read_held(mdl_db_t *db, const mdl_order_t *order, apr_pool_t *p)
{
    apr_array_header_t *files = apr_array_make(p, 4, sizeof(mdl_order_file_t *));
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t)), *reservations;
    apr_status_t rv;

    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(order->assignments, i,
                                                           const mdl_assignment_t *);
        int before = files->nelts;

        for (int j = 0; j < assignment->files->nelts; j++) {
            mdl_order_file_t *file = APR_ARRAY_IDX(assignment->files, j, mdl_order_file_t *);

            if (file_is_exhausted(file)) {
                APR_ARRAY_PUSH(files, mdl_order_file_t *) = file;
            }
        }
        if (files->nelts > before) {
            APR_ARRAY_PUSH(ids, apr_int64_t) = assignment->id;
        }
    }
    if (ids->nelts == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_reservations_read(db, ids, &reservations, p);
    for (int i = 0; i < files->nelts; i++) {
        file_count_held(APR_ARRAY_IDX(files, i, mdl_order_file_t *), reservations);
    }
    return rv;
}

/* With a known id, all statements are sent before the first answer is read. */
apr_status_t mdl_order_find(mdl_db_t *db, apr_pool_t *p, mdl_order_find_t *find)
{
    apr_array_header_t *orders = apr_array_make(p, 1, sizeof(mdl_order_t *));
    apr_int64_t id = find->id;
    orders_asked_t asked;
    order_more_t more;
    mdl_rows_t *head = NULL;
    apr_status_t rv = find->made == NULL ? order_ask_head(db, find, &head, p) : APR_SUCCESS;

    find->order = find->made;
    if (rv == APR_SUCCESS && id == 0 && (rv = order_read_head(head, find, p)) == APR_SUCCESS) {
        id = find->order->id;
    }
    if (rv != APR_SUCCESS || (rv = order_ask_more(db, find, id, &more, p)) != APR_SUCCESS ||
        (rv = orders_ask(db, mdl_ids_of(id, p), find, &asked, p)) != APR_SUCCESS ||
        (find->order == NULL && (rv = order_read_head(head, find, p)) != APR_SUCCESS)) {
        return rv;
    }
    APR_ARRAY_PUSH(orders, mdl_order_t *) = find->order;
    order_read_more(find->order, &more, p);
    rv = orders_read(db, &asked, orders, p);
    if (rv == APR_SUCCESS && find->with_lookup) {
        rv = mdl_assignment_files_locate(db, find->order->assignments, p);
    }
    return rv == APR_SUCCESS ? order_read_held(db, find->order, p) : rv;
}

/* Reads orders, newest first, up to the limits of one order. */
static apr_status_t orders_load(mdl_db_t *db, const apr_array_header_t *ids,
                                const mdl_order_find_t *what, apr_array_header_t **orders,
                                apr_pool_t *p)
{
    orders_asked_t asked;
    mdl_rows_t *heads;
    apr_status_t rv = select_of(db, MDL_Q_ORDERS_BY_ID, ids, &heads, p);

    if (rv != APR_SUCCESS || (rv = orders_ask(db, ids, what, &asked, p)) != APR_SUCCESS) {
        return rv;
    }
    *orders = apr_array_make(p, ids->nelts, sizeof(mdl_order_t *));
    while (mdl_rows_next(heads)) {
        APR_ARRAY_PUSH(*orders, mdl_order_t *) = order_of_row(heads, p);
    }
    return orders_read(db, &asked, *orders, p);
}

/* The same for summaries, which have no limits. */
static apr_status_t orders_load_summaries(mdl_db_t *db, const apr_array_header_t *ids,
                                          apr_array_header_t **orders, apr_pool_t *p)
{
    apr_hash_t *index = apr_hash_make(p);
    mdl_rows_t *heads, *counts;
    apr_status_t rv = select_of(db, MDL_Q_ORDERS_BY_ID, ids, &heads, p);

    if (rv != APR_SUCCESS ||
        (rv = select_of(db, MDL_Q_ASSIGNMENTS_COUNT, ids, &counts, p)) != APR_SUCCESS ||
        (rv = mdl_db_end_snapshot(db)) != APR_SUCCESS) {
        return rv;
    }
    *orders = apr_array_make(p, ids->nelts, sizeof(mdl_order_t *));
    while (mdl_rows_next(heads)) {
        mdl_order_t *order = order_of_row(heads, p);

        order->assignments = NULL;
        APR_ARRAY_PUSH(*orders, mdl_order_t *) = order;
        index_add(index, order);
    }
    order_read_counts(counts, index);
    return APR_SUCCESS;
}

apr_status_t mdl_order_find_all(mdl_db_t *db, apr_pool_t *p, mdl_order_find_all_t *find)
{
    const mdl_order_find_t what = {.default_download_limit = find->default_download_limit,
                                   .with_notes = 1};

    return orders_load(db, find->ids, &what, &find->orders, p);
}

apr_status_t mdl_order_refuse_unknown(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "order_not_found", "There is no such order.");
}

apr_status_t mdl_order_lock(mdl_db_t *db, mdl_order_find_t *find, mdl_problem_t *problem,
                            apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(ORDER_LOCK, .shop_id = find->shop_id,
                                 .storefront_order_id = find->storefront_order_id));
    if (rv == APR_ENOENT) {
        return mdl_order_refuse_unknown(problem);
    }
    if (rv == APR_SUCCESS) {
        rv = mdl_order_find(db, p, find);
    }
    return rv == APR_SUCCESS ? mdl_version_check(find->versions, find->order->updated_at, problem)
                             : rv;
}

/* Puts orders in the order of their places, up to a place without an order; returns how many. */
static int orders_arrange(const apr_array_header_t *orders, const apr_array_header_t *places,
                          apr_array_header_t *arranged)
{
    apr_hash_t *index = apr_hash_make(arranged->pool);

    arranged->nelts = 0;
    for (int i = 0; i < orders->nelts; i++) {
        index_add(index, APR_ARRAY_IDX(orders, i, mdl_order_t *));
    }
    for (int i = 0; i < places->nelts; i++) {
        mdl_order_t *order = index_find(index, APR_ARRAY_IDX(places, i, mdl_order_place_t).id);

        if (order == NULL) {
            break;
        }
        APR_ARRAY_PUSH(arranged, mdl_order_t *) = order;
    }
    return arranged->nelts;
}

/* Reads the first orders of a list, at most count; *read gets how many fit the limits. */
static apr_status_t orders_read_first(mdl_db_t *db, mdl_order_list_t *list, int count, int *read,
                                      apr_pool_t *p)
{
    const apr_array_header_t *places = list->filter.places;
    const mdl_order_find_t what = {.default_download_limit = list->default_download_limit};
    apr_array_header_t *ids = apr_array_make(p, count, sizeof(apr_int64_t));
    apr_array_header_t *orders;
    apr_status_t rv;

    for (int i = 0; i < count; i++) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = APR_ARRAY_IDX(places, i, mdl_order_place_t).id;
    }
    rv = list->page.summary ? orders_load_summaries(db, ids, &orders, p)
                            : orders_load(db, ids, &what, &orders, p);
    *read = rv == APR_SUCCESS ? orders_arrange(orders, places, list->page.found) : 0;
    return rv;
}

apr_status_t mdl_order_list(mdl_db_t *db, apr_pool_t *p, mdl_order_list_t *list)
{
    mdl_list_page_t *page = &list->page;
    const apr_array_header_t *places;
    int count, read = 0;
    apr_status_t rv;

    list->filter.shop_id = page->shop_id;
    list->filter.limit = page->limit - 1;
    page->found = apr_array_make(p, page->limit, sizeof(mdl_order_t *));
    if ((rv = mdl_order_filter(db, p, &list->filter)) != APR_SUCCESS) {
        return rv;
    }
    places = list->filter.places;
    count = places->nelts;
    /* Reading drops the lowest ids first, which may come first in this list. */
    while (rv == APR_SUCCESS && count > 0 && read == 0) {
        rv = orders_read_first(db, list, count, &read, p);
        count /= 2;
    }
    page->next = read > 0 && read < places->nelts
                     ? APR_ARRAY_IDX(places, read - 1, mdl_order_place_t).text
                     : list->filter.next;
    page->more = page->next != NULL;
    return rv;
}

static apr_status_t select_assignments(mdl_db_t *db, const mdl_assignment_list_t *list,
                                       mdl_rows_t **rows, apr_pool_t *p)
{
    return list->id != 0
               ? mdl_db_select(
                     db, rows, p,
                     MDL_Q(ASSIGNMENT_OF_ORDER, .order_id = list->order->id, .id = list->id))
               : mdl_db_select(db, rows, p,
                               MDL_Q(ASSIGNMENT_LIST, .order_id = list->order->id,
                                     .before = list->page.before, .limit = list->page.limit));
}

/* Drops the first assignment that was not read completely, and all after it; never drops all. */
static void assignments_cut(mdl_list_page_t *page, const mdl_assignment_t *const cut[MDL_CONTENTS])
{
    for (int i = 0; i < page->found->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(page->found, i,
                                                           const mdl_assignment_t *);

        if (assignment == cut[MDL_CONTENT_FILES] || assignment == cut[MDL_CONTENT_LINKS] ||
            assignment == cut[MDL_CONTENT_LICENSE_KEYS]) {
            page->found->nelts = i > 0 ? i : 1;
            page->more = 1;
            return;
        }
    }
}

apr_status_t mdl_assignment_list(mdl_db_t *db, apr_pool_t *p, mdl_assignment_list_t *list)
{
    mdl_order_find_t find = {.shop_id = list->page.shop_id,
                             .storefront_order_id = list->storefront_order_id};
    mdl_content_read_t content = {.default_download_limit = list->default_download_limit,
                                  .max_files = list->id != 0 ? MDL_ASSIGNMENT_FILES_MAX
                                                             : MDL_ORDER_FILES_MAX};
    apr_array_header_t *ids = apr_array_make(p, 4, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv;

    if ((rv = mdl_order_head(db, p, &find)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? mdl_order_refuse_unknown(list->problem) : rv;
    }
    list->order = find.order;
    list->page.found = apr_array_make(p, 4, sizeof(mdl_assignment_t *));
    rv = select_assignments(db, list, &rows, p);
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_assignment_t *assignment = assignment_of_row(rows, p);

        APR_ARRAY_PUSH(list->page.found, mdl_assignment_t *) = assignment;
        APR_ARRAY_PUSH(ids, apr_int64_t) = assignment->id;
    }
    if (rv != APR_SUCCESS || ids->nelts == 0 ||
        (rv = mdl_content_ask(db, ids, &content, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_content_read(db, &content, list->page.found, p);
    assignments_cut(&list->page, content.cut);
    return rv;
}

mdl_entitlement_t mdl_assignment_entitlement(const mdl_assignment_t *assignment, apr_time_t now)
{
    return mdl_entitlement_of_assignment(assignment->status, assignment->expires_at, now);
}

int mdl_assignment_open(const mdl_assignment_t *assignment, apr_time_t now)
{
    return mdl_assignment_entitlement(assignment, now) == MDL_ENTITLEMENT_OK;
}

int mdl_order_has_open(const mdl_order_t *order, apr_time_t now)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        if (mdl_assignment_open(APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *), now)) {
            return 1;
        }
    }
    return 0;
}

mdl_entitlement_t mdl_order_entitlement(const mdl_order_t *order, apr_time_t now)
{
    mdl_entitlement_t entitlement = mdl_entitlement_of_order(order->state.access,
                                                             order->undeclared);
    int all = order->assignments->nelts, expired = 0;

    if ((entitlement != MDL_ENTITLEMENT_OK && entitlement != MDL_ENTITLEMENT_UNDECLARED) ||
        all == 0 || mdl_order_has_open(order, now)) {
        return entitlement;
    }
    for (int i = 0; i < all; i++) {
        expired += mdl_assignment_entitlement(
                       APR_ARRAY_IDX(order->assignments, i, mdl_assignment_t *), now) ==
                   MDL_ENTITLEMENT_EXPIRED;
    }
    return expired > 0 ? MDL_ENTITLEMENT_EXPIRED : MDL_ENTITLEMENT_REVOKED;
}

apr_status_t mdl_order_check_declared(const mdl_order_t *order, mdl_problem_t *problem)
{
    return order->undeclared
               ? mdl_problem_set(problem, 409, "declaration_required",
                                 "The customer has yet to declare on the order's page that the "
                                 "delivery may begin.")
               : APR_SUCCESS;
}

apr_status_t mdl_order_check_active(const mdl_order_t *order, mdl_problem_t *problem)
{
    switch (order->state.access) {
    case MDL_ORDER_ACTIVE:
        return APR_SUCCESS;
    case MDL_ORDER_HELD:
        return mdl_problem_set(problem, 409, "order_held",
                               "This order is under review; approve it first.");
    case MDL_ORDER_REJECTED:
        return mdl_problem_set(problem, 409, "access_revoked",
                               "This order was rejected; approve it first.");
    case MDL_ORDER_REVOKED:
        break;
    }
    return mdl_problem_set(problem, 409, "access_revoked",
                           "Access to this order was revoked; restore it first.");
}
