#include "base/http/sign.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "base/crypto.h"

#define ALGORITHM   "AWS4-HMAC-SHA256"
#define DATE_LENGTH 8 /* of x-amz-date's "20130524T000000Z" */

const char *mdl_sign_date(apr_time_t when, apr_pool_t *p)
{
    apr_time_exp_t utc;

    apr_time_exp_gmt(&utc, when);
    return apr_psprintf(p, "%04d%02d%02dT%02d%02d%02dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                        utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

/* --- encoding --- */

static int is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static const char *sign_encode(const char *text, char kept, apr_pool_t *p)
{
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = apr_palloc(p, 3 * strlen(text) + 1);
    char *to = encoded;

    for (; *text != '\0'; text++) {
        if (is_unreserved(*text) || *text == kept) {
            *to++ = *text;
        } else {
            *to++ = '%';
            *to++ = digits[(unsigned char)*text >> 4];
            *to++ = digits[(unsigned char)*text & 15];
        }
    }
    *to = '\0';
    return encoded;
}

const char *mdl_sign_encode_path(const char *path, apr_pool_t *p)
{
    return sign_encode(path, '/', p);
}

static int pair_compare(const void *one, const void *other)
{
    const apr_table_entry_t *a = one, *b = other;
    int order = strcmp(a->key, b->key);

    return order != 0 ? order : strcmp(a->val, b->val);
}

/* The pairs of a table in the order of their bytes, in an array of the caller's own. */
static apr_array_header_t *pairs_sorted(const apr_table_t *table, int encoded, apr_pool_t *p)
{
    apr_array_header_t *pairs = apr_array_copy(p, apr_table_elts(table));

    for (int i = 0; encoded && i < pairs->nelts; i++) {
        apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);

        pair->key = (char *)sign_encode(pair->key, '\0', p);
        pair->val = (char *)sign_encode(pair->val, '\0', p);
    }
    qsort(pairs->elts, (size_t)pairs->nelts, sizeof(apr_table_entry_t), pair_compare);
    return pairs;
}

const char *mdl_sign_encode_query(const apr_table_t *query, apr_pool_t *p)
{
    apr_array_header_t *pairs, *texts;

    if (query == NULL) {
        return "";
    }
    /* Sorted once they are encoded: that is another order. */
    pairs = pairs_sorted(query, 1, p);
    texts = apr_array_make(p, pairs->nelts, sizeof(const char *));
    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);

        APR_ARRAY_PUSH(texts, const char *) = apr_pstrcat(p, pair->key, "=", pair->val, NULL);
    }
    return apr_array_pstrcat(p, texts, '&');
}

/* --- signing --- */

/* What is signed of the headers: their lines, and *names of them all. */
static const char *canonical_headers(const apr_table_t *headers, const char **names, apr_pool_t *p)
{
    apr_array_header_t *pairs = pairs_sorted(headers, 0, p);
    apr_array_header_t *keys = apr_array_make(p, pairs->nelts, sizeof(const char *));
    apr_array_header_t *lines = apr_array_make(p, pairs->nelts, sizeof(const char *));

    for (int i = 0; i < pairs->nelts; i++) {
        const apr_table_entry_t *pair = &APR_ARRAY_IDX(pairs, i, apr_table_entry_t);

        APR_ARRAY_PUSH(keys, const char *) = pair->key;
        APR_ARRAY_PUSH(lines, const char *) = apr_pstrcat(p, pair->key, ":", pair->val, "\n", NULL);
    }
    *names = apr_array_pstrcat(p, keys, ';');
    return apr_array_pstrcat(p, lines, '\0');
}

static const char *credential_scope(const mdl_sign_credentials_t *credentials, const char *date,
                                    apr_pool_t *p)
{
    return apr_psprintf(p, "%.*s/%s/%s/aws4_request", DATE_LENGTH, date, credentials->region,
                        credentials->service);
}

/* The signature of a canonical request, by a key that is derived for this day. */
static const char *sign(const mdl_sign_credentials_t *credentials, const char *canonical,
                        const char *date, apr_pool_t *p)
{
    const char *steps[] = {apr_pstrmemdup(p, date, DATE_LENGTH), credentials->region,
                           credentials->service, "aws4_request", NULL};
    const char *first = apr_pstrcat(p, "AWS4", credentials->secret_key, NULL);
    unsigned char digest[MDL_SHA256_LENGTH], key[MDL_SHA256_LENGTH];

    mdl_sha256(canonical, strlen(canonical), digest);
    steps[4] = apr_pstrcat(p, ALGORITHM "\n", date, "\n", credential_scope(credentials, date, p),
                           "\n", mdl_hex(digest, sizeof digest, p), NULL);
    mdl_hmac_sha256(first, strlen(first), steps[0], strlen(steps[0]), key);
    for (int i = 1; i < 5; i++) {
        unsigned char next[MDL_SHA256_LENGTH];

        mdl_hmac_sha256(key, sizeof key, steps[i], strlen(steps[i]), next);
        memcpy(key, next, sizeof key);
    }
    return mdl_hex(key, sizeof key, p);
}

const char *mdl_sign_authorization(const mdl_sign_credentials_t *credentials,
                                   const mdl_sign_request_t *request, apr_pool_t *p)
{
    const char *date = apr_table_get(request->headers, "x-amz-date");
    const char *names;
    const char *lines = canonical_headers(request->headers, &names, p);
    const char *canonical = apr_pstrcat(p, request->method, "\n",
                                        mdl_sign_encode_path(request->path, p), "\n",
                                        mdl_sign_encode_query(request->query, p), "\n", lines, "\n",
                                        names, "\n", request->body_sha256, NULL);

    return apr_pstrcat(p, ALGORITHM " Credential=", credentials->access_key, "/",
                       credential_scope(credentials, date, p), ", SignedHeaders=", names,
                       ", Signature=", sign(credentials, canonical, date, p), NULL);
}

const char *mdl_sign_query(const mdl_sign_credentials_t *credentials, const char *host,
                           const char *path, const apr_table_t *query, apr_time_t when, int seconds,
                           apr_pool_t *p)
{
    const char *date = mdl_sign_date(when, p);
    apr_table_t *all = query != NULL ? apr_table_copy(p, query) : apr_table_make(p, 8);
    const char *text, *canonical;

    apr_table_setn(all, "X-Amz-Algorithm", ALGORITHM);
    apr_table_setn(
        all, "X-Amz-Credential",
        apr_pstrcat(p, credentials->access_key, "/", credential_scope(credentials, date, p), NULL));
    apr_table_setn(all, "X-Amz-Date", date);
    apr_table_setn(all, "X-Amz-Expires", apr_itoa(p, seconds));
    apr_table_setn(all, "X-Amz-SignedHeaders", "host");
    if (credentials->session_token != NULL) {
        apr_table_setn(all, "X-Amz-Security-Token", credentials->session_token);
    }
    text = mdl_sign_encode_query(all, p);
    canonical = apr_pstrcat(p, "GET\n", mdl_sign_encode_path(path, p), "\n", text, "\nhost:", host,
                            "\n\nhost\nUNSIGNED-PAYLOAD", NULL);
    return apr_pstrcat(p, text, "&X-Amz-Signature=", sign(credentials, canonical, date, p), NULL);
}
