/*
 * downloadsctl copy-database: copies the service's database to another, SQLite or PostgreSQL, and
 * compares both row by row (db/copy.h).  The service is closed meanwhile (core/closed.h).
 */
#ifndef MDL_CTL_COPY_DATABASE_H
#define MDL_CTL_COPY_DATABASE_H

#include "ctl/command.h"

int mdl_ctl_copy_database(mdl_ctl_t *ctl);

#endif
