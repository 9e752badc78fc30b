#include "base/crypto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <apr_strings.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>

#include "base/log.h"

#define SECRET_MIN   32
#define SECRET_MAX   1024
#define PURPOSES_MAX 16
#define ID_LENGTH    9 /* bytes */

/*
 * The keyed contexts of one purpose.  They belong to the secret, not to a thread: httpd may have
 * unloaded the module by the time a thread-local destructor runs.
 */
typedef struct {
    EVP_MAC_CTX *keyed; /* only copied, so threads can share it */
    EVP_MAC_CTX *spare; /* taken and given back by atomic exchange; NULL while in use */
    char purpose[];
} purpose_t;

struct mdl_secret_t {
    unsigned char bytes[SECRET_MAX];
    apr_size_t length;
    purpose_t **purposes; /* PURPOSES_MAX of them, filled from the front, never emptied */
    mdl_secret_t *older;  /* NULL: none */
    const char *id;
};

/* Without a cryptographic primitive the process cannot safely continue. */
static void __attribute__((noreturn)) crypto_give_up(const char *what)
{
    mdl_log(MDL_LOG_ERR, 0, "MDL0901: OpenSSL failed in %s, the process ends", what);
    abort();
}

static void purpose_free(purpose_t *purpose)
{
    EVP_MAC_CTX_free(purpose->keyed);
    EVP_MAC_CTX_free(purpose->spare);
    free(purpose);
}

static apr_status_t secret_wipe(void *data)
{
    mdl_secret_t *secret = data;

    for (int i = 0; i < PURPOSES_MAX && secret->purposes[i] != NULL; i++) {
        purpose_free(secret->purposes[i]);
        secret->purposes[i] = NULL;
    }
    OPENSSL_cleanse(secret->bytes, sizeof secret->bytes);
    return APR_SUCCESS;
}

static apr_status_t secret_no_file(const char *path, int error, const char **why, apr_pool_t *p)
{
    if (error == ENOENT || error == ENOTDIR) {
        *why = apr_psprintf(p,
                            "The secret file %s does not exist; make it with \"(umask 077; "
                            "openssl rand -out %s 48)\".",
                            path, path);
        return APR_ENOENT;
    }
    if (error == EACCES) {
        *why = apr_psprintf(p,
                            "The secret file %s can't be opened by this user: run this as root, "
                            "or as the user that owns the file.",
                            path);
        return APR_EACCES;
    }
    *why = apr_psprintf(p, "The secret file %s can't be read: %s.", path, strerror(error));
    return APR_FROM_OS_ERROR(error);
}

static apr_status_t secret_load(mdl_secret_t *secret, int fd, const char *path, const char **why,
                                apr_pool_t *p)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return secret_no_file(path, errno, why, p);
    }
    if (!S_ISREG(st.st_mode)) {
        *why = apr_psprintf(p,
                            "The secret file %s is not a regular file; name a file of %d to %d "
                            "random bytes.",
                            path, SECRET_MIN, SECRET_MAX);
        return APR_EINVAL;
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        *why = apr_psprintf(p,
                            "The secret file %s is open to group or others; close it with "
                            "\"chmod 600 %s\".",
                            path, path);
        return APR_EINVAL;
    }
    if (st.st_size < SECRET_MIN || st.st_size > SECRET_MAX) {
        *why = apr_psprintf(p,
                            "The secret file %s has %" APR_OFF_T_FMT " bytes; it must have %d "
                            "to %d random ones.",
                            path, st.st_size, SECRET_MIN, SECRET_MAX);
        return APR_EINVAL;
    }
    while (secret->length < (apr_size_t)st.st_size) {
        ssize_t n = read(fd, secret->bytes + secret->length,
                         (apr_size_t)st.st_size - secret->length);

        if (n < 0 && errno != EINTR) {
            return secret_no_file(path, errno, why, p);
        }
        if (n == 0) {
            *why = apr_psprintf(p, "The secret file %s changed while it was read; try again.",
                                path);
            return APR_EINVAL;
        }
        secret->length += n > 0 ? (apr_size_t)n : 0;
    }
    return APR_SUCCESS;
}

static mdl_secret_t *secret_alloc(apr_pool_t *p)
{
    mdl_secret_t *secret = apr_pcalloc(p, sizeof *secret);

    secret->purposes = apr_pcalloc(p, PURPOSES_MAX * sizeof *secret->purposes);
    apr_pool_cleanup_register(p, secret, secret_wipe, apr_pool_cleanup_null);
    return secret;
}

static apr_status_t secret_read_file(mdl_secret_t **secret, const char *path, const char **why,
                                     apr_pool_t *p)
{
    mdl_secret_t *made;
    apr_status_t rv;
    int fd;

    /* O_NONBLOCK: a named pipe must not stop the server's start. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return secret_no_file(path, errno, why, p);
    }
    made = secret_alloc(p);
    rv = secret_load(made, fd, path, why, p);
    close(fd);
    if (rv != APR_SUCCESS) {
        apr_pool_cleanup_run(p, made, secret_wipe);
        return rv;
    }
    *secret = made;
    return APR_SUCCESS;
}

apr_status_t mdl_secret_read(mdl_secret_t **secret, const apr_array_header_t *paths,
                             const char **why, apr_pool_t *p)
{
    mdl_secret_t *first = NULL, **last = &first;
    unsigned char mac[MDL_SHA256_LENGTH];

    *secret = NULL;
    *why = NULL;
    for (int i = 0; i < paths->nelts; i++) {
        apr_status_t rv = secret_read_file(last, APR_ARRAY_IDX(paths, i, const char *), why, p);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        mdl_secret_mac(*last, "secret-id", "", 0, mac);
        (*last)->id = mdl_base64url(mac, ID_LENGTH, p);
        last = &(*last)->older;
    }
    *secret = first;
    return APR_SUCCESS;
}

static apr_status_t secret_compare(const mdl_secret_t *secret, const char *path, const char **why,
                                   apr_pool_t *p)
{
    mdl_secret_t *other;
    apr_status_t rv = secret_read_file(&other, path, why, p);

    if (rv == APR_SUCCESS && (other->length != secret->length ||
                              memcmp(other->bytes, secret->bytes, secret->length) != 0)) {
        *why = apr_psprintf(p, "%s is there, and is another secret: name another file.", path);
        rv = APR_EEXIST;
    }
    return rv;
}

apr_status_t mdl_secret_save(const mdl_secret_t *secret, const char *path, const char **why,
                             apr_pool_t *p)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed;

    if (fd < 0 && errno == EEXIST) {
        return secret_compare(secret, path, why, p);
    }
    errno = fd < 0 ? errno : ENOSPC; /* a short write sets none */
    failed = fd < 0 || write(fd, secret->bytes, secret->length) != (ssize_t)secret->length ||
                     fsync(fd) != 0
                 ? errno
                 : 0;
    if (fd >= 0) {
        close(fd);
        if (failed) {
            unlink(path);
        }
    }
    if (failed) {
        *why = apr_psprintf(p, "%s can't be written to: %s.", path, strerror(failed));
    }
    return APR_FROM_OS_ERROR(failed);
}

mdl_secret_t *mdl_secret_make(const void *bytes, apr_size_t length, apr_pool_t *p)
{
    mdl_secret_t *secret = secret_alloc(p);

    memcpy(secret->bytes, bytes, length);
    secret->length = length;
    return secret;
}

int mdl_secret_count(const mdl_secret_t *secret)
{
    int count = 0;

    for (; secret != NULL; secret = secret->older) {
        count++;
    }
    return count;
}

const char *mdl_secret_id(const mdl_secret_t *secret)
{
    return secret->id;
}

const mdl_secret_t *mdl_secret_at(const mdl_secret_t *secret, int index)
{
    while (index-- > 0) {
        secret = secret->older;
    }
    return secret;
}

static EVP_MAC_CTX *keyed_context(const unsigned char *key, apr_size_t length)
{
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
    EVP_MAC_CTX *context = hmac != NULL ? EVP_MAC_CTX_new(hmac) : NULL;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end(),
    };

    EVP_MAC_free(hmac);
    if (context == NULL || !EVP_MAC_init(context, key, length, parameters)) {
        crypto_give_up("EVP_MAC_init");
    }
    return context;
}

void mdl_hmac_sha256(const void *key, apr_size_t key_length, const void *data, apr_size_t length,
                     unsigned char mac[MDL_SHA256_LENGTH])
{
    if (HMAC(EVP_sha256(), key, (int)key_length, data, length, mac, NULL) == NULL) {
        crypto_give_up("HMAC");
    }
}

static purpose_t *purpose_make(const mdl_secret_t *secret, const char *name)
{
    apr_size_t length = strlen(name);
    purpose_t *purpose = calloc(1, sizeof *purpose + length + 1);
    unsigned char key[MDL_SHA256_LENGTH];

    if (purpose == NULL || HMAC(EVP_sha256(), secret->bytes, (int)secret->length,
                                (const unsigned char *)name, length, key, NULL) == NULL) {
        crypto_give_up("HMAC");
    }
    memcpy(purpose->purpose, name, length);
    purpose->keyed = keyed_context(key, sizeof key);
    OPENSSL_cleanse(key, sizeof key);
    return purpose;
}

/* The entry of a purpose, made on first use.  NULL when the table is full. */
static purpose_t *purpose_of(const mdl_secret_t *secret, const char *name)
{
    purpose_t *made = NULL;

    for (int i = 0; i < PURPOSES_MAX; i++) {
        purpose_t *found = __atomic_load_n(&secret->purposes[i], __ATOMIC_ACQUIRE);

        if (found == NULL) {
            made = made != NULL ? made : purpose_make(secret, name);
            if (__atomic_compare_exchange_n(&secret->purposes[i], &found, made, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                return made;
            }
        }
        if (strcmp(found->purpose, name) == 0) {
            if (made != NULL) {
                purpose_free(made);
            }
            return found;
        }
    }
    if (made != NULL) {
        purpose_free(made);
    }
    return NULL;
}

static void context_mac(EVP_MAC_CTX *context, const void *data, apr_size_t length,
                        unsigned char mac[MDL_SHA256_LENGTH])
{
    if (!EVP_MAC_init(context, NULL, 0, NULL) || !EVP_MAC_update(context, data, length) ||
        !EVP_MAC_final(context, mac, NULL, MDL_SHA256_LENGTH)) {
        crypto_give_up("EVP_MAC");
    }
}

void mdl_secret_mac(const mdl_secret_t *secret, const char *purpose, const void *data,
                    apr_size_t length, unsigned char mac[MDL_SHA256_LENGTH])
{
    purpose_t *entry = purpose_of(secret, purpose);
    EVP_MAC_CTX *context;

    if (entry == NULL) {
        entry = purpose_make(secret, purpose);
        context_mac(entry->keyed, data, length, mac);
        purpose_free(entry);
        return;
    }
    context = __atomic_exchange_n(&entry->spare, NULL, __ATOMIC_ACQ_REL);
    if (context == NULL) {
        context = EVP_MAC_CTX_dup(entry->keyed);
        if (context == NULL) {
            crypto_give_up("EVP_MAC_CTX_dup");
        }
    }
    context_mac(context, data, length, mac);
    EVP_MAC_CTX_free(__atomic_exchange_n(&entry->spare, context, __ATOMIC_ACQ_REL));
}

int mdl_secret_verify(const mdl_secret_t *secret, const char *purpose, const void *data,
                      apr_size_t length, const void *mac, apr_size_t mac_length)
{
    int valid = 0;

    for (; secret != NULL; secret = secret->older) {
        unsigned char ours[MDL_SHA256_LENGTH];

        mdl_secret_mac(secret, purpose, data, length, ours);
        valid |= mdl_equal(ours, mac, mac_length);
    }
    return valid;
}

int mdl_certificates_in(const char *path)
{
    X509_STORE *store = X509_STORE_new();
    X509_LOOKUP *lookup = store != NULL ? X509_STORE_add_lookup(store, X509_LOOKUP_file()) : NULL;
    int count;

    if (lookup == NULL) {
        crypto_give_up("X509_STORE_add_lookup");
    }
    count = X509_load_cert_file(lookup, path, X509_FILETYPE_PEM);
    X509_STORE_free(store);
    ERR_clear_error(); /* mod_ssl and libcurl use the same queue */
    return count;
}

void mdl_random(void *buffer, apr_size_t length)
{
    unsigned char *at = buffer;

    while (length > 0) {
        int n = length > 65536 ? 65536 : (int)length;

        if (RAND_bytes(at, n) != 1) {
            crypto_give_up("RAND_bytes");
        }
        at += n;
        length -= (apr_size_t)n;
    }
}

int mdl_equal(const void *a, const void *b, apr_size_t length)
{
    return CRYPTO_memcmp(a, b, length) == 0;
}

void mdl_sha256(const void *data, apr_size_t length, unsigned char digest[MDL_SHA256_LENGTH])
{
    if (!EVP_Digest(data, length, digest, NULL, EVP_sha256(), NULL)) {
        crypto_give_up("EVP_Digest");
    }
}

struct mdl_digest_t {
    EVP_MD_CTX *context;
};

static apr_status_t digest_free(void *data)
{
    EVP_MD_CTX_free(((mdl_digest_t *)data)->context);
    return APR_SUCCESS;
}

mdl_digest_t *mdl_digest_begin(const char *algorithm, apr_pool_t *p)
{
    const EVP_MD *type = strcmp(algorithm, "sha1") == 0     ? EVP_sha1()
                         : strcmp(algorithm, "sha256") == 0 ? EVP_sha256()
                                                            : NULL;
    mdl_digest_t *digest;

    if (type == NULL) {
        return NULL;
    }
    digest = apr_pcalloc(p, sizeof *digest);
    digest->context = EVP_MD_CTX_new();
    if (digest->context == NULL || !EVP_DigestInit_ex(digest->context, type, NULL)) {
        crypto_give_up("EVP_DigestInit_ex");
    }
    apr_pool_cleanup_register(p, digest, digest_free, apr_pool_cleanup_null);
    return digest;
}

void mdl_digest_update(mdl_digest_t *digest, const void *data, apr_size_t length)
{
    if (!EVP_DigestUpdate(digest->context, data, length)) {
        crypto_give_up("EVP_DigestUpdate");
    }
}

const char *mdl_digest_end(mdl_digest_t *digest, apr_pool_t *p)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned int length;

    if (!EVP_DigestFinal_ex(digest->context, bytes, &length)) {
        crypto_give_up("EVP_DigestFinal_ex");
    }
    return mdl_base64(bytes, length, p);
}

const char *mdl_hex(const void *data, apr_size_t length, apr_pool_t *p)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    char *text = apr_palloc(p, length * 2 + 1);

    for (apr_size_t i = 0; i < length; i++) {
        text[i * 2] = digits[bytes[i] >> 4];
        text[i * 2 + 1] = digits[bytes[i] & 15];
    }
    text[length * 2] = '\0';
    return text;
}

apr_status_t mdl_hex_decode(void *data, apr_size_t length, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char *to = data;

    if (strlen(text) != 2 * length || strspn(text, digits) != 2 * length) {
        return APR_EINVAL;
    }
    for (; *text != '\0'; text += 2) {
        *to++ = (unsigned char)((strchr(digits, text[0]) - digits) << 4 |
                                (strchr(digits, text[1]) - digits));
    }
    return APR_SUCCESS;
}

/* Encodes with an alphabet; returns the text without padding and its length. */
static char *crypto_encode(const char alphabet[65], const unsigned char *bytes, apr_size_t length,
                           apr_size_t *size, apr_pool_t *p)
{
    char *text = apr_palloc(p, (length / 3 + 1) * 4 + 1);
    apr_size_t n = 0;
    unsigned int bits = 0;
    int held = 0;

    for (apr_size_t i = 0; i < length; i++) {
        bits = (bits << 8 | bytes[i]) & 0xFFFF;
        for (held += 8; held >= 6; held -= 6) {
            text[n++] = alphabet[bits >> (held - 6) & 63];
        }
    }
    if (held > 0) {
        text[n++] = alphabet[bits << (6 - held) & 63];
    }
    text[n] = '\0';
    *size = n;
    return text;
}

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char base64url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const char *mdl_base64url(const void *data, apr_size_t length, apr_pool_t *p)
{
    apr_size_t size;

    return crypto_encode(base64url_alphabet, data, length, &size, p);
}

const char *mdl_base64(const void *data, apr_size_t length, apr_pool_t *p)
{
    apr_size_t size;
    char *text = crypto_encode(base64_alphabet, data, length, &size, p);

    while (size % 4 != 0) {
        text[size++] = '=';
    }
    text[size] = '\0';
    return text;
}

static int base64url_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

apr_status_t mdl_base64url_decode(void *data, apr_size_t length, const char *text)
{
    unsigned char *bytes = data;
    apr_size_t n = 0;
    unsigned int bits = 0;
    int held = 0;

    if (strlen(text) != (length * 4 + 2) / 3) {
        return APR_EINVAL;
    }
    for (; *text != '\0'; text++) {
        int value = base64url_value(*text);

        if (value < 0) {
            return APR_EINVAL;
        }
        bits = (bits << 6 | (unsigned int)value) & 0xFFFF;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[n++] = (unsigned char)(bits >> held);
        }
    }
    /* Bits that belong to no byte are zero in the canonical text. */
    return (bits & ((1U << held) - 1)) == 0 ? APR_SUCCESS : APR_EINVAL;
}

const char *mdl_random_base62(apr_size_t length, apr_pool_t *p)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    char *text = apr_palloc(p, length + 1);
    unsigned char drawn[64];
    apr_size_t n = 0;

    while (n < length) {
        mdl_random(drawn, sizeof drawn);
        for (apr_size_t i = 0; i < sizeof drawn && n < length; i++) {
            /* 248 is 4 * 62: higher bytes would favour some characters. */
            if (drawn[i] < 248) {
                text[n++] = digits[drawn[i] % 62];
            }
        }
    }
    text[n] = '\0';
    OPENSSL_cleanse(drawn, sizeof drawn);
    return text;
}
