#include "core/settings/settings.h"

#include <string.h>

#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <apr_uri.h>

#include "base/crypto.h"
#include "base/http/address.h"
#include "base/text/templates.h"
#include "base/text/utf8.h"

#define MAX_CREDENTIALS_SIZE 2048
#define OBJECT_TIMEOUT_S     10 /* to connect, and to the first byte of an answer */
#define KEY_CHARACTERS                                                                             \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-.:@!$%&*~"

static void settings_problem_add(apr_array_header_t *problems, const char *sentence)
{
    APR_ARRAY_PUSH(problems, const char *) = sentence;
}

static void settings_check_required(const mdl_settings_t *settings, apr_array_header_t *problems)
{
    const char *secret_file = settings->secret_files->nelts > 0
                                  ? APR_ARRAY_IDX(settings->secret_files, 0, const char *)
                                  : NULL;
    const struct {
        const char *value;
        const char *sentence;
    } required[] = {
        {settings->public_url, "DownloadsPublicURL is missing: give the URL under which customers "
                               "reach the downloads-delivery handler, such as "
                               "https://downloads.example.com/d."},
        {secret_file, "DownloadsSecretFile is missing: give the absolute path of a file "
                      "of 32 or more random bytes, mode 0600."},
        {settings->storage.folder != NULL ? settings->storage.folder
                                          : settings->storage.objects.url,
         "DownloadsStorage is missing: give the absolute path of the folder "
         "where files are stored, or a bucket in DownloadsObjectStore."},
        {settings->templates, "DownloadsTemplates is missing: give the absolute path of the folder "
                              "of page and email templates."},
        {settings->mail.transport,
         "DownloadsMailTransport is missing: give smtp://host[:port], "
         "smtps://host[:port], sendmail:/path/of/the/program or maildir:/path."},
        {settings->mail_from, "DownloadsMailFrom is missing: give the address that emails come "
                              "from, such as shop@example.com."},
        {settings->db_driver, "DBDriver is missing: give sqlite3 or pgsql, outside of any "
                              "<VirtualHost>."},
        {settings->db_params, "DBDParams is missing: give the database's absolute path for "
                              "sqlite3, or a connection string for pgsql, outside of any "
                              "<VirtualHost>."},
    };

    for (apr_size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (required[i].value == NULL) {
            settings_problem_add(problems, required[i].sentence);
        }
    }
    if (settings->settings_url != NULL && settings->api_url == NULL) {
        settings_problem_add(problems,
                             "DownloadsAPIURL is missing: with DownloadsSettingsURL, give the URL "
                             "that the settings show as the API's base address, such as "
                             "https://downloads.example.com/api/v1.");
    }
}

/* A relative path would be a different file for httpd, its background process and downloadsctl. */
static void settings_check_database(const mdl_settings_t *settings, apr_array_header_t *problems)
{
    if (settings->db_driver != NULL && settings->db_params != NULL &&
        strcmp(settings->db_driver, "sqlite3") == 0 && settings->db_params[0] != '/') {
        settings_problem_add(problems,
                             "DBDParams must be the database file's absolute path, beginning with "
                             "a slash, when DBDriver is sqlite3.");
    }
}

static void settings_check_times(const mdl_settings_t *settings, apr_array_header_t *problems,
                                 apr_pool_t *p)
{
    const mdl_http_policy_t *ingest = &settings->ingest;

    if (settings->poll_interval >= settings->lease_time) {
        settings_problem_add(
            problems, apr_psprintf(p,
                                   "DownloadsPollInterval (%d s) must be less than "
                                   "DownloadsLeaseTime (%d s), or leases run out before they are "
                                   "renewed.",
                                   (int)apr_time_sec(settings->poll_interval),
                                   (int)apr_time_sec(settings->lease_time)));
    }
    if (ingest->connect_timeout_s > ingest->total_timeout_s) {
        settings_problem_add(problems,
                             apr_psprintf(p,
                                          "DownloadsIngestConnectTimeout (%d s) must not be more "
                                          "than DownloadsIngestTimeout (%d s).",
                                          ingest->connect_timeout_s, ingest->total_timeout_s));
    }
    if (ingest->stall_timeout_s > ingest->total_timeout_s) {
        settings_problem_add(problems,
                             apr_psprintf(p,
                                          "DownloadsIngestStallTimeout (%d s) must not be more "
                                          "than DownloadsIngestTimeout (%d s).",
                                          ingest->stall_timeout_s, ingest->total_timeout_s));
    }
}

static const char *unreadable_sentence(apr_status_t rv, apr_pool_t *p)
{
    char reason[120];

    return apr_psprintf(p, "can't be read (%s)%s", apr_strerror(rv, reason, sizeof reason),
                        APR_STATUS_IS_EACCES(rv) ? "; run as root or as its owner" : "");
}

/* Reads a file of credentials without its last line break.  Returns NULL, or what is wrong with the
   file, without quoting any of it. */
static const char *credentials_read(const char *path, char text[MAX_CREDENTIALS_SIZE + 2],
                                    apr_pool_t *p)
{
    apr_size_t length = MAX_CREDENTIALS_SIZE + 1;
    apr_finfo_t info;
    apr_file_t *file;
    apr_status_t rv;

    rv = apr_stat(&info, path, APR_FINFO_TYPE | APR_FINFO_PROT, p);
    if (rv != APR_SUCCESS && rv != APR_INCOMPLETE) {
        return unreadable_sentence(rv, p);
    }
    if (info.filetype != APR_REG) {
        return "is not a regular file";
    }
    if (info.protection &
        (APR_FPROT_GREAD | APR_FPROT_GWRITE | APR_FPROT_WREAD | APR_FPROT_WWRITE)) {
        return "is open to others than its owner: chmod 0600";
    }
    rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_OS_DEFAULT, p);
    if (rv == APR_SUCCESS) {
        rv = apr_file_read_full(file, text, length, &length);
        apr_file_close(file);
    }
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return unreadable_sentence(rv, p);
    }
    if (length > MAX_CREDENTIALS_SIZE || memchr(text, '\0', length) != NULL) {
        return "is longer than 2,048 bytes or has a NUL in it";
    }
    text[length] = '\0';
    if (length > 0 && text[length - 1] == '\n') {
        text[length - 1] = '\0';
    }
    return NULL;
}

static const char *mail_credentials_read(mdl_settings_t *settings, apr_pool_t *p)
{
    char line[MAX_CREDENTIALS_SIZE + 2];
    const char *why = credentials_read(settings->mail_credentials, line, p);
    char *colon = why == NULL ? strchr(line, ':') : NULL;

    if (why == NULL &&
        (colon == NULL || colon == line || !colon[1] || !mdl_utf8_is_name(line, sizeof line))) {
        why = "must be one line user:password, neither of them empty";
    }
    if (why == NULL) {
        *colon = '\0';
        settings->mail.user = apr_pstrdup(p, line);
        settings->mail.password = apr_pstrdup(p, colon + 1);
    }
    memset(line, 0, sizeof line);
    return why;
}

/* Access key, secret key and, for temporary credentials, a session token, a line each. */
static const char *object_key_read(mdl_settings_t *settings, apr_pool_t *p)
{
    mdl_object_config_t *objects = &settings->storage.objects;
    const char **const lines[] = {&objects->access_key, &objects->secret_key,
                                  &objects->session_token};
    char text[MAX_CREDENTIALS_SIZE + 2];
    const char *why = credentials_read(settings->object_key_file, text, p);
    char *rest = NULL, *line = why == NULL ? apr_strtok(text, "\r\n", &rest) : NULL;

    for (int i = 0; line != NULL && why == NULL; i++, line = apr_strtok(NULL, "\r\n", &rest)) {
        if (i == 3 || line[strspn(line, KEY_CHARACTERS)] != '\0') {
            why = "must be an access key and a secret key, a line each";
        } else {
            *lines[i] = apr_pstrdup(p, line);
        }
    }
    if (why == NULL && objects->secret_key == NULL) {
        why = "must be an access key and a secret key, a line each";
    }
    memset(text, 0, sizeof text);
    return why;
}

static void settings_check_rate(mdl_settings_t *settings, apr_array_header_t *problems)
{
    if (settings->rate_limit && (settings->rate_burst < settings->rate_read_cost ||
                                 settings->rate_burst < settings->rate_write_cost)) {
        settings_problem_add(problems,
                             "DownloadsRateBurst is less than one request costs, so that none "
                             "would ever be let in: make it at least DownloadsRateReadCost and "
                             "DownloadsRateWriteCost.");
    }
}

static int is_file(const char *path, apr_pool_t *p)
{
    apr_finfo_t info;

    return apr_stat(&info, path, APR_FINFO_TYPE, p) == APR_SUCCESS && info.filetype == APR_REG;
}

static void settings_check_file(const char *directive, const char *path,
                                apr_array_header_t *problems, apr_pool_t *p)
{
    if (path != NULL && !is_file(path, p)) {
        settings_problem_add(problems,
                             apr_psprintf(p, "%s: there is no file %s.", directive, path));
    }
}

static void settings_check_certificates(const char *directive, const char *path,
                                        apr_array_header_t *problems, apr_pool_t *p)
{
    const char *why = NULL;
    apr_file_t *file;
    apr_status_t rv;

    settings_check_file(directive, path, problems, p);
    if (path == NULL || !is_file(path, p)) {
        return;
    }
    rv = apr_file_open(&file, path, APR_FOPEN_READ, APR_OS_DEFAULT, p);
    if (rv != APR_SUCCESS) {
        why = unreadable_sentence(rv, p);
    } else {
        apr_file_close(file);
        if (mdl_certificates_in(path) == 0) {
            why = "must hold certificates in PEM form, and none that is broken";
        }
    }
    if (why != NULL) {
        settings_problem_add(problems,
                             apr_psprintf(p, "%s: the file %s %s.", directive, path, why));
    }
}

/* Whether the URL's host is this machine, by its name or address. */
static int is_this_host(const char *url, apr_pool_t *p)
{
    apr_uri_t uri;
    const char *address;

    if (apr_uri_parse(p, url, &uri) != APR_SUCCESS || uri.hostname == NULL) {
        return 0;
    }
    address = mdl_address_text(uri.hostname, p);
    return address == NULL ? strcasecmp(uri.hostname, "localhost") == 0
                           : strncmp(address, "127.", 4) == 0 ||
                                 strcmp(address, "0000:0000:0000:0000:0000:0000:0000:0001") == 0;
}

/* TLS is off by default to a mail server on this machine: nobody can listen, and its certificate is
   hardly valid for "localhost".  Credentials or a CA file show that TLS is wanted. */
static mdl_mail_tls_t mail_tls_default(const mdl_settings_t *settings, apr_pool_t *p)
{
    const char *transport = settings->mail.transport;

    return transport != NULL && is_this_host(transport, p) && settings->mail_credentials == NULL &&
                   settings->mail.ca_file == NULL
               ? MDL_MAIL_TLS_OFF
               : MDL_MAIL_TLS_REQUIRED;
}

static void settings_check_mail(mdl_settings_t *settings, apr_array_header_t *problems,
                                apr_pool_t *p)
{
    const char *transport = settings->mail.transport;
    int smtp = transport != NULL && strncmp(transport, "smtp", 4) == 0;
    int smtps = transport != NULL && strncmp(transport, "smtps:", 6) == 0;
    const char *why;

    if (!settings->mail_tls_given) {
        settings->mail.tls = mail_tls_default(settings, p);
    }
    if (transport != NULL && !smtp && settings->mail_credentials != NULL) {
        settings_problem_add(problems,
                             "DownloadsMailCredentials is of use only when DownloadsMailTransport "
                             "is smtp:// or smtps://: remove one of the two.");
    }
    if (transport != NULL && !smtp &&
        (settings->mail_tls_given || settings->mail.ca_file != NULL)) {
        settings_problem_add(problems,
                             "DownloadsMailTLS and DownloadsMailCAFile are of use only when "
                             "DownloadsMailTransport is smtp:// or smtps://: remove them.");
    }
    if (smtps && settings->mail_tls_given && settings->mail.tls == MDL_MAIL_TLS_OFF) {
        settings_problem_add(problems,
                             "DownloadsMailTLS off contradicts smtps:// in "
                             "DownloadsMailTransport: write smtp://, or remove DownloadsMailTLS.");
    }
    if (settings->mail_credentials != NULL && (why = mail_credentials_read(settings, p)) != NULL) {
        settings_problem_add(problems, apr_psprintf(p, "DownloadsMailCredentials: the file %s %s.",
                                                    settings->mail_credentials, why));
    }
    settings_check_certificates("DownloadsMailCAFile", settings->mail.ca_file, problems, p);
}

static void settings_check_public_url(const mdl_settings_t *settings, apr_array_header_t *problems,
                                      apr_pool_t *p)
{
    const char *url = settings->storage.objects.public_url;

    if (url != NULL && !settings->object_redirect) {
        settings_problem_add(problems, "DownloadsObjectPublicURL is of use only with "
                                       "DownloadsObjectDelivery redirect.");
    } else if (url != NULL && settings->require_tls && strncmp(url, "https:", 6) != 0 &&
               !is_this_host(url, p)) {
        settings_problem_add(problems, "DownloadsObjectPublicURL must be an https URL, or files "
                                       "would cross the network in clear.");
    }
}

static void settings_check_objects(mdl_settings_t *settings, apr_array_header_t *problems,
                                   apr_pool_t *p)
{
    mdl_object_config_t *objects = &settings->storage.objects;
    mdl_object_store_t *store;
    const char *why;

    if (objects->url == NULL) {
        if (settings->object_key_file != NULL || settings->object_redirect) {
            settings_problem_add(problems, "DownloadsObjectStore is missing: "
                                           "DownloadsObjectKeyFile and DownloadsObjectDelivery are "
                                           "of use only with it.");
        }
        return;
    }
    objects->timeout_s = OBJECT_TIMEOUT_S;
    if (settings->require_tls && strncmp(objects->url, "https:", 6) != 0 &&
        !is_this_host(objects->url, p)) {
        settings_problem_add(problems, "DownloadsObjectStore must be an https URL, or files would "
                                       "cross the network in clear.");
    }
    why = settings->object_key_file == NULL ? NULL : object_key_read(settings, p);
    if (settings->object_key_file == NULL) {
        settings_problem_add(problems, "DownloadsObjectKeyFile is missing: give the absolute path "
                                       "of a file with access key and secret key, mode 0600.");
    } else if (why != NULL) {
        settings_problem_add(problems, apr_psprintf(p, "DownloadsObjectKeyFile: the file %s %s.",
                                                    settings->object_key_file, why));
    }
    settings_check_certificates("DownloadsObjectCAFile", objects->ca_file, problems, p);
    settings_check_public_url(settings, problems, p);
    if (objects->secret_key != NULL &&
        mdl_object_store_create(&store, objects, &why, p) != APR_SUCCESS) {
        settings_problem_add(problems, apr_pstrcat(p, "DownloadsObjectStore: ", why, NULL));
    }
}

static void settings_check_bounces(const mdl_settings_t *settings, apr_array_header_t *problems,
                                   apr_pool_t *p)
{
    if (settings->mail_bounces != NULL && settings->mail_from != NULL &&
        strchr(settings->mail_from, '@') - settings->mail_from > MDL_MAIL_FROM_LOCAL_MAX) {
        settings_problem_add(problems,
                             apr_psprintf(p,
                                          "DownloadsMailFrom may have %d bytes before the \"@\" "
                                          "with DownloadsMailBounces, for each email has a longer "
                                          "address of its own to come back to.",
                                          MDL_MAIL_FROM_LOCAL_MAX));
    }
}

void mdl_settings_check(mdl_settings_t *settings, apr_array_header_t *problems, apr_pool_t *p)
{
    settings_check_required(settings, problems);
    settings_check_database(settings, problems);
    settings_check_times(settings, problems, p);
    settings_check_rate(settings, problems);
    settings_check_mail(settings, problems, p);
    settings_check_objects(settings, problems, p);
    settings_check_certificates("DownloadsStorefrontCAFile", settings->storefront.ca_file, problems,
                                p);
    settings_check_file("DownloadsFraudDisposableDomains", settings->fraud_disposable_domains,
                        problems, p);
    settings_check_file("DownloadsFraudBlockedDomains", settings->fraud_blocked_domains, problems,
                        p);
    settings_check_bounces(settings, problems, p);
}

/* RFC 2606 reserves example.com and all names under it for examples. */
static int is_example(const char *host)
{
    const char *end = host + strcspn(host, ":/");
    apr_ssize_t before = end - host - 11;

    return before >= 0 && strncasecmp(end - 11, "example.com", 11) == 0 &&
           (before == 0 || end[-12] == '.');
}

void mdl_settings_check_templates(const mdl_settings_t *settings, apr_array_header_t *problems,
                                  apr_pool_t *p)
{
    mdl_templates_read(settings->templates, mdl_settings_template_names, problems, p);
    if (settings->settings_url != NULL) {
        mdl_templates_read_settings(settings->templates, mdl_settings_tab_template_names, problems,
                                    p);
    }
}

/* Warns of http URLs that DownloadsRequireTLS refuses. */
static void settings_warn_clear(const char *directive, const char *url,
                                apr_array_header_t *warnings, apr_pool_t *p)
{
    if (url != NULL && strncmp(url, "http://", 7) == 0 && !is_this_host(url, p)) {
        settings_problem_add(
            warnings,
            apr_psprintf(p,
                         "%s is %s, and DownloadsRequireTLS refuses what comes in clear: make it "
                         "https, also where a proxy ends TLS (see DownloadsTLSProxy).",
                         directive, url));
    }
}

void mdl_settings_warn(const mdl_settings_t *settings, apr_array_header_t *warnings, apr_pool_t *p)
{
    const char *transport = settings->mail.transport;
    /* Emails in a Maildir reach nobody. */
    int sends = transport != NULL && strncmp(transport, "maildir:", 8) != 0;
    const struct {
        const char *directive;
        const char *value;
        const char *before_host;
    } named[] = {
        {"DownloadsPublicURL", settings->public_url, "://"},
        {"DownloadsSettingsURL", settings->settings_url, "://"},
        {"DownloadsAPIURL", settings->api_url, "://"},
        {"DownloadsUploadURL", settings->upload_url, "://"},
        {"DownloadsMailFrom", sends ? settings->mail_from : NULL, "@"},
    };

    for (apr_size_t i = 0; i < sizeof named / sizeof *named; i++) {
        const char *value = named[i].value;
        const char *before = named[i].before_host;

        if (value != NULL && is_example(strstr(value, before) + strlen(before))) {
            settings_problem_add(warnings,
                                 apr_psprintf(p, "%s is still the sample's, %s: put in your own.",
                                              named[i].directive, value));
        }
    }
    if (settings->require_tls) {
        settings_warn_clear("DownloadsPublicURL", settings->public_url, warnings, p);
        settings_warn_clear("DownloadsSettingsURL", settings->settings_url, warnings, p);
        settings_warn_clear("DownloadsAPIURL", settings->api_url, warnings, p);
        settings_warn_clear("DownloadsUploadURL", settings->upload_url, warnings, p);
    }
}
