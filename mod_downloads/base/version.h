/*
 * The version of the module and downloadsctl; CHANGES begins with it.
 */
#ifndef MDL_BASE_VERSION_H
#define MDL_BASE_VERSION_H

#define MDL_VERSION "0.1.0~rc1"

/** The name of this build: the version and, when built in a git checkout, the commit: "0.1.0~rc1
    (a32b4af)", with "-dirty" if files were changed. */
const char *mdl_build_name(void);

#endif
