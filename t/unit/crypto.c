#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "t/unit/program.h"
#include "t/unit/tap.h"

#define THREADS 4

static apr_pool_t *p;
static char folder[256];

static const char *file_of(const char *name, const void *data, apr_size_t length, mode_t mode)
{
    const char *path = apr_pstrcat(p, folder, "/", name, NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, data, length) != (ssize_t)length || fchmod(fd, mode) != 0) {
        perror(path);
        exit(2);
    }
    close(fd);
    return path;
}

static const apr_array_header_t *paths_of(const char *path)
{
    apr_array_header_t *paths = apr_array_make(p, 1, sizeof(const char *));

    APR_ARRAY_PUSH(paths, const char *) = path;
    return paths;
}

/* The message that refuses a secret file; NULL if the status is not expected. */
static const char *problem(const char *path, apr_status_t expected)
{
    mdl_secret_t *secret;
    const char *why;
    apr_status_t rv = mdl_secret_read(&secret, paths_of(path), &why, p);

    return rv == expected && secret == NULL ? why : NULL;
}

static int names(const char *why, const char *path)
{
    apr_size_t length = why != NULL ? strlen(why) : 0;

    return length && strstr(why, path) != NULL && why[length - 1] == '.';
}

static void secret_files_are_checked(void)
{
    const char *path;
    char bytes[1025];
    mdl_secret_t *secret;
    const char *why;

    memset(bytes, 'k', sizeof bytes);
    path = file_of("open", bytes, 32, 0644);
    ok(names(problem(path, APR_EINVAL), path), "a file that others may read is refused");
    path = file_of("group", bytes, 32, 0640);
    ok(names(problem(path, APR_EINVAL), path), "a file that the group may read is refused");
    path = file_of("short", bytes, 31, 0600);
    ok(names(problem(path, APR_EINVAL), path), "31 bytes are too few");
    path = file_of("long", bytes, 1025, 0600);
    ok(names(problem(path, APR_EINVAL), path), "1,025 bytes are too many");
    path = apr_pstrcat(p, folder, "/missing", NULL);
    ok(names(problem(path, APR_ENOENT), path), "a missing file is absent");
    ok(strstr(problem(path, APR_ENOENT), apr_pstrcat(p, "openssl rand -out ", path, " 48", NULL)),
       "with the command that the guides have");
    path = apr_pstrcat(p, folder, "/short/x", NULL);
    ok(names(problem(path, APR_ENOENT), path), "a path below a file is absent");
    ok(names(problem(folder, APR_EINVAL), folder), "a folder is refused");
    ok(strstr(problem(folder, APR_EINVAL), "not a regular file"), "with the reason");
    path = apr_pstrcat(p, folder, "/pipe", NULL);
    mkfifo(path, 0600);
    ok(names(problem(path, APR_EINVAL), path), "a named pipe is refused without waiting for it");

    path = file_of("smallest", bytes, 32, 0600);
    is_int(mdl_secret_read(&secret, paths_of(path), &why, p), APR_SUCCESS, "32 bytes are accepted");
    path = file_of("largest", bytes, 1024, 0400);
    is_int(mdl_secret_read(&secret, paths_of(path), &why, p), APR_SUCCESS,
           "1,024 bytes are accepted");
}

static mdl_secret_t *secret_of(const char *name, const void *bytes, apr_size_t length,
                               apr_pool_t *pool)
{
    mdl_secret_t *secret = NULL;
    const char *why = NULL;

    if (mdl_secret_read(&secret, paths_of(file_of(name, bytes, length, 0600)), &why, pool)) {
        printf("Bail out! %s\n", why);
        exit(2);
    }
    return secret;
}

static void a_secret_is_saved(void)
{
    const mdl_secret_t *secret = secret_of("saved", "0123456789abcdefghijklmnopqrstuvwxyz", 36, p);
    const mdl_secret_t *other = secret_of("other", "0123456789abcdefghijklmnopqrstuvwxy-", 36, p);
    const char *path = apr_pstrcat(p, folder, "/copy", NULL);
    const char *why = NULL;
    struct stat copy;

    is_int(mdl_secret_save(secret, path, &why, p), APR_SUCCESS, "a secret is saved");
    is_int(stat(path, &copy) == 0 ? copy.st_mode & 0777 : 0, 0600, "for this user alone");
    is_str(output_of(apr_psprintf(p, "cat %s", path), p), "0123456789abcdefghijklmnopqrstuvwxyz",
           "byte by byte");
    is_int(mdl_secret_save(secret, path, &why, p), APR_SUCCESS, "the same one is left as it is");
    is_int(mdl_secret_save(other, path, &why, p), APR_EEXIST, "another one is not overwritten");
    ok(names(why, path) && strstr(why, "another secret") != NULL, "and the sentence says so");
    is_int(chmod(path, 0644) == 0 ? mdl_secret_save(secret, path, &why, p) : -1, APR_EINVAL,
           "a file that others may read is no copy");
    path = apr_pstrcat(p, folder, "/missing/copy", NULL);
    is_int(mdl_secret_save(secret, path, &why, p), APR_ENOENT, "a missing folder is not made");
    ok(names(why, path), "and the sentence names it");
    is_int(mdl_secret_save(secret, "/dev/full", &why, p), APR_EINVAL, "a device is no file");
}

static const char *mac_of(const mdl_secret_t *secret, const char *purpose, const char *data)
{
    unsigned char mac[MDL_SHA256_LENGTH];

    mdl_secret_mac(secret, purpose, data, strlen(data), mac);
    return mdl_hex(mac, sizeof mac, p);
}

/* Computes the same MAC with openssl(1), in the two steps of the derivation. */
static const char *mac_by_openssl(const char *key, const char *purpose, const char *data)
{
    const char *step = "printf %%s '%s' | openssl dgst -sha256 -mac HMAC -macopt hexkey:%s"
                       " | sed 's/.* //'";
    const char *derived = output_of(apr_psprintf(p, step, purpose, key), p);

    return output_of(apr_psprintf(p, step, data, derived), p);
}

static void mac_is_the_documented_one(void)
{
    /* RFC 4231 test case 6: a key of 131 bytes, longer than SHA-256's block. */
    const char *message = "Test Using Larger Than Block-Size Key - Hash Key First";
    unsigned char key[131];
    const char *hex;
    mdl_secret_t *secret;

    memset(key, 0xAA, sizeof key);
    hex = mdl_hex(key, sizeof key, p);
    is_str(output_of(apr_psprintf(p,
                                  "printf %%s '%s' | openssl dgst -sha256 -mac HMAC -macopt "
                                  "hexkey:%s | sed 's/.* //'",
                                  message, hex),
                     p),
           "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
           "openssl(1) knows the vector of RFC 4231");
    secret = secret_of("rfc4231", key, sizeof key, p);
    is_str(mac_of(secret, message, "data"), mac_by_openssl(hex, message, "data"),
           "the derived key is that vector, and signs the data");
    is_str(mac_of(secret, "api-key", "x"), mac_by_openssl(hex, "api-key", "x"),
           "the MAC for another purpose is the one that openssl(1) computes");
    is_str(mac_of(secret, "api-key", "y"), mac_by_openssl(hex, "api-key", "y"),
           "a context that is used again starts from the beginning");
    is_str(mac_of(secret, "api-key", ""), mac_by_openssl(hex, "api-key", ""),
           "the MAC of empty data is the one that openssl(1) computes");
    ok(strcmp(mac_of(secret, "api-key", "x"), mac_of(secret, "api-ke", "x")) != 0,
       "a purpose that is a prefix of another has another key");
}

static void many_purposes_work(void)
{
    unsigned char key[32];
    mdl_secret_t *secret;
    const char *first[40];
    int same = 0;

    memset(key, 1, sizeof key);
    secret = secret_of("many", key, sizeof key, p);
    for (int i = 0; i < 40; i++) {
        first[i] = mac_of(secret, apr_psprintf(p, "purpose-%d", i), "data");
    }
    for (int i = 0; i < 40; i++) {
        same += !strcmp(first[i], mac_of(secret, apr_psprintf(p, "purpose-%d", i), "data"));
    }
    is_int(same, 40, "with more purposes than are cached, each has the same MAC every time");
    is_str(first[39], mac_by_openssl(mdl_hex(key, sizeof key, p), "purpose-39", "data"),
           "it is the one that openssl(1) computes");
}

static void hexadecimal_is_lower_case(void)
{
    static const char *const bad[] = {"",         "00f",    "00ff7", "00ff7f0",
                                      "00ff7f00", "00FF7F", "00fg7f"};
    unsigned char bytes[3] = {0};

    is_int(mdl_hex_decode(bytes, 3, "00ff7f"), APR_SUCCESS, "hexadecimal is decoded");
    is_str(mdl_hex(bytes, 3, p), "00ff7f", "and encoded again");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        is_int(mdl_hex_decode(bytes, 3, bad[i]), APR_EINVAL,
               "a text that is not hexadecimal of that length is refused");
    }
    is_str(mdl_hex(bytes, 3, p), "00ff7f", "a refused text leaves the buffer unchanged");
}

typedef struct {
    const mdl_secret_t *secret;
    unsigned char expected[8][MDL_SHA256_LENGTH];
    int wrong;
} thread_t;

static void *mac_often(void *data)
{
    thread_t *t = data;
    static const char *purposes[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    unsigned char mac[MDL_SHA256_LENGTH];

    for (int i = 0; i < 40000; i++) {
        mdl_secret_mac(t->secret, purposes[i % 8], purposes[i % 8], 1, mac);
        t->wrong += memcmp(mac, t->expected[i % 8], sizeof mac) != 0;
    }
    return NULL;
}

static void threads_and_children_may_call(void)
{
    unsigned char key[32];
    thread_t each[THREADS];
    pthread_t threads[THREADS];
    mdl_secret_t *expecting;
    mdl_secret_t *fresh;
    int wrong = 0;
    int status = -1;
    pid_t child;

    memset(key, 2, sizeof key);
    expecting = secret_of("threads", key, sizeof key, p);
    fresh = secret_of("threads", key, sizeof key, p);
    for (int i = 0; i < THREADS; i++) {
        each[i].secret = fresh;
        each[i].wrong = 0;
        for (int j = 0; j < 8; j++) {
            char c = (char)('a' + j);

            mdl_secret_mac(expecting, apr_pstrmemdup(p, &c, 1), &c, 1, each[i].expected[j]);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, mac_often, &each[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += each[i].wrong;
    }
    is_int(wrong, 0, "threads that share a secret get the right MACs");

    child = fork();
    if (child == 0) {
        each[0].wrong = 0;
        mac_often(&each[0]);
        _exit(each[0].wrong ? 1 : 0);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a forked child gets the right MACs");
}

static void a_secret_ends_with_its_pool(void)
{
    unsigned char key[32];
    apr_pool_t *sub;
    const char *first;

    memset(key, 3, sizeof key);
    apr_pool_create(&sub, p);
    first = mac_of(secret_of("first", key, sizeof key, sub), "purpose", "data");
    apr_pool_clear(sub);
    key[0] = 4;
    ok(strcmp(mac_of(secret_of("second", key, sizeof key, sub), "purpose", "data"), first) != 0,
       "a secret at the address of an earlier one does not get its MACs");
    apr_pool_destroy(sub);
}

static void digests_are_sha256(void)
{
    unsigned char digest[MDL_SHA256_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    const char *abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const char *nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    mdl_sha256("abc", 3, digest);
    is_str(mdl_hex(digest, sizeof digest, p), abc, "SHA-256 of a buffer");
    mdl_sha256_update(sha, "a", 1);
    mdl_sha256_update(sha, "", 0);
    mdl_sha256_update(sha, "bc", 2);
    mdl_sha256_end(sha, digest);
    is_str(mdl_hex(digest, sizeof digest, p), abc, "SHA-256 of data in pieces");
    mdl_sha256_end(sha, digest);
    is_str(mdl_hex(digest, sizeof digest, p), nothing, "mdl_sha256_end resets the context");
}

static void digests_have_names(void)
{
    mdl_digest_t *sha1 = mdl_digest_begin("sha1", p);
    mdl_digest_t *sha256 = mdl_digest_begin("sha256", p);

    mdl_digest_update(sha1, "hello ", 6);
    mdl_digest_update(sha1, "world", 5);
    is_str(mdl_digest_end(sha1, p), "Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "SHA-1 of data in pieces");
    is_str(mdl_digest_end(sha256, p),
           "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "SHA-256 of no data");
    ok(!mdl_digest_begin("md5", p) && !mdl_digest_begin("SHA1", p) && !mdl_digest_begin("", p),
       "other names are unknown");
}

/* The number of certificates in all.pem after shell commands in the folder. */
static int certificates_after(const char *commands)
{
    if (system(apr_psprintf(p, "cd '%s' && %s", folder, commands)) != 0) {
        return -1;
    }
    return mdl_certificates_in(apr_pstrcat(p, folder, "/all.pem", NULL));
}

static void certificates_are_counted(void)
{
    static const char make[] = "for name in one two; do openssl req -x509 -newkey ec "
                               "-pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name "
                               "-keyout key.pem -out $name.pem 2>/dev/null || exit 1; done; "
                               "cp one.pem all.pem";

    is_int(certificates_after(make), 1, "a certificate is counted");
    is_int(certificates_after("cat key.pem one.pem two.pem one.pem >all.pem"), 3,
           "several certificates beside a key are counted");
    is_int(certificates_after("cp key.pem all.pem"), 0, "a key is not a certificate");
    is_int(certificates_after("cat one.pem two.pem >all.pem && sed -i 5d all.pem"), 0,
           "a file with a broken certificate has none");
    is_int(certificates_after("openssl x509 -in two.pem -outform DER -out all.pem"), 0,
           "a certificate in DER is not counted");
    is_int(certificates_after("echo words >all.pem"), 0, "a text file has none");
    is_int(certificates_after(": >all.pem"), 0, "an empty file has none");
    is_int(certificates_after("rm all.pem && mkdir all.pem"), 0, "a folder has none");
    is_int(certificates_after("rmdir all.pem"), 0, "a missing file has none");
}

static void comparison_sees_each_byte(void)
{
    unsigned char a[32] = {0};
    unsigned char b[32] = {0};
    int seen = 0;

    ok(mdl_equal(a, b, sizeof a), "equal buffers are equal");
    for (apr_size_t i = 0; i < sizeof a; i++) {
        b[i] = 0x80;
        seen += !mdl_equal(a, b, sizeof a);
        b[i] = 0;
    }
    is_int(seen, 32, "a difference in any byte is seen");
    ok(mdl_equal(a, "x", 0), "empty buffers are equal");
}

static void encodings_are_the_standard_ones(void)
{
    static const char *base64[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    static const char *base64url[] = {"", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"};
    unsigned char back[64];
    unsigned char bytes[64];
    int same = 0;

    for (apr_size_t i = 0; i < 7; i++) {
        is_str(mdl_base64("foobar", i, p), base64[i], "base64 of RFC 4648 section 10");
        is_str(mdl_base64url("foobar", i, p), base64url[i], "base64url of the same bytes");
    }
    is_str(mdl_base64("\xFB\xFF\xBF", 3, p), "+/+/", "the last characters of base64 are + and /");
    is_str(mdl_base64url("\xFB\xFF\xBF", 3, p), "-_-_",
           "the last characters of base64url are - and _");
    is_str(mdl_hex("\x00\x9F\xFF", 3, p), "009fff", "hexadecimal is lower-case");
    for (apr_size_t length = 0; length <= sizeof bytes; length++) {
        mdl_random(bytes, sizeof bytes);
        same += mdl_base64url_decode(back, length, mdl_base64url(bytes, length, p)) == 0 &&
                memcmp(back, bytes, length) == 0;
    }
    is_int(same, 65, "decoding gives the encoded bytes again, for each length");
    is_int(mdl_base64url_decode(back, 1, "Zh"), APR_EINVAL, "left-over bits must be zero");
    is_int(mdl_base64url_decode(back, 2, "Zm9"), APR_EINVAL,
           "left-over bits after two bytes must be zero");
    is_int(mdl_base64url_decode(back, 1, "Zg=="), APR_EINVAL, "padding is refused");
    is_int(mdl_base64url_decode(back, 3, "+/+/"), APR_EINVAL, "the alphabet of base64 is refused");
    is_int(mdl_base64url_decode(back, 3, "Zm 9"), APR_EINVAL, "a space is refused");
    is_int(mdl_base64url_decode(back, 3, "Zm9\xC3"), APR_EINVAL, "a byte above 127 is refused");
    is_int(mdl_base64url_decode(back, 3, "Zm9vY"), APR_EINVAL, "a longer text is refused");
    is_int(mdl_base64url_decode(back, 3, "Zm9"), APR_EINVAL, "a shorter text is refused");
    is_int(mdl_base64url_decode(back, 0, ""), APR_SUCCESS, "an empty text is decoded to no bytes");
}

static void random_text_is_even(void)
{
    const char *text = mdl_random_base62(620000, p);
    int count[256] = {0};
    int digits = 0;
    int worst = 0;

    is_int(strlen(text), 620000, "base62 has the requested length");
    for (const char *c = text; *c != '\0'; c++) {
        count[(unsigned char)*c]++;
    }
    for (int i = 0; i < 256; i++) {
        int off = abs(count[i] - 10000);

        digits += count[i] > 0;
        worst = count[i] && off > worst ? off : worst;
    }
    is_int(digits, 62, "all 62 characters occur");
    /* Ten standard deviations of a binomial count; without rejection sampling eight characters
       would be off by 2,000. */
    ok(worst < 1000, "each character occurs about equally often");
    is_int(strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), 620000,
           "no other character occurs");
    ok(strcmp(mdl_random_base62(43, p), mdl_random_base62(43, p)) != 0, "two random texts differ");
    is_str(mdl_random_base62(0, p), "", "a length of 0 gives an empty text");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    p = tap_begin();
    apr_snprintf(folder, sizeof folder, "%s/mdl-crypto-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        printf("Bail out! no temporary folder\n");
        return 2;
    }
    secret_files_are_checked();
    a_secret_is_saved();
    mac_is_the_documented_one();
    many_purposes_work();
    threads_and_children_may_call();
    a_secret_ends_with_its_pool();
    digests_are_sha256();
    digests_have_names();
    certificates_are_counted();
    comparison_sees_each_byte();
    encodings_are_the_standard_ones();
    hexadecimal_is_lower_case();
    random_text_is_even();
    if (system(apr_pstrcat(p, "rm -r '", folder, "'", NULL)) != 0) {
        printf("# %s remains\n", folder);
    }
    return tap_end(p);
}
