/*
 * The version of all that is built here; CHANGES begins with it.
 */
#ifndef MDL_BASE_VERSION_H
#define MDL_BASE_VERSION_H

#define MDL_VERSION "0.1.0"

/** The name of this build: the version, and in brackets what git calls the commit where it was
   built in a checkout, "0.1.0 (a32b4af)"; "-dirty" behind that says that files had been changed. */
const char *mdl_build_name(void);

#endif
