#include "core/idempotency.h"

#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/deflate.h"
#include "base/seal.h"

#define BATCH        250 /* rows; SQLite's other writers wait for a batch */
#define PURPOSE      "stored-response"
#define PLAIN        'p'
#define PACKED       'z'
#define PACKED_FROM  8192 /* bytes; a smaller body is not worth compressing */
#define RESPONSE_MAX (64 * 1024 * 1024)

static void idempotency_digest(void *sha, const char *text, apr_size_t length)
{
    mdl_sha256_update(sha, text, length);
}

const char *mdl_idempotency_fingerprint(const char *method, const char *path,
                                        const mdl_json_t *body, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);

    /* The NUL after each part distinguishes "POST /a" + "b" from "POST /ab". */
    mdl_sha256_update(sha, method, strlen(method) + 1);
    mdl_sha256_update(sha, path, strlen(path) + 1);
    mdl_json_canonical(body, idempotency_digest, sha);
    mdl_sha256_end(sha, digest);
    return mdl_base64url(digest, sizeof digest, p);
}

static void idempotency_halves(const char *key, apr_int64_t *hi, apr_int64_t *lo)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(key, strlen(key), digest);
    memcpy(hi, digest, sizeof *hi);
    memcpy(lo, digest + sizeof *hi, sizeof *lo);
}

/* The owner of a sealed response. */
static const char *response_owner(const mdl_idempotency_t *idempotency, apr_int64_t hi,
                                  apr_int64_t lo, apr_pool_t *p)
{
    return apr_psprintf(p, "%" APR_INT64_T_FMT " %" APR_INT64_T_FMT " %" APR_INT64_T_FMT,
                        idempotency->shop_id, hi, lo);
}

/* Seals the format of the body, the ETag, a newline and the body. */
static const char *response_seal(const mdl_idempotency_t *idempotency, const char *owner,
                                 const mdl_stored_response_t *response, apr_pool_t *p)
{
    const void *body = response->body;
    apr_size_t length = strlen(response->body);
    char how = PLAIN;
    const char *head;
    char *data;

    if (length >= PACKED_FROM) {
        body = mdl_deflate(body, length, &length, p);
        how = PACKED;
    }
    head = apr_psprintf(p, "%c%s\n", how, response->etag != NULL ? response->etag : "");
    data = apr_palloc(p, strlen(head) + length);
    memcpy(data, head, strlen(head));
    memcpy(data + strlen(head), body, length);
    return mdl_seal(idempotency->secret, PURPOSE, owner, data, strlen(head) + length, p);
}

/* APR_EINVAL when none of the server's secrets has sealed it. */
static apr_status_t response_unseal(const mdl_idempotency_t *idempotency, const char *owner,
                                    const char *sealed, mdl_stored_response_t *response,
                                    apr_pool_t *p)
{
    const char *data, *end;
    apr_size_t length, head;

    if (mdl_unseal(idempotency->secret, PURPOSE, owner, sealed, &data, &length, p) != APR_SUCCESS ||
        (end = memchr(data, '\n', length)) == NULL) {
        return APR_EINVAL;
    }
    head = (apr_size_t)(end - data) + 1;
    response->etag = head > 2 ? apr_pstrmemdup(p, data + 1, head - 2) : NULL;
    response->body = end + 1;
    return *data == PACKED
               ? mdl_inflate(end + 1, length - head, RESPONSE_MAX, &response->body, &length, p)
               : APR_SUCCESS;
}

apr_status_t mdl_idempotency_find(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                  mdl_stored_response_t *response, apr_pool_t *p)
{
    apr_int64_t hi, lo;
    mdl_rows_t *row;
    apr_status_t rv;

    idempotency_halves(idempotency->key, &hi, &lo);
    rv = mdl_db_select_one(db, &row, p,
                           MDL_Q(IDEMPOTENCY_FIND, .shop_id = idempotency->shop_id, .key_hi = hi,
                                 .key_lo = lo,
                                 .kept_since = idempotency->now - idempotency->retention));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (strcmp(MDL_TEXT(row, idempotency_find, fingerprint), idempotency->fingerprint) != 0) {
        return APR_EMISMATCH;
    }
    MDL_READ(row, idempotency_find, response, status, location);
    return response_unseal(idempotency, response_owner(idempotency, hi, lo, p),
                           MDL_TEXT(row, idempotency_find, body), response, p);
}

apr_status_t mdl_idempotency_store(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                   const mdl_stored_response_t *response, apr_pool_t *p)
{
    apr_int64_t hi, lo;
    const char *sealed;

    idempotency_halves(idempotency->key, &hi, &lo);
    sealed = response_seal(idempotency, response_owner(idempotency, hi, lo, p), response, p);
    return mdl_db_exec(db, NULL, p,
                       MDL_Q(IDEMPOTENCY_INSERT, .shop_id = idempotency->shop_id, .key_hi = hi,
                             .key_lo = lo, .fingerprint = idempotency->fingerprint,
                             .status = response->status, .location = response->location,
                             .body = sealed, .now = idempotency->now,
                             .kept_since = idempotency->now - idempotency->retention));
}

apr_status_t mdl_idempotency_renew(mdl_db_t *db, apr_pool_t *p, mdl_idempotency_renew_t *renew)
{
    mdl_rows_t *rows;
    int n = 0;
    apr_status_t rv = mdl_db_select(db, &rows, p,
                                    MDL_Q(IDEMPOTENCY_AFTER, .shop_id = renew->shop_id,
                                          .hi = renew->hi, .lo = renew->lo, .limit = BATCH));

    renew->renewed = 0;
    while (rv == APR_SUCCESS && mdl_rows_next(rows)) {
        mdl_idempotency_t of = {.shop_id = MDL_INT(rows, idempotency_after, shop_id)};
        const char *sealed = MDL_TEXT(rows, idempotency_after, body), *renewed;

        n++;
        renew->shop_id = of.shop_id;
        renew->hi = MDL_INT(rows, idempotency_after, key_hi);
        renew->lo = MDL_INT(rows, idempotency_after, key_lo);
        if (mdl_seal_renew(renew->secret, PURPOSE, response_owner(&of, renew->hi, renew->lo, p),
                           sealed, &renewed, p) != APR_SUCCESS ||
            renewed == NULL) {
            continue;
        }
        renew->renewed++;
        rv = mdl_db_exec(db, NULL, p,
                         MDL_Q(IDEMPOTENCY_RENEW, .body = renewed, .shop_id = renew->shop_id,
                               .key_hi = renew->hi, .key_lo = renew->lo, .old_body = sealed));
    }
    renew->done = n < BATCH;
    return rv;
}
