/* EVP's digests can't be saved, so these are OpenSSL's older functions, which are as fast. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/sha256.h"

#include <openssl/sha.h>

struct mdl_sha256_t {
    SHA256_CTX context;
};

mdl_sha256_t *mdl_sha256_begin(apr_pool_t *p)
{
    mdl_sha256_t *sha = apr_palloc(p, sizeof *sha);

    SHA256_Init(&sha->context);
    return sha;
}

void mdl_sha256_update(mdl_sha256_t *sha, const void *data, apr_size_t length)
{
    SHA256_Update(&sha->context, data, length);
}

void mdl_sha256_end(mdl_sha256_t *sha, unsigned char digest[MDL_SHA256_LENGTH])
{
    SHA256_Final(digest, &sha->context);
    SHA256_Init(&sha->context);
}

/* --- the state: eight words, then the number of bytes; big-endian --- */

static void number_put(unsigned char *to, apr_uint64_t number, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        to[i] = (unsigned char)number;
        number >>= 8;
    }
}

static apr_uint64_t number_get(const unsigned char *from, int bytes)
{
    apr_uint64_t number = 0;

    for (int i = 0; i < bytes; i++) {
        number = number << 8 | from[i];
    }
    return number;
}

apr_status_t mdl_sha256_save(const mdl_sha256_t *sha, unsigned char state[MDL_SHA256_STATE_LENGTH])
{
    apr_uint64_t bits = (apr_uint64_t)sha->context.Nh << 32 | sha->context.Nl;

    if (sha->context.num != 0) {
        return APR_EINVAL;
    }
    for (int i = 0; i < 8; i++) {
        number_put(state + 4 * i, sha->context.h[i], 4);
    }
    number_put(state + MDL_SHA256_LENGTH, bits / 8, 8);
    return APR_SUCCESS;
}

apr_status_t mdl_sha256_restore(mdl_sha256_t *sha,
                                const unsigned char state[MDL_SHA256_STATE_LENGTH])
{
    apr_uint64_t bytes = number_get(state + MDL_SHA256_LENGTH, 8);

    /* A block has 64 bytes; their number in bits must fit into 64 bits. */
    if (bytes % 64 != 0 || bytes >> 61 != 0) {
        return APR_EINVAL;
    }
    SHA256_Init(&sha->context);
    for (int i = 0; i < 8; i++) {
        sha->context.h[i] = (SHA_LONG)number_get(state + 4 * i, 4);
    }
    sha->context.Nl = (SHA_LONG)(bytes << 3);
    sha->context.Nh = (SHA_LONG)(bytes >> 29);
    return APR_SUCCESS;
}
