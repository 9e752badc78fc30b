#include "ctl/migrate.h"

#include <stddef.h>

#include <apr_strings.h>

#include "db/migrate.h"

typedef struct {
    int applied;
    int version;
} migrated_t;

static const mdl_field_t fields[] = {
    {"applied", MDL_FIELD_INT, offsetof(migrated_t, applied), 0, NULL},
    {"version", MDL_FIELD_INT, offsetof(migrated_t, version), 0, NULL},
    {0},
};

int mdl_ctl_migrate(mdl_ctl_t *ctl)
{
    migrated_t migrated = {.version = mdl_migrate_latest()};
    const char *why;
    apr_status_t rv;

    if (mdl_ctl_connect(ctl, &why) != MDL_EXIT_DONE) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    }
    rv = mdl_migrate(ctl->db, &migrated.applied, ctl->p);
    if (rv == APR_EMISMATCH) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            "The schema is newer than this program: use the downloadsctl of the "
                            "newer installation.");
    }
    if (rv != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            mdl_ctl_database_error(ctl, rv));
    }
    mdl_printer_result(
        ctl->output, fields, &migrated, "%s",
        migrated.applied
            ? apr_psprintf(ctl->p,
                           "Applied %d migration%s; the schema is at version %d.  "
                           "Restart httpd if it runs.",
                           migrated.applied, migrated.applied == 1 ? "" : "s", migrated.version)
            : apr_psprintf(ctl->p, "Applied 0 migrations; the schema is at version %d.",
                           migrated.version));
    return MDL_EXIT_DONE;
}
