#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "base/seal.h"
#include "t/unit/tap.h"

static apr_pool_t *p;

static mdl_secret_t *secret_of(const char *bytes)
{
    char path[] = "/tmp/mdl-seal-XXXXXX";
    int fd = mkstemp(path);
    apr_array_header_t *paths = apr_array_make(p, 1, sizeof(const char *));
    mdl_secret_t *secret = NULL;
    const char *why;

    APR_ARRAY_PUSH(paths, const char *) = path;
    if (fd < 0 || write(fd, bytes, strlen(bytes)) != (ssize_t)strlen(bytes) ||
        mdl_secret_read(&secret, paths, &why, p) != APR_SUCCESS) {
        exit(2);
    }
    close(fd);
    unlink(path);
    return secret;
}

/* Whether a sealed text opens to the expected text, or with NULL at all. */
static int opens(const mdl_secret_t *secret, const char *purpose, const char *owner,
                 const char *sealed, const char *expected)
{
    const char *text = "before";
    apr_size_t length;
    apr_status_t rv = mdl_unseal(secret, purpose, owner, sealed, &text, &length, p);

    if (expected != NULL) {
        return rv == APR_SUCCESS && strcmp(text, expected) == 0;
    }
    return rv != APR_EINVAL || text != NULL;
}

static void only_the_owner_opens_a_sealed_text(const mdl_secret_t *secret,
                                               const mdl_secret_t *other)
{
    const char *sealed = mdl_seal(secret, "test", "7", "shpat_secret", 12, p);

    ok(opens(secret, "test", "7", sealed, "shpat_secret"), "a sealed text can be opened");
    ok(!strstr(sealed, "shpat"), "the sealed form does not contain the text");
    ok(strcmp(sealed, mdl_seal(secret, "test", "7", "shpat_secret", 12, p)) != 0,
       "the same text has another sealed form each time");
    ok(!opens(other, "test", "7", sealed, NULL), "another secret does not open it");
    ok(!opens(secret, "other", "7", sealed, NULL), "another purpose does not open it");
    ok(!opens(secret, "test", "8", sealed, NULL), "another owner does not open it");
    ok(opens(secret, "test", "7", mdl_seal(secret, "test", "7", "", 0, p), ""),
       "an empty text can be sealed and opened");
}

static void equal_texts_are_sealed_alike(const mdl_secret_t *secret, const mdl_secret_t *other)
{
    const char *sealed = mdl_seal_alike(secret, "test", "7", "AAAA-1111", 9, p);

    is_str(mdl_seal_alike(secret, "test", "7", "AAAA-1111", 9, p), sealed,
           "a text can be sealed to the same form each time");
    ok(opens(secret, "test", "7", sealed, "AAAA-1111"), "and opened like any other");
    ok(!strstr(sealed, "AAAA"), "the sealed form does not contain the text");
    ok(strcmp(sealed, mdl_seal_alike(secret, "test", "7", "AAAA-1112", 9, p)) != 0,
       "another text has another form");
    /* Version and nonce are the first 19 characters: no nonce is used for two texts. */
    for (int i = 0; i < 4; i++) {
        const char *alike = i == 0   ? mdl_seal_alike(secret, "test", "7", "AAAA-1112", 9, p)
                            : i == 1 ? mdl_seal_alike(secret, "test", "8", "AAAA-1111", 9, p)
                            : i == 2 ? mdl_seal_alike(secret, "tests", "7", "AAAA-1111", 9, p)
                                     : mdl_seal_alike(other, "test", "7", "AAAA-1111", 9, p);

        ok(strncmp(alike, sealed, 19) != 0,
           "another text, owner, purpose or secret gives another nonce");
    }
    is_int((long long)mdl_sealed_size(sealed), 9, "the size of what is sealed is known");
    for (apr_size_t size = 0; size < 9; size++) {
        is_int((long long)mdl_sealed_size(mdl_seal(secret, "test", "7", "AAAA-1111", size, p)),
               (long long)size, "whatever it is");
    }
}

static void a_change_is_detected(const mdl_secret_t *secret)
{
    const char *sealed = mdl_seal(secret, "test", "7", "shpat_secret", 12, p);
    int accepted = 0;

    for (apr_size_t i = 0; i < strlen(sealed); i++) {
        char *changed = apr_pstrdup(p, sealed);

        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        accepted += opens(secret, "test", "7", changed, NULL);
    }
    ok(accepted == 0, "a sealed text with a changed character is refused");
    for (apr_size_t i = 0; i < strlen(sealed); i++) {
        accepted += opens(secret, "test", "7", apr_pstrmemdup(p, sealed, i), NULL);
    }
    ok(accepted == 0, "a truncated sealed text is refused");
    ok(!opens(secret, "test", "7", apr_pstrcat(p, sealed, "A", NULL), NULL),
       "a sealed text with a character appended is refused");
}

int main(void)
{
    mdl_secret_t *secret, *other;

    p = tap_begin();
    secret = secret_of("a secret of this test, long enough to be one");
    other = secret_of("another secret of this test, as long as that");
    only_the_owner_opens_a_sealed_text(secret, other);
    equal_texts_are_sealed_alike(secret, other);
    a_change_is_detected(secret);
    return tap_end(p);
}
