#include "base/ulid.h"

#include <string.h>

#include <apr_time.h>

#include "base/crypto.h"

#define ULID_BYTES 16

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* Encodes 128 bits as 26 digits of 5 bits; the first digit begins with two zero bits. */
static void ulid_encode(char text[MDL_ULID_LENGTH], const unsigned char bytes[ULID_BYTES])
{
    unsigned int bits = 0;
    int held = 2;
    int n = 0;

    for (int i = 0; i < ULID_BYTES; i++) {
        bits = (bits << 8 | bytes[i]) & 0xFFFF;
        for (held += 8; held >= 5; held -= 5) {
            text[n++] = alphabet[bits >> (held - 5) & 31];
        }
    }
}

const char *mdl_ulid(const char *prefix, apr_pool_t *p)
{
    apr_size_t length = strlen(prefix);
    char *text = apr_palloc(p, length + MDL_ULID_LENGTH + 1);
    apr_uint64_t millis = (apr_uint64_t)(apr_time_now() / 1000);
    unsigned char bytes[ULID_BYTES];

    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(millis >> (40 - 8 * i));
    }
    mdl_random(bytes + 6, sizeof bytes - 6);
    memcpy(text, prefix, length);
    ulid_encode(text + length, bytes);
    text[length + MDL_ULID_LENGTH] = '\0';
    return text;
}

int mdl_ulid_valid(const char *prefix, const char *text)
{
    apr_size_t length = strlen(prefix);

    if (strncmp(text, prefix, length) != 0) {
        return 0;
    }
    text += length;
    /* The first digit has three bits, so it is at most "7". */
    return strlen(text) == MDL_ULID_LENGTH && text[0] >= '0' && text[0] <= '7' &&
           strspn(text, alphabet) == MDL_ULID_LENGTH;
}
