#include "core/download.h"

#include <string.h>

#include <apr_time.h>

typedef struct {
    const char *access_status;
    const char *assignment_status;
    apr_time_t expires_at;
    const char *asset_status;
    int limit; /* 0: unlimited */
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
    grant->limit = mdl_rows_null(row, 9) ? download->default_download_limit
                                         : (int)mdl_rows_int(row, 9);
    download->filename = mdl_rows_text(row, 4);
    download->content_type = mdl_rows_text(row, 5);
    download->sha256 = mdl_rows_text(row, 6);
    download->size = mdl_rows_int(row, 7);
    download->updated_at = mdl_rows_int(row, 8);
    download->page_id = mdl_rows_text(row, 10);
    return APR_SUCCESS;
}

static mdl_download_verdict_t judge(const grant_t *grant, apr_time_t now)
{
    if (strcmp(grant->access_status, "held") == 0) {
        return MDL_DOWNLOAD_HELD;
    }
    if (strcmp(grant->access_status, "active") != 0 ||
        strcmp(grant->assignment_status, "active") != 0) {
        return MDL_DOWNLOAD_REVOKED;
    }
    if (grant->expires_at != 0 && grant->expires_at <= now) {
        return MDL_DOWNLOAD_EXPIRED;
    }
    return strcmp(grant->asset_status, "ready") == 0 ? MDL_DOWNLOAD_OK : MDL_DOWNLOAD_NOT_READY;
}

/* Takes one download and opens the session: 50 that try at once with one left are let in once. */
static apr_status_t open_session(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    const mdl_link_file_t *link = download->link;
    apr_int64_t changed;
    apr_status_t rv;

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

static apr_status_t decide(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_download_t *download = arg;
    apr_time_t now = apr_time_now();
    mdl_rows_t *row;
    grant_t grant;
    apr_status_t rv;

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
    }
    download->limit = grant.limit;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

/* Decides again inside the transaction, so that what is taken is taken from what was seen. */
static apr_status_t decide_and_open(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_download_t *download = arg;
    apr_status_t rv = decide(db, p, download);

    if (rv != APR_SUCCESS || download->verdict != MDL_DOWNLOAD_OK || download->open) {
        return rv;
    }
    return open_session(db, download, p);
}

apr_status_t mdl_download_begin(mdl_db_t *db, mdl_download_t *download, int take, apr_pool_t *p)
{
    apr_status_t rv;

    download->open = 0;
    rv = mdl_db_read(db, decide, download, p);
    if (rv == APR_SUCCESS && take && download->verdict == MDL_DOWNLOAD_OK && !download->open) {
        rv = mdl_db_write(db, decide_and_open, download, p);
        if (download->verdict == MDL_DOWNLOAD_EXHAUSTED) {
            return APR_SUCCESS;
        }
    }
    return rv;
}
