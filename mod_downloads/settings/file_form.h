/*
 * A form that sends a small file (multipart/form-data; RFC 7578), read into memory.
 */
#ifndef MDL_SETTINGS_FILE_FORM_H
#define MDL_SETTINGS_FILE_FORM_H

#include "settings/visit.h"

#define MDL_FILE_FORM_FIELDS 4    /* the most, beside the file */
#define MDL_FILE_FORM_FIELD  1024 /* bytes of each */

/** Reads visit->fields, and visit->file from the part "file", of a body of at most max_length bytes
    from owner (request_body.h).  Returns OK, 415, 411, 413, 408, or 400 for a malformed body or one
    with more or longer fields. */
int mdl_file_form_read(mdl_visit_t *visit, const char *owner, apr_size_t max_length);

#endif
