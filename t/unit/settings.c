/* The directives: names, defaults, accepted and refused values, messages, and the sample. */
#include "t/unit/settings.h"

#include <apr_network_io.h>

static void test_defaults(void)
{
    const mdl_settings_t *s = mdl_settings_create(pool);

    ok(!s->configured, "fresh settings are not configured");
    is_int(s->require_tls, 1, "requests in clear are refused by default");
    is_int(s->tls_proxies->nelts, 0, "no proxy vouches for TLS by default");
    is_int(s->migrate, 0, "the schema is not migrated at start by default");
    is_int(s->worker, 1, "the background process runs by default");
    is_int(s->ingest.hosts->nelts, 0, "no host is allowed for imports by default");
    is_int(s->ingest.allow_http, 0, "plain http is off by default");
    is_int(s->ingest.any_port, 0, "not every port is allowed by default");
    is_int(s->ingest.max_size, APR_INT64_C(5) << 30, "a file may have 5 GiB by default");
    is_int(s->ingest.max_redirects, 10, "ten redirects are followed");
    is_int(s->ingest.connect_timeout_s, 10, "a connection must be established within 10 s");
    is_int(s->ingest.stall_timeout_s, 60, "a stalled transfer is abandoned after 60 s");
    is_int(s->ingest.total_timeout_s, 21600, "an attempt may take 6 h");
    is_int(s->ingest_concurrency, 10, "at most 10 large transfers run at once");
    is_int(s->ingest_max_attempts, 12, "an import has 12 attempts");
    is_int(s->retry_delay, apr_time_from_sec(10), "the second attempt comes after 10 s");
    is_int(s->mail.tls, MDL_MAIL_TLS_REQUIRED, "STARTTLS is required by default");
    is_int(s->mail_connections, 20, "at most 20 emails are sent at once");
    is_int(s->idempotency_retention, apr_time_from_sec(86400), "keys are remembered for a day");
    is_int(s->mail_rate, 1000, "a shop may send 1,000 emails an hour");
    is_int(s->rate_limit, 1, "requests are limited by default");
    is_int(s->rate_burst, 60, "a key's bucket has 60 tokens");
    is_int(s->rate_refill, 60, "60 tokens a minute are refilled");
    is_int(s->rate_read_cost, 1, "a read costs 1 token");
    is_int(s->rate_write_cost, 2, "a write costs 2 tokens");
    is_int(s->rate_shop_factor, 3, "a shop has three times a key's tokens");
    is_int(s->rate_pages, 120, "an order's page may be asked for 120 times a minute");
    is_int(s->rate_parts, 600, "an order's files may be asked for 600 times a minute");
    is_int(s->rate_network, 120, "a network may send 120 wrong keys a minute");
    is_str(s->upload_url, NULL, "nothing can be uploaded by default");
    is_int(s->upload_origins->nelts, 0, "no origin may upload by default");
    is_int(s->upload_max_size, APR_INT64_C(5) << 30, "an upload may have 5 GiB by default");
    is_int(s->upload_lifetime, apr_time_from_sec(86400), "an upload lives a day");
    is_int(s->storage_quota, 0, "a shop's storage is unlimited by default");
    is_int(s->upload_max_open, 20, "a shop has 20 uploads open at most by default");
    is_int(s->storage.reserve, APR_INT64_C(1) << 30, "1 GiB of the disk stays free by default");
    is_int(s->fraud_window, apr_time_from_sec(86400), "the orders of a day are counted");
    is_int(s->fraud_customer_orders, 5, "five orders of a customer are a signal");
    is_int(s->fraud_address_orders, 5, "five orders with an address are a signal");
    is_int(s->fraud_ip_orders, 10, "ten orders from an IP address are a signal");
    is_str(s->fraud_disposable_domains, NULL, "there is no list of disposable domains");
    is_str(s->fraud_blocked_domains, NULL, "there is no list of blocked domains");
    is_int(s->download_limit, 10, "a purchase includes 10 downloads");
    is_int(s->link_lifetime, apr_time_from_sec(300), "a link is valid for 5 min");
    is_int(s->session_lifetime, apr_time_from_sec(86400), "a session lasts a day");
    is_int(s->session_idle, apr_time_from_sec(60), "a session may be idle for a minute");
    is_int(s->lease_time, apr_time_from_sec(30), "a lease lasts 30 s");
    is_int(s->poll_interval, apr_time_from_sec(2),
           "jobs from other nodes are looked for every 2 s");
}

static void test_names(void)
{
#define NAME(name, help) name,
    static const char *const names[] = {MDL_DIRECTIVES(NAME)};
#undef NAME
    mdl_settings_t *s = mdl_settings_create(pool);
    const char *words[] = {"a", "b"};
    size_t unknown = 0;
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *why = set(mdl_settings_create(pool), names[i], "\001");

        if (why == NULL || strstr(why, "is no directive") != NULL || why[strlen(why) - 1] != '.') {
            printf("# %s: %s\n", names[i], why != NULL ? why : "accepts a control character");
            unknown++;
        }
    }
    is_int(unknown, 0,
           "every listed directive is known, and refuses an invalid value with a message");
    is_str(set(s, "DownloadsStorrage", "/x"),
           "is no directive of mod_downloads; check its spelling.", "an unknown name is refused");
    ok(!s->configured, "an unknown name does not configure anything");
    set(s, "DBDriver", "sqlite3");
    ok(!s->configured, "mod_dbd's directives alone do not configure the module");
    set(s, "downloadsstorage", "/x");
    is_str(s->storage.folder, "/x", "names are case-insensitive");
    ok(s->configured, "a Downloads directive configures the module");
    is_str(mdl_settings_set(s, "DownloadsStorage", 2, words, pool),
           "takes one word, not 2: put quotes round a value with spaces.",
           "a second value is refused for a directive that takes one");
    is_str(mdl_settings_set(s, "DownloadsStorage", 0, NULL, pool), "needs a word after it.",
           "a directive without a value is refused");
}

static void test_ranges(void)
{
    static const struct {
        const char *name;
        const char *below;
        const char *min;
        const char *max;
        const char *above;
    } ranges[] = {
        {"DownloadsIngestConnectTimeout", "0", "1", "300", "301"},
        {"DownloadsIngestStallTimeout", "0", "1", "3600", "3601"},
        {"DownloadsIngestTimeout", "0", "1", "604800", "604801"},
        {"DownloadsIngestConcurrency", "0", "1", "64", "65"},
        {"DownloadsIngestAttempts", "0", "1", "20", "21"},
        {"DownloadsRetryDelay", "0", "1", "3600000", "3600001"},
        {"DownloadsMailConnections", "0", "1", "64", "65"},
        {"DownloadsIdempotencyRetention", "0", "1", "2592000", "2592001"},
        {"DownloadsRateBurst", "0", "1", "1000000", "1000001"},
        {"DownloadsRateRefill", "0", "1", "1000000", "1000001"},
        {"DownloadsRateReadCost", "0", "1", "1000", "1001"},
        {"DownloadsRateWriteCost", "0", "1", "1000", "1001"},
        {"DownloadsUploadMaxSize", "0", "1", "16384G", "16385G"},
        {"DownloadsUploadMaxOpen", "0", "1", "10000", "10001"},
        {"DownloadsUploadLifetime", "59", "60", "2592000", "2592001"},
        {"DownloadsStorageQuota", "-1", "0", "16384G", "16385G"},
        {"DownloadsStorageReserve", "-1", "0", "16384G", "16385G"},
        {"DownloadsFraudWindow", "59", "60", "2592000", "2592001"},
        {"DownloadsFraudCustomerOrders", "-1", "0", "10000", "10001"},
        {"DownloadsFraudAddressOrders", "-1", "0", "10000", "10001"},
        {"DownloadsFraudIPOrders", "-1", "0", "10000", "10001"},
        {"DownloadsDownloadLimit", "-1", "0", "100000", "100001"},
        {"DownloadsLinkLifetime", "9", "10", "86400", "86401"},
        {"DownloadsSessionLifetime", "59", "60", "2592000", "2592001"},
        {"DownloadsSessionIdle", "0", "1", "86400", "86401"},
        {"DownloadsLeaseTime", "1", "2", "3600", "3601"},
        {"DownloadsPollInterval", "0", "1", "60", "61"},
        {"DownloadsAlertInterval", "0", "1", "3600", "3601"},
        {"DownloadsIngestMaxSize", "0", "1", "16384G", "16385G"},
        {"DownloadsIngestAllowPort", "0", "1", "65535", "65536"},
        {"DownloadsWebhookAllowPort", "0", "1", "65535", "65536"},
        {"DownloadsStorefrontAllowPort", "0", "1", "65535", "65536"},
    };
    mdl_settings_t *s = mdl_settings_create(pool);
    size_t i;

    for (i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const char *name = ranges[i].name;

        ok(accepts(name, ranges[i].min) && accepts(name, ranges[i].max),
           apr_pstrcat(pool, name, " accepts the ends of its range", NULL));
        ok(!accepts(name, ranges[i].below) && !accepts(name, ranges[i].above),
           apr_pstrcat(pool, name, " refuses values outside its range", NULL));
        ok(!accepts(name, "") && !accepts(name, "1x") && !accepts(name, "+1") &&
               !accepts(name, " 1") && !accepts(name, "18446744073709551617"),
           apr_pstrcat(pool, name, " refuses what is not a number", NULL));
    }
    is_str(set(s, "DownloadsLeaseTime", "abc"),
           "must be a whole number of seconds from 2 to 3600, not \"abc\".",
           "the message has the unit, the range and the value");
    set(s, "DownloadsRetryDelay", "250");
    is_int(s->retry_delay, 250000, "the retry's delay is in milliseconds");
    set(s, "DownloadsLeaseTime", "7");
    is_int(s->lease_time, 7000000, "a lease is in seconds");
}

static void test_sizes_and_flags(void)
{
    mdl_settings_t *s = mdl_settings_create(pool);

    set(s, "DownloadsIngestMaxSize", "123");
    is_int(s->ingest.max_size, 123, "a size is in bytes");
    set(s, "DownloadsIngestMaxSize", "3k");
    is_int(s->ingest.max_size, 3072, "K means 1,024, also in lower case");
    set(s, "DownloadsIngestMaxSize", "2M");
    is_int(s->ingest.max_size, 2 << 20, "M means 1,024 K");
    ok(!accepts("DownloadsIngestMaxSize", "G") && !accepts("DownloadsIngestMaxSize", "5GB") &&
           !accepts("DownloadsIngestMaxSize", "999999999999999G") &&
           !accepts("DownloadsIngestMaxSize", "1.5G"),
       "a size with other units, fractions or an overflow is refused");
    set(s, "DownloadsMigrate", "oN");
    is_int(s->migrate, 1, "On is accepted in any letter case");
    set(s, "DownloadsMigrate", "Off");
    is_int(s->migrate, 0, "the last of several lines counts");
    is_str(set(s, "DownloadsMigrate", "yes"), "must be On or Off, not \"yes\".",
           "a flag other than On or Off is refused");
}

static void test_paths_and_url(void)
{
    mdl_settings_t *s = mdl_settings_create(pool);

    ok(accepts("DownloadsFraudDisposableDomains", "/etc/a") &&
           accepts("DownloadsFraudBlockedDomains", "/etc/a") &&
           !accepts("DownloadsFraudDisposableDomains", "a") &&
           !accepts("DownloadsFraudBlockedDomains", "a"),
       "only absolute paths are accepted for files of domains");
    ok(accepts("DownloadsSecretFile", "/etc/secret file"), "an absolute path is accepted");
    ok(!accepts("DownloadsSecretFile", "etc/secret") && !accepts("DownloadsSecretFile", "") &&
           !accepts("DownloadsSecretFile", "/etc\n/x"),
       "a relative path or one with a control character is refused");

    set(s, "DownloadsPublicURL", "HTTPS://Shop.Example:8443/Get//");
    is_str(s->public_url, "https://shop.example:8443/Get",
           "the public URL loses its trailing slashes and gets a lower-case host");
    ok(accepts("DownloadsPublicURL", "http://127.0.0.1:8080") &&
           accepts("DownloadsPublicURL", "http://[::1]:8080/d"),
       "plain http and IP addresses are accepted in the public URL");
    ok(!accepts("DownloadsPublicURL", "/d") && !accepts("DownloadsPublicURL", "shop.example/d") &&
           !accepts("DownloadsPublicURL", "ftp://shop.example/d") &&
           !accepts("DownloadsPublicURL", "https:///d") &&
           !accepts("DownloadsPublicURL", "https://shop.example/a b") &&
           !accepts("DownloadsPublicURL", "https://sh\303\266p.example/") &&
           !accepts("DownloadsPublicURL", "https://shop.example/\"><script>"),
       "what is not an absolute http or https URL is refused");
    ok(!accepts("DownloadsPublicURL", "https://shop.example/d?x") &&
           !accepts("DownloadsPublicURL", "https://shop.example/d#x") &&
           !accepts("DownloadsPublicURL", "https://u:p@shop.example/d") &&
           !accepts("DownloadsPublicURL", "https://shop.example:0/d") &&
           !accepts("DownloadsPublicURL", "https://shop.example:70000/d"),
       "query, fragment, user name and impossible ports are refused in the public URL");
}

static void test_origins(void)
{
    static const struct {
        const char *word;
        const char *kept;
    } taken[] = {
        {"https://admin.example.com", "https://admin.example.com"},
        {"HTTPS://Admin.Example.COM", "https://admin.example.com"},
        {"http://localhost:3000", "http://localhost:3000"},
        {"https://a.example:443", "https://a.example"},
        {"http://a.example:80", "http://a.example"},
        {"http://a.example:443", "http://a.example:443"},
        {"http://[::1]:8080", "http://[::1]:8080"},
        {"*", "*"},
    };
    static const char *const refused[] = {
        "",
        "null",
        "admin.example.com",
        "//admin.example.com",
        "https://",
        "https://:8443",
        "https://a.example/",
        "https://a.example/admin",
        "https://a.example?x",
        "https://a.example#x",
        "https://u@a.example",
        "https://a.example:",
        "https://a.example:0",
        "https://a.example:65536",
        "https://a.example:x",
        "https://*.example",
        "ftp://a.example",
        "https://a.example\r\nX-Other: 1",
        "https://a.example https://b.example",
        "https://\303\274.example",
        "**",
    };
    const char *words[] = {"https://a.example", "https://b.example"};
    mdl_settings_t *s = mdl_settings_create(pool);
    size_t i, wrong = 0;

    for (i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        set(s, "DownloadsUploadOrigin", taken[i].word);
        is_int(s->upload_origins->nelts, i + 1,
               apr_pstrcat(pool, taken[i].word, " is accepted as an origin", NULL));
        is_str(APR_ARRAY_IDX(s->upload_origins, i, const char *), taken[i].kept,
               "it is kept as browsers send it");
    }
    for (i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (accepts("DownloadsUploadOrigin", refused[i])) {
            printf("# accepts origin \"%s\"\n", refused[i]);
            wrong++;
        }
    }
    is_int(wrong, 0, "what is not an origin is refused");
    s = mdl_settings_create(pool);
    is_str(mdl_settings_set(s, "DownloadsUploadOrigin", 2, words, pool), NULL,
           "several origins are accepted in one line");
    is_int(s->upload_origins->nelts, 2, "each of them is kept");
    is_str(
        set(s, "DownloadsUploadOrigin", "a.example"),
        "must list origins, such as https://admin.example.com, with no path behind them, or be * "
        "for every origin, not \"a.example\".",
        "the message says how an origin is written");
}

static void test_ingest_lists(void)
{
    mdl_settings_t *s = mdl_settings_create(pool);
    const char *hosts[] = {"Files.Example.COM", "*.CDN.example"};
    const char *networks[] = {"127.0.0.0/8", "::1/128"};
    const char *ports[] = {"8443", "8080"};
    static const char *const bad_hosts[] = {
        "*",           "*.",         "a.*.b",      "*example.com", "https://a.example",
        "a.example:8", "a.example/", "a.example.", ".a.example",   "a..example",
        "127.0.0.1",   "127.1",      "0x7f.0x1",   "2130706433",   "[::1]",
        "::1",         "*.0.0.1",    "b\303.test", "-a.example",   "a-.example",
        "a@b.example", "",           "a b"};
    static const char *const bad_networks[] = {"10.0.0.1",    "10.0.0.0/33", "10.0/8",
                                               "::1/129",     "localhost/8", "10.0.0.0/",
                                               "10.0.0.0/-1", "/8"};
    apr_sockaddr_t *address;
    size_t taken = 0;
    size_t i;

    is_str(mdl_settings_set(s, "DownloadsIngestAllowHost", 2, hosts, pool), NULL,
           "several hosts are accepted in one line");
    set(s, "DownloadsIngestAllowHost", "localhost");
    is_int(s->ingest.hosts->nelts, 3, "another line adds to the hosts");
    set(s, "DownloadsIngestAllowHost", "*.D\303\251j\303\240.example");
    is_str(APR_ARRAY_IDX(s->ingest.hosts, 3, const char *), "*.xn--dj-kia8a.example",
           "an international name has its xn-- form");
    is_str(APR_ARRAY_IDX(s->ingest.hosts, 0, const char *), "files.example.com",
           "a host is kept in lower case");
    is_str(APR_ARRAY_IDX(s->ingest.hosts, 1, const char *), "*.cdn.example",
           "a suffix keeps its star");
    for (i = 0; i < sizeof bad_hosts / sizeof bad_hosts[0]; i++) {
        if (accepts("DownloadsIngestAllowHost", bad_hosts[i])) {
            printf("# accepts host \"%s\"\n", bad_hosts[i]);
            taken++;
        }
    }
    is_int(taken, 0, "schemes, ports, addresses and other wildcards are refused as hosts");

    is_str(mdl_settings_set(s, "DownloadsIngestAllowNetwork", 2, networks, pool), NULL,
           "IPv4 and IPv6 networks are accepted");
    apr_sockaddr_info_get(&address, "127.1.2.3", APR_INET, 0, 0, pool);
    ok(apr_ipsubnet_test(APR_ARRAY_IDX(s->ingest.networks, 0, apr_ipsubnet_t *), address),
       "a network contains its addresses");
    for (i = taken = 0; i < sizeof bad_networks / sizeof bad_networks[0]; i++) {
        if (accepts("DownloadsIngestAllowNetwork", bad_networks[i])) {
            printf("# accepts network \"%s\"\n", bad_networks[i]);
            taken++;
        }
    }
    is_int(taken, 0, "what is not address/bits is refused as a network");

    mdl_settings_set(s, "DownloadsIngestAllowPort", 2, ports, pool);
    is_int(s->ingest.ports->nelts, 2, "several ports are accepted in one line");
    is_int(APR_ARRAY_IDX(s->ingest.ports, 1, int), 8080, "ports keep their order");
    is_int(s->ingest.any_port, 0, "listed ports do not allow every port");
    set(s, "DownloadsIngestAllowPort", "*");
    is_int(s->ingest.any_port, 1, "* allows every port");
}

static void test_mail_directives(void)
{
    mdl_settings_t *s = mdl_settings_create(pool);

    set(s, "DownloadsMailFrom", "shop@example.com");
    is_str(s->mail_from, "shop@example.com", "a bare address is accepted as the sender");
    ok(accepts("DownloadsAlertEmail", "ops@example.com") &&
           !accepts("DownloadsAlertEmail", "Ops <ops@example.com>"),
       "an alert needs an address alone");
    ok(!accepts("DownloadsMailFrom", "Shop") && !accepts("DownloadsMailFrom", "") &&
           !accepts("DownloadsMailFrom", "Shop <a@example.com>") &&
           !accepts("DownloadsMailFrom", "a b@example.com") &&
           !accepts("DownloadsMailFrom", "a@example.com\r\nBcc: x@example.com"),
       "what is not a bare address is refused as the sender");
    ok(!accepts("DownloadsMailTransport", "pigeon://x"), "an unknown transport is refused");
    ok(!accepts("DownloadsMailTLS", "maybe"), "an unknown value for TLS is refused");
}

#define EXAMPLES 19

static void test_keep(void)
{
    const apr_interval_time_t day = apr_time_from_sec(86400);
    const char *words[] = {"jobs=7", "Audit=365", "emails=FOREVER"};
    mdl_settings_t *s = mdl_settings_create(pool);

    is_int(s->keep.jobs, 30 * day, "jobs are kept for 30 days by default");
    is_int(s->keep.uploads, 30 * day, "uploads are kept for 30 days");
    is_int(s->keep.emails, 365 * day, "emails are kept for a year");
    is_int(s->keep.events, 30 * day, "events are kept for 30 days");
    is_int(s->keep.downloads, 365 * day, "downloads are kept for a year");
    is_int(s->keep.bounces, 30 * day, "returned emails are kept for 30 days");
    is_int(s->keep.audit, MDL_KEEP_FOREVER, "the audit is kept for ever");
    is_str(mdl_settings_set(s, "DownloadsKeep", 3, words, pool), NULL, "several times can be set");
    is_int(s->keep.jobs, 7 * day, "a time is in days");
    is_int(s->keep.audit, 365 * day, "the audit can be kept for a time");
    is_int(s->keep.emails, MDL_KEEP_FOREVER, "anything can be kept for ever");
    is_int(s->keep.downloads, 365 * day, "what is not named keeps its time");
    ok(accepts("DownloadsKeep", "jobs=1") && accepts("DownloadsKeep", "jobs=36500") &&
           !accepts("DownloadsKeep", "jobs=0") && !accepts("DownloadsKeep", "jobs=36501") &&
           accepts("DownloadsKeep", "downloads=32") && !accepts("DownloadsKeep", "downloads=31"),
       "the ends of the ranges are accepted, and nothing beyond");
    ok(!accepts("DownloadsKeep", "jobs") && !accepts("DownloadsKeep", "jobs=") &&
           !accepts("DownloadsKeep", "jobs=1d") && !accepts("DownloadsKeep", "jobs=-1") &&
           !accepts("DownloadsKeep", "jobs=000001") && !accepts("DownloadsKeep", "=1") &&
           !accepts("DownloadsKeep", "job=1") && !accepts("DownloadsKeep", "orders=1"),
       "what is not a name and a number of days is refused");
    is_str(set(s, "DownloadsKeep", "downloads=7"),
           "must keep downloads for 32 to 36500 days or forever, not \"7\".",
           "the message has the range");
    is_str(set(s, "DownloadsKeep", "orders=7"),
           "must list what is kept for how many days, such as jobs=30 or audit=forever, of jobs, "
           "uploads, emails, events, downloads, bounces and audit, not \"orders=7\".",
           "the message has the names");
}

/* The values in the sample, and the defaults that it shows after a "#". */
static void test_sample(void)
{
    static const char sample[] = "conf/mod_downloads.conf";
    static const char *const examples[EXAMPLES] = {
        "AllowHost",         "AllowNetwork",    "AllowPort",    "Credentials",    "CAFile",
        "TLSProxy",          "UploadURL",       "SettingsURL",  "APIURL",         "UploadOrigin",
        "DisposableDomains", "BlockedDomains",  "Bounces",      "SettingsSignIn", "ObjectStore",
        "ObjectKeyFile",     "ObjectPublicURL", "AlertCommand", "AlertEmail"};
    mdl_settings_t *s = mdl_settings_create(pool);
    mdl_settings_t *shown = mdl_settings_create(pool);
    const char *text;
    char line[512];
    FILE *in = fopen(sample, "r");
    FILE *out = fopen(path_of("shown.conf"), "w");
    size_t seen = 0;

    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *name = line + (line[0] == '#');
        size_t i;

        if (strncmp(name, "Downloads", 9) != 0) {
            continue;
        }
        seen++;
        for (i = 0; i < EXAMPLES && strstr(name, examples[i]) == NULL; i++) {
        }
        if (i == EXAMPLES && line[0] == '#') {
            fputs(name, out);
        }
    }
    ok(in, "the sample configuration can be opened");
    fclose(in);
    fclose(out);
#define ONE(name, help) +1
    is_int(seen, 0 MDL_DIRECTIVES(ONE), "the sample shows every directive once");
#undef ONE

    is_str(read_file(s, sample), NULL, "the sample can be read");
    is_str(problems_of(s), "", "the sample has no problem");
    text = read_file(shown, path_of("shown.conf"));
    is_str(text, NULL, "the defaults that the sample shows can be read");
    s = mdl_settings_create(pool);
    shown->configured = s->configured;
    shown->mail_tls_given = s->mail_tls_given;
    shown->mail.tls = s->mail.tls; /* depends on the credentials */
    is_str(shown->storage.objects.region, s->storage.objects.region, "the region is the default");
    shown->storage.objects.region = s->storage.objects.region;
    shown->ingest.hosts = s->ingest.hosts;
    shown->ingest.networks = s->ingest.networks;
    shown->ingest.ports = s->ingest.ports;
    shown->webhook = s->webhook;
    shown->storefront = s->storefront;
    shown->tls_proxies = s->tls_proxies;
    shown->upload_origins = s->upload_origins;
    shown->secret_files = s->secret_files;
    shown->given = s->given;
    is_str(shown->storage.objects.region, s->storage.objects.region, "the region, too");
    shown->storage.objects.region = s->storage.objects.region;
    ok(memcmp(s, shown, sizeof *s) == 0, "the defaults that the sample shows are the defaults");
}

int main(void)
{
    begin();
    test_defaults();
    test_names();
    test_ranges();
    test_sizes_and_flags();
    test_paths_and_url();
    test_origins();
    test_ingest_lists();
    test_mail_directives();
    test_keep();
    test_sample();
    return end();
}
