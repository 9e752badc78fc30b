/* Directives that contradict each other, and files and folders that can't be used. */
#include "t/unit/settings.h"

static void test_check(void)
{
    mdl_settings_t *s;
    const char *problems = problems_of(mdl_settings_create(pool));

    is_int(lines_of(problems), 8, "every missing directive is a problem of its own");
    ok(strstr(problems, "DownloadsPublicURL is missing: "), "a problem names its directive");
    is_str(problems_of(good()), "", "good settings have no problem");

    s = good();
    set(s, "DownloadsLeaseTime", "5");
    set(s, "DownloadsPollInterval", "5");
    is_str(problems_of(s),
           "DownloadsPollInterval (5 s) must be less than DownloadsLeaseTime (5 s), or leases run "
           "out before they are renewed.",
           "polling must be quicker than leases run out");
    s = good();
    set(s, "DownloadsIngestTimeout", "5");
    is_int(lines_of(problems_of(s)), 2, "no timeout may exceed that of the whole attempt");
    s = good();
    set(s, "DownloadsRateBurst", "2");
    is_str(problems_of(s), "", "a bucket may hold what one write costs");
    set(s, "DownloadsRateBurst", "1");
    ok(strstr(problems_of(s), "DownloadsRateBurst is less than one request costs"),
       "a bucket must hold what a write costs");
    set(s, "DownloadsRateLimit", "Off");
    is_str(problems_of(s), "", "but not when there is no limit");
    s = good();
    set(s, "DownloadsRateReadCost", "61");
    is_int(lines_of(problems_of(s)), 1, "a bucket must hold what a read costs");
    s = good();
    set(s, "DBDriver", "sqlite3");
    ok(strstr(problems_of(s), "DBDParams must be the database file's absolute path"),
       "SQLite's database needs an absolute path");
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
    is_str(warnings_of(s), "", "there is nothing to warn of");
    is_str(warnings_of(mdl_settings_create(pool)), "", "nor in what is missing");
    set(s, "DownloadsPublicURL", "https://example.com.shop.test:8443/example.com");
    is_str(warnings_of(s), "", "nor in a name that only looks like the sample's");
    set(s, "DownloadsPublicURL", "https://Downloads.Example.com:8443/d");
    is_str(warnings_of(s),
           "DownloadsPublicURL is still the sample's, https://downloads.example.com:8443/d: put in "
           "your own.",
           "a public URL of the sample's is one");
    set(s, "DownloadsUploadURL", "https://example.com");
    set(s, "DownloadsMailFrom", "downloads@example.com");
    is_int(lines_of(warnings_of(s)), 3, "and so are the others");
    set(s, "DownloadsMailTransport", "maildir:/tmp/m");
    is_int(lines_of(warnings_of(s)), 2, "but no sender of emails that stay here");
}

static void test_credentials(void)
{
    mdl_settings_t *s = good();

    problems_of(s);
    is_int(s->mail.tls, MDL_MAIL_TLS_TRY, "without credentials STARTTLS is tried");

    set(s, "DownloadsMailCredentials", write_file("mail", "shop@example.com:pa:ss\n", 0600));
    is_str(problems_of(s), "", "a credentials file is read");
    is_str(s->mail.user, "shop@example.com", "the user stands before the first colon");
    is_str(s->mail.password, "pa:ss", "the password stands behind the first colon");
    is_int(s->mail.tls, MDL_MAIL_TLS_REQUIRED, "with credentials STARTTLS is required");
    set(s, "DownloadsMailTLS", "off");
    problems_of(s);
    is_int(s->mail.tls, MDL_MAIL_TLS_OFF, "TLS that was given is kept");

    write_file("mail", "user:secretword\n", 0640);
    ok(strstr(problems_of(s), "is open to others than its owner: chmod 0600."),
       "credentials that the group can read are refused");
    write_file("mail", "secretword\n", 0600);
    ok(strstr(problems_of(s), "must be one line user:password, neither of them empty."),
       "credentials without a colon are refused");
    ok(!strstr(problems_of(s), "secretword"), "a problem does not repeat the file's words");
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
       "a file of certificates that can't be read is another");
    s = good();
    set(s, "DownloadsFraudDisposableDomains", path_of("none.domains"));
    set(s, "DownloadsFraudBlockedDomains", folder);
    is_str(problems_of(s),
           apr_pstrcat(pool, "DownloadsFraudDisposableDomains: there is no file ",
                       path_of("none.domains"),
                       ".\nDownloadsFraudBlockedDomains: there is no file ", folder, ".", NULL),
           "a missing file of domains is a problem, and so is a folder");
    write_file("some.domains", "", 0600);
    set(s, "DownloadsFraudDisposableDomains", path_of("some.domains"));
    set(s, "DownloadsFraudBlockedDomains", path_of("some.domains"));
    is_str(problems_of(s), "", "an empty one is not");

    s = good();
    ok(takes("DownloadsMailBounces", "maildir:/var/mail/b") &&
           takes("DownloadsMailBounces", "mbox:/var/mail/b") &&
           !takes("DownloadsMailBounces", "/var/mail/b") &&
           !takes("DownloadsMailBounces", "imap://host"),
       "mail comes back to a Maildir or an mbox");
    set(s, "DownloadsMailBounces", "mbox:/var/mail/b");
    set(s, "DownloadsMailFrom", "a.sender-of-thirty-one-bytes.ab@example.com");
    is_str(problems_of(s), "", "the sender's local part may have 31 bytes then");
    set(s, "DownloadsMailFrom", "a.sender-of-thirty-two-bytes.abc@example.com");
    ok(strstr(problems_of(s), "DownloadsMailFrom may have 31 bytes"), "and no more");

    s = good();
    set(s, "DownloadsStorefrontCAFile", path_of("none.pem"));
    ok(strstr(problems_of(s), "DownloadsStorefrontCAFile: there is no file"),
       "an absent file of certificates for storefronts is a problem");
    set(s, "DownloadsStorefrontCAFile", write_file("other.pem", "no PEM\n", 0600));
    ok(strstr(problems_of(s), "DownloadsStorefrontCAFile: the file ") &&
           strstr(problems_of(s), "other.pem must hold certificates in PEM form"),
       "and so is one without certificates");
}

int main(void)
{
    begin();
    test_check();
    test_warnings();
    test_credentials();
    return end();
}
