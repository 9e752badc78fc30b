#include "core/job.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/names.h"
#include "core/job_source.h"

#define LOOKED 1000 /* jobs, if only some may fit */
#define NEWEST "~"  /* sorts after every id */

const char *const mdl_job_type_names[] = {
    [MDL_JOB_IMPORT] = "asset_import",
    [MDL_JOB_VERIFY] = "upload_verification",
    [MDL_JOB_EMAIL] = "email",
    [MDL_JOB_LOOKUP] = "storefront_lookup",
    [MDL_JOB_WEBHOOK] = "webhook",
    [MDL_JOB_STAFF_EMAIL] = "staff_email",
    [MDL_JOB_LOGO] = "logo",
    [MDL_JOB_MOVE] = "buyers_move",
    [MDL_JOB_FIND_EMAIL] = "find_email",
    [MDL_JOB_LATE] = "late_email",
    [MDL_JOB_TELL] = "tell_buyers",
    [MDL_JOB_NEWS] = "news_email",
    [MDL_JOB_MERGE] = "customer_merge",
    [MDL_JOB_UNKNOWN] = "unknown",
    NULL,
};

const char *const mdl_job_status_names[] = {
    [MDL_JOB_QUEUED] = "queued",       [MDL_JOB_RUNNING] = "running",
    [MDL_JOB_SUCCEEDED] = "succeeded", [MDL_JOB_FAILED] = "failed",
    [MDL_JOB_CANCELLED] = "cancelled", NULL,
};

const char *const mdl_job_lane_names[] = {
    [MDL_LANE_SMALL] = "small",
    [MDL_LANE_BULK] = "bulk",
    [MDL_LANE_HASH] = "hash",
    [MDL_LANE_MAIL] = "mail",
    [MDL_LANE_LOOKUP] = "lookup",
    [MDL_LANE_WEBHOOK] = "webhook",
    [MDL_LANE_ORDERS] = "orders",
    [MDL_LANE_NEWS] = "news",
    [MDL_LANE_CLEANUP] = "cleanup",
    [MDL_LANE_UNKNOWN] = "unknown",
    NULL,
};

static unsigned job_value_or(const char *const *names, const char *name, unsigned unknown)
{
    int value = mdl_names_find(names, name);

    return value < 0 ? unknown : (unsigned)value;
}

static mdl_job_t *job_of_row(const mdl_rows_t *row, apr_pool_t *p)
{
    mdl_job_t *job = apr_pcalloc(p, sizeof *job);

    MDL_READ(row, job, job, id, asset_id, email_id, shop_id, bytes_received, attempts, max_attempts,
             due_at, error_code, error_message, created_at, started_at, finished_at, source_url,
             expected_sha256, written, validator, lease_token, upload_id, order_id,
             storefront_order_id, interruptions, updated_at, request_id);
    job->type = job_value_or(mdl_job_type_names, MDL_TEXT(row, job, type), MDL_JOB_UNKNOWN);
    job->status = MDL_ENUM(row, job, status, mdl_job_status_names);
    job->bytes_total = MDL_INT_OR_NONE(row, job, bytes_total);
    job->lane = job_value_or(mdl_job_lane_names, MDL_TEXT(row, job, lane), MDL_LANE_UNKNOWN);
    return job;
}

static apr_array_header_t *jobs_of_rows(mdl_rows_t *rows, apr_pool_t *p)
{
    apr_array_header_t *jobs = apr_array_make(p, 16, sizeof(mdl_job_t *));

    while (mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(jobs, mdl_job_t *) = job_of_row(rows, p);
    }
    return jobs;
}

mdl_job_t *mdl_job_copy(const mdl_job_t *job, apr_pool_t *p)
{
    mdl_job_t *copy = apr_pmemdup(p, job, sizeof *job);

    copy->id = apr_pstrdup(p, job->id);
    copy->request_id = apr_pstrdup(p, job->request_id);
    copy->error_code = apr_pstrdup(p, job->error_code);
    copy->error_message = apr_pstrdup(p, job->error_message);
    copy->source_url = apr_pstrdup(p, job->source_url);
    copy->expected_sha256 = apr_pstrdup(p, job->expected_sha256);
    copy->storefront_order_id = apr_pstrdup(p, job->storefront_order_id);
    copy->upload_id = apr_pstrdup(p, job->upload_id);
    copy->object = apr_pstrdup(p, job->object);
    copy->written = apr_pstrdup(p, job->written);
    copy->validator = apr_pstrdup(p, job->validator);
    return copy;
}

const char *mdl_job_name(const mdl_job_t *job, apr_pool_t *p)
{
    return job->request_id != NULL ? apr_pstrcat(p, job->id, " (", job->request_id, ")", NULL)
                                   : job->id;
}

apr_status_t mdl_job_insert(mdl_db_t *db, mdl_job_t *job, apr_pool_t *p)
{
    job->status = MDL_JOB_QUEUED;
    job->created_at = job->updated_at = apr_time_now();
    job->due_at = job->due_at > job->created_at ? job->due_at : job->created_at;
    job->bytes_total = -1;
    mdl_db_note_due(db, job->due_at);
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(JOB_INSERT, .id = job->id, .shop_id = job->shop_id,
                             .type = mdl_job_type_names[job->type],
                             .lane = mdl_job_lane_names[job->lane], .asset_id = job->asset_id,
                             .email_id = job->email_id, .order_id = job->order_id,
                             .upload_id = job->upload_id, .source_url = job->source_url,
                             .expected_sha256 = job->expected_sha256,
                             .max_attempts = job->max_attempts, .due_at = job->due_at,
                             .request_id = mdl_db_request(db), .created_at = job->created_at));
}

apr_status_t mdl_job_find(mdl_db_t *db, const char *id, mdl_job_t **job, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(JOB_BY_ID, id));

    if (rv == APR_SUCCESS) {
        *job = job_of_row(row, p);
    }
    return rv;
}

apr_status_t mdl_job_find_of_shop(mdl_db_t *db, apr_int64_t shop_id, const char *id,
                                  mdl_job_t **job, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(JOB_OF_SHOP, .id = id, .shop_id = shop_id));

    if (rv == APR_SUCCESS) {
        *job = job_of_row(row, p);
    }
    return rv;
}

static int job_has_status(const mdl_job_t *job, const char *status)
{
    return status == NULL || strcmp(mdl_job_status_names[job->status], status) == 0;
}

static apr_status_t job_ask_list(mdl_db_t *db, const mdl_job_list_t *list, const char *before,
                                 int look, mdl_rows_t **rows, apr_pool_t *p)
{
    return list->shop_id != 0
               ? mdl_db_select(db, rows, p,
                               MDL_Q(JOB_LIST_OF_SHOP, .shop_id = list->shop_id, .before = before,
                                     .limit = look))
               : mdl_db_select(db, rows, p, MDL_Q(JOB_LIST, .before = before, .limit = look));
}

/* Status has no index, so jobs are read in batches, within a statement's memory and time limits. */
apr_status_t mdl_job_list(mdl_db_t *db, apr_pool_t *p, mdl_job_list_t *list)
{
    int look = list->status != NULL ? LOOKED : list->limit;
    int looked = look;
    const char *before = NEWEST;
    apr_pool_t *scratch;
    mdl_rows_t *rows;
    apr_status_t rv = APR_SUCCESS;

    list->jobs = apr_array_make(p, 16, sizeof(mdl_job_t *));
    apr_pool_create(&scratch, p);
    apr_pool_tag(scratch, "mdl_job_list");
    while (rv == APR_SUCCESS && looked == look && list->jobs->nelts < list->limit) {
        apr_pool_clear(scratch);
        rv = job_ask_list(db, list, before, look, &rows, scratch);
        for (looked = 0; rv == APR_SUCCESS && mdl_rows_next(rows); looked++) {
            const mdl_job_t *job = job_of_row(rows, scratch);

            before = job->id;
            if (list->jobs->nelts < list->limit && job_has_status(job, list->status)) {
                APR_ARRAY_PUSH(list->jobs, mdl_job_t *) = mdl_job_copy(job, p);
            }
        }
        before = apr_pstrdup(p, before);
    }
    apr_pool_destroy(scratch);
    return rv;
}

apr_status_t mdl_job_count(mdl_db_t *db, apr_pool_t *p, mdl_job_count_t *count)
{
    mdl_rows_t *rows;
    apr_status_t rv = count->shop_id != 0
                          ? mdl_db_select(db, &rows, p, MDL_Q(JOB_COUNT_OF_SHOP, count->shop_id))
                          : mdl_db_select(db, &rows, p, MDL_Q(JOB_COUNT));

    memset(count->jobs, 0, sizeof count->jobs);
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        count->jobs[MDL_ENUM(rows, job_count, status, mdl_job_status_names)] = MDL_INT(
            rows, job_count, jobs);
    }
    return rv;
}

apr_status_t mdl_job_order(mdl_db_t *db, const mdl_job_t *job, const char **storefront_order_id,
                           apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv;

    *storefront_order_id = job->storefront_order_id;
    if (job->email_id == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, &row, p, MDL_Q(JOB_ORDER_OF_EMAIL, job->email_id));
    if (rv == APR_SUCCESS) {
        *storefront_order_id = mdl_rows_text(row, 0);
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_job_failed(mdl_db_t *db, apr_pool_t *p, mdl_job_failed_t *failed)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(JOBS_FAILED, .after = failed->after,
                                          .shop_id = failed->shop_id, .type = failed->type,
                                          .since = failed->since, .limit = failed->limit));

    failed->ids = apr_array_make(p, failed->limit, sizeof(const char *));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        APR_ARRAY_PUSH(failed->ids, const char *) = mdl_rows_text(rows, 0);
    }
    return rv;
}

apr_status_t mdl_job_flush(mdl_db_t *db, apr_pool_t *p, mdl_job_flush_t *flush)
{
    return mdl_db_exec(db, &flush->flushed, p,
                       MDL_Q(JOBS_FLUSH, .now = apr_time_now(), .limit = flush->limit));
}

static int job_fits(const mdl_job_t *job, const mdl_job_page_t *list)
{
    return job_has_status(job, list->status) &&
           (list->type == NULL || strcmp(mdl_job_type_names[job->type], list->type) == 0) &&
           (list->asset_id == 0 || job->asset_id == list->asset_id);
}

/* Failed jobs have their own statement. */
static int job_page_is_failed(const mdl_job_page_t *list)
{
    return list->asset_id == 0 && list->status != NULL &&
           strcmp(list->status, mdl_job_status_names[MDL_JOB_FAILED]) == 0;
}

static apr_status_t job_ask_page(mdl_db_t *db, const mdl_job_page_t *list, int look,
                                 mdl_rows_t **rows, apr_pool_t *p)
{
    const mdl_list_page_t *page = &list->page;

    if (list->asset_id != 0) {
        return mdl_db_select(db, rows, p,
                             MDL_Q(JOB_PAGE_OF_ASSET, .asset_id = list->asset_id,
                                   .shop_id = page->shop_id, .before = page->before_text,
                                   .limit = look));
    }
    return mdl_db_select(db, rows, p,
                         MDL_Q_AS(job_page_is_failed(list) ? MDL_Q_JOB_PAGE_FAILED : MDL_Q_JOB_PAGE,
                                  JOB_PAGE_FAILED, .shop_id = page->shop_id,
                                  .before = page->before_text, .limit = look));
}

apr_status_t mdl_job_page(mdl_db_t *db, apr_pool_t *p, mdl_job_page_t *list)
{
    mdl_list_page_t *page = &list->page;
    int filtered = list->type != NULL || (list->status != NULL && !job_page_is_failed(list));
    int look = filtered ? LOOKED : page->limit;
    const mdl_job_t *last = NULL;
    mdl_rows_t *rows;
    apr_status_t rv = job_ask_page(db, list, look, &rows, p);
    int looked = 0;

    page->found = apr_array_make(p, page->limit, sizeof(mdl_job_t *));
    while (rv == APR_SUCCESS && page->found->nelts < page->limit && mdl_rows_next(rows)) {
        mdl_job_t *job = job_of_row(rows, p);

        looked++;
        last = job;
        if (job_fits(job, list)) {
            APR_ARRAY_PUSH(page->found, mdl_job_t *) = job;
        }
    }
    if (filtered && looked == look && page->found->nelts < page->limit) {
        page->more = 1;
        page->next = last->id;
    }
    return rv;
}

static apr_status_t job_ask_due(mdl_db_t *db, const mdl_job_look_t *look, mdl_rows_t **row,
                                apr_pool_t *p)
{
    const apr_time_t *from = look->from;

    return mdl_db_select(db, row, p,
                         MDL_Q(JOB_LOOK, .small = from[MDL_LANE_SMALL], .until = look->until,
                               .bulk = from[MDL_LANE_BULK], .hash = from[MDL_LANE_HASH],
                               .mail = from[MDL_LANE_MAIL], .lookup = from[MDL_LANE_LOOKUP],
                               .webhook = from[MDL_LANE_WEBHOOK], .orders = from[MDL_LANE_ORDERS],
                               .news = from[MDL_LANE_NEWS], .cleanup = from[MDL_LANE_CLEANUP]));
}

static void job_read_due(mdl_rows_t *row, mdl_job_look_t *look)
{
    if (mdl_rows_next(row)) {
        for (int i = 0; i < MDL_LANE_UNKNOWN; i++) {
            look->due_at[i] = mdl_rows_int(row, i);
        }
        look->newest_shop = mdl_rows_int(row, MDL_LANE_UNKNOWN);
    }
}

apr_status_t mdl_job_look(mdl_db_t *db, apr_pool_t *p, mdl_job_look_t *look)
{
    mdl_rows_t *row;
    apr_status_t rv = job_ask_due(db, look, &row, p);

    if (rv == APR_SUCCESS) {
        job_read_due(row, look);
    }
    return rv;
}

int mdl_job_slots_alone(int slots)
{
    return slots > 1 ? 4 * slots / 5 : 1;
}

static apr_status_t job_claim_shared(mdl_db_t *db, const mdl_job_claim_t *claim, apr_time_t now,
                                     mdl_rows_t **rows, apr_pool_t *p)
{
    const mdl_job_share_t *share = claim->share;
    const char *lane = mdl_job_lane_names[claim->lane];
    apr_time_t from = claim->look->from[claim->lane];

    return mdl_db_select(db, rows, p,
                         MDL_Q(JOB_CLAIM_SHARED, .lease_owner = claim->owner, .now = now,
                               .running = share->running, .from_shop = share->from,
                               .to_shop = share->to, .lane = lane, .from = from,
                               .limit = claim->limit, .after = share->after));
}

static apr_status_t job_claim_oldest(mdl_db_t *db, const mdl_job_claim_t *claim, apr_time_t now,
                                     mdl_rows_t **rows, apr_pool_t *p)
{
    return mdl_db_select(db, rows, p,
                         MDL_Q(JOB_CLAIM, .lease_owner = claim->owner, .now = now,
                               .lane = mdl_job_lane_names[claim->lane],
                               .from = claim->look->from[claim->lane], .limit = claim->limit));
}

apr_status_t mdl_job_claim(mdl_db_t *db, apr_pool_t *p, mdl_job_claim_t *claim)
{
    apr_time_t now = apr_time_now();
    mdl_rows_t *rows, *row;
    apr_status_t rv = claim->share != NULL ? job_claim_shared(db, claim, now, &rows, p)
                                           : job_claim_oldest(db, claim, now, &rows, p);

    if (rv == APR_SUCCESS && (rv = job_ask_due(db, claim->look, &row, p)) == APR_SUCCESS) {
        claim->jobs = apr_array_make(p, claim->limit, sizeof(mdl_job_t *));
        while (mdl_rows_next(rows)) {
            mdl_job_t *job = job_of_row(rows, p);

            job->shop_blocked = !MDL_NULL(rows, claimed, shop_blocked_at);
            APR_ARRAY_PUSH(claim->jobs, mdl_job_t *) = job;
        }
        job_read_due(row, claim->look);
    }
    return rv;
}

static apr_status_t lost_if_unchanged(apr_status_t rv, apr_int64_t changed)
{
    return rv == APR_SUCCESS && changed == 0 ? APR_ENOENT : rv;
}

apr_status_t mdl_job_renew(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p)
{
    apr_int64_t changed = 0;
    apr_status_t rv = mdl_db_exec(
        db, &changed, p,
        MDL_Q(JOB_RENEW, .interruptions = job->interruptions, .bytes_received = job->bytes_received,
              .bytes_total = job->bytes_total, .written = job->written, .validator = job->validator,
              .now = apr_time_now(), .id = job->id, .lease_token = job->lease_token));

    return lost_if_unchanged(rv, changed);
}

apr_status_t mdl_job_release(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p)
{
    return mdl_db_select(
        db, held, p,
        MDL_Q(JOB_RELEASE, .lane = mdl_job_lane_names[job->lane], .due_at = job->due_at,
              .interruptions = job->interruptions, .bytes_received = job->bytes_received,
              .bytes_total = job->bytes_total, .written = job->written, .validator = job->validator,
              .error_code = job->error_code, .error_message = job->error_message,
              .now = apr_time_now(), .id = job->id, .lease_token = job->lease_token));
}

apr_status_t mdl_job_retry_later(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held,
                                 apr_pool_t *p)
{
    return mdl_db_select(
        db, held, p,
        MDL_Q(JOB_RETRY_LATER, .due_at = job->due_at, .bytes_received = job->bytes_received,
              .bytes_total = job->bytes_total, .written = job->written, .validator = job->validator,
              .error_code = job->error_code, .error_message = job->error_message,
              .now = apr_time_now(), .id = job->id, .lease_token = job->lease_token));
}

apr_status_t mdl_job_finish(mdl_db_t *db, const mdl_job_t *job, mdl_rows_t **held, apr_pool_t *p)
{
    const char *source_url = job->status == MDL_JOB_SUCCEEDED ? mdl_source_shown(job->source_url, p)
                                                              : NULL;

    return mdl_db_select(db, held, p,
                         MDL_Q(JOB_FINISH, .status = mdl_job_status_names[job->status],
                               .bytes_received = job->bytes_received,
                               .bytes_total = job->bytes_total, .error_code = job->error_code,
                               .error_message = job->error_message, .now = apr_time_now(),
                               .source_url = source_url, .id = job->id,
                               .lease_token = job->lease_token));
}

apr_status_t mdl_job_hold(mdl_db_t *db, apr_pool_t *p, mdl_job_hold_t *hold)
{
    const char *last = NULL;
    int count = 0;
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q_AS(hold->resume ? MDL_Q_JOBS_RESUME : MDL_Q_JOBS_HOLD,
                                             JOBS_RESUME, .shop_id = hold->shop_id,
                                             .after = hold->after, .limit = hold->limit));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *id = mdl_rows_text(rows, 0);

        last = last == NULL || strcmp(id, last) > 0 ? id : last;
        count++;
    }
    if (rv == APR_SUCCESS) {
        hold->after = count == hold->limit ? last : NULL;
    }
    return rv;
}

apr_status_t mdl_job_beats(mdl_db_t *db, apr_pool_t *p, apr_array_header_t **beats)
{
    return mdl_beats_read(db, MDL_Q_JOBS_LEASED, beats, p);
}

apr_status_t mdl_job_expire(mdl_db_t *db, apr_pool_t *p, const apr_array_header_t *lost)
{
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < lost->nelts && rv == APR_SUCCESS; i++) {
        const mdl_beat_t *job = &APR_ARRAY_IDX(lost, i, mdl_beat_t);

        rv = mdl_db_exec(
            db, NULL, p,
            MDL_Q(JOB_EXPIRE, .now = apr_time_now(), .id = job->id, .updated_at = job->beat));
    }
    return rv;
}

apr_status_t mdl_job_set_back(mdl_db_t *db, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p, MDL_Q(JOBS_SET_BACK, apr_time_now()));
}

static apr_status_t job_interrupted(mdl_db_t *db, const mdl_begun_job_t *job, apr_pool_t *p)
{
    apr_int64_t received = atomic_load(&job->received);

    return mdl_db_exec(db, NULL, p,
                       MDL_Q(JOB_INTERRUPTED, .has_progress = received > job->before,
                             .received = received, .id = job->id, .lease_token = job->lease_token));
}

apr_status_t mdl_job_inherit(mdl_db_t *db, apr_pool_t *p, const mdl_job_inherit_t *inherit)
{
    const apr_array_header_t *jobs = mdl_begun_list(inherit->begun, p);
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < jobs->nelts && rv == APR_SUCCESS; i++) {
        rv = job_interrupted(db, APR_ARRAY_IDX(jobs, i, const mdl_begun_job_t *), p);
    }
    return rv != APR_SUCCESS ? rv
                             : mdl_db_exec(db, NULL, p,
                                           MDL_Q(JOB_INHERIT, .now = apr_time_now(),
                                                 .lease_owner = inherit->worker));
}

apr_status_t mdl_job_fail(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p)
{
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(JOB_FAIL, .error_code = job->error_code,
                             .error_message = job->error_message, .id = job->id));
}

apr_status_t mdl_job_open_of_asset(mdl_db_t *db, apr_int64_t asset_id, const char *but,
                                   mdl_job_t **job, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, &row, p, MDL_Q(JOB_OPEN_OF_ASSET, .asset_id = asset_id, .id = but ? but : ""));

    *job = rv == APR_SUCCESS ? job_of_row(row, p) : NULL;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_job_cancel_of_asset(mdl_db_t *db, apr_int64_t asset_id, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();

    mdl_db_note_due(db, now); /* the clean-up */
    return mdl_db_exec(db, NULL, p, MDL_Q(JOB_CANCEL_OF_ASSET, .now = now, .asset_id = asset_id));
}

apr_status_t mdl_job_to_clean(mdl_db_t *db, const char *owner, int limit, apr_array_header_t **jobs,
                              apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(JOB_TO_CLEAN, .lease_owner = owner, .limit = limit));

    if (rv == APR_SUCCESS) {
        *jobs = jobs_of_rows(rows, p);
    }
    return rv;
}

apr_status_t mdl_job_cleaned(mdl_db_t *db, const mdl_job_t *job, apr_pool_t *p)
{
    apr_int64_t changed;
    apr_status_t rv = mdl_db_exec(
        db, &changed, p, MDL_Q(JOB_CLEANED, .id = job->id, .lease_token = job->lease_token));

    return lost_if_unchanged(rv, changed);
}
