#include "core/catalog/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/version.h"
#include "db/dump.h"

#define LEASE apr_time_from_sec(3600) /* of the hold; SQLite's copy can't renew it meanwhile */
#define RENEW apr_time_from_sec(60)
#define BATCH 1000

typedef struct {
    mdl_db_t *db;
    mdl_db_t *other; /* for what must not wait for the snapshot's transaction */
    mdl_backup_t *backup;
    mdl_storage_hold_t hold;
    apr_time_t renew_at; /* by mdl_clock_monotonic */
    apr_status_t lost;   /* why the hold could not be renewed */
    mdl_storage_t *to;
    apr_file_t *list;
    apr_int64_t listed; /* files, without objects */
    int lock;
    apr_pool_t *p;
} making_t;

static apr_status_t place_failed(making_t *making, const char *path, apr_status_t rv)
{
    char text[120];

    making->backup->why =
        APR_STATUS_IS_EACCES(rv)
            ? apr_psprintf(making->p,
                           "%s can't be written to: give it to the user that httpd runs as, who "
                           "makes the backup.",
                           path)
        : APR_STATUS_IS_ENOSPC(rv)
            ? apr_psprintf(making->p,
                           "%s has no space left: DownloadsStorageReserve stays free, as "
                           "elsewhere.",
                           path)
            : apr_psprintf(making->p, "%s can't be written to: %s.", path,
                           apr_strerror(rv, text, sizeof text));
    return rv;
}

/* --- the hold --- */

MDL_EFFECT(mdl_storage_hold_renew, const mdl_storage_hold_t *)

static apr_status_t hold_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    return mdl_storage_hold(db, p, arg);
}

static apr_status_t release_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_problem_t problem;
    mdl_storage_release_t release = {.id = ((const mdl_storage_hold_t *)arg)->id,
                                     .problem = &problem};

    return mdl_storage_release(db, p, &release);
}

static void hold_renew(void *baton)
{
    making_t *making = baton;
    apr_pool_t *pool;

    if (making->lost != APR_SUCCESS || mdl_clock_monotonic() < making->renew_at) {
        return;
    }
    making->renew_at = mdl_clock_monotonic() + RENEW;
    apr_pool_create(&pool, making->p);
    making->lost = mdl_db_settle(making->other, mdl_storage_hold_renew_effect, &making->hold, pool);
    apr_pool_destroy(pool);
}

static apr_status_t making_step(void *baton)
{
    making_t *making = baton;

    if (making->backup->stopped()) {
        making->backup->why = "The backup was stopped.  The next one goes on with the files.";
        return APR_EINTR;
    }
    hold_renew(making);
    if (making->lost == APR_ENOENT) {
        making->backup->why = "The backup's hold on the storage has lapsed or was released, so "
                              "files may be gone: make another backup.";
    }
    return making->lost;
}

/* --- database and list --- */

/* The identity of the storage folder that the database knows. */
static apr_status_t identity_read(mdl_db_t *db, making_t *making, apr_pool_t *p)
{
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(STORAGE_IDENTITY, "folder"));

    making->backup->set.identity = rv == APR_SUCCESS ? apr_pstrdup(making->p, mdl_rows_text(row, 0))
                                                     : NULL;
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t list_write(making_t *making, mdl_rows_t *rows, char *after)
{
    apr_status_t rv = APR_SUCCESS;

    *after = '\0';
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *object = MDL_TEXT(rows, blobs_after, object);

        apr_cpystrn(after, MDL_TEXT(rows, blobs_after, sha256), MDL_SHA256_HEX_LENGTH + 1);
        making->listed += object == NULL;
        if (apr_file_printf(making->list, "%s %" APR_INT64_T_FMT "%s%s\n", after,
                            MDL_INT(rows, blobs_after, size), object != NULL ? " " : "",
                            object != NULL ? object : "") < 0) {
            rv = APR_ENOSPC;
        }
    }
    return rv;
}

/* Effect on the state that was copied. */
static apr_status_t list_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    making_t *making = arg;
    char after[MDL_SHA256_HEX_LENGTH + 1] = "";
    apr_off_t start = 0;
    apr_pool_t *pool;
    mdl_rows_t *rows;
    apr_status_t rv = identity_read(db, making, p);

    apr_file_seek(making->list, APR_SET, &start);
    apr_file_trunc(making->list, 0);
    making->listed = 0;
    apr_pool_create(&pool, p);
    while (rv == APR_SUCCESS) {
        rv = mdl_db_select(db, &rows, pool, MDL_Q(BLOBS_AFTER, .after = after, .limit = BATCH));
        rv = rv == APR_SUCCESS ? list_write(making, rows, after) : rv;
        apr_pool_clear(pool);
        if (*after == '\0') {
            break;
        }
    }
    apr_pool_destroy(pool);
    return rv;
}

/* Whether SQLite's copy leaves the reserve free.  How large PostgreSQL's will be nobody knows. */
static apr_status_t database_room(const making_t *making)
{
    struct stat file;

    return mdl_db_dialect(making->db) == MDL_SQLITE3 && stat(making->backup->params, &file) == 0
               ? mdl_storage_room(making->to, (apr_int64_t)file.st_size)
               : APR_SUCCESS;
}

static apr_status_t database_copy(making_t *making)
{
    mdl_backup_t *backup = making->backup;
    mdl_db_dump_t dump = {.params = backup->params,
                          .path = mdl_backup_path(&backup->set, "database", making->p),
                          .within = list_effect,
                          .arg = making,
                          .waiting = hold_renew,
                          .baton = making};
    const char *path = mdl_backup_path(&backup->set, "files", making->p);
    apr_status_t rv = database_room(making);

    if (rv == APR_SUCCESS) {
        rv = apr_file_open(&making->list, path,
                           APR_FOPEN_READ | APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_BUFFERED,
                           APR_FPROT_UREAD | APR_FPROT_UWRITE, making->p);
    }
    if (rv != APR_SUCCESS) {
        return place_failed(making, path, rv);
    }
    rv = mdl_db_dump(making->db, &dump, making->p);
    if (rv == APR_SUCCESS) {
        rv = apr_file_sync(making->list);
    }
    apr_file_close(making->list);
    backup->why = dump.why;
    return APR_STATUS_IS_ENOSPC(rv) ? place_failed(making, path, rv) : rv;
}

/* --- the folder --- */

/* Only one process makes backups in a folder: it removes what others have left. */
static apr_status_t folder_lock(making_t *making)
{
    const char *path = apr_pstrcat(making->p, making->backup->folder, "/lock", NULL);

    making->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (making->lock < 0) {
        return place_failed(making, making->backup->folder, APR_FROM_OS_ERROR(errno));
    }
    if (flock(making->lock, LOCK_EX | LOCK_NB) != 0) {
        making->backup->why = "Another backup is being made there.";
        return APR_EAGAIN;
    }
    return APR_SUCCESS;
}

/* In a storage folder the clean-up would remove unfinished uploads, and then files. */
static apr_status_t folder_check(making_t *making)
{
    const char *folder = making->backup->folder;

    if (access(apr_pstrcat(making->p, folder, "/" MDL_STORAGE_IDENTITY_FILE, NULL), F_OK) == 0) {
        making->backup->why = apr_psprintf(
            making->p, "%s is a storage folder: name another folder for backups.", folder);
        return APR_EAGAIN;
    }
    return APR_SUCCESS;
}

static apr_status_t folder_open(making_t *making)
{
    mdl_backup_t *backup = making->backup;
    const mdl_storage_config_t config = {.folder = backup->folder,
                                         .reserve = backup->config->reserve};
    apr_array_header_t *left;
    apr_status_t rv;

    if (mkdir(backup->folder, 0750) != 0 && errno != EEXIST) {
        return place_failed(making, backup->folder, APR_FROM_OS_ERROR(errno));
    }
    if ((rv = folder_check(making)) != APR_SUCCESS || (rv = folder_lock(making)) != APR_SUCCESS) {
        return rv;
    }
    if ((rv = mdl_storage_open(&making->to, &config, making->p)) != APR_SUCCESS ||
        (rv = mdl_backup_set_names(backup->folder, 0, &left, making->p)) != APR_SUCCESS) {
        return place_failed(making, backup->folder, rv);
    }
    for (int i = 0; i < left->nelts; i++) {
        mdl_backup_set_remove(backup->folder, APR_ARRAY_IDX(left, i, const char *), making->p);
    }
    mdl_backup_files_clean(making->to, making->p);
    return APR_SUCCESS;
}

/* Makes the folder of this backup.  Its name is the time in seconds, so there is one in a second.
 */
static apr_status_t set_make_folder(making_t *making, const char **path, char **name)
{
    apr_time_t now = apr_time_now();

    *name = apr_pstrdup(making->p, mdl_clock_rfc3339(now, making->p));
    (*name)[13] = (*name)[16] = '-';
    memcpy(*name + 19, "Z", 2);
    *path = apr_pstrcat(making->p, making->backup->folder, "/", *name, NULL);
    if (mkdir(*path, 0750) == 0) {
        return APR_SUCCESS;
    }
    if (errno != EEXIST) {
        return APR_FROM_OS_ERROR(errno);
    }
    apr_sleep(APR_USEC_PER_SEC - apr_time_usec(now));
    return APR_EEXIST;
}

static apr_status_t set_begin(making_t *making)
{
    mdl_backup_set_t *set = &making->backup->set;
    const char *path;
    char *name;
    apr_status_t rv;

    do {
        rv = set_make_folder(making, &path, &name);
    } while (rv == APR_EEXIST);
    *set = (mdl_backup_set_t){.folder = making->backup->folder,
                              .name = name,
                              .made_at = apr_time_now(),
                              .build = mdl_build_name(),
                              .driver = mdl_db_dialect(making->db) == MDL_SQLITE3 ? "sqlite3"
                                                                                  : "pgsql",
                              .hold = making->hold.id};
    return rv == APR_SUCCESS ? rv : place_failed(making, path, rv);
}

/* Others may be named after it: by a clock that was wrong then, or that was set back since. */
static apr_status_t sets_prune(making_t *making)
{
    mdl_backup_t *backup = making->backup;
    apr_array_header_t *names;
    apr_status_t rv;

    if (backup->keep == 0) {
        return APR_SUCCESS;
    }
    rv = mdl_backup_set_names(backup->folder, 1, &names, making->p);
    for (int i = 0, left = names->nelts; rv == APR_SUCCESS && left > backup->keep; i++) {
        const char *name = APR_ARRAY_IDX(names, i, const char *);

        if (strcmp(name, backup->set.name) != 0) {
            mdl_backup_set_remove(backup->folder, name, making->p);
            left--;
        }
    }
    rv = rv == APR_SUCCESS ? mdl_backup_files_prune(backup->folder, making->to, making->p) : rv;
    return rv == APR_SUCCESS ? rv : place_failed(making, backup->folder, rv);
}

static apr_status_t files_step(void *baton)
{
    making_t *making = baton;
    const mdl_backup_t *backup = making->backup;

    backup->step(backup->baton, backup->files.files + backup->files.faults, making->listed);
    return making_step(making);
}

static void blob_found(void *baton, const mdl_blob_t *blob, mdl_blob_fault_t fault, apr_status_t rv)
{
    const mdl_backup_t *backup = ((making_t *)baton)->backup;

    backup->found(backup->baton, blob, fault, rv);
}

static apr_status_t files_copy(making_t *making)
{
    mdl_backup_t *backup = making->backup;
    mdl_backup_files_t *files = &backup->files;
    apr_status_t rv;

    *files = (mdl_backup_files_t){.set = &backup->set,
                                  .from = backup->storage,
                                  .to = making->to,
                                  .step = files_step,
                                  .found = blob_found,
                                  .baton = making};
    rv = mdl_backup_files_copy(files, making->p);
    backup->set.files = files->files;
    backup->set.bytes = files->bytes;
    backup->set.objects = files->objects;
    backup->set.faults = files->faults;
    return rv == APR_SUCCESS || backup->why != NULL || making->lost != APR_SUCCESS
               ? rv
               : place_failed(making, backup->folder, rv);
}

/* What follows the hold. */
static apr_status_t backup_fill(making_t *making)
{
    mdl_backup_t *backup = making->backup;
    apr_status_t rv = set_begin(making);

    rv = rv == APR_SUCCESS ? database_copy(making) : rv;
    rv = rv == APR_SUCCESS ? files_copy(making) : rv;
    rv = rv == APR_SUCCESS ? making_step(making) : rv;
    if (rv == APR_SUCCESS && (rv = mdl_backup_set_seal(&backup->set, making->p)) != APR_SUCCESS) {
        rv = place_failed(making, backup->folder, rv);
    }
    return rv == APR_SUCCESS ? sets_prune(making) : rv;
}

apr_status_t mdl_backup_make(mdl_db_t *db, mdl_backup_t *backup, apr_pool_t *p)
{
    making_t making = {.db = db,
                       .backup = backup,
                       .hold = {.user = backup->user, .lease = LEASE},
                       .lock = -1,
                       .p = p};
    apr_status_t rv = folder_open(&making);

    if (rv == APR_SUCCESS) {
        rv = mdl_db_open(&making.other, mdl_db_dialect(db) == MDL_SQLITE3 ? "sqlite3" : "pgsql",
                         backup->params, &backup->why, p);
    }
    if (rv == APR_SUCCESS) {
        backup->why = NULL;
        making.renew_at = mdl_clock_monotonic() + RENEW;
        rv = mdl_db_settle(making.other, hold_effect, &making.hold, p);
    }
    if (rv == APR_SUCCESS) {
        rv = backup_fill(&making);
        mdl_db_settle(making.other, release_effect, &making.hold, p);
    }
    if (making.lock >= 0) {
        close(making.lock);
    }
    return rv;
}
