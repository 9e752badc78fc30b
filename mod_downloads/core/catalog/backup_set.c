#include "core/catalog/backup_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_file_info.h>
#include <apr_strings.h>

#include "base/crypto.h"
#include "base/text/json.h"

#define FORMAT       1
#define MANIFEST_MAX 65536
#define PIECE        (1024 * 1024)
#define NAME_LENGTH  20 /* 2026-11-28T22-33-30Z */

static const char *const parts[] = {"manifest", "database", "files"};

const char *mdl_backup_path(const mdl_backup_set_t *set, const char *file, apr_pool_t *p)
{
    return apr_psprintf(p, "%s/%s/%s", set->folder, set->name, file);
}

/* --- files --- */

/* Reads a file, writes it to another unless that is NULL, and digests it. */
static apr_status_t file_digest(const char *path, apr_file_t *to, const char **digest,
                                apr_pool_t *p)
{
    unsigned char bytes[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    char *piece = apr_palloc(p, PIECE);
    apr_size_t length = 0;
    apr_file_t *file;
    apr_status_t rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_FPROT_OS_DEFAULT, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    while (rv == APR_SUCCESS) {
        length = PIECE;
        rv = apr_file_read(file, piece, &length);
        if (rv == APR_SUCCESS) {
            mdl_sha256_update(sha, piece, length);
            rv = to != NULL ? apr_file_write_full(to, piece, length, NULL) : rv;
        }
    }
    apr_file_close(file);
    mdl_sha256_end(sha, bytes);
    *digest = mdl_hex(bytes, sizeof bytes, p);
    return APR_STATUS_IS_EOF(rv) ? APR_SUCCESS : rv;
}

/* Syncs a folder's entries, as far as its file system can. */
static apr_status_t folder_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    apr_status_t rv = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL) ? APR_SUCCESS
                                                                     : APR_FROM_OS_ERROR(errno);

    if (fd >= 0) {
        close(fd);
    }
    return rv;
}

/* Writes a file that is there completely or not at all. */
static apr_status_t file_put(const char *path, const char *text, apr_pool_t *p)
{
    const char *temporary = apr_pstrcat(p, path, ".new", NULL);
    apr_file_t *file;
    apr_status_t rv = apr_file_open(&file, temporary,
                                    APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_TRUNCATE,
                                    APR_FPROT_UREAD | APR_FPROT_UWRITE, p);

    if (rv == APR_SUCCESS) {
        rv = apr_file_write_full(file, text, strlen(text), NULL);
        rv = rv == APR_SUCCESS ? apr_file_sync(file) : rv;
        apr_file_close(file);
    }
    return rv == APR_SUCCESS ? apr_file_rename(temporary, path, p) : rv;
}

apr_status_t mdl_backup_set_database(const mdl_backup_set_t *set, const char *path, apr_pool_t *p)
{
    const char *digest;
    apr_file_t *to = NULL;
    apr_status_t rv = APR_SUCCESS;

    if (path != NULL) {
        rv = apr_file_open(&to, path, APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_TRUNCATE,
                           APR_FPROT_UREAD | APR_FPROT_UWRITE | APR_FPROT_GREAD, p);
    }
    if (rv == APR_SUCCESS) {
        rv = file_digest(mdl_backup_path(set, "database", p), to, &digest, p);
    }
    if (to != NULL) {
        rv = rv == APR_SUCCESS ? apr_file_sync(to) : rv;
        apr_file_close(to);
    }
    return rv == APR_SUCCESS && strcmp(digest, set->database_sha256) != 0 ? APR_EMISMATCH : rv;
}

/* --- the manifest: a line of JSON, and its digest in the next --- */

static const char *digest_of(const char *text, apr_size_t length, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(text, length, digest);
    return mdl_hex(digest, sizeof digest, p);
}

apr_status_t mdl_backup_set_seal(mdl_backup_set_t *set, apr_pool_t *p)
{
    mdl_json_t *manifest = mdl_json_object(p);
    const char *text;
    apr_size_t length;
    apr_status_t rv = file_digest(mdl_backup_path(set, "database", p), NULL, &set->database_sha256,
                                  p);

    if (rv == APR_SUCCESS) {
        rv = file_digest(mdl_backup_path(set, "files", p), NULL, &set->list_sha256, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    mdl_json_add_int(manifest, "format", FORMAT);
    mdl_json_add_string(manifest, "name", set->name);
    mdl_json_add_int(manifest, "made_at", set->made_at);
    mdl_json_add_string(manifest, "build", set->build);
    mdl_json_add_string(manifest, "driver", set->driver);
    mdl_json_add_string(manifest, "hold", set->hold);
    mdl_json_add_string(manifest, "identity", set->identity);
    mdl_json_add_int(manifest, "files", set->files);
    mdl_json_add_int(manifest, "bytes", set->bytes);
    mdl_json_add_int(manifest, "objects", set->objects);
    mdl_json_add_int(manifest, "faults", set->faults);
    mdl_json_add_string(manifest, "database_sha256", set->database_sha256);
    mdl_json_add_string(manifest, "list_sha256", set->list_sha256);
    text = mdl_json_text(manifest, &length, p);
    text = apr_pstrcat(p, text, "\n", digest_of(text, length, p), "\n", NULL);
    rv = folder_sync(set->folder);
    rv = rv == APR_SUCCESS ? folder_sync(mdl_backup_path(set, "", p)) : rv;
    rv = rv == APR_SUCCESS ? file_put(mdl_backup_path(set, "manifest", p), text, p) : rv;
    return rv == APR_SUCCESS ? folder_sync(mdl_backup_path(set, "", p)) : rv;
}

static const char *manifest_text(const mdl_json_t *manifest, const char *name, apr_pool_t *p)
{
    return apr_pstrdup(p, mdl_json_string(mdl_json_member(manifest, name)));
}

static apr_int64_t manifest_number(const mdl_json_t *manifest, const char *name)
{
    return mdl_json_int(mdl_json_member(manifest, name));
}

static apr_status_t manifest_parse(mdl_backup_set_t *set, const char *text, const char **why,
                                   apr_pool_t *p)
{
    apr_size_t length = strcspn(text, "\n");
    mdl_json_t *manifest;

    if (text[length] != '\n' ||
        strncmp(text + length + 1, digest_of(text, length, p), MDL_SHA256_HEX_LENGTH) != 0 ||
        mdl_json_parse(&manifest, text, length, MDL_JSON_MAX_VALUES, why, p) != APR_SUCCESS) {
        *why = apr_psprintf(p, "%s is damaged: take another backup.",
                            mdl_backup_path(set, "manifest", p));
        return APR_EINVAL;
    }
    if (manifest_number(manifest, "format") != FORMAT) {
        *why = apr_psprintf(p, "%s was made by another release (%s): use that.",
                            mdl_backup_path(set, "manifest", p),
                            manifest_text(manifest, "build", p));
        return APR_EINVAL;
    }
    set->made_at = manifest_number(manifest, "made_at");
    set->build = manifest_text(manifest, "build", p);
    set->driver = manifest_text(manifest, "driver", p);
    set->hold = manifest_text(manifest, "hold", p);
    set->identity = manifest_text(manifest, "identity", p);
    set->files = manifest_number(manifest, "files");
    set->bytes = manifest_number(manifest, "bytes");
    set->objects = manifest_number(manifest, "objects");
    set->faults = manifest_number(manifest, "faults");
    set->database_sha256 = manifest_text(manifest, "database_sha256", p);
    set->list_sha256 = manifest_text(manifest, "list_sha256", p);
    return APR_SUCCESS;
}

/* Splits the path of a backup into its folder and its name. */
static apr_status_t set_find(mdl_backup_set_t *set, const char *path, const char **why,
                             apr_pool_t *p)
{
    apr_size_t length = strlen(path);
    const char *slash;
    apr_array_header_t *names;
    apr_status_t rv;

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    path = apr_pstrmemdup(p, path, length);
    slash = strrchr(path, '/');
    if (length > NAME_LENGTH && slash != NULL && strlen(slash) == NAME_LENGTH + 1 &&
        access(apr_pstrcat(p, path, "/database", NULL), F_OK) == 0) {
        set->folder = apr_pstrmemdup(p, path, (apr_size_t)(slash - path));
        set->name = slash + 1;
        return APR_SUCCESS;
    }
    set->folder = path;
    if ((rv = mdl_backup_set_names(path, 1, &names, p)) != APR_SUCCESS) {
        return rv;
    }
    if (names->nelts == 0) {
        *why = apr_psprintf(p, "%s has no complete backup.", path);
        return APR_EINVAL;
    }
    set->name = APR_ARRAY_IDX(names, names->nelts - 1, const char *);
    return APR_SUCCESS;
}

static apr_status_t manifest_load(mdl_backup_set_t *set, const char **why, apr_pool_t *p)
{
    char *text = apr_pcalloc(p, MANIFEST_MAX);
    apr_size_t length = MANIFEST_MAX - 1;
    apr_file_t *file;
    apr_status_t rv = apr_file_open(&file, mdl_backup_path(set, "manifest", p), APR_FOPEN_READ,
                                    APR_FPROT_OS_DEFAULT, p);

    if (APR_STATUS_IS_ENOENT(rv)) {
        *why = apr_psprintf(p,
                            "%s/%s was not completed, for it has no manifest: take another "
                            "backup.",
                            set->folder, set->name);
        return APR_EINVAL;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_file_read_full(file, text, length, &length);
    apr_file_close(file);
    return rv == APR_SUCCESS || APR_STATUS_IS_EOF(rv) ? manifest_parse(set, text, why, p) : rv;
}

apr_status_t mdl_backup_set_read(mdl_backup_set_t *set, const char *path, const char **why,
                                 apr_pool_t *p)
{
    const char *digest = NULL;
    char text[120];
    apr_status_t rv;

    *why = NULL;
    rv = set_find(set, path, why, p);
    rv = rv == APR_SUCCESS ? manifest_load(set, why, p) : rv;
    if (rv == APR_SUCCESS) {
        rv = file_digest(mdl_backup_path(set, "files", p), NULL, &digest, p);
    }
    if (rv == APR_SUCCESS && strcmp(digest, set->list_sha256) != 0) {
        *why = apr_psprintf(p, "%s is damaged: take another backup.",
                            mdl_backup_path(set, "files", p));
        return APR_EINVAL;
    }
    if (rv != APR_SUCCESS && *why == NULL) {
        *why = apr_psprintf(p, "The backup %s can't be read: %s.", path,
                            apr_strerror(rv, text, sizeof text));
    }
    return rv;
}

/* --- the folder of backups --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

apr_status_t mdl_backup_set_names(const char *folder, int complete, apr_array_header_t **names,
                                  apr_pool_t *p)
{
    apr_dir_t *dir;
    apr_finfo_t entry;
    apr_status_t rv = apr_dir_open(&dir, folder, p);

    *names = apr_array_make(p, 16, sizeof(const char *));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    while (apr_dir_read(&entry, APR_FINFO_NAME, dir) == APR_SUCCESS) {
        mdl_backup_set_t set = {.folder = folder, .name = entry.name};

        if (strlen(entry.name) == NAME_LENGTH && entry.name[NAME_LENGTH - 1] == 'Z' &&
            (access(mdl_backup_path(&set, "manifest", p), F_OK) == 0) == complete) {
            APR_ARRAY_PUSH(*names, const char *) = apr_pstrdup(p, entry.name);
        }
    }
    apr_dir_close(dir);
    qsort((*names)->elts, (size_t)(*names)->nelts, sizeof(const char *), compare_names);
    return APR_SUCCESS;
}

void mdl_backup_set_remove(const char *folder, const char *name, apr_pool_t *p)
{
    const mdl_backup_set_t set = {.folder = folder, .name = name};
    static const char *const more[] = {"manifest.new", "database-wal", "database-shm",
                                       "database-journal", "database-writer"};

    for (apr_size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        unlink(mdl_backup_path(&set, parts[i], p));
    }
    for (apr_size_t i = 0; i < sizeof more / sizeof *more; i++) {
        unlink(mdl_backup_path(&set, more[i], p));
    }
    rmdir(apr_pstrcat(p, folder, "/", name, NULL));
}

/* --- the list --- */

apr_status_t mdl_backup_list_open(mdl_backup_list_t *list, const mdl_backup_set_t *set,
                                  apr_pool_t *p)
{
    return apr_file_open(&list->file, mdl_backup_path(set, "files", p),
                         APR_FOPEN_READ | APR_FOPEN_BUFFERED, APR_FPROT_OS_DEFAULT, p);
}

apr_status_t mdl_backup_list_next(mdl_backup_list_t *list, mdl_blob_t *blob)
{
    apr_status_t rv = apr_file_gets(list->line, sizeof list->line, list->file);
    char *rest = list->line + MDL_SHA256_HEX_LENGTH;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (strlen(list->line) <= MDL_SHA256_HEX_LENGTH + 1 || *rest != ' ') {
        return APR_EINVAL;
    }
    *rest = '\0';
    *blob = (mdl_blob_t){.sha256 = list->line, .size = apr_strtoi64(rest + 1, &rest, 10)};
    if (*rest == ' ') {
        blob->object = rest + 1;
        rest[strcspn(rest, "\n")] = '\0';
    }
    return APR_SUCCESS;
}
