/*
 * What a download session that is over without being whole has cost: for each file that it took a
 * download of, whether that counts.  Of an archive each file is looked at by itself, for who has
 * all of it but the end has every file.
 */
#ifndef MDL_CORE_DOWNLOAD_DIVISION_H
#define MDL_CORE_DOWNLOAD_DIVISION_H

#include "core/download/session.h"

typedef struct {
    apr_array_header_t *counted;  /* apr_int64_t: assets whose download counts from now on */
    apr_array_header_t *returned; /* and those whose download is given back */
    mdl_coverage_t *kept;         /* the places in taken of all that count by now */
} mdl_division_t;

/** Divides what session has taken by what it has delivered since it was opened or gone on with;
   what is not a download yet is kept for the next session (core/download/delivered.h). */
apr_status_t mdl_divide(mdl_db_t *db, const mdl_session_t *session, const mdl_coverage_t *coverage,
                        mdl_division_t *division, apr_pool_t *p);

#endif
