/*
 * One download of one file: who may have it, and what it costs.
 */
#ifndef MDL_CORE_DOWNLOAD_H
#define MDL_CORE_DOWNLOAD_H

#include "core/link.h"
#include "db/db.h"

typedef enum {
    MDL_DOWNLOAD_OK,
    MDL_DOWNLOAD_GONE,    /* no such file in the order any more */
    MDL_DOWNLOAD_REVOKED, /* these three: the order's page says why */
    MDL_DOWNLOAD_HELD,
    MDL_DOWNLOAD_EXPIRED,
    MDL_DOWNLOAD_LINK_OLD,  /* the link was not used in time, or its session is over */
    MDL_DOWNLOAD_NOT_READY, /* the file is being prepared, or its import failed */
    MDL_DOWNLOAD_EXHAUSTED  /* no download is left */
} mdl_download_verdict_t;

typedef struct {
    const mdl_link_file_t *link;
    int default_download_limit;
    apr_interval_time_t session_lifetime;
    mdl_download_verdict_t verdict; /* out, as all below */
    int open;                       /* the link's session was open before */
    int limit;
    const char *page_id; /* of the order; NULL when the verdict is GONE */
    const char *filename;
    const char *content_type;
    const char *sha256;
    apr_int64_t size;
    apr_time_t updated_at;
} mdl_download_t;

/**
 * Decides over a request for a file.  With take set it opens the link's session, which takes one
 * download by one conditional UPDATE, unless it is open already; without, as for HEAD, it changes
 * nothing.  Returns APR_SUCCESS with a verdict, or an error of the database.
 */
apr_status_t mdl_download_begin(mdl_db_t *db, mdl_download_t *download, int take, apr_pool_t *p);

#endif
