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

static const mdl_field_t pending_fields[] = {
    {"version", MDL_FIELD_INT, offsetof(mdl_migrate_pending_t, version), 1, NULL},
    {"name", MDL_FIELD_TEXT, offsetof(mdl_migrate_pending_t, name), 1, NULL},
    {"runs_with", MDL_FIELD_INT, offsetof(mdl_migrate_pending_t, runs_with), 1, NULL},
    {0},
};

/* Only reads, and creates no file of SQLite. */
static int migrate_dry_run(mdl_ctl_t *ctl)
{
    const char *why;
    int version;

    if (mdl_ctl_read_version(ctl, &version, &why) != MDL_EXIT_DONE) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    }
    mdl_printer_list(
        ctl->output, pending_fields, mdl_migrate_pending(version, ctl->p),
        apr_psprintf(ctl->p, "Nothing to apply; the schema is at version %d.", version));
    return MDL_EXIT_DONE;
}

int mdl_ctl_migrate(mdl_ctl_t *ctl)
{
    migrated_t migrated = {.applied = 0};
    int before = 0;
    const char *why;
    apr_status_t rv;

    if (ctl->dry_run) {
        return migrate_dry_run(ctl);
    }
    if (mdl_ctl_connect(ctl, &why) != MDL_EXIT_DONE) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable", why);
    }
    mdl_migrate_version(ctl->db, &before, ctl->p);
    rv = mdl_migrate(ctl->db, &migrated.applied, ctl->p);
    if (rv == APR_SUCCESS) {
        rv = mdl_migrate_version(ctl->db, &migrated.version, ctl->p);
    }
    if (rv != APR_SUCCESS) {
        return mdl_ctl_fail(ctl, MDL_EXIT_DATABASE, "database_unavailable",
                            mdl_ctl_database_error(ctl, rv));
    }
    mdl_printer_result(ctl->output, fields, &migrated,
                       "Applied %d migration%s; the schema is at version %d.%s", migrated.applied,
                       migrated.applied == 1 ? "" : "s", migrated.version,
                       migrated.applied > 0 && before > 0 ? mdl_ctl_runs_with(ctl->p) : "");
    return MDL_EXIT_DONE;
}
