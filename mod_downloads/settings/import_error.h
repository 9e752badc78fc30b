/*
 * Why an import failed, in the words of the pages, and whether to try again can help.
 */
#ifndef MDL_SETTINGS_IMPORT_ERROR_H
#define MDL_SETTINGS_IMPORT_ERROR_H

#include "base/text/json.h"

/** Adds the object "import_error", whose member with the error's name is true ("other" for one
    without words); error_message; and can_retry. */
void mdl_import_error_add(mdl_json_t *to, const char *code, const char *message);

#endif
