#include "core/idempotency.h"

#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"

#define MAX_KEY 255
#define BATCH   250 /* rows; SQLite's other writers wait that long */

static const char *idempotency_unquote(const char *header, apr_pool_t *p)
{
    char *key = apr_palloc(p, strlen(header) + 1);
    char *to = key;
    const char *from;

    for (from = header + 1; *from != '\0' && *from != '"'; from++) {
        if (*from == '\\') {
            from++;
            if (*from != '"' && *from != '\\') {
                return NULL;
            }
        }
        *to++ = *from;
    }
    *to = '\0';
    return from[0] == '"' && from[1] == '\0' ? key : NULL;
}

const char *mdl_idempotency_key(const char *header, apr_pool_t *p)
{
    const char *key = *header == '"' ? idempotency_unquote(header, p) : header;
    apr_size_t length = key != NULL ? strlen(key) : 0;

    if (length == 0 || length > MAX_KEY) {
        return NULL;
    }
    for (const char *c = key; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return NULL;
        }
    }
    return key;
}

static void idempotency_digest(void *sha, const char *text, apr_size_t length)
{
    mdl_sha256_update(sha, text, length);
}

const char *mdl_idempotency_fingerprint(const char *method, const char *path,
                                        const mdl_json_t *body, apr_pool_t *p)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);

    /* The closing NUL of each part keeps "POST /a" + "b" apart from "POST /ab". */
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

apr_status_t mdl_idempotency_find(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                  mdl_stored_response_t *response, apr_pool_t *p)
{
    apr_int64_t hi, lo;
    mdl_rows_t *row;
    apr_status_t rv;

    idempotency_halves(idempotency->key, &hi, &lo);
    rv = mdl_db_select_one(db, MDL_Q_IDEMPOTENCY_FIND, &row, p,
                           MDL_ARGS(mdl_int(idempotency->shop_id), mdl_int(hi), mdl_int(lo),
                                    mdl_int(idempotency->now - idempotency->retention)));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (strcmp(mdl_rows_text(row, 0), idempotency->fingerprint) != 0) {
        return APR_EMISMATCH;
    }
    response->status = (int)mdl_rows_int(row, 1);
    response->location = mdl_rows_text(row, 2);
    response->body = mdl_rows_text(row, 3);
    return APR_SUCCESS;
}

apr_status_t mdl_idempotency_store(mdl_db_t *db, const mdl_idempotency_t *idempotency,
                                   const mdl_stored_response_t *response, apr_pool_t *p)
{
    apr_int64_t hi, lo;

    idempotency_halves(idempotency->key, &hi, &lo);
    return mdl_db_exec(db, MDL_Q_IDEMPOTENCY_INSERT, NULL, p,
                       MDL_ARGS(mdl_int(idempotency->shop_id), mdl_int(hi), mdl_int(lo),
                                mdl_text(idempotency->fingerprint), mdl_int(response->status),
                                mdl_text(response->location), mdl_text(response->body),
                                mdl_int(idempotency->now),
                                mdl_int(idempotency->now - idempotency->retention)));
}

apr_status_t mdl_idempotency_prune(mdl_db_t *db, apr_pool_t *p, mdl_idempotency_prune_t *prune)
{
    return mdl_db_exec(
        db, MDL_Q_IDEMPOTENCY_PRUNE, &prune->removed, p,
        MDL_ARGS(mdl_int(prune->before), mdl_int(BATCH - 1), mdl_int(prune->before)));
}
