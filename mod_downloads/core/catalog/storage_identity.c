#include "core/catalog/storage_identity.h"

#include <string.h>

#include <apr_strings.h>

#define FOLDER  "folder"
#define OBJECTS "objects"

typedef struct {
    const char *name;     /* of the place: FOLDER or OBJECTS */
    const char *place;    /* its own identity; NULL: none */
    const char *database; /* the identity that the database knows; NULL: none */
    int has_blobs;        /* whether the database knows any blob there */
} identities_t;

static apr_status_t identity_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    identities_t *identities = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_IDENTITY, identities->name));

    identities->database = rv == APR_SUCCESS ? mdl_rows_text(row, 0) : NULL;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t identity_adopt_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    const identities_t *identities = arg;
    apr_status_t rv = mdl_db_exec(
        db, NULL, p,
        MDL_Q(STORAGE_ADOPT, .place = identities->name, .identity = identities->place));

    return rv == APR_SUCCESS ? identity_read_effect(db, p, arg) : rv;
}

static apr_status_t has_blobs_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    identities_t *identities = arg;
    mdl_rows_t *row;
    apr_status_t rv = strcmp(identities->name, FOLDER) == 0
                          ? mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_KNOWS_FILE))
                          : mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_KNOWS_OBJECT));

    identities->has_blobs = rv == APR_SUCCESS;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t folder_read(const char *root, identities_t *identities, const char **why,
                                apr_pool_t *p)
{
    apr_status_t rv = mdl_storage_identity(root, &identities->place, p);
    char text[120];

    if (APR_STATUS_IS_ENOENT(rv)) {
        identities->place = NULL;
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
    if (!has_blobs && identities->has_blobs && identities->place == NULL) {
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

    if (identities->place == NULL &&
        (rv = mdl_storage_identify(root, &identities->place, p)) != APR_SUCCESS) {
        *why = apr_psprintf(p, "The file " MDL_STORAGE_IDENTITY_FILE " can't be made in %s: %s.",
                            root, apr_strerror(rv, text, sizeof text));
        return rv;
    }
    return mdl_db_write(db, identity_adopt_effect, identities, p);
}

static const char *mismatch(const char *root, const identities_t *identities, apr_pool_t *p)
{
    const char *is = identities->place == NULL ? "has no file " MDL_STORAGE_IDENTITY_FILE
                                                 ", as if it were new or not "
                                                 "mounted"
                                               : apr_psprintf(p, "is %s", identities->place);

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
    if (identities->place != NULL && strcmp(identities->place, identities->database) == 0) {
        return APR_SUCCESS;
    }
    *why = mismatch(root, identities, p);
    return APR_EMISMATCH;
}

static apr_status_t folder_belongs(mdl_db_t *db, const char *root, int join, const char **why,
                                   apr_pool_t *p)
{
    identities_t identities = {.name = FOLDER};
    apr_status_t rv = mdl_db_read(db, identity_read_effect, &identities, p);

    /* In this order: an identity is written to the folder before the database. */
    if (rv != APR_SUCCESS || (rv = folder_read(root, &identities, why, p)) != APR_SUCCESS) {
        return rv;
    }
    if (identities.database == NULL) {
        if ((rv = mdl_db_read(db, has_blobs_effect, &identities, p)) != APR_SUCCESS) {
            return rv;
        }
        if ((*why = why_not_adopt(root, &identities, p)) != NULL) {
            return APR_EMISMATCH;
        }
        if (!join || (rv = folder_join(db, root, &identities, why, p)) != APR_SUCCESS) {
            return rv;
        }
    }
    return identities_compare(root, &identities, why, p);
}

/* Whether no file is in a folder that the settings no longer name. */
static apr_status_t folder_missed(mdl_db_t *db, const char **why, apr_pool_t *p)
{
    identities_t identities = {.name = FOLDER};
    apr_status_t rv = mdl_db_read(db, has_blobs_effect, &identities, p);

    if (rv != APR_SUCCESS || !identities.has_blobs) {
        return rv;
    }
    *why = "The database knows files that are in no object, and DownloadsStorage is missing: name "
           "their folder until \"downloadsctl storage copy folder object\" has copied them.";
    return APR_EMISMATCH;
}

/* --- the bucket --- */

static apr_status_t bucket_read(mdl_object_store_t *store, const char *url,
                                identities_t *identities, const char **why, apr_pool_t *p)
{
    mdl_object_call_t call = {0};
    apr_status_t rv = mdl_storage_objects_identity(store, &identities->place, &call, p);

    if (APR_STATUS_IS_ENOENT(rv)) {
        identities->place = NULL;
        return APR_SUCCESS;
    }
    if (rv == APR_EINVAL) {
        *why = apr_psprintf(
            p, "The object " MDL_STORAGE_IDENTITY_OBJECT " of %s is not what was written there.",
            url);
    } else if (rv != APR_SUCCESS) {
        *why = call.why;
    }
    return rv;
}

/* The database decides, and the bucket has its identity from there: a process that is killed in
   between leaves a bucket that the next one takes for new. */
static apr_status_t bucket_join(mdl_db_t *db, mdl_object_store_t *store, identities_t *identities,
                                const char **why, apr_pool_t *p)
{
    mdl_object_call_t call = {0};
    apr_status_t rv = APR_SUCCESS;

    if (identities->database == NULL) {
        identities->place = mdl_storage_new_identity(p);
        rv = mdl_db_write(db, identity_adopt_effect, identities, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = mdl_storage_objects_identify(store, identities->database, &call, p);
    *why = call.why;
    return rv;
}

/* Whether the database has objects elsewhere, or the bucket those of another database. */
static const char *bucket_why_other(const char *url, const identities_t *identities, apr_pool_t *p)
{
    if (identities->database == NULL) {
        return apr_psprintf(p,
                            "The bucket %s belongs to another database, for its object "
                            "" MDL_STORAGE_IDENTITY_OBJECT
                            " is %s: restore that database, or name a bucket of its own in "
                            "DownloadsObjectStore.  If this database is to have this one, delete "
                            "that object.",
                            url, identities->place);
    }
    return apr_psprintf(
        p,
        "The database's objects are in the bucket %s, and %s %s: correct DownloadsObjectStore.  If "
        "this one is to take its place, write %s into its object " MDL_STORAGE_IDENTITY_OBJECT ".",
        identities->database, url,
        identities->place == NULL ? "has no object " MDL_STORAGE_IDENTITY_OBJECT
                                    ", as if it were new"
                                  : apr_psprintf(p, "is %s", identities->place),
        identities->database);
}

static apr_status_t bucket_compare(mdl_db_t *db, mdl_object_store_t *store, const char *url,
                                   int join, const char **why, apr_pool_t *p)
{
    identities_t identities = {.name = OBJECTS};
    apr_status_t rv = bucket_read(store, url, &identities, why, p);

    /* In this order: an identity is written to the database before the bucket. */
    if (rv != APR_SUCCESS ||
        (rv = mdl_db_read(db, identity_read_effect, &identities, p)) != APR_SUCCESS) {
        return rv;
    }
    if (identities.place == NULL) {
        rv = mdl_db_read(db, has_blobs_effect, &identities, p);
        if (rv != APR_SUCCESS || !identities.has_blobs) {
            return rv == APR_SUCCESS && join ? bucket_join(db, store, &identities, why, p) : rv;
        }
    }
    if (identities.database != NULL && identities.place != NULL &&
        strcmp(identities.place, identities.database) == 0) {
        return APR_SUCCESS;
    }
    *why = bucket_why_other(url, &identities, p);
    return APR_EMISMATCH;
}

static apr_status_t bucket_belongs(mdl_db_t *db, const mdl_object_config_t *config, int join,
                                   const char **why, apr_pool_t *p)
{
    mdl_object_store_t *store;
    apr_pool_t *pool;
    apr_status_t rv;

    apr_pool_create(&pool, p); /* its end closes the connections */
    apr_pool_tag(pool, "mdl_storage_identity");
    rv = mdl_object_store_create(&store, config, why, pool);
    if (rv == APR_SUCCESS) {
        rv = bucket_compare(db, store, config->url, join, why, p);
    } else {
        *why = apr_pstrdup(p, *why);
    }
    apr_pool_destroy(pool);
    return rv;
}

apr_status_t mdl_storage_bucket_belongs(mdl_db_t *db, const mdl_object_config_t *bucket,
                                        const char **why, apr_pool_t *p)
{
    return bucket_belongs(db, bucket, 0, why, p);
}

apr_status_t mdl_storage_belongs(mdl_db_t *db, const mdl_storage_config_t *storage, int join,
                                 const char **why, apr_pool_t *p)
{
    apr_status_t rv = storage->folder != NULL ? folder_belongs(db, storage->folder, join, why, p)
                                              : folder_missed(db, why, p);

    return rv == APR_SUCCESS && storage->objects.url != NULL
               ? bucket_belongs(db, &storage->objects, join, why, p)
               : rv;
}

int mdl_storage_unasked(apr_status_t rv)
{
    return rv == MDL_OBJECT_EAWAY || rv == MDL_OBJECT_EDENIED;
}
