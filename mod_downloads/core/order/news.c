#include "core/order/news.h"

#include <strings.h>

#include <apr_time.h>

#include "base/ulid.h"
#include "core/ids.h"
#include "core/shop/data_key.h"
#include "core/shop/unsubscribed.h"

#define ATTEMPTS 20 /* about half a day */
#define DAY      apr_time_from_sec(86400)
#define HOUR     apr_time_from_sec(3600)

/* --- looking for buyers --------------------------------------------------------------------- */

struct mdl_news_batch_t {
    const mdl_job_t *job;
    apr_int64_t asset_id;
    int version;
    apr_int64_t mapping_id;
    apr_int64_t after_id;
    int looked;                 /* purchases */
    apr_array_header_t *orders; /* apr_int64_t: of those that were made before the version */
};

static apr_status_t batch_read(mdl_db_t *db, mdl_news_batch_t *batch, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv;

    if (batch->mapping_id == 0) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(NEWS_PINNED, .asset_id = batch->asset_id, .after = batch->after_id,
                                 .limit = MDL_NEWS_LOOKED));
    } else {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(NEWS_LIVE, .mapping_id = batch->mapping_id,
                                 .after = batch->after_id, .limit = MDL_NEWS_LOOKED));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        batch->looked++;
        batch->after_id = mdl_rows_int(rows, 0);
        if (mdl_rows_int(rows, 2) <= batch->job->created_at) {
            APR_ARRAY_PUSH(batch->orders, apr_int64_t) = mdl_rows_int(rows, 1);
        }
    }
    return rv;
}

/* Goes on to the next mapping that has the file; APR_ENOENT after the last. */
static apr_status_t batch_next_mapping(mdl_db_t *db, mdl_news_batch_t *batch, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(NEWS_MAPPING, .asset_id = batch->asset_id, .after = batch->mapping_id));

    if (rv == APR_SUCCESS && mdl_rows_null(row, 0)) {
        rv = APR_ENOENT;
    }
    if (rv == APR_SUCCESS) {
        batch->mapping_id = mdl_rows_int(row, 0);
        batch->after_id = 0;
    }
    return rv;
}

apr_status_t mdl_news_look(mdl_db_t *db, const mdl_job_t *job, mdl_news_batch_t **batch,
                           apr_pool_t *p)
{
    mdl_news_batch_t *next = apr_pcalloc(p, sizeof *next);
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(NEWS_FILL_OF_JOB, job->id));

    *batch = NULL;
    if (rv != APR_SUCCESS || MDL_INT(row, news_fill_of_job, is_over) != 0) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    MDL_READ(row, news_fill_of_job, next, asset_id, version, mapping_id, after_id);
    next->job = job;
    next->orders = apr_array_make(p, MDL_NEWS_LOOKED, sizeof(apr_int64_t));
    rv = batch_read(db, next, p);
    while (rv == APR_SUCCESS && next->looked == 0) {
        rv = batch_next_mapping(db, next, p);
        if (rv == APR_SUCCESS) {
            rv = batch_read(db, next, p);
        }
    }
    *batch = rv == APR_SUCCESS ? next : NULL;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_news_note(mdl_db_t *db, const mdl_news_batch_t *batch, apr_pool_t *p)
{
    apr_status_t rv;

    /* The shop's row is locked first, as by mdl_news_serve. */
    if ((rv = mdl_db_exec(db, NULL, p, MDL_Q(NEWS_SHOP_INSERT, batch->job->shop_id))) !=
            APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(NEWS_ITEMS_INSERT, .asset_id = batch->asset_id,
                                .version = batch->version, .ids = batch->orders))) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p,
                          MDL_Q(NEWS_ADDRESSES_INSERT, .ids = batch->orders,
                                .asset_id = batch->asset_id))) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NEWS_FILL_ADVANCE, .mapping_id = batch->mapping_id,
                             .after_id = batch->after_id, .job_id = batch->job->id));
}

/* --- queueing emails ------------------------------------------------------------------------ */

apr_status_t mdl_news_waits(mdl_db_t *db, apr_pool_t *p, int *waits)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(NEWS_WAITS));

    *waits = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t address_bind(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                 const char *job_id, apr_pool_t *p)
{
    apr_array_header_t *orders = apr_array_make(p, 1, sizeof(apr_int64_t));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(NEWS_ITEMS_WAITING, .shop_id = shop_id,
                                          .address = address, .limit = MDL_NEWS_FILES_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(orders, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv == APR_SUCCESS ? mdl_db_exec(db, NULL, p,
                                           MDL_Q(NEWS_ITEMS_BIND, .job_id = job_id, .ids = orders,
                                                 .shop_id = shop_id, .address = address))
                             : rv;
}

static apr_status_t address_drop(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                 apr_pool_t *p)
{
    apr_status_t rv = mdl_db_exec(db, NULL, p,
                                  MDL_Q(NEWS_ITEMS_DROP, .shop_id = shop_id, .address = address));

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(NEWS_ADDRESS_OVER, .shop_id = shop_id, .address = address))
               : rv;
}

static apr_status_t address_serve(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                  const mdl_secret_t *data_key, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_NEWS,
                     .lane = MDL_LANE_NEWS,
                     .shop_id = shop_id,
                     .max_attempts = ATTEMPTS};
    int unsubscribed;
    apr_status_t rv = mdl_unsubscribed_has(db, shop_id, mdl_unsubscribed_mac(data_key, address, p),
                                           &unsubscribed, p);

    if (rv != APR_SUCCESS || unsubscribed) {
        return rv == APR_SUCCESS ? address_drop(db, shop_id, address, p) : rv;
    }
    if ((rv = mdl_job_insert(db, &job, p)) != APR_SUCCESS ||
        (rv = address_bind(db, shop_id, address, job.id, p)) != APR_SUCCESS) {
        return rv;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NEWS_ADDRESS_SENT, .shop_id = shop_id, .address = address));
}

/* Sets when it is the shop's turn again; full_until: when it may send again, or 0. */
static apr_status_t shop_wait(mdl_db_t *db, apr_int64_t shop_id, apr_time_t full_until,
                              apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_time_t due_at, sent_at;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(NEWS_SHOP_AFTER, shop_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    due_at = MDL_INT(row, news_shop_after, due_at);
    sent_at = MDL_INT(row, news_shop_after, sent_at);
    if (due_at == 0 && sent_at == 0) {
        return mdl_db_exec(db, NULL, p, MDL_Q(NEWS_SHOP_DELETE, shop_id));
    }
    if (due_at == 0) { /* only what it has sent is still to be forgotten */
        due_at = sent_at + DAY;
    }
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(NEWS_SHOP_DUE, .due_at = due_at > full_until ? due_at : full_until,
                             .shop_id = shop_id));
}

static apr_status_t shop_serve(mdl_db_t *db, apr_int64_t shop_id, const mdl_news_serve_t *serve,
                               apr_pool_t *p)
{
    mdl_secret_t *data_key;
    mdl_rows_t *row, *rows;
    int left;
    apr_status_t rv;

    if ((rv = mdl_db_exec(db, NULL, p, MDL_Q(NEWS_ADDRESSES_FORGET, shop_id))) != APR_SUCCESS ||
        (rv = mdl_db_exec(db, NULL, p, MDL_Q(NEWS_SENT_FORGET, shop_id))) != APR_SUCCESS ||
        (rv = mdl_db_select_one(
             db, &row, p, MDL_Q(NEWS_SENT, .shop_id = shop_id, .limit = MDL_NEWS_EMAILS_MAX))) !=
            APR_SUCCESS ||
        (rv = mdl_data_key_get(db, serve->secret, &data_key, p)) != APR_SUCCESS) {
        return rv;
    }
    left = MDL_NEWS_EMAILS_MAX - (int)MDL_INT(row, news_sent, sent);
    if (left <= 0) {
        return shop_wait(db, shop_id, MDL_INT(row, news_sent, oldest) + DAY, p);
    }
    rv = mdl_db_select(db, &rows, p,
                       MDL_Q(NEWS_ADDRESSES_DUE, .shop_id = shop_id,
                             .limit = left < serve->limit ? left : serve->limit));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        rv = address_serve(db, shop_id, mdl_rows_text(rows, 0), data_key, p);
    }
    return rv == APR_SUCCESS ? shop_wait(db, shop_id, 0, p) : rv;
}

apr_status_t mdl_news_serve(mdl_db_t *db, apr_pool_t *p, mdl_news_serve_t *serve)
{
    mdl_rows_t *row;
    apr_int64_t shop_id;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(NEWS_SHOP_NEXT));

    serve->served = rv == APR_SUCCESS;
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    shop_id = MDL_INT(row, news_shop_next, id);
    return MDL_NULL(row, news_shop_next, blocked_at)
               ? shop_serve(db, shop_id, serve, p)
               : mdl_db_exec(
                     db, NULL, p,
                     MDL_Q(NEWS_SHOP_DUE, .due_at = apr_time_now() + HOUR, .shop_id = shop_id));
}

/* --- an email ------------------------------------------------------------------------------- */

/* Whether its customer can download a file of an order now. */
static int order_gives(const mdl_order_t *order, apr_int64_t asset_id, apr_time_t now)
{
    if (order->state.access != MDL_ORDER_ACTIVE || order->undeclared) {
        return 0;
    }
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *each = APR_ARRAY_IDX(order->assignments, i,
                                                     const mdl_assignment_t *);

        for (int j = 0; mdl_assignment_open(each, now) && j < each->files->nelts; j++) {
            if (APR_ARRAY_IDX(each->files, j, const mdl_order_file_t *)->asset_id == asset_id) {
                return 1;
            }
        }
    }
    return 0;
}

static int email_has(const mdl_news_email_t *email, apr_int64_t asset_id)
{
    for (int i = 0; i < email->files->nelts; i++) {
        if (APR_ARRAY_IDX(email->files, i, mdl_news_file_t).asset_id == asset_id) {
            return 1;
        }
    }
    return 0;
}

/* The order's address may have changed since. */
static void email_add(mdl_news_email_t *email, const mdl_news_file_t *file)
{
    const mdl_order_t *order = file->order;

    if (order->address == NULL || strcasecmp(order->address, file->address) != 0 ||
        !order_gives(order, file->asset_id, apr_time_now()) || email_has(email, file->asset_id)) {
        return;
    }
    if (email->files->nelts == MDL_NEWS_FILES_MAX) {
        email->truncated = 1;
        return;
    }
    email->to = email->to != NULL ? email->to : order->address;
    APR_ARRAY_PUSH(email->files, mdl_news_file_t) = *file;
}

/* The rows of an order stand together. */
static apr_status_t email_read_files(mdl_db_t *db, const mdl_job_t *job, mdl_news_email_t *email,
                                     apr_pool_t *p)
{
    apr_array_header_t *files = apr_array_make(p, 1, sizeof(mdl_news_file_t));
    mdl_order_find_t find = {.default_download_limit = email->default_download_limit};
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p, MDL_Q(NEWS_ITEMS_OF_JOB, .job_id = job->id, .limit = 2 * MDL_NEWS_FILES_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_news_file_t *file = apr_array_push(files);

        MDL_READ(rows, news_items_of_job, file, order_id, address, asset_id, title, filename,
                 version, note);
    }
    email->truncated = files->nelts == 2 * MDL_NEWS_FILES_MAX;
    for (int i = 0; rv == APR_SUCCESS && i < files->nelts; i++) {
        mdl_news_file_t *file = &APR_ARRAY_IDX(files, i, mdl_news_file_t);

        if (find.id != file->order_id) {
            find.id = file->order_id;
            rv = mdl_order_find(db, p, &find);
        }
        if (rv == APR_SUCCESS) {
            file->order = find.order;
            email_add(email, file);
        }
    }
    return rv;
}

apr_status_t mdl_news_read(mdl_db_t *db, const mdl_job_t *job, mdl_news_email_t *email,
                           apr_pool_t *p)
{
    mdl_secret_t *data_key;
    int unsubscribed;
    apr_status_t rv;

    email->to = email->address_mac = NULL;
    email->files = apr_array_make(p, 1, sizeof(mdl_news_file_t));
    email->truncated = 0;
    if ((rv = email_read_files(db, job, email, p)) != APR_SUCCESS || email->to == NULL) {
        return rv;
    }
    if ((rv = mdl_data_key_find(db, email->secret, &data_key, p)) != APR_SUCCESS) {
        return rv;
    }
    email->address_mac = mdl_unsubscribed_mac(data_key, email->to, p);
    rv = mdl_unsubscribed_has(db, job->shop_id, email->address_mac, &unsubscribed, p);
    if (rv == APR_SUCCESS && unsubscribed) {
        email->to = NULL;
    }
    return rv;
}

apr_status_t mdl_news_over(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(NEWS_ITEMS_DELETE, job->id));
}
