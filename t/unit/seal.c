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
    mdl_secret_t *secret = NULL;
    const char *why;

    if (fd < 0 || write(fd, bytes, strlen(bytes)) != (ssize_t)strlen(bytes) ||
        mdl_secret_read(&secret, path, &why, p) != APR_SUCCESS) {
        exit(2);
    }
    close(fd);
    unlink(path);
    return secret;
}

/* Whether a sealed text opens to the expected one; with NULL, whether it opens at all. */
static int opens(const mdl_secret_t *secret, const char *purpose, const char *owner,
                 const char *sealed, const char *expected)
{
    const char *text = "before";
    apr_status_t rv = mdl_unseal(secret, purpose, owner, sealed, &text, p);

    if (expected != NULL) {
        return rv == APR_SUCCESS && strcmp(text, expected) == 0;
    }
    return rv != APR_EINVAL || text != NULL;
}

static void what_is_sealed_is_opened_by_its_owner_alone(const mdl_secret_t *secret,
                                                        const mdl_secret_t *other)
{
    const char *sealed = mdl_seal(secret, "test", "7", "shpat_secret", p);

    ok(opens(secret, "test", "7", sealed, "shpat_secret"), "what was sealed can be opened");
    ok(!strstr(sealed, "shpat"), "and does not show the text");
    ok(strcmp(sealed, mdl_seal(secret, "test", "7", "shpat_secret", p)) != 0,
       "the same text is sealed in another way each time");
    ok(!opens(other, "test", "7", sealed, NULL), "another secret does not open it");
    ok(!opens(secret, "other", "7", sealed, NULL), "nor does another purpose");
    ok(!opens(secret, "test", "8", sealed, NULL), "nor does another owner");
    ok(opens(secret, "test", "7", mdl_seal(secret, "test", "7", "", p), ""),
       "an empty text is one too");
}

static void a_change_is_seen(const mdl_secret_t *secret)
{
    const char *sealed = mdl_seal(secret, "test", "7", "shpat_secret", p);
    int taken = 0;

    for (apr_size_t i = 0; i < strlen(sealed); i++) {
        char *changed = apr_pstrdup(p, sealed);

        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        taken += opens(secret, "test", "7", changed, NULL);
    }
    ok(taken == 0, "no character of it can be changed");
    for (apr_size_t i = 0; i < strlen(sealed); i++) {
        taken += opens(secret, "test", "7", apr_pstrmemdup(p, sealed, i), NULL);
    }
    ok(taken == 0, "nor can any be left out at its end");
    ok(!opens(secret, "test", "7", apr_pstrcat(p, sealed, "A", NULL), NULL), "nor one be added");
}

int main(void)
{
    mdl_secret_t *secret, *other;

    p = tap_begin();
    secret = secret_of("a secret of this test, long enough to be one");
    other = secret_of("another secret of this test, as long as that");
    what_is_sealed_is_opened_by_its_owner_alone(secret, other);
    a_change_is_seen(secret);
    return tap_end(p);
}
