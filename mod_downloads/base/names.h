/*
 * The names of an enum's values, as the database and the API write them.  The values count up from
 * 0, and one table, which ends in NULL, names each: names[value].  db/db.h reads a column by it.
 */
#ifndef MDL_BASE_NAMES_H
#define MDL_BASE_NAMES_H

/** The value that has this name; -1 when none has, or for NULL. */
int mdl_names_find(const char *const *names, const char *name);

#endif
