/*
 * The storage folder as an httpd child has it open: one handle for uploads, the API and downloads.
 */
#ifndef MDL_CHILD_STORAGE_H
#define MDL_CHILD_STORAGE_H

#include <httpd.h>

#include "core/problem.h"
#include "core/service/service.h"
#include "core/settings/settings.h"
#include "storage/storage.h"

/** Opens the folder, or logs MDL0211; for each httpd child, before its threads.  It lives as long
   as p. */
void mdl_child_storage_init(apr_pool_t *p, const mdl_settings_t *settings);

/** The storage of this child; NULL when the folder could not be opened. */
mdl_storage_t *mdl_child_storage(void);

/** Whether the folder can be written to and, unless db is NULL, belongs to the database.  A mount
    point without its file system is an empty folder: writable, but without the identity. */
int mdl_child_storage_folder_ready(const mdl_settings_t *settings, mdl_db_t *db, apr_pool_t *p);

/** Which places of the storage work (core/readiness.h).  Waits for the store, if this process is
   the one to check. */
mdl_places_ready_t mdl_child_storage_places(const mdl_service_t *service, mdl_db_t *db,
                                            apr_pool_t *p);

/** Refuses a request for new bytes with 507 insufficient_storage when the disk is full.  size: -1
    if unknown. */
apr_status_t mdl_child_storage_admit(request_rec *r, apr_int64_t size, mdl_problem_t *problem);

#endif
