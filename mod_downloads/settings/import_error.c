#include "settings/import_error.h"

#include <string.h>

#include "base/names.h"
#include "settings/frame.h"

/* The errors of an import for which the templates say what to do. */
static const char *const import_errors[] = {
    "source_host_not_allowed",    "source_address_forbidden",
    "source_not_found",           "source_refused",
    "source_redirects",           "source_name_unknown",
    "source_certificate_invalid", "source_is_html",
    "source_unavailable",         "source_timeout",
    "source_too_large",           "checksum_mismatch",
    "upload_incomplete",          "insufficient_storage",
    "storage_quota_exceeded",     NULL};

/* The errors that would come again: of the checksum that was given, of bytes that are not there. */
static const char *const lasting_errors[] = {"checksum_mismatch", "source_too_large",
                                             "upload_incomplete", NULL};

void mdl_import_error_add(mdl_json_t *to, const char *code, const char *message)
{
    mdl_json_t *error = mdl_json_add_object(to, "import_error");
    int known = mdl_names_find(import_errors, code);

    mdl_frame_add_choice(error, import_errors, known);
    mdl_json_add_bool(error, "other", known < 0);
    mdl_json_add_string(to, "error_message", message);
    mdl_json_add_bool(to, "can_retry", mdl_names_find(lasting_errors, code) < 0);
}
