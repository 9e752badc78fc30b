/*
 * The wrapper of OpenSSL: random bytes, SHA-256 and HMAC-SHA-256, constant-time comparison, files
 * of certificates, and the two alphabets in which binary values travel.
 */
#ifndef MDL_BASE_CRYPTO_H
#define MDL_BASE_CRYPTO_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#define MDL_SHA256_LENGTH     32
#define MDL_SHA256_HEX_LENGTH 64

#define MDL_SECRETS_MAX 4

/** The server's secrets, from which all keys of the service are derived, each by its purpose.  The
    first signs; what one of the others has signed is valid, too. */
typedef struct mdl_secret_t mdl_secret_t;

/**
 * Reads secret files, 1 to MDL_SECRETS_MAX (const char *): 32 to 1,024 bytes taken as they are, a
 * regular file that is closed to group and others.  Returns APR_ENOENT, APR_EACCES, APR_EINVAL (too
 * short, too long, mode too open, not a file) or the system's error, and in *why a sentence that
 * names the file and says what to do, allocated from p.  The secrets live in p and are wiped when p
 * is cleared.
 */
apr_status_t mdl_secret_read(mdl_secret_t **secret, const apr_array_header_t *paths,
                             const char **why, apr_pool_t *p);

/** A secret of its own, of random bytes like those of a file.  It has no id. */
mdl_secret_t *mdl_secret_make(const void *bytes, apr_size_t length, apr_pool_t *p);

/** How many there are. */
int mdl_secret_count(const mdl_secret_t *secret);

/** A short text that names the first one, and from which nobody learns it. */
const char *mdl_secret_id(const mdl_secret_t *secret);

/** The one at a place, 0 to mdl_secret_count - 1, alone. */
const mdl_secret_t *mdl_secret_at(const mdl_secret_t *secret, int index);

/**
 * HMAC-SHA-256 under the key that belongs to purpose, a short constant such as "api-key":
 * HMAC(HMAC(secret, purpose), data).  Keyed contexts of up to 16 purposes are kept with the secret,
 * so a call costs about a microsecond; any thread may call.  Aborts the process when OpenSSL fails.
 */
void mdl_secret_mac(const mdl_secret_t *secret, const char *purpose, const void *data,
                    apr_size_t length, unsigned char mac[MDL_SHA256_LENGTH]);

/** Whether mac, of mac_length bytes, is the beginning of what mdl_secret_mac gives by one of the
    secrets.  Takes the same time whichever it is, and when there is none. */
int mdl_secret_verify(const mdl_secret_t *secret, const char *purpose, const void *data,
                      apr_size_t length, const void *mac, apr_size_t mac_length);

/** HMAC-SHA-256 (RFC 2104) under a key as it is. */
void mdl_hmac_sha256(const void *key, apr_size_t key_length, const void *data, apr_size_t length,
                     unsigned char mac[MDL_SHA256_LENGTH]);

/** How many certificates in PEM form (RFC 7468 section 5) a file holds; 0 also when one of them is
    broken, or when the file can't be read. */
int mdl_certificates_in(const char *path);

/** Fills buffer with random bytes; aborts the process when the system has none. */
void mdl_random(void *buffer, apr_size_t length);

/** Whether two buffers are the same, in a time that depends on length alone. */
int mdl_equal(const void *a, const void *b, apr_size_t length);

/** SHA-256 of a buffer. */
void mdl_sha256(const void *data, apr_size_t length, unsigned char digest[MDL_SHA256_LENGTH]);

/** A SHA-256 in steps, freed with its pool. */
typedef struct mdl_sha256_t mdl_sha256_t;
mdl_sha256_t *mdl_sha256_begin(apr_pool_t *p);
void mdl_sha256_update(mdl_sha256_t *sha, const void *data, apr_size_t length);
/** Writes the digest and begins anew. */
void mdl_sha256_end(mdl_sha256_t *sha, unsigned char digest[MDL_SHA256_LENGTH]);

/** A digest in steps by an algorithm's name, "sha1" or "sha256", freed with its pool; NULL for
    another name. */
typedef struct mdl_digest_t mdl_digest_t;
mdl_digest_t *mdl_digest_begin(const char *algorithm, apr_pool_t *p);
void mdl_digest_update(mdl_digest_t *digest, const void *data, apr_size_t length);
/** Ends the digest and returns it in base64 with padding, in p. */
const char *mdl_digest_end(mdl_digest_t *digest, apr_pool_t *p);

/** Lower-case hexadecimal, in p. */
const char *mdl_hex(const void *data, apr_size_t length, apr_pool_t *p);

/** Decodes lower-case hexadecimal into exactly length bytes.  Returns APR_EINVAL, and leaves data
    unchanged, when text is anything else. */
apr_status_t mdl_hex_decode(void *data, apr_size_t length, const char *text);

/** base64url without padding (RFC 4648 section 5), in p. */
const char *mdl_base64url(const void *data, apr_size_t length, apr_pool_t *p);

/** base64 with padding (RFC 4648 section 4), in p. */
const char *mdl_base64(const void *data, apr_size_t length, apr_pool_t *p);

/**
 * Decodes base64url without padding into exactly length bytes.  Returns APR_EINVAL when text is of
 * another length, has another character, or is not the canonical encoding of its bytes.
 */
apr_status_t mdl_base64url_decode(void *data, apr_size_t length, const char *text);

/** length random characters of [0-9A-Za-z], each equally likely, in p. */
const char *mdl_random_base62(apr_size_t length, apr_pool_t *p);

#endif
