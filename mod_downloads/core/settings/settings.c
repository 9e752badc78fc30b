#include "core/settings/settings.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_network_io.h>
#include <apr_strings.h>
#include <apr_uri.h>

#include "base/mail/mailbox.h"
#include "base/mail/mailer.h"
#include "base/mail/mime.h"

#define MAX_PATH_LENGTH  4000
#define MAX_HOST_LENGTH  253
#define MAX_LABEL_LENGTH 63
#define MAX_PORT         65535

typedef struct directive_t directive_t;

typedef const char *set_fn(mdl_settings_t *settings, const directive_t *directive, const char *word,
                           apr_pool_t *p);

struct directive_t {
    const char *name;
    const char *standard; /* the default's words, NULL: none */
    set_fn *set;
    apr_size_t offset; /* of the member that set fills */
    apr_int64_t min;
    apr_int64_t max;
    const char *unit; /* " of seconds", or the path of an example, for the sentence */
    int many;         /* takes several words, each is added */
};

static void *setting_member_of(mdl_settings_t *settings, const directive_t *directive)
{
    return (char *)settings + directive->offset;
}

/* apr_strtoi64 would take signs, spaces and a number's beginning. */
static int setting_parse_number(const char *text, apr_size_t length, apr_int64_t *value)
{
    apr_size_t i;

    if (length == 0 || length > 15) {
        return 0;
    }
    *value = 0;
    for (i = 0; i < length; i++) {
        if (!apr_isdigit(text[i])) {
            return 0;
        }
        *value = *value * 10 + (text[i] - '0');
    }
    return 1;
}

static const char *number_in_range(const directive_t *directive, const char *word,
                                   apr_int64_t *value, apr_pool_t *p)
{
    if (setting_parse_number(word, strlen(word), value) && *value >= directive->min &&
        *value <= directive->max) {
        return NULL;
    }
    return apr_psprintf(p,
                        "must be a whole number%s from %" APR_INT64_T_FMT " to %" APR_INT64_T_FMT
                        ", not \"%s\".",
                        directive->unit, directive->min, directive->max, word);
}

static const char *set_int(mdl_settings_t *settings, const directive_t *directive, const char *word,
                           apr_pool_t *p)
{
    apr_int64_t value = 0;
    const char *why = number_in_range(directive, word, &value, p);

    if (why) {
        return why;
    }
    *(int *)setting_member_of(settings, directive) = (int)value;
    return NULL;
}

static const char *set_seconds(mdl_settings_t *settings, const directive_t *directive,
                               const char *word, apr_pool_t *p)
{
    apr_int64_t value = 0;
    const char *why = number_in_range(directive, word, &value, p);

    if (why) {
        return why;
    }
    *(apr_interval_time_t *)setting_member_of(settings, directive) = apr_time_from_sec(value);
    return NULL;
}

static const char *set_milliseconds(mdl_settings_t *settings, const directive_t *directive,
                                    const char *word, apr_pool_t *p)
{
    apr_int64_t value = 0;
    const char *why = number_in_range(directive, word, &value, p);

    if (why) {
        return why;
    }
    *(apr_interval_time_t *)setting_member_of(settings, directive) = apr_time_from_msec(value);
    return NULL;
}

static const char *setting_set_size(mdl_settings_t *settings, const directive_t *directive,
                                    const char *word, apr_pool_t *p)
{
    static const char units[] = "KMG";
    apr_size_t length = strlen(word);
    const char *unit = length ? strchr(units, apr_toupper(word[length - 1])) : NULL;
    int shift = 0;
    apr_int64_t value = 0;

    if (unit) {
        shift = 10 * (int)(unit - units + 1);
        length--;
    }
    if (!setting_parse_number(word, length, &value) || value > (directive->max >> shift) ||
        (value << shift) < directive->min) {
        return apr_psprintf(p,
                            "must be a number of bytes from %" APR_INT64_T_FMT
                            " to %" APR_INT64_T_FMT
                            "G, written as a whole number or with K, M or G after it, not \"%s\".",
                            directive->min, directive->max >> 30, word);
    }
    *(apr_int64_t *)setting_member_of(settings, directive) = value << shift;
    return NULL;
}

static const char *set_flag(mdl_settings_t *settings, const directive_t *directive,
                            const char *word, apr_pool_t *p)
{
    int *flag = setting_member_of(settings, directive);

    if (strcasecmp(word, "On") != 0 && strcasecmp(word, "Off") != 0) {
        return apr_psprintf(p, "must be On or Off, not \"%s\".", word);
    }
    *flag = strcasecmp(word, "On") == 0;
    return NULL;
}

static int setting_has_control_character(const char *text)
{
    for (; *text; text++) {
        if (apr_iscntrl(*text)) {
            return 1;
        }
    }
    return 0;
}

static int is_absolute_path(const char *path)
{
    return path[0] == '/' && strlen(path) <= MAX_PATH_LENGTH &&
           !setting_has_control_character(path);
}

static const char *set_path(mdl_settings_t *settings, const directive_t *directive,
                            const char *word, apr_pool_t *p)
{
    if (!is_absolute_path(word)) {
        return apr_psprintf(p,
                            "must be an absolute path, beginning with a slash and without control "
                            "characters, not \"%s\".",
                            word);
    }
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

static int has_only_url_characters(const char *text)
{
    for (; *text; text++) {
        if (*text <= 0x20 || *text >= 0x7f || strchr("\"<>\\^`{|}", *text)) {
            return 0;
        }
    }
    return 1;
}

static const char *set_public_url(mdl_settings_t *settings, const directive_t *directive,
                                  const char *word, apr_pool_t *p)
{
    apr_uri_t uri;
    apr_int64_t port = 0;
    apr_size_t length;
    char *url;

    if (!has_only_url_characters(word) || apr_uri_parse(p, word, &uri) != APR_SUCCESS ||
        !uri.scheme || !uri.hostname || !uri.hostname[0] ||
        (strcasecmp(uri.scheme, "https") != 0 && strcasecmp(uri.scheme, "http") != 0)) {
        return apr_psprintf(p,
                            "must be an absolute URL with https or http, such as "
                            "https://downloads.example.com/%s, not \"%s\".",
                            directive->unit, word);
    }
    if (uri.user || uri.query || uri.fragment) {
        return apr_psprintf(p,
                            "must have no user name, no \"?\" and no \"#\" in it, for paths are "
                            "appended to it; it is \"%s\".",
                            word);
    }
    /* apr_uri_parse cuts a large port down to 16 bits. */
    if (uri.port_str && (!setting_parse_number(uri.port_str, strlen(uri.port_str), &port) ||
                         port < 1 || port > MAX_PORT)) {
        return apr_psprintf(p, "must have a port from 1 to 65535 or none; it is \"%s\".", word);
    }

    url = apr_pstrdup(p, word);
    for (length = 0; length < strlen(uri.scheme) + 3 + strlen(uri.hostinfo); length++) {
        url[length] = (char)apr_tolower(url[length]);
    }
    for (length = strlen(url); url[length - 1] == '/'; length--) {
        url[length - 1] = '\0';
    }
    *(const char **)setting_member_of(settings, directive) = url;
    return NULL;
}

static int is_label(const char *label, apr_size_t length)
{
    apr_size_t i;

    if (length == 0 || length > MAX_LABEL_LENGTH || label[0] == '-' || label[length - 1] == '-') {
        return 0;
    }
    for (i = 0; i < length; i++) {
        if (!apr_isalnum(label[i]) && label[i] != '-' && label[i] != '_') {
            return 0;
        }
    }
    return 1;
}

/* The old ways of writing an IPv4 address (127.1, 0x7f.1, 2130706433) all end in a number. */
static int is_number_label(const char *label)
{
    if (label[0] == '0' && (label[1] == 'x' || label[1] == 'X')) {
        return label[2 + strspn(label + 2, "0123456789abcdefABCDEF")] == '\0';
    }
    return label[strspn(label, "0123456789")] == '\0';
}

static int is_host_name(const char *name)
{
    const char *label = name;

    if (strlen(name) > MAX_HOST_LENGTH) {
        return 0;
    }
    for (;;) {
        const char *dot = strchr(label, '.');

        if (!is_label(label, dot ? (apr_size_t)(dot - label) : strlen(label))) {
            return 0;
        }
        if (!dot) {
            return !is_number_label(label);
        }
        label = dot + 1;
    }
}

static const char *add_host(mdl_settings_t *settings, const directive_t *directive,
                            const char *word, apr_pool_t *p)
{
    apr_array_header_t *hosts = *(apr_array_header_t **)setting_member_of(settings, directive);
    const char *name = strncmp(word, "*.", 2) == 0 ? word + 2 : word;
    char *host;

    if (!is_host_name(name)) {
        return apr_psprintf(p,
                            "must list host names, such as files.example.com, or *.example.com for "
                            "every host under it (international names in their xn-- form); no "
                            "scheme, port, path or IP address; \"%s\" is none of these.",
                            word);
    }
    host = apr_pstrdup(p, word);
    for (name = host; *name; name++) {
        host[name - host] = (char)apr_tolower(*name);
    }
    APR_ARRAY_PUSH(hosts, const char *) = host;
    return NULL;
}

static const char *add_network(mdl_settings_t *settings, const directive_t *directive,
                               const char *word, apr_pool_t *p)
{
    apr_array_header_t *networks = *(apr_array_header_t **)setting_member_of(settings, directive);
    const char *slash = strchr(word, '/');
    const char *address = slash ? apr_pstrmemdup(p, word, (apr_size_t)(slash - word)) : word;
    unsigned char binary[16];
    apr_int64_t bits;
    apr_ipsubnet_t *network;

    /* apr_ipsubnet_create would take a part of an address too. */
    if (!slash || !setting_parse_number(slash + 1, strlen(slash + 1), &bits) ||
        (inet_pton(AF_INET, address, binary) != 1 && inet_pton(AF_INET6, address, binary) != 1) ||
        apr_ipsubnet_create(&network, address, slash + 1, p) != APR_SUCCESS) {
        return apr_psprintf(p,
                            "must list networks as address/bits, such as 10.1.0.0/16 or fd00::/8, "
                            "not \"%s\".",
                            word);
    }
    APR_ARRAY_PUSH(networks, apr_ipsubnet_t *) = network;
    return NULL;
}

static const char *add_port(mdl_settings_t *settings, const directive_t *directive,
                            const char *word, apr_pool_t *p)
{
    apr_array_header_t *ports = *(apr_array_header_t **)setting_member_of(settings, directive);
    apr_int64_t port = 0;

    if (strcmp(word, "*") == 0) {
        settings->ingest.any_port = 1;
        return NULL;
    }
    if (!setting_parse_number(word, strlen(word), &port) || port < directive->min ||
        port > directive->max) {
        return apr_psprintf(
            p, "must list ports from 1 to 65535, or be * for every port, not \"%s\".", word);
    }
    APR_ARRAY_PUSH(ports, int) = (int)port;
    return NULL;
}

/* What a browser sends as its page's origin (RFC 6454 section 6.2): scheme, host and a port that is
   not the scheme's own. */
static char *origin_of(const char *word, apr_pool_t *p)
{
    char *origin = apr_pstrdup(p, word);
    apr_uri_t uri;
    apr_int64_t port;

    for (char *c = origin; *c; c++) {
        *c = (char)apr_tolower(*c);
    }
    if (!has_only_url_characters(origin) || apr_uri_parse(p, origin, &uri) != APR_SUCCESS ||
        !uri.scheme || !uri.hostname || !uri.hostname[0] || strchr(uri.hostname, '*') || uri.user ||
        uri.path || uri.query || uri.fragment ||
        (strcmp(uri.scheme, "https") != 0 && strcmp(uri.scheme, "http") != 0)) {
        return NULL;
    }
    if (uri.port_str) {
        if (!setting_parse_number(uri.port_str, strlen(uri.port_str), &port) || port < 1 ||
            port > MAX_PORT) {
            return NULL;
        }
        if (port == apr_uri_port_of_scheme(uri.scheme)) {
            origin[strlen(origin) - strlen(uri.port_str) - 1] = '\0';
        }
    }
    return origin;
}

static const char *add_origin(mdl_settings_t *settings, const directive_t *directive,
                              const char *word, apr_pool_t *p)
{
    apr_array_header_t *origins = *(apr_array_header_t **)setting_member_of(settings, directive);
    const char *origin = strcmp(word, "*") == 0 ? "*" : origin_of(word, p);

    if (!origin) {
        return apr_psprintf(p,
                            "must list origins, such as https://admin.example.com, with no path "
                            "behind them, or be * for every origin, not \"%s\".",
                            word);
    }
    APR_ARRAY_PUSH(origins, const char *) = origin;
    return NULL;
}

static const char *set_transport(mdl_settings_t *settings, const directive_t *directive,
                                 const char *word, apr_pool_t *p)
{
    const char *why = NULL;

    if (!mdl_mailer_transport_valid(word, &why, p)) {
        return apr_pstrcat(p, "is not understood: ", why, NULL);
    }
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

static const char *set_mailbox(mdl_settings_t *settings, const directive_t *directive,
                               const char *word, apr_pool_t *p)
{
    const char *why = NULL;

    if (!mdl_mailbox_valid(word, &why, p)) {
        return apr_pstrcat(p, "is not understood: ", why, NULL);
    }
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

static const char *set_mail_from(mdl_settings_t *settings, const directive_t *directive,
                                 const char *word, apr_pool_t *p)
{
    if (!mdl_mime_address_valid(word)) {
        return apr_psprintf(p,
                            "must be an address, such as shop@example.com, not \"%s\"; the name "
                            "before it is that of the shop.",
                            word);
    }
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

static const char *set_tls(mdl_settings_t *settings, const directive_t *directive, const char *word,
                           apr_pool_t *p)
{
    mdl_mail_tls_t *tls = setting_member_of(settings, directive);

    if (strcasecmp(word, "required") == 0) {
        *tls = MDL_MAIL_TLS_REQUIRED;
    } else if (strcasecmp(word, "try") == 0) {
        *tls = MDL_MAIL_TLS_TRY;
    } else if (strcasecmp(word, "off") == 0) {
        *tls = MDL_MAIL_TLS_OFF;
    } else {
        return apr_psprintf(p, "must be required, try or off, not \"%s\".", word);
    }
    settings->mail_tls_given = 1;
    return NULL;
}

static const char *set_db_driver(mdl_settings_t *settings, const directive_t *directive,
                                 const char *word, apr_pool_t *p)
{
    if (strcmp(word, "sqlite3") != 0 && strcmp(word, "pgsql") != 0) {
        return apr_psprintf(p, "must be sqlite3 or pgsql for mod_downloads, not \"%s\".", word);
    }
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

/* The words may hold a password: no sentence repeats them. */
static const char *set_db_params(mdl_settings_t *settings, const directive_t *directive,
                                 const char *word, apr_pool_t *p)
{
    *(const char **)setting_member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

#define AT(member) offsetof(mdl_settings_t, member)
#define DAY        86400
#define GIB        (APR_INT64_C(1) << 30)

const char *const mdl_settings_template_names[] = {"email.subject", "email.txt",    "email.html",
                                                   "page.html",     "message.html", NULL};

static const directive_t directives[] = {
    {"DBDriver", NULL, set_db_driver, AT(db_driver), 0, 0, "", 0},
    {"DBDParams", NULL, set_db_params, AT(db_params), 0, 0, "", 0},
    {"DownloadsPublicURL", NULL, set_public_url, AT(public_url), 0, 0, "d", 0},
    {"DownloadsSecretFile", NULL, set_path, AT(secret_file), 0, 0, "", 0},
    {"DownloadsStorage", NULL, set_path, AT(storage), 0, 0, "", 0},
    {"DownloadsTemplates", NULL, set_path, AT(templates), 0, 0, "", 0},
    {"DownloadsMigrate", "Off", set_flag, AT(migrate), 0, 0, "", 0},
    {"DownloadsWorker", "On", set_flag, AT(worker), 0, 0, "", 0},
    {"DownloadsIngestAllowHost", NULL, add_host, AT(ingest.hosts), 0, 0, "", 1},
    {"DownloadsIngestAllowNetwork", NULL, add_network, AT(ingest.networks), 0, 0, "", 1},
    {"DownloadsIngestAllowHTTP", "Off", set_flag, AT(ingest.allow_http), 0, 0, "", 0},
    {"DownloadsIngestAllowPort", NULL, add_port, AT(ingest.ports), 1, MAX_PORT, "", 1},
    {"DownloadsIngestMaxSize", "5G", setting_set_size, AT(ingest.max_size), 1, 16384 * GIB, "", 0},
    {"DownloadsIngestConnectTimeout", "10", set_int, AT(ingest.connect_timeout_s), 1, 300,
     " of seconds", 0},
    {"DownloadsIngestStallTimeout", "60", set_int, AT(ingest.stall_timeout_s), 1, 3600,
     " of seconds", 0},
    {"DownloadsIngestTimeout", "21600", set_int, AT(ingest.total_timeout_s), 1, 7 * DAY,
     " of seconds", 0},
    {"DownloadsIngestConcurrency", "8", set_int, AT(ingest_concurrency), 1, 64, " of transfers", 0},
    {"DownloadsIngestAttempts", "5", set_int, AT(ingest_max_attempts), 1, 20, " of attempts", 0},
    {"DownloadsRetryDelay", "10000", set_milliseconds, AT(retry_delay), 1, 3600000,
     " of milliseconds", 0},
    {"DownloadsStorefrontCAFile", NULL, set_path, AT(storefront_ca_file), 0, 0, "", 0},
    {"DownloadsMailTransport", NULL, set_transport, AT(mail.transport), 0, 0, "", 0},
    {"DownloadsMailFrom", NULL, set_mail_from, AT(mail_from), 0, 0, "", 0},
    {"DownloadsMailCredentials", NULL, set_path, AT(mail_credentials), 0, 0, "", 0},
    {"DownloadsMailTLS", NULL, set_tls, AT(mail.tls), 0, 0, "", 0},
    {"DownloadsMailCAFile", NULL, set_path, AT(mail.ca_file), 0, 0, "", 0},
    {"DownloadsMailBounces", NULL, set_mailbox, AT(mail_bounces), 0, 0, "", 0},
    {"DownloadsIdempotencyRetention", "86400", set_seconds, AT(idempotency_retention), 1, 30 * DAY,
     " of seconds", 0},
    {"DownloadsRateLimit", "On", set_flag, AT(rate_limit), 0, 0, "", 0},
    {"DownloadsRateBurst", "60", set_int, AT(rate_burst), 1, 1000000, " of tokens", 0},
    {"DownloadsRateRefill", "60", set_int, AT(rate_refill), 1, 1000000, " of tokens", 0},
    {"DownloadsRateReadCost", "1", set_int, AT(rate_read_cost), 1, 1000, " of tokens", 0},
    {"DownloadsRateWriteCost", "2", set_int, AT(rate_write_cost), 1, 1000, " of tokens", 0},
    {"DownloadsUploadURL", NULL, set_public_url, AT(upload_url), 0, 0, "u", 0},
    {"DownloadsUploadOrigin", NULL, add_origin, AT(upload_origins), 0, 0, "", 1},
    {"DownloadsUploadMaxSize", "5G", setting_set_size, AT(upload_max_size), 1, 16384 * GIB, "", 0},
    {"DownloadsUploadLifetime", "86400", set_seconds, AT(upload_lifetime), 60, 30 * DAY,
     " of seconds", 0},
    {"DownloadsStorageQuota", "0", setting_set_size, AT(storage_quota), 0, 16384 * GIB, "", 0},
    {"DownloadsFraudWindow", "86400", set_seconds, AT(fraud_window), 60, 30 * DAY, " of seconds",
     0},
    {"DownloadsFraudCustomerOrders", "5", set_int, AT(fraud_customer_orders), 0, 10000,
     " of orders", 0},
    {"DownloadsFraudAddressOrders", "5", set_int, AT(fraud_address_orders), 0, 10000, " of orders",
     0},
    {"DownloadsFraudIPOrders", "10", set_int, AT(fraud_ip_orders), 0, 10000, " of orders", 0},
    {"DownloadsFraudDisposableDomains", NULL, set_path, AT(fraud_disposable_domains), 0, 0, "", 0},
    {"DownloadsFraudBlockedDomains", NULL, set_path, AT(fraud_blocked_domains), 0, 0, "", 0},
    {"DownloadsDownloadLimit", "10", set_int, AT(download_limit), 0, 100000, " of downloads", 0},
    {"DownloadsLinkLifetime", "300", set_seconds, AT(link_lifetime), 10, DAY, " of seconds", 0},
    {"DownloadsSessionLifetime", "86400", set_seconds, AT(session_lifetime), 60, 30 * DAY,
     " of seconds", 0},
    {"DownloadsSessionIdle", "60", set_seconds, AT(session_idle), 1, DAY, " of seconds", 0},
    {"DownloadsLeaseTime", "30", set_seconds, AT(lease_time), 2, 3600, " of seconds", 0},
    {"DownloadsPollInterval", "2", set_seconds, AT(poll_interval), 1, 60, " of seconds", 0},
};

#define DIRECTIVES (sizeof(directives) / sizeof(directives[0]))
#define REDIRECTS  3 /* contract, section 9 */

mdl_settings_t *mdl_settings_create(apr_pool_t *p)
{
    mdl_settings_t *settings = apr_pcalloc(p, sizeof(*settings));
    apr_size_t i;

    settings->ingest.hosts = apr_array_make(p, 4, sizeof(const char *));
    settings->ingest.networks = apr_array_make(p, 2, sizeof(apr_ipsubnet_t *));
    settings->ingest.ports = apr_array_make(p, 2, sizeof(int));
    settings->upload_origins = apr_array_make(p, 2, sizeof(const char *));
    settings->ingest.max_redirects = REDIRECTS;
    settings->mail.tls = MDL_MAIL_TLS_TRY;
    for (i = 0; i < DIRECTIVES; i++) {
        if (directives[i].standard) {
            directives[i].set(settings, &directives[i], directives[i].standard, p);
        }
    }
    return settings;
}

static const directive_t *find_directive(const char *name)
{
    apr_size_t i;

    for (i = 0; i < DIRECTIVES; i++) {
        if (strcasecmp(directives[i].name, name) == 0) {
            return &directives[i];
        }
    }
    return NULL;
}

const char *mdl_settings_set(mdl_settings_t *settings, const char *name, int argc,
                             const char *const *argv, apr_pool_t *p)
{
    const directive_t *directive = find_directive(name);
    int i;

    if (!directive) {
        return "is no directive of mod_downloads; check its spelling.";
    }
    if (strncasecmp(name, "Downloads", 9) == 0) {
        settings->configured = 1;
    }
    if (argc < 1) {
        return directive->many ? "needs at least one word after it." : "needs a word after it.";
    }
    if (argc > 1 && !directive->many) {
        return apr_psprintf(p, "takes one word, not %d: put quotes round a value with spaces.",
                            argc);
    }
    for (i = 0; i < argc; i++) {
        const char *why = directive->set(settings, directive, argv[i], p);

        if (why) {
            return why;
        }
    }
    return NULL;
}
