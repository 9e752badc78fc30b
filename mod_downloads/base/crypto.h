/*
 * The wrapper of OpenSSL: random bytes, SHA-256 of a buffer, HMAC-SHA-256, constant-time
 * comparison, certificate files, and encodings of binary values (hexadecimal, base64, base62).
 */
#ifndef MDL_BASE_CRYPTO_H
#define MDL_BASE_CRYPTO_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/sha256.h"

#define MDL_SHA256_HEX_LENGTH 64

#define MDL_SECRETS_MAX 4

/** The server's secrets.  Every key of the service is derived from them by a purpose.  The first
    secret signs; signatures of the others are valid too. */
typedef struct mdl_secret_t mdl_secret_t;

/**
 * Reads 1 to MDL_SECRETS_MAX secret files (paths: const char *).  A secret file is a regular file
 * of 32 to 1,024 bytes, used as they are, without permissions for group and others.  Returns
 * APR_ENOENT, APR_EACCES, APR_EINVAL (too short, too long, mode too open, not a file) or the
 * system's error, and in *why a sentence that names the file and says what to do, allocated from p.
 * The secrets live in p and are wiped when p is cleared.
 */
apr_status_t mdl_secret_read(mdl_secret_t **secret, const apr_array_header_t *paths,
                             const char **why, apr_pool_t *p);

/** Writes the first secret alone to a new file that only this user may read.  A file that has the
    same secret is left as it is.  Otherwise APR_EEXIST, or the system's error, and *why is a
    sentence. */
apr_status_t mdl_secret_save(const mdl_secret_t *secret, const char *path, const char **why,
                             apr_pool_t *p);

/** Makes a secret, in p, from random bytes.  It has no id. */
mdl_secret_t *mdl_secret_make(const void *bytes, apr_size_t length, apr_pool_t *p);

/** The number of secrets. */
int mdl_secret_count(const mdl_secret_t *secret);

/** A short id of the first secret that does not reveal it. */
const char *mdl_secret_id(const mdl_secret_t *secret);

/** One of the secrets, 0 to mdl_secret_count - 1, alone. */
const mdl_secret_t *mdl_secret_at(const mdl_secret_t *secret, int index);

/**
 * HMAC-SHA-256 under the key that belongs to purpose, a short constant such as "api-key":
 * HMAC(HMAC(secret, purpose), data).  Keyed contexts of up to 16 purposes are kept with the secret,
 * so a call costs about a microsecond; any thread may call.  Aborts the process when OpenSSL fails.
 */
void mdl_secret_mac(const mdl_secret_t *secret, const char *purpose, const void *data,
                    apr_size_t length, unsigned char mac[MDL_SHA256_LENGTH]);

/** Whether mac, of mac_length bytes, is the beginning of mdl_secret_mac's result under any of the
    secrets.  Takes the same time whichever matches, or if none does. */
int mdl_secret_verify(const mdl_secret_t *secret, const char *purpose, const void *data,
                      apr_size_t length, const void *mac, apr_size_t mac_length);

/** HMAC-SHA-256 (RFC 2104) under a given key. */
void mdl_hmac_sha256(const void *key, apr_size_t key_length, const void *data, apr_size_t length,
                     unsigned char mac[MDL_SHA256_LENGTH]);

/** The number of PEM certificates (RFC 7468 section 5) in a file; 0 also if one is broken or the
    file can't be read. */
int mdl_certificates_in(const char *path);

/** Fills buffer with random bytes; aborts the process when the system has none. */
void mdl_random(void *buffer, apr_size_t length);

/** Whether two buffers are equal, in a time that depends only on length. */
int mdl_equal(const void *a, const void *b, apr_size_t length);

/** SHA-256 of a buffer. */
void mdl_sha256(const void *data, apr_size_t length, unsigned char digest[MDL_SHA256_LENGTH]);

/** An incremental digest by algorithm, "sha1" or "sha256", freed with its pool; NULL for others. */
typedef struct mdl_digest_t mdl_digest_t;
mdl_digest_t *mdl_digest_begin(const char *algorithm, apr_pool_t *p);
void mdl_digest_update(mdl_digest_t *digest, const void *data, apr_size_t length);
/** Ends the digest and returns it in base64 with padding, in p. */
const char *mdl_digest_end(mdl_digest_t *digest, apr_pool_t *p);

/** Lower-case hexadecimal, in p. */
const char *mdl_hex(const void *data, apr_size_t length, apr_pool_t *p);

/** Decodes lower-case hexadecimal into exactly length bytes.  Returns APR_EINVAL, and leaves data
    unchanged, for any other text. */
apr_status_t mdl_hex_decode(void *data, apr_size_t length, const char *text);

/** base64url without padding (RFC 4648 section 5), in p. */
const char *mdl_base64url(const void *data, apr_size_t length, apr_pool_t *p);

/** base64 with padding (RFC 4648 section 4), in p. */
const char *mdl_base64(const void *data, apr_size_t length, apr_pool_t *p);

/**
 * Decodes base64url without padding into exactly length bytes.  Returns APR_EINVAL for a wrong
 * length, a foreign character, or an encoding that is not canonical.
 */
apr_status_t mdl_base64url_decode(void *data, apr_size_t length, const char *text);

/** length random characters of [0-9A-Za-z], each equally likely, in p. */
const char *mdl_random_base62(apr_size_t length, apr_pool_t *p);

#endif
