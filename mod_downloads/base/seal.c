#include "base/seal.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <apr_strings.h>

#include "base/log.h"

#define VERSION        "v1."
#define VERSION_LENGTH 3
#define NONCE_LENGTH   12
#define TAG_LENGTH     16
#define MAX_LENGTH     (64 * 1024 * 1024) /* of a sealed text */

/* Without a cryptographic primitive the process cannot safely continue. */
static void __attribute__((noreturn)) seal_give_up(void)
{
    mdl_log(MDL_LOG_ERR, 0, "MDL0902: OpenSSL failed in AES-256-GCM, the process ends");
    abort();
}

/* A cipher context with key, nonce and owner set.  The encryption key of a purpose is the MAC of a
   constant under the purpose's key, and is used for nothing else. */
static EVP_CIPHER_CTX *seal_begin(const mdl_secret_t *secret, const char *purpose,
                                  const char *owner, const unsigned char *nonce, int sealing)
{
    static const char data[] = "AES-256-GCM";
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    unsigned char key[MDL_SHA256_LENGTH];
    int length;

    mdl_secret_mac(secret, purpose, data, sizeof data - 1, key);
    if (context == NULL ||
        EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce, sealing) != 1 ||
        EVP_CipherUpdate(context, NULL, &length, (const unsigned char *)owner,
                         (int)strlen(owner)) != 1) {
        seal_give_up();
    }
    OPENSSL_cleanse(key, sizeof key);
    return context;
}

/* bytes begins with the nonce and has room for ciphertext and tag. */
static const char *seal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                        const void *data, apr_size_t size, unsigned char *bytes, apr_pool_t *p)
{
    int length = (int)size;
    unsigned char *body = bytes + NONCE_LENGTH;
    EVP_CIPHER_CTX *context = seal_begin(secret, purpose, owner, bytes, 1);
    int written = 0, more = 0;

    if (EVP_CipherUpdate(context, body, &written, data, length) != 1 ||
        EVP_CipherFinal_ex(context, body + written, &more) != 1 || written + more != length ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_LENGTH, body + length) != 1) {
        seal_give_up();
    }
    EVP_CIPHER_CTX_free(context);
    return apr_pstrcat(p, VERSION, mdl_base64url(bytes, NONCE_LENGTH + size + TAG_LENGTH, p), NULL);
}

const char *mdl_seal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                     const void *data, apr_size_t size, apr_pool_t *p)
{
    unsigned char *bytes = apr_palloc(p, NONCE_LENGTH + size + TAG_LENGTH);

    mdl_random(bytes, NONCE_LENGTH);
    return seal(secret, purpose, owner, data, size, bytes, p);
}

const char *mdl_seal_alike(const mdl_secret_t *secret, const char *purpose, const char *owner,
                           const void *data, apr_size_t size, apr_pool_t *p)
{
    unsigned char *bytes = apr_palloc(p, NONCE_LENGTH + size + TAG_LENGTH);
    const char *head = apr_pstrcat(p, purpose, "\n", owner, "\n", NULL);
    apr_size_t length = strlen(head);
    unsigned char mac[MDL_SHA256_LENGTH];
    char *text = apr_palloc(p, length + size);

    memcpy(text, head, length);
    memcpy(text + length, data, size);
    mdl_secret_mac(secret, "synthetic-nonce", text, length + size, mac);
    memcpy(bytes, mac, NONCE_LENGTH);
    return seal(secret, purpose, owner, data, size, bytes, p);
}

apr_size_t mdl_sealed_size(const char *sealed)
{
    apr_size_t digits = strlen(sealed);
    apr_size_t size = digits > VERSION_LENGTH ? (digits - VERSION_LENGTH) * 3 / 4 : 0;

    return size > NONCE_LENGTH + TAG_LENGTH ? size - NONCE_LENGTH - TAG_LENGTH : 0;
}

/* Decrypts what follows the nonce with one secret; false if it was not sealed with that secret. */
static int seal_open(const mdl_secret_t *secret, const char *purpose, const char *owner,
                     unsigned char *bytes, apr_size_t length, unsigned char *plain)
{
    unsigned char *body = bytes + NONCE_LENGTH;
    EVP_CIPHER_CTX *context = seal_begin(secret, purpose, owner, bytes, 0);
    int written = 0, more = 0;
    int opened = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_LENGTH, body + length) ==
                     1 &&
                 EVP_CipherUpdate(context, plain, &written, body, (int)length) == 1 &&
                 EVP_CipherFinal_ex(context, plain + written, &more) == 1;

    EVP_CIPHER_CTX_free(context);
    if (!opened) {
        OPENSSL_cleanse(plain, length);
    }
    return opened;
}

/* As mdl_unseal; *which gets the index of the secret that opens it. */
static apr_status_t unseal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                           const char *sealed, const char **data, apr_size_t *length, int *which,
                           apr_pool_t *p)
{
    apr_size_t digits = strlen(sealed);
    apr_size_t size;
    unsigned char *bytes, *plain;

    *data = NULL;
    if (digits > MAX_LENGTH || strncmp(sealed, VERSION, VERSION_LENGTH) != 0) {
        return APR_EINVAL;
    }
    size = (digits - VERSION_LENGTH) * 3 / 4;
    bytes = apr_palloc(p, size + 1);
    if (size < NONCE_LENGTH + TAG_LENGTH ||
        mdl_base64url_decode(bytes, size, sealed + VERSION_LENGTH) != APR_SUCCESS) {
        return APR_EINVAL;
    }
    *length = size - NONCE_LENGTH - TAG_LENGTH;
    plain = apr_pcalloc(p, *length + 1);
    for (int i = 0; i < mdl_secret_count(secret); i++) {
        if (seal_open(mdl_secret_at(secret, i), purpose, owner, bytes, *length, plain)) {
            *data = (const char *)plain;
            *which = i;
            return APR_SUCCESS;
        }
    }
    return APR_EINVAL;
}

apr_status_t mdl_unseal(const mdl_secret_t *secret, const char *purpose, const char *owner,
                        const char *sealed, const char **data, apr_size_t *length, apr_pool_t *p)
{
    int which;

    return unseal(secret, purpose, owner, sealed, data, length, &which, p);
}

apr_status_t mdl_seal_renew(const mdl_secret_t *secret, const char *purpose, const char *owner,
                            const char *sealed, const char **renewed, apr_pool_t *p)
{
    const char *data;
    apr_size_t length;
    int which = 0;
    apr_status_t rv = unseal(secret, purpose, owner, sealed, &data, &length, &which, p);

    *renewed = rv == APR_SUCCESS && which > 0 ? mdl_seal(secret, purpose, owner, data, length, p)
                                              : NULL;
    return rv;
}
