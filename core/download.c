#include "core/download.h"

#include <string.h>

#include <apr_time.h>

typedef struct {
    const char *access_status;
    const char *assignment_status;
    apr_time_t expires_at;
    const char *asset_status;
    int used;
    int extra;
} grant_t;

static apr_status_t read_grant(mdl_db_t *db, mdl_download_t *download, grant_t *grant,
                               apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(
        db, MDL_Q_DOWNLOAD_GRANT, &row, p,
        MDL_ARGS(mdl_int(download->link->asset_id), mdl_int(download->link->assignment_id)));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    grant->access_status = mdl_rows_text(row, 0);
    grant->assignment_status = mdl_rows_text(row, 1);
    grant->expires_at = mdl_rows_int(row, 2);
    grant->asset_status = mdl_rows_text(row, 3);
    grant->used = (int)mdl_rows_int(row, 13);
    grant->extra = (int)mdl_rows_int(row, 14);
    download->limit = mdl_rows_null(row, 9) ? download->default_download_limit
                                            : (int)mdl_rows_int(row, 9);
    download->filename = mdl_rows_text(row, 4);
    download->content_type = mdl_rows_text(row, 5);
    download->sha256 = mdl_rows_text(row, 6);
    download->size = mdl_rows_int(row, 7);
    download->updated_at = mdl_rows_int(row, 8);
    download->page_id = mdl_rows_text(row, 10);
    download->shop_name = mdl_rows_text(row, 11);
    download->shop_email = mdl_rows_text(row, 12);
    download->shop_id = mdl_rows_int(row, 15);
    download->order_id = mdl_rows_text(row, 16);
    download->reason = mdl_rows_text(row, 17);
    download->locale = mdl_rows_text(row, 18);
    return APR_SUCCESS;
}

static mdl_download_verdict_t judge(const grant_t *grant, apr_time_t now)
{
    if (strcmp(grant->access_status, "held") == 0) {
        return MDL_DOWNLOAD_HELD;
    }
    if (strcmp(grant->access_status, "rejected") == 0) {
        return MDL_DOWNLOAD_REJECTED;
    }
    if (strcmp(grant->access_status, "active") != 0 ||
        strcmp(grant->assignment_status, "active") != 0) {
        return MDL_DOWNLOAD_REVOKED;
    }
    if (grant->expires_at != 0 && grant->expires_at <= now) {
        return MDL_DOWNLOAD_EXPIRED;
    }
    if (strcmp(grant->asset_status, "failed") == 0) {
        return MDL_DOWNLOAD_FAILED;
    }
    return strcmp(grant->asset_status, "ready") == 0 ? MDL_DOWNLOAD_OK : MDL_DOWNLOAD_NOT_READY;
}

static apr_status_t decide(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_download_t *download = arg;
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    grant_t grant;
    apr_status_t rv;

    download->open = 0;
    download->page_id = NULL;
    download->verdict = MDL_DOWNLOAD_GONE;
    if ((rv = read_grant(db, download, &grant, p)) != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    download->verdict = judge(&grant, now);
    if (download->verdict != MDL_DOWNLOAD_OK) {
        return APR_SUCCESS;
    }
    rv = mdl_db_select_one(db, MDL_Q_DOWNLOAD_SESSION_FIND, &row, p,
                           MDL_ARGS(mdl_text(download->link->session)));
    if (rv == APR_SUCCESS) {
        download->open = 1;
        if (mdl_rows_int(row, 0) + download->session_lifetime <= now) {
            download->verdict = MDL_DOWNLOAD_LINK_OLD;
        }
        return APR_SUCCESS;
    }
    if (rv == APR_ENOENT && download->link->expires_at <= now) {
        download->verdict = MDL_DOWNLOAD_LINK_OLD;
    } else if (download->limit > 0 && grant.used >= download->limit + grant.extra) {
        download->verdict = MDL_DOWNLOAD_EXHAUSTED;
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_download_look(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    return mdl_db_read(db, decide, download, p);
}

/* Of 50 sessions that begin at once with one download left, one is let in. */
static apr_status_t open_session(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_download_t *download = arg;
    const mdl_link_file_t *link = download->link;
    apr_int64_t changed;
    apr_status_t rv;

    download->verdict = MDL_DOWNLOAD_OK;
    rv = mdl_db_exec(db, MDL_Q_DOWNLOAD_SESSION_OPEN, &changed, p,
                     MDL_ARGS(mdl_text(link->session), mdl_int(link->assignment_id),
                              mdl_int(link->asset_id), mdl_int(apr_time_now())));
    if (rv != APR_SUCCESS || changed == 0) {
        return rv; /* another request of this session has opened it meanwhile */
    }
    rv = mdl_db_exec(db, MDL_Q_ALLOWANCE_TAKE, &changed, p,
                     MDL_ARGS(mdl_int(link->assignment_id), mdl_int(link->asset_id),
                              mdl_int(download->limit), mdl_int(download->limit)));
    if (rv == APR_SUCCESS && changed == 0) {
        download->verdict = MDL_DOWNLOAD_EXHAUSTED;
        return APR_EGENERAL; /* rolls the session back */
    }
    return rv;
}

apr_status_t mdl_download_open(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_write(db, open_session, download, p);

    return rv == APR_EGENERAL && download->verdict == MDL_DOWNLOAD_EXHAUSTED ? APR_SUCCESS : rv;
}
