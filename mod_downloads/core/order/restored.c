#include "core/order/restored.h"

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "core/shop/event.h"

static apr_status_t ids_skip(mdl_db_t *db, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(db, &rows, p, MDL_Q(RESTORED_SKIP_IDS, MDL_RESTORED_IDS));

    return rv == APR_SUCCESS
               ? mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_SKIP_NUMBERS, MDL_RESTORED_NUMBERS))
               : rv;
}

static apr_status_t emails_set_aside(mdl_db_t *db, mdl_restored_t *restored, apr_pool_t *p)
{
    apr_time_t now = apr_time_now();
    const char *message = apr_psprintf(
        p, "The database was restored from the backup of %s, so this may have left since.",
        mdl_clock_rfc3339(restored->made_at, p));
    apr_status_t rv = APR_SUCCESS;

    restored->emails = 0;
    if (restored->send_emails) {
        return rv;
    }
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_LETTERS, .now = now, .message = message));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_STAFF_EMAILS));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_FINDS));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_NEWS));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_NEWS_ADDRESSES));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_NOTICES));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_MOVES));
    mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_EMAILS, .now = now, .message = message));
    return mdl_db_exec(db, &restored->emails, p, MDL_Q(RESTORED_EMAILS_FAILED, message));
}

apr_status_t mdl_restored(mdl_db_t *db, apr_pool_t *p, mdl_restored_t *restored)
{
    const char *feed;
    apr_status_t rv = mdl_event_renew_feed(db, p, &feed);

    rv = rv == APR_SUCCESS ? ids_skip(db, p) : rv;
    if (rv == APR_SUCCESS) {
        mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_SIGN_OUT));
        mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_FORGET_NODES));
        mdl_db_exec(db, NULL, p, MDL_Q(RESTORED_OPEN));
        mdl_db_exec(db, NULL, p, MDL_Q(STORAGE_RELEASE_ALL));
        rv = emails_set_aside(db, restored, p);
    }
    return rv;
}

apr_status_t mdl_restored_pending(mdl_db_t *db, apr_pool_t *p, const char *hold)
{
    mdl_rows_t *row;

    return mdl_db_select_one(db, &row, p, MDL_Q(RESTORED_HOLD, hold));
}
