#include "core/order/move.h"

#include <apr_time.h>

#include "base/clock.h"
#include "base/ulid.h"
#include "core/order/by_hand.h"

#define LOOKED   200 /* purchases in a batch */
#define GIVEN    50 /* orders in a transaction; with more than 64 savepoints PostgreSQL slows down */
#define TIME     apr_time_from_msec(50) /* in which a batch gives; requests may wait as long */
#define EMAILS   100                    /* of a shop that may wait before those of a move */
#define PAUSE    apr_time_from_sec(5)
#define ATTEMPTS 5

typedef struct {
    const char *content;
    apr_int64_t order_id;
    const char *storefront_order_id;
    int wants; /* has access, and has not got it */
} move_order_t;

struct mdl_move_batch_t {
    const mdl_job_t *job;
    mdl_move_t *move;
    apr_array_header_t *items;  /* mdl_order_item_t, one */
    apr_array_header_t *orders; /* move_order_t */
};

/* --- start ---------------------------------------------------------------------------------- */

static apr_status_t move_refuse_unknown(mdl_problem_t *problem)
{
    return mdl_problem_set(problem, 404, "mapping_not_found", "There is no such mapping.");
}

/* Reads what is given. */
static apr_status_t move_read_item(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t to_mapping_id,
                                   mdl_order_item_t *item, mdl_problem_t *problem, apr_pool_t *p)
{
    int is_active = 0;
    apr_status_t rv = mdl_by_hand_item(db, shop_id, to_mapping_id, item, &is_active, p);

    if (rv == APR_SUCCESS && !is_active) {
        return mdl_problem_set(problem, 422, "mapping_inactive",
                               "The product to give is not active: it serves no further order.");
    }
    return rv == APR_ENOENT ? move_refuse_unknown(problem) : rv;
}

static apr_status_t move_check(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t mapping_id,
                               apr_int64_t to_mapping_id, mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_order_item_t item;
    apr_status_t rv = mdl_by_hand_item(db, shop_id, mapping_id, &item, NULL, p);

    if (rv == APR_ENOENT) {
        return move_refuse_unknown(problem);
    }
    return rv == APR_SUCCESS ? move_read_item(db, shop_id, to_mapping_id, &item, problem, p) : rv;
}

apr_status_t mdl_move_count(mdl_db_t *db, apr_pool_t *p, mdl_move_count_t *count)
{
    mdl_rows_t *row;
    apr_status_t rv = move_check(db, count->shop_id, count->mapping_id, count->to_mapping_id,
                                 count->problem, p);

    if (rv != APR_SUCCESS ||
        (rv = mdl_db_select_one(db, &row, p,
                                MDL_Q(MOVE_COUNT, .mapping_id = count->mapping_id,
                                      .to_mapping_id = count->to_mapping_id,
                                      .limit = MDL_MOVE_COUNTED))) != APR_SUCCESS) {
        return rv;
    }
    MDL_READ(row, move_count, count, orders, have, lack);
    count->more = MDL_INT(row, move_count, looked) == MDL_MOVE_COUNTED;
    return APR_SUCCESS;
}

apr_status_t mdl_move_start(mdl_db_t *db, apr_pool_t *p, mdl_move_start_t *start)
{
    mdl_move_t *move = &start->move;
    mdl_job_t *job = apr_pcalloc(p, sizeof *job);
    apr_status_t rv = move_check(db, start->shop_id, move->mapping_id, move->to_mapping_id,
                                 start->problem, p);

    *job = (mdl_job_t){.id = mdl_ulid("job_", p),
                       .type = MDL_JOB_MOVE,
                       .lane = MDL_LANE_ORDERS,
                       .shop_id = start->shop_id,
                       .bytes_total = -1,
                       .max_attempts = ATTEMPTS};
    start->job = job;
    move->job_id = job->id;
    move->skipped_orders = "[]";
    if (rv != APR_SUCCESS || (rv = mdl_job_insert(db, job, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(MOVE_INSERT, .job_id = job->id, .mapping_id = move->mapping_id,
                             .to_mapping_id = move->to_mapping_id,
                             .license_keys = move->license_keys, .send_email = move->send_email,
                             .key_id = move->key_id, .user_name = move->user_name));
}

/* --- read ----------------------------------------------------------------------------------- */

static mdl_move_t *move_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_move_t *move = apr_pcalloc(p, sizeof *move);

    MDL_READ(row, move, move, job_id, mapping_id, to_mapping_id, license_keys, send_email, key_id,
             user_name, after_content, after_order_id, given, skipped, skipped_orders);
    return move;
}

apr_status_t mdl_move_find(mdl_db_t *db, const char *job_id, mdl_move_t **move, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MOVE_OF_JOB, job_id));

    if (rv == APR_SUCCESS) {
        *move = move_of_row(row, p);
    }
    return rv;
}

apr_status_t mdl_move_newest(mdl_db_t *db, apr_pool_t *p, mdl_move_newest_t *newest)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(MOVE_NEWEST, newest->mapping_id));

    newest->move = NULL;
    newest->job = NULL;
    if (rv == APR_SUCCESS) {
        newest->move = move_of_row(row, p);
        rv = mdl_job_find_of_shop(db, newest->shop_id, newest->move->job_id, &newest->job, p);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

/* An order that has the product in several variants is read once. */
static void batch_add(mdl_move_batch_t *batch, const mdl_rows_t *rows)
{
    move_order_t order = {.content = MDL_TEXT(rows, move_orders, content),
                          .order_id = MDL_INT(rows, move_orders, order_id),
                          .storefront_order_id = MDL_TEXT(rows, move_orders, storefront_order_id),
                          .wants = MDL_INT(rows, move_orders, is_open) != 0 &&
                                   MDL_INT(rows, move_orders, has_other) == 0};
    int before = batch->orders->nelts - 1;

    if (before < 0 ||
        APR_ARRAY_IDX(batch->orders, before, move_order_t).order_id != order.order_id) {
        APR_ARRAY_PUSH(batch->orders, move_order_t) = order;
    }
}

static apr_status_t batch_read_orders(mdl_db_t *db, mdl_move_batch_t *batch, apr_pool_t *p)
{
    const mdl_move_t *move = batch->move;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(MOVE_ORDERS, .mapping_id = move->mapping_id,
                                          .to_mapping_id = move->to_mapping_id,
                                          .after_content = move->after_content,
                                          .after_order_id = move->after_order_id, .limit = LOOKED));

    batch->orders = apr_array_make(p, LOOKED, sizeof(move_order_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        batch_add(batch, rows);
    }
    return rv;
}

/* Emails are sent in turn: those of new orders must not stand behind all of a move's. */
static apr_status_t move_waits(mdl_db_t *db, const mdl_job_t *job, const mdl_move_t *move,
                               apr_time_t *until, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    *until = 0;
    if (!move->send_email) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(MOVE_EMAILS, job->shop_id));
    if (rv == APR_SUCCESS && mdl_rows_int(row, 0) >= EMAILS) {
        *until = apr_time_now() + PAUSE;
    }
    return rv;
}

apr_status_t mdl_move_read(mdl_db_t *db, const mdl_job_t *job, mdl_move_batch_t **batch,
                           apr_time_t *wait_until, mdl_problem_t *problem, apr_pool_t *p)
{
    mdl_move_batch_t *next = apr_pcalloc(p, sizeof *next);
    apr_status_t rv;

    *batch = NULL;
    next->job = job;
    if ((rv = mdl_move_find(db, job->id, &next->move, p)) != APR_SUCCESS ||
        (rv = move_waits(db, job, next->move, wait_until, p)) != APR_SUCCESS || *wait_until != 0) {
        return rv;
    }
    next->items = apr_array_make(p, 1, sizeof(mdl_order_item_t));
    rv = move_read_item(db, job->shop_id, next->move->to_mapping_id, apr_array_push(next->items),
                        problem, p);
    if (rv != APR_SUCCESS || (rv = batch_read_orders(db, next, p)) != APR_SUCCESS) {
        return rv;
    }
    *batch = next->orders->nelts > 0 ? next : NULL;
    return APR_SUCCESS;
}

/* --- give ----------------------------------------------------------------------------------- */

static void move_note_skipped(mdl_move_t *move, const char *number, const char *code, apr_pool_t *p)
{
    mdl_json_t *list = mdl_json_stored(move->skipped_orders, p);

    if (move->skipped++ < MDL_MOVE_LISTED) {
        mdl_json_t *entry = mdl_json_add_array(list, NULL);

        mdl_json_add_string(entry, NULL, number);
        mdl_json_add_string(entry, NULL, code);
        move->skipped_orders = mdl_json_text(list, NULL, p);
    }
}

/* The assignment can be refused after it has written, so it is in a savepoint. */
static apr_status_t order_give(mdl_db_t *db, const mdl_move_batch_t *batch, mdl_move_t *move,
                               mdl_order_assign_t assign, apr_pool_t *p, apr_pool_t *ptemp)
{
    mdl_problem_t problem = {0};
    apr_status_t rv = mdl_db_command(db, "SAVEPOINT move");

    assign.items = batch->items;
    assign.problem = &problem;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_order_assign(db, ptemp, &assign);
    if (rv == APR_SUCCESS) {
        move->given += assign.created > 0;
    } else if (rv == MDL_EPROBLEM) {
        move_note_skipped(move, assign.storefront_order_id, problem.code, p);
        rv = mdl_db_command(db, "ROLLBACK TO SAVEPOINT move");
    }
    return rv == APR_SUCCESS ? mdl_db_command(db, "RELEASE SAVEPOINT move") : rv;
}

static apr_status_t orders_give(mdl_db_t *db, const mdl_move_batch_t *batch, mdl_move_t *move,
                                mdl_order_assign_t assign, apr_pool_t *p)
{
    apr_time_t until = mdl_clock_monotonic() + TIME;
    apr_pool_t *each;
    apr_status_t rv = APR_SUCCESS;
    int given = 0;

    apr_pool_create(&each, p);
    apr_pool_tag(each, "mdl_move");
    for (int i = 0; rv == APR_SUCCESS && i < batch->orders->nelts && given < GIVEN; i++) {
        const move_order_t *order = &APR_ARRAY_IDX(batch->orders, i, const move_order_t);

        if (order->wants && given > 0 && mdl_clock_monotonic() >= until) {
            break;
        }
        if (order->wants) {
            given++;
            assign.storefront_order_id = order->storefront_order_id;
            rv = order_give(db, batch, move, assign, p, each);
            apr_pool_clear(each);
        }
        move->after_content = order->content;
        move->after_order_id = order->order_id;
    }
    apr_pool_destroy(each);
    return rv;
}

apr_status_t mdl_move_give(mdl_db_t *db, const mdl_move_batch_t *batch,
                           const mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_move_t move = *batch->move; /* the transaction may run again */
    const mdl_order_assign_t assign = {.shop_id = batch->job->shop_id,
                                       .must_exist = 1,
                                       .no_license_keys = !move.license_keys,
                                       .send_email = move.send_email,
                                       .default_download_limit = settings->download_limit,
                                       .mail_host = mdl_settings_public_host(settings, p),
                                       .key_id = move.key_id,
                                       .user = move.user_name};
    apr_status_t rv = orders_give(db, batch, &move, assign, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(MOVE_ADVANCE, .after_content = move.after_content,
                                   .after_order_id = move.after_order_id, .given = move.given,
                                   .skipped = move.skipped, .skipped_orders = move.skipped_orders,
                                   .job_id = move.job_id))
               : rv;
}

void mdl_move_json(mdl_json_t *to, const mdl_move_t *move, apr_pool_t *p)
{
    const mdl_json_t *list = mdl_json_stored(move->skipped_orders, p);
    mdl_json_t *skipped;

    mdl_json_add_int(to, "mapping_id", move->mapping_id);
    mdl_json_add_int(to, "to_mapping_id", move->to_mapping_id);
    mdl_json_add_bool(to, "license_keys", move->license_keys);
    mdl_json_add_bool(to, "send_email", move->send_email);
    mdl_json_add_int(to, "given", move->given);
    mdl_json_add_int(to, "skipped", move->skipped);
    skipped = mdl_json_add_array(to, "skipped_orders");
    for (apr_size_t i = 0; i < mdl_json_length(list); i++) {
        const mdl_json_t *entry = mdl_json_element(list, i);
        mdl_json_t *order = mdl_json_add_object(skipped, NULL);

        mdl_json_add_string(order, "storefront_order_id",
                            mdl_json_string(mdl_json_element(entry, 0)));
        mdl_json_add_string(order, "code", mdl_json_string(mdl_json_element(entry, 1)));
    }
}
