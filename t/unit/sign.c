/* Signature Version 4, by the vectors that AWS has published. */
#include <stdio.h>
#include <stdlib.h>

#include <apr_strings.h>

#include "base/crypto.h"
#include "base/http/sign.h"
#include "t/unit/tap.h"

static apr_pool_t *p;

/* Of the Amazon S3 API Reference, "Signature Calculations for the Authorization Header". */
static const mdl_sign_credentials_t s3 = {
    .region = "us-east-1",
    .service = "s3",
    .access_key = "AKIAIOSFODNN7EXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

/* Of the test suite of Signature Version 4. */
static const mdl_sign_credentials_t suite = {
    .region = "us-east-1",
    .service = "service",
    .access_key = "AKIDEXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
};

/* A table of names and values, up to NULL. */
static apr_table_t *table(const char *const *pairs)
{
    apr_table_t *made = apr_table_make(p, 8);

    for (; *pairs != NULL; pairs += 2) {
        apr_table_addn(made, pairs[0], pairs[1]);
    }
    return made;
}

#define PAIRS(...) table((const char *const[]){__VA_ARGS__, NULL})

static void is_signed(const mdl_sign_credentials_t *credentials, mdl_sign_request_t request,
                      const char *signature, const char *what)
{
    const char *value = mdl_sign_authorization(credentials, &request, p);
    const char *found = strstr(value, "Signature=");

    is_str(found != NULL ? found + 10 : value, signature, what);
}

static void examples_of_s3_are_signed(void)
{
    const char *host = "examplebucket.s3.amazonaws.com", *date = "20130524T000000Z";
    const char *welcome = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const mdl_sign_request_t get = {
        .method = "GET",
        .path = "/test.txt",
        .headers = PAIRS("host", host, "range", "bytes=0-9", "x-amz-content-sha256",
                         MDL_SIGN_NO_BODY, "x-amz-date", date),
        .body_sha256 = MDL_SIGN_NO_BODY,
    };
    apr_table_t *plain = PAIRS("x-amz-date", date, "host", host, "x-amz-content-sha256",
                               MDL_SIGN_NO_BODY);

    is_str(mdl_sign_authorization(&s3, &get, p),
           "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
           "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature="
           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
           "GET of an object");
    is_signed(&s3,
              (mdl_sign_request_t){.method = "PUT",
                                   .path = "/test$file.text",
                                   .headers = PAIRS("date", "Fri, 24 May 2013 00:00:00 GMT", "host",
                                                    host, "x-amz-date", date, "x-amz-storage-class",
                                                    "REDUCED_REDUNDANCY", "x-amz-content-sha256",
                                                    welcome),
                                   .body_sha256 = welcome},
              "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
              "PUT of a key with a dollar sign");
    is_signed(&s3,
              (mdl_sign_request_t){.method = "GET",
                                   .path = "/",
                                   .query = PAIRS("lifecycle", ""),
                                   .headers = plain,
                                   .body_sha256 = MDL_SIGN_NO_BODY},
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
              "a parameter without a value");
    is_signed(&s3,
              (mdl_sign_request_t){.method = "GET",
                                   .path = "/",
                                   .query = PAIRS("prefix", "J", "max-keys", "2"),
                                   .headers = plain,
                                   .body_sha256 = MDL_SIGN_NO_BODY},
              "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
              "parameters are signed in their order, whatever the caller's");
    is_str(mdl_sign_query(&s3, host, "/test.txt", NULL, apr_time_from_sec(1369353600), 86400, p),
           "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
           "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
           "&X-Amz-SignedHeaders=host&X-Amz-Signature="
           "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
           "a URL that is valid for a day");
}

static const struct {
    const char *name, *method, *path;
    const char *query[5], *headers[5];
    const char *body, *signature;
} vectors[] = {
    {"get-vanilla",
     "GET",
     "/",
     {NULL},
     {NULL},
     "",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/",
     {"Param1", "value1"},
     {NULL},
     "",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     {"Param2", "value2", "Param1", "value1"},
     {NULL},
     "",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-order-value",
     "GET",
     "/",
     {"Param1", "value2", "Param1", "value1"},
     {NULL},
     "",
     "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
    {"get-vanilla-utf8-query",
     "GET",
     "/",
     {"\xe1\x88\xb4", "bar"},
     {NULL},
     "",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-unreserved",
     "GET",
     "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
     {NULL},
     {NULL},
     "",
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-utf8",
     "GET",
     "/\xe1\x88\xb4",
     {NULL},
     {NULL},
     "",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-space",
     "GET",
     "/example space/",
     {NULL},
     {NULL},
     "",
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"post-vanilla",
     "POST",
     "/",
     {NULL},
     {NULL},
     "",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-header-key-sort",
     "POST",
     "/",
     {NULL},
     {"my-header1", "value1"},
     "",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-x-www-form-urlencoded",
     "POST",
     "/",
     {NULL},
     {"content-type", "application/x-www-form-urlencoded"},
     "Param1=value1",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
};

static void vectors_of_the_suite_are_signed(void)
{
    for (apr_size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        apr_table_t *headers = table(vectors[i].headers);
        unsigned char digest[MDL_SHA256_LENGTH];

        apr_table_setn(headers, "x-amz-date", "20150830T123600Z");
        apr_table_setn(headers, "host", "example.amazonaws.com");
        mdl_sha256(vectors[i].body, strlen(vectors[i].body), digest);
        is_signed(&suite,
                  (mdl_sign_request_t){.method = vectors[i].method,
                                       .path = vectors[i].path,
                                       .query = table(vectors[i].query),
                                       .headers = headers,
                                       .body_sha256 = mdl_hex(digest, sizeof digest, p)},
                  vectors[i].signature, vectors[i].name);
    }
}

static void temporary_credentials_have_a_token(void)
{
    mdl_sign_credentials_t temporary = s3;
    const char *query;

    is_signed(&suite,
              (mdl_sign_request_t){
                  .method = "POST",
                  .path = "/",
                  .headers = PAIRS("host", "example.amazonaws.com", "x-amz-date",
                                   "20150830T123600Z", "x-amz-security-token",
                                   "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4F"
                                   "ZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/q"
                                   "kPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYw"
                                   "T7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xV"
                                   "qr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKT"
                                   "r4rvx3iSIlTJabIQwj2ICCR/oLxBA=="),
                  .body_sha256 = MDL_SIGN_NO_BODY},
              "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
              "post-sts-header-before: a token is a header like any other");
    temporary.session_token = "a/token+=";
    query = mdl_sign_query(&temporary, "h", "/k", PAIRS("response-content-type", "a/b"), 0, 60, p);
    ok(strstr(query, "&X-Amz-Security-Token=a%2Ftoken%2B%3D&X-Amz-SignedHeaders=host"
                     "&response-content-type=a%2Fb&X-Amz-Signature=") != NULL,
       "in a URL it is a parameter, in the order of all");
    ok(strcmp(query,
              mdl_sign_query(&s3, "h", "/k", PAIRS("response-content-type", "a/b"), 0, 60, p)) != 0,
       "which changes the URL");
}

static void keys_are_encoded(void)
{
    is_str(mdl_sign_encode_path("/b/ a+b%=&?#*'()!~", p),
           "/b/%20a%2Bb%25%3D%26%3F%23%2A%27%28%29%21~", "all that a path or query may not have");
    is_str(mdl_sign_encode_path("/\xc3\xa4/\x01\x7f", p), "/%C3%A4/%01%7F",
           "bytes of UTF-8 and control characters");
    is_str(mdl_sign_encode_query(NULL, p), "", "no query");
    is_str(mdl_sign_encode_query(PAIRS("a/b", "c d/e", "uploads", "", "A", "z"), p),
           "A=z&a%2Fb=c%20d%2Fe&uploads=", "a slash in a query, and capitals before small letters");
    is_str(mdl_sign_encode_query(PAIRS("p+", "1", "p", "2"), p), "p=2&p%2B=1",
           "a name that begins another");
    is_str(mdl_sign_date(apr_time_from_sec(1440938160), p), "20150830T123600Z", "a date");
}

int main(void)
{
    p = tap_begin();
    examples_of_s3_are_signed();
    vectors_of_the_suite_are_signed();
    temporary_credentials_have_a_token();
    keys_are_encoded();
    return tap_end(p);
}
