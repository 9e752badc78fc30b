#include "core/settings/settings.h"

#include <stddef.h>
#include <string.h>

#include <apr_network_io.h>
#include <apr_strings.h>
#include <apr_uri.h>

#include "core/settings/setters.h"

#define DAY           86400
#define GIB           (APR_INT64_C(1) << 30)
#define MAX_REDIRECTS 10 /* contract, section 9 */

const char *const mdl_settings_template_names[] = {"declaration.txt",
                                                   "email.subject",
                                                   "email.txt",
                                                   "email.html",
                                                   "webhook_disabled.subject",
                                                   "webhook_disabled.txt",
                                                   "webhook_disabled.html",
                                                   "license_keys_low.subject",
                                                   "license_keys_low.txt",
                                                   "license_keys_low.html",
                                                   "notices.subject",
                                                   "notices.txt",
                                                   "notices.html",
                                                   "confirm.subject",
                                                   "confirm.txt",
                                                   "confirm.html",
                                                   "test.subject",
                                                   "confirm_page.html",
                                                   "news.subject",
                                                   "news.txt",
                                                   "news.html",
                                                   "unsubscribe_page.html",
                                                   "help_page.html",
                                                   "find.subject",
                                                   "find.txt",
                                                   "find.html",
                                                   "find_page.html",
                                                   "help.subject",
                                                   "help.txt",
                                                   "help.html",
                                                   "page.html",
                                                   "message.html",
                                                   NULL};

const char *const mdl_settings_tab_template_names[] = {"sign_in.html",
                                                       "overview.html",
                                                       "keys.html",
                                                       "key_created.html",
                                                       "key_revoke.html",
                                                       "license_keys.html",
                                                       "license_key_stock.html",
                                                       "webhooks.html",
                                                       "webhook.html",
                                                       "webhook_secret.html",
                                                       "webhook_delete.html",
                                                       "shops.html",
                                                       "health.html",
                                                       "shop_block.html",
                                                       "shop.html",
                                                       "members.html",
                                                       "audit.html",
                                                       "order_by_hand.html",
                                                       "product_buyers.html",
                                                       "customer_merge.html",
                                                       "orders.html",
                                                       "search.html",
                                                       "order.html",
                                                       "order_evidence.html",
                                                       "emails.html",
                                                       "email_preview.html",
                                                       "own_emails.html",
                                                       "products.html",
                                                       "product.html",
                                                       "product_delete.html",
                                                       "files.html",
                                                       "file.html",
                                                       "packs.html",
                                                       "pack.html",
                                                       "links.html",
                                                       "link.html",
                                                       "categories.html",
                                                       "category.html",
                                                       "upload.html",
                                                       "uploads.html",
                                                       "message.html",
                                                       NULL};

#define AT(member_) offsetof(mdl_settings_t, member_)

#define TEXT(name_, set_, member_)                                                                 \
    {                                                                                              \
        .name = name_, .set = set_, .member = AT(member_)                                          \
    }
#define LIST(name_, set_, member_)                                                                 \
    {                                                                                              \
        .name = name_, .set = set_, .member = AT(member_), .is_list = 1                            \
    }
#define URL(name_, member_, path_)                                                                 \
    {                                                                                              \
        .name = name_, .set = mdl_set_public_url, .member = AT(member_), .path = path_             \
    }
#define FLAG(name_, standard_, member_)                                                            \
    {                                                                                              \
        .name = name_, .standard = standard_, .set = mdl_set_flag, .member = AT(member_)           \
    }
#define RANGE(name_, standard_, set_, member_, min_, max_, scale_, unit_)                          \
    {                                                                                              \
        .name = name_, .standard = standard_, .set = set_, .member = AT(member_), .min = min_,     \
        .max = max_, .scale = scale_, .unit = unit_                                                \
    }
#define SIZE(name_, standard_, member_, min_, max_)                                                \
    RANGE(name_, standard_, mdl_set_size, member_, min_, max_, 0, NULL)
#define NUMBER(name_, standard_, member_, min_, max_, unit_)                                       \
    RANGE(name_, standard_, mdl_set_number, member_, min_, max_, 0, unit_)
#define SECONDS(name_, standard_, member_, min_, max_)                                             \
    RANGE(name_, standard_, mdl_set_number, member_, min_, max_, APR_USEC_PER_SEC, " of seconds")
#define MILLISECONDS(name_, standard_, member_, min_, max_)                                        \
    RANGE(name_, standard_, mdl_set_number, member_, min_, max_, 1000, " of milliseconds")
#define REACH(purpose_, policy_)                                                                   \
    LIST(purpose_ "AllowNetwork", mdl_add_network, policy_.networks),                              \
        FLAG(purpose_ "AllowHTTP", "Off", policy_.allow_http),                                     \
        LIST(purpose_ "AllowPort", mdl_add_port, policy_)

static const mdl_directive_t directives[] = {
    TEXT("DBDriver", mdl_set_db_driver, db_driver),
    TEXT("DBDParams", mdl_set_text, db_params),
    URL("DownloadsPublicURL", public_url, "d"),
    LIST("DownloadsSecretFile", mdl_add_secret_file, secret_files),
    TEXT("DownloadsStorage", mdl_set_path, storage.folder),
    URL("DownloadsObjectStore", storage.objects.url, "bucket"),
    {.name = "DownloadsObjectRegion",
     .set = mdl_set_region,
     .member = AT(storage.objects.region),
     .standard = "us-east-1"},
    TEXT("DownloadsObjectKeyFile", mdl_set_path, object_key_file),
    TEXT("DownloadsObjectCAFile", mdl_set_path, storage.objects.ca_file),
    {.name = "DownloadsObjectDelivery",
     .set = mdl_set_delivery,
     .member = AT(object_redirect),
     .standard = "proxy"},
    URL("DownloadsObjectPublicURL", storage.objects.public_url, "bucket"),
    TEXT("DownloadsTemplates", mdl_set_path, templates),
    FLAG("DownloadsRequireTLS", "On", require_tls),
    LIST("DownloadsTLSProxy", mdl_add_network, tls_proxies),
    FLAG("DownloadsMigrate", "Off", migrate),
    FLAG("DownloadsWorker", "On", worker),
    LIST("DownloadsIngestAllowHost", mdl_add_host, ingest.hosts),
    REACH("DownloadsIngest", ingest),
    SIZE("DownloadsIngestMaxSize", "5G", ingest.max_size, 1, 16384 * GIB),
    NUMBER("DownloadsIngestConnectTimeout", "10", ingest.connect_timeout_s, 1, 300, " of seconds"),
    NUMBER("DownloadsIngestStallTimeout", "60", ingest.stall_timeout_s, 1, 3600, " of seconds"),
    NUMBER("DownloadsIngestTimeout", "21600", ingest.total_timeout_s, 1, 7 * DAY, " of seconds"),
    NUMBER("DownloadsIngestConcurrency", "10", ingest_concurrency, 1, MDL_MAX_RUNNERS,
           " of transfers"),
    NUMBER("DownloadsIngestAttempts", "12", ingest_max_attempts, 1, 20, " of attempts"),
    MILLISECONDS("DownloadsRetryDelay", "10000", retry_delay, 1, 3600000),
    REACH("DownloadsWebhook", webhook),
    REACH("DownloadsStorefront", storefront),
    TEXT("DownloadsStorefrontCAFile", mdl_set_path, storefront.ca_file),
    TEXT("DownloadsMailTransport", mdl_set_transport, mail.transport),
    TEXT("DownloadsMailFrom", mdl_set_address, mail_from),
    TEXT("DownloadsMailCredentials", mdl_set_path, mail_credentials),
    {.name = "DownloadsMailTLS",
     .set = mdl_set_tls,
     .member = AT(mail.tls),
     .given = AT(mail_tls_given)},
    TEXT("DownloadsMailCAFile", mdl_set_path, mail.ca_file),
    TEXT("DownloadsMailBounces", mdl_set_mailbox, mail_bounces),
    NUMBER("DownloadsMailConnections", "20", mail_connections, 1, MDL_MAX_RUNNERS,
           " of connections"),
    NUMBER("DownloadsMailRate", "1000", mail_rate, 0, 1000000, " of emails"),
    SECONDS("DownloadsIdempotencyRetention", "86400", idempotency_retention, 1, 30 * DAY),
    LIST("DownloadsKeep", mdl_add_keep, keep),
    FLAG("DownloadsRateLimit", "On", rate_limit),
    NUMBER("DownloadsRateBurst", "60", rate_burst, 1, 1000000, " of tokens"),
    NUMBER("DownloadsRateRefill", "60", rate_refill, 1, 1000000, " of tokens"),
    NUMBER("DownloadsRateReadCost", "1", rate_read_cost, 1, 1000, " of tokens"),
    NUMBER("DownloadsRateWriteCost", "2", rate_write_cost, 1, 1000, " of tokens"),
    NUMBER("DownloadsRateShopFactor", "3", rate_shop_factor, 1, 100, ""),
    NUMBER("DownloadsRatePages", "120", rate_pages, 0, 1000000, " of requests"),
    NUMBER("DownloadsRateParts", "600", rate_parts, 0, 1000000, " of requests"),
    NUMBER("DownloadsRateNetwork", "120", rate_network, 0, 1000000, " of requests"),
    URL("DownloadsSettingsURL", settings_url, "settings"),
    TEXT("DownloadsSettingsSignIn", mdl_set_provider, settings_sign_in),
    URL("DownloadsAPIURL", api_url, "api/v1"),
    URL("DownloadsUploadURL", upload_url, "u"),
    LIST("DownloadsUploadOrigin", mdl_add_origin, upload_origins),
    SIZE("DownloadsUploadMaxSize", "5G", upload_max_size, 1, 16384 * GIB),
    NUMBER("DownloadsUploadMaxOpen", "20", upload_max_open, 1, 10000, " of uploads"),
    SECONDS("DownloadsUploadLifetime", "86400", upload_lifetime, 60, 30 * DAY),
    SIZE("DownloadsStorageQuota", "0", storage_quota, 0, 16384 * GIB),
    SIZE("DownloadsStorageReserve", "1G", storage.reserve, 0, 16384 * GIB),
    SECONDS("DownloadsFraudWindow", "86400", fraud_window, 60, 30 * DAY),
    NUMBER("DownloadsFraudCustomerOrders", "5", fraud_customer_orders, 0, 10000, " of orders"),
    NUMBER("DownloadsFraudAddressOrders", "5", fraud_address_orders, 0, 10000, " of orders"),
    NUMBER("DownloadsFraudIPOrders", "10", fraud_ip_orders, 0, 10000, " of orders"),
    TEXT("DownloadsFraudDisposableDomains", mdl_set_path, fraud_disposable_domains),
    TEXT("DownloadsFraudBlockedDomains", mdl_set_path, fraud_blocked_domains),
    NUMBER("DownloadsDownloadLimit", "10", download_limit, 0, 100000, " of downloads"),
    SECONDS("DownloadsLinkLifetime", "300", link_lifetime, 10, DAY),
    SECONDS("DownloadsSessionLifetime", "86400", session_lifetime, 60, 30 * DAY),
    SECONDS("DownloadsSessionIdle", "60", session_idle, 1, DAY),
    SECONDS("DownloadsLeaseTime", "30", lease_time, 2, 3600),
    SECONDS("DownloadsPollInterval", "2", poll_interval, 1, 60),
    TEXT("DownloadsAlertCommand", mdl_set_path, alert_command),
    TEXT("DownloadsAlertEmail", mdl_set_recipient, alert_email),
    SECONDS("DownloadsAlertInterval", "60", alert_interval, 1, 3600),
};

#define DIRECTIVES (sizeof directives / sizeof *directives)

mdl_settings_t *mdl_settings_create(apr_pool_t *p)
{
    mdl_settings_t *settings = apr_pcalloc(p, sizeof *settings);

    mdl_http_policy_init(&settings->ingest, p);
    mdl_http_policy_init(&settings->webhook, p);
    mdl_http_policy_init(&settings->storefront, p);
    settings->given = apr_array_make(p, 8, sizeof(mdl_settings_given_t));
    settings->tls_proxies = apr_array_make(p, 2, sizeof(apr_ipsubnet_t *));
    settings->secret_files = apr_array_make(p, 1, sizeof(const char *));
    settings->upload_origins = apr_array_make(p, 2, sizeof(const char *));
    settings->ingest.max_redirects = MAX_REDIRECTS;
    settings->mail.tls = MDL_MAIL_TLS_REQUIRED;
    mdl_keep_init(&settings->keep);
    for (apr_size_t i = 0; i < DIRECTIVES; i++) {
        if (directives[i].standard != NULL) {
            directives[i].set(settings, &directives[i], directives[i].standard, p);
        }
    }
    return settings;
}

static const mdl_directive_t *directive_find(const char *name)
{
    for (apr_size_t i = 0; i < DIRECTIVES; i++) {
        if (strcasecmp(directives[i].name, name) == 0) {
            return &directives[i];
        }
    }
    return NULL;
}

int mdl_settings_directive(apr_size_t i, const char **name, const char **standard, int *is_list)
{
    if (i >= DIRECTIVES) {
        return 0;
    }
    *name = directives[i].name;
    *standard = directives[i].standard;
    *is_list = directives[i].is_list;
    return 1;
}

const char *mdl_settings_set(mdl_settings_t *settings, const char *name, int argc,
                             const char *const *argv, apr_pool_t *p)
{
    const mdl_directive_t *directive = directive_find(name);

    if (directive == NULL) {
        return "is no directive of mod_downloads; check its spelling.";
    }
    if (strncasecmp(name, "Downloads", 9) == 0) {
        settings->configured = 1;
    }
    if (argc < 1) {
        return directive->is_list ? "needs at least one word after it." : "needs a word after it.";
    }
    if (argc > 1 && !directive->is_list) {
        return apr_psprintf(p, "takes one word, not %d: put quotes round a value with spaces.",
                            argc);
    }
    for (int i = 0; i < argc; i++) {
        const char *why = directive->set(settings, directive, argv[i], p);

        if (why != NULL) {
            return why;
        }
    }
    if (directive->given != 0) {
        *(int *)((char *)settings + directive->given) = 1;
    }
    return NULL;
}

const char *mdl_settings_public_host(const mdl_settings_t *settings, apr_pool_t *p)
{
    apr_uri_t uri;

    return apr_uri_parse(p, settings->public_url, &uri) == APR_SUCCESS && uri.hostname != NULL
               ? uri.hostname
               : "localhost";
}
