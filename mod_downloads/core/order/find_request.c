#include "core/order/find_request.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "base/seal.h"
#include "base/ulid.h"
#include "core/job.h"

#define PURPOSE "find-request"
#define HOUR    apr_time_from_sec(3600)

apr_status_t mdl_find_shop(mdl_db_t *db, apr_pool_t *p, mdl_find_shop_t *find)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(FIND_SHOP, .limit = MDL_FIND_WAITING_MAX, .domain = find->domain));

    if (rv == APR_SUCCESS) {
        MDL_READ(row, find_shop, find, id, name);
        find->email = MDL_TEXT(row, find_shop, shop_email);
        MDL_READ(row, find_shop, &find->brand, accent, languages, logo_sha256, logo_width,
                 logo_height);
        find->blocked = !MDL_NULL(row, find_shop, blocked_at);
        find->full = MDL_INT(row, find_shop, waiting) >= MDL_FIND_WAITING_MAX;
    }
    return rv;
}

const char *mdl_find_url(const char *public_url, const char *domain, apr_pool_t *p)
{
    return apr_pstrcat(p, public_url, "/find/", domain, NULL);
}

/* Ada@ and ada@ are the same mailbox, as for the look-up. */
static const char *address_mac(const mdl_secret_t *secret, const char *address, apr_pool_t *p)
{
    unsigned char mac[MDL_SHA256_LENGTH];
    char *folded = apr_pstrdup(p, address);

    for (char *c = folded; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    mdl_secret_mac(secret, PURPOSE, folded, strlen(folded), mac);
    return mdl_hex(mac, sizeof mac, p);
}

static const char *request_owner(apr_int64_t shop_id, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT, shop_id);
}

apr_status_t mdl_find_request_add(mdl_db_t *db, apr_pool_t *p, mdl_find_request_t *request)
{
    const char *address = request->address;

    return mdl_db_exec(
        db, NULL, p,
        MDL_Q(FIND_REQUEST_INSERT, .shop_id = request->shop_id,
              .address_mac = address_mac(request->secret, address, p),
              .address = mdl_seal(request->secret, PURPOSE, request_owner(request->shop_id, p),
                                  address, strlen(address), p)));
}

/* --- orders --- */

static apr_status_t customers_find(mdl_db_t *db, apr_int64_t shop_id, const char *address,
                                   apr_array_header_t **ids, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(FIND_CUSTOMERS, .shop_id = shop_id, .email = address,
                                          .limit = MDL_FIND_CUSTOMERS_MAX));

    *ids = apr_array_make(p, 1, sizeof(apr_int64_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(*ids, apr_int64_t) = mdl_rows_int(rows, 0);
    }
    return rv;
}

apr_status_t mdl_find_orders(mdl_db_t *db, apr_int64_t shop_id, const char *address, int limit,
                             apr_array_header_t **orders, apr_pool_t *p)
{
    apr_array_header_t *customers;
    mdl_rows_t *rows = NULL;
    apr_status_t rv = customers_find(db, shop_id, address, &customers, p);

    *orders = apr_array_make(p, 1, sizeof(mdl_found_order_t));
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &rows, p,
                           MDL_Q(FIND_ORDERS, .ids = customers, .limit = limit, .shop_id = shop_id,
                                 .email = address));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_found_order_t *order = apr_array_push(*orders);

        MDL_READ(rows, find_orders, order, page_id, called, locale, created_at);
    }
    return rv;
}

/* --- the background process --- */

apr_status_t mdl_find_request_waits(mdl_db_t *db, apr_pool_t *p, int *waits)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(FIND_REQUEST_WAITS));

    *waits = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

typedef struct {
    apr_int64_t shop_id;
    const char *address_mac;
    const char *address; /* sealed */
} request_t;

static apr_status_t request_open(const request_t *request, const mdl_secret_t *secret,
                                 const char **address, apr_pool_t *p)
{
    apr_size_t length;

    return mdl_unseal(secret, PURPOSE, request_owner(request->shop_id, p), request->address,
                      address, &length, p);
}

/* Sets when a request is due; 0: it is over. */
static apr_status_t request_due(mdl_db_t *db, const request_t *request, apr_time_t at,
                                apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(FIND_REQUEST_DUE, .due_at = at, .shop_id = request->shop_id,
                             .address_mac = request->address_mac));
}

/* Until when a request must wait; 0: its email may leave. */
static apr_status_t request_wait(mdl_db_t *db, const request_t *request, apr_time_t *until,
                                 apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_time_t last, by_shop;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(FIND_REQUEST_SENT, .shop_id = request->shop_id,
                                              .but = MDL_FIND_EMAILS_MAX - 1,
                                              .address_mac = request->address_mac));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    by_shop = MDL_INT(row, find_request_sent, by_shop);
    last = MDL_INT(row, find_request_sent, to_address);
    last = by_shop > last ? by_shop : last;
    *until = last != 0 ? last + HOUR : 0;
    return APR_SUCCESS;
}

static apr_status_t request_send(mdl_db_t *db, const request_t *request, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_FIND_EMAIL,
                     .lane = MDL_LANE_MAIL,
                     .shop_id = request->shop_id,
                     .max_attempts = MDL_JOB_MAIL_ATTEMPTS};
    apr_status_t rv = mdl_job_insert(db, &job, p);

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p,
                             MDL_Q(FIND_REQUEST_SEND, .job_id = job.id, .shop_id = request->shop_id,
                                   .address_mac = request->address_mac))
               : rv;
}

static apr_status_t request_serve(mdl_db_t *db, const request_t *request,
                                  const mdl_secret_t *secret, apr_pool_t *p)
{
    apr_array_header_t *orders;
    const char *address;
    apr_time_t until;
    apr_status_t rv;

    if (request_open(request, secret, &address, p) != APR_SUCCESS) {
        return request_due(db, request, 0, p); /* the server's secret was replaced */
    }
    rv = mdl_find_orders(db, request->shop_id, address, 1, &orders, p);
    if (rv != APR_SUCCESS || orders->nelts == 0) {
        return rv == APR_SUCCESS ? request_due(db, request, 0, p) : rv;
    }
    if ((rv = request_wait(db, request, &until, p)) != APR_SUCCESS) {
        return rv;
    }
    return until != 0 ? request_due(db, request, until, p) : request_send(db, request, p);
}

apr_status_t mdl_find_request_serve(mdl_db_t *db, apr_pool_t *p, mdl_find_serve_t *serve)
{
    apr_array_header_t *due = apr_array_make(p, serve->limit, sizeof(request_t));
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(FIND_REQUESTS_DUE, serve->limit));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        request_t *request = apr_array_push(due);

        MDL_READ(rows, find_requests_due, request, shop_id, address_mac, address);
    }
    serve->served = due->nelts;
    for (int i = 0; rv == APR_SUCCESS && i < due->nelts; i++) {
        rv = request_serve(db, &APR_ARRAY_IDX(due, i, request_t), serve->secret, p);
    }
    return rv;
}

apr_status_t mdl_find_request_of_job(mdl_db_t *db, apr_int64_t shop_id, const char *job_id,
                                     const mdl_secret_t *secret, const char **address,
                                     apr_pool_t *p)
{
    request_t request = {.shop_id = shop_id};
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(FIND_REQUEST_OF_JOB, .shop_id = shop_id, .job_id = job_id));

    if (rv == APR_SUCCESS) {
        request.address = mdl_rows_text(row, 0);
        rv = request_open(&request, secret, address, p) == APR_SUCCESS ? APR_SUCCESS : APR_ENOENT;
    }
    return rv;
}
