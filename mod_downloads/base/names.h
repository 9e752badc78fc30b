/*
 * Names of an enum's values in the database and the API.  The values count up from 0; a table that
 * ends in NULL has their names: names[value].  db/db.h reads a column by such a table.
 */
#ifndef MDL_BASE_NAMES_H
#define MDL_BASE_NAMES_H

/** The value with this name; -1 if there is none, or for NULL. */
int mdl_names_find(const char *const *names, const char *name);

#endif
