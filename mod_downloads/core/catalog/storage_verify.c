#include "core/catalog/storage_verify.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "base/crypto.h"
#include "core/catalog/blob_place.h"

#define BATCH 500

const char *const mdl_blob_fault_names[] = {
    [MDL_BLOB_MISSING] = "missing",
    [MDL_BLOB_WRONG_SIZE] = "wrong_size",
    [MDL_BLOB_CHANGED] = "changed",
    [MDL_BLOB_UNREADABLE] = "unreadable",
    NULL,
};

typedef struct {
    mdl_blob_t blob; /* without crc32 */
    int missing;     /* whether its object was recorded as missing */
} known_t;

/* A batch of the blobs that the database knows. */
typedef struct {
    mdl_statement_t statement;
    const char *after; /* NULL: the statement has no such parameter */
    int limit;
    apr_array_header_t *known; /* out: known_t */
} batch_t;

static apr_status_t batch_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    batch_t *batch = arg;
    mdl_rows_t *rows;
    apr_status_t rv = batch->after != NULL
                          ? mdl_db_select(db, &rows, p,
                                          MDL_Q_AS(batch->statement, BLOBS_AFTER,
                                                   .after = batch->after, .limit = batch->limit))
                          : mdl_db_select(db, &rows, p,
                                          MDL_Q_AS(batch->statement, BLOBS_NEWEST, batch->limit));

    batch->known = apr_array_make(p, batch->limit, sizeof(known_t));
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        known_t *known = apr_array_push(batch->known);

        known->blob = (mdl_blob_t){.sha256 = MDL_TEXT(rows, blobs_after, sha256),
                                   .size = MDL_INT(rows, blobs_after, size),
                                   .object = MDL_TEXT(rows, blobs_after, object)};
        known->missing = !MDL_NULL(rows, blobs_after, missing_at);
    }
    return rv;
}

static apr_status_t orders_count(mdl_db_t *db, mdl_statement_t statement, mdl_faulty_asset_t *asset,
                                 apr_hash_t *seen, apr_pool_t *p)
{
    mdl_rows_t *rows;
    apr_status_t rv = mdl_db_select(
        db, &rows, p,
        MDL_Q_AS(statement, ASSET_FILE_ORDERS, .id = asset->id, .limit = MDL_FAULT_ORDERS_MAX));

    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        const char *number = mdl_rows_text(rows, 0);

        if (apr_hash_get(seen, number, APR_HASH_KEY_STRING) != NULL ||
            asset->orders == MDL_FAULT_ORDERS_MAX) {
            continue;
        }
        apr_hash_set(seen, number, APR_HASH_KEY_STRING, number);
        if (asset->orders++ < MDL_FAULT_ORDERS) {
            APR_ARRAY_PUSH(asset->numbers, const char *) = number;
        }
    }
    return rv;
}

static apr_status_t asset_read_orders(mdl_db_t *db, mdl_faulty_asset_t *asset, apr_pool_t *p)
{
    static const mdl_statement_t statements[] = {MDL_Q_ASSET_FILE_ORDERS, MDL_Q_ASSET_PACK_ORDERS,
                                                 MDL_Q_ASSET_PINNED_ORDERS};
    apr_hash_t *seen = apr_hash_make(p);
    apr_status_t rv = APR_SUCCESS;

    asset->orders = 0;
    asset->numbers = apr_array_make(p, MDL_FAULT_ORDERS, sizeof(const char *));
    for (apr_size_t i = 0; i < sizeof statements / sizeof *statements && rv == APR_SUCCESS; i++) {
        rv = orders_count(db, statements[i], asset, seen, p);
    }
    return rv;
}

/* Reads the assets with the blob.  APR_ENOENT when nothing refers to it (any more). */
static apr_status_t concerned_read_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    mdl_faulty_blob_t *blob = arg;
    mdl_rows_t *row, *rows = NULL;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_USED, blob->blob.sha256));

    blob->assets = apr_array_make(p, MDL_FAULT_ASSETS_MAX, sizeof(mdl_faulty_asset_t *));
    blob->more_assets = 0;
    if (rv == APR_SUCCESS) {
        rv = mdl_db_select(
            db, &rows, p,
            MDL_Q(BLOB_ASSETS, .sha256 = blob->blob.sha256, .limit = MDL_FAULT_ASSETS_MAX + 1));
    }
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_faulty_asset_t *asset = apr_pcalloc(p, sizeof *asset);

        if (blob->assets->nelts == MDL_FAULT_ASSETS_MAX) {
            blob->more_assets = 1;
            continue;
        }
        MDL_READ(rows, blob_assets, asset, id, shop_id, filename, source_url);
        APR_ARRAY_PUSH(blob->assets, mdl_faulty_asset_t *) = asset;
    }
    for (int i = 0; rv == APR_SUCCESS && i < blob->assets->nelts; i++) {
        rv = asset_read_orders(db, APR_ARRAY_IDX(blob->assets, i, mdl_faulty_asset_t *), p);
    }
    return rv;
}

/* Whether the storage says that a blob is faulty; also if nobody can say, which rv tells. */
static int blob_is_faulty(const mdl_storage_verify_t *verify, mdl_faulty_blob_t *blob, int full,
                          apr_pool_t *p)
{
    const char *digest = blob->blob.sha256;
    apr_int64_t size = 0;

    blob->rv = mdl_storage_size(verify->storage, &blob->blob, &size, p);
    if (blob->rv == APR_SUCCESS && size == blob->blob.size && full) {
        blob->rv = mdl_storage_digest(verify->storage, &blob->blob, &digest, p);
    }
    if (blob->rv != APR_SUCCESS) {
        blob->fault = APR_STATUS_IS_ENOENT(blob->rv) ? MDL_BLOB_MISSING : MDL_BLOB_UNREADABLE;
        return 1;
    }
    blob->fault = size != blob->blob.size ? MDL_BLOB_WRONG_SIZE : MDL_BLOB_CHANGED;
    return size != blob->blob.size || strcmp(digest, blob->blob.sha256) != 0;
}

static int store_failed(const mdl_faulty_blob_t *blob)
{
    return blob->rv == MDL_OBJECT_EAWAY || blob->rv == MDL_OBJECT_EDENIED;
}

MDL_EFFECT(mdl_blob_missed, mdl_blob_missed_t *)
MDL_EFFECT(mdl_blob_found, const char *)

static apr_status_t blob_good(mdl_db_t *db, const known_t *known, apr_pool_t *p)
{
    return known->missing ? mdl_db_write(db, mdl_blob_found_effect, (void *)known->blob.object, p)
                          : APR_SUCCESS;
}

/* APR_ENOENT when the blob is not there any more by now, but elsewhere or removed. */
static apr_status_t blob_record_missing(mdl_db_t *db, const mdl_faulty_blob_t *blob, apr_pool_t *p)
{
    mdl_blob_missed_t missed = {.sha256 = blob->blob.sha256, .object = blob->blob.object};
    apr_status_t rv;

    if (blob->blob.object == NULL || blob->fault != MDL_BLOB_MISSING) {
        return APR_SUCCESS;
    }
    rv = mdl_db_write(db, mdl_blob_missed_effect, &missed, p);
    return rv == APR_SUCCESS && missed.has_moved ? APR_ENOENT : rv;
}

/* The blob may be removed or stored again at any time.  So a fault counts only if something still
   refers to the blob after the first look, and a second look finds the fault again.  An object that
   was recorded as missing may also be one whose bytes have changed. */
static apr_status_t blob_look(mdl_db_t *db, mdl_storage_verify_t *verify, const known_t *known,
                              apr_pool_t *p)
{
    mdl_faulty_blob_t blob = {.blob = known->blob};
    int full = verify->full || known->missing;
    apr_status_t rv;

    verify->looked++;
    if (verify->step != NULL) {
        verify->step(verify->baton, verify->looked);
    }
    if (!blob_is_faulty(verify, &blob, full, p)) {
        return blob_good(db, known, p);
    }
    if (store_failed(&blob)) {
        return blob.rv;
    }
    rv = mdl_db_read(db, concerned_read_effect, &blob, p);
    if (rv != APR_SUCCESS) {
        return rv == APR_ENOENT ? APR_SUCCESS : rv;
    }
    blob.place = mdl_storage_place(verify->storage, &blob.blob, p);
    if (!blob_is_faulty(verify, &blob, full, p)) {
        return APR_SUCCESS;
    }
    rv = store_failed(&blob) ? blob.rv : blob_record_missing(db, &blob, p);
    if (rv == APR_SUCCESS && verify->found(verify->baton, &blob, p)) {
        verify->faults[blob.fault]++;
    }
    return rv == APR_ENOENT ? APR_SUCCESS : rv;
}

static apr_status_t batch_look(mdl_db_t *db, mdl_storage_verify_t *verify, batch_t *batch,
                               apr_pool_t *p)
{
    apr_status_t rv = mdl_db_read(db, batch_read_effect, batch, p);
    apr_pool_t *each;
    int objects = 0;

    apr_pool_create(&each, p);
    apr_pool_tag(each, "mdl_storage_verify_blob");
    for (int i = 0; rv == APR_SUCCESS && i < batch->known->nelts; i++) {
        const known_t *known = &APR_ARRAY_IDX(batch->known, i, known_t);

        objects += known->blob.object != NULL;
        if (known->blob.sha256 != NULL && (known->blob.object == NULL || !verify->few_objects ||
                                           objects <= MDL_STORAGE_SAMPLE_OBJECTS)) {
            rv = blob_look(db, verify, known, each);
        }
        apr_pool_clear(each);
    }
    return rv;
}

apr_status_t mdl_storage_verify(mdl_db_t *db, mdl_storage_verify_t *verify, apr_pool_t *p)
{
    char after[MDL_SHA256_HEX_LENGTH + 1] = "";
    batch_t batch = {.statement = MDL_Q_BLOBS_AFTER, .after = after, .limit = BATCH};
    apr_status_t rv = APR_SUCCESS;
    apr_pool_t *pool;
    int found = BATCH;

    apr_pool_create(&pool, p);
    apr_pool_tag(pool, "mdl_storage_verify");
    while (rv == APR_SUCCESS && found == BATCH) {
        rv = batch_look(db, verify, &batch, pool);
        found = batch.known->nelts;
        if (found > 0) {
            apr_cpystrn(after, APR_ARRAY_IDX(batch.known, found - 1, known_t).blob.sha256,
                        sizeof after);
        }
        apr_pool_clear(pool);
    }
    apr_pool_destroy(pool);
    return rv;
}

static apr_status_t blob_count_effect(mdl_db_t *db, apr_pool_t *p, void *arg)
{
    apr_int64_t *total = arg;
    mdl_rows_t *row;
    apr_status_t rv = mdl_db_select_one(db, &row, p, MDL_Q(BLOB_COUNT));

    if (rv == APR_SUCCESS) {
        *total = mdl_rows_int(row, 0);
    }
    return rv;
}

/* Digests are evenly distributed: those behind a random place are a random sample. */
apr_status_t mdl_storage_sample(mdl_db_t *db, mdl_storage_verify_t *verify, apr_int64_t *total,
                                apr_pool_t *p)
{
    unsigned char place[8];
    batch_t newest = {.statement = MDL_Q_BLOBS_NEWEST, .limit = MDL_STORAGE_SAMPLE};
    batch_t spread = {.statement = MDL_Q_BLOBS_AFTER, .limit = MDL_STORAGE_SAMPLE};
    apr_status_t rv = mdl_db_read(db, blob_count_effect, total, p);

    verify->few_objects = 1;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (*total <= 2 * MDL_STORAGE_SAMPLE) {
        return mdl_storage_verify(db, verify, p);
    }
    mdl_random(place, sizeof place);
    spread.after = mdl_hex(place, sizeof place, p);
    rv = batch_look(db, verify, &newest, p);
    if (rv == APR_SUCCESS) {
        rv = batch_look(db, verify, &spread, p);
    }
    /* Near the end there are fewer: wrap around. */
    if (rv == APR_SUCCESS && spread.known->nelts < MDL_STORAGE_SAMPLE) {
        spread.after = "";
        spread.limit -= spread.known->nelts;
        rv = batch_look(db, verify, &spread, p);
    }
    return rv;
}
