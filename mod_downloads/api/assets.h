/*
 * The resource assets: GET /assets, GET, PATCH and DELETE /assets/{id}; and what other resources
 * share with it.  POST /assets is an import: api/imports.c.
 */
#ifndef MDL_API_ASSETS_H
#define MDL_API_ASSETS_H

#include "api/members.h"
#include "core/catalog/asset.h"

/** Adds an asset to the response, as its member "asset". */
void mdl_asset_write(mdl_request_t *request, const mdl_asset_t *asset);

/* Read and check an asset's members in a request's body; NULL, or 0, when absent or faulty. */
const char *mdl_asset_filename(mdl_members_t *members, mdl_presence_t presence);
const char *mdl_asset_title(mdl_members_t *members, mdl_presence_t presence);
const char *mdl_asset_content_type(mdl_members_t *members, mdl_presence_t presence);
apr_int64_t mdl_asset_category_id(mdl_members_t *members);
/** The digest in lower case. */
const char *mdl_asset_sha256(mdl_members_t *members, apr_pool_t *p);

#endif
