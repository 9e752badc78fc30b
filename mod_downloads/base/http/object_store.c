#include "base/http/object_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <curl/curl.h>

#include "base/clock.h"
#include "base/http/object_connection.h"
#include "base/log.h"

#define FAILURES_AWAY 5 /* in a row */
#define DENIED_EVERY  apr_time_from_sec(60)
#define CLOCK_WARNING 300 /* seconds */

struct mdl_object_store_t {
    mdl_object_config_t config;
    mdl_sign_credentials_t credentials;
    mdl_object_place_t place;
    mdl_object_place_t public_place;
    mdl_object_connections_t *connections;
    apr_int64_t clock_offset; /* of the store's clock from ours, microseconds; atomic */
    pthread_mutex_t mutex;    /* guards the members below */
    int failures;             /* in a row */
    int away;
    int probing;            /* a call asks whether the store is still away */
    apr_time_t denied_next; /* by mdl_clock_monotonic: when a denial is logged again */
};

/* --- where it is --- */

/* A part of a URL, in p; NULL if there is none. */
static const char *url_part(CURLU *url, CURLUPart part, apr_pool_t *p)
{
    char *text = NULL;
    const char *copy = NULL;

    if (curl_url_get(url, part, &text, 0) == CURLUE_OK) {
        copy = apr_pstrdup(p, text);
    }
    curl_free(text);
    return copy;
}

/* The bucket and the prefix of keys, of a path such as "/bucket/a/b". */
static const char *path_parse(mdl_object_place_t *place, const char *path, const char **bucket,
                              apr_pool_t *p)
{
    apr_size_t length = strcspn(path + 1, "/");
    const char *prefix = path + 1 + length;

    *bucket = apr_pstrmemdup(p, path + 1, length);
    prefix += *prefix == '/';
    if (length < 3 || strspn(*bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != length) {
        return "it must have a bucket's name behind the host, of lower-case letters, digits, \".\" "
               "and \"-\"";
    }
    if (strspn(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/") !=
            strlen(prefix) ||
        strstr(path, "//") != NULL || strstr(path, "/.") != NULL) {
        return "the prefix behind the bucket may have letters, digits, \".\", \"_\", \"-\" and "
               "single slashes";
    }
    place->prefix = *prefix == '\0' || prefix[strlen(prefix) - 1] == '/'
                        ? apr_pstrdup(p, prefix)
                        : apr_pstrcat(p, prefix, "/", NULL);
    return NULL;
}

/* Returns what is wrong, or NULL. */
static const char *place_fill(mdl_object_place_t *place, CURLU *url, apr_pool_t *p)
{
    const char *scheme = url_part(url, CURLUPART_SCHEME, p);
    const char *host = url_part(url, CURLUPART_HOST, p);
    const char *port = url_part(url, CURLUPART_PORT, p);
    const char *path = url_part(url, CURLUPART_PATH, p);
    const char *bucket, *wrong;

    if (scheme == NULL || (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)) {
        return "it must begin with https:// or http://";
    }
    if (host == NULL || url_part(url, CURLUPART_USER, p) != NULL ||
        url_part(url, CURLUPART_QUERY, p) != NULL || url_part(url, CURLUPART_FRAGMENT, p) != NULL) {
        return "it must have a host, and no user, query or fragment";
    }
    wrong = path_parse(place, path != NULL ? path : "/", &bucket, p);
    if (wrong != NULL) {
        return wrong;
    }
    /* libcurl sends no port that is the scheme's own, and the signature covers what it sends. */
    if (port != NULL && strcmp(port, *(scheme + 4) == 's' ? "443" : "80") != 0) {
        host = apr_pstrcat(p, host, ":", port, NULL);
    }
    place->host = host;
    place->origin = apr_pstrcat(p, scheme, "://", host, NULL);
    place->path = apr_pstrcat(p, "/", bucket, NULL);
    return NULL;
}

static apr_status_t place_parse(mdl_object_place_t *place, const char *text, const char **why,
                                apr_pool_t *p)
{
    char *lower = apr_pstrdup(p, text);
    char *host = strstr(lower, "://");
    CURLU *url = curl_url();
    const char *wrong = "there is no memory";

    for (host = host != NULL ? host + 3 : lower; *host != '\0' && *host != '/'; host++) {
        *host = (char)apr_tolower(*host);
    }
    if (url != NULL) {
        wrong = curl_url_set(url, CURLUPART_URL, lower, 0) == CURLUE_OK ? place_fill(place, url, p)
                                                                        : "it is no URL";
    }
    curl_url_cleanup(url);
    if (wrong != NULL) {
        *why = apr_psprintf(p, "The object store's URL is not usable: %s.", wrong);
    }
    return wrong == NULL ? APR_SUCCESS : APR_EINVAL;
}

static mdl_object_config_t config_copy(const mdl_object_config_t *config, apr_pool_t *p)
{
    mdl_object_config_t copy = *config;

    copy.url = apr_pstrdup(p, config->url);
    copy.region = apr_pstrdup(p, config->region);
    copy.access_key = apr_pstrdup(p, config->access_key);
    copy.secret_key = apr_pstrdup(p, config->secret_key);
    copy.session_token = apr_pstrdup(p, config->session_token);
    copy.public_url = apr_pstrdup(p, config->public_url);
    copy.ca_file = apr_pstrdup(p, config->ca_file);
    return copy;
}

apr_status_t mdl_object_store_create(mdl_object_store_t **store, const mdl_object_config_t *config,
                                     const char **why, apr_pool_t *p)
{
    mdl_object_store_t *made = apr_pcalloc(p, sizeof *made);
    apr_status_t rv;

    *store = NULL;
    *why = NULL;
    made->config = config_copy(config, p);
    made->credentials = (mdl_sign_credentials_t){.region = made->config.region,
                                                 .service = "s3",
                                                 .access_key = made->config.access_key,
                                                 .secret_key = made->config.secret_key,
                                                 .session_token = made->config.session_token};
    rv = place_parse(&made->place, config->url, why, p);
    made->public_place = made->place;
    if (rv == APR_SUCCESS && config->public_url != NULL) {
        rv = place_parse(&made->public_place, config->public_url, why, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    pthread_mutex_init(&made->mutex, NULL);
    made->connections = mdl_object_connections_make(p);
    *store = made;
    return APR_SUCCESS;
}

const char *mdl_object_store_host(const mdl_object_store_t *store)
{
    return store->place.host;
}

const mdl_object_config_t *mdl_object_store_config(const mdl_object_store_t *store)
{
    return &store->config;
}

const mdl_sign_credentials_t *mdl_object_store_credentials(const mdl_object_store_t *store)
{
    return &store->credentials;
}

const mdl_object_place_t *mdl_object_store_place(const mdl_object_store_t *store)
{
    return &store->place;
}

const mdl_object_place_t *mdl_object_store_public_place(const mdl_object_store_t *store)
{
    return &store->public_place;
}

mdl_object_connections_t *mdl_object_store_connections(mdl_object_store_t *store)
{
    return store->connections;
}

/* --- its clock --- */

apr_time_t mdl_object_store_now(const mdl_object_store_t *store)
{
    return apr_time_now() + __atomic_load_n(&store->clock_offset, __ATOMIC_RELAXED);
}

void mdl_object_store_set_clock(mdl_object_store_t *store, apr_time_t date)
{
    apr_int64_t offset = date - apr_time_now();
    apr_int64_t seconds = apr_time_sec(offset < 0 ? -offset : offset);

    __atomic_store_n(&store->clock_offset, offset, __ATOMIC_RELAXED);
    if (seconds > CLOCK_WARNING) {
        mdl_log(MDL_LOG_WARNING, 0,
                "MDL0603: the clock of this machine is %" APR_INT64_T_FMT
                " s %s that of the object store %s, which is used for requests to it; "
                "set both by NTP",
                seconds, offset < 0 ? "ahead of" : "behind", store->place.host);
    }
}

/* --- whether it is there --- */

int mdl_object_store_is_away(mdl_object_store_t *store)
{
    int away;

    pthread_mutex_lock(&store->mutex);
    away = store->away;
    pthread_mutex_unlock(&store->mutex);
    return away;
}

int mdl_object_store_approach(mdl_object_store_t *store, int *probe)
{
    int may;

    pthread_mutex_lock(&store->mutex);
    *probe = store->away && !store->probing;
    store->probing |= *probe;
    may = !store->away || *probe;
    pthread_mutex_unlock(&store->mutex);
    return may;
}

void mdl_object_store_leave(mdl_object_store_t *store, int *probe)
{
    pthread_mutex_lock(&store->mutex);
    if (*probe) {
        store->probing = *probe = 0;
    }
    pthread_mutex_unlock(&store->mutex);
}

/* Only a probe's answer ends the absence: another request's may be older. */
void mdl_object_store_note(mdl_object_store_t *store, int *probe, int answered, const char *why)
{
    pthread_mutex_lock(&store->mutex);
    store->failures = answered ? 0 : store->failures + 1;
    if (!store->away && store->failures >= FAILURES_AWAY) {
        store->away = 1;
        mdl_log(MDL_LOG_ERR, 0,
                "MDL0601: the object store is away: %s  One request at a time asks it, the others "
                "fail at once",
                why);
    } else if (*probe && answered) {
        store->away = 0;
        mdl_log(MDL_LOG_NOTICE, 0, "MDL0602: the object store %s answers again", store->place.host);
    }
    if (*probe) {
        store->probing = *probe = 0;
    }
    pthread_mutex_unlock(&store->mutex);
}

void mdl_object_store_log_denied(mdl_object_store_t *store, const char *why)
{
    apr_time_t now = mdl_clock_monotonic();
    int due;

    pthread_mutex_lock(&store->mutex);
    due = now >= store->denied_next;
    if (due) {
        store->denied_next = now + DENIED_EVERY;
    }
    pthread_mutex_unlock(&store->mutex);
    if (due) {
        mdl_log(MDL_LOG_ERR, 0, "MDL0604: the object store refuses requests: %s", why);
    }
}
