#include "core/settings/setters.h"

#include <arpa/inet.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_network_io.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <apr_time.h>
#include <apr_uri.h>

#include "base/crypto.h"
#include "base/http/url.h"
#include "base/mail/mailbox.h"
#include "base/mail/mailer.h"
#include "base/mail/mime.h"
#include "base/text/idn.h"
#include "base/text/utf8.h"
#include "core/settings/keep.h"

#define MAX_PATH_LENGTH 4000
#define MAX_PORT        65535

static void *member_of(void *settings, const mdl_directive_t *directive)
{
    return (char *)settings + directive->member;
}

const char *mdl_set_text(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    *(const char **)member_of(settings, directive) = apr_pstrdup(p, word);
    return NULL;
}

/* Not apr_strtoi64, which accepts signs, spaces and trailing text. */
static int parse_number(const char *text, apr_size_t length, apr_int64_t *value)
{
    if (length == 0 || length > 15) {
        return 0;
    }
    *value = 0;
    for (apr_size_t i = 0; i < length; i++) {
        if (!apr_isdigit(text[i])) {
            return 0;
        }
        *value = *value * 10 + (text[i] - '0');
    }
    return 1;
}

/* Not apr_uri_parse, which cuts a large port down to 16 bits. */
static int parse_port(const char *text, apr_int64_t *port)
{
    return parse_number(text, strlen(text), port) && *port >= 1 && *port <= MAX_PORT;
}

const char *mdl_set_number(void *settings, const mdl_directive_t *directive, const char *word,
                           apr_pool_t *p)
{
    apr_int64_t value = 0;

    if (!parse_number(word, strlen(word), &value) || value < directive->min ||
        value > directive->max) {
        return apr_psprintf(p,
                            "must be a whole number%s from %" APR_INT64_T_FMT
                            " to %" APR_INT64_T_FMT ", not \"%s\".",
                            directive->unit, directive->min, directive->max, word);
    }
    if (directive->scale == 0) {
        *(int *)member_of(settings, directive) = (int)value;
    } else {
        *(apr_interval_time_t *)member_of(settings, directive) = value * directive->scale;
    }
    return NULL;
}

const char *mdl_set_size(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    static const char units[] = "KMG";
    apr_size_t length = strlen(word);
    const char *unit = length ? strchr(units, apr_toupper(word[length - 1])) : NULL;
    int shift = 0;
    apr_int64_t value = 0;

    if (unit != NULL) {
        shift = 10 * (int)(unit - units + 1);
        length--;
    }
    if (!parse_number(word, length, &value) || value > (directive->max >> shift) ||
        (value << shift) < directive->min) {
        return apr_psprintf(p,
                            "must be a number of bytes from %" APR_INT64_T_FMT
                            " to %" APR_INT64_T_FMT
                            "G, written as a whole number or with K, M or G after it, not \"%s\".",
                            directive->min, directive->max >> 30, word);
    }
    *(apr_int64_t *)member_of(settings, directive) = value << shift;
    return NULL;
}

const char *mdl_set_flag(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    int *flag = member_of(settings, directive);

    if (strcasecmp(word, "On") != 0 && strcasecmp(word, "Off") != 0) {
        return apr_psprintf(p, "must be On or Off, not \"%s\".", word);
    }
    *flag = strcasecmp(word, "On") == 0;
    return NULL;
}

static int is_absolute_path(const char *path)
{
    return path[0] == '/' && mdl_utf8_is_name(path, MAX_PATH_LENGTH);
}

static const char *path_check(const char *word, apr_pool_t *p)
{
    return is_absolute_path(word)
               ? NULL
               : apr_psprintf(
                     p,
                     "must be an absolute path, beginning with a slash and without control "
                     "characters, not \"%s\".",
                     word);
}

const char *mdl_set_path(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    const char *why = path_check(word, p);

    return why != NULL ? why : mdl_set_text(settings, directive, word, p);
}

const char *mdl_add_secret_file(void *settings, const mdl_directive_t *directive, const char *word,
                                apr_pool_t *p)
{
    apr_array_header_t *files = *(apr_array_header_t **)member_of(settings, directive);
    const char *why = path_check(word, p);

    if (why == NULL && files->nelts == MDL_SECRETS_MAX) {
        return apr_psprintf(p,
                            "takes %d files at most: the secret that signs, and those before it.",
                            MDL_SECRETS_MAX);
    }
    APR_ARRAY_PUSH(files, const char *) = apr_pstrdup(p, word);
    return why;
}

const char *mdl_set_region(void *settings, const mdl_directive_t *directive, const char *word,
                           apr_pool_t *p)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    if (*word == '\0' || strlen(word) > 64 || word[strspn(word, characters)] != '\0') {
        return apr_psprintf(p, "must be a region's name, such as eu-central-1, not \"%s\".", word);
    }
    return mdl_set_text(settings, directive, word, p);
}

static int has_only_url_characters(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= 0x20 || *text >= 0x7f || strchr("\"<>\\^`{|}", *text) != NULL) {
            return 0;
        }
    }
    return 1;
}

const char *mdl_set_public_url(void *settings, const mdl_directive_t *directive, const char *word,
                               apr_pool_t *p)
{
    apr_uri_t uri;
    apr_int64_t port = 0;
    apr_size_t length;
    char *url;

    if (!has_only_url_characters(word) || apr_uri_parse(p, word, &uri) != APR_SUCCESS ||
        uri.scheme == NULL || uri.hostname == NULL || !uri.hostname[0] ||
        (strcasecmp(uri.scheme, "https") != 0 && strcasecmp(uri.scheme, "http") != 0)) {
        return apr_psprintf(p,
                            "must be an absolute URL with https or http, such as "
                            "https://downloads.example.com/%s, not \"%s\".",
                            directive->path, word);
    }
    if (uri.user != NULL || uri.query != NULL || uri.fragment != NULL) {
        return apr_psprintf(p,
                            "must have no user name, no \"?\" and no \"#\" in it, for paths are "
                            "appended to it; it is \"%s\".",
                            word);
    }
    if (uri.port_str != NULL && !parse_port(uri.port_str, &port)) {
        return apr_psprintf(p, "must have a port from 1 to 65535 or none; it is \"%s\".", word);
    }

    url = apr_pstrdup(p, word);
    for (length = 0; length < strlen(uri.scheme) + 3 + strlen(uri.hostinfo); length++) {
        url[length] = (char)apr_tolower(url[length]);
    }
    for (length = strlen(url); url[length - 1] == '/'; length--) {
        url[length - 1] = '\0';
    }
    *(const char **)member_of(settings, directive) = url;
    return NULL;
}

const char *mdl_add_host(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    apr_array_header_t *hosts = *(apr_array_header_t **)member_of(settings, directive);
    const char *under = strncmp(word, "*.", 2) == 0 ? "*." : "";
    char *name = apr_pstrdup(p, mdl_idn_ascii(word + strlen(under), p));

    for (char *c = name; c != NULL && *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    if (name == NULL || !mdl_http_host_valid(name)) {
        return apr_psprintf(p,
                            "must list host names, such as files.example.com, or *.example.com for "
                            "every host under it; no scheme, port, path or IP address; \"%s\" is "
                            "none of these.",
                            word);
    }
    APR_ARRAY_PUSH(hosts, const char *) = apr_pstrcat(p, under, name, NULL);
    return NULL;
}

const char *mdl_add_network(void *settings, const mdl_directive_t *directive, const char *word,
                            apr_pool_t *p)
{
    apr_array_header_t *networks = *(apr_array_header_t **)member_of(settings, directive);
    const char *slash = strchr(word, '/');
    const char *address = slash != NULL ? apr_pstrmemdup(p, word, (apr_size_t)(slash - word))
                                        : word;
    unsigned char binary[16];
    apr_int64_t bits;
    apr_ipsubnet_t *network;

    /* apr_ipsubnet_create alone would accept part of an address, too. */
    if (slash == NULL || !parse_number(slash + 1, strlen(slash + 1), &bits) ||
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

const char *mdl_add_port(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    mdl_http_policy_t *policy = member_of(settings, directive);
    apr_int64_t port = 0;

    if (strcmp(word, "*") == 0) {
        policy->any_port = 1;
        return NULL;
    }
    if (!parse_port(word, &port)) {
        return apr_psprintf(
            p, "must list ports from 1 to 65535, or be * for every port, not \"%s\".", word);
    }
    APR_ARRAY_PUSH(policy->ports, int) = (int)port;
    return NULL;
}

/* The origin that a browser sends for a page (RFC 6454, section 6.2): scheme, host and port, unless
   it is the scheme's default port. */
static char *origin_of(const char *word, apr_pool_t *p)
{
    char *origin = apr_pstrdup(p, word);
    apr_uri_t uri;
    apr_int64_t port;

    for (char *c = origin; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    if (!has_only_url_characters(origin) || apr_uri_parse(p, origin, &uri) != APR_SUCCESS ||
        uri.scheme == NULL || uri.hostname == NULL || !uri.hostname[0] ||
        strchr(uri.hostname, '*') != NULL || uri.user != NULL || uri.path != NULL ||
        uri.query != NULL || uri.fragment != NULL ||
        (strcmp(uri.scheme, "https") != 0 && strcmp(uri.scheme, "http") != 0)) {
        return NULL;
    }
    if (uri.port_str != NULL) {
        if (!parse_port(uri.port_str, &port)) {
            return NULL;
        }
        if (port == apr_uri_port_of_scheme(uri.scheme)) {
            origin[strlen(origin) - strlen(uri.port_str) - 1] = '\0';
        }
    }
    return origin;
}

const char *mdl_add_origin(void *settings, const mdl_directive_t *directive, const char *word,
                           apr_pool_t *p)
{
    apr_array_header_t *origins = *(apr_array_header_t **)member_of(settings, directive);
    const char *origin = strcmp(word, "*") == 0 ? "*" : origin_of(word, p);

    if (origin == NULL) {
        return apr_psprintf(p,
                            "must list origins, such as https://admin.example.com, with no path "
                            "behind them, or be * for every origin, not \"%s\".",
                            word);
    }
    APR_ARRAY_PUSH(origins, const char *) = origin;
    return NULL;
}

const char *mdl_set_provider(void *settings, const mdl_directive_t *directive, const char *word,
                             apr_pool_t *p)
{
    static const char characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    if (*word == '\0' || word[strspn(word, characters)] != '\0') {
        return "must name a provider of httpd's for authentication, such as file.";
    }
    return mdl_set_text(settings, directive, word, p);
}

const char *mdl_set_transport(void *settings, const mdl_directive_t *directive, const char *word,
                              apr_pool_t *p)
{
    const char *why = NULL;

    const char *transport = mdl_mailer_transport_of(word, &why, p);

    return transport != NULL ? mdl_set_text(settings, directive, transport, p)
                             : apr_pstrcat(p, "is not understood: ", why, NULL);
}

const char *mdl_set_mailbox(void *settings, const mdl_directive_t *directive, const char *word,
                            apr_pool_t *p)
{
    const char *why = NULL;

    if (!mdl_mailbox_valid(word, &why, p)) {
        return apr_pstrcat(p, "is not understood: ", why, NULL);
    }
    return mdl_set_text(settings, directive, word, p);
}

const char *mdl_set_address(void *settings, const mdl_directive_t *directive, const char *word,
                            apr_pool_t *p)
{
    const char *address = mdl_mime_address_of_sender(word, p);

    if (address == NULL) {
        return apr_psprintf(p,
                            "must be an address, such as shop@example.com, with ASCII alone before "
                            "its @, not \"%s\"; the name before it is that of the shop.",
                            word);
    }
    return mdl_set_text(settings, directive, address, p);
}

const char *mdl_set_recipient(void *settings, const mdl_directive_t *directive, const char *word,
                              apr_pool_t *p)
{
    const char *address = mdl_mime_address_of(word, p);

    return address != NULL
               ? mdl_set_text(settings, directive, address, p)
               : apr_psprintf(p, "must be an address, such as operator@example.com, not \"%s\".",
                              word);
}

const char *mdl_set_tls(void *settings, const mdl_directive_t *directive, const char *word,
                        apr_pool_t *p)
{
    mdl_mail_tls_t *tls = member_of(settings, directive);

    if (strcasecmp(word, "required") == 0) {
        *tls = MDL_MAIL_TLS_REQUIRED;
    } else if (strcasecmp(word, "try") == 0) {
        *tls = MDL_MAIL_TLS_TRY;
    } else if (strcasecmp(word, "off") == 0) {
        *tls = MDL_MAIL_TLS_OFF;
    } else {
        return apr_psprintf(p, "must be required, try or off, not \"%s\".", word);
    }
    return NULL;
}

const char *mdl_set_delivery(void *settings, const mdl_directive_t *directive, const char *word,
                             apr_pool_t *p)
{
    int *is_redirect = member_of(settings, directive);

    *is_redirect = strcasecmp(word, "redirect") == 0;
    return *is_redirect || strcasecmp(word, "proxy") == 0
               ? NULL
               : apr_psprintf(p, "must be proxy or redirect, not \"%s\".", word);
}

const char *mdl_add_keep(void *settings, const mdl_directive_t *directive, const char *word,
                         apr_pool_t *p)
{
    return mdl_keep_set(member_of(settings, directive), word, p);
}

const char *mdl_set_db_driver(void *settings, const mdl_directive_t *directive, const char *word,
                              apr_pool_t *p)
{
    if (strcmp(word, "sqlite3") != 0 && strcmp(word, "pgsql") != 0) {
        return apr_psprintf(p, "must be sqlite3 or pgsql for mod_downloads, not \"%s\".", word);
    }
    return mdl_set_text(settings, directive, word, p);
}
