/*
 * An Idempotency-Key and its successful response (contract, section 3).  The response is stored in
 * the transaction of the effect, so neither exists without the other.  It is sealed, because it may
 * contain license keys and addresses of pages and uploads.
 */
#ifndef MDL_CORE_IDEMPOTENCY_H
#define MDL_CORE_IDEMPOTENCY_H

#include "base/crypto.h"
#include "base/text/json.h"
#include "db/db.h"

#define MDL_IDEMPOTENCY_KEY_MAX 255 /* bytes */

typedef struct {
    int status;
    const char *location; /* or NULL */
    const char *etag;     /* or NULL */
    const char *body;
} mdl_stored_response_t;

typedef struct {
    const mdl_secret_t *secret;
    apr_int64_t shop_id;
    const char *key;         /* from the client */
    const char *fingerprint; /* digest of method, path and canonical body */
    apr_interval_time_t retention;
    apr_time_t now;
} mdl_idempotency_t;

/** SHA-256 over method, path and body, as base64url. */
const char *mdl_idempotency_fingerprint(const char *method, const char *path,
                                        const mdl_json_t *body, apr_pool_t *p);

/**
 * Reads an earlier response.  APR_ENOENT when there is none, APR_EMISMATCH when the key was used
 * with another request, APR_EINVAL when none of the server's secrets has sealed it.
 */
apr_status_t mdl_idempotency_find(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                  mdl_stored_response_t *response, apr_pool_t *p);

/** Stores a response.  If another transaction has stored one in the meantime, this or the end of
    the transaction returns MDL_DB_ENULL. */
apr_status_t mdl_idempotency_store(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                   const mdl_stored_response_t *response, apr_pool_t *p);

/** Effect: in a batch of responses, seals those again that an older secret has sealed.  The batch
    begins after the last response of the previous batch. */
typedef struct {
    const mdl_secret_t *secret;
    apr_int64_t shop_id, hi, lo; /* in and out; at first 0, APR_INT64_MIN, APR_INT64_MIN */
    apr_int64_t renewed;         /* out: in this batch */
    int done;
} mdl_idempotency_renew_t;
apr_status_t mdl_idempotency_renew(mdl_db_t *db, apr_pool_t *p, mdl_idempotency_renew_t *renew);

#endif
