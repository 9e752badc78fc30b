/*
 * The import of a remote file: an asset, and the job that fills it.
 */
#ifndef MDL_CORE_CATALOG_IMPORT_H
#define MDL_CORE_CATALOG_IMPORT_H

#include "base/crypto.h"
#include "base/http/policy.h"
#include "core/catalog/asset.h"
#include "core/job.h"

typedef struct {
    apr_int64_t shop_id;
    const mdl_secret_t *secret;
    const char *expected_sha256; /* 64 lower-case hexadecimal digits, or NULL */
    int max_attempts;
    mdl_asset_t asset; /* in: source_url, filename, title, content_type, category_id; out: all */
    mdl_job_t job;     /* out */
    mdl_problem_t *problem;
} mdl_import_t;

#define MDL_IMPORT_URL_MAX 8192 /* bytes of a source_url */

/** Gives an asset without a filename, or without a title, one that is guessed from last_segment, of
    the source's path (or NULL), until the source says its own. */
void mdl_import_name(mdl_asset_t *asset, const char *last_segment);

/** Effect: makes a pending asset and queues its import.  Refused with 422 unknown_reference. */
apr_status_t mdl_import_queue(mdl_db_t *db, apr_pool_t *p, mdl_import_t *import);

/** Effect: queues the import of new bytes for an asset, which keeps its bytes until then.  Refused
    like mdl_asset_await_bytes. */
typedef struct {
    apr_int64_t asset_id;
    const apr_array_header_t *versions; /* of the asset, as in mdl_entity_ref_t */
    const char *source_url;
    mdl_asset_news_t news;
    mdl_import_t import; /* in: shop_id, expected_sha256, max_attempts, problem; out: asset, job */
} mdl_version_t;
apr_status_t mdl_version_queue(mdl_db_t *db, apr_pool_t *p, mdl_version_t *version);

/** Effect: queues an import that fetches an asset's current bytes again from their source; other
    bytes are not accepted.  Refused: 409 no_source when the whole address is not known (the asset
    was uploaded, or the address had a query, which is not kept), source_host_not_allowed when the
    policy no longer allows it, and like mdl_version_queue. */
typedef struct {
    const mdl_http_policy_t *policy;
    mdl_version_t version; /* in: asset_id; import, with expected_sha256; source_url as in
                              mdl_asset_t, or NULL */
} mdl_import_again_t;
apr_status_t mdl_import_again(mdl_db_t *db, apr_pool_t *p, mdl_import_again_t *again);

#endif
