#include "core/download/download.h"

#include <apr_time.h>

#include "base/clock.h"
#include "core/download/reservation.h"
#include "core/ids.h"

/* Whether the link was made before the order's page was replaced. */
static int download_link_is_replaced(const mdl_download_t *download, apr_pool_t *p)
{
    return download->page_replaced &&
           !mdl_signed_url_session_of(download->secret, download->link->session, download->page_id,
                                      p);
}

/* Takes the request from the order's rate, once its page is known.  APR_EACCES: the page was
   replaced since the link was made, which costs nothing; APR_EAGAIN: the rate is exceeded. */
static apr_status_t download_admit(mdl_download_t *download, apr_pool_t *p)
{
    mdl_rate_state_t state;

    if (download_link_is_replaced(download, p)) {
        return APR_EACCES;
    }
    mdl_rate_limit_take(download->rate_limit, MDL_RATE_PART, download->page_id, 1,
                        mdl_clock_monotonic(), &state);
    download->wait = state.more_in;
    return state.allowed ? APR_SUCCESS : APR_EAGAIN;
}

/* Reads the link's last session, if any, from a column on. */
static void download_read_session(mdl_download_t *download, const mdl_rows_t *row, int column)
{
    if (!mdl_rows_null(row, column)) {
        mdl_session_read(row, column, &download->session);
    }
}

/* The mapping's limit times the quantity; limit and quantity are columns. */
static int download_limit(const mdl_download_t *download, const mdl_rows_t *row, int limit,
                          int quantity)
{
    return (int)mdl_rows_int(row, quantity) * (mdl_rows_null(row, limit)
                                                   ? download->default_download_limit
                                                   : (int)mdl_rows_int(row, limit));
}

static void download_set_left(const mdl_download_t *download, mdl_entitlement_facts_t *facts,
                              const mdl_allowance_t *allowance)
{
    facts->downloads = (mdl_downloads_t){.used = allowance->used};
    facts->download_limit = download->limit > 0 ? download->limit + allowance->extra : 0;
}

static apr_status_t download_read_archive(mdl_db_t *db, mdl_download_t *download,
                                          mdl_entitlement_facts_t *facts, apr_pool_t *p)
{
    mdl_archive_t *archive = &download->archive;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ARCHIVE_GRANT, .session_id = download->link->session,
                                              .assignment_id = download->link->assignment_id));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    MDL_READ(row, archive_grant, download, page_id);
    download->page_replaced = !MDL_NULL(row, archive_grant, page_replaced_at);
    facts->shop_blocked = !MDL_NULL(row, archive_grant, blocked_at);
    facts->undeclared = MDL_INT(row, archive_grant, undeclared) != 0;
    facts->access = MDL_ENUM(row, archive_grant, access_status, mdl_order_access_names);
    facts->assignment = MDL_ENUM(row, archive_grant, assignment_status,
                                 mdl_assignment_status_names);
    facts->expires_at = MDL_INT(row, archive_grant, expires_at);
    download->limit = download_limit(download, row, mdl_c_archive_grant_download_limit,
                                     mdl_c_archive_grant_quantity);
    download->is_fresh = MDL_INT(row, archive_grant, fresh_downloads) != 0;
    download->filename = mdl_archive_filename(MDL_TEXT(row, archive_grant, storefront_order_id), p);
    download_read_session(download, row, mdl_c_archive_grant_id);
    download->content_type = "application/zip";
    if ((rv = download_admit(download, p)) != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_archive_read(db, download->link->assignment_id,
                          download->is_fresh ? &download->limit : NULL, archive, p);
    download->tag = archive->tag;
    download->size = mdl_zip_size(archive->zip);
    download->updated_at = archive->updated_at;
    facts->asset = archive->files->nelts > 0 ? MDL_ASSET_READY : MDL_ASSET_PENDING;
    download_set_left(download, facts, &archive->fewest);
    return rv;
}

/* APR_ENOENT: the assignment does not have the file. */
static apr_status_t download_find_listed(mdl_db_t *db, const mdl_signed_file_t *link, apr_pool_t *p)
{
    mdl_rows_t *row;

    return mdl_db_select_one(
        db, &row, p, MDL_Q(DOWNLOAD_LISTED, .id = link->assignment_id, .asset_id = link->asset_id));
}

static apr_status_t download_read_file(mdl_db_t *db, mdl_download_t *download,
                                       mdl_entitlement_facts_t *facts, apr_pool_t *p)
{
    const mdl_signed_file_t *link = download->link;
    mdl_allowance_t allowance;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(DOWNLOAD_GRANT, .session_id = link->session,
                                              .asset_id = link->asset_id,
                                              .assignment_id = link->assignment_id));

    if (rv == APR_SUCCESS && MDL_NULL(row, download_grant, is_listed)) {
        rv = download_find_listed(db, link, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    MDL_READ(row, download_grant, download, filename, content_type, updated_at, page_id);
    download->size = MDL_INT(row, download_grant, asset_size);
    facts->undeclared = MDL_INT(row, download_grant, undeclared) != 0;
    facts->access = MDL_ENUM(row, download_grant, access_status, mdl_order_access_names);
    facts->assignment = MDL_ENUM(row, download_grant, assignment_status,
                                 mdl_assignment_status_names);
    facts->expires_at = MDL_INT(row, download_grant, expires_at);
    facts->asset = MDL_ENUM(row, download_grant, asset_status, mdl_asset_status_names);
    download->limit = download_limit(download, row, mdl_c_download_grant_download_limit,
                                     mdl_c_download_grant_quantity);
    download->is_fresh = MDL_INT(row, download_grant, fresh_downloads) != 0;
    download->sha256 = download->tag = MDL_TEXT(row, download_grant, sha256);
    download->version = (int)MDL_INT(row, download_grant, version);
    allowance = (mdl_allowance_t){.used = (int)MDL_INT(row, download_grant, downloads_used),
                                  .extra = (int)MDL_INT(row, download_grant, downloads_extra),
                                  .version = MDL_TEXT(row, download_grant, allowance_version)};
    if (download->is_fresh) {
        mdl_allowance_renew(&allowance, download->sha256, download->limit);
    }
    download_set_left(download, facts, &allowance);
    download->object = MDL_TEXT(row, download_grant, object);
    download->is_missing = !MDL_NULL(row, download_grant, missing_at);
    download->page_replaced = !MDL_NULL(row, download_grant, page_replaced_at);
    facts->shop_blocked = !MDL_NULL(row, download_grant, blocked_at);
    download_read_session(download, row, mdl_c_download_grant_id);
    return download_admit(download, p);
}

/* Reads the order's page for a link whose file the order no longer has. */
static apr_status_t download_find_page(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p,
                                        MDL_Q(ASSIGNMENT_PAGE, download->link->assignment_id));

    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    download->page_id = MDL_TEXT(row, assignment_page, page_id);
    download->page_replaced = !MDL_NULL(row, assignment_page, page_replaced_at);
    return download_admit(download, p);
}

/* Decides on a new link without a download left: mdl_session_begin can take over a download from a
   session without a transfer, so the link is not refused yet. */
static apr_status_t download_look_for_held(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    const mdl_signed_file_t *link = download->link;
    apr_array_header_t *reservations;
    apr_status_t rv = mdl_reservations_read(db, mdl_ids_of(link->assignment_id, p), &reservations,
                                            p);

    for (int i = 0; i < reservations->nelts && download->entitlement != MDL_ENTITLEMENT_OK; i++) {
        const mdl_reservation_t *each = APR_ARRAY_IDX(reservations, i, mdl_reservation_t *);

        if (mdl_reservation_holds(each, link->asset_id)) {
            download->entitlement = each->is_running ? MDL_ENTITLEMENT_RUNNING : MDL_ENTITLEMENT_OK;
        }
    }
    return rv;
}

static apr_status_t download_decide(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_download_t *download = arg;
    apr_time_t now = apr_time_now();
    mdl_entitlement_facts_t facts;
    int is_gone;
    apr_status_t rv;

    download->page_id = NULL;
    download->page_replaced = 0;
    download->session = (mdl_session_t){0};
    rv = download->link->asset_id == 0 ? download_read_archive(db, download, &facts, p)
                                       : download_read_file(db, download, &facts, p);
    is_gone = rv == APR_ENOENT;
    if (is_gone) {
        rv = download_find_page(db, download, p);
    }
    if (rv == APR_EACCES) {
        return APR_ENOENT;
    }
    if (rv == APR_EAGAIN) {
        download->entitlement = MDL_ENTITLEMENT_TOO_OFTEN;
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    download->entitlement = is_gone ? MDL_ENTITLEMENT_GONE : mdl_entitlement_of(&facts, now);
    if (download->entitlement != MDL_ENTITLEMENT_OK &&
        download->entitlement != MDL_ENTITLEMENT_EXHAUSTED) {
        return APR_SUCCESS;
    }
    if (download->session.generation != 0) { /* it has its downloads */
        download->entitlement = download->session.opened_at + download->session_lifetime > now
                                    ? MDL_ENTITLEMENT_OK
                                    : MDL_ENTITLEMENT_LINK_OLD;
    } else if (download->link->expires_at <= now) {
        download->entitlement = MDL_ENTITLEMENT_LINK_OLD;
    } else if (download->entitlement == MDL_ENTITLEMENT_EXHAUSTED) {
        return download_look_for_held(db, download, p);
    }
    return APR_SUCCESS;
}

apr_status_t mdl_download_look(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p)
{
    apr_status_t rv = mdl_db_read(db, download_decide, download, p);

    download->is_closed = mdl_db_is_closed(db);
    return rv;
}
