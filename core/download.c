#include "core/download.h"

#include <string.h>

#include <apr_time.h>

#include "core/session.h"

typedef struct {
    const char *access_status;
    const char *assignment_status;
    apr_time_t expires_at;
    const char *asset_status;
    int used;
    int extra;
} grant_t;

static apr_status_t read_archive_grant(mdl_db_t *db, mdl_download_t *download, grant_t *grant,
                                       apr_pool_t *p)
{
    mdl_archive_t *archive = &download->archive;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, MDL_Q_ARCHIVE_GRANT, &row, p,
                                        MDL_ARGS(mdl_int(download->link->assignment_id)));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    grant->access_status = mdl_rows_text(row, 0);
    grant->assignment_status = mdl_rows_text(row, 1);
    grant->expires_at = mdl_rows_int(row, 2);
    download->limit = mdl_rows_null(row, 3) ? download->default_download_limit
                                            : (int)mdl_rows_int(row, 3);
    download->page_id = mdl_rows_text(row, 4);
    download->shop_name = mdl_rows_text(row, 5);
    download->shop_email = mdl_rows_text(row, 6);
    download->shop_id = mdl_rows_int(row, 7);
    download->order_id = mdl_rows_text(row, 8);
    download->reason = mdl_rows_text(row, 9);
    download->locale = mdl_rows_text(row, 10);
    download->filename = mdl_archive_filename(download->order_id, p);
    download->content_type = "application/zip";
    rv = mdl_archive_read(db, download->link->assignment_id, archive, p);
    download->sha256 = archive->tag;
    download->size = mdl_zip_size(archive->zip);
    download->updated_at = archive->updated_at;
    grant->asset_status = archive->files->nelts > 0 ? "ready" : "pending";
    grant->used = archive->downloads_used;
    grant->extra = archive->downloads_extra;
    return rv;
}

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
    mdl_session_t session;
    grant_t grant;
    apr_status_t rv;

    download->page_id = NULL;
    download->verdict = MDL_DOWNLOAD_GONE;
    rv = download->link->asset_id == 0 ? read_archive_grant(db, download, &grant, p)
                                       : read_grant(db, download, &grant, p);
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    download->verdict = judge(&grant, now);
    if (download->verdict != MDL_DOWNLOAD_OK) {
        return APR_SUCCESS;
    }
    rv = mdl_session_find(db, download->link->session, &session, p);
    if (rv == APR_SUCCESS && session.opened_at + download->session_lifetime <= now) {
        download->verdict = MDL_DOWNLOAD_LINK_OLD;
    } else if (rv == APR_ENOENT && download->link->expires_at <= now) {
        download->verdict = MDL_DOWNLOAD_LINK_OLD;
    } else if (rv == APR_ENOENT && download->limit > 0 &&
               grant.used >= download->limit + grant.extra) {
        download->verdict = MDL_DOWNLOAD_EXHAUSTED;
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

apr_status_t mdl_download_look(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    return mdl_db_read(db, decide, download, p);
}
