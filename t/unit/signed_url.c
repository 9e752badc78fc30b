#include "t/unit/fixtures.h"

#include "core/download/signed_url.h"

static mdl_secret_t *secret;
static mdl_secret_t *other;

static int page_taken(const char *token, apr_pool_t *p)
{
    return mdl_signed_url_page_id(secret, token, p) != NULL;
}

static int file_taken(const char *token, apr_pool_t *p)
{
    mdl_signed_file_t file;

    return mdl_signed_url_file_read(secret, token, &file, p) == APR_SUCCESS && file.asset_id != 0;
}

/* How many of the tokens with one bit or one character changed are accepted. */
static int corruptions_taken(const char *token, int (*taken)(const char *, apr_pool_t *),
                             apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, token);
    apr_pool_t *scratch;
    int n = 0;

    apr_pool_create(&scratch, p);
    for (size_t i = 0; token[i] != '\0'; i++) {
        for (int c = 1; c < 256; c++) {
            copy[i] = (char)c;
            n += copy[i] != token[i] && taken(copy, scratch);
        }
        copy[i] = token[i];
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return n;
}

static int others_taken(const char *token, int (*taken)(const char *, apr_pool_t *), apr_pool_t *p)
{
    return taken("", p) || taken("x", p) || taken(apr_pstrcat(p, token, "A", NULL), p) ||
           taken(apr_pstrcat(p, token, "=", NULL), p) ||
           taken(apr_pstrcat(p, token, "/", NULL), p) ||
           taken(apr_pstrmemdup(p, token, strlen(token) - 1), p);
}

static void test_page(apr_pool_t *p)
{
    const char *id = mdl_base64url("0123456789abcdef", 16, p);
    const char *token = mdl_signed_url_page_token(secret, id, p);

    is_str(mdl_signed_url_page_id(secret, token, p), id, "a page's token gives its page id");
    is_str(mdl_signed_url_page_token(secret, id, p), token, "and is always the same");
    is_int(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
           strlen(token), "it needs no escapes in a URL");
    is_int(corruptions_taken(token, page_taken, p), 0,
           "with any one character changed it is refused");
    ok(!others_taken(token, page_taken, p), "longer, shorter and empty ones are refused");
    is_str(mdl_signed_url_page_id(other, token, p), NULL, "under another secret it is refused");
    is_str(mdl_signed_url_page_token(secret, "not a page id", p), NULL, "no page id, no token");
}

static int link_taken(const char *token, apr_pool_t *p)
{
    const char *page_id;
    apr_int64_t link_id;

    return mdl_signed_url_link_read(secret, token, &page_id, &link_id, p) == APR_SUCCESS;
}

static void test_link(apr_pool_t *p)
{
    const char *id = mdl_base64url("0123456789abcdef", 16, p);
    const char *url = mdl_signed_url_link(secret, "https://a.test/d", id, 9007199254740991, p);
    const char *token = url + strlen("https://a.test/d/l/");
    const char *page_id = NULL;
    apr_int64_t link_id = 0;

    ok(strncmp(url, "https://a.test/d/l/", 19) == 0, "the way to a link is below the public URL");
    is_int(mdl_signed_url_link_read(secret, token, &page_id, &link_id, p), APR_SUCCESS,
           "it is read");
    is_str(page_id, id, "with the page id");
    is_int(link_id, 9007199254740991, "and the link");
    is_str(mdl_signed_url_link(secret, "https://a.test/d", id, link_id, p), url,
           "it is always the same");
    is_int(corruptions_taken(token, link_taken, p), 0,
           "with any one character changed it is refused");
    ok(!others_taken(token, link_taken, p), "longer, shorter and empty ones are refused");
    ok(!link_taken(mdl_signed_url_page_token(secret, id, p), p), "a page's token is invalid");
    is_int(mdl_signed_url_link_read(other, token, &page_id, &link_id, p), APR_EINVAL,
           "under another secret it is refused");
    is_str(mdl_signed_url_link(secret, "https://a.test", "no page id", 1, p), NULL,
           "no page id, no link");
}

static void test_file(apr_pool_t *p)
{
    mdl_signed_file_t in = {.assignment_id = APR_INT64_C(9007199254740991),
                            .asset_id = 2,
                            .expires_at = apr_time_from_sec(1900000000)};
    mdl_signed_file_t out = {0};
    const char *token = mdl_signed_url_file_token(secret, &in, p);
    const char *first = in.session;

    is_int(mdl_signed_url_file_read(secret, token, &out, p), APR_SUCCESS,
           "a file's token can be read");
    is_str(out.session, first, "it gives its session");
    is_int(out.assignment_id, in.assignment_id, "its assignment");
    is_int(out.asset_id, 2, "its asset");
    is_int(out.expires_at, in.expires_at, "and its end");
    is_int(strlen(first), 22, "a session is 16 bytes");
    ok(strcmp(mdl_signed_url_file_token(secret, &in, p), token) != 0 &&
           strcmp(in.session, first) != 0,
       "each token has a session of its own");
    is_int(corruptions_taken(token, file_taken, p), 0,
           "with any one character changed it is refused");
    ok(!others_taken(token, file_taken, p), "longer, shorter and empty ones are refused");
    is_int(mdl_signed_url_file_read(other, token, &out, p), APR_EINVAL,
           "under another secret it is refused");
}

static int upload_taken(const char *token, apr_pool_t *p)
{
    return mdl_signed_url_upload_id(secret, token, p) != NULL;
}

static void test_upload(apr_pool_t *p)
{
    const char *id = "upl_01m7y6c7rt2bv9x8e3qq0xdgdz";
    const char *url = mdl_signed_url_upload(secret, "https://files.test/u", id, p);
    const char *token = url + strlen("https://files.test/u/");

    is_int(strncmp(url, "https://files.test/u/", 21), 0, "an upload's address is below the URL");
    is_str(mdl_signed_url_upload_id(secret, token, p), id, "its token gives the upload's id");
    is_int(corruptions_taken(token, upload_taken, p), 0,
           "with any one character changed it is refused");
    ok(!others_taken(token, upload_taken, p), "longer, shorter and empty ones are refused");
    is_str(mdl_signed_url_upload_id(other, token, p), NULL, "under another secret it is refused");
}

static int archive_taken(const char *token, apr_pool_t *p)
{
    mdl_signed_file_t archive;

    return mdl_signed_url_file_read(secret, token, &archive, p) == APR_SUCCESS &&
           archive.asset_id == 0;
}

static void test_archive(apr_pool_t *p)
{
    mdl_signed_file_t in = {.assignment_id = 7, .expires_at = apr_time_from_sec(19)};
    mdl_signed_file_t out = {.asset_id = 2};
    const char *url = mdl_signed_url_file(secret, "https://files.test/d", &in, "order-1.zip", p);
    const char *token = apr_pstrmemdup(p, url + 23, strcspn(url + 23, "/"));

    is_int(strncmp(url, "https://files.test/d/z/", 23), 0, "an archive has an address of its own");
    is_str(strrchr(url, '/'), "/order-1.zip", "with its name");
    is_int(mdl_signed_url_file_read(secret, token, &out, p), APR_SUCCESS, "its token can be read");
    ok(out.assignment_id == 7 && out.expires_at == in.expires_at, "it gives assignment and end");
    is_str(out.session, in.session, "its session");
    is_int(out.asset_id, 0, "and no asset");
    is_int(corruptions_taken(token, archive_taken, p), 0,
           "with any one character changed it is refused");
    ok(!file_taken(token, p), "it is no file's");
}

static void test_apart(apr_pool_t *p)
{
    mdl_signed_file_t in = {.assignment_id = 1, .asset_id = 2};
    const char *id = mdl_base64url("0123456789abcdef", 16, p);

    ok(!file_taken(mdl_signed_url_page_token(secret, id, p), p), "a page's token is no file's");
    ok(!page_taken(mdl_signed_url_file_token(secret, &in, p), p), "and a file's is no page's");
    ok(!archive_taken(mdl_signed_url_file_token(secret, &in, p), p), "nor an archive's");
    ok(!upload_taken(mdl_signed_url_page_token(secret, id, p), p) &&
           !upload_taken(mdl_signed_url_file_token(secret, &in, p), p),
       "neither is an upload's");
}

int main(void)
{
    apr_pool_t *p = tap_begin();

    secret = make_secret('s', p);
    other = make_secret('o', p);
    test_page(p);
    test_link(p);
    test_file(p);
    test_upload(p);
    test_archive(p);
    test_apart(p);
    return tap_end(p);
}
