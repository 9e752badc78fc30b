#include "core/catalog/backup_files.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#define PIECE       (1024 * 1024)
#define BATCH       32                 /* files that are synced together, */
#define BATCH_BYTES (64 * 1024 * 1024) /* or so many bytes */

/* Files that are written, but not synced yet. */
typedef struct {
    mdl_backup_files_t *files;
    mdl_partial_commit_t commits[BATCH];
    mdl_blob_t blobs[BATCH];
    int count;
    apr_int64_t bytes;
    char *piece;
    apr_pool_t *pool; /* of the batch */
} batch_t;

static void blob_fault(mdl_backup_files_t *files, const mdl_blob_t *blob, mdl_blob_fault_t fault,
                       apr_status_t rv)
{
    files->faults++;
    files->found(files->baton, blob, fault, rv);
}

static void blob_there(mdl_backup_files_t *files, const mdl_blob_t *blob)
{
    files->files++;
    files->bytes += blob->size;
}

static apr_status_t batch_commit(batch_t *batch)
{
    apr_status_t rv = APR_SUCCESS;

    mdl_partial_commit_all(batch->commits, batch->count);
    for (int i = 0; i < batch->count; i++) {
        if (batch->commits[i].rv != APR_SUCCESS) {
            rv = rv == APR_SUCCESS ? batch->commits[i].rv : rv;
            continue;
        }
        blob_there(batch->files, &batch->blobs[i]);
        batch->files->copied++;
        batch->files->copied_bytes += batch->blobs[i].size;
    }
    batch->count = 0;
    batch->bytes = 0;
    apr_pool_clear(batch->pool);
    return rv;
}

static void batch_discard(batch_t *batch)
{
    for (int i = 0; i < batch->count; i++) {
        mdl_partial_discard(batch->commits[i].partial);
    }
    batch->count = 0;
}

/* Copies the bytes.  *read gets the error of the source, another is returned. */
static apr_status_t bytes_copy(batch_t *batch, apr_file_t *file, mdl_partial_t *partial,
                               apr_status_t *read)
{
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS) {
        apr_size_t length = PIECE;

        if ((*read = apr_file_read(file, batch->piece, &length)) != APR_SUCCESS) {
            break;
        }
        rv = mdl_partial_write(partial, batch->piece, length);
        rv = rv == APR_SUCCESS ? batch->files->step(batch->files->baton) : rv;
    }
    *read = APR_STATUS_IS_EOF(*read) ? APR_SUCCESS : *read;
    return rv;
}

static apr_status_t partial_begin(batch_t *batch, const mdl_blob_t *blob, mdl_partial_t **partial)
{
    const char *id = apr_pstrcat(batch->pool, MDL_STORAGE_COPY_PREFIX, blob->sha256, NULL);
    apr_status_t rv = mdl_partial_append(partial, batch->files->to, id, batch->pool);

    return rv == APR_SUCCESS ? mdl_partial_truncate(*partial, 0) : rv;
}

static apr_status_t blob_copy(batch_t *batch, const mdl_blob_t *blob, apr_file_t *file)
{
    mdl_blob_t *made = &batch->blobs[batch->count];
    mdl_partial_t *partial;
    apr_status_t read = APR_SUCCESS;
    apr_status_t rv = partial_begin(batch, blob, &partial);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = bytes_copy(batch, file, partial, &read);
    if (rv == APR_SUCCESS && read == APR_SUCCESS) {
        rv = mdl_partial_digest(partial, made, batch->pool);
    }
    if (rv != APR_SUCCESS || read != APR_SUCCESS || strcmp(made->sha256, blob->sha256) != 0) {
        mdl_partial_discard(partial);
        if (rv == APR_SUCCESS) {
            blob_fault(batch->files, blob,
                       read != APR_SUCCESS        ? MDL_BLOB_UNREADABLE
                       : made->size == blob->size ? MDL_BLOB_CHANGED
                                                  : MDL_BLOB_WRONG_SIZE,
                       read);
        }
        return rv;
    }
    batch->commits[batch->count++] = (mdl_partial_commit_t){.partial = partial, .blob = made};
    batch->bytes += made->size;
    return batch->count == BATCH || batch->bytes >= BATCH_BYTES ? batch_commit(batch) : APR_SUCCESS;
}

static apr_status_t blob_take(batch_t *batch, const mdl_blob_t *blob)
{
    mdl_backup_files_t *files = batch->files;
    apr_int64_t size;
    apr_file_t *file;
    apr_status_t rv;

    if (blob->object != NULL) {
        files->objects++;
        return APR_SUCCESS;
    }
    if (mdl_storage_size(files->to, blob, &size, batch->pool) == APR_SUCCESS &&
        size == blob->size) {
        blob_there(files, blob);
        return files->step(files->baton);
    }
    rv = mdl_storage_file(&file, files->from, blob, 0, batch->pool);
    if (rv != APR_SUCCESS) {
        blob_fault(files, blob, APR_STATUS_IS_ENOENT(rv) ? MDL_BLOB_MISSING : MDL_BLOB_UNREADABLE,
                   rv);
        return APR_SUCCESS;
    }
    rv = blob_copy(batch, blob, file);
    if (batch->count > 0) {
        apr_file_close(file); /* else the pool was cleared */
    }
    return rv;
}

apr_status_t mdl_backup_files_copy(mdl_backup_files_t *files, apr_pool_t *p)
{
    batch_t batch = {.files = files, .piece = apr_palloc(p, PIECE)};
    mdl_backup_list_t list;
    mdl_blob_t blob;
    apr_status_t rv = mdl_backup_list_open(&list, files->set, p);

    apr_pool_create(&batch.pool, p);
    apr_pool_tag(batch.pool, "mdl_backup_files");
    while (rv == APR_SUCCESS && (rv = mdl_backup_list_next(&list, &blob)) == APR_SUCCESS) {
        rv = blob_take(&batch, &blob);
        if (batch.count == 0) {
            apr_pool_clear(batch.pool);
        }
    }
    if (APR_STATUS_IS_EOF(rv)) {
        rv = batch_commit(&batch);
    }
    batch_discard(&batch);
    apr_pool_destroy(batch.pool);
    return rv;
}

void mdl_backup_files_clean(mdl_storage_t *storage, apr_pool_t *p)
{
    apr_array_header_t *ids;

    if (mdl_partial_list(storage, &ids, p) == APR_SUCCESS) {
        for (int i = 0; i < ids->nelts; i++) {
            mdl_partial_remove(storage, APR_ARRAY_IDX(ids, i, const char *), p);
        }
    }
}

/* --- what no backup needs --- */

/* A backup's list, which is sorted, and its next blob. */
typedef struct {
    mdl_backup_set_t set;
    mdl_backup_list_t list;
    mdl_blob_t blob;
    apr_status_t rv; /* APR_EOF: there is none */
} needing_t;

/* Adds the blobs of a shard. */
static apr_status_t needing_read(needing_t *needing, char digit, apr_hash_t *needed, apr_pool_t *p)
{
    while (needing->rv == APR_SUCCESS && needing->blob.sha256[0] <= digit) {
        apr_hash_set(needed, apr_pstrdup(p, needing->blob.sha256), APR_HASH_KEY_STRING, needing);
        needing->rv = mdl_backup_list_next(&needing->list, &needing->blob);
    }
    return APR_STATUS_IS_EOF(needing->rv) ? APR_SUCCESS : needing->rv;
}

static apr_status_t shard_prune(const mdl_storage_t *storage, int shard, apr_array_header_t *all,
                                apr_pool_t *p)
{
    apr_hash_t *needed = apr_hash_make(p);
    apr_array_header_t *names;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < all->nelts && rv == APR_SUCCESS; i++) {
        rv = needing_read(&APR_ARRAY_IDX(all, i, needing_t), "0123456789abcdef"[shard], needed, p);
    }
    rv = rv == APR_SUCCESS ? mdl_storage_list(storage, shard, &names, p) : rv;
    for (int i = 0; rv == APR_SUCCESS && i < names->nelts; i++) {
        const mdl_blob_t blob = {.sha256 = APR_ARRAY_IDX(names, i, const char *)};

        if (apr_hash_get(needed, blob.sha256, APR_HASH_KEY_STRING) == NULL) {
            rv = mdl_storage_remove(storage, &blob, p);
        }
    }
    return rv;
}

apr_status_t mdl_backup_files_prune(const char *folder, const mdl_storage_t *storage, apr_pool_t *p)
{
    apr_array_header_t *names, *all;
    apr_pool_t *pool;
    apr_status_t rv = mdl_backup_set_names(folder, 1, &names, p);

    all = apr_array_make(p, names->nelts + 1, sizeof(needing_t));
    for (int i = 0; rv == APR_SUCCESS && i < names->nelts; i++) {
        needing_t *needing = apr_array_push(all);

        needing->set = (mdl_backup_set_t){.folder = folder,
                                          .name = APR_ARRAY_IDX(names, i, const char *)};
        rv = mdl_backup_list_open(&needing->list, &needing->set, p);
        needing->rv = rv == APR_SUCCESS ? mdl_backup_list_next(&needing->list, &needing->blob) : rv;
    }
    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_backup_prune");
    for (int shard = 0; rv == APR_SUCCESS && shard < MDL_STORAGE_SHARDS; shard++) {
        rv = shard_prune(storage, shard, all, pool);
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
    return rv;
}
