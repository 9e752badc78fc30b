/* SHA-256 that one process begins and others go on with. */
#include <stdlib.h>

#include "base/crypto.h"
#include "base/sha256.h"
#include "t/unit/tap.h"

#define LENGTH 5000000

static apr_pool_t *p;
static unsigned char *bytes;

static const char *digest_of(mdl_sha256_t *sha)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256_end(sha, digest);
    return mdl_hex(digest, sizeof digest, p);
}

static const char *digest_at_once(apr_size_t length)
{
    unsigned char digest[MDL_SHA256_LENGTH];

    mdl_sha256(bytes, length, digest);
    return mdl_hex(digest, sizeof digest, p);
}

static void a_state_is_handed_over(void)
{
    /* 512 MiB and more would take long; the number of bits is checked by a_state_is_portable. */
    static const apr_size_t places[] = {0, 64, 4096 + 128, 3 * 1024 * 1024, LENGTH};
    unsigned char state[MDL_SHA256_STATE_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);
    apr_size_t at = 0;

    for (int i = 0; i < 5; i++) {
        mdl_sha256_update(sha, bytes + at, places[i] - at);
        at = places[i];
        if (i == 4) {
            break;
        }
        is_int(mdl_sha256_save(sha, state), APR_SUCCESS, "a state is saved between two blocks");
        sha = mdl_sha256_begin(p);
        mdl_sha256_update(sha, "of something else", 17);
        is_int(mdl_sha256_restore(sha, state), APR_SUCCESS, "another digest goes on with it");
    }
    is_str(digest_of(sha), digest_at_once(LENGTH), "the digest is that of all bytes");
    mdl_sha256_update(sha, bytes, 3);
    is_str(digest_of(sha), digest_at_once(3), "the next digest begins anew");
}

static void a_state_is_portable(void)
{
    unsigned char state[MDL_SHA256_STATE_LENGTH], again[MDL_SHA256_STATE_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);

    mdl_sha256_save(sha, state);
    is_str(mdl_hex(state, sizeof state, p),
           "6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd190000000000000000",
           "the state of no bytes is FIPS 180-4's initial value and 0");
    mdl_sha256_update(sha, bytes, 128);
    mdl_sha256_save(sha, state);
    is_int(state[39], 128, "the number of bytes is the last of it");
    /* 9 TB: the number of bits needs more than 32 bits. */
    state[34] = 0x09;
    is_int(mdl_sha256_restore(sha, state), APR_SUCCESS, "many bytes may lie before");
    mdl_sha256_save(sha, again);
    ok(memcmp(state, again, sizeof state) == 0, "and are saved again");
}

static void other_states_are_refused(void)
{
    unsigned char state[MDL_SHA256_STATE_LENGTH];
    mdl_sha256_t *sha = mdl_sha256_begin(p);

    mdl_sha256_save(sha, state);
    mdl_sha256_update(sha, bytes, 65);
    state[39] = 1;
    is_int(mdl_sha256_save(sha, state), APR_EINVAL, "a state within a block is not saved");
    is_int(mdl_sha256_restore(sha, state), APR_EINVAL, "nor is one gone on with");
    state[39] = 0;
    state[32] = 0x20;
    is_int(mdl_sha256_restore(sha, state), APR_EINVAL,
           "a number of bytes is refused whose bits don't fit");
    is_str(digest_of(sha), digest_at_once(65), "a refusal changes nothing");
}

int main(void)
{
    unsigned int random = 1;

    p = tap_begin();
    bytes = apr_palloc(p, LENGTH);
    for (int i = 0; i < LENGTH; i++) {
        random = random * 1103515245u + 12345u;
        bytes[i] = (unsigned char)(random >> 16);
    }
    a_state_is_handed_over();
    a_state_is_portable();
    other_states_are_refused();
    return tap_end(p);
}
