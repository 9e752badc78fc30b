/*
 * The parameters of a header's value: form-data; name="file"; filename=a.zip (RFC 9110, section
 * 5.6.6).
 */
#ifndef MDL_BASE_TEXT_PARAMETER_H
#define MDL_BASE_TEXT_PARAMETER_H

#include <apr_pools.h>

/** Reads a parameter at *text, which is a ";" or the end of the value, and moves *text behind it.
    False if there is none left.  Of what has no "=" nothing is read. */
int mdl_parameter_next(const char **text, const char **name, const char **value, apr_pool_t *p);

/** The value of the first parameter with a name; NULL if there is none. */
const char *mdl_parameter_get(const char *header, const char *name, apr_pool_t *p);

#endif
