#include "core/order/late.h"

#include <apr_time.h>

#include "base/ulid.h"

#define ATTEMPTS 5
#define DAY      apr_time_from_sec(86400)

/* How long until the next look: a tenth of the time since the newest email, within these.  License
   keys wake the job when they come. */
#define SHORTEST apr_time_from_sec(10)
#define LONGEST  apr_time_from_sec(6 * 3600)

static int assignment_is_partial(const mdl_assignment_t *assignment)
{
    if (assignment->license_keys_pending > 0) {
        return 1;
    }
    for (int i = 0; i < assignment->files->nelts; i++) {
        if (APR_ARRAY_IDX(assignment->files, i, const mdl_order_file_t *)->status !=
            MDL_ASSET_READY) {
            return 1;
        }
    }
    return 0;
}

int mdl_late_is_partial(const mdl_order_t *order, apr_time_t now)
{
    for (int i = 0; i < order->assignments->nelts; i++) {
        const mdl_assignment_t *assignment = APR_ARRAY_IDX(order->assignments, i,
                                                           const mdl_assignment_t *);

        if (mdl_assignment_open(assignment, now) && assignment_is_partial(assignment)) {
            return 1;
        }
    }
    return 0;
}

static apr_status_t late_insert_job(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t email_id,
                                    apr_time_t due_at, apr_pool_t *p)
{
    mdl_job_t job = {.id = mdl_ulid("job_", p),
                     .type = MDL_JOB_LATE,
                     .lane = MDL_LANE_ORDERS,
                     .shop_id = shop_id,
                     .email_id = email_id,
                     .due_at = due_at,
                     .max_attempts = ATTEMPTS};

    return mdl_job_insert(db, &job, p);
}

apr_status_t mdl_late_owe(mdl_db_t *db, apr_int64_t shop_id, const mdl_email_t *email,
                          apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(LATE_MARK, email->id));

    if (rv == APR_SUCCESS) {
        rv = mdl_db_select_one(db, &row, p, MDL_Q(LATE_OPEN, email->order_id));
    }
    /* Due at once: what was missing may have come while the email was being sent. */
    return rv == APR_ENOENT ? late_insert_job(db, shop_id, email->id, 0, p) : rv;
}

static void late_wait(mdl_late_t *late, apr_time_t since, apr_time_t now)
{
    apr_time_t wait = (now - since) / 10;

    wait = wait < SHORTEST ? SHORTEST : wait;
    late->state = MDL_LATE_WAITS;
    late->look_at = now + (wait > LONGEST ? LONGEST : wait);
}

static void late_judge(mdl_late_t *late, const mdl_rows_t *newest, const mdl_order_t *order)
{
    apr_time_t now = apr_time_now();
    apr_time_t since = MDL_INT(newest, late_newest, created_at);
    apr_time_t next_at = MDL_NULL(newest, late_newest, late_at)
                             ? 0
                             : MDL_INT(newest, late_newest, late_at) + DAY;

    if (order->state.access == MDL_ORDER_HELD || order->undeclared) {
        late_wait(late, since, now);
    } else if (order->state.access != MDL_ORDER_ACTIVE || !mdl_order_has_open(order, now) ||
               order->address == NULL) {
        late->state = MDL_LATE_OVER;
    } else if (mdl_late_is_partial(order, now)) {
        late_wait(late, since, now);
    } else if (next_at > now) {
        late->state = MDL_LATE_WAITS;
        late->look_at = next_at;
    } else {
        late->state = MDL_LATE_DUE;
        late->order = order;
    }
}

apr_status_t mdl_late_look(mdl_db_t *db, const mdl_job_t *job, mdl_late_t *late, apr_pool_t *p)
{
    mdl_order_find_t find = {0};
    mdl_email_status_t status;
    mdl_rows_t *newest;
    apr_status_t rv = mdl_db_select_one(db, &newest, p, MDL_Q(LATE_NEWEST, job->email_id));

    *late = (mdl_late_t){.state = MDL_LATE_OVER};
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    status = MDL_ENUM(newest, late_newest, status, mdl_email_status_names);
    if (status == MDL_EMAIL_QUEUED) { /* it will tell what is there when it leaves */
        late_wait(late, MDL_INT(newest, late_newest, created_at), apr_time_now());
        return APR_SUCCESS;
    }
    if (status != MDL_EMAIL_SENT || MDL_INT(newest, late_newest, is_partial) == 0) {
        return APR_SUCCESS;
    }
    find.id = MDL_INT(newest, late_newest, order_id);
    rv = mdl_order_find(db, p, &find);
    if (rv == APR_SUCCESS) {
        late_judge(late, newest, find.order);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_late_settle(mdl_db_t *db, const mdl_job_t *job, const char *mail_host,
                             apr_pool_t *p)
{
    mdl_late_t late;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(EMAIL_LOCK_ORDER, job->email_id));

    if (rv != APR_SUCCESS || (rv = mdl_late_look(db, job, &late, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    switch (late.state) {
    case MDL_LATE_WAITS:
        return late_insert_job(db, job->shop_id, job->email_id, late.look_at, p);
    case MDL_LATE_DUE:
        return mdl_email_queue(db,
                               &(mdl_email_new_t){.shop_id = job->shop_id,
                                                  .order_id = late.order->id,
                                                  .to = late.order->address,
                                                  .host = mail_host,
                                                  .at_once = 1,
                                                  .is_late = 1},
                               p);
    default:
        return APR_SUCCESS;
    }
}
