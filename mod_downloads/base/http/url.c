#include "base/http/url.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>
#include <curl/curl.h>

#include "base/text/idn.h"
#include "base/text/utf8.h"

#define MAX_LABEL 63

int mdl_http_host_valid(const char *host)
{
    const char *label = host;
    apr_size_t length;

    for (;; label += length + 1) {
        length = strspn(label, "abcdefghijklmnopqrstuvwxyz0123456789-_");
        if (length == 0 || length > MAX_LABEL || label[0] == '-' || label[length - 1] == '-') {
            return 0;
        }
        if (label[length] != '.') {
            break;
        }
    }
    /* Some resolvers treat a name whose last label is a number as an IPv4 address. */
    return label[length] == '\0' && strlen(host) <= MDL_HTTP_HOST_MAX &&
           strspn(label, "0123456789") != length &&
           !(label[0] == '0' && label[1] == 'x' &&
             label[2 + strspn(label + 2, "0123456789abcdef")] == '\0');
}

static int host_is_listed(const mdl_http_policy_t *policy, const char *host)
{
    apr_size_t length = strlen(host);

    for (int i = 0; policy->hosts != NULL && i < policy->hosts->nelts; i++) {
        const char *entry = APR_ARRAY_IDX(policy->hosts, i, const char *);

        if (entry[0] == '*' && entry[1] == '.') {
            apr_size_t suffix = strlen(entry + 1);

            if (length > suffix && strcmp(host + length - suffix, entry + 1) == 0) {
                return 1;
            }
        } else if (strcmp(host, entry) == 0) {
            return 1;
        }
    }
    return 0;
}

static int port_is_allowed(const mdl_http_policy_t *policy, int port, int default_port)
{
    if (port == default_port || policy->any_port) {
        return 1;
    }
    for (int i = 0; policy->ports != NULL && i < policy->ports->nelts; i++) {
        if (port == APR_ARRAY_IDX(policy->ports, i, int)) {
            return 1;
        }
    }
    return 0;
}

/* A part of url, copied into p; NULL if it has none. */
static const char *url_part(CURLU *url, CURLUPart part, unsigned int flags, apr_pool_t *p)
{
    char *text = NULL;
    const char *copy = NULL;

    if (curl_url_get(url, part, &text, flags) == CURLUE_OK) {
        copy = apr_pstrdup(p, text);
        curl_free(text);
    }
    return copy;
}

/* The host in lower case. */
static const char *url_host(CURLU *url, apr_pool_t *p)
{
    char *host = apr_pstrdup(p, url_part(url, CURLUPART_HOST, 0, p));

    for (char *c = host; c != NULL && *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    }
    return host;
}

static mdl_http_result_t url_allowed(const mdl_http_policy_t *policy, CURLU *url, const char **host,
                                     apr_pool_t *p)
{
    const char *scheme = url_part(url, CURLUPART_SCHEME, 0, p);
    const char *port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, p);
    const char *name = url_host(url, p);
    int secure;

    if (scheme == NULL || name == NULL) {
        return MDL_HTTP_URL_INVALID;
    }
    *host = mdl_http_host_valid(name) ? name : NULL;
    secure = strcmp(scheme, "https") == 0;
    if (!secure && !(policy->allow_http && strcmp(scheme, "http") == 0)) {
        return MDL_HTTP_HOST_NOT_ALLOWED;
    }
    if (*host == NULL || port == NULL || atoi(port) == 0) {
        return MDL_HTTP_URL_INVALID;
    }
    if (!host_is_listed(policy, name) || !port_is_allowed(policy, atoi(port), secure ? 443 : 80)) {
        return MDL_HTTP_HOST_NOT_ALLOWED;
    }
    return MDL_HTTP_OK;
}

/* Converts url's host to its xn-- form: in locale C libcurl would send it unconverted.  RFC 3986
   allows only ASCII in all other parts. */
static int url_make_ascii(CURLU *url, apr_pool_t *p)
{
    const char *host = url_part(url, CURLUPART_HOST, 0, p);
    const char *whole;

    if (host != NULL && !mdl_utf8_is_ascii(host)) {
        host = mdl_idn_ascii(host, p);
        if (host == NULL || curl_url_set(url, CURLUPART_HOST, host, 0) != CURLUE_OK) {
            return 0;
        }
    }
    whole = url_part(url, CURLUPART_URL, 0, p);
    return whole != NULL && mdl_utf8_is_ascii(whole);
}

mdl_http_result_t mdl_http_url_parse(const mdl_http_policy_t *policy, CURLU *base, const char *text,
                                     CURLU **url, const char **host, apr_pool_t *p)
{
    /* Location headers with raw UTF-8 or blanks in the path are common. */
    unsigned int flags = base != NULL ? CURLU_URLENCODE | CURLU_ALLOW_SPACE : 0;
    CURLU *parsed = base != NULL ? curl_url_dup(base) : curl_url();
    mdl_http_result_t result = MDL_HTTP_URL_INVALID;
    CURLUcode code;

    *host = NULL;
    if (parsed == NULL) {
        return MDL_HTTP_UNAVAILABLE;
    }
    code = curl_url_set(parsed, CURLUPART_URL, text, CURLU_DISALLOW_USER | flags);
    if (code == CURLUE_OK && url_make_ascii(parsed, p)) {
        result = url_allowed(policy, parsed, host, p);
    } else if (code == CURLUE_UNSUPPORTED_SCHEME) {
        result = MDL_HTTP_HOST_NOT_ALLOWED;
    }
    if (result != MDL_HTTP_OK) {
        curl_url_cleanup(parsed);
        return result;
    }
    *url = parsed;
    return MDL_HTTP_OK;
}

static int url_has_control_character(const char *text)
{
    while (*text != '\0') {
        apr_uint32_t c;

        text += mdl_utf8_read(text, &c);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            return 1;
        }
    }
    return 0;
}

static const char *url_filename(CURLU *url, apr_pool_t *p)
{
    const char *path = url_part(url, CURLUPART_PATH, 0, p);
    const char *segment = path != NULL ? strrchr(path, '/') : NULL;
    const char *filename = NULL;
    int length = 0;
    char *name = segment != NULL ? curl_easy_unescape(NULL, segment + 1, 0, &length) : NULL;

    if (name != NULL && length > 0 && strlen(name) == (apr_size_t)length && mdl_utf8_valid(name) &&
        !url_has_control_character(name) && strpbrk(name, "/\\") == NULL &&
        strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        filename = apr_pstrdup(p, name);
    }
    curl_free(name);
    return filename;
}

mdl_http_result_t mdl_http_url_check(const mdl_http_policy_t *policy, const char *url,
                                     const char **host, const char **filename, apr_pool_t *p)
{
    const char *name = NULL;
    const char *last = NULL;
    CURLU *parsed;
    mdl_http_result_t result = mdl_http_url_parse(policy, NULL, url, &parsed, &name, p);

    if (result == MDL_HTTP_OK) {
        last = filename != NULL ? url_filename(parsed, p) : NULL;
        curl_url_cleanup(parsed);
    }
    if (host != NULL) {
        *host = result == MDL_HTTP_OK ? name : NULL;
    }
    if (filename != NULL) {
        *filename = last;
    }
    return result;
}

const char *mdl_http_url_host(const char *text, apr_pool_t *p)
{
    CURLU *url = curl_url();
    const char *host = NULL;

    if (url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
        url_make_ascii(url, p)) {
        host = url_host(url, p);
    }
    curl_url_cleanup(url);
    return host;
}

mdl_http_policy_t *mdl_http_policy_for(const mdl_http_policy_t *policy, const char *url,
                                       apr_pool_t *p)
{
    mdl_http_policy_t *own = apr_pmemdup(p, policy, sizeof *own);
    const char *host = mdl_http_url_host(url, p);

    own->hosts = apr_array_make(p, 1, sizeof(const char *));
    own->max_redirects = 0;
    if (host != NULL) {
        APR_ARRAY_PUSH(own->hosts, const char *) = host;
    }
    return own;
}

int mdl_http_url_is_https(const char *text)
{
    static const char characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
        "-._~:/?#[]@!$&'()*+,;=%";
    CURLU *url;
    int valid;

    /* libcurl would also accept one slash, or three. */
    if (strncmp(text, "https://", 8) != 0 || strchr("/?#", text[8]) != NULL ||
        text[strspn(text, characters)] != '\0' || (url = curl_url()) == NULL) {
        return 0;
    }
    valid = curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER) == CURLUE_OK;
    curl_url_cleanup(url);
    return valid;
}
