/*
 * The version of all that is built here; CHANGES begins with it.
 */
#ifndef MDL_BASE_VERSION_H
#define MDL_BASE_VERSION_H

#define MDL_VERSION "0.1.0"

#endif
