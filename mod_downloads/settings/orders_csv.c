#include "settings/orders_csv.h"

#include <apr_strings.h>
#include <apr_time.h>
#include <http_protocol.h>

#include "base/clock.h"
#include "base/text/csv.h"
#include "settings/frame.h"

#define ORDERS_MAX 100000
#define BATCH      500 /* orders */
#define PLACE_SIZE 48

static const char *const columns[] = {
    "storefront_order_id",    "created_at",    "first_name",  "last_name", "email",
    "storefront_customer_id", "access_status", "email_status"};
#define COLUMNS ((int)(sizeof columns / sizeof *columns))

/* One piece of the file. */
typedef struct {
    mdl_order_search_t search;
    char place[PLACE_SIZE]; /* where it begins; "": at the first order */
    apr_pool_t *p;          /* its own, cleared before it is read */
} batch_t;

static apr_status_t batch_read(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    batch_t *batch = arg;

    (void)p;
    apr_pool_clear(batch->p);
    batch->search.filter.after = *batch->place != '\0' ? batch->place : NULL;
    return mdl_order_search(db, batch->p, &batch->search);
}

static void batch_write_line(mdl_text_buffer_t *to, const mdl_order_line_t *line, apr_pool_t *p)
{
    const char *fields[] = {line->storefront_order_id,
                            mdl_clock_rfc3339(line->created_at, p),
                            line->first_name,
                            line->last_name,
                            line->email,
                            line->storefront_customer_id,
                            mdl_order_access_names[line->access],
                            mdl_email_status_names[line->email_status]};

    mdl_csv_line(to, fields, COLUMNS);
}

/* Sends at most so many orders of what was read; returns whether the client still takes them. */
static int batch_send(request_rec *r, const batch_t *batch, int first, int most)
{
    mdl_text_buffer_t *text = mdl_text_buffer_make(batch->p);
    const apr_array_header_t *found = batch->search.found;
    apr_size_t length;
    const char *bytes;

    if (first) {
        mdl_text_buffer_put(text, MDL_CSV_BEGIN);
        mdl_csv_line(text, columns, COLUMNS);
    }
    for (int i = 0; i < found->nelts && i < most; i++) {
        batch_write_line(text, APR_ARRAY_IDX(found, i, const mdl_order_line_t *), batch->p);
    }
    bytes = mdl_text_buffer_text(text, &length);
    return length == 0 || (ap_rwrite(bytes, (int)length, r) >= 0 && !r->connection->aborted);
}

static void csv_set_headers(request_rec *r)
{
    char day[MDL_CLOCK_RFC3339_LENGTH + 1];

    mdl_clock_rfc3339_to(day, apr_time_now());
    ap_set_content_type(r, "text/csv; charset=utf-8");
    apr_table_setn(r->headers_out, "Cache-Control", "private, no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    apr_table_setn(r->headers_out, "Content-Disposition",
                   apr_psprintf(r->pool, "attachment; filename=\"orders-%.10s.csv\"", day));
}

static apr_status_t csv_note_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    (void)db;
    (void)p;
    (void)arg;
    return APR_SUCCESS; /* the audit is all that it leaves */
}

/* Sends the pieces after the first has been read.  A file that ends early must not look whole. */
static void csv_send_all(mdl_visit_t *visit, batch_t *batch)
{
    request_rec *r = visit->r;
    int sent = 0;

    do {
        mdl_visit_end(visit); /* while the client takes its time */
        if (!batch_send(r, batch, sent == 0 && *batch->place == '\0', ORDERS_MAX - sent)) {
            return;
        }
        sent += batch->search.found->nelts;
        if (batch->search.filter.next == NULL || sent >= ORDERS_MAX) {
            return;
        }
        apr_cpystrn(batch->place, batch->search.filter.next, PLACE_SIZE);
    } while (mdl_visit_read(visit, batch_read, batch) == APR_SUCCESS);
    r->connection->aborted = 1;
}

int mdl_orders_csv_send(mdl_visit_t *visit, const mdl_order_search_t *search)
{
    batch_t batch = {.search = *search};
    apr_status_t rv;

    apr_pool_create(&batch.p, visit->r->pool);
    apr_pool_tag(batch.p, "mdl_orders_csv");
    batch.search.filter.limit = BATCH;
    if ((rv = mdl_visit_write(visit, csv_note_effect, NULL)) != APR_SUCCESS ||
        (rv = mdl_visit_read(visit, batch_read, &batch)) != APR_SUCCESS) {
        return mdl_frame_failure(visit, rv);
    }
    csv_set_headers(visit->r);
    csv_send_all(visit, &batch);
    return OK;
}
