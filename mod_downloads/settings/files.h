/*
 * What the pages of files share.
 */
#ifndef MDL_SETTINGS_FILES_H
#define MDL_SETTINGS_FILES_H

#include "base/text/json.h"
#include "core/catalog/asset_use.h"
#include "core/catalog/import.h"
#include "settings/visit.h"

/** The most bytes of a form with an address, each of which may be sent as three. */
#define MDL_FILES_FORM_MAX (MDL_IMPORT_URL_MAX * 4)

/** The most categories that a page offers, the newest. */
#define MDL_FILES_CATEGORIES 200

/** Adds the array "categories" (of mdl_category_t *) as a form offers them, with chosen marked. */
void mdl_files_add_categories(mdl_json_t *to, const apr_array_header_t *categories,
                              apr_int64_t chosen);

/** Reads the form's source_url and prepares import for it; *last_segment is of its path, or NULL.
    Refused: 400 invalid_source, 422 source_host_not_allowed, 507 insufficient_storage. */
apr_status_t mdl_files_read_source(mdl_visit_t *visit, mdl_import_t *import, const char **url,
                                   const char **last_segment);

/** Reads what a form says of a new version.  Refused: 400 invalid_note. */
apr_status_t mdl_files_read_news(mdl_visit_t *visit, mdl_asset_news_t *news);

/** Adds how many orders have the file, and the fields that mdl_files_read_news reads, as typed. */
void mdl_files_add_reach(mdl_json_t *to, const mdl_visit_t *visit, const mdl_asset_use_t *use);

/** Checks a form's title and filename; NULL: not given.  Refused: 400 invalid_title,
    invalid_filename, filename_too_long. */
apr_status_t mdl_files_check_names(mdl_visit_t *visit, const char *title, const char *filename);

#endif
