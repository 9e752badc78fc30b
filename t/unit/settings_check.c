/* Directives that contradict each other, and files and folders that can't be used. */
#include "t/unit/settings.h"

static void test_check(void)
{
    mdl_settings_t *s;
    const char *problems = problems_of(mdl_settings_create(pool));

    is_int(lines_of(problems), 8, "every missing directive is a separate problem");
    ok(strstr(problems, "DownloadsPublicURL is missing: "), "a problem names its directive");
    is_str(problems_of(good()), "", "good settings have no problem");

    s = good();
    set(s, "DownloadsLeaseTime", "5");
    set(s, "DownloadsPollInterval", "5");
    is_str(problems_of(s),
           "DownloadsPollInterval (5 s) must be less than DownloadsLeaseTime (5 s), or leases run "
           "out before they are renewed.",
           "the poll interval must be shorter than a lease");
    s = good();
    set(s, "DownloadsIngestTimeout", "5");
    is_int(lines_of(problems_of(s)), 2, "no timeout may be longer than that of the whole attempt");
    s = good();
    set(s, "DownloadsRateBurst", "2");
    is_str(problems_of(s), "", "a bucket may have exactly the cost of one write");
    set(s, "DownloadsRateBurst", "1");
    ok(strstr(problems_of(s), "DownloadsRateBurst is less than one request costs"),
       "a bucket must have at least the cost of a write");
    set(s, "DownloadsRateLimit", "Off");
    is_str(problems_of(s), "", "the size of a bucket does not matter if the limit is off");
    s = good();
    set(s, "DownloadsRateReadCost", "61");
    is_int(lines_of(problems_of(s)), 1, "a bucket must have at least the cost of a read");
    s = good();
    set(s, "DBDriver", "sqlite3");
    ok(strstr(problems_of(s), "DBDParams must be the database file's absolute path"),
       "an SQLite database needs an absolute path");
    is_str(set(s, "DBDriver", "mysql"),
           "must be sqlite3 or pgsql for mod_downloads, not \"mysql\".",
           "another database is refused");
}

static const char *warnings_of(const mdl_settings_t *settings)
{
    apr_array_header_t *warnings = apr_array_make(pool, 4, sizeof(const char *));

    mdl_settings_warn(settings, warnings, pool);
    return apr_array_pstrcat(pool, warnings, '\n');
}

static void test_warnings(void)
{
    mdl_settings_t *s = good();

    set(s, "DownloadsMailFrom", "shop@myexample.com");
    is_str(warnings_of(s), "", "good settings have no warning");
    is_str(warnings_of(mdl_settings_create(pool)), "", "missing directives have no warning");
    set(s, "DownloadsPublicURL", "https://example.com.shop.test:8443/example.com");
    is_str(warnings_of(s), "", "a name that only resembles the sample's has no warning");
    set(s, "DownloadsPublicURL", "https://Downloads.Example.com:8443/d");
    is_str(warnings_of(s),
           "DownloadsPublicURL is still the sample's, https://downloads.example.com:8443/d: put in "
           "your own.",
           "the public URL of the sample is a warning");
    set(s, "DownloadsUploadURL", "https://example.com");
    set(s, "DownloadsMailFrom", "downloads@example.com");
    is_int(lines_of(warnings_of(s)), 3,
           "the upload URL and the sender of the sample are warnings, too");
    set(s, "DownloadsMailTransport", "maildir:/tmp/m");
    is_int(lines_of(warnings_of(s)), 2, "the sender of the sample is no warning for a Maildir");
}

static void test_mail_tls(void)
{
    static const struct {
        const char *transport;
        mdl_mail_tls_t tls;
    } hosts[] = {
        {"smtp://localhost", MDL_MAIL_TLS_OFF},
        {"smtp://LOCALHOST:2525", MDL_MAIL_TLS_OFF},
        {"smtp://127.0.0.1", MDL_MAIL_TLS_OFF},
        {"smtp://127.9.9.9:25", MDL_MAIL_TLS_OFF},
        {"smtp://[::1]:25", MDL_MAIL_TLS_OFF},
        {"smtp://mail.example.net", MDL_MAIL_TLS_REQUIRED},
        {"smtp://10.0.0.1", MDL_MAIL_TLS_REQUIRED},
        {"smtp://[2001:db8::1]", MDL_MAIL_TLS_REQUIRED},
        {"smtp://127.example.net", MDL_MAIL_TLS_REQUIRED},
        {"smtp://localhost.example.net", MDL_MAIL_TLS_REQUIRED},
    };
    mdl_settings_t *s;

    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        s = good();
        set(s, "DownloadsMailTransport", hosts[i].transport);
        problems_of(s);
        is_int(s->mail.tls, hosts[i].tls, hosts[i].transport);
    }
    s = good();
    set(s, "DownloadsMailTransport", "smtp://localhost");
    set(s, "DownloadsMailCAFile", path_of("none.pem"));
    problems_of(s);
    is_int(s->mail.tls, MDL_MAIL_TLS_REQUIRED, "certificates to trust say that TLS is wanted");
    set(s, "DownloadsMailTLS", "try");
    problems_of(s);
    is_int(s->mail.tls, MDL_MAIL_TLS_TRY, "a given value for TLS is kept");
}

static void test_clear_urls(void)
{
    static const char *const here[] = {"http://localhost/d", "http://LOCALHOST:80",
                                       "http://[::1]:8", "http://127.0.0.1:8080/d",
                                       "https://shop.test/d"};
    mdl_settings_t *s = good();

    set(s, "DownloadsMailFrom", "shop@shop.test");
    for (apr_size_t i = 0; i < sizeof here / sizeof *here; i++) {
        set(s, "DownloadsPublicURL", here[i]);
        is_str(warnings_of(s), "", apr_pstrcat(pool, here[i], " has no warning", NULL));
    }
    set(s, "DownloadsPublicURL", "http://shop.test/d");
    is_str(
        warnings_of(s),
        "DownloadsPublicURL is http://shop.test/d, and DownloadsRequireTLS refuses what comes in "
        "clear: make it https, also where a proxy ends TLS (see DownloadsTLSProxy).",
        "a public URL in clear is a warning");
    set(s, "DownloadsUploadURL", "http://localhost.shop.test/u");
    is_int(lines_of(warnings_of(s)), 2, "so is the upload URL, and a host that begins like ours");
    set(s, "DownloadsRequireTLS", "Off");
    is_str(warnings_of(s), "", "without DownloadsRequireTLS neither is");
}

static void test_credentials(void)
{
    mdl_settings_t *s = good();

    set(s, "DownloadsMailCredentials", write_file("mail", "shop@example.com:pa:ss\n", 0600));
    is_str(problems_of(s), "", "a credentials file is read");
    is_str(s->mail.user, "shop@example.com", "the user is what precedes the first colon");
    is_str(s->mail.password, "pa:ss", "the password is what follows the first colon");
    is_int(s->mail.tls, MDL_MAIL_TLS_REQUIRED, "with credentials STARTTLS is required");
    set(s, "DownloadsMailTLS", "off");
    problems_of(s);
    is_int(s->mail.tls, MDL_MAIL_TLS_OFF, "a given value for TLS is kept");

    write_file("mail", "user:secretword\n", 0640);
    ok(strstr(problems_of(s), "is open to others than its owner: chmod 0600."),
       "credentials that the group can read are refused");
    write_file("mail", "secretword\n", 0600);
    ok(strstr(problems_of(s), "must be one line user:password, neither of them empty."),
       "credentials without a colon are refused");
    ok(!strstr(problems_of(s), "secretword"), "a problem does not repeat the contents of the file");
    write_file("mail", "user:secretword\nmore\n", 0600);
    ok(strstr(problems_of(s), "must be one line"), "credentials of two lines are refused");
    write_file("mail", ":x\n", 0600);
    ok(strstr(problems_of(s), "must be one line"), "an empty user is refused");
    write_file("mail", "user:\n", 0600);
    ok(strstr(problems_of(s), "must be one line"), "an empty password is refused");
    write_file("mail", "", 0600);
    ok(strstr(problems_of(s), "must be one line"), "an empty credentials file is refused");
    unlink(path_of("mail"));
    ok(strstr(problems_of(s), "can't be read"), "an absent credentials file is a problem");

    s = good();
    set(s, "DownloadsMailTransport", "maildir:/tmp/m");
    set(s, "DownloadsMailTLS", "required");
    set(s, "DownloadsMailCredentials", write_file("mail", "u:p", 0600));
    is_int(lines_of(problems_of(s)), 2, "TLS and credentials contradict a Maildir");
    s = good();
    set(s, "DownloadsMailTransport", "smtps://localhost");
    set(s, "DownloadsMailTLS", "off");
    is_int(lines_of(problems_of(s)), 1, "TLS off contradicts smtps");
    s = good();
    set(s, "DownloadsMailCAFile", path_of("none.pem"));
    ok(strstr(problems_of(s), "DownloadsMailCAFile: there is no file"),
       "an absent file of certificates is a problem");
    set(s, "DownloadsMailCAFile", write_file("some.pem", "", 0600));
    is_str(problems_of(s),
           apr_pstrcat(pool, "DownloadsMailCAFile: the file ", path_of("some.pem"),
                       " must hold certificates in PEM form, and none that is broken.", NULL),
           "a file without certificates is a problem");
    chmod(path_of("some.pem"), 0);
    ok(geteuid() == 0 || strstr(problems_of(s), "can't be read (Permission denied); run as root"),
       "a file of certificates that can't be read is a problem");
    s = good();
    set(s, "DownloadsFraudDisposableDomains", path_of("none.domains"));
    set(s, "DownloadsFraudBlockedDomains", folder);
    is_str(problems_of(s),
           apr_pstrcat(pool, "DownloadsFraudDisposableDomains: there is no file ",
                       path_of("none.domains"),
                       ".\nDownloadsFraudBlockedDomains: there is no file ", folder, ".", NULL),
           "a missing file of domains is a problem, and so is a folder in its place");
    write_file("some.domains", "", 0600);
    set(s, "DownloadsFraudDisposableDomains", path_of("some.domains"));
    set(s, "DownloadsFraudBlockedDomains", path_of("some.domains"));
    is_str(problems_of(s), "", "an empty file of domains is not a problem");

    s = good();
    ok(accepts("DownloadsMailBounces", "maildir:/var/mail/b") &&
           accepts("DownloadsMailBounces", "mbox:/var/mail/b") &&
           !accepts("DownloadsMailBounces", "/var/mail/b") &&
           !accepts("DownloadsMailBounces", "imap://host"),
       "bounces are read from a Maildir or an mbox");
    set(s, "DownloadsMailBounces", "mbox:/var/mail/b");
    set(s, "DownloadsMailFrom", "a.sender-of-thirty-one-bytes.ab@example.com");
    is_str(problems_of(s), "", "with bounces, the sender's local part may have 31 bytes");
    set(s, "DownloadsMailFrom", "a.sender-of-thirty-two-bytes.abc@example.com");
    ok(strstr(problems_of(s), "DownloadsMailFrom may have 31 bytes"),
       "with bounces, the sender's local part may not have 32 bytes");

    s = good();
    set(s, "DownloadsStorefrontCAFile", path_of("none.pem"));
    ok(strstr(problems_of(s), "DownloadsStorefrontCAFile: there is no file"),
       "an absent file of certificates for storefronts is a problem");
    set(s, "DownloadsStorefrontCAFile", write_file("other.pem", "no PEM\n", 0600));
    ok(strstr(problems_of(s), "DownloadsStorefrontCAFile: the file ") &&
           strstr(problems_of(s), "other.pem must hold certificates in PEM form"),
       "a file without certificates for storefronts is a problem");
}

int main(void)
{
    begin();
    test_check();
    test_warnings();
    test_mail_tls();
    test_clear_urls();
    test_credentials();
    return end();
}
