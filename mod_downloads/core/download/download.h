/*
 * Decides whether a link may download its file, or its archive of all files of an assignment.
 * session.h has what a download costs.
 */
#ifndef MDL_CORE_DOWNLOAD_DOWNLOAD_H
#define MDL_CORE_DOWNLOAD_DOWNLOAD_H

#include "core/download/archive.h"
#include "core/download/signed_url.h"
#include "core/download/entitlement.h"
#include "core/download/session.h"
#include "core/shop/rate_limit.h"
#include "db/db.h"

typedef struct {
    const mdl_signed_file_t *link;
    const mdl_secret_t *secret;
    mdl_rate_limit_t *rate_limit;
    int default_download_limit;
    apr_interval_time_t session_lifetime;
    mdl_entitlement_t entitlement; /* out, like all that follow */
    apr_interval_time_t wait;      /* for TOO_OFTEN: until the next request is allowed */
    int is_closed;                 /* maintenance: no download begins */
    const char *page_id;           /* of the order; NULL: none */
    int page_replaced;             /* whether the order had another page before */
    mdl_session_t session;         /* the last of the link; generation 0: none */
    int limit; /* without granted downloads; 0: unlimited.  Not set for GONE and TOO_OFTEN, like all
                  that follow */
    int is_fresh; /* whether a file's new bytes begin a new allowance */
    const char *filename;
    const char *content_type;
    const char *sha256; /* NULL for an archive */
    const char *object; /* the key of the object that has the file; NULL: the folder has it */
    int is_missing;     /* whether the object was not there when it was read last */
    int version;        /* of the file; 0 for an archive */
    const char *tag;    /* for an entity tag: the file's SHA-256, or the archive's tag */
    apr_int64_t size;
    apr_time_t updated_at;
    mdl_archive_t archive; /* only if the link is an archive's */
} mdl_download_t;

/** A request for part of a file that delivers this many bytes is given back to its order's rate
    once it is settled: a client may fetch a large file in as many parts as it likes. */
#define MDL_DOWNLOAD_LARGE_PART (1024 * 1024)

/**
 * Decides on a request for a file.  Takes it from the order's rate, and changes nothing else.
 * Returns APR_SUCCESS with an entitlement, APR_ENOENT when the order's page was replaced since the
 * link was made, or an error of the database.
 */
apr_status_t mdl_download_look(mdl_db_t *db, mdl_download_t *download, apr_pool_t *p);

#endif
