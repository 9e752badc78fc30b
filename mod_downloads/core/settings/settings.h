/*
 * The Downloads* directives: a table of names, ranges and defaults, for the module and for
 * downloadsctl. httpd passes each directive's words to mdl_settings_set; the command reads the same
 * file by mdl_settings_read.
 *
 * The directives are global to the server: one httpd runs one downloads service.
 */
#ifndef MDL_CORE_SETTINGS_SETTINGS_H
#define MDL_CORE_SETTINGS_SETTINGS_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "base/http/policy.h"
#include "base/mail/transport.h"
#include "core/settings/keep.h"
#include "storage/storage.h"

/** The most bytes of DownloadsMailFrom's local part with DownloadsMailBounces: with the bounce
    token (core/order/bounce.h) it has the 64 bytes that RFC 5321, section 4.5.3.1.1 allows. */
#define MDL_MAIL_FROM_LOCAL_MAX 31

/** The largest DownloadsMailConnections and DownloadsIngestConcurrency: threads of a lane. */
#define MDL_MAX_RUNNERS 64

/** The templates that DownloadsTemplates must hold (docs/templates.md), ended by NULL. */
extern const char *const mdl_settings_template_names[];

/** The templates that its folder "settings" must hold if DownloadsSettingsURL is set. */
extern const char *const mdl_settings_tab_template_names[];

typedef struct {
    int configured;            /* whether any Downloads* directive was given */
    apr_array_header_t *given; /* mdl_settings_given_t: the valid lines of mdl_settings_read */

    const char *db_driver; /* DBDriver and DBDParams of mod_dbd */
    const char *db_params;
    int db_max;         /* DBDMax: connections of one process */
    int db_connections; /* of the whole httpd, at most */

    const char *public_url;           /* no trailing slash */
    apr_array_header_t *secret_files; /* const char *: paths; the first secret signs */
    mdl_storage_config_t storage;
    const char *object_key_file; /* absolute path, or NULL */
    int object_redirect;         /* whether clients fetch files from the object store */
    const char *templates;       /* absolute path */
    int require_tls;
    apr_array_header_t *tls_proxies; /* apr_ipsubnet_t *: trusted to report TLS */
    int migrate;                     /* whether to migrate at start */
    int worker;

    mdl_http_policy_t ingest; /* allowlist, networks, sizes and times */
    int ingest_concurrency;   /* bulk transfers at once */
    int ingest_max_attempts;
    apr_interval_time_t retry_delay; /* before the second attempt; doubles each time */

    /* Where a shop may have requests sent, besides https at public addresses: networks, ports and
       allow_http; for storefront also ca_file.  Each policy applies to its own requests only. */
    mdl_http_policy_t webhook;
    mdl_http_policy_t storefront;

    mdl_mail_config_t mail;       /* transport, user, password, tls, ca_file */
    int mail_tls_given;           /* else mail.tls depends on the host and the credentials */
    const char *mail_credentials; /* path, or NULL */
    const char *mail_from;        /* email address */
    const char *mail_bounces;     /* "maildir:/path", "mbox:/path"; NULL: not read */
    int mail_connections;         /* emails sent at once, each over its own connection */
    int mail_rate;                /* a shop's emails an hour; 0: no limit */

    apr_interval_time_t idempotency_retention;
    mdl_keep_t keep;

    int rate_limit; /* On or Off; the next four are in tokens */
    int rate_burst;
    int rate_refill; /* each minute */
    int rate_read_cost;
    int rate_write_cost;
    int rate_shop_factor; /* all keys of a shop together have this many times a key's tokens */
    int rate_pages;       /* this and the next two: requests a minute; 0: no limit */
    int rate_parts;
    int rate_network;

    const char *settings_url;     /* no trailing slash; NULL: no settings in the browser */
    const char *settings_sign_in; /* httpd's provider that checks passwords; NULL: httpd's own
                                     configuration authenticates users */
    const char *api_url;          /* no trailing slash; only shown in the settings */

    const char *upload_url;             /* no trailing slash; NULL: no direct uploads */
    apr_array_header_t *upload_origins; /* const char *: "https://host[:port]" or "*" */
    apr_int64_t upload_max_size;
    int upload_max_open; /* uploads of one shop at a time */
    apr_interval_time_t upload_lifetime;
    apr_int64_t storage_quota; /* bytes of one shop; 0: no limit */

    apr_interval_time_t fraud_window; /* window of the next three; 0 orders: no signal */
    int fraud_customer_orders;
    int fraud_address_orders;
    int fraud_ip_orders;
    const char *fraud_disposable_domains; /* this and the next: path, or NULL */
    const char *fraud_blocked_domains;

    int download_limit;                   /* 0: unlimited */
    apr_interval_time_t link_lifetime;    /* until a signed file URL must have been used */
    apr_interval_time_t session_lifetime; /* how long a link goes on after its first bytes */
    apr_interval_time_t session_idle;     /* after it, an incomplete download is given back */
    apr_interval_time_t lease_time;
    apr_interval_time_t poll_interval;

    const char *alert_command; /* absolute path, or NULL */
    const char *alert_email;   /* address, or NULL */
    apr_interval_time_t alert_interval;
} mdl_settings_t;

/** A line of a configuration file that has set a directive. */
typedef struct {
    const char *name;  /* in any case */
    const char *value; /* its words, with a space between */
    const char *file;
    int line;
} mdl_settings_given_t;

/** A name and its help text, for httpd's command table. */
#define MDL_DIRECTIVES(X)                                                                          \
    X("DownloadsPublicURL", "the URL under which customers reach the downloads-delivery handler")  \
    X("DownloadsSecretFile", "file of 32 or more random bytes, mode 0600")                         \
    X("DownloadsStorage", "folder where files are stored; the httpd user must own it")             \
    X("DownloadsObjectStore", "the URL of an S3 bucket where new files are stored")                \
    X("DownloadsObjectRegion", "the bucket's region")                                              \
    X("DownloadsObjectKeyFile", "file with access key and secret key, a line each, mode 0600")     \
    X("DownloadsObjectCAFile", "certificates to trust for the object store, not the system's")     \
    X("DownloadsObjectDelivery", "proxy, or redirect: clients fetch files from the object store")  \
    X("DownloadsObjectPublicURL", "the bucket's URL for clients, with redirect")                   \
    X("DownloadsTemplates", "folder of page and email templates")                                  \
    X("DownloadsRequireTLS", "On: refuse requests in clear, except those of this machine")         \
    X("DownloadsTLSProxy", "networks of proxies that may say X-Forwarded-Proto: https, as CIDR")   \
    X("DownloadsMigrate", "On: bring the database's schema up to date at start")                   \
    X("DownloadsWorker", "On: run the background process")                                         \
    X("DownloadsIngestAllowHost", "hosts to import from: exact names or *.suffix")                 \
    X("DownloadsIngestAllowNetwork", "private networks that imports may reach, as CIDR")           \
    X("DownloadsIngestAllowHTTP", "On: import over plain http too")                                \
    X("DownloadsIngestAllowPort", "ports beside 443 (and 80 with http), or * for every port")      \
    X("DownloadsIngestMaxSize", "largest file to import, in bytes or with K, M, G")                \
    X("DownloadsIngestConnectTimeout", "seconds")                                                  \
    X("DownloadsIngestStallTimeout", "seconds under 1 KiB/s before a transfer is given up")        \
    X("DownloadsIngestTimeout", "seconds that one attempt may take in all")                        \
    X("DownloadsIngestConcurrency", "large transfers at once")                                     \
    X("DownloadsIngestAttempts", "attempts before an import fails")                                \
    X("DownloadsRetryDelay", "milliseconds before the second attempt; doubles each time")          \
    X("DownloadsWebhookAllowNetwork", "private networks that webhooks may be sent to, as CIDR")    \
    X("DownloadsWebhookAllowHTTP", "On: webhooks over plain http too")                             \
    X("DownloadsWebhookAllowPort", "ports beside 443 (and 80 with http), or * for every port")     \
    X("DownloadsStorefrontAllowNetwork", "private networks that storefronts may be in, as CIDR")   \
    X("DownloadsStorefrontAllowHTTP", "On: storefronts over plain http too")                       \
    X("DownloadsStorefrontAllowPort", "ports beside 443 (and 80 with http), or * for every port")  \
    X("DownloadsStorefrontCAFile",                                                                 \
      "certificates to trust for storefronts instead of the system's")                             \
    X("DownloadsMailTransport", "smtp://, smtps://, sendmail:/path or maildir:/path")              \
    X("DownloadsMailFrom", "the address that emails come from")                                    \
    X("DownloadsMailCredentials", "file with one line user:password, mode 0600")                   \
    X("DownloadsMailTLS", "required, try or off")                                                  \
    X("DownloadsMailCAFile", "certificates to trust for SMTP instead of the system's")             \
    X("DownloadsMailBounces", "maildir:/path or mbox:/path where mail that comes back is put")     \
    X("DownloadsMailRate", "emails of one shop an hour, 0: no limit")                              \
    X("DownloadsMailConnections", "connections to the mail server at once")                        \
    X("DownloadsIdempotencyRetention", "seconds that an Idempotency-Key is remembered")            \
    X("DownloadsKeep", "what is kept for how many days, such as jobs=30 or audit=forever")         \
    X("DownloadsRateLimit", "On: limit the requests of each API key")                              \
    X("DownloadsRateBurst", "tokens that a key can save up")                                       \
    X("DownloadsRateRefill", "tokens that a key gets each minute")                                 \
    X("DownloadsRateReadCost", "tokens of a GET")                                                  \
    X("DownloadsRateWriteCost", "tokens of any other request")                                     \
    X("DownloadsRateShopFactor", "times a key's tokens that all keys of a shop have together")     \
    X("DownloadsRatePages", "requests a minute to the page of one order")                          \
    X("DownloadsRateParts", "requests a minute for less than 1 MiB of the files of one order")     \
    X("DownloadsRateNetwork", "requests a minute of a client's network without a valid key")       \
    X("DownloadsSettingsURL", "the URL under which staff reach the downloads-settings handler")    \
    X("DownloadsSettingsSignIn",                                                                   \
      "the authn provider, such as file, that checks the staff's passwords")                       \
    X("DownloadsAPIURL", "the URL under which integrators reach the downloads-api handler")        \
    X("DownloadsUploadURL", "the URL under which clients reach the downloads-upload handler")      \
    X("DownloadsUploadOrigin", "origins whose pages may upload from a browser, or *")              \
    X("DownloadsUploadMaxSize", "largest file to upload, in bytes or with K, M, G")                \
    X("DownloadsUploadMaxOpen", "uploads of one shop that may be open at a time")                  \
    X("DownloadsUploadLifetime", "seconds within which an upload must be completed")               \
    X("DownloadsStorageQuota", "bytes that one shop's assets and uploads may take, 0: no limit")   \
    X("DownloadsStorageReserve", "bytes that imports and uploads leave free on the disk")          \
    X("DownloadsFraudWindow", "seconds in which the fraud check counts orders")                    \
    X("DownloadsFraudCustomerOrders", "further orders of a customer that are a signal, 0: none")   \
    X("DownloadsFraudAddressOrders", "further orders with an email address, likewise")             \
    X("DownloadsFraudIPOrders", "further orders from an IP address, likewise")                     \
    X("DownloadsFraudDisposableDomains", "file of domains that give out throw-away addresses")     \
    X("DownloadsFraudBlockedDomains", "file of domains whose addresses are not trusted")           \
    X("DownloadsDownloadLimit", "downloads of each file that a purchase includes, 0: unlimited")   \
    X("DownloadsLinkLifetime", "seconds within which a file's link must be used")                  \
    X("DownloadsSessionLifetime", "seconds for which a link that began to send goes on")           \
    X("DownloadsSessionIdle",                                                                      \
      "seconds after which a download that stopped before its end is given back")                  \
    X("DownloadsLeaseTime", "seconds after which a silent worker's job is taken over")             \
    X("DownloadsPollInterval", "seconds between looks for jobs of other nodes")                    \
    X("DownloadsAlertCommand", "program that is run when something fails, and when it is well")    \
    X("DownloadsAlertEmail", "the operator's address, which gets an email then")                   \
    X("DownloadsAlertInterval", "seconds between the tests that alerts come from")

/** Settings with all defaults, in p; strings without a default are NULL. */
mdl_settings_t *mdl_settings_create(apr_pool_t *p);

/**
 * Sets a directive, including DBDriver and DBDParams, from its words, which are copied to p.  The
 * name may be in any case.  A directive that takes several words adds to those of earlier lines; of
 * any other, the last line counts.  Returns NULL, or the rest of a sentence that begins with the
 * directive's name and says what is wrong and what is allowed.  Reads no file and looks up no name.
 */
const char *mdl_settings_set(mdl_settings_t *settings, const char *name, int argc,
                             const char *const *argv, apr_pool_t *p);

/** Whether there is a directive i, counted from 0: its name, the word of its default or NULL, and
    whether its lines add to each other. */
int mdl_settings_directive(apr_size_t i, const char **name, const char **standard, int *is_list);

/**
 * Checks what can be checked without a database once all directives are set: missing or
 * contradictory values, and the files of credentials, certificates and domains.  Appends a sentence
 * (const char *) with the directive's name to problems for each fault.  Fills mail.user,
 * mail.password and mail.tls.
 */
void mdl_settings_check(mdl_settings_t *settings, apr_array_header_t *problems, apr_pool_t *p);

/** Reads all templates that DownloadsTemplates must hold, and appends a sentence (const char *) to
    problems for each that is missing or faulty. */
void mdl_settings_check_templates(const mdl_settings_t *settings, apr_array_header_t *problems,
                                  apr_pool_t *p);

/** The host of DownloadsPublicURL, in p: the right side of a Message-ID. */
const char *mdl_settings_public_host(const mdl_settings_t *settings, apr_pool_t *p);

/**
 * Finds values that can't be intended: those of the sample configuration, and http URLs that
 * DownloadsRequireTLS refuses.  Appends a sentence (const char *) to warnings for each.
 */
void mdl_settings_warn(const mdl_settings_t *settings, apr_array_header_t *warnings, apr_pool_t *p);

/**
 * Reads a configuration file for downloadsctl, in httpd's syntax: comments, quotes, a backslash at
 * a line's end, and ${NAME} from the environment or an earlier Define.  Sets Downloads*, DBDriver
 * and DBDParams; skips other directives, section tags, and all of <VirtualHost>.  Follows Include
 * and IncludeOptional (wildcards in the last segment), relative to the file's folder.  Appends
 * "file:line: sentence" (const char *) to problems for each faulty line, 20 at most; the other
 * lines still take effect.
 */
void mdl_settings_read(mdl_settings_t *settings, const char *path, apr_array_header_t *problems,
                       apr_pool_t *p);

#endif
