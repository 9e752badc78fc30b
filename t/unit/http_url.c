/* Which URLs may be fetched: the checks before a name is resolved. */
#include <string.h>

#include <apr_strings.h>

#include "base/http/client.h"
#include "base/http/url.h"
#include "t/unit/tap.h"

#define GOOD    MDL_HTTP_OK
#define FOREIGN MDL_HTTP_HOST_NOT_ALLOWED
#define BAD     MDL_HTTP_URL_INVALID

typedef struct {
    const char *url;
    mdl_http_result_t result;
    const char *host;
    const char *filename;
} row_t;

/* The policy allows https only, port 8443, and the hosts files.example.com, *.cdn.example.net,
   127.0.0.1 and [::1]. */
static const row_t strict[] = {
    {"https://files.example.com/a.zip", GOOD, "files.example.com", "a.zip"},
    {"https://files.example.com/dir/a%20b.zip?x=1#y", GOOD, "files.example.com", "a b.zip"},
    {"https://files.example.com", GOOD, "files.example.com", NULL},
    {"https://files.example.com/", GOOD, "files.example.com", NULL},
    {"https://files.example.com/dir/", GOOD, "files.example.com", NULL},
    {"https://files.example.com?q=/a.zip", GOOD, "files.example.com", NULL},
    {"https://D\xc3\xa9j\xc3\xa0.cdn.example.net/a", GOOD, "xn--dj-kia8a.cdn.example.net", "a"},
    {"https://\xef\xbd\x86iles.example.com/a", GOOD, "files.example.com", "a"},
    {"https://files.example.com/%C3%A9.pdf", GOOD, "files.example.com", "\xc3\xa9.pdf"},
    {"https://files.example.com/%F0%9F%8E%B5.mp3", GOOD, "files.example.com",
     "\xf0\x9f\x8e\xb5.mp3"},
    {"https://files.example.com/%E9.pdf", GOOD, "files.example.com", NULL},
    {"https://files.example.com/%C0%AF", GOOD, "files.example.com", NULL},
    {"https://files.example.com/%C3", GOOD, "files.example.com", NULL},
    {"https://files.example.com/%ED%A0%80", GOOD, "files.example.com", NULL},
    {"https://files.example.com/%E0%80%AF", GOOD, "files.example.com", NULL},
    {"https://files.example.com/%F4%90%80%80", GOOD, "files.example.com", NULL},
    {"https://files.example.com/a%0d%0ab", GOOD, "files.example.com", NULL},
    {"https://files.example.com/a%00b", GOOD, "files.example.com", NULL},
    {"https://files.example.com/a%7Fb", GOOD, "files.example.com", NULL},
    {"https://files.example.com/a%C2%85b", GOOD, "files.example.com", NULL},
    {"https://files.example.com/..%2f..%2fetc%2fpasswd", GOOD, "files.example.com", NULL},
    {"https://files.example.com/a%5Cb", GOOD, "files.example.com", NULL},
    {"https://files.example.com/x/%2e%2e", GOOD, "files.example.com", NULL},
    {"https://files.example.com/x/../b.zip", GOOD, "files.example.com", "b.zip"},
    {"https://files.example.com/100%", GOOD, "files.example.com", "100%"},
    {"HTTPS://FILES.Example.COM/A.zip", GOOD, "files.example.com", "A.zip"},
    {"https://%66iles.example.com/a", GOOD, "files.example.com", "a"},
    {"https://files.example.com:443/a", GOOD, "files.example.com", "a"},
    {"https://files.example.com:/a", GOOD, "files.example.com", "a"},
    {"https://files.example.com:8443/a", GOOD, "files.example.com", "a"},
    {"https://a.cdn.example.net/a", GOOD, "a.cdn.example.net", "a"},
    {"https://a.b.cdn.example.net/a", GOOD, "a.b.cdn.example.net", "a"},

    {"https://files.example.com:80/a", FOREIGN, NULL, NULL},
    {"https://files.example.com:8444/a", FOREIGN, NULL, NULL},
    {"https://files.example.com:22/a", FOREIGN, NULL, NULL},
    {"https://cdn.example.net/a", FOREIGN, NULL, NULL},
    {"https://evilcdn.example.net/a", FOREIGN, NULL, NULL},
    {"https://a.cdn.example.net.evil.example/a", FOREIGN, NULL, NULL},
    {"https://example.com/a", FOREIGN, NULL, NULL},
    {"https://xfiles.example.com/a", FOREIGN, NULL, NULL},
    {"https://files.example.com.evil.example/a", FOREIGN, NULL, NULL},
    {"https://evil.example/files.example.com", FOREIGN, NULL, NULL},
    {"https://evil.example?@files.example.com/a", FOREIGN, NULL, NULL},
    {"https://evil.example#@files.example.com/a", FOREIGN, NULL, NULL},
    {"https://localhost/a", FOREIGN, NULL, NULL},
    {"https://f\xc3\xadles.example.com/a", FOREIGN, NULL, NULL},
    {"http://files.example.com/a", FOREIGN, NULL, NULL},
    {"ftp://files.example.com/a", FOREIGN, NULL, NULL},
    {"gopher://files.example.com/a", FOREIGN, NULL, NULL},
    {"dict://files.example.com/a", FOREIGN, NULL, NULL},
    {"ldap://files.example.com/a", FOREIGN, NULL, NULL},
    {"foo://files.example.com/a", FOREIGN, NULL, NULL},

    {"", BAD, NULL, NULL},
    {"https://-a.cdn.example.net/a", BAD, NULL, NULL},
    {"https://a-.cdn.example.net/a", BAD, NULL, NULL},
    {"files.example.com/a", BAD, NULL, NULL},
    {"//files.example.com/a", BAD, NULL, NULL},
    {"/a", BAD, NULL, NULL},
    {"https:", BAD, NULL, NULL},
    {"https://", BAD, NULL, NULL},
    {"file:///etc/passwd", BAD, NULL, NULL},
    {"https://user@files.example.com/a", BAD, NULL, NULL},
    {"https://user:secret@files.example.com/a", BAD, NULL, NULL},
    {"https://:@files.example.com/a", BAD, NULL, NULL},
    {"https://@files.example.com/a", BAD, NULL, NULL},
    {"https://files.example.com\\@evil.example/a", BAD, NULL, NULL},
    {"https://files.example.com%2fevil.example/a", BAD, NULL, NULL},
    {"https://files.example.com%00.evil.example/a", BAD, NULL, NULL},
    {"https:\\\\files.example.com\\a", BAD, NULL, NULL},
    {" https://files.example.com/a", BAD, NULL, NULL},
    {"https://files.example.com/a b", BAD, NULL, NULL},
    {"https://files.example.com/a\r\nHost: evil.example", BAD, NULL, NULL},
    {"https://files.example.com/a\tb", BAD, NULL, NULL},
    {"https://files.example.com./a", BAD, NULL, NULL},
    {"https://files..example.com/a", BAD, NULL, NULL},
    {"https://.files.example.com/a", BAD, NULL, NULL},
    {"https://files,example.com/a", BAD, NULL, NULL},
    {"https://files.example.com;a/", BAD, NULL, NULL},
    {"https://*.cdn.example.net/a", BAD, NULL, NULL},
    {"https://files.example.com:0/a", BAD, NULL, NULL},
    {"https://files.example.com:65536/a", BAD, NULL, NULL},
    {"https://files.example.com:-1/a", BAD, NULL, NULL},
    {"https://files.example.com:443:443/a", BAD, NULL, NULL},
    {"https://files.example.com/\xc3\xa9.pdf", BAD, NULL, NULL},
    {"https://files.example.com/a?\xc3\xa9", BAD, NULL, NULL},
    {"https://f\xc3les.example.com/a", BAD, NULL, NULL},
    {"https://f\xef\xbc\x8fles.example.com/a", BAD, NULL, NULL},
    {"https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/a", BAD, NULL, NULL},
    {"https://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/a", BAD, NULL, NULL},
    {"https://127\xe3\x80\x82"
     "0\xe3\x80\x82"
     "0\xe3\x80\x82"
     "1/a",
     BAD, NULL, NULL},
    {"https://%E2%91%A0.0.0.1/a", BAD, NULL, NULL},
    {"https://127.0.0.1/a", BAD, NULL, NULL},
    {"https://127.0.0.1./a", BAD, NULL, NULL},
    {"https://127.1/a", BAD, NULL, NULL},
    {"https://127.0.1/a", BAD, NULL, NULL},
    {"https://127.000.000.001/a", BAD, NULL, NULL},
    {"https://0177.0.0.1/a", BAD, NULL, NULL},
    {"https://0x7f.1/a", BAD, NULL, NULL},
    {"https://0x7f.0x0.0x0.0x1/a", BAD, NULL, NULL},
    {"https://0x7f000001/a", BAD, NULL, NULL},
    {"https://0X7F000001/a", BAD, NULL, NULL},
    {"https://017700000001/a", BAD, NULL, NULL},
    {"https://2130706433/a", BAD, NULL, NULL},
    {"https://4294967297/a", BAD, NULL, NULL},
    {"https://0/a", BAD, NULL, NULL},
    {"https://0x/a", BAD, NULL, NULL},
    {"https://1.2.3.4.5/a", BAD, NULL, NULL},
    {"https://256.0.0.1/a", BAD, NULL, NULL},
    {"https://a.cdn.example.net.1/a", BAD, NULL, NULL},
    {"https://%31%32%37.0.0.1/a", BAD, NULL, NULL},
    {"https://[::1]/a", BAD, NULL, NULL},
    {"https://[::ffff:127.0.0.1]/a", BAD, NULL, NULL},
    {"https://[2606:4700::1111]/a", BAD, NULL, NULL},
    {"https://[fe80::1%25eth0]/a", BAD, NULL, NULL},
    {"https://[127.0.0.1]/a", BAD, NULL, NULL},
    {"https://[::1/a", BAD, NULL, NULL}};

/* The policy allows http and https, any port, and the same hosts. */
static const row_t loose[] = {{"http://files.example.com/a", GOOD, "files.example.com", "a"},
                              {"http://files.example.com:81/a", GOOD, "files.example.com", "a"},
                              {"http://files.example.com:65535/a", GOOD, "files.example.com", "a"},
                              {"https://files.example.com:80/a", GOOD, "files.example.com", "a"},
                              {"http:/files.example.com/a", GOOD, "files.example.com", "a"},
                              {"http:///files.example.com/a", GOOD, "files.example.com", "a"},
                              {"http://files.example.com:0/a", BAD, NULL, NULL},
                              {"http://evil.example:81/a", FOREIGN, NULL, NULL},
                              {"http://127.0.0.1:8080/a", BAD, NULL, NULL},
                              {"ftp://files.example.com/a", FOREIGN, NULL, NULL}};

static const char *readable(const char *text, apr_pool_t *p)
{
    char *copy = apr_pstrdup(p, text);

    for (char *c = copy; *c != '\0'; c++) {
        *c = (char)((unsigned char)*c < ' ' || *c == '#' ? '?' : *c);
    }
    return copy;
}

static void check_all(const mdl_http_policy_t *policy, const row_t *rows, size_t count,
                      apr_pool_t *p)
{
    static const char *const results[] = {"accepted", "not allowed", "invalid"};

    for (size_t i = 0; i < count; i++) {
        const char *host = "stale", *filename = "stale";
        mdl_http_result_t result = mdl_http_url_check(policy, rows[i].url, &host, &filename, p);
        const char *name = apr_psprintf(p, "'%s' is %s", readable(rows[i].url, p),
                                        results[rows[i].result]);

        if (is_int(result, rows[i].result, name)) {
            is_str(host, rows[i].host, apr_psprintf(p, "%s: its host is returned", name));
            is_str(filename, rows[i].filename,
                   apr_psprintf(p, "%s: its filename is returned", name));
        }
    }
}

int main(void)
{
    apr_pool_t *p = tap_begin();
    apr_array_header_t *hosts = apr_array_make(p, 4, sizeof(const char *));
    apr_array_header_t *ports = apr_array_make(p, 1, sizeof(int));
    mdl_http_policy_t policy;
    char label[300];

    ok(mdl_http_global_init(p) == APR_SUCCESS, "the library starts");
    APR_ARRAY_PUSH(hosts, const char *) = "files.example.com";
    APR_ARRAY_PUSH(hosts, const char *) = "*.cdn.example.net";
    APR_ARRAY_PUSH(hosts, const char *) = "127.0.0.1";
    APR_ARRAY_PUSH(hosts, const char *) = "[::1]";
    APR_ARRAY_PUSH(ports, int) = 8443;
    memset(&policy, 0, sizeof policy);
    policy.hosts = hosts;
    policy.ports = ports;
    check_all(&policy, strict, sizeof strict / sizeof strict[0], p);

    memset(label, 'a', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    is_int(mdl_http_url_check(&policy, apr_psprintf(p, "https://%s.cdn.example.net/a", label), NULL,
                              NULL, p),
           BAD, "a host longer than a DNS label can be is invalid");
    is_int(mdl_http_url_check(&policy, "https://files.example.com/a", NULL, NULL, p), GOOD,
           "host and filename may be NULL");

    policy.allow_http = 1;
    policy.any_port = 1;
    check_all(&policy, loose, sizeof loose / sizeof loose[0], p);

    policy.hosts = NULL;
    is_int(mdl_http_url_check(&policy, "https://files.example.com/a", NULL, NULL, p), FOREIGN,
           "without a list no host is allowed");
    return tap_end(p);
}
