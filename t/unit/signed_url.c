#include "t/unit/fixtures.h"

#include "core/download/signed_url.h"

#define PAGE "MDEyMzQ1Njc4OWFiY2RlZg"

static mdl_secret_t *secret;
static mdl_secret_t *other;

static int page_accepted(const char *token, apr_pool_t *p)
{
    return mdl_signed_url_page_id(secret, token, p) != NULL;
}

static int file_accepted(const char *token, apr_pool_t *p)
{
    mdl_signed_file_t file;

    return mdl_signed_url_file_read(secret, token, &file, p) == APR_SUCCESS && file.asset_id != 0;
}

/* The number of accepted tokens among those with one character changed. */
static int corruptions_accepted(const char *token, int (*accepted)(const char *, apr_pool_t *),
                                apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, token);
    apr_pool_t *scratch;
    int n = 0;

    apr_pool_create(&scratch, p);
    for (size_t i = 0; token[i] != '\0'; i++) {
        for (int c = 1; c < 256; c++) {
            copy[i] = (char)c;
            n += copy[i] != token[i] && accepted(copy, scratch);
        }
        copy[i] = token[i];
        apr_pool_clear(scratch);
    }
    apr_pool_destroy(scratch);
    return n;
}

static int others_accepted(const char *token, int (*accepted)(const char *, apr_pool_t *),
                           apr_pool_t *p)
{
    return accepted("", p) || accepted("x", p) || accepted(apr_pstrcat(p, token, "A", NULL), p) ||
           accepted(apr_pstrcat(p, token, "=", NULL), p) ||
           accepted(apr_pstrcat(p, token, "/", NULL), p) ||
           accepted(apr_pstrmemdup(p, token, strlen(token) - 1), p);
}

static void test_page(apr_pool_t *p)
{
    const char *id = mdl_base64url("0123456789abcdef", 16, p);
    const char *token = mdl_signed_url_page_token(secret, id, p);

    is_str(mdl_signed_url_page_id(secret, token, p), id, "a page's token gives its page id");
    is_str(mdl_signed_url_page_token(secret, id, p), token, "a page id always has the same token");
    is_int(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
           strlen(token), "a page's token needs no escapes in a URL");
    is_int(corruptions_accepted(token, page_accepted, p), 0,
           "a token with any one character changed is refused");
    ok(!others_accepted(token, page_accepted, p), "longer, shorter and empty tokens are refused");
    is_str(mdl_signed_url_page_id(other, token, p), NULL,
           "a token is refused under another secret");
    is_str(mdl_signed_url_page_token(secret, "not a page id", p), NULL,
           "an invalid page id has no token");
}

static int link_accepted(const char *token, apr_pool_t *p)
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

    ok(strncmp(url, "https://a.test/d/l/", 19) == 0, "a link's URL is below the public URL");
    is_int(mdl_signed_url_link_read(secret, token, &page_id, &link_id, p), APR_SUCCESS,
           "a link's token is read");
    is_str(page_id, id, "its page id is returned");
    is_int(link_id, 9007199254740991, "its link id is returned");
    is_str(mdl_signed_url_link(secret, "https://a.test/d", id, link_id, p), url,
           "a link always has the same URL");
    is_int(corruptions_accepted(token, link_accepted, p), 0,
           "a token with any one character changed is refused");
    ok(!others_accepted(token, link_accepted, p), "longer, shorter and empty tokens are refused");
    ok(!link_accepted(mdl_signed_url_page_token(secret, id, p), p),
       "a page's token is not accepted for a link");
    is_int(mdl_signed_url_link_read(other, token, &page_id, &link_id, p), APR_EINVAL,
           "a token is refused under another secret");
    is_str(mdl_signed_url_link(secret, "https://a.test", "no page id", 1, p), NULL,
           "an invalid page id has no link");
}

static void test_file(apr_pool_t *p)
{
    mdl_signed_file_t in = {.page_id = PAGE,
                            .assignment_id = APR_INT64_C(9007199254740991),
                            .asset_id = 2,
                            .expires_at = apr_time_from_sec(1900000000)};
    mdl_signed_file_t out = {0};
    const char *token = mdl_signed_url_file_token(secret, &in, p);
    const char *first = in.session;

    is_int(mdl_signed_url_file_read(secret, token, &out, p), APR_SUCCESS, "a file's token is read");
    is_str(out.session, first, "its session is returned");
    is_int(out.assignment_id, in.assignment_id, "its assignment is returned");
    is_int(out.asset_id, 2, "its asset is returned");
    is_int(out.expires_at, in.expires_at, "its end is returned");
    is_int(strlen(first), 22, "a session has 16 bytes");
    ok(mdl_signed_url_session_of(secret, first, PAGE, p),
       "the session is tied to the page that it was made for");
    ok(!mdl_signed_url_session_of(secret, first, "no" PAGE, p) &&
           !mdl_signed_url_session_of(other, first, PAGE, p) &&
           !mdl_signed_url_session_of(secret, "x", PAGE, p),
       "and to no other, nor under another secret");
    ok(strcmp(mdl_signed_url_file_token(secret, &in, p), token) != 0 &&
           strcmp(in.session, first) != 0,
       "each token has a separate session");
    is_int(corruptions_accepted(token, file_accepted, p), 0,
           "a token with any one character changed is refused");
    ok(!others_accepted(token, file_accepted, p), "longer, shorter and empty tokens are refused");
    is_int(mdl_signed_url_file_read(other, token, &out, p), APR_EINVAL,
           "a token is refused under another secret");
}

static int upload_accepted(const char *token, apr_pool_t *p)
{
    return mdl_signed_url_upload_id(secret, token, p) != NULL;
}

static void test_upload(apr_pool_t *p)
{
    const char *id = "upl_01m7y6c7rt2bv9x8e3qq0xdgdz";
    const char *url = mdl_signed_url_upload(secret, "https://files.test/u", id, p);
    const char *token = url + strlen("https://files.test/u/");

    is_int(strncmp(url, "https://files.test/u/", 21), 0,
           "the URL of an upload is below the upload URL");
    is_str(mdl_signed_url_upload_id(secret, token, p), id,
           "the upload's id is read from its token");
    is_int(corruptions_accepted(token, upload_accepted, p), 0,
           "a token with any one character changed is refused");
    ok(!others_accepted(token, upload_accepted, p), "longer, shorter and empty tokens are refused");
    is_str(mdl_signed_url_upload_id(other, token, p), NULL,
           "a token is refused under another secret");
}

static int archive_accepted(const char *token, apr_pool_t *p)
{
    mdl_signed_file_t archive;

    return mdl_signed_url_file_read(secret, token, &archive, p) == APR_SUCCESS &&
           archive.asset_id == 0;
}

static void test_archive(apr_pool_t *p)
{
    mdl_signed_file_t in = {
        .page_id = PAGE, .assignment_id = 7, .expires_at = apr_time_from_sec(19)};
    mdl_signed_file_t out = {.asset_id = 2};
    const char *url = mdl_signed_url_file(secret, "https://files.test/d", &in, "order-1.zip", p);
    const char *token = apr_pstrmemdup(p, url + 23, strcspn(url + 23, "/"));

    is_int(strncmp(url, "https://files.test/d/z/", 23), 0,
           "the URL of an archive is below the public URL");
    is_str(strrchr(url, '/'), "/order-1.zip", "the URL of an archive ends in its name");
    is_int(mdl_signed_url_file_read(secret, token, &out, p), APR_SUCCESS,
           "an archive's token is read");
    ok(out.assignment_id == 7 && out.expires_at == in.expires_at,
       "its assignment and end are returned");
    is_str(out.session, in.session, "its session is returned");
    is_int(out.asset_id, 0, "it has no asset");
    is_int(corruptions_accepted(token, archive_accepted, p), 0,
           "a token with any one character changed is refused");
    ok(!file_accepted(token, p), "an archive's token is not accepted for a file");
}

static int confirm_accepted(const char *token, apr_pool_t *p)
{
    mdl_signed_confirm_t confirm;

    return mdl_signed_url_confirm_read(secret, token, &confirm, p) == APR_SUCCESS;
}

static void test_confirm(apr_pool_t *p)
{
    const char *longest = apr_pstrcat(p, mdl_hex(apr_pcalloc(p, 121), 121, p), "@example.com",
                                      NULL);
    const char *addresses[] = {"a@b.test", "ab@b.test", "abc@b.test", longest};
    mdl_signed_confirm_t in = {.shop_id = 9007199254740991, .expires_at = apr_time_from_sec(77)};
    mdl_signed_confirm_t out;
    const char *url = NULL;

    for (int i = 0; i < 4; i++) {
        in.address = addresses[i];
        url = mdl_signed_url_confirm(secret, "https://a.test/d", &in, p);
        ok(strncmp(url, "https://a.test/d/c/", 19) == 0, "a confirmation's URL is public");
        is_int(mdl_signed_url_confirm_read(secret, url + 19, &out, p), APR_SUCCESS, "it is read");
        is_str(out.address, in.address, "with its address");
        is_int(out.shop_id, in.shop_id, "its shop");
        is_int(out.expires_at, in.expires_at, "and its end");
        ok(!others_accepted(url + 19, confirm_accepted, p),
           "longer, shorter and empty tokens are refused");
        is_int(mdl_signed_url_confirm_read(other, url + 19, &out, p), APR_EINVAL,
               "a token is refused under another secret");
    }
    is_int(corruptions_accepted(url + 19, confirm_accepted, p), 0,
           "a token with any one character changed is refused");
    in.address = apr_pstrcat(p, "a", longest, NULL);
    is_str(mdl_signed_url_confirm(secret, "https://a.test/d", &in, p), NULL,
           "an address that is too long has no URL");
}

static int help_accepted(const char *token, apr_pool_t *p)
{
    mdl_signed_help_t help;

    return mdl_signed_url_help_read(secret, token, &help, p) == APR_SUCCESS;
}

static void test_help(apr_pool_t *p)
{
    const char *longest = mdl_hex(apr_pcalloc(p, 127), 127, p);
    const char *users[] = {"a", "ada", "ada@b.test", longest};
    mdl_signed_help_t in = {.shop_id = 7, .request_id = 9007199254740991}, out;
    const char *url = NULL;

    for (int i = 0; i < 4; i++) {
        in.user = users[i];
        url = mdl_signed_url_help(secret, "https://a.test/d", &in, p);
        ok(strncmp(url, "https://a.test/d/h/", 19) == 0, "the URL to answer is public");
        is_int(mdl_signed_url_help_read(secret, url + 19, &out, p), APR_SUCCESS, "it is read");
        is_str(out.user, in.user, "with its member");
        is_int(out.shop_id, in.shop_id, "its shop");
        is_int(out.request_id, in.request_id, "and its request");
        ok(!others_accepted(url + 19, help_accepted, p),
           "longer, shorter and empty tokens are refused");
        is_int(mdl_signed_url_help_read(other, url + 19, &out, p), APR_EINVAL,
               "a token is refused under another secret");
        ok(!confirm_accepted(url + 19, p), "it is no confirmation");
    }
    is_int(corruptions_accepted(url + 19, help_accepted, p), 0,
           "a token with any one character changed is refused");
    in.user = apr_pstrcat(p, longest, "ab", NULL);
    is_str(mdl_signed_url_help(secret, "https://a.test/d", &in, p), NULL,
           "a name that is too long has no URL");
}

static void test_apart(apr_pool_t *p)
{
    mdl_signed_file_t in = {.page_id = PAGE, .assignment_id = 1, .asset_id = 2};
    const char *id = mdl_base64url("0123456789abcdef", 16, p);

    ok(!file_accepted(mdl_signed_url_page_token(secret, id, p), p),
       "a page's token is not accepted for a file");
    ok(!page_accepted(mdl_signed_url_file_token(secret, &in, p), p),
       "a file's token is not accepted for a page");
    ok(!archive_accepted(mdl_signed_url_file_token(secret, &in, p), p),
       "a file's token is not accepted for an archive");
    ok(!upload_accepted(mdl_signed_url_page_token(secret, id, p), p) &&
           !upload_accepted(mdl_signed_url_file_token(secret, &in, p), p),
       "the tokens of pages and files are not accepted for an upload");
    ok(!confirm_accepted(mdl_signed_url_file_token(secret, &in, p), p),
       "a file's token is not accepted for a confirmation");
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
    test_confirm(p);
    test_help(p);
    test_apart(p);
    return tap_end(p);
}
