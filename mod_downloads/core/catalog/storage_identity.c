#include "core/catalog/storage_identity.h"

#include <string.h>

#include <apr_strings.h>

typedef struct {
    const char *folder;   /* the folder's identity; NULL: none */
    const char *database; /* the identity that the database knows; NULL: none */
    int has_blobs;        /* whether the database knows any file */
} identities_t;

static apr_status_t identity_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    identities_t *identities = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_IDENTITY));

    if (rv == APR_SUCCESS) {
        identities->database = MDL_TEXT(row, storage_identity, identity);
        identities->has_blobs = !MDL_NULL(row, storage_identity, sha256);
    }
    return rv;
}

static apr_status_t identity_adopt_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const identities_t *identities = arg;
    apr_status_t rv = mdl_db_exec(db, NULL, p, MDL_Q(STORAGE_ADOPT, identities->folder));

    return rv == APR_SUCCESS ? identity_read_effect(db, p, arg) : rv;
}

static apr_status_t folder_read(const char *root, identities_t *identities, const char **why,
                                apr_pool_t *p)
{
    apr_status_t rv = mdl_storage_identity(root, &identities->folder, p);
    char text[120];

    if (APR_STATUS_IS_ENOENT(rv)) {
        identities->folder = NULL;
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        *why = apr_psprintf(p, "The file " MDL_STORAGE_IDENTITY_FILE " of %s can't be read: %s.",
                            root,
                            rv == APR_EINVAL ? "it is not what was written there"
                                             : apr_strerror(rv, text, sizeof text));
    }
    return rv;
}

/* Why a database that knows no folder must not take this one, or NULL. */
static const char *why_not_adopt(const char *root, const identities_t *identities, apr_pool_t *p)
{
    int has_blobs = mdl_storage_has_blobs(root, p);

    if (has_blobs && !identities->has_blobs) {
        return apr_psprintf(p,
                            "%s holds files, and the database knows none of them: restore the "
                            "database that they belong to, or name an empty folder.",
                            root);
    }
    if (!has_blobs && identities->has_blobs && identities->folder == NULL) {
        return apr_psprintf(p,
                            "The database knows files, and %s holds none: mount or restore the "
                            "folder, or correct DownloadsStorage.  If this one is to take its "
                            "place: echo %s >%s/" MDL_STORAGE_IDENTITY_FILE,
                            root, mdl_storage_new_identity(p), root);
    }
    return NULL;
}

/* Writes the file before the database knows of it: if the process is killed in between, the next
   one uses the file. */
static apr_status_t folder_join(mdl_db_t *db, const char *root, identities_t *identities,
                                const char **why, apr_pool_t *p)
{
    apr_status_t rv = APR_SUCCESS;
    char text[120];

    if (identities->folder == NULL &&
        (rv = mdl_storage_identify(root, &identities->folder, p)) != APR_SUCCESS) {
        *why = apr_psprintf(p, "The file " MDL_STORAGE_IDENTITY_FILE " can't be made in %s: %s.",
                            root, apr_strerror(rv, text, sizeof text));
        return rv;
    }
    return mdl_db_write(db, identity_adopt_effect, identities, p);
}

static const char *mismatch(const char *root, const identities_t *identities, apr_pool_t *p)
{
    const char *is = identities->folder == NULL ? "has no file " MDL_STORAGE_IDENTITY_FILE
                                                  ", as if it were new or not "
                                                  "mounted"
                                                : apr_psprintf(p, "is %s", identities->folder);

    return apr_psprintf(
        p,
        "The database's files are in the storage folder %s, and %s %s: mount or "
        "restore the folder, or correct DownloadsStorage.  If this one is to take its "
        "place: echo %s >%s/" MDL_STORAGE_IDENTITY_FILE,
        identities->database, root, is, identities->database, root);
}

static apr_status_t identities_compare(const char *root, const identities_t *identities,
                                       const char **why, apr_pool_t *p)
{
    if (identities->folder != NULL && strcmp(identities->folder, identities->database) == 0) {
        return APR_SUCCESS;
    }
    *why = mismatch(root, identities, p);
    return APR_EMISMATCH;
}

apr_status_t mdl_storage_belongs(mdl_db_t *db, const mdl_storage_config_t *storage, int join,
                                 const char **why, apr_pool_t *p)
{
    const char *root = storage->folder;
    identities_t identities = {0};
    apr_status_t rv = mdl_db_read(db, identity_read_effect, &identities, p);

    /* In this order: an identity is written to the folder before the database. */
    if (rv != APR_SUCCESS || (rv = folder_read(root, &identities, why, p)) != APR_SUCCESS) {
        return rv;
    }
    if (identities.database == NULL) {
        if ((*why = why_not_adopt(root, &identities, p)) != NULL) {
            return APR_EMISMATCH;
        }
        if (!join || (rv = folder_join(db, root, &identities, why, p)) != APR_SUCCESS) {
            return rv;
        }
    }
    return identities_compare(root, &identities, why, p);
}
