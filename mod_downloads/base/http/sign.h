/*
 * AWS Signature Version 4 (Amazon S3 API Reference, "Authenticating Requests"), in the header and,
 * for a URL that a client opens, in the query.  Paths and queries are given decoded.
 */
#ifndef MDL_BASE_HTTP_SIGN_H
#define MDL_BASE_HTTP_SIGN_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_time.h>

/** SHA-256 of a request without a body. */
#define MDL_SIGN_NO_BODY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

typedef struct {
    const char *region;
    const char *service; /* "s3" */
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* of temporary credentials, or NULL */
} mdl_sign_credentials_t;

typedef struct {
    const char *method;
    const char *path;           /* begins with a slash */
    const apr_table_t *query;   /* or NULL */
    const apr_table_t *headers; /* all that are to be signed, "host" and "x-amz-date" among them:
                                   lower-case names, values without needless spaces */
    const char *body_sha256;    /* in hexadecimal, or MDL_SIGN_NO_BODY */
} mdl_sign_request_t;

/** The time as x-amz-date has it: "20130524T000000Z". */
const char *mdl_sign_date(apr_time_t when, apr_pool_t *p);

/** The value of the Authorization header.  A session token is not added: it is a header like any
    other, x-amz-security-token. */
const char *mdl_sign_authorization(const mdl_sign_credentials_t *credentials,
                                   const mdl_sign_request_t *request, apr_pool_t *p);

/** The query, encoded and signed, by which the path can be requested from host with GET, for so
   many seconds from when on; query may be NULL. */
const char *mdl_sign_query(const mdl_sign_credentials_t *credentials, const char *host,
                           const char *path, const apr_table_t *query, apr_time_t when, int seconds,
                           apr_pool_t *p);

/** Percent-encodes all but RFC 3986's unreserved characters and, in a path, the slash. */
const char *mdl_sign_encode_path(const char *path, apr_pool_t *p);

/** A query, encoded, in the order in which it is signed; "" for NULL. */
const char *mdl_sign_encode_query(const apr_table_t *query, apr_pool_t *p);

#endif
