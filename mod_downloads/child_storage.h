/*
 * The storage folder as an httpd child has it open: one handle for uploads, the API and downloads.
 */
#ifndef MDL_CHILD_STORAGE_H
#define MDL_CHILD_STORAGE_H

#include <httpd.h>

#include "core/problem.h"
#include "core/settings/settings.h"
#include "storage/storage.h"

/** Opens the folder, or logs MDL0211; for each httpd child, before its threads.  It lives as long
   as p. */
void mdl_child_storage_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The storage of this child; NULL when the folder could not be opened. */
mdl_storage_t *mdl_child_storage(void);

/** Refuses a request for new bytes with 507 insufficient_storage when the disk is full.  size: -1
    if unknown. */
apr_status_t mdl_child_storage_admit(request_rec *r, apr_int64_t size, mdl_problem_t *problem);

#endif
