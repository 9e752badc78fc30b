#include "core/order/merge.h"

#include <strings.h>

#include <apr_time.h>

#include "base/text/json.h"
#include "base/ulid.h"
#include "core/ids.h"
#include "core/job.h"
#include "core/order/customer.h"
#include "core/order/order_words.h"
#include "core/shop/event.h"
#include "core/version.h"

#define MOVED    200 /* orders in a transaction */
#define ATTEMPTS 12

/* One of the two, as it was before. */
typedef struct {
    mdl_customer_t customer;
    const char *email_replaced;
    apr_int64_t merged_into; /* 0: nobody */
} person_t;

/* Locks both, and reads them. */
static apr_status_t persons_lock(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t from_id,
                                 apr_int64_t into_id, person_t *from, person_t *into, apr_pool_t *p)
{
    apr_array_header_t *ids = mdl_ids_of(from_id, p);
    mdl_rows_t *rows;
    apr_status_t rv;

    APR_ARRAY_PUSH(ids, apr_int64_t) = into_id;
    *from = *into = (person_t){.merged_into = 0};
    rv = mdl_db_select(db, &rows, p, MDL_Q(CUSTOMERS_LOCK, .ids = ids, .shop_id = shop_id));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        person_t *person = MDL_INT(rows, customers_lock, id) == from_id ? from : into;

        MDL_READ(rows, customers_lock, &person->customer, id, storefront_customer_id, email,
                 first_name, last_name, locale, updated_at);
        MDL_READ(rows, customers_lock, person, email_replaced, merged_into);
    }
    return rv;
}

/* The address that the orders of a customer keep, if the other has another; or NULL. */
static const char *address_kept(const person_t *from, const person_t *into)
{
    const char *address = from->customer.email, *other = into->customer.email;

    return address != NULL && other != NULL && strcasecmp(address, other) != 0 ? address : NULL;
}

static apr_status_t orders_store_words(mdl_db_t *db, apr_int64_t shop_id,
                                       const apr_array_header_t *ids, const char *address,
                                       apr_pool_t *p)
{
    mdl_search_words_t words = mdl_search_words(shop_id, p);

    for (int i = 0; i < ids->nelts; i++) {
        mdl_search_add(&words, MDL_SEARCH_ORDER, APR_ARRAY_IDX(ids, i, apr_int64_t), address, p);
    }
    return mdl_search_store(db, &words, p);
}

/* Moves the newest orders; *more: others may be left. */
static apr_status_t orders_move(mdl_db_t *db, apr_int64_t shop_id, const person_t *from,
                                const person_t *into, int *more, apr_pool_t *p)
{
    apr_array_header_t *ids = apr_array_make(p, 8, sizeof(apr_int64_t));
    apr_array_header_t *followed = apr_array_make(p, 8, sizeof(apr_int64_t));
    const char *address = address_kept(from, into);
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q(CUSTOMER_ORDERS_LOCK, .customer_id = from->customer.id, .limit = MOVED));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(ids, apr_int64_t) = MDL_INT(rows, customer_orders_lock, id);
        if (MDL_INT(rows, customer_orders_lock, follows)) {
            APR_ARRAY_PUSH(followed, apr_int64_t) = MDL_INT(rows, customer_orders_lock, id);
        }
    }
    *more = ids->nelts == MOVED;
    if (rv != APR_SUCCESS || ids->nelts == 0) {
        return rv;
    }
    rv = mdl_db_exec(db, NULL, p,
                     MDL_Q(ORDERS_MOVE, .customer_id = into->customer.id, .recipient = address,
                           .now = apr_time_now(), .ids = ids));
    return rv == APR_SUCCESS && address != NULL
               ? orders_store_words(db, shop_id, followed, address, p)
               : rv;
}

static apr_status_t merge_refuse_unknown(const mdl_merge_t *merge, apr_pool_t *p)
{
    static const char message[] = "There is no such customer.";

    mdl_problem_add_detail(merge->ref.problem, "/into_customer_id", "unknown_reference", message,
                           p);
    return mdl_problem_set(merge->ref.problem, 422, "unknown_reference", message);
}

static apr_status_t merge_refuse(const mdl_merge_t *merge, const person_t *from,
                                 const person_t *into)
{
    mdl_problem_t *problem = merge->ref.problem;

    if (from->merged_into != 0) {
        return mdl_problem_set(problem, 409, "customer_merged",
                               "The customer was merged into another; merge that one.");
    }
    if (from->customer.storefront_customer_id != NULL &&
        into->customer.storefront_customer_id == NULL) {
        return mdl_problem_set(problem, 409, "customer_is_guest",
                               "A guest has no number at the storefront, and can't stay for a "
                               "customer who has one. Merge the guest into the customer.");
    }
    return mdl_version_check(merge->ref.versions, from->customer.updated_at, problem);
}

static apr_status_t merge_check_count(mdl_db_t *db, const mdl_merge_t *merge,
                                      const apr_array_header_t *ids, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(CUSTOMERS_MERGED, .ids = ids, .limit = MDL_MERGED_MAX));

    if (rv != APR_SUCCESS || mdl_rows_int(row, 0) < MDL_MERGED_MAX) {
        return rv;
    }
    mdl_problem_count(merge->ref.problem, MDL_MERGED_MAX, -1);
    return mdl_problem_set(merge->ref.problem, 422, "too_many_customers",
                           "At most 1,000 customers can be merged into one.");
}

/* Notes who stays, also for those who were merged into the one who goes. */
static apr_status_t merge_note(mdl_db_t *db, apr_int64_t shop_id, const person_t *from,
                               const person_t *into, int more, apr_pool_t *p)
{
    const mdl_customer_t *gone = &from->customer;
    apr_time_t now = apr_time_now();
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_MERGE,
                     .lane = MDL_LANE_ORDERS,
                     .shop_id = shop_id,
                     .bytes_total = -1,
                     .max_attempts = ATTEMPTS};
    apr_status_t rv;

    if ((rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(CUSTOMERS_FOLLOW, .into_id = into->customer.id, .id = gone->id))) !=
            APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(CUSTOMER_SET_MERGED, .merged_into = into->customer.id,
                                .merging = more, .now = now, .id = gone->id))) != APR_SUCCESS ||
        (rv = mdl_db_exec(
             db, NULL, p,
             MDL_Q(CUSTOMER_TAKE, .email = gone->email, .email_replaced = from->email_replaced,
                   .first_name = gone->first_name, .last_name = gone->last_name,
                   .locale = gone->locale, .now = now, .id = into->customer.id))) != APR_SUCCESS) {
        return rv;
    }
    return more ? mdl_job_insert(db, &job, p) : APR_SUCCESS;
}

static apr_status_t merge_notify(mdl_db_t *db, const mdl_merge_t *merge, apr_int64_t into_id,
                                 apr_pool_t *p)
{
    mdl_json_t *data = mdl_json_object(p);
    mdl_event_t event = {.shop_id = merge->ref.shop_id, .type = MDL_EVENT_CUSTOMER_MERGED};

    mdl_json_add_int(data, "customer_id", into_id);
    mdl_json_add_int(data, "merged_customer_id", merge->ref.id);
    event.data = mdl_json_text(data, NULL, p);
    return mdl_event_add(db, &event, p);
}

static apr_status_t merge_apply(mdl_db_t *db, const mdl_merge_t *merge, const person_t *from,
                                const person_t *into, apr_pool_t *p)
{
    apr_int64_t shop_id = merge->ref.shop_id;
    apr_array_header_t *ids = mdl_ids_of(from->customer.id, p);
    int more;
    apr_status_t rv;

    APR_ARRAY_PUSH(ids, apr_int64_t) = into->customer.id;
    if ((rv = merge_check_count(db, merge, ids, p)) != APR_SUCCESS ||
        (rv = orders_move(db, shop_id, from, into, &more, p)) != APR_SUCCESS ||
        (rv = merge_note(db, shop_id, from, into, more, p)) != APR_SUCCESS ||
        (rv = mdl_search_remove(db, MDL_SEARCH_CUSTOMER, from->customer.id, p)) != APR_SUCCESS ||
        (rv = mdl_customer_store_words(db, into->customer.id, p)) != APR_SUCCESS) {
        return rv;
    }
    return merge_notify(db, merge, into->customer.id, p);
}

apr_status_t mdl_customer_merge(mdl_db_t *db, apr_pool_t *p, mdl_merge_t *merge)
{
    mdl_entity_ref_t stays = {
        .shop_id = merge->ref.shop_id, .id = merge->into_id, .problem = merge->ref.problem};
    mdl_entity_ref_t goes = merge->ref;
    person_t from, into;
    apr_status_t rv = mdl_customer_find(db, p, &goes);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    do { /* who stays may be merged before the lock */
        if ((rv = mdl_customer_find(db, p, &stays)) == MDL_EPROBLEM) {
            return merge_refuse_unknown(merge, p);
        }
        if (rv != APR_SUCCESS || (rv = persons_lock(db, stays.shop_id, merge->ref.id, stays.id,
                                                    &from, &into, p)) != APR_SUCCESS) {
            return rv;
        }
    } while (into.merged_into != 0);
    if (merge->ref.id != stays.id && from.merged_into != stays.id &&
        ((rv = merge_refuse(merge, &from, &into)) != APR_SUCCESS ||
         (rv = merge_apply(db, merge, &from, &into, p)) != APR_SUCCESS)) {
        return rv;
    }
    rv = mdl_customer_find(db, p, &stays);
    merge->ref.entity = stays.entity;
    return rv;
}

apr_status_t mdl_merge_next(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t *id, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(CUSTOMER_MERGING, shop_id));

    if (rv == APR_SUCCESS) {
        *id = mdl_rows_int(row, 0);
    }
    return rv;
}

apr_status_t mdl_merge_go_on(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t id, apr_pool_t *p)
{
    mdl_entity_ref_t stays = {.shop_id = shop_id, .id = id, .problem = &(mdl_problem_t){0}};
    person_t from, into;
    int more;
    apr_status_t rv;

    if ((rv = mdl_customer_find(db, p, &stays)) != APR_SUCCESS ||
        (rv = persons_lock(db, shop_id, id, stays.id, &from, &into, p)) != APR_SUCCESS ||
        into.merged_into != 0 || /* since the look: the next turn finds who stays now */
        (rv = orders_move(db, shop_id, &from, &into, &more, p)) != APR_SUCCESS) {
        return rv;
    }
    return more ? APR_SUCCESS : mdl_db_exec(db, NULL, p, MDL_Q(CUSTOMER_MERGE_DONE, id));
}
