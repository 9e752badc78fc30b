/*
 * The buyers of a file are told of its new version: this begins the search for them, which
 * core/order/news.h goes on with.
 */
#ifndef MDL_CORE_CATALOG_VERSION_NEWS_H
#define MDL_CORE_CATALOG_VERSION_NEWS_H

#include "db/db.h"

/** Queues the job tell_buyers for a version of an asset that has just been made. */
apr_status_t mdl_version_tell(mdl_db_t *db, apr_int64_t shop_id, apr_int64_t asset_id, int version,
                              apr_pool_t *p);

#endif
