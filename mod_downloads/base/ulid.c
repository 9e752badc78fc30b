#include "base/ulid.h"

#include <string.h>

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

/* The id of a time, with bytes for all but the time. */
static const char *ulid_of(const char *prefix, apr_time_t time, unsigned char bytes[ULID_BYTES],
                           apr_pool_t *p)
{
    apr_size_t length = strlen(prefix);
    char *text = apr_palloc(p, length + MDL_ULID_LENGTH + 1);
    apr_uint64_t millis = (apr_uint64_t)(time / 1000);

    for (int i = 0; i < 6; i++) {
        bytes[i] = (unsigned char)(millis >> (40 - 8 * i));
    }
    memcpy(text, prefix, length);
    ulid_encode(text + length, bytes);
    text[length + MDL_ULID_LENGTH] = '\0';
    return text;
}

const char *mdl_ulid(const char *prefix, apr_pool_t *p)
{
    unsigned char bytes[ULID_BYTES];

    mdl_random(bytes, sizeof bytes);
    return ulid_of(prefix, apr_time_now(), bytes, p);
}

const char *mdl_ulid_first(const char *prefix, apr_time_t time, apr_pool_t *p)
{
    unsigned char bytes[ULID_BYTES] = {0};

    return ulid_of(prefix, time, bytes, p);
}

apr_time_t mdl_ulid_time(const char *prefix, const char *text)
{
    apr_time_t millis = 0;

    for (int i = 0; mdl_ulid_valid(prefix, text) && i < 10; i++) {
        millis = millis * 32 + (strchr(alphabet, text[strlen(prefix) + (apr_size_t)i]) - alphabet);
    }
    return millis * 1000;
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
